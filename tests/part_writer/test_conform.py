"""Data that fits comes out as the table's; data that does not is refused, naming the column and the remedy."""

import datetime as dt
from collections.abc import Callable
from decimal import Decimal as PyDecimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamis.core.types import (
    BINARY,
    BYTE,
    DATE,
    DOUBLE,
    FLOAT,
    LONG,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    VARIANT,
    Array,
    DataType,
    DayTimeInterval,
    Decimal,
    Field,
    Map,
    Schema,
    String,
    Struct,
    Time,
)
from tamis.core.types.arrow import to_arrow_schema
from tamis.engine.part_writer import conform_batches
from tamis.errors import InvalidInput, SchemaMismatch, TamisError
from tests.values import nested_rows, nested_schema


def one(data: pa.Array, data_type: DataType, nullable: bool = True) -> pa.Array:
    schema = Schema((Field("c", data_type, nullable, id=1),))
    (batch,) = conform_batches(pa.record_batch([data], names=["c"]), schema)
    assert batch.schema.equals(to_arrow_schema(schema), check_metadata=True)
    batch.validate(full=True)
    return batch.column(0)


FITS: list[tuple[pa.Array, DataType, list[Any]]] = [
    (pa.array([1, None], pa.uint8()), LONG, [1, None]),
    (pa.array([1, 2], pa.int64()), BYTE, [1, 2]),
    (pa.array([2**64 - 1], pa.uint64()), Decimal(20, 0), [PyDecimal(2**64 - 1)]),
    (pa.array([7], pa.int32()), Decimal(10, 2), [PyDecimal("7.00")]),
    (pa.array([7], pa.int64()), Decimal(38, 30), [PyDecimal(7)]),
    (pa.array([PyDecimal("1.50")]), Decimal(10, 1), [PyDecimal("1.5")]),
    (pa.array([2**53], pa.int64()), DOUBLE, [2.0**53]),
    (pa.array([1.5], pa.float32()), DOUBLE, [1.5]),
    (pa.array([3], pa.int8()), FLOAT, [3.0]),
    (pa.array(["a", None]).dictionary_encode(), STRING, ["a", None]),
    (pa.array(["a"], pa.large_string()), STRING, ["a"]),
    (pa.array(["a"], pa.string_view()), STRING, ["a"]),
    (pa.array([b"ab"], pa.binary(2)), BINARY, [b"ab"]),
    (pa.array([dt.date(1500, 1, 1)], pa.date64()), DATE, [dt.date(1500, 1, 1)]),
    (
        pa.array([1_000], pa.timestamp("ns", tz="Europe/Paris")),
        TIMESTAMP,
        [dt.datetime(1970, 1, 1, 0, 0, 0, 1, tzinfo=dt.UTC)],
    ),
    (pa.array([1], pa.timestamp("s")), TIMESTAMP_NTZ, [dt.datetime(1970, 1, 1, 0, 0, 1)]),
    (pa.array([5], pa.time32("s")), Time(6), [dt.time(0, 0, 5)]),
    (pa.array([5], pa.duration("s")), DayTimeInterval(), [dt.timedelta(seconds=5)]),
    (pa.nulls(2), STRING, [None, None]),
    (pa.nulls(1), Struct((Field("x", LONG, id=2),)), [None]),
    (pa.array([[1], None], pa.large_list(pa.int32())), Array(Field("element", LONG, id=2)), [[1], None]),
    (pa.array([[1, 2]], pa.list_(pa.int32(), 2)), Array(Field("element", LONG, id=2)), [[1, 2]]),
    (pa.array([[9], [1], None, [2]])[1:], Array(Field("element", BYTE, id=2)), [[1], None, [2]]),
    (
        pa.array([{"B": 1, "a": 2}]),
        Struct((Field("a", LONG, id=2), Field("b", LONG, id=3), Field("c", LONG, id=4))),
        [{"a": 2, "b": 1, "c": None}],
    ),
    (pa.array([{"value": b"v", "metadata": b"m"}, None]), VARIANT, [{"value": b"v", "metadata": b"m"}, None]),
    (pa.array(["ab", "abc", None, "abc  "]), String("char", 3), ["ab ", "abc", None, "abc"]),
    (pa.array(["ab", "é  "]), String("varchar", 2), ["ab", "é "]),
]


@pytest.mark.parametrize(
    ("data", "data_type", "expected"),
    FITS,
    ids=lambda v: str(v)[:20].replace("\n", "") if isinstance(v, DataType) else "",
)
def test_what_fits(data: pa.Array, data_type: DataType, expected: list[Any]) -> None:
    assert one(data, data_type).to_pylist() == expected


