"""Verify finds what is planted, names the object, and is silent about a table that is well."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import tamis
from tamis.core.stats.json_paths.path_rows import Paths, stacked_paths
from tamis.engine.part_writer import trimmed_statistics
from tamis.engine.secondary_index import index_build
from tamis.storage.commit_log import Operation, Proposal, commit
from tamis.storage.files import PartRef
from tamis.storage.object_store.checked_json import seal_json
from tests.operations.making import filled, parts


def well() -> tamis.Table:
    of = filled(20, ("user",))
    of.compact("ts < 300")
    return of


def first_file(of: tamis.Table) -> str:
    return parts(of)[0]["path"]


def lose(of: tamis.Table, path: str) -> None:
    of.store.delete(path)


def turn(of: tamis.Table, path: str, at: int) -> None:
    data = bytearray(of.store.get(path))
    data[at] ^= 1
    of.store.put(path, bytes(data))


def plant(of: tamis.Table, column: str, value: object) -> None:
    """The table as it is, one manifest column of one part changed."""
    manifest = of.refresh().snapshot.parts(None, set(range(20))).drop_columns(["segment", "part"]).slice(0, 1)
    manifest = manifest.select([n for n in manifest.column_names if n not in {"deleted", "deletion"}])
    field = manifest.schema.field(column)
    wrong = manifest.set_column(manifest.schema.get_field_index(column), field, pa.array([value], field.type))
    commit(of.store, Proposal(Operation("plant"), of.version, add=[wrong], replace_all=True))


def plant_set(of: tamis.Table, kind: str) -> None:
    """One part with a value set that lacks a value, as a collector would have stored it that gave up."""
    manifest = of.refresh().snapshot.parts(None, set(range(20))).drop_columns(["segment", "part"]).slice(0, 1)
    manifest = manifest.select(
        [n for n in manifest.column_names if n not in {"deleted", "deletion"} and not n.startswith("2|long|set")]
    )
    column = pa.array([[manifest["2|long|lo"][0].as_py()]], pa.list_(pa.int64()))
    wrong = manifest.append_column(f"2|long|{kind}", column)
    commit(of.store, Proposal(Operation("plant"), of.version, add=[wrong], replace_all=True))


def plant_path(of: tamis.Table) -> None:
    """A part whose JSON path has bounds that leave out a value."""
    documents = pa.table({"body": ['{"a": 1}', '{"a": 7}'] * 40})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(trimmed_statistics, "stacked_paths", narrowed_rows)
        of.append(documents, merge_schema=True)


def narrowed_rows(columns: dict[int, Paths]) -> pa.Table | None:
    return stacked_paths({at: narrowed_paths(paths) for at, paths in columns.items()})


def narrowed_paths(paths: Paths) -> Paths:
    return {path: replace(found, long=(1, 6)) if path == "$.a" else found for path, found in paths.items()}


def other_rollup(of: tamis.Table) -> None:
    path = next(e.path for e in of.store.list("_tamis/rollup") if e.path.endswith(".json"))
    own = json.loads(of.store.get(path))["rollup"]
    twin = filled(20, ("user",))
    other = json.loads(twin.store.get(path))["rollup"]
    of.store.put(path, seal_json("rollup", {**own, "changes": other["changes"], "tables": other["tables"]}))


DAMAGE: dict[str, tuple[Callable[[tamis.Table], object], str]] = {
    "a file is gone": (lambda of: lose(of, first_file(of)), "MISSING_OBJECT"),
    "a file is cut": (lambda of: of.store.put(first_file(of), of.store.get(first_file(of))[:-9]), "WRONG_SIZE"),
    "a bit of a file": (lambda of: turn(of, first_file(of), 50), "BAD_CHECKSUM"),
    "a commit is gone": (lambda of: lose(of, f"_tamis/log/{5:020}.json"), "MISSING_COMMIT"),
    "a bit of a commit": (lambda of: turn(of, f"_tamis/log/{5:020}.json", 200), "BAD_CHECKSUM"),
    "a rollup tells another story": (other_rollup, "ROLLUP_DIFFERS"),
    "too many rows": (lambda of: plant(of, "rows", 51), "PART_CORRUPT"),
    "bounds too narrow": (lambda of: plant(of, "1|long|hi", 310), "STATISTICS_LIE"),
    "a value set that lacks a value": (lambda of: plant_set(of, "set"), "STATISTICS_LIE"),
    "an incomplete value set of an earlier release": (lambda of: plant_set(of, "values"), "STATISTICS_OBSOLETE"),
    "bounds of a path too narrow": (plant_path, "STATISTICS_LIE"),
    "a NULL that nobody counted": (lambda of: plant(of, "2|nulls", 1), "STATISTICS_LIE"),
}


def test_a_table_that_is_well() -> None:
    of = well()
    found = of.verify()
    assert found.ok, found.problems.to_pylist()
    assert (found.commits, found.parts) == (22, len(parts(of)))
    assert tamis.create("memory://verify-empty").verify().ok


@pytest.mark.push_cases(4)
@pytest.mark.parametrize("name", DAMAGE)
def test_damage_is_found_and_named(name: str) -> None:
    of = well()
    do, code = DAMAGE[name]
    do(of)
    found = of.verify()
    assert not found.ok
    assert code in found.problems["code"].to_pylist(), found.problems.to_pylist()
    assert all(row["object"] for row in found.problems.to_pylist())


LIES: dict[str, Callable[[pa.RecordBatch], pa.RecordBatch]] = {
    "two rows exchanged": lambda batch: pa.RecordBatch.from_arrays(
        [*batch.columns[:-1], batch.column(-1)[::-1]], schema=batch.schema
    ),
    "a value that the row has not": lambda batch: batch.set_column(
        0, batch.schema.field(0), pc.add(batch.column(0), 1)
    ),
    "a row twice, another never": lambda batch: batch.take(pa.array([0, *range(len(batch) - 1)])),
    "NULL for a value": lambda batch: batch.set_column(
        0, batch.schema.field(0), pc.if_else(pc.equal(batch.column(2), 3), None, batch.column(0))
    ),
}


@pytest.mark.push_cases(2)
@pytest.mark.parametrize("name", LIES)
def test_an_index_that_does_not_say_what_the_rows_say(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Entries that were built wrong stand in files whose checksums are right."""
    true = index_build.entries_of

    def lies(
        chosen: list[tuple[int, PartRef]], spec: index_build.BuildSpec, done: Any = None
    ) -> Iterator[pa.RecordBatch]:
        for ordinal, ref in chosen:
            batches = true([(ordinal, ref)], spec, done)
            yield from batches if ordinal != 1 else (LIES[name](batch) for batch in batches)

    of = well()
    with monkeypatch.context() as patched:
        patched.setattr(index_build, "entries_of", lies)
        of.create_index("by_ts", ["ts"])
    found = of.verify()
    assert found.problems["code"].to_pylist() == ["INDEX_LIES"], found.problems.to_pylist()
    assert found.problems["object"].to_pylist()[0].startswith("data/")
    assert of.verify(data=False).ok
    of.drop_index("by_ts")
    of.create_index("by_ts", ["ts"])
    of.delete("ts % 7 = 1")
    assert of.verify().ok


