"""What rows older than a column show of it is what its default was, whatever changes within the column afterwards."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

import tamis
from tamis import IncompatibleSchema, InvalidInput
from tamis.core.schema.carried_defaults import carried_schemas, check_default_texts
from tamis.core.types import (
    DATE,
    DOUBLE,
    FLOAT,
    INTEGER,
    STRING,
    TIMESTAMP_NTZ,
    Array,
    DataType,
    Field,
    Map,
    Schema,
    Struct,
)
from tamis.engine.operations.schema.alter import Alteration
from tamis.storage.commit_log.head_json import head_from_json, head_to_json
from tamis.table.alter_builder import Alter
from tests.schema.making import f, new_table, rows

NTZ = "TIMESTAMP_NTZ"
DAY, TIME = dt.date(2020, 1, 1), dt.datetime(2020, 1, 1)
PAIR = Field("s", Struct((Field("a", INTEGER), Field("b", INTEGER))), initial_default={"a": 1, "b": 2})
DAYS = Field("l", Array(Field("element", DATE)), initial_default=[18262])
WORDS = Field(
    "m",
    Map(Field("key", STRING, False), Field("value", Struct((Field("d", DATE), Field("n", INTEGER))))),
    initial_default=[["x", {"d": 18262, "n": 1}], ["y", None]],
)


def older(*columns: Field) -> tamis.Table:
    """A table with a row that is older than these columns, whose defaults Spark SQL could have given them."""
    table = new_table(f("k"), rows=[{"k": 1}])
    change = Alteration(table.store, table.snapshot)
    for column in columns:
        change.add((column.name,), column)
    change.commit()
    return table.refresh()


CHANGES: dict[str, tuple[Field, Callable[[Alter], Alter], Any]] = {
    "nothing": (PAIR, lambda a: a.add_column("other", "INT"), {"a": 1, "b": 2}),
    "rename": (PAIR, lambda a: a.rename_column("s.a", "c"), {"c": 1, "b": 2}),
    "case": (PAIR, lambda a: a.rename_column("s.a", "A"), {"A": 1, "b": 2}),
    "swap": (PAIR, lambda a: a.rename_column("s.a", "x").rename_column("s.b", "a").rename_column("s.x", "b"), {"b": 1, "a": 2}),
    "drop": (PAIR, lambda a: a.drop_column("s.b"), {"a": 1}),
    "again": (PAIR, lambda a: a.drop_column("s.b").add_column("s.b", "BIGINT"), {"a": 1, "b": None}),
    "name of another": (PAIR, lambda a: a.rename_column("s.b", "z").add_column("s.b", "STRING"), {"a": 1, "z": 2, "b": None}),
    "move": (PAIR, lambda a: a.move_column("s.b", first=True), {"b": 2, "a": 1}),
    "widen": (PAIR, lambda a: a.widen("s.a", "BIGINT"), {"a": 1, "b": 2}),
    "whole": (PAIR, lambda a: a.rename_column("s", "t").rename_column("t.a", "c").rename_column("t", "s"), {"c": 1, "b": 2}),
    "dates": (DAYS, lambda a: a.widen("l.element", NTZ), [TIME]),
    "map: widen": (WORDS, lambda a: a.widen("m.value.d", NTZ), [("x", {"d": TIME, "n": 1}), ("y", None)]),
    "map: rename": (WORDS, lambda a: a.rename_column("m.value.n", "o"), [("x", {"d": DAY, "o": 1}), ("y", None)]),
}  # fmt: skip


@pytest.mark.parametrize("steps", ["one commit", "several"])
@pytest.mark.parametrize("name", CHANGES)
def test_a_change_within_a_column_keeps_its_default(name: str, steps: str) -> None:
    column, change, shown = CHANGES[name]
    table = older(column)
    held = tamis.open(table.path)
    before = rows(held)
    if steps == "several":
        table.alter().set_comment("k", "first").commit()
    change(table.alter()).commit()
    assert [row[column.name] for row in rows(table)] == [shown]
    assert tamis.open(table.path).schema_id == (3 if steps == "several" else 2)
    if name not in {"drop", "again", "widen", "dates", "map: widen"}:  # else it is fenced
        assert held.scan().to_arrow().to_pylist() == before, "a reader of the older schema has its own names"
    table.append(pa.table({"k": [2]}))
    table.compact()
    assert [row[column.name] for row in rows(table, "k = 1")] == [shown], "as in the file that was written now"


def test_filters_find_the_default_under_its_new_name() -> None:
    table = older(PAIR)
    table.alter().rename_column("s.a", "c").commit()
    assert [table.scan(text).count() for text in ("s.c = 1", "s.c IS NULL", "s.b = 2")] == [1, 0, 1]
    assert table.delete("s.c IS NULL").rows_deleted == 0
    table.alter().drop_column("s.b").add_column("s.b", "BIGINT").commit()
    assert [table.scan(text).count() for text in ("s.b = 2", "s.b IS NULL")] == [0, 1]


def test_a_schema_given_by_field_ids_keeps_the_default() -> None:
    table = older(PAIR)
    s = table.schema.field("s")
    inner = [one.with_name({"a": "c"}.get(one.name, one.name)) for one in s.type]
    table.compare_and_evolve_schema(1, pa.schema([table.schema.field("k"), s.with_type(pa.struct(inner))]))
    assert rows(table) == [{"k": 1, "s": {"c": 1, "b": 2}}]


def test_an_append_that_widens_keeps_the_default() -> None:
    table = older(DAYS)
    table.append(pa.table({"k": [2], "l": pa.array([[TIME]], pa.list_(pa.timestamp("us")))}), merge_schema=True)
    assert rows(table) == [{"k": 1, "l": [TIME]}, {"k": 2, "l": [TIME]}]


def test_a_column_that_is_added_in_the_same_commit_keeps_its_default() -> None:
    table = new_table(f("k"), rows=[{"k": 1}])
    table.alter().add_column("d", "DATE", default="DATE'2020-01-01'").widen("d", NTZ).commit()
    change = Alteration(table.store, table.refresh().snapshot)
    change.add(("s",), PAIR)
    change.rename(("s", "a"), "c")
    change.commit()
    assert rows(table) == [{"k": 1, "d": TIME, "s": {"c": 1, "b": 2}}]


@pytest.mark.parametrize(
    ("kind", "default", "wider", "shown"),
    [
        ("INT", 5, "BIGINT", 5),
        ("FLOAT", "CAST(0.1 AS FLOAT)", "DOUBLE", float(pa.scalar(0.1, pa.float32()).as_py())),
        ("DATE", "DATE'2020-01-01'", NTZ, TIME),
    ],
)
def test_defaults_of_plain_columns_follow_renames_and_wider_types(
    kind: str, default: Any, wider: str, shown: Any
) -> None:
    table = new_table(f("k"), rows=[{"k": 1}])
    table.alter().add_column("c", kind, default=default).commit()
    table.alter().rename_column("c", "e").widen("e", wider).commit()
    table.alter().add_column("more", "INT").commit()
    assert rows(table, "e IS NOT NULL") == [{"k": 1, "e": shown, "more": None}]


def test_the_value_of_a_float_is_that_of_its_own_type() -> None:
    """Other writers give a default in decimal digits, which a FLOAT rounds before it becomes a DOUBLE."""
    before = Schema((Field("x", FLOAT, id=1, initial_default=0.1),))
    after = Schema((Field("x", DOUBLE, id=1, initial_default=0.1),), 1)
    assert carried_schemas([before, after])[1].fields[0].initial_default == pa.scalar(0.1, pa.float32()).as_py()


@pytest.mark.parametrize(
    "column",
    [
        Field("d", DATE, initial_default=200_000_000),
        Field("d", Array(Field("element", DATE)), initial_default=[200_000_000]),
    ],
)
def test_a_default_beyond_the_new_type_refuses_it(column: Field) -> None:
    table = older(column)
    with pytest.raises(IncompatibleSchema, match="'d'") as caught:
        table.alter().widen("d.element" if isinstance(column.type, Array) else "d", NTZ).commit()
    assert (caught.value.code, tamis.open(table.path).schema_id) == ("MIGRATION_TYPE_CHANGE", 1)


def test_a_head_of_an_earlier_release_is_read_with_the_right_defaults() -> None:
    """Earlier releases changed the columns and left the defaults, in this schema and in all that followed."""
    table = older(PAIR, DAYS, WORDS)
    table.alter().rename_column("s.a", "c").widen("l.element", NTZ).widen("m.value.d", NTZ).commit()
    table.alter().drop_column("s.b").add_column("s.b", "STRING").commit()
    table.alter().add_column("more", "INT").commit()
    head = table.snapshot.head
    value = head_to_json(head)
    for schema in value["schemas"][2:]:
        for column in schema["fields"]:
            known = {one.name: one.initial_default for one in (PAIR, DAYS, WORDS)}
            if column["name"] in known:
                column["initial_default"] = known[column["name"]]
    assert head_to_json(head) != value
    assert head_from_json(value) == head
    defaults = {one.name: one.initial_default for one in head.schemas[-1]}
    assert defaults == {
        "k": None,
        "s": {"c": 1, "b": None},
        "l": [1577836800000000],
        "m": [["x", {"d": 1577836800000000, "n": 1}], ["y", None]],
        "more": None,
    }


WRITTEN = replace(PAIR, write_default="named_struct('a', 1, 'b', 2)")


@pytest.mark.parametrize("name", ["drop", "again", "name of another", "move", "add"])
def test_fields_do_not_move_under_a_default_that_gives_them_by_position(name: str) -> None:
    """Spark would give new rows the values of other fields, or read the table no more."""
    change = CHANGES[name][1] if name in CHANGES else lambda a: a.add_column("s.c", "INT")
    shown = CHANGES[name][2] if name in CHANGES else {"a": 1, "b": 2, "c": None}
    table = older(WRITTEN)
    with pytest.raises(InvalidInput, match="'s'") as caught:
        change(table.alter()).commit()
    assert (caught.value.code, tamis.open(table.path).schema_id) == ("BAD_DEFAULT", 1)
    change(table.alter().set_default("s", None)).commit()
    assert rows(table) == [{"k": 1, "s": shown}]


@pytest.mark.parametrize("name", ["nothing", "rename", "case", "swap", "widen", "whole"])
def test_other_names_and_types_keep_the_text_of_a_default(name: str) -> None:
    table = older(WRITTEN, Field("n", WRITTEN.type, write_default="NULL"))
    CHANGES[name][1](table.alter()).drop_column("n.a").commit()
    assert rows(table) == [{"k": 1, "s": CHANGES[name][2], "n": None, **({"other": None} if name == "nothing" else {})}]
    assert tamis.open(table.path).snapshot.head.schemas[-1].fields[1].write_default == WRITTEN.write_default


@pytest.mark.parametrize(("kind", "broken"), [(INTEGER, "soon"), (TIMESTAMP_NTZ, [1])])
def test_a_default_that_cannot_be_carried_stays_to_be_reported(kind: DataType, broken: Any) -> None:
    before = Schema((Field("c", INTEGER, id=1, initial_default="soon"),))
    after = Schema((Field("c", kind, id=1, initial_default=broken),), 1)
    assert carried_schemas([before, after]) == (before, after)


@pytest.mark.parametrize("text", ["array()", " ARRAY ( ) ", "NULL", "CAST(NULL AS ARRAY<STRUCT<a: INT>>)", "map()"])
def test_a_default_without_fields_stands_in_the_way_of_none(text: str) -> None:
    items = Array(Field("element", Struct((Field("a", INTEGER, True, 3),)), True, 2))
    before = Schema((Field("tags", items, True, 1, write_default=text),))
    more = Array(Field("element", Struct((Field("b", INTEGER, True, 4), Field("a", INTEGER, True, 3))), True, 2))
    check_default_texts(before, Schema((replace(before.fields[0], type=more),)))
    given = replace(before.fields[0], write_default="array(named_struct('a', 1))")
    with pytest.raises(InvalidInput, match="'tags'"):
        check_default_texts(Schema((given,)), Schema((replace(given, type=more),)))