MISFITS: list[tuple[pa.Array, DataType, type[TamisError], str]] = [
    (pa.array([300]), BYTE, SchemaMismatch, "VALUE_MISMATCH"),
    (pa.array([2**53 + 1]), DOUBLE, SchemaMismatch, "VALUE_MISMATCH"),
    (pa.array([1.5]), FLOAT, SchemaMismatch, "TYPE_MISMATCH"),
    (pa.array([1.0]), LONG, SchemaMismatch, "TYPE_MISMATCH"),
    (pa.array(["1"]), LONG, SchemaMismatch, "TYPE_MISMATCH"),
    (pa.array([1]), STRING, SchemaMismatch, "TYPE_MISMATCH"),
    (pa.array([PyDecimal("1.55")]), Decimal(10, 1), SchemaMismatch, "VALUE_MISMATCH"),
    (pa.array([10**8]), Decimal(5, 0), SchemaMismatch, "VALUE_MISMATCH"),
    (pa.array([1], pa.timestamp("ns")), TIMESTAMP_NTZ, SchemaMismatch, "VALUE_MISMATCH"),
    (pa.array([1], pa.timestamp("us")), TIMESTAMP, SchemaMismatch, "TYPE_MISMATCH"),
    (pa.array([1], pa.timestamp("us", tz="UTC")), TIMESTAMP_NTZ, SchemaMismatch, "TYPE_MISMATCH"),
    (pa.array(["abcd"]), String("varchar", 3), InvalidInput, "TOO_LONG"),
    (pa.array(["abcd"]), String("char", 3), InvalidInput, "TOO_LONG"),
    (pa.array([{"x": 1}]), VARIANT, SchemaMismatch, "TYPE_MISMATCH"),
    (pa.array([{"x": 1, "z": 1}]), Struct((Field("x", LONG, id=2),)), SchemaMismatch, "EXTRA_COLUMN"),
    (
        pa.array([{}], pa.struct([])),
        Struct((Field("x", LONG, nullable=False, id=2),)),
        SchemaMismatch,
        "MISSING_COLUMN",
    ),
    (pa.array([[1, None]]), Array(Field("element", LONG, nullable=False, id=2)), SchemaMismatch, "NULL_IN_REQUIRED"),
    (
        pa.array([[("k", None)]], pa.map_(pa.string(), pa.int64())),
        Map(Field("key", STRING, False, id=2), Field("value", LONG, False, id=3)),
        SchemaMismatch,
        "NULL_IN_REQUIRED",
    ),
    (
        pa.array([{"x": None}], pa.struct([("x", pa.int64())])),
        Struct((Field("x", LONG, nullable=False, id=2),)),
        SchemaMismatch,
        "NULL_IN_REQUIRED",
    ),
]


@pytest.mark.parametrize(("data", "data_type", "error", "code"), MISFITS, ids=lambda v: v if isinstance(v, str) else "")
def test_what_does_not_fit(data: pa.Array, data_type: DataType, error: type[TamisError], code: str) -> None:
    with pytest.raises(error) as raised:
        one(data, data_type)
    assert (raised.value.code, raised.value.name[0], bool(raised.value.remedy)) == (code, raised.value.name[0], True)


def test_required_field_of_a_null_struct_is_fine() -> None:
    kind = Struct((Field("x", LONG, nullable=False, id=2), Field("y", LONG, id=3)))
    data = pa.array([{"x": 1, "y": 1}, None, {"x": 3, "y": None}])
    assert one(data, kind).to_pylist() == [{"x": 1, "y": 1}, None, {"x": 3, "y": None}]


def test_values_that_no_list_shows_need_not_fit() -> None:
    hidden = pa.ListArray.from_arrays(pa.array([0, 1, 2]), pa.array([300, 1]), mask=pa.array([True, False]))
    assert one(hidden, Array(Field("element", BYTE, nullable=False, id=2))).to_pylist() == [None, [1]]


def test_values_that_no_map_shows_need_not_fit() -> None:
    hidden = pa.array([[("k", 300)], [("l", 1)]], pa.map_(pa.string(), pa.int64()))[1:]
    kind = Map(Field("key", STRING, nullable=False, id=2), Field("value", BYTE, id=3))
    assert one(hidden, kind).to_pylist() == [[("l", 1)]]


TABLE = Schema((Field("Id", LONG, nullable=False, id=1), Field("name", STRING, id=2)))


