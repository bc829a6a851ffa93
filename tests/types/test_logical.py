"""Types and schemas survive JSON and Arrow, and are found by name as Spark finds them."""

from __future__ import annotations

import pyarrow as pa
import pytest

from tamis.core.types import (
    BINARY,
    BOOLEAN,
    BYTE,
    DATE,
    DOUBLE,
    FLOAT,
    INTEGER,
    LONG,
    SHORT,
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
from tamis.core.types.arrow import from_arrow_schema, from_arrow_type, to_arrow_schema
from tamis.core.types.logical import type_from_json
from tamis.errors import InvalidInput, NotFound

SIMPLE = [
    BOOLEAN,
    BYTE,
    SHORT,
    INTEGER,
    LONG,
    FLOAT,
    DOUBLE,
    STRING,
    BINARY,
    DATE,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    VARIANT,
    Time(3),
]
DECLARED = [
    Decimal(38, 10),
    String("char", 5),
    String("varchar", 7),
    String(collation="UNICODE_CI"),
    DayTimeInterval("hour", "second"),
]
NESTED: list[DataType] = [
    Struct((Field("x", LONG, False), Field("y", Struct((Field("z", STRING),))))),
    Array(Field("element", Decimal(5, 2), False)),
    Map(Field("key", STRING, False), Field("value", Array(Field("element", VARIANT)))),
]
ALL = [*SIMPLE, *DECLARED, *NESTED]


@pytest.mark.parametrize("data_type", ALL, ids=str)
def test_round_trip(data_type: DataType) -> None:
    schema = Schema((Field("a", data_type, comment="c"),), 3).assign_ids(10)
    assert Schema.from_json(schema.to_json()) == schema
    again = from_arrow_schema(to_arrow_schema(schema))
    assert [f.type for f in again] == [f.type for f in schema]
    assert again.paths == schema.paths


@pytest.mark.parametrize(
    ("arrow", "logical"),
    [
        (pa.uint8(), SHORT),
        (pa.uint64(), Decimal(20, 0)),
        (pa.dictionary(pa.int8(), pa.large_string()), STRING),
        (pa.string_view(), STRING),
        (pa.binary(4), BINARY),
        (pa.timestamp("ns", "Europe/Paris"), TIMESTAMP),
        (pa.timestamp("s"), TIMESTAMP_NTZ),
        (pa.date64(), DATE),
        (pa.time32("ms"), Time(6)),
        (pa.duration("ns"), DayTimeInterval()),
        (pa.large_list(pa.int32()), Array(Field("element", INTEGER))),
    ],
    ids=str,
)
def test_arrow_types_that_widen_without_loss(arrow: pa.DataType, logical: DataType) -> None:
    assert from_arrow_type(arrow) == logical


@pytest.mark.parametrize("name", ["interval year to month", "geometry", "decimal", "", 7, {"type": "union"}], ids=str)
def test_an_unknown_type_is_refused_by_name(name: object) -> None:
    with pytest.raises(InvalidInput, match="not supported") as refused:
        type_from_json(name)
    assert refused.value.code == "UNSUPPORTED_TYPE"
    assert refused.value.name == str(name)


def test_ids_are_given_once_parents_first_and_never_twice() -> None:
    inner = Struct((Field("b", LONG), Field("c", Array(Field("element", LONG)))))
    schema = Schema((Field("a", inner, id=4), Field("d", LONG))).assign_ids(7)
    assert schema.paths == {4: (4,), 8: (4, 8), 9: (4, 9), 10: (4, 9, 10), 11: (11,)}
    assert schema.assign_ids(99) == schema
    assert schema.highest_id() == 11


def test_names_are_found_without_regard_to_case_unless_that_is_ambiguous() -> None:
    schema = Schema(
        (Field("Ab", Struct((Field("C d", LONG),))), Field("x.y", LONG), Field("k", LONG), Field("K", LONG))
    )
    assert schema.find(("aB", "c D"))[-1].name == "C d"
    assert schema.find("x.y")[0].name == "x.y"
    assert schema.find("K")[0].name == "K"
    with pytest.raises(NotFound) as missing:
        schema.find(("ab", "nope"))
    assert missing.value.code == "COLUMN_NOT_FOUND"
    assert "C d" in missing.value.remedy
    with pytest.raises(NotFound):
        schema.find("ab", case_sensitive=True)
    twins = Schema((Field("a", LONG), Field("A", LONG)))
    assert twins.find("A")[0].name == "A"
    assert Schema((Field("ka", LONG), Field("KA", LONG))).find("ka")[0].name == "ka"
    with pytest.raises(InvalidInput, match="ambiguous"):
        Schema((Field("ka", LONG), Field("KA", LONG))).find("Ka")
