"""CALL analyze: executors learn the statistics of adopted files."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import deltalake
import pyarrow as pa
import pyarrow.parquet as pq
from tests.spark.conftest import Lake

import tamis


def data(first: int) -> pa.Table:
    ids = list(range(first, first + 20))
    return pa.table({"n": ids, "body": [json.dumps({"user": f"u{n:03}"}) for n in ids]})


def test_executors_learn_what_filters_skip_by(lake: Lake) -> None:
    source = lake.folder.parent / "source"
    for first in range(0, 100, 20):
        deltalake.write_deltalake(source, data(first), mode="append")
    lake.sql(f"CALL lake.system.adopt('{source}', 'db.t', follow => true)").collect()
    query = "SELECT n FROM lake.db.t WHERE get_json_object(body, '$.user') = 'u047'"
    assert lake.rows(query) == [(47,)]
    table = tamis.open(lake.folder / "db" / "t")
    text = "get_json_object(body, '$.user') = 'u047'"
    assert table.explain(text).parts.kept == 5
    (done,) = lake.sql("CALL lake.system.analyze(table => 'db.t', filter => 'n < 40')").collect()
    assert (done["parts"], done["commits"], done["later"]) == (2, 1, 0)
    (done,) = lake.sql("CALL lake.system.analyze('db.t')").collect()
    assert (done["parts"], done["commits"]) == (3, 1)
    assert done["bytes_read"] > 0
    table.refresh()
    assert table.explain(text).parts.kept == 1
    assert lake.rows(query) == [(47,)]
    assert table.verify().ok
    deltalake.DeltaTable(source).delete("n = 47")
    lake.sql("CALL lake.system.sync('db.t')").collect()
    assert lake.rows(query) == []


def test_a_file_that_changed_is_named(lake: Lake) -> None:
    source = lake.folder.parent / "source"
    for first in (0, 20):
        deltalake.write_deltalake(source, data(first), mode="append")
    lake.sql(f"CALL lake.system.adopt('{source}', 'db.t')").collect()
    changed = sorted(source.glob("*.parquet"))[0]
    changed.write_bytes(changed.read_bytes() + b" ")
    message = lake.refused("CALL lake.system.analyze('db.t')", "SOURCE_CHANGED")
    assert changed.name in message
    table = tamis.open(lake.folder / "db" / "t")
    assert table.explain("n = 1000").parts.total == 2
    changed.unlink()
    assert [row["operation"] for row in table.history().to_pylist()] == ["analyze", "adopt"]


def test_a_filter_is_read_in_the_time_zone_of_the_session(lake: Lake) -> None:
    """Midnight in Los Angeles is 07:00 in UTC, in July."""
    source = lake.folder.parent / "source"
    source.mkdir()
    for hour in (6, 7):
        rows = pa.table({"at": pa.array([datetime(2026, 7, 1, hour, tzinfo=UTC)], pa.timestamp("us", "UTC"))})
        pq.write_table(rows, source / f"{hour}.parquet")
    lake.sql(f"CALL lake.system.adopt('{source}', 'db.t')").collect()
    before = lake.spark.conf.get("spark.sql.session.timeZone")
    lake.spark.conf.set("spark.sql.session.timeZone", "America/Los_Angeles")
    try:
        (done,) = lake.sql("CALL lake.system.analyze('db.t', \"at >= '2026-07-01'\")").collect()
    finally:
        lake.spark.conf.set("spark.sql.session.timeZone", before)
    assert done["parts"] == 1
