"""Damage to any object of an index costs speed for the segments that it covers; repair_index finds it and rebuilds them."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from typer.testing import CliRunner

import tamis
from tamis.cli.app import program
from tamis.engine.operations.layout import index_operations
from tamis.engine.operations.layout.index_commits import tidy_indexes
from tamis.engine.operations.upkeep.verify import verify
from tamis.engine.scan import Report
from tamis.engine.secondary_index import index_damage, index_lookup, index_segments, index_upkeep
from tamis.engine.secondary_index.index_segments import live_entries
from tamis.errors import StoreUnavailable
from tamis.storage.files.parquet import footer
from tamis.storage.object_store import metadata_files
from tamis.storage.object_store.object_cache import CACHE
from tests.secondary_index.tables import empty_table, failing, ids, info, key_in, missing, rows_of, same, table_a, used

LOADS = 4
LONG_SCHEMA = pa.schema([("u", pa.int64()), ("v", pa.int64())])
WAYS = ("cut", "flipped", "gone", "foreign")
SIZE_SHOWS = {"cut", "gone"}
"""Damage that a listing shows; a foreign object may have the size that is expected."""


@contextmanager
def all_as_files(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Keep the list of index parts, and of what they cover, in files of their own, as large tables do."""
    with monkeypatch.context() as patched:
        patched.setattr(index_segments, "INLINE_COVERS", 0)
        patched.setattr(
            index_segments, "store_rows", lambda *a, **more: metadata_files.store_rows(*a, **{**more, "limit": 0})
        )
        yield


def loaded(path: Path, loads: Iterable[int] = range(LOADS)) -> tamis.Table:
    """A table whose loads each have an index segment of their own."""
    table = empty_table(path)
    table.create_index("ik", "k")
    for load in loads:
        table.append(rows_of(load))
    return table


def objects_of(path: Path, at: int) -> list[str]:
    """A stored object of the index of each kind."""
    held = [
        str(at.relative_to(path)) for at in sorted([*path.glob("index/*"), *path.glob("_tamis/manifest/*.index.*")])
    ]
    kinds = [[name for name in held if part in name] for part in ("index/", ".index.parts.", ".index.covers.")]
    return [names[at] for names in kinds]


