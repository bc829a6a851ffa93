"""Java answers what planning has decided about a scan, and asks Python again for what may have changed since."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException

import tamis
from tamis.spark.jvm_bridge.adapter import bridge_of
from tamis.spark.jvm_bridge.java_callback import Callback
from tamis.spark.scan import scan_answers

pytestmark = pytest.mark.spark

QUERY = "SELECT sum(n), count(s) FROM lake.db.t WHERE n >= 10"
RIGHT = [(sum(range(10, 30)), 20)]


@pytest.fixture
def table(lake: Any) -> tamis.Table:
    """Three parts of ten rows, whose files Spark's reader reads and that were read once, so that they are checked."""
    made = tamis.create(lake.folder / "db" / "t", pa.schema([("n", pa.int64()), ("s", pa.string())]), cluster_by=["n"])
    for start in (0, 10, 20):
        made.append(
            pa.table({"n": range(start, start + 10), "s": [f"ü☃\U0001f40d{n}" for n in range(start, start + 10)]})
        )
    assert lake.rows(QUERY) == RIGHT
    return made


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often Java has called each method of Python's."""
    found: Counter[str] = Counter()
    real = Callback.apply

    def counted(self: Callback, call: str, argument: Any) -> Any:
        found[call.split(":")[1]] += 1
        return real(self, call, argument)

    monkeypatch.setattr(Callback, "apply", counted)
    return found


def rewritten(path: Path, content: Callable[[bytes], bytes]) -> None:
    """Give a file other bytes, and the times that it had: its change time tells."""
    times = path.stat().st_atime_ns, path.stat().st_mtime_ns
    path.write_bytes(content(path.read_bytes()))
    os.utime(path, ns=times)


CHANGES: dict[str, Callable[[Path], None]] = {
    "PART_MISSING": Path.unlink,
    "TRUNCATED": lambda path: rewritten(path, lambda data: data[:-100]),
    "CHECKSUM": lambda path: rewritten(path, lambda data: data[:-20] + bytes([data[-20] ^ 1]) + data[-19:]),
}


@pytest.mark.parametrize("code", CHANGES)
def test_a_file_that_changes_after_planning_is_named(lake: Any, table: tamis.Table, code: str) -> None:
    planned = lake.sql(QUERY)
    planned._jdf.queryExecution().optimizedPlan()
    CHANGES[code](sorted((lake.folder / "db" / "t" / "data").iterdir())[-1])
    with pytest.raises(PySparkException, match=code):
        planned.collect()


def test_a_touched_file_is_checked_again(lake: Any, table: tamis.Table, calls: Counter[str]) -> None:
    planned = lake.sql(QUERY)
    planned._jdf.queryExecution().optimizedPlan()
    assert "planInputPartitions" not in calls
    for path in (lake.folder / "db" / "t" / "data").iterdir():
        path.touch()
    assert [tuple(row) for row in planned.collect()] == RIGHT
    assert calls["planInputPartitions"] == 1


def test_an_option_of_streams_is_refused_for_checked_files_too(lake: Any, table: tamis.Table) -> None:
    assert len(lake.rows("SELECT * FROM lake.db.t")) == 30  # so that all files are checked
    with pytest.raises(PySparkException, match="maxFilesPerTrigger belongs to"):
        lake.spark.read.option("maxFilesPerTrigger", "1").table(f"{lake.name}.db.t").collect()


def test_no_files_need_no_check(lake: Any, table: tamis.Table, calls: Counter[str]) -> None:
    lake.sql("CREATE TABLE lake.db.empty (n INT) USING tamis")
    assert lake.rows("SELECT n FROM lake.db.empty") == []
    assert not calls["planInputPartitions"]


def test_many_files_are_checked_by_python(
    lake: Any, table: tamis.Table, calls: Counter[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scan_answers, "_MOST_FILES", 1)
    assert lake.rows(QUERY.replace("10", "9")) == [(sum(range(9, 30)), 21)]
    assert calls["planInputPartitions"] == 1


def reader_zones(lake: Any, text: str) -> list[str]:
    """The time zone that Spark's reader is given, for each scan of a query."""
    plan = lake.sql(text)._jdf.queryExecution().executedPlan()
    leaves, owner = plan.collectLeaves(), bridge_of(lake.spark)
    readers = [owner.call(leaves.apply(i), "readerFactory") for i in range(leaves.size())]
    return [reader.productElement(1).value().value().get("spark.sql.session.timeZone") for reader in readers]


def test_each_query_reads_under_its_own_settings(lake: Any, table: tamis.Table) -> None:
    """Scans of one query share what Spark's reader takes from the session, and those of the next get it anew."""
    text = "SELECT n FROM lake.db.t UNION ALL SELECT length(s) FROM lake.db.t"
    conf = lake.spark.conf
    before = conf.get("spark.sql.session.timeZone")
    conf.set("spark.sql.adaptive.enabled", "false")
    try:
        found = []
        for zone in ("Asia/Tokyo", "UTC"):
            conf.set("spark.sql.session.timeZone", zone)
            found.append(reader_zones(lake, text))
    finally:
        conf.set("spark.sql.session.timeZone", before)
        conf.unset("spark.sql.adaptive.enabled")
    assert found == [["Asia/Tokyo"] * 2, ["UTC"] * 2]
