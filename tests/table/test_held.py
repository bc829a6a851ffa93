"""A held table follows, a scan does not, a pinned table stays."""

import dataclasses
import shutil
from collections.abc import Callable
from datetime import datetime
from pathlib import Path

import pyarrow as pa
import pytest

import tamis
from tamis.core.types import LONG, STRING, Field
from tamis.errors import SchemaFenced
from tamis.storage.commit_log import Operation, Proposal, commit, next_schema

Fields = tuple[Field, ...]
ROWS = pa.table({"id": pa.array([1, 2], pa.int64()), "name": ["a", "b"]})


@pytest.fixture
def table(tmp_path: Path) -> tamis.Table:
    made = tamis.create(tmp_path)
    made.append(ROWS)
    return made


def migrate(table: tamis.Table, change: Callable[[Fields], Fields]) -> None:
    """Commits another schema, as ALTER TABLE does."""
    latest = tamis.open(table.path)
    head = latest.snapshot.head
    assert head.schema is not None
    fields = change(head.schema.fields)
    head = next_schema(head, dataclasses.replace(head.schema, fields=fields))
    commit(
        latest.store,
        Proposal(
            operation=Operation("schema"),
            read_version=latest.version,
            reads=None,
            blind_append=False,
            head=head,
            operation_id=tamis.world.new_id(),
        ),
    )


def test_a_held_table_sees_later_commits_and_a_scan_does_not(table: tamis.Table) -> None:
    held = tamis.open(table.path)
    scan = held.scan()
    table.append(ROWS)
    assert (scan.count(), scan.version) == (2, 1)
    assert (held.scan().count(), held.version) == (4, 2)


def test_a_pinned_table_stays(table: tamis.Table) -> None:
    by_version, by_time = tamis.open(table.path, version=1), tamis.open(table.path, timestamp=stamp(table))
    table.append(ROWS)
    for pinned in (by_version, by_time, by_version.refresh()):
        assert (pinned.version, pinned.scan().count()) == (1, 2)
    assert table.scan(version=1).count() == 2
    assert table.scan(version=0).count() == 0


def stamp(table: tamis.Table) -> datetime:
    return table.history()["timestamp"][0].as_py()


def test_an_added_column_does_not_fence_and_is_not_seen_before_refresh(table: tamis.Table) -> None:
    held = tamis.open(table.path)
    migrate(table, lambda fields: (*fields, Field("more", LONG, id=9)))
    assert held.scan().to_arrow().column_names == ["id", "name"]
    assert held.refresh().scan().to_arrow().to_pylist() == [
        {"id": 1, "name": "a", "more": None},
        {"id": 2, "name": "b", "more": None},
    ]
    assert held.schema_id == 1


def test_a_rename_does_not_fence_and_the_held_name_goes_on(table: tamis.Table) -> None:
    held = tamis.open(table.path)
    migrate(table, lambda fields: (fields[0], dataclasses.replace(fields[1], name="called")))
    assert held.scan("name = 'b'").to_arrow().to_pylist() == [{"id": 2, "name": "b"}]
    assert held.refresh().scan("called = 'b'").to_arrow().to_pylist() == [{"id": 2, "called": "b"}]


@pytest.mark.parametrize(
    "change",
    [
        lambda fields: fields[:1],
        lambda fields: (fields[0], dataclasses.replace(fields[1], id=9)),
        lambda fields: (dataclasses.replace(fields[0], type=STRING, id=9), fields[1]),
    ],
)
def test_a_column_that_went_fences_until_refresh(table: tamis.Table, change: Callable[[Fields], Fields]) -> None:
    held = tamis.open(table.path)
    migrate(table, change)
    for use in (held.scan().to_arrow, held.explain, lambda: next(iter(held.scan()))):
        with pytest.raises(SchemaFenced) as caught:
            use()
        assert caught.value.name
        assert "refresh()" in caught.value.remedy
    held.append(ROWS)  # its rows are rows of the schema that it holds: what has gone is dropped from them
    held.refresh()
    assert held.scan().count() == 4
    assert tamis.open(table.path, version=1).scan().to_arrow().to_pylist() == ROWS.to_pylist()


def test_another_table_at_the_path_is_not_read_as_this_one(tmp_path: Path) -> None:
    table = tamis.create(tmp_path / "t")
    table.append(ROWS)
    shutil.rmtree(tmp_path / "t")
    tamis.create(tmp_path / "t").append(ROWS.slice(1))
    uses = (
        table.scan,
        table.explain,
        lambda: table.scan(version=1),
        lambda: table.append(ROWS),
        lambda: table.vacuum("0s", dry_run=False, below_retention=True),
    )
    for use in uses:
        with pytest.raises(SchemaFenced) as caught:
            use()
        assert (caught.value.code, caught.value.name) == ("TABLE_REPLACED", table.path)
    assert tamis.open(tmp_path / "t").version == 1, "nothing was committed"
    assert table.refresh().scan().to_arrow().to_pylist() == [{"id": 2, "name": "b"}]
    assert tamis.open(tmp_path / "t").scan().count() == 1
