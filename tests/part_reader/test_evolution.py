"""Parts of older schemas, read under the newest: by id, never by name."""

import datetime as dt
from decimal import Decimal as PyDecimal
from typing import Any

import pyarrow as pa
import pytest

from tamis.core.expr import conjuncts_of, parse_predicate
from tamis.core.types import (
    DATE,
    DOUBLE,
    FLOAT,
    INTEGER,
    LONG,
    STRING,
    TIMESTAMP_NTZ,
    Array,
    Decimal,
    Field,
    Map,
    Schema,
    Struct,
)
from tamis.core.types.arrow import to_arrow_schema
from tamis.engine.part_reader import ReadCounters, ReadSpec, read_part
from tamis.errors import CorruptData
from tamis.storage.files import PartRef
from tamis.storage.object_store import open_store
from tests.files.parts import write_part

URL = "memory://evolution"
OLD = Schema(
    (
        Field("a", INTEGER, id=1),
        Field("b", STRING, id=2),
        Field("s", Struct((Field("x", FLOAT, id=4), Field("gone", LONG, id=5))), id=3),
        Field("l", Array(Field("element", Struct((Field("d", Decimal(5, 1), id=8),)), id=7)), id=6),
        Field("day", DATE, id=9),
        Field("m", Map(Field("key", STRING, nullable=False, id=11), Field("value", INTEGER, id=12)), id=10),
    ),
    schema_id=0,
)
NEW = Schema(
    (
        Field("day", TIMESTAMP_NTZ, id=9),
        Field("b", LONG, id=20),  # the old b was dropped; this is another column
        Field("renamed", LONG, id=1),
        Field(
            "s",
            Struct(
                (
                    Field("y", LONG, id=21, initial_default=7),
                    Field("x", DOUBLE, id=4),
                    Field("z", Struct((Field("q", LONG, id=23),)), id=22),
                )
            ),
            id=3,
        ),
        Field(
            "l",
            Array(Field("element", Struct((Field("d", Decimal(8, 2), id=8), Field("e", STRING, id=24))), id=7)),
            id=6,
        ),
        Field("late", STRING, id=25, initial_default="was not there"),
        Field("m", Map(Field("key", STRING, nullable=False, id=11), Field("value", LONG, id=12)), id=10),
    ),
    schema_id=1,
)
ROWS: list[dict[str, Any]] = [
    {
        "a": 1,
        "b": "old",
        "s": {"x": 0.5, "gone": 1},
        "l": [{"d": PyDecimal("1.5")}, None],
        "day": dt.date(1500, 1, 2),
        "m": [("k", 3)],
    },
    {"a": 2, "b": "old", "s": None, "l": None, "day": None, "m": None},
    {"a": None, "b": None, "s": {"x": None, "gone": None}, "l": [], "day": dt.date(2020, 1, 1), "m": []},
]
EXPECTED: list[dict[str, Any]] = [
    {
        "day": dt.datetime(1500, 1, 2), "b": None, "renamed": 1, "s": {"y": 7, "x": 0.5, "z": None},
        "l": [{"d": PyDecimal("1.50"), "e": None}, None], "late": "was not there", "m": [("k", 3)],
    },
    {"day": None, "b": None, "renamed": 2, "s": None, "l": None, "late": "was not there", "m": None},
    {"day": dt.datetime(2020, 1, 1), "b": None, "renamed": None, "s": {"y": 7, "x": None, "z": None}, "l": [], "late": "was not there", "m": []},
]  # fmt: skip


def part() -> PartRef:
    whole = pa.RecordBatch.from_pylist(ROWS, schema=to_arrow_schema(OLD))
    return write_part(open_store(URL), OLD, [whole.slice(0, 2), whole.slice(2)])


def read(schema: Schema, text: str | None = None, lazy: str = "on") -> list[dict[str, Any]]:
    spec = ReadSpec(
        URL,
        schema,
        {0: OLD, 1: NEW},
        conjuncts=() if text is None else conjuncts_of(parse_predicate(text, NEW)),
        lazy=lazy,
    )
    batches = list(read_part(part(), spec, ReadCounters()))
    assert all(b.schema.equals(to_arrow_schema(schema), check_metadata=True) for b in batches)
    return [row for b in batches for row in b.to_pylist()]


def test_everything_by_id() -> None:
    assert read(NEW) == EXPECTED


@pytest.mark.parametrize("lazy", ["on", "off"])
@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("renamed = 2", [1]),
        ("b IS NULL AND renamed IS NULL", [2]),
        ("b = 1", []),
        ("s.y = 7", [0, 2]),
        ("s.y IS NULL", [1]),
        ("s.x > 0.25", [0]),
        ("s.z.q IS NULL", [0, 1, 2]),
        ("late = 'was not there' AND renamed > 1", [1]),
        ("late <> 'was not there'", []),
        ("day < TIMESTAMP_NTZ '1600-01-01 00:00:00'", [0]),
    ],
)
def test_filters_see_what_the_reader_sees(text: str, kept: list[int], lazy: str) -> None:
    assert read(NEW, text, lazy) == [EXPECTED[i] for i in kept]
    only = NEW.select(("renamed",))
    assert read(only, text, lazy) == [{"renamed": EXPECTED[i]["renamed"]} for i in kept]


def test_pruned_struct() -> None:
    pruned = Schema((Field("s", Struct((Field("z", Struct((Field("q", LONG, id=23),)), id=22),)), id=3),), schema_id=1)
    assert read(pruned) == [{"s": {"z": None}}, {"s": None}, {"s": {"z": None}}]
    assert read(pruned, "s.x = 0.5") == [{"s": {"z": None}}]


def test_a_part_of_a_schema_that_the_table_does_not_have() -> None:
    spec = ReadSpec(URL, NEW, {1: NEW})
    with pytest.raises(CorruptData, match="schema 0"):
        list(read_part(part(), spec, ReadCounters()))
