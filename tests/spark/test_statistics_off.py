"""``tamis.stats.filter=off`` is a rollback switch: no statistic decides anything, however wrong it is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.spark.conftest import Lake

import tamis
from tamis.core.stats.statistics_budget import Trimmed, trim_statistics
from tamis.core.stats.statistics_columns import COUNTS, parse_name
from tamis.engine.part_writer import trimmed_statistics, write_part
from tamis.spark.scan import parquet_filter, spark_batch

ROWS = [{"id": i, "g": i % 3, "s": f"s{i % 10}", "j": f'{{"k": {i}}}'} for i in range(60)]
SCHEMA = pa.schema([("id", pa.int64()), ("g", pa.int64()), ("s", pa.string()), ("j", pa.string())])
QUERIES = [
    ("SELECT id FROM {t} WHERE id = 7", [(7,)]),
    ("SELECT s FROM {t} WHERE id = 7", [("s7",)]),
    ("SELECT id FROM {t} WHERE id + 0 < 2", [(0,), (1,)]),
    ("SELECT id FROM {t} WHERE s IN ('s3') AND g = 0", [(3,), (33,)]),
    ("SELECT id FROM {t} WHERE s IS NULL", []),
    ("SELECT id FROM {t} WHERE get_json_object(j, '$.k') = '5'", [(5,)]),
    ("SELECT count(*) FROM {t} WHERE id IS NOT NULL", [(60,)]),
    ("SELECT count(*) FROM {t} WHERE id > 1000", [(0,)]),
    ("SELECT count(s) FROM {t}", [(60,)]),
    ("SELECT min(id), max(id), min(s), max(s) FROM {t}", [(0, 59, "s0", "s9")]),
    ("SELECT g, min(id), count(*) FROM {t} GROUP BY g", [(0, 0, 20), (1, 1, 20), (2, 2, 20)]),
    ("SELECT id FROM {t} ORDER BY id LIMIT 2", [(0,), (1,)]),
    ("SELECT id FROM {t} ORDER BY id DESC NULLS FIRST LIMIT 2", [(58,), (59,)]),
    ("SELECT DISTINCT g FROM {t} WHERE s = 's1'", [(0,), (1,), (2,)]),
    ("SELECT count(*) FROM (SELECT id FROM {t} WHERE id >= 0 LIMIT 7)", [(7,)]),
    ("SELECT a.id FROM {t} a JOIN {t} b ON a.id = b.id + 50 WHERE b.s = 's4'", [(54,)]),
    ("SELECT id FROM {t} WHERE id IN (SELECT max(id) FROM {t})", [(59,)]),
    ("SELECT id FROM {t} x WHERE NOT EXISTS (SELECT 1 FROM {t} y WHERE y.id = x.id + 1)", [(59,)]),
]  # fmt: skip


def planted(trimmed: Callable[..., Trimmed]) -> Callable[..., Trimmed]:
    """Make every statistic wrong: bounds and sets far from any value, counts that claim NULLs or none, no paths."""

    def trim(*arguments: Any) -> Trimmed:
        left = trimmed(*arguments)
        wrong: dict[str, pa.Array] = {}
        for name, array in left.statistics.items():
            kind = parse_name(name)
            assert kind is not None
            listed = pa.types.is_list(array.type)
            text = pa.types.is_string(array.type.value_type if listed else array.type)
            value: Any = "zzzz" if text else 10**6
            if kind.kind in COUNTS:
                value = 3 if kind.kind == "exact" else 0
            wrong[name] = pa.array([[value] if listed else value], array.type)
        for paths in left.documents.values():
            paths.update(
                {path: replace(one, string=("zzzz", "zzzz"), long=(10**6, 10**6)) for path, one in paths.items()}
            )
        return replace(left, statistics=wrong)

    return trim


@pytest.fixture
def lying(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> Lake:
    """A clustered table of four parts whose statistics are all wrong; the audit would find that."""
    monkeypatch.setenv("TAMIS_AUDIT", "off")
    monkeypatch.setattr(trimmed_statistics, "trim_statistics", planted(trim_statistics))
    monkeypatch.setattr(
        write_part,
        "end_statistics",
        lambda *_: (),
    )
    table = tamis.create(Path(lake.folder) / "db" / "t", SCHEMA)
    for start in range(0, 60, 15):
        table.append(pa.Table.from_pylist(ROWS[start : start + 15], SCHEMA))
    options = {"tamis.stats.filter": "off", "tamis.audit.percent": "0"}
    table.alter().set_properties(options).commit()
    return lake


def test_the_planted_statistics_are_believed_when_the_switch_is_on(lying: Lake) -> None:
    """The test would find a use: with the switch on, wrong rows come."""
    where = "lake.db.t WITH ('tamis.stats.filter' = 'on')"
    assert lying.rows(f"SELECT id FROM {where} WHERE id = 7") == []
    assert lying.rows(f"SELECT min(id) FROM {where}") == [(10**6,)]


@pytest.mark.parametrize(("native_bytes", "lazy"), [("0", "on"), ("1000000000", "off")])
@pytest.mark.push_cases(2)
def test_no_statistic_decides_a_query(lying: Lake, native_bytes: str, lazy: str) -> None:
    lying.sql(
        f"ALTER TABLE lake.db.t SET TBLPROPERTIES ('tamis.read.lazy' = '{lazy}', 'tamis.read.native_bytes' = '{native_bytes}')"
    )
    for query, rows in QUERIES:
        assert sorted(lying.rows(query.format(t="lake.db.t"))) == rows, query


def test_the_native_reader_gets_no_hints(lying: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    """By them Spark's reader would skip row groups and pages by the statistics in the files."""
    given: list[str] = []

    def filter_hints(*arguments: Any) -> str:
        given.append(parquet_filter.filter_hints(*arguments))
        return given[-1]

    monkeypatch.setattr(spark_batch, "filter_hints", filter_hints)
    lying.sql("ALTER TABLE lake.db.t SET TBLPROPERTIES ('tamis.read.lazy' = 'native')")
    assert lying.rows("SELECT id FROM lake.db.t WHERE id = 7") == [(7,)]
    assert given == []
    lying.rows("SELECT id FROM lake.db.t WITH ('tamis.stats.filter' = 'on') WHERE id + g > 0 AND id < 2000000")
    assert given, "the native reader is not asked"


