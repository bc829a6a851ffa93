"""The sequence of a table's schemas: which migrations are allowed, what readers of each schema read, and when they are fenced."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import tamis
from tamis import IncompatibleSchema, SchemaFenced, SchemaMismatch, Table
from tamis.core.schema import check_migration, check_reader
from tamis.core.schema.deleted_fields import migration_type_of
from tamis.core.schema.migration_types import from_fields
from tamis.core.types.arrow import to_arrow_schema
from tamis.storage.files.formats import FORMATS
from tests.schema.making import BIG, INT, TEXT, f, new_table, rows

ROWS = [{"a": 1, "b": "x"}, {"a": 2, "b": "y"}]


@pytest.fixture(params=sorted(FORMATS))
def table(request: pytest.FixtureRequest) -> Table:
    """``a BIGINT NOT NULL, b STRING`` and two rows, in each data format."""
    return new_table(f("a", nullable=False), f("b", TEXT), rows=ROWS, format=request.param)


def data(**columns: list[Any]) -> pa.Table:
    return pa.table(columns)


# --- Schemas and DataTypes ---


def test_schemas_map_rows_at_the_edges_and_arrow_types_are_used_within(table: Table) -> None:
    """Rows come in and go out as the table's schema has them; between, they are Arrow arrays of its data types."""
    table.append(pa.table({"b": pa.array(["z"]).dictionary_encode(), "a": pa.array([3], INT)}))
    assert rows(table)[2] == {"a": 3, "b": "z"}
    assert table.scan().to_arrow().schema.types == [BIG, TEXT]


def test_requirements_are_enforced_while_relations_vary(table: Table) -> None:
    """What a table stores is checked against its own schema, whatever the frame that was given looks like."""
    table.alter().add_column("c", BIG).commit()
    for wrong in (data(a=[None], b=["x"]), data(a=["x"], b=["x"])):
        with pytest.raises(SchemaMismatch):
            table.append(wrong)
    assert len(rows(table)) == 2


def test_schemas_form_an_ordered_sequence(table: Table) -> None:
    """A table keeps every schema that it has had, in order."""
    table.alter().add_column("c", BIG).commit()
    table.alter().drop_column("b").commit()
    assert [r["columns"] for r in table.metadata("schemas").to_pylist()] == [
        "a: bigint not null, b: string",
        "a: bigint not null, b: string, c: bigint",
        "a: bigint not null, c: bigint",
    ]


def test_compare_and_evolve_schema_appends_to_the_sequence(table: Table) -> None:
    """A schema that is accepted becomes the last of the sequence."""
    assert table.compare_and_evolve_schema(0, pa.schema([*table.schema, f("c")])) == 1
    assert [s.schema_id for s in table.snapshot.head.schemas] == [0, 1]


def test_an_empty_sequence_gets_the_initial_schema() -> None:
    """An empty sequence takes any schema as its first."""
    empty = new_table()
    with pytest.raises(SchemaMismatch) as caught:
        empty.compare_and_evolve_schema(0, pa.schema([f("a")]))
    assert (caught.value.current_id, caught.value.schema) == (None, None)
    assert empty.compare_and_evolve_schema(None, pa.schema([f("a")])) == 0
    assert empty.schema.names == ["a"]


def test_a_non_empty_sequence_checks_the_rules_and_then_appends(table: Table) -> None:
    """A schema is checked against the migration rules before it is appended; one that breaks them changes nothing."""
    with pytest.raises(IncompatibleSchema) as refused:
        table.compare_and_evolve_schema(0, pa.schema([f("a", TEXT), f("b", TEXT)]))
    assert (refused.value.code, refused.value.name) == ("MIGRATION_TYPE_CHANGE", "a")
    assert table.compare_and_evolve_schema(0, pa.schema([f("a"), f("b", TEXT)])) == 1
    with pytest.raises(SchemaMismatch) as stale:
        table.compare_and_evolve_schema(0, pa.schema([f("a"), f("q")]))
    assert (stale.value.code, stale.value.current_id) == ("EXPECTED_MISMATCH", 1)
    assert isinstance(stale.value.schema, pa.Schema)
    assert stale.value.schema.names == ["a", "b"]


def test_schema_ids_increase(table: Table) -> None:
    """Ids count up, and each names one schema of the sequence for good."""
    ids = [table.compare_and_evolve_schema(at, pa.schema([*table.schema, f(f"c{at}")])) for at in range(4)]
    assert ids == [1, 2, 3, 4]
    assert table.compare_and_evolve_schema(4, table.schema) == 4, "the same schema again is no new one"


