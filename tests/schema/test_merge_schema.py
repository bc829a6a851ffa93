"""Appends with ``merge_schema``: what the data brings is added or widened in one commit, and nothing else changes."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

import tamis
from tamis import IncompatibleSchema, SchemaFenced, SchemaMismatch
from tamis.engine.operations.schema import alter
from tamis.engine.operations.schema.evolve import commit_schema
from tests.schema.making import BIG, INT, TEXT, f, new_table, rows

DAY = dt.date(2020, 1, 2)
WIDER = {
    "tinyint to int": (pa.int8(), 1, INT, 70_000, 1),
    "int to bigint": (INT, 1, BIG, 2**40, 1),
    "float to double": (pa.float32(), 0.5, pa.float64(), 0.1, 0.5),
    "date to timestamp_ntz": (
        *(pa.date32(), DAY, pa.timestamp("us"), dt.datetime(2021, 1, 1, 5)),
        dt.datetime(2020, 1, 2),  # as Spark shows the day
    ),
    "decimal": (
        *(pa.decimal128(5, 2), Decimal("1.25"), pa.decimal128(12, 4), Decimal("12345678.1234")),
        Decimal("1.2500"),
    ),
}


@pytest.mark.parametrize(("old", "first", "new", "second", "shown"), WIDER.values(), ids=list(WIDER))
def test_a_wider_type_widens_the_column(
    old: pa.DataType, first: Any, new: pa.DataType, second: Any, shown: Any
) -> None:
    table = new_table(f("a", old), f("b"), rows=[{"a": first, "b": 1}])
    more = pa.table({"a": pa.array([second], new), "b": [2], "c": ["x"]})
    table.append(more, merge_schema=True)
    assert rows(table) == [{"a": shown, "b": 1, "c": None}, {"a": second, "b": 2, "c": "x"}]
    after = tamis.open(table.path)
    assert (after.schema.field("a").type, after.version, after.schema_id) == (new, 3, 1), "one commit, then the rows"
    assert rows(table, "b = 1 AND c IS NULL", ["a"]) == [{"a": shown}]


def test_columns_within_others_widen() -> None:
    kinds = [pa.struct([f("x", INT)]), pa.list_(INT), pa.map_(INT, INT)]
    wider = [pa.struct([f("x", BIG)]), pa.list_(BIG), pa.map_(INT, BIG)]
    table = new_table(*(f(name, kind) for name, kind in zip("slm", kinds, strict=True)))
    table.append(
        pa.table(
            {"s": pa.array([{"x": 1}], kinds[0]), "l": pa.array([[1]], kinds[1]), "m": pa.array([[(1, 1)]], kinds[2])}
        )
    )
    big = 2**40
    table.append(
        pa.table(
            {
                "s": pa.array([{"x": big}], wider[0]),
                "l": pa.array([[big]], wider[1]),
                "m": pa.array([[(1, big)]], wider[2]),
            }
        ),
        merge_schema=True,
    )
    assert rows(table) == [
        {"s": {"x": 1}, "l": [1], "m": [(1, 1)]},
        {"s": {"x": big}, "l": [big], "m": [(1, big)]},
    ]


def test_without_being_asked_no_type_changes() -> None:
    table = new_table(f("a", INT))
    table.append(pa.table({"a": [1]}))
    with pytest.raises(SchemaMismatch):
        table.append(pa.table({"a": [2**40]}))
    assert (rows(table), tamis.open(table.path).schema_id) == ([{"a": 1}], 0)


@pytest.mark.parametrize(
    ("column", "data"),
    [
        (BIG, pa.array(["x"])),
        (TEXT, pa.array([1])),
        (INT, pa.array([0.5])),
        (pa.float32(), pa.array([Decimal("1.5")])),
        (pa.decimal128(5, 2), pa.array([Decimal("123456.7")])),
        (pa.timestamp("us"), pa.array(["x"])),
    ],
)
def test_what_does_not_widen_is_the_same_error_as_before(column: pa.DataType, data: pa.Array) -> None:
    table = new_table(f("a", column))
    errors = []
    for merge in (False, True):
        with pytest.raises(SchemaMismatch) as caught:
            table.append(pa.table({"a": data}), merge_schema=merge)
        errors.append((caught.value.code, caught.value.message))
    assert errors[0] == errors[1]
    assert tamis.open(table.path).version == 0


def test_a_narrower_type_is_converted() -> None:
    table = new_table(f("a", BIG))
    table.append(pa.table({"a": pa.array([1], INT)}), merge_schema=True)
    assert (rows(table), tamis.open(table.path).schema_id) == ([{"a": 1}], 0)


def test_readers_of_a_widened_column_are_fenced_and_the_policy_holds() -> None:
    table = new_table(f("a", INT), f("b"), rows=[{"a": 1, "b": 1}])
    held = tamis.open(table.path)
    table.append(pa.table({"a": [2], "b": [2]}), merge_schema=True)
    assert held.scan("b = 2", ["b"]).count() == 1
    with pytest.raises(SchemaFenced):
        held.scan().to_arrow()
    strict = new_table(f("a", INT), properties={"tamis.schema.policy": "forward"})
    with pytest.raises(IncompatibleSchema) as caught:
        strict.append(pa.table({"a": [2]}), merge_schema=True)
    assert caught.value.code == "FORWARD_ONLY"
    assert rows(strict) == []


def test_two_appends_bring_the_same_change(monkeypatch: pytest.MonkeyPatch) -> None:
    """The other one commits between this one's look at the table and its commit, and brings a still wider type."""
    table = new_table(f("a", pa.int8()))
    other = tamis.open(table.path)
    done: list[bool] = []

    def after_the_other(*arguments: Any, **named: Any) -> Any:
        if not done:
            done.append(True)
            other.append(pa.table({"a": [2**40], "c": ["x"]}), merge_schema=True)
        return commit_schema(*arguments, **named)

    monkeypatch.setattr(alter, "commit_schema", after_the_other)
    table.append(pa.table({"a": pa.array([2], INT), "c": ["y"], "d": [1]}), merge_schema=True)
    assert rows(table) == [{"a": 2**40, "c": "x", "d": None}, {"a": 2, "c": "y", "d": 1}]
    assert tamis.open(table.path).schema.field("a").type == BIG


