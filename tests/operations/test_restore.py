"""Restore: the rows of a version come back, under the schema of now, and nothing is copied."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

import tamis
from tamis.engine import operations
from tamis.errors import Conflict, InvalidInput, NotFound
from tamis.storage.commit_log import Operation, Proposal, commit
from tests.operations.making import delete_rows, filled, held, parts, rows, table


def test_every_version_comes_back() -> None:
    of = filled(3)
    of.overwrite(rows(500, 9), "ts < 60", allow_outside=True)
    of.compact()
    delete_rows(of, 3)
    delete_rows(of, 2)
    of.append(rows(7_000, 10))
    of.overwrite(rows(0, 4))
    expected = {v: held(of, version=v) for v in range(of.refresh().version + 1)}
    for version in (2, 7, 0, 4, 9, 3, 6, 5, 8, 1):
        files = {e.path for e in of.store.list("data")}
        done = of.restore(version)
        assert held(of) == expected[version], version
        assert {e.path for e in of.store.list("data")} == files, "no file is copied"
        assert done.rows_inserted - done.rows_deleted == len(expected[version]) - len(
            held(of, version=done.version - 1)
        )
        assert of.verify().ok


def test_again_is_nothing() -> None:
    of = filled(3)
    assert of.restore(3).version == 3
    of.restore(1)
    assert of.refresh().version == 4
    assert of.restore(1).version == 4
    assert of.history(1)["parameters"][0].as_py() == '{"version": 1}'


def test_parts_that_are_live_stay() -> None:
    of = filled(3)
    before = {p["part_id"]: p["segment_id"] for p in parts(of)}
    of.append(rows(900, 5))
    done = of.restore(3)
    assert {p["part_id"]: p["segment_id"] for p in parts(of)} == before
    assert (done.parts_added, done.parts_removed) == (0, 1)


def test_restored_rows_can_be_changed_again() -> None:
    """Their parts have new ids: what is removed now is not confused with what was removed then."""
    of = table()
    of.append(rows(0, 50))
    of.append(rows(50, 50))
    first = parts(of)[0]["part_id"]
    commit(of.store, Proposal(Operation("delete"), of.refresh().version, remove_parts=[first]))
    of.restore(2)
    assert len(held(of)) == 100
    again = next(p["part_id"] for p in parts(of) if p["path"].endswith(f"{first}.parquet"))
    assert again != first
    commit(of.store, Proposal(Operation("delete"), of.refresh().version, remove_parts=[again]))
    assert len(held(of)) == 50
    assert held(of, version=2) == held(of, version=4)


def test_statistics_of_json_paths_come_back_too() -> None:
    of = tamis.create("memory://restore-paths", pa.schema([("id", pa.int64()), ("j", pa.string())]))
    for first in (0, 10, 20):
        of.append(pa.table({"id": range(first, first + 10), "j": [f'{{"u": {i}}}' for i in range(first, first + 10)]}))
    of.delete("id = 15")

    def skipped() -> int:
        return int(of.explain("CAST(get_json_object(j, '$.u') AS INT) = 17").parts["skipped_stats"])

    before, version = skipped(), of.version
    assert before == 2
    of.overwrite(pa.table({"id": [1], "j": ["{}"]}))
    of.restore(version)
    assert skipped() == before
    assert of.scan("CAST(get_json_object(j, '$.u') AS INT) = 17").count() == 1
    assert of.scan().count() == 29


def test_a_dropped_column_is_named() -> None:
    of = filled(2)
    head = of.snapshot.head
    assert head.schema is not None
    fewer = replace(head.schema, fields=head.schema.fields[:2], schema_id=1)
    commit(of.store, Proposal(Operation("schema"), of.version, head=replace(head, schemas=(*head.schemas, fewer))))
    of = tamis.open(of.path)
    of.overwrite(rows(0, 3).drop_columns(["name"]))
    with pytest.raises(InvalidInput, match="'name'") as caught:
        of.restore(2)
    assert (caught.value.code, caught.value.name) == ("COLUMN_DROPPED", "name")
    of.restore(2, allow_dropped_columns=True)
    assert len(held(of)) == 100
    assert of.scan().to_arrow().column_names == ["ts", "user"]


def test_what_comes_between_is_taken_back_too(monkeypatch: pytest.MonkeyPatch) -> None:
    of = filled(2)
    other = tamis.open(of.path)
    met: list[Any] = []
    live = operations.restore.__globals__["live_rows"]

    def meddle(found: object) -> int:
        if not met:
            met.append(other.append(rows(5_000, 7)))
        return live(found)

    monkeypatch.setitem(operations.restore.__globals__, "live_rows", meddle)
    of.restore(1)
    assert met
    assert held(of) == held(of, version=1)


def test_a_version_that_is_not_there() -> None:
    with pytest.raises(NotFound) as caught:
        filled(1).restore(7)
    assert caught.value.code == "VERSION_NOT_FOUND"


def test_a_table_that_was_replaced_meanwhile_gets_no_rows_of_the_old_one(monkeypatch: pytest.MonkeyPatch) -> None:
    of = filled(3)
    inner = operations.restore.__globals__["_check_kept"]

    def replaced(store: Any, then: Any, now: Any) -> None:
        inner(store, then, now)
        if now.head.table_id != of.snapshot.head.table_id:
            return
        for entry in list(store.list("")):
            store.delete(entry.path)
        fresh = tamis.create(store.url, schema=of.schema)
        for _ in range(5):
            fresh.append(rows(0, 1))

    monkeypatch.setitem(operations.restore.__globals__, "_check_kept", replaced)
    with pytest.raises(Conflict) as caught:
        of.restore(1)
    assert caught.value.code == "CONFLICT_REPLACED"