def test_columns_by_name_in_any_order_and_case() -> None:
    (batch,) = conform_batches(pa.table({"NAME": ["a"], "id": [1]}), TABLE)
    assert batch.to_pylist() == [{"Id": 1, "name": "a"}]


def test_missing_nullable_column_is_null() -> None:
    assert next(conform_batches(pa.table({"id": [1]}), TABLE)).to_pylist() == [{"Id": 1, "name": None}]


@pytest.mark.parametrize(
    ("data", "code", "name"),
    [
        (pa.table({"name": ["a"]}), "MISSING_COLUMN", "Id"),
        (pa.table({"id": [1], "nmae": ["a"]}), "EXTRA_COLUMN", "nmae"),
        (pa.table([[1], [2]], names=["id", "ID"]), "DUPLICATE_COLUMN", "Id"),
    ],
)
def test_names_are_checked_before_the_first_batch(data: pa.Table, code: str, name: str) -> None:
    with pytest.raises(SchemaMismatch) as raised:
        conform_batches(data.to_reader(), TABLE)
    assert (raised.value.code, raised.value.name) == (code, name)


def test_null_in_a_required_column() -> None:
    with pytest.raises(SchemaMismatch, match="'Id' is NOT NULL"):
        list(conform_batches(pa.table({"id": pa.array([None], pa.int64())}), TABLE))


def test_batches_that_fit_already_are_passed_on() -> None:
    batch = pa.record_batch([[1], ["a"]], schema=to_arrow_schema(TABLE))
    assert next(conform_batches([batch], TABLE, fitted=True)) is batch


def widened(kind: pa.DataType) -> pa.DataType:
    """Another Arrow type that holds the same values."""
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(f.name.upper(), widened(f.type)) for f in reversed(list(kind))])
    if pa.types.is_map(kind):
        return pa.map_(widened(kind.key_type), widened(kind.item_type))
    if pa.types.is_list(kind):
        return pa.list_(widened(kind.value_type))
    again: dict[Callable[[pa.DataType], bool], pa.DataType] = {
        pa.types.is_int32: pa.int64(),
        pa.types.is_string: pa.large_string(),
    }
    return next((to for of, to in again.items() if of(kind)), kind)


def renamed(value: Any) -> Any:
    if isinstance(value, dict):
        return {k.upper(): renamed(v) for k, v in value.items()}
    if isinstance(value, list):
        return [renamed(v) for v in value]
    return (value[0], renamed(value[1])) if isinstance(value, tuple) else value


@given(st.data())
def test_nested_data_in_another_shape(data: st.DataObject) -> None:
    schema = nested_schema()
    rows = data.draw(nested_rows(schema))
    other = widened(pa.struct(list(to_arrow_schema(schema))))
    source = pa.Table.from_pylist([renamed(r) for r in rows], schema=pa.schema(list(other)))
    batches = list(conform_batches(source, schema))
    assert str([r for b in batches for r in b.to_pylist()]) == str(
        pa.RecordBatch.from_pylist(rows, schema=to_arrow_schema(schema)).to_pylist()
    )


def test_values_behind_a_slice_of_lists_need_not_fit() -> None:
    whole = Array(Field("element", LONG, nullable=False, id=2))
    small = Array(Field("element", BYTE, id=2))
    assert one(pa.array([[1], [None]]).slice(0, 1), whole).to_pylist() == [[1]]
    assert one(pa.array([[1], [2**40]]).slice(0, 1), small).to_pylist() == [[1]]
    assert one(pa.array([[2**40], [1]]).slice(1), small).to_pylist() == [[1]]


@pytest.mark.parametrize(
    ("fits", "unfit", "data_type"),
    [
        (1_234_000, 1_234_567, Time(3)),
        (1_000_000, 1_500_000, Time(0)),
        (86_400_000_000, 90_000_000_000, DayTimeInterval("day", "day")),
        (-3_600_000_000, -60_000_000, DayTimeInterval("day", "hour")),
        (60_000_000, 1, DayTimeInterval("hour", "minute")),
    ],
)
def test_smaller_parts_than_a_time_or_an_interval_has_are_refused(fits: int, unfit: int, data_type: DataType) -> None:
    kind = pa.time64("us") if isinstance(data_type, Time) else pa.duration("us")
    assert one(pa.array([fits, None], kind), data_type).cast(pa.int64()).to_pylist() == [fits, None]
    with pytest.raises(SchemaMismatch) as caught:
        one(pa.array([None, unfit], kind), data_type)
    assert (caught.value.code, caught.value.name) == ("VALUE_MISMATCH", "c")