# --- DataType migration rules (each rule at each nesting: test_rules.py) ---


def test_a_required_field_becomes_nullable_and_data_stays_unchanged(table: Table) -> None:
    """Dropping NOT NULL is metadata alone: no file is rewritten."""
    before = table.metadata("parts")["part_id"]
    table.alter().drop_not_null("a").commit()
    table.append(data(a=pa.array([None], BIG), b=["n"]))
    assert tamis.open(table.path).metadata("parts")["part_id"][0] == before[0]
    assert [r["a"] for r in rows(table)] == [1, 2, None]


def test_a_field_is_deleted(table: Table) -> None:
    """A deleted field is dropped from what old parts hold when they are read."""
    table.alter().drop_column("b").commit()
    assert rows(table) == [{"a": 1}, {"a": 2}]


def test_a_nullable_field_is_added(table: Table) -> None:
    """A nullable field that no earlier schema had is NULL in the rows of old parts."""
    table.alter().add_column("c", BIG).commit()
    table.append(data(a=[3], b=["z"], c=[7]))
    assert [r["c"] for r in rows(table)] == [None, None, 7]


@pytest.mark.parametrize("data_format", sorted(FORMATS))
def test_nested_types_migrate_as_their_insides_do(data_format: str) -> None:
    """A migration is allowed inside a struct, a list or a map exactly where it is allowed at the top."""
    inner = pa.struct([f("x", INT), f("gone", TEXT)])
    nested = new_table(f("s", inner), f("l", pa.list_(inner)), f("m", pa.map_(TEXT, inner)), format=data_format)
    one = {"x": 1, "gone": "g"}
    nested.append(pa.Table.from_pylist([{"s": one, "l": [one, None], "m": [("k", one)]}, {}], schema=nested.schema))
    change = nested.alter()
    for path in ("s", "l.element", "m.value"):
        change.drop_column(f"{path}.gone").add_column(f"{path}.new", TEXT).widen(f"{path}.x", BIG)
    change.commit()
    new = {"x": 1, "new": None}
    assert rows(nested) == [{"s": new, "l": [new, None], "m": [("k", new)]}, {"s": None, "l": None, "m": None}]
    assert rows(nested, "s.x = 1 AND s.new IS NULL") == rows(nested)[:1]


@pytest.mark.parametrize(
    ("new", "rule"),
    [
        ([f("b", TEXT), f("a", nullable=False)], "REORDER"),
        ([f("a", nullable=False), f("b", BIG)], "TYPE_CHANGE"),
        ([f("a", nullable=False), f("b", TEXT, False)], "TIGHTEN"),
        ([f("a", nullable=False), f("b", TEXT), f("c", BIG, False)], "ADD_REQUIRED"),
    ],
)
def test_all_other_migrations_are_against_the_rules(table: Table, new: list[pa.Field], rule: str) -> None:
    """Any other change is refused, and the error names the field."""
    with pytest.raises(IncompatibleSchema) as caught:
        table.compare_and_evolve_schema(0, pa.schema(new))
    assert caught.value.code == f"MIGRATION_{rule}"
    assert tamis.open(table.path).version == table.version


def test_no_reordering_and_no_re_creation(table: Table) -> None:
    """Fields are neither reordered nor created again under the id of a deleted one."""
    assert table.compare_and_evolve_schema(0, pa.schema([f("a", nullable=False)])) == 1
    table.compare_and_evolve_schema(1, pa.schema([f("a", nullable=False), f("c")]))
    for again in (f("b", TEXT), f("b", TEXT).with_metadata({"PARQUET:field_id": "2"})):
        with pytest.raises(IncompatibleSchema) as caught:
            table.compare_and_evolve_schema(2, pa.schema([f("a", nullable=False), f("c"), again]))
        assert (caught.value.code, caught.value.name) == ("MIGRATION_READD_DELETED", "b")


def test_types_widen_where_that_is_asked_for() -> None:
    """Widening is allowed where the caller asks for it, and refused otherwise."""
    old, new = pa.schema([f("a", INT)]), pa.schema([f("a", BIG)])
    with pytest.raises(IncompatibleSchema):
        check_migration([old], new)
    check_migration([old], new, widen=True)
    table = new_table(f("a", INT), rows=[{"a": 2**31 - 1}])
    table.alter().widen("a", BIG).commit()
    table.append(data(a=[2**40]))
    assert rows(table, f"a >= {2**31 - 1}") == [{"a": 2**31 - 1}, {"a": 2**40}]


