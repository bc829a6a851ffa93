"""Followed Iceberg tables whose older files have other columns than when they were taken.

A dropped column comes back under its id, or a name in files without field ids comes to mean another column. The table
then has the rows that PyIceberg has, by filters as well as whole.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.table.update import AssertTableUUID, RemoveSnapshotsUpdate, SetCurrentSchemaUpdate
from pyiceberg.types import StringType

import tamis
from tamis.bridges.sources.iceberg_columns import BARE_NAMES, NAME_MAPPING, KnownColumns
from tamis.errors import CorruptData, InvalidInput
from tamis.storage.commit_log import Operation, Proposal, commit
from tests.bridges import iceberg_tables as ice

MAPPING = "schema.name-mapping.default"


class Followed:
    """An Iceberg table in a catalog, and the table that follows it."""

    def __init__(self, folder: Path, source: Any) -> None:
        self.folder, self.source = folder, source
        self.catalog = ice.catalog(folder)
        self._properties = {"catalog.type": "sql", "catalog.uri": f"sqlite:///{folder}/catalog.db"}
        self.adopt()

    def adopt(self, name: str = "t", *, follow: bool = True) -> tamis.Table:
        options = {"catalog": "local", "catalog.warehouse": f"file://{self.folder}/warehouse", **self._properties}
        found = tamis.adopt("n.t", self.folder / name, follow=follow, source_options=options)
        assert isinstance(found, tamis.Table)
        return found

    @property
    def table(self) -> tamis.Table:
        return tamis.open(self.folder / "t")

    def sync(self, **options: Any) -> int:
        return self.table.sync(source_options=self._properties, **options).commits

    def change_schema(self, change: Callable[[Any], object]) -> None:
        self.source.refresh()
        with self.source.update_schema(allow_incompatible_changes=True) as update:
            change(update)
        self.source.refresh()

    def set_schema(self, schema_id: int) -> None:
        """Make an older schema the current one, as undoing a drop does."""
        self.source.refresh()
        same = (AssertTableUUID(uuid=self.source.metadata.table_uuid),)
        self.catalog.commit_table(self.source, same, (SetCurrentSchemaUpdate(schema_id=schema_id),))
        self.source.refresh()

    def append(self, row: dict[str, Any]) -> None:
        self.source.refresh()
        self.source.append(pa.Table.from_pylist([row], self.source.schema().as_arrow()))
        self.source.refresh()

    def map_names(self, mapping: dict[int, list[str]]) -> None:
        with self.source.transaction() as change:
            change.set_properties({MAPPING: mapping_text(mapping)})
        self.source.refresh()

    def check(self, *filters: str) -> list[dict[str, Any]]:
        """Compare all rows, and those of the filters, with PyIceberg and with a table that is adopted anew."""
        expected = ordered(self.source.scan().to_arrow())
        assert ordered(self.table.scan().to_arrow()) == expected
        assert ordered(self.adopt("fresh", follow=False).scan().to_arrow()) == expected
        names = self.source.schema().column_names
        for text in (*filters, *(f"`{name}` IS NULL" for name in names if "." not in name)):
            fresh = tamis.open(self.folder / "fresh").scan(text).count()
            assert self.table.scan(text).count() == fresh, text
        assert not len(self.table.verify().problems)
        return expected


def ordered(rows: pa.Table) -> list[dict[str, Any]]:
    return sorted((dict(sorted(row.items())) for row in rows.to_pylist()), key=lambda row: row["k"])


def made(folder: Path, data: pa.Table, partition: str | None = None) -> Any:
    source = ice.catalog(folder).create_table("n.t", data.schema)
    if partition is not None:
        with source.update_spec() as spec:
            spec.add_identity(partition)
    source.append(data)
    return source


DATA = pa.table({"k": [1, 2], "c": ["a", "b"]})


@pytest.mark.parametrize("before", [True, False], ids=["dropped before the adoption", "dropped after it"])
@pytest.mark.parametrize("appends", [True, False])
def test_a_dropped_column_comes_back(tmp_path: Path, before: bool, appends: bool) -> None:
    source = made(tmp_path, DATA)
    if before:
        with source.update_schema(allow_incompatible_changes=True) as update:
            update.delete_column("c")
    followed = Followed(tmp_path, source)
    if not before:
        followed.change_schema(lambda update: update.delete_column("c"))
        followed.append({"k": 5})
        assert followed.sync() >= 1
    version = followed.table.version
    followed.set_schema(0)
    if appends:
        followed.append({"k": 3, "c": "c"})
    assert followed.sync() == 1 + appends
    rows = followed.check("c = 'a'", "c > 'a'", "c IS NOT NULL")
    assert {row["c"] for row in rows} >= {"a", "b"}
    assert followed.table.scan(version=version).to_arrow().column_names == ["k"], "the past stays"
    assert followed.sync() == 0


def test_a_change_feed_shows_the_values_that_came_back(tmp_path: Path) -> None:
    followed = Followed(tmp_path, made(tmp_path, DATA))
    followed.append({"k": 3, "c": "c"})
    followed.append({"k": 4, "c": None})
    followed.change_schema(lambda update: update.delete_column("c"))
    followed.sync()  # takes the appends under the schema without the column
    version = followed.table.version
    followed.set_schema(0)
    followed.sync()
    changes = followed.table.changes(version).to_arrow().to_pylist()
    shown = [(row["k"], row["c"], row["_change_type"]) for row in changes]
    assert sorted(shown, key=str) == [(3, "c", "insert"), (3, None, "delete")]


def test_a_file_that_was_added_while_the_column_was_dropped_lacks_it(tmp_path: Path) -> None:
    followed = Followed(tmp_path, made(tmp_path, DATA))
    followed.append({"k": 3, "c": "c"})
    followed.change_schema(lambda update: update.delete_column("c"))
    followed.sync()  # takes the append under the schema without the column
    followed.set_schema(0)
    followed.sync()
    assert [row["c"] for row in followed.check("c = 'c'", "c = 'a'")] == ["a", "b", "c"]


def test_a_field_of_a_struct_comes_back(tmp_path: Path) -> None:
    kind = pa.struct([("u", pa.int64()), ("w", pa.string())])
    data = pa.table({"k": [1, 2], "s": pa.array([{"u": 1, "w": "x"}, None], kind)})
    followed = Followed(tmp_path, made(tmp_path, data))
    followed.change_schema(lambda update: update.delete_column(("s", "w")))
    followed.sync()
    followed.set_schema(0)
    followed.sync()
    followed.check("s.w = 'x'", "s.w IS NULL")


def test_a_partition_column_comes_back(tmp_path: Path) -> None:
    source = made(tmp_path, DATA, "c")
    with source.update_spec() as spec:
        spec.remove_field("c")
    followed = Followed(tmp_path, source)
    followed.change_schema(lambda update: update.delete_column("c"))
    followed.sync()
    followed.set_schema(0)
    followed.sync()
    followed.check("c = 'a'", "c IN ('b')")


def test_an_index_finds_the_values_that_came_back(tmp_path: Path) -> None:
    followed = Followed(tmp_path, made(tmp_path, DATA))
    followed.table.create_index("by_c", "c")
    followed.table.drop_index("by_c")
    followed.change_schema(lambda update: update.delete_column("c"))
    followed.sync()
    followed.set_schema(0)
    followed.sync()
    followed.table.create_index("by_c", "c")
    assert followed.table.scan("c = 'b'", ["k"]).to_arrow()["k"].to_pylist() == [2]
    followed.append({"k": 3, "c": "b"})
    followed.sync()
    assert sorted(followed.table.scan("c = 'b'", ["k"]).to_arrow()["k"].to_pylist()) == [2, 3]


def test_a_new_column_takes_no_file_again(tmp_path: Path) -> None:
    followed = Followed(tmp_path, made(tmp_path, DATA))
    parts = followed.table.snapshot.parts()["part_id"].to_pylist()
    followed.change_schema(lambda update: update.add_column("d", StringType()))
    followed.append({"k": 3, "c": "c", "d": "d"})
    followed.sync()
    followed.check("d IS NULL", "d = 'd'")
    assert set(parts) < set(followed.table.snapshot.parts()["part_id"].to_pylist())


def test_a_table_in_which_an_older_release_took_it_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    followed = Followed(tmp_path, made(tmp_path, DATA))
    followed.change_schema(lambda update: update.delete_column("c"))
    followed.append({"k": 3})
    followed.sync()
    followed.set_schema(0)
    with monkeypatch.context() as older:
        older.setattr(KnownColumns, "is_stale", lambda *_: False)
        followed.sync()
        followed.append({"k": 4, "c": "d"})
    assert followed.table.scan("c IS NULL").count() == 1, "its parts are of the schema before and of that without it"
    with pytest.raises(InvalidInput, match="SOURCE_LAYOUT") as caught:
        followed.sync()
    assert "sync(skip_history=True)" in caught.value.remedy
    assert followed.sync(skip_history=True) == 1
    followed.check("c = 'a'")
    assert followed.sync() == 0


# Files without field ids


def mapping_text(mapping: dict[int, list[str]]) -> str:
    return json.dumps([{"field-id": i, "names": names} for i, names in mapping.items()])


def bare_source(folder: Path, mapping: dict[int, list[str]] | None = None, column: str = "c") -> Any:
    """A table over a file without field ids, in which the column is ``c``; PyIceberg maps columns by their names."""
    source = ice.catalog(folder).create_table("n.t", pa.schema([("k", pa.int64()), (column, pa.string())]))
    place = folder / "warehouse" / "n" / "t" / "data" / "x.parquet"
    place.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(DATA.rename_columns(["k", column]), place)
    size = place.stat().st_size
    source.add_files([place.as_uri()])
    pq.write_table(DATA, place)
    assert place.stat().st_size == size, "the metadata says the size"
    if mapping is not None:
        with source.transaction() as change:
            change.set_properties({MAPPING: mapping_text(mapping)})
    return source


def bare(folder: Path, mapping: dict[int, list[str]] | None = None) -> Followed:
    return Followed(folder, bare_source(folder, mapping))


ABSENT = {1: ["k"]}
RIGHT = {1: ["k"], 2: ["c"]}
WRONG = {1: ["k"], 2: ["x"]}


@pytest.mark.parametrize("appends", [True, False])
@pytest.mark.parametrize(
    ("first", "then", "found"),
    [(ABSENT, RIGHT, ["a", "b"]), (WRONG, RIGHT, ["a", "b"]), (RIGHT, WRONG, []), (RIGHT, ABSENT, [])],
)
def test_a_name_mapping_is_corrected(
    tmp_path: Path, first: dict[int, list[str]], then: dict[int, list[str]], found: list[str], appends: bool
) -> None:
    followed = bare(tmp_path, first)
    followed.map_names(then)
    if appends:
        followed.append({"k": 3, "c": "c"})
    followed.sync()
    rows = {row["k"]: row["c"] for row in followed.table.scan().to_arrow().to_pylist()}
    assert rows == {1: found[0] if found else None, 2: found[1] if found else None} | ({3: "c"} if appends else {})
    fresh = followed.adopt("fresh", follow=False)
    for text in ("c = 'a'", "c IS NULL", "c IS NOT NULL"):
        assert followed.table.scan(text).count() == fresh.scan(text).count(), text
    assert followed.sync() == 0


@pytest.mark.parametrize("once", [True, False], ids=["in one synchronization", "in several"])
@pytest.mark.parametrize("how", ["renamed", "dropped", "dropped before the adoption"])
def test_a_name_comes_to_mean_another_column(tmp_path: Path, how: str, once: bool) -> None:
    followed = bare(tmp_path)
    if how == "dropped before the adoption":
        followed.change_schema(lambda update: update.delete_column("c"))
        followed.adopt("again")
        (tmp_path / "t").rename(tmp_path / "old")
        (tmp_path / "again").rename(tmp_path / "t")
    elif how == "renamed":
        followed.change_schema(lambda update: update.rename_column("c", "d"))
    else:
        followed.change_schema(lambda update: update.delete_column("c"))
    if not once:
        followed.sync()
    followed.change_schema(lambda update: update.add_column("c", StringType()))
    followed.append({"k": 3, "c": "n", "d": "m"} if how == "renamed" else {"k": 3, "c": "n"})
    followed.sync()
    more = ("d = 'a'", "d IS NULL") if how == "renamed" else ()
    assert [row["c"] for row in followed.check("c = 'a'", "c = 'n'", *more)] == ["a", "b", "n"]


def test_a_renamed_column_takes_no_file_again(tmp_path: Path) -> None:
    followed = bare(tmp_path)
    parts = followed.table.snapshot.parts()["part_id"].to_pylist()
    followed.change_schema(lambda update: update.rename_column("c", "d"))
    followed.append({"k": 3, "d": "c"})
    followed.sync()
    rows = {row["k"]: row["d"] for row in followed.table.scan("d IS NOT NULL").to_arrow().to_pylist()}
    assert rows == {1: "a", 2: "b", 3: "c"}
    assert set(parts) < set(followed.table.snapshot.parts()["part_id"].to_pylist())


def test_a_new_column_of_a_new_name_takes_no_bare_file_again(tmp_path: Path) -> None:
    followed = bare(tmp_path)
    parts = followed.table.snapshot.parts()["part_id"].to_pylist()
    followed.change_schema(lambda update: update.add_column("d", StringType()))
    followed.append({"k": 3, "c": "c", "d": "d"})
    followed.sync()
    followed.check("d = 'd'", "c = 'a'")
    assert set(parts) < set(followed.table.snapshot.parts()["part_id"].to_pylist())


def as_by_an_older_release(followed: Followed) -> None:
    """Leave out what older releases did not record of the columns of the source."""
    snapshot = followed.table.snapshot
    source = snapshot.head.sources[-1]
    left = {name: value for name, value in source.properties.items() if name not in {BARE_NAMES, NAME_MAPPING}}
    head = replace(
        snapshot.head,
        sources=(replace(source, properties=left),),
        highest_column_id=max(snapshot.head.schemas[-1].paths),
    )
    proposal = Proposal(
        Operation("sync"),
        read_version=snapshot.version,
        read_operation_id=snapshot.commit.operation_id,
        head=head,
        follows=True,
        table_id=head.table_id,
    )
    commit(snapshot.store, proposal)


@pytest.mark.parametrize("skip_history", [True, False])
def test_a_column_dropped_before_an_older_release_adopted_comes_back(tmp_path: Path, skip_history: bool) -> None:
    source = made(tmp_path, DATA)
    with source.update_schema(allow_incompatible_changes=True) as update:
        update.delete_column("c")
    followed = Followed(tmp_path, source)
    as_by_an_older_release(followed)
    followed.set_schema(0)
    followed.sync(skip_history=skip_history)
    followed.check("c = 'a'")


@pytest.mark.parametrize(("first", "then"), [(WRONG, RIGHT), (ABSENT, RIGHT), (WRONG, None)])
def test_a_mapping_changes_that_an_older_release_did_not_record(
    tmp_path: Path, first: dict[int, list[str]], then: dict[int, list[str]] | None
) -> None:
    followed = bare(tmp_path, first)
    as_by_an_older_release(followed)
    if then is None:
        with followed.source.transaction() as change:
            change.remove_properties(MAPPING)
    else:
        followed.map_names(then)
    followed.append({"k": 3, "c": "c"})
    followed.sync()
    fresh = followed.adopt("fresh", follow=False)
    for text in ("c = 'a'", "c IS NULL", "c IS NOT NULL", "k > 0"):
        assert ordered(followed.table.scan(text).to_arrow()) == ordered(fresh.scan(text).to_arrow()), text


def test_a_table_of_bare_and_other_files_has_bare_ones(tmp_path: Path) -> None:
    """Files of the same columns, with and without ids, are not taken for one kind."""
    source = bare_source(tmp_path, WRONG)
    source.append(pa.Table.from_pylist([{"k": 3, "c": "c"}], source.schema().as_arrow()))
    followed = Followed(tmp_path, source)
    followed.map_names(RIGHT)
    followed.sync()
    assert [row["c"] for row in followed.check("c = 'a'", "c = 'c'")] == ["a", "b", "c"]


def test_columns_of_one_name_and_two_ids_are_two(tmp_path: Path) -> None:
    source = made(tmp_path, DATA)
    with source.update_schema(allow_incompatible_changes=True) as update:
        update.delete_column("c")
    with source.update_schema() as update:
        update.add_column("c", StringType())
    source.append(pa.Table.from_pylist([{"k": 3, "c": "n"}, {"k": 4, "c": "x"}], source.schema().as_arrow()))
    followed = Followed(tmp_path, source)
    assert [row["c"] for row in followed.check("c IS NOT NULL", "c = 'a'", "c = 'n'")] == [None, None, "n", "x"]


@pytest.mark.parametrize("mapping", [{1: ["k"], 2: ["x"]}, {1: ["k"]}])
def test_a_column_comes_back_under_another_mapping(tmp_path: Path, mapping: dict[int, list[str]]) -> None:
    followed = bare(tmp_path, RIGHT)
    followed.change_schema(lambda update: update.delete_column("c"))
    followed.sync()
    followed.map_names(mapping)
    followed.set_schema(0)
    followed.sync()
    fresh = followed.adopt("fresh", follow=False)
    for text in ("c IS NULL", "c = 'a'", "c IS NOT NULL"):
        assert followed.table.scan(text).count() == fresh.scan(text).count(), text


def test_a_name_that_a_dropped_column_was_mapped_to_comes_to_mean_another(tmp_path: Path) -> None:
    followed = Followed(tmp_path, bare_source(tmp_path, RIGHT, column="d"))
    followed.change_schema(lambda update: update.delete_column("d"))
    followed.map_names({1: ["k"]})
    followed.sync()
    followed.change_schema(lambda update: update.add_column("e", StringType()))
    followed.map_names({1: ["k"], 3: ["c"]})
    followed.sync()
    followed.check("e = 'a'", "e IS NULL")


# Metadata


def edited(folder: Path, change: Callable[[dict[str, Any]], object]) -> str:
    source = made(folder, DATA, "c")
    path = ice.metadata_of(source)
    content = json.loads(path.read_text())
    change(content)
    path.write_text(json.dumps(content))
    return str(path)


@pytest.mark.parametrize(
    "change",
    [
        lambda m: m.pop("schemas"),
        lambda m: m.update({"schemas": [3]}),
        lambda m: m.update({"current-schema-id": 9}),
        lambda m: m["snapshots"][-1].pop("manifest-list"),
        lambda m: m["snapshots"][-1].pop("timestamp-ms"),
        lambda m: m["snapshots"][-1].pop("snapshot-id"),
        lambda m: m["partition-specs"][-1]["fields"][0].pop("transform"),
        lambda m: m["partition-specs"][-1]["fields"][0].update({"source-id": "2"}),
        lambda m: m["schemas"][0]["fields"][0].update({"name": None}),
        lambda m: m.update({"properties": [1]}),
        lambda m: m.update({"refs": {"main": {}}}),
        lambda m: m.update({"snapshots": 7}),
    ],
    ids=range(12),
)
def test_metadata_of_another_form_is_damaged(tmp_path: Path, change: Callable[[dict[str, Any]], object]) -> None:
    with pytest.raises(CorruptData, match="ICEBERG_METADATA_DAMAGED"):
        tamis.adopt(edited(tmp_path, change), tmp_path / "t")


def test_a_snapshot_of_a_schema_that_is_gone_is_damaged(tmp_path: Path) -> None:
    place = edited(tmp_path, lambda m: m["snapshots"][-1].update({"schema-id": 7}))
    snapshot = json.loads(Path(place).read_text())["snapshots"][-1]["snapshot-id"]
    with pytest.raises(CorruptData, match="there is no schema 7"):
        tamis.adopt(place, tmp_path / "t", source_options={"version": snapshot})


def test_a_snapshot_without_a_summary_is_read(tmp_path: Path) -> None:
    place = edited(tmp_path, lambda m: m["snapshots"][-1].pop("summary"))
    assert tamis.adopt(place, tmp_path / "t").scan("c = 'a'").count() == 1


def test_partition_fields_of_format_1_may_have_no_ids(tmp_path: Path) -> None:
    def as_in_format_1(content: dict[str, Any]) -> None:
        for spec in content["partition-specs"]:
            for field in spec["fields"]:
                del field["field-id"]

    table = tamis.adopt(edited(tmp_path, as_in_format_1), tmp_path / "t")
    assert table.scan("c = 'a'", ["k"]).to_arrow()["k"].to_pylist() == [1]


def test_the_parent_of_the_next_snapshot_may_have_expired(tmp_path: Path) -> None:
    followed = Followed(tmp_path, made(tmp_path, DATA))
    taken = followed.source.current_snapshot().snapshot_id
    followed.append({"k": 3, "c": "c"})
    path = ice.metadata_of(followed.source)
    content = json.loads(path.read_text())
    content["snapshots"] = [one for one in content["snapshots"] if one["snapshot-id"] != taken]
    path.write_text(json.dumps(content))
    assert followed.sync() == 1
    followed.check("c = 'c'")


def test_an_expired_snapshot_cannot_be_read_again(tmp_path: Path) -> None:
    source = made(tmp_path, DATA)
    with source.update_schema(allow_incompatible_changes=True) as update:
        update.delete_column("c")
    followed = Followed(tmp_path, source)
    taken = source.current_snapshot().snapshot_id
    followed.set_schema(0)
    followed.append({"k": 3, "c": "c"})
    with followed.source.transaction() as change:
        change._apply((RemoveSnapshotsUpdate(snapshot_ids=[taken]),))
    followed.source.refresh()
    with pytest.raises(CorruptData, match="SOURCE_HISTORY_GONE"):
        followed.sync()
    followed.sync(skip_history=True)
    followed.check("c = 'a'")