def test_a_clustering_column_widens_and_keeps_its_order() -> None:
    table = new_table(f("a", INT), f("b"), cluster_by=["a", "b"], rows=[{"a": a % 7, "b": a} for a in range(50)])
    more = pa.table({"a": [2**40, 3], "b": [1, 100]})
    table.append(more, merge_schema=True)
    assert tamis.open(table.path).metadata("parts")["ordered"].to_pylist() == [True, True]
    assert rows(table, "a = 3 AND b >= 45") == [{"a": 3, "b": 45}, {"a": 3, "b": 100}]
    assert rows(table, "a > 6 AND b = 1") == [{"a": 2**40, "b": 1}]


def swapped(path: str) -> None:
    """Swap the names of ``a`` and ``b``."""
    for name, to in (("a", "spare"), ("b", "a"), ("spare", "b")):
        tamis.open(path).alter().rename_column(name, to).commit()


def renamed(path: str) -> None:
    tamis.open(path).alter().rename_column("a", "amount").commit()


def dropped(path: str) -> None:
    tamis.open(path).alter().drop_column("a").commit()


CHANGES = pytest.mark.parametrize("change", [swapped, renamed, dropped])


@CHANGES
@pytest.mark.parametrize("names", [["a", "b"], ["a", "b", "c"], ["b", "c"]])
def test_an_object_whose_names_have_changed_meaning_merges_nothing(
    change: Callable[[str], None], names: list[str]
) -> None:
    """Its rows would go into other columns, or into a new column of an old name."""
    held = new_table(f("a", INT), f("b", INT))
    change(held.path)
    with pytest.raises(SchemaMismatch) as caught:
        held.append(pa.table({name: pa.array([1], INT) for name in names}), merge_schema=True)
    assert caught.value.code == "SCHEMA_CHANGED"
    now = tamis.open(held.path)
    assert "c" not in now.schema.names
    assert now.scan().count() == 0
    held.append(pa.table({"b": pa.array([7], INT)}))
    assert rows(tamis.open(held.path), "a = 7" if change is swapped else "b = 7") != [], "by the schema that it holds"
    held.refresh().append(pa.table({"b": pa.array([2], INT), "c": pa.array([3], INT)}), merge_schema=True)
    assert tamis.open(held.path).scan("c = 3").count() == 1


def test_names_that_change_during_a_merge_end_it(monkeypatch: pytest.MonkeyPatch) -> None:
    held = new_table(f("a", INT), f("b", INT))

    def after_the_rename(*arguments: Any, **named: Any) -> Any:
        monkeypatch.setattr(alter, "commit_schema", commit_schema)
        renamed(held.path)
        return commit_schema(*arguments, **named)

    monkeypatch.setattr(alter, "commit_schema", after_the_rename)
    with pytest.raises(SchemaMismatch) as caught:
        held.append(pa.table({"a": pa.array([1], INT), "c": pa.array([1], INT)}), merge_schema=True)
    assert caught.value.code == "SCHEMA_CHANGED"


def test_columns_that_others_added_do_not_end_a_merge() -> None:
    held = new_table(f("a", INT))
    tamis.open(held.path).alter().add_column("b", INT).commit()
    held.append(
        pa.table({"a": pa.array([1], INT), "b": pa.array([2], INT), "c": pa.array([3], INT)}), merge_schema=True
    )
    assert rows(held) == [{"a": 1, "b": 2, "c": 3}]