def test_names_are_used_again_by_column_ids(table: Table) -> None:
    """A name may be used again: fields are distinguished by their ids, which are never used again."""
    table.alter().drop_column("b").add_column("b", BIG).commit()
    table.append(data(a=[3], b=[9]))
    assert rows(table) == [{"a": 1, "b": None}, {"a": 2, "b": None}, {"a": 3, "b": 9}]
    assert rows(table, "b IS NULL") == rows(table)[:2]
    assert table.snapshot.head.schema is not None
    assert [x.id for x in table.snapshot.head.schema] == [1, 3]


# --- Tracking deleted fields ---


def test_the_current_type_alone_is_not_enough() -> None:
    """Whether a field may be added depends on every earlier schema, since a deleted field may not come back."""
    first, second = pa.schema([f("a"), f("b")]), pa.schema([f("a")])
    check_migration([second], first)
    with pytest.raises(IncompatibleSchema):
        check_migration([first, second], first)


def test_a_migration_type_tracks_deleted_fields(table: Table) -> None:
    """A migration type is a data type whose structs also remember the fields that were deleted."""
    table.alter().add_column("s", pa.struct([f("x"), f("y")])).commit()
    table.alter().drop_column("s.x").drop_column("b").commit()
    head = tamis.open(table.path).snapshot.head
    assert [(gone.name, gone.parent, gone.schema_id) for gone in head.dropped] == [("b", 0, 2), ("x", 3, 2)]
    assert head.schema is not None
    assert migration_type_of(head.schema, head.dropped).deleted == {2: "b"}


def test_the_current_type_is_what_is_not_deleted(table: Table) -> None:
    """Without its deleted fields, a migration type is the current data type."""
    table.alter().drop_column("b").commit()
    head = table.snapshot.head
    assert head.schema is not None
    assert migration_type_of(head.schema, head.dropped).fields == from_fields(head.schema.fields).fields


# --- Reader schemas ---


def test_readers_of_any_valid_schema_read_what_any_previous_schema_wrote(table: Table) -> None:
    """Backward compatibility: a reader of any schema of the sequence reads parts of all schemas before it."""
    readers = [tamis.open(table.path)]
    for at in range(3):
        table.alter().add_column(f"c{at}", BIG, default=str(at)).commit()
        table.append(data(a=[10 + at], b=["n"]))
        readers.append(tamis.open(table.path))
    full = rows(table)
    for reader in readers:
        names = reader.schema.names
        assert reader.scan().to_arrow().to_pylist() == [{name: row[name] for name in names} for row in full]


def test_a_schema_change_may_invalidate_existing_readers(table: Table) -> None:
    """Forward compatibility is not promised: a change may leave a running reader without what it reads."""
    table.alter().drop_column("b").commit()
    table.alter().set_properties({"tamis.schema.policy": "forward"}).commit()
    with pytest.raises(IncompatibleSchema) as caught:
        table.alter().drop_not_null("a").commit()
    assert (caught.value.code, caught.value.name) == ("FORWARD_ONLY", "a")
    table.alter().add_column("c", BIG).commit()


def test_a_fenced_reader_stops_with_an_error(table: Table) -> None:
    """Such a reader ends with ``SchemaFenced``, before it hands out rows of another shape."""
    held = tamis.open(table.path)
    table.alter().drop_column("b").add_column("b", TEXT).commit()
    for read in (held.scan().to_arrow, held.scan().plan, held.explain, lambda: held.scan("b = 'x'", ["a"])):
        with pytest.raises(SchemaFenced) as caught:
            read()
        assert caught.value.name == "b"
        assert "schema 0" in caught.value.message
        assert "refresh()" in caught.value.remedy
    assert held.refresh().scan().to_arrow().to_pylist() == [{"a": 1, "b": None}, {"a": 2, "b": None}]


def test_forward_compatible_changes_fence_nobody(table: Table) -> None:
    """A change that an old reader can follow does not fence it."""
    held = tamis.open(table.path)
    change = (
        table.alter()
        .add_column("c", BIG, first=True)
        .rename_column("b", "bb")
        .set_comment("a", "key")
        .move_column("a", after="bb")
    )
    assert change.dry_run().fences == ()
    change.commit()
    assert held.scan("b = 'x'").to_arrow().to_pylist() == ROWS[:1]


