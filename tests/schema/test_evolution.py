"""Evolving a schema: ids, answers, lost answers, running readers and writers, compaction, and two writers at once."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import tamis
from tamis import Conflict, IncompatibleSchema, InvalidInput, SchemaMismatch, StoreUnavailable
from tamis.core.schema import check_migration
from tamis.storage.commit_log.commit_landing import Landing
from tests.schema.making import BIG, INT, TEXT, f, new_table, rows


def test_ids_count_from_0_and_nothing_is_removed() -> None:
    table = new_table(f("a"), f("b"))
    table.alter().drop_column("b").commit()
    assert [s.schema_id for s in tamis.open(table.path).snapshot.head.schemas] == [0, 1]


def test_evolving_answers_with_an_id_or_the_current_one() -> None:
    table = new_table(f("a"))
    assert table.compare_and_evolve_schema(0, pa.schema([f("a")])) == 0
    assert table.compare_and_evolve_schema(0, pa.schema([f("a"), f("b")])) == 1
    assert table.compare_and_evolve_schema(0, pa.schema([f("a"), f("b")])) == 1
    with pytest.raises(SchemaMismatch) as caught:
        table.compare_and_evolve_schema(0, pa.schema([f("a"), f("c")]))
    assert caught.value.current_id == 1


def test_the_whole_history_counts_not_only_the_latest() -> None:
    table = new_table(f("a"), f("b"))
    assert table.compare_and_evolve_schema(0, pa.schema([f("a")])) == 1
    assert table.compare_and_evolve_schema(1, pa.schema([f("a"), f("c")])) == 2
    with pytest.raises(IncompatibleSchema):
        table.compare_and_evolve_schema(2, pa.schema([f("a"), f("c"), f("b")]))


def test_the_physical_type_is_stored() -> None:
    item = pa.field("item", INT, nullable=False)
    table = new_table(f("l", pa.list_(item)), rows=[{"l": [1]}])
    assert tamis.open(table.path).schema.field("l").type.value_field.nullable is False
    table.alter().drop_not_null("l.element").commit()
    assert tamis.open(table.path).schema.field("l").type.value_field.nullable is True
    assert rows(table) == [{"l": [1]}]


def test_relaxing_a_struct_and_changing_inside_it_combine() -> None:
    old = pa.schema([pa.field("s", pa.struct([f("x"), f("y")]), nullable=False)])
    check_migration([old], pa.schema([f("s", pa.struct([f("y"), f("z")]))]))


def test_a_part_of_a_schema_that_is_not_there_is_damage_not_rows() -> None:
    table = new_table(f("a"), rows=[{"a": 1}])
    scan = table.scan()
    made = scan.plan()
    spec = made.spec
    from dataclasses import replace

    from tamis.engine.part_reader import ReadCounters, read_part
    from tamis.errors import CorruptData

    with pytest.raises(CorruptData, match="schema 0"):
        list(read_part(made.parts[0], replace(spec, part_schemas={}), ReadCounters()))


def test_a_running_reader_meets_parts_of_a_newer_schema() -> None:
    table = new_table(f("a"), rows=[{"a": 1}])
    held = tamis.open(table.path)
    table.alter().add_column("b", BIG).commit()
    table.append(pa.table({"a": [2], "b": [3]}))
    assert held.scan().to_arrow().to_pylist() == [{"a": 1}, {"a": 2}]


def test_writers_on_the_old_schema_may_continue() -> None:
    table = new_table(f("a"), rows=[{"a": 1}])
    held = tamis.open(table.path)
    table.alter().add_column("b", BIG).commit()
    held.append(pa.table({"a": [2]}))
    assert rows(table, "b IS NULL") == [{"a": 1, "b": None}, {"a": 2, "b": None}]


def test_compaction_does_not_undo_an_evolution() -> None:
    table = new_table(f("a"), rows=[{"a": 1}])
    old = tamis.open(table.path)
    table.alter().add_column("b", BIG).commit()
    for at in range(3):
        table.append(pa.table({"a": [at], "b": [at]}))
    before = rows(table)
    old.compact()
    assert rows(table) == before
    assert {p["schema_id"] for p in table.metadata("parts").to_pylist()} == {1}


def test_a_lost_answer_is_given_again(monkeypatch: pytest.MonkeyPatch) -> None:
    table = new_table(f("a"))
    new = pa.schema([f("a"), f("b")])
    put = Landing.put

    def lost(self: Landing, commit: Any) -> Any:
        put(self, commit)
        raise StoreUnavailable("The answer was lost.", code="COMMIT_UNKNOWN", name="x", remedy="Repeat it.")

    change = table.alter().add_column("c", BIG)
    with monkeypatch.context() as broken:
        broken.setattr(Landing, "put", lost)
        with pytest.raises(StoreUnavailable):
            table.compare_and_evolve_schema(0, new)
        assert table.compare_and_evolve_schema(0, new) == 1
        with pytest.raises(StoreUnavailable):
            change.commit()
    assert table.compare_and_evolve_schema(0, new) == 1
    assert change.commit().schema_id == 2
    assert [c["name"] for c in tamis.open(table.path).metadata("columns").to_pylist()] == ["a", "b", "c"]
    assert tamis.open(table.path).version == 2


def test_changes_recorded_after_a_commit_are_committed() -> None:
    table = new_table(f("a"), rows=[{"a": 1}])
    change = table.alter()
    for name in ("b", "c"):
        assert list(change.add_column(name, BIG).commit().schema.names) == table.schema.names
    change.rename_column("c", "d").commit()
    change.set_default("d", "7").commit()
    change.drop_column("b").add_check("positive", "a > 0").commit()
    assert (table.version, rows(tamis.open(table.path))) == (6, [{"a": 1, "d": None}])
    with pytest.raises(SchemaMismatch) as caught:
        table.append(pa.table({"a": [0]}))
    assert caught.value.code == "CHECK_VIOLATION"
    assert change.commit().version == 6, "nothing was recorded since"
    with pytest.raises(InvalidInput):
        change.set_properties({"tamis.stats.nothing": "1"})
    assert change.dry_run().changes == ()
    assert (change.commit().version, change.commit().changes != ()) == (6, True), "nothing was recorded since"
    table.append(pa.table({"a": [2]}))
    assert sorted(row["d"] or 0 for row in rows(table)) == [0, 7]


def test_a_change_recorded_after_a_lost_answer_is_not_taken_for_made(monkeypatch: pytest.MonkeyPatch) -> None:
    """The commit without it may have been made; with it, it is another operation."""
    table = new_table(f("a"))
    put = Landing.put

    def lost(self: Landing, commit: Any) -> Any:
        put(self, commit)
        raise StoreUnavailable("The answer was lost.", code="COMMIT_UNKNOWN", name="x", remedy="Repeat it.")

    change = table.alter().set_properties({"owner": "x"})
    with monkeypatch.context() as broken:
        broken.setattr(Landing, "put", lost)
        with pytest.raises(StoreUnavailable):
            change.commit()
    change.add_column("b", BIG).commit()
    assert tamis.open(table.path).schema.names == ["a", "b"]


def test_columns_may_be_named_by_numbers() -> None:
    table = new_table(*(f(str(at)) for at in range(12)), rows=[{str(at): at for at in range(12)}])
    table.alter().drop_column("2").commit()
    assert rows(table) == [{str(at): at for at in range(12) if at != 2}]
    assert rows(table, "`10` = 10", ["10"]) == [{"10": 10}]


@pytest.mark.parametrize("at", range(4))
def test_a_field_is_added_at_any_place(at: int) -> None:
    table = new_table(f("a"), f("b"), f("c"), rows=[{"a": 1, "b": 2, "c": 3}])
    fields = list(table.schema)
    fields.insert(at, f("new", TEXT))
    assert table.compare_and_evolve_schema(0, pa.schema(fields)) == 1
    assert rows(table) == [{name: {"a": 1, "b": 2, "c": 3}.get(name) for name in pa.schema(fields).names}]


def test_parts_of_another_order_are_not_taken_for_ordered() -> None:
    table = new_table(f("a"), f("b"), f("c"), cluster_by=["a", "b", "c"])
    table.append(pa.table({"a": [1, 1, 1], "b": [1, 2, 3], "c": [9, 1, 5]}))
    table.alter().drop_column("b").commit()
    assert rows(table, "a = 1 AND c = 1") == [{"a": 1, "c": 1}]
    assert rows(table, "a = 1 AND c > 8") == [{"a": 1, "c": 9}]


def test_two_writers_evolve_at_once() -> None:
    table = new_table(f("a"), rows=[{"a": 1}])
    errors: list[BaseException] = []

    def add(at: int) -> None:
        try:
            tamis.open(table.path).alter().add_column(f"c{at}", BIG, default=str(at)).commit()
        except BaseException as error:  # looked at below
            errors.append(error)

    threads = [threading.Thread(target=add, args=(at,)) for at in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    assert rows(table) == [
        {"a": 1, **dict(sorted(((f"c{at}", at) for at in range(6)), key=lambda c: rows_order(table).index(c[0])))}
    ]
    head = tamis.open(table.path).snapshot.head
    assert [s.schema_id for s in head.schemas] == list(range(7))
    assert len({x.id for x in head.schemas[-1]}) == 7


def rows_order(table: tamis.Table) -> list[str]:
    return list(tamis.open(table.path).schema.names)


def test_a_name_that_has_become_another_column_is_a_conflict() -> None:
    table = new_table(f("a"), f("b"), f("c"))
    late = tamis.open(table.path)
    change = late.alter().drop_column("b")
    table.alter().drop_column("b").add_column("b", TEXT).commit()
    with pytest.raises(Conflict) as caught:
        change.commit()
    assert caught.value.code == "CONFLICT_COLUMN_CHANGED"
    assert tamis.open(table.path).schema.names == ["a", "c", "b"]


def test_one_of_two_registrations_wins_and_the_other_is_told() -> None:
    table = new_table(f("a"))
    other = tamis.open(table.path)
    assert table.compare_and_evolve_schema(0, pa.schema([f("a"), f("b")])) == 1
    with pytest.raises(SchemaMismatch) as caught:
        other.compare_and_evolve_schema(0, pa.schema([f("a"), f("c")]))
    assert isinstance(caught.value.schema, pa.Schema)
    assert (caught.value.current_id, caught.value.schema.names) == (1, ["a", "b"])
    assert other.compare_and_evolve_schema(0, pa.schema([f("a"), f("b")])) == 1


def test_widened_statistics_prune_exactly() -> None:
    table = new_table(f("i", INT), f("d", pa.date32()), f("n", pa.decimal128(5, 1)), f("x", pa.float32()))
    for at in range(4):
        row = {"i": at, "d": at, "n": None, "x": float(at)}
        table.append(pa.Table.from_pylist([row], schema=table.schema))
    table.alter().widen("i", "BIGINT").widen("d", "TIMESTAMP_NTZ").widen("n", "DECIMAL(9,3)").widen(
        "x", "DOUBLE"
    ).add_column("c", BIG, default="5").commit()
    for text in ("i = 3", "d = TIMESTAMP_NTZ'1970-01-04 00:00:00'", "x > 2.5D"):
        scan = table.scan(text)
        assert scan.count() == 1, text
        assert scan.report.parts.kept + scan.report.parts.answered == 1, text
    assert (table.scan("c = 5").count(), table.scan("c IS NULL").count()) == (4, 0)
    scan = table.scan("c = 6")
    assert scan.count() == 0
    assert scan.report.parts.kept == 0, "a column that is missing from a part is known to be its default"
    assert table.scan("n IS NOT NULL").plan().report.parts.kept == 0


def test_a_new_column_is_spelled_as_given(tmp_path: Path) -> None:
    """Also where one of the same letters goes in the same change."""
    table = tamis.create(tmp_path / "t", "x INT, b INT, s STRUCT<a: INT, b: INT>")
    change = table.alter().drop_column("b").add_column("B", "STRING").drop_column("S.b").add_column("S.B", "STRING")
    change.commit()
    assert table.schema.names == ["x", "s", "B"]
    assert [f.name for f in table.schema.field("s").type] == ["a", "B"]
