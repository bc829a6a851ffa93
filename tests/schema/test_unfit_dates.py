"""A DATE becomes TIMESTAMP_NTZ only if each of its days has a time there, and no part with another day comes in later."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

import tamis
from tamis import CorruptData, IncompatibleSchema, SchemaMismatch
from tamis.core.expr.unfit_dates import MOST_DAYS
from tamis.engine.operations.layout import compact, index_commits
from tamis.engine.operations.schema import constraint_validation, evolve
from tests.operations.constrained_tables import racing
from tests.schema.making import BIG, f, new_table

NTZ, DATE = "TIMESTAMP_NTZ", pa.date32()
DAY_MICROS = 86_400_000_000
BEYOND = MOST_DAYS + 1

Nested = Callable[[pa.Array], pa.Array]


def _lists(values: pa.Array) -> pa.Array:
    return pa.ListArray.from_arrays(pa.array(range(len(values) + 1), pa.int32()), values)


def _structs(values: pa.Array) -> pa.Array:
    return pa.StructArray.from_arrays([values], names=["x"])


def _maps(values: pa.Array) -> pa.Array:
    keys = pa.array(["a"] * len(values))
    return pa.MapArray.from_arrays(pa.array(range(len(values) + 1), pa.int32()), keys, values)


PLACES: dict[str, tuple[str, Nested]] = {
    "column": ("d", lambda v: v),
    "field": ("d.x", _structs),
    "element": ("d.element", _lists),
    "field of elements": ("d.element.x", lambda v: _lists(_structs(v))),
    "element in a field": ("d.x.element", lambda v: _structs(_lists(v))),
    "element of elements": ("d.element.element", lambda v: _lists(_lists(v))),
    "value": ("d.value", _maps),
}


@pytest.mark.parametrize("form", ["parquet", "vortex"])
@pytest.mark.parametrize("place", ["element", "value", "field of elements"])
def test_dates_of_deleted_rows_need_not_fit(form: str, place: str) -> None:
    """A file still has them, among the elements of its lists."""
    table = dated(*range(100), BEYOND, *range(100), place=place, format=form)
    assert table.delete("k = 100").rows_deleted == 1
    table.alter().widen(tuple(PLACES[place][0].split(".")), NTZ).commit()
    table.refresh()
    assert table.scan(order_by="k", limit=5).to_arrow()["k"].to_pylist() == [0, 1, 2, 3, 4]
    assert table.update({"k": "k + 1000"}, "k = 3").rows_updated == 1
    assert table.scan("k >= 1000").to_arrow()["k"].to_pylist() == [1003]


def days(*numbers: int | None, nested: Nested = lambda v: v, first: int = 0) -> pa.Table:
    """Rows with these days since 1970, numbered from ``first``."""
    dates = nested(pa.array(numbers, pa.int32()).cast(DATE))
    return pa.table({"k": range(first, first + len(numbers)), "d": dates})


def dated(*numbers: int | None, place: str = "column", **options: Any) -> tamis.Table:
    made = days(*numbers, nested=PLACES[place][1])
    table = new_table(f("k", BIG), f("d", made.schema.field("d").type), **options)
    table.append(made)
    return table


def micros(table: tamis.Table, row_filter: str | None = None) -> list[int | None]:
    found = tamis.open(table.path).scan(row_filter, ["d"]).to_arrow()["d"].combine_chunks()
    while pa.types.is_nested(found.type):
        found = (
            found.items
            if pa.types.is_map(found.type)
            else found.flatten()[0]
            if pa.types.is_struct(found.type)
            else found.flatten()
        )
    return found.cast(pa.int64()).to_pylist()


@pytest.mark.parametrize("day", [BEYOND, -BEYOND, 2**31 - 1, -(2**31)])
@pytest.mark.parametrize("place", PLACES)
def test_a_day_beyond_the_type_refuses_the_change(place: str, day: int) -> None:
    path = PLACES[place][0]
    table = dated(0, None, day, place=place)
    before = tamis.open(table.path)
    with pytest.raises(IncompatibleSchema, match="'d'") as caught:
        table.alter().widen(path, NTZ).add_column("more", "INT").commit()
    assert (caught.value.code, caught.value.name) == ("MIGRATION_TYPE_CHANGE", "d")
    assert (tamis.open(table.path).version, before.scan().to_arrow()["d"].null_count) == (1, int(place == "column"))
    table.delete("k = 2")
    table.alter().widen(path, NTZ).commit()
    assert micros(table) == [0, None]
    with pytest.raises(IncompatibleSchema):
        table.restore(1)
    assert micros(table) == [0, None]


@pytest.mark.parametrize("place", PLACES)
def test_the_last_days_of_the_type_are_kept(place: str) -> None:
    table = dated(-MOST_DAYS, None, 0, MOST_DAYS, place=place)
    table.alter().widen(PLACES[place][0], NTZ).commit()
    assert micros(table) == [-MOST_DAYS * DAY_MICROS, None, 0, MOST_DAYS * DAY_MICROS]


@pytest.mark.parametrize("place", ["column", "field", "element", "field of elements"])
def test_days_that_statistics_bound_are_not_read(place: str) -> None:
    table = dated(0, None, 20_000, place=place)
    table.append(days(*range(30_000, 30_050), nested=PLACES[place][1]))
    table.alter().widen(PLACES[place][0], NTZ).commit()
    report = tamis.reports()[0]
    assert (report.parts["total"], report.parts["kept"], len(micros(table))) == (2, 0, 53)


def test_days_without_statistics_are_read() -> None:
    for last in (20_000, BEYOND):
        table = dated(0, last, properties={"tamis.stats.collect": "off"})
        if last == BEYOND:
            with pytest.raises(IncompatibleSchema):
                table.alter().widen("d", NTZ).commit()
        else:
            table.alter().widen("d", NTZ).commit()
            assert micros(table) == [0, last * DAY_MICROS]


def test_an_append_that_widens_tests_the_days_that_are_there() -> None:
    table = dated(0, BEYOND)
    more = pa.table({"k": [9], "d": pa.array([0], pa.timestamp("us"))})
    with pytest.raises(IncompatibleSchema):
        table.append(more, merge_schema=True)
    table.delete("k = 1")
    table.append(more, merge_schema=True)
    assert micros(table) == [0, 0]


def test_a_new_check_and_a_wider_type_are_tested_together() -> None:
    table = dated(0, BEYOND)
    with pytest.raises(IncompatibleSchema):
        table.alter().widen("d", NTZ).add_check("low", "k < 9").commit()
    with pytest.raises(SchemaMismatch):
        table.alter().widen("k", "BIGINT").add_check("low", "k < 1").commit()
    table.delete("k = 1")
    table.alter().widen("d", NTZ).add_check("low", "k < 9").commit()
    assert micros(table, "d < '2020-01-01'") == [0]


@pytest.mark.parametrize("place", ["column", "value"])
def test_a_day_that_comes_between_the_test_and_the_commit_is_tested(
    place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = dated(0, place=place)
    other = tamis.open(table.path)
    calls = racing(monkeypatch, evolve, "commit", lambda: other.append(days(BEYOND, nested=PLACES[place][1])))
    with pytest.raises(IncompatibleSchema):
        table.alter().widen(PLACES[place][0], NTZ).commit()
    assert (len(calls), tamis.open(table.path).schema_id) == (1, 0)


def test_a_day_that_provably_fits_does_not_delay_the_commit(monkeypatch: pytest.MonkeyPatch) -> None:
    table = dated(0)
    other = tamis.open(table.path)
    calls = racing(monkeypatch, evolve, "commit", lambda: other.append(days(1)))
    table.alter().widen("d", NTZ).commit()
    assert (len(calls), micros(table)) == (1, [0, DAY_MICROS])


@pytest.mark.parametrize("day", [5, BEYOND])
def test_a_writer_of_the_older_schema_brings_no_day_beyond_the_type(day: int, monkeypatch: pytest.MonkeyPatch) -> None:
    table = dated(0)
    other = tamis.open(table.path)
    racing(monkeypatch, index_commits, "commit", lambda: other.alter().widen("d", NTZ).commit())
    if day == BEYOND:
        with pytest.raises(SchemaMismatch, match="date") as caught:
            table.append(days(day))
        assert (caught.value.code, micros(table)) == ("SCHEMA_CHANGED", [0])
    else:
        table.append(days(day))
        assert micros(table) == [0, day * DAY_MICROS]


def test_a_change_of_the_type_does_not_end_a_compaction(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without statistics it is not known that the days fit; the change has read them."""
    table = dated(0, properties={"tamis.stats.collect": "off"})
    for day in (1, 2, 3):
        table.append(days(day))
    other = tamis.open(table.path)
    calls = racing(monkeypatch, compact, "commit", lambda: other.alter().widen("d", NTZ).commit())
    done = table.compact()
    assert (len(calls), done.parts_removed, done.conflicts) == (1, 4, 0)
    assert micros(tamis.open(table.path)) == [n * DAY_MICROS for n in range(4)]


@pytest.mark.parametrize("lazy", ["on", "off"])
def test_a_day_that_an_earlier_release_let_in_is_named(lazy: str, monkeypatch: pytest.MonkeyPatch) -> None:
    table = dated(0, BEYOND)
    with monkeypatch.context() as patched:
        patched.setattr(constraint_validation, "unfit_dates", lambda *_: [], raising=False)
        table.alter().widen("d", NTZ).commit()
    options = {"tamis.read.lazy": lazy}
    with pytest.raises(CorruptData, match="'d'") as caught:
        table.scan(options=options).to_arrow()
    assert caught.value.name == "d"
    assert table.scan("k >= 0", ["k"], options=options).to_arrow().num_rows == 2
    assert table.delete("k = 1").rows_deleted == 1
    assert micros(table) == [0]