def test_statistics_of_an_index_decide_nothing(lying: Lake) -> None:
    lying.sql("ALTER TABLE lake.db.t SET TBLPROPERTIES ('tamis.stats.filter' = 'on')")
    tamis.open(Path(lying.folder) / "db" / "t").create_index("ids", "id")
    for use in ("ids", "lookup", "plan"):
        where = f"lake.db.t WITH ('tamis.index.use' = '{use}', 'tamis.stats.filter' = 'off')"
        assert lying.rows(f"SELECT s FROM {where} WHERE id = 7") == [("s7",)]
        assert lying.rows(f"SELECT id FROM {where} WHERE id IN (7, 33) ORDER BY id") == [(7,), (33,)]


def test_no_statistic_decides_an_embedded_scan(lying: Lake) -> None:
    table = tamis.open(Path(lying.folder) / "db" / "t")
    assert table.scan("id = 7").to_arrow().column("id").to_pylist() == [7]
    assert table.scan("id >= 0").count() == 60
    assert table.scan("id = 7").exists()
    assert table.scan("id >= 0", limit=5).to_arrow().num_rows == 5
    assert table.scan(order_by="id DESC", limit=1).to_arrow().column("id").to_pylist() == [59]
    assert table.scan().aggregate(("min(id)", "max(s)")).to_pylist() == [{"min(id)": 0, "max(s)": "s9"}]


def test_no_statistic_decides_a_change_of_rows(lying: Lake) -> None:
    lying.sql("UPDATE lake.db.t SET s = 'new' WHERE id = 7")
    lying.sql("DELETE FROM lake.db.t WHERE id BETWEEN 10 AND 19")
    lying.sql(
        "MERGE INTO lake.db.t t USING (SELECT 30L AS id UNION ALL SELECT 100L) n ON t.id = n.id "
        "WHEN MATCHED THEN UPDATE SET s = 'merged' WHEN NOT MATCHED THEN INSERT (id, g) VALUES (n.id, 0)"
    )
    assert lying.rows("SELECT count(*), count_if(s = 'new'), count_if(s = 'merged'), max(id) FROM lake.db.t") == [
        (51, 1, 1, 100)
    ]
    table = tamis.open(Path(lying.folder) / "db" / "t")
    table.delete("id < 5")
    assert table.refresh().scan("id < 8").count() == 3