def harm(path: Path, other: Path, name: str, way: str) -> None:
    """Damage one object; ``other`` is the folder of another table with the same index."""
    at, whole = path / name, (path / name).read_bytes()
    if way == "gone":
        at.unlink()
    elif way == "cut":
        at.write_bytes(whole[: len(whole) * 2 // 3])
    elif way == "flipped":
        middle = len(whole) // 2
        at.write_bytes(whole[:middle] + bytes([whole[middle] ^ 0x10]) + whole[middle + 1 :])
    else:
        kind = name.split(".", 1)[1]
        at.write_bytes(min(other.glob(f"{Path(name).parent}/*.{kind}")).read_bytes())


def forget() -> None:
    """Forget what this process has read, as a process that starts after the damage."""
    CACHE.clear()
    index_lookup._manifests.clear()
    footer._cache.clear()


def asked(table: tamis.Table, use: str = "lookup") -> Report:
    keys = ", ".join(str(key_in(load)) for load in range(LOADS))
    return same(tamis.open(table.path), f"k IN ({keys})", options={"tamis.index.use": use})


@pytest.mark.slow
@pytest.mark.push_cases(2)
@pytest.mark.parametrize("way", WAYS)
def test_damage_to_any_object_of_an_index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str) -> None:
    path, copy = tmp_path / "t", tmp_path / "whole"
    with all_as_files(monkeypatch):
        loaded(path)
        loaded(tmp_path / "o", [4])
    shutil.copytree(path, copy)
    for name in objects_of(path, WAYS.index(way)):
        shutil.rmtree(path)
        shutil.copytree(copy, path)
        harm(path, tmp_path / "o", name, way)
        forget()
        at = tamis.open(path)
        for use in ("lookup", "plan", "auto"):
            report = asked(at, use)
            assert report.rows.matched == LOADS
            assert "cannot be read" in report.index_reason, (name, use)
            assert used(report)["ik"][0] == (LOADS if use == "plan" and name.startswith("index/") else LOADS - 1)
        problems = verify(at.store)
        assert [Path(row).name for row in problems.problems["object"].to_pylist()] == [Path(name).name], name
        assert "repair_index" in problems.problems["problem"][0].as_py()
        if way in SIZE_SHOWS or not name.startswith("index/"):
            assert len(missing(at)) == 1, name
            assert "damaged" in next(iter(info(at).missing.values()))
        at.repair_index()
        history = at.history().to_pylist()[:2]
        assert Path(name).name in str(history), "the history names what was damaged"
        assert missing(at) == []
        assert verify(at.store).ok
        report = asked(at)
        assert (used(report), "cannot be read" in report.index_reason) == ({"ik": (LOADS, 0)}, False)
        version = at.version
        at.repair_index()
        assert at.version == version, "nothing is left to repair"


def test_a_repair_after_all_index_parts_are_gone(tmp_path: Path) -> None:
    table = loaded(tmp_path / "t")
    for part in (tmp_path / "t" / "index").iterdir():
        part.unlink()
    forget()
    report = asked(table)
    assert (report.rows.matched, used(report)) == (LOADS, {})
    assert "ik cannot be read for 4 segments" in report.index_reason
    assert missing(table) == [0, 1, 2, 3]
    assert verify(table.store, data=False).problems["code"].to_pylist() == ["MISSING_OBJECT"] * LOADS
    table.repair_index("ik", [ids(table)[1]])
    assert missing(table) == [0, 2, 3]
    assert used(asked(table)) == {"ik": (1, 3)}
    CliRunner().invoke(program, ["index", "repair", str(tmp_path / "t")], catch_exceptions=False)
    assert missing(tamis.open(table.path)) == []
    assert used(asked(table)) == {"ik": (LOADS, 0)}
    assert verify(table.store).ok


def test_one_repair_forgets_an_index_segment_of_several_loads(tmp_path: Path) -> None:
    """The damaged index segment covers all loads; a repair of one of them says what the others lack."""
    table = table_a(tmp_path / "t", ("ik", "k"), segments=LOADS)
    next((tmp_path / "t" / "index").iterdir()).unlink()
    table.repair_index("ik", [ids(table)[2]])
    assert missing(table) == [0, 1, 3]
    assert all("damaged" in why for why in info(table).missing.values())
    table.repair_index()
    assert (missing(table), verify(table.store).ok) == ([], True)


def test_vacuum_goes_on_past_a_damaged_list_of_index_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with all_as_files(monkeypatch):
        table = loaded(tmp_path / "t")
    for at in (tmp_path / "t").glob("_tamis/manifest/*.index.parts.*"):
        at.write_bytes(b"")
    forget()
    table.vacuum(timedelta(0), dry_run=True, below_retention=True)
    table.repair_index()
    forget()
    table.vacuum(timedelta(0), dry_run=False, below_retention=True)
    assert used(asked(table)) == {"ik": (LOADS, 0)}


def test_a_store_that_does_not_answer_is_no_damage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = loaded(tmp_path / "t")
    version = table.refresh().version

    def away(*_: object) -> None:
        raise StoreUnavailable("The store does not answer.")

    with monkeypatch.context() as patched:
        patched.setattr(index_damage, "checksum_problem", away)
        with pytest.raises(StoreUnavailable, match="does not answer"):
            table.repair_index()
    assert (table.refresh().version, missing(table)) == (version, [])


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kind", [0, 1, 2])
@pytest.mark.push_cases(2)
def test_a_merge_goes_on_past_a_damaged_index_segment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str, kind: int
) -> None:
    """One damaged index segment must not keep all others apart for ever: lookups would read ever more of them."""
    path = tmp_path / "t"
    with all_as_files(monkeypatch):
        table = loaded(path)
        table.create_index("whole", "g")
        loaded(tmp_path / "o", [4])
    harm(path, tmp_path / "o", objects_of(path, 1)[kind], way)
    forget()
    monkeypatch.setattr(index_upkeep, "MERGE_FROM", 3)
    table = tamis.open(path)
    damaged_index = table.snapshot.head.indexes[0].index_id
    before = [e.segment_id for e in live_entries(table.snapshot) if e.index_id == damaged_index]
    tidy_indexes(table.store, table.snapshot)
    table = tamis.open(path)
    after = [e.segment_id for e in live_entries(table.snapshot) if e.index_id == damaged_index]
    assert (len(after), len(set(after) - set(before))) == (2, 1), "the damaged one, and what the others became"
    report = asked(table)
    assert report.rows.matched == LOADS
    assert used(report)["ik"][0] == LOADS - 1
    table.repair_index()
    assert (missing(table), verify(table.store).ok, used(asked(table))) == ([], True, {"ik": (LOADS, 0)})