def test_a_snapshot_is_checked_against_the_schemas_of_its_own_version(table: Table) -> None:
    """A reader is checked against the schemas that the version it reads had, not against later ones."""
    version = table.version
    held, open_scan = tamis.open(table.path), table.scan()
    table.alter().drop_column("b").commit()
    assert open_scan.to_arrow().to_pylist() == ROWS, "a scan reads the version that it was made of"
    assert held.scan(version=version).to_arrow().to_pylist() == ROWS
    with pytest.raises(SchemaFenced):
        held.scan().to_arrow()


def test_repeated_reads_are_validated_again_whenever_the_schema_is_evolved(table: Table) -> None:
    """A reader that follows a table is checked again after every evolution."""
    held = tamis.open(table.path)
    table.append(data(a=[3], b=["z"]))
    assert held.scan().count() == 3
    table.alter().add_column("c", BIG).commit()
    assert held.scan().count() == 3
    table.alter().drop_column("b").commit()
    with pytest.raises(SchemaFenced):
        held.scan().to_arrow()


def test_errors_are_no_rows_and_the_same_at_each_attempt(table: Table) -> None:
    """Fencing is an error of the read, never a row; a second attempt ends in the same way."""
    held = tamis.open(table.path)
    table.alter().drop_column("b").commit()
    messages = []
    for _ in range(3):
        with pytest.raises(SchemaFenced) as caught:
            held.scan().to_arrow()
        messages.append(str(caught.value))
        table.append(data(a=[9]))
    assert len(set(messages)) == 1


def test_the_latest_schema_is_never_fenced(table: Table) -> None:
    """Migrating to the latest schema changes nothing, so its readers are not fenced."""
    table.alter().drop_column("b").commit()
    assert tamis.open(table.path).scan().count() == 2
    check_reader([pa.schema([f("a"), f("b")]), pa.schema([f("a")])], pa.schema([f("a")]))


def test_a_projection_is_never_fenced(table: Table) -> None:
    """A reader of some columns of the current schema is not fenced, whatever happens to the columns that it leaves out."""
    held = tamis.open(table.path)
    table.alter().drop_column("b").commit()
    assert held.scan("a > 1", ["a"]).to_arrow().to_pylist() == [{"a": 2}]


def test_a_required_column_that_becomes_nullable_fences(table: Table) -> None:
    """A reader that was promised no NULLs in a column is fenced once the column may hold them."""
    held = tamis.open(table.path)
    table.alter().drop_not_null("a").commit()
    with pytest.raises(SchemaFenced) as caught:
        held.scan().to_arrow()
    assert (caught.value.code, caught.value.name) == ("FENCED_TIGHTEN", "a")
    assert held.scan(None, ["b"]).count() == 2


def test_a_deleted_column_fences(table: Table) -> None:
    """A reader of a deleted column is fenced: a deleted column does not come back."""
    held = tamis.open(table.path)
    table.alter().drop_column("b").commit()
    with pytest.raises(SchemaFenced) as caught:
        held.scan().to_arrow()
    assert (caught.value.code, caught.value.name) == ("FENCED_READD_DELETED", "b")


# --- Compaction and consolidation ---


def test_compaction_brings_parts_of_many_schemas_to_one(table: Table) -> None:
    """Parts of different schemas are merged into parts of one."""
    table.alter().add_column("c", BIG, default="5").commit()
    table.append(data(a=[3], b=["z"], c=[7]))
    table.alter().drop_column("b").commit()
    table.append(data(a=[4], c=[8]))
    before = rows(table)
    held = tamis.open(table.path)
    table.compact()
    assert rows(table) == before == held.scan().to_arrow().to_pylist()
    assert tamis.open(table.path).metadata("parts")["schema_id"].unique().to_pylist() == [2]
    assert tamis.open(table.path).detail()["oldest_schema_id"].to_pylist() == [2]


def test_compaction_migrates_to_the_latest_schema_and_may_lose_what_is_deleted(table: Table) -> None:
    """Compaction writes the schema that was the latest when it began. Values of deleted columns are lost; no reader that sees its parts could have read them."""
    held, version = tamis.open(table.path), table.version
    table.append(data(a=[3], b=["z"]))
    table.append(data(a=[4], b=["w"]))
    table.alter().drop_column("b").commit()
    held.compact()  # through an object that holds the older schema
    parts = tamis.open(table.path).metadata("parts").to_pylist()
    assert {p["schema_id"] for p in parts} == {1}
    assert rows(table) == [{"a": 1}, {"a": 2}, {"a": 3}, {"a": 4}]
    with pytest.raises(SchemaFenced):
        held.scan().to_arrow()
    assert held.scan(version=version).to_arrow().to_pylist() == ROWS