@pytest.mark.parametrize(
    "kind",
    [
        pa.float32(),
        pa.float64(),
        pa.string(),
        pa.binary(),
        pa.decimal128(9, 2),
        pa.date32(),
        pa.bool_(),
        pa.timestamp("us", "UTC"),
        pa.int8(),
    ],
    ids=str,
)
def test_an_index_of_any_type_that_is_well(kind: pa.DataType) -> None:
    plain: dict[pa.DataType, list[Any]] = {
        pa.string(): ["", "a", None, "é"],
        pa.binary(): [b"", b"\0", None, b"z"],
        pa.bool_(): [True, False, None, True],
        pa.decimal128(9, 2): [Decimal("0.01"), Decimal("-7.5"), None, Decimal(0)],
        pa.date32(): [dt.date(2020, 1, 1), dt.date(1969, 1, 1), None, dt.date(1970, 1, 1)],
    }
    values = plain.get(kind) or ([0.0, -0.0, None, float("nan")] if pa.types.is_floating(kind) else [0, 1, None, 100])
    of = tamis.create(f"memory://verify-{kind}", pa.schema([("v", kind)]))
    of.create_index("by_v", ["v"])
    for turn in range(2):
        of.append(pa.table([pa.array(values[turn:] + values, kind)], names=["v"]))
    assert of.verify().ok


def test_damage_to_the_files_of_an_index() -> None:
    of = well()
    of.create_index("by_ts", ["ts"])
    path = next(entry.path for entry in of.store.list("index"))
    turn(of, path, 50)
    assert [(row["code"], row["object"]) for row in of.verify().problems.to_pylist()] == [("BAD_CHECKSUM", path)]
    of.store.put(path, of.store.get(path)[:-9])
    assert [(row["code"], row["object"]) for row in of.verify().problems.to_pylist()] == [("WRONG_SIZE", path)]


def test_a_clock_that_went_back() -> None:
    of = filled(2)
    path = f"_tamis/log/{2:020}.json"
    commit_entry = json.loads(of.store.get(path))["commit"]
    of.store.put(path, seal_json("commit", {**commit_entry, "timestamp_micros": 5}))
    assert of.verify().problems["code"].to_pylist() == ["TIME_WENT_BACK"]


def test_without_data_no_part_is_read() -> None:
    of = well()
    turn(of, first_file(of), 50)
    assert of.verify(data=False).ok
    assert replace(of.verify(data=False), parts=0) == of.verify(data=False)