def test_a_merge_that_fails_without_damage_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = loaded(tmp_path / "t")
    monkeypatch.setattr(index_upkeep, "MERGE_FROM", 3)

    def fails(_: object) -> list[pa.Table]:
        raise OSError("no space left on the device")

    assert tidy_indexes(table.store, table.refresh().snapshot, fails).version == table.version
    assert used(asked(table)) == {"ik": (LOADS, 0)}


@pytest.mark.push_cases(2)
@pytest.mark.parametrize("way", WAYS)
def test_segments_are_dropped_past_a_damaged_list_of_covered_parts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    """What the damaged index segment covers is not known: it goes as well, so that it never answers for what was dropped."""
    path = tmp_path / "t"
    with all_as_files(monkeypatch):
        table = loaded(path)
        loaded(tmp_path / "o", [4])
    name = objects_of(path, 1)[2]
    whole = (path / name).read_bytes()
    harm(path, tmp_path / "o", name, way)
    forget()
    lost = missing(table.refresh())
    assert len(lost) == 1
    table.drop_index_segments("ik", [ids(table)[lost[0]]])
    (path / name).write_bytes(whole)
    forget()
    assert missing(tamis.open(path)) == lost
    assert used(asked(table)) == {"ik": (LOADS - 1, 1)}
    table.repair_index()
    assert (missing(table), used(asked(table))) == ([], {"ik": (LOADS, 0)})


def test_loads_catch_up_past_a_damaged_record_of_a_failed_build(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "t"
    with all_as_files(monkeypatch):
        table = loaded(path, [0])
        with failing():
            for load in (1, 2):
                table.append(rows_of(load))
        broken = min(path.glob("_tamis/manifest/*.index.covers.*"), key=lambda at: -at.stat().st_mtime_ns)
        broken.write_bytes(b"")
        forget()
        table.append(rows_of(3))
    left = missing(table.refresh())
    assert len(left) == 1, "of the two failures, the readable one is settled"
    table.repair_index()
    assert (missing(table), used(asked(table))) == ([], {"ik": (LOADS, 0)})


@pytest.mark.parametrize("use", ["lookup", "auto"])
def test_index_segments_that_share_a_load_are_lost_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, use: str
) -> None:
    """A build in steps gives one load several index segments. One that cannot be read takes the load with it, and nothing else."""
    table = tamis.create(tmp_path / "t", LONG_SCHEMA, properties={"tamis.write.part_bytes": "100KB"})
    noise = np.random.default_rng(1)
    for _ in range(2):
        columns = {"u": noise.integers(0, 5_000, 200_000), "v": noise.integers(0, 2**60, 200_000)}
        table.append(pa.table(columns, schema=LONG_SCHEMA))
    parts = table.refresh().snapshot.parts(None)
    assert len(parts) > 4
    wanted = "u IN (3, 77, 450)"
    rows = table.scan(wanted, options={"tamis.index.use": "off", "tamis.stats.filter": "off"}).count()
    monkeypatch.setattr(index_operations, "STEP_ROWS", parts["rows"][0].as_py())
    with all_as_files(monkeypatch):
        table.refresh().create_index("i", ["u"])
    for path in ("index/*", "_tamis/manifest/*.index.parts.*"):
        whole = shutil.copytree(tmp_path / "t", tmp_path / path.replace("/", "-"))
        min(whole.glob(path)).unlink()
        forget()
        scan = tamis.open(whole).scan(wanted, options={"tamis.index.use": use})
        assert scan.to_arrow().num_rows == rows > 0
        assert "could not be used" not in (scan.report.index_reason or ""), scan.report.index_reason
        assert tamis.open(whole).repair_index() is not None
        forget()
        assert tamis.open(whole).scan(wanted, options={"tamis.index.use": use}).count() == rows