def test_deleting_a_column_may_break_the_order_and_the_parts_say_so() -> None:
    """Parts that were sorted by a deleted column, and by others behind it, are no longer in order; they say so, and compaction sorts them again."""
    from tamis.storage.commit_log import ordered_now

    table = new_table(f("a"), f("b"), f("c"), cluster_by=["a", "b", "c"])
    table.append(data(a=[1, 1], b=[1, 2], c=[9, 3]))
    table.alter().drop_column("c").commit()
    head = tamis.open(table.path).snapshot.head
    assert head.cluster_by == ((1,), (2,))
    assert ordered_now(head, tamis.open(table.path).snapshot.parts()).to_pylist() == [True], (
        "the last column takes nothing from the order"
    )

    table = new_table(f("a"), f("b"), f("c"), cluster_by=["a", "b", "c"])
    table.append(data(a=[1, 1], b=[1, 2], c=[9, 3]))
    table.append(data(a=[1, 1], b=[0, 5], c=[7, 1]))
    table.alter().drop_column("b").commit()
    snapshot = tamis.open(table.path).snapshot
    assert snapshot.head.cluster_by == ((1,), (3,))
    assert ordered_now(snapshot.head, snapshot.parts()).to_pylist() == [False, False]
    table.compact()
    after = tamis.open(table.path).snapshot
    assert ordered_now(after.head, after.parts()).to_pylist() == [True]
    assert [r["c"] for r in rows(table)] == [1, 3, 7, 9]


def test_the_schema_history_says_whether_data_was_ever_reordered(table: Table) -> None:
    """The history of schemas tells which parts may have lost their order."""
    head = table.snapshot.head
    assert head.ordered_since == 0
    clustered = new_table(f("a"), f("b"), cluster_by=["a", "b"])
    clustered.alter().drop_column("a").commit()
    assert clustered.snapshot.head.ordered_since == 1


def test_changes_of_rows_are_fenced_by_the_columns_that_they_name(table: Table) -> None:
    """Delete and update read like a scan: what they do not name may go or be renamed, what they name is the column that it was."""
    held, names = tamis.open(table.path), table.schema.names
    table.alter().rename_column(names[0], "renamed").add_column(names[0] + "2", "STRING").commit()
    assert held.delete(f"{names[0]} IS NULL").rows_deleted == 0
    assert held.update({names[0]: names[0]}, f"{names[0]} IS NOT NULL").rows_updated == table.scan().count()
    table.alter().drop_column("renamed").add_column(names[0], "STRING").commit()
    for change in (
        lambda: held.delete(f"{names[0]} IS NULL"),
        lambda: held.update({names[0]: "NULL"}, all_rows=True),
        lambda: held.update({names[1]: f"CAST({names[0]} AS INT)"}, all_rows=True),
    ):
        with pytest.raises(SchemaFenced):
            change()
    assert held.update({names[1]: names[1]}, all_rows=True).rows_updated == table.scan().count()


def test_an_alteration_tells_what_it_did_in_a_line(table: Table) -> None:
    change = table.alter().drop_column("b").add_column("wide", pa.struct([f(f"x{i}") for i in range(60)]))
    assert "dry run" in repr(change.dry_run())
    done = change.commit()
    assert done.version == table.version == done.as_dict()["version"]
    assert len(repr(table.alter().add_column("c", "INT").commit())) < 120
    assert (
        repr(table.alter().set_properties({"a": "b"}).commit())
        == f"Evolution(version {table.version}, schema 2: no change of columns)"
    )


def test_the_arrow_schema_tells_ids(table: Table) -> None:
    """Fields are matched by the ids in their metadata where given: a rename by id is a rename."""
    fields = [table.schema.field(0), table.schema.field(1).with_name("called")]
    assert table.compare_and_evolve_schema(0, pa.schema(fields)) == 1
    assert rows(table) == [{"a": 1, "called": "x"}, {"a": 2, "called": "y"}]
    assert table.schema == to_arrow_schema(table.snapshot.head.schemas[1])
