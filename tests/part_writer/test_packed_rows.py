"""Rows packed into words come out as the external sort gives them, and rows that do not fit are left to it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamis.core.types import DATE, INTEGER, LONG, SHORT, STRING, TIMESTAMP, DataType, Field, Schema
from tamis.core.types.arrow import to_arrow_schema
from tamis.engine.part_writer import packed_rows, sorted_batches
from tamis.engine.part_writer.packed_rows import sorted_rows

MEMORY = 2**28
LONGEST, LEAST = 2**63 - 1, -(2**63)
VALUES: dict[str, tuple[DataType, list[int]]] = {
    "shorts": (SHORT, [-(2**15), 0, 2**15 - 1]),
    "days": (DATE, [-700_000, 0, 20_000]),
    "instants": (TIMESTAMP, [1_790_000_000_000_000, 1_790_000_000_000_001, -5]),
    "ids": (LONG, [10**12, 10**12 + 1, 10**12 + 999]),
    "half of the longs": (LONG, [0, LONGEST]),
    "all longs": (LONG, [LEAST, LONGEST, -1, 0]),
    "least": (LONG, [LEAST]),
    "one value": (LONG, [7]),
}


def schema_of(*kinds: DataType) -> Schema:
    return Schema(tuple(Field(f"c{at}", kind, True, at + 1) for at, kind in enumerate(kinds)))


def batch_of(schema: Schema, *columns: list[int | None]) -> pa.RecordBatch:
    target = to_arrow_schema(schema)
    arrays = [
        pa.array(values, f"int{kind.bit_width}").view(kind) for values, kind in zip(columns, target.types, strict=True)
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=target)


def reference(batches: list[pa.RecordBatch], schema: Schema) -> pa.Table:
    every = tuple((f.id,) for f in schema)
    return pa.Table.from_batches(sorted_batches(iter(batches), schema, every, MEMORY), to_arrow_schema(schema))


@st.composite
def tables(draw: st.DrawFn) -> tuple[Schema, list[pa.RecordBatch]]:
    names = draw(st.lists(st.sampled_from(sorted(VALUES)), min_size=1, max_size=3))
    schema = schema_of(*(VALUES[name][0] for name in names))
    batches = []
    for rows in draw(st.lists(st.integers(0, 12), max_size=4)):
        columns = [
            draw(st.lists(st.sampled_from([None, *VALUES[name][1]]), min_size=rows, max_size=rows)) for name in names
        ]
        batches.append(batch_of(schema, *columns).slice(draw(st.integers(0, max(rows, 1) - 1)) if rows else 0))
    return schema, batches


@given(tables())
def test_rows_are_sorted_as_the_external_sort_does(made: tuple[Schema, list[pa.RecordBatch]]) -> None:
    schema, batches = made
    found = list(sorted_rows(list(batches), schema, ((1,),), MEMORY))
    for batch in found:
        batch.validate(full=True)
    table = pa.Table.from_batches(found, to_arrow_schema(schema))
    assert table.column(0).equals(reference(batches, schema).column(0))
    rows = [tuple(row.values()) for batch in found for row in batch.to_pylist()]
    given_rows = [tuple(row.values()) for batch in batches for row in batch.to_pylist()]
    assert sorted(rows, key=repr) == sorted(given_rows, key=repr)


ENTRIES = schema_of(LONG, INTEGER, INTEGER)


def entries(rows: int, span: int) -> list[pa.RecordBatch]:
    values = np.random.default_rng(rows).integers(-span, span, rows)
    at = np.arange(rows)
    whole = pa.RecordBatch.from_arrays(
        [
            pa.array(values, mask=at % 11 == 3),
            pa.array((at // 1_000).astype(np.int32)),
            pa.array((at % 1_000).astype(np.int32)),
        ],
        schema=to_arrow_schema(ENTRIES),
    )
    return [whole.slice(start, 7_000) for start in range(0, rows, 7_000)]


@pytest.mark.parametrize("span", [1, 500, 2**40])
def test_entries_of_an_index_are_packed(span: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packed_rows, "sorted_batches", lambda *_: pytest.fail("the entries should have been packed"))
    batches = entries(200_000, span)
    found = pa.Table.from_batches(sorted_rows(iter(batches), ENTRIES, ((1,),), MEMORY))
    assert found.equals(reference(batches, ENTRIES))


@pytest.mark.parametrize(
    ("schema", "batches", "memory"),
    [
        (ENTRIES, entries(50_000, 2**62), MEMORY),
        (ENTRIES, entries(50_000, 500), 2**19),
        (
            schema_of(STRING, INTEGER),
            [pa.RecordBatch.from_pydict({"c0": ["b", None, "a"], "c1": pa.array([1, 2, 3], pa.int32())})],
            MEMORY,
        ),
    ],
    ids=["too wide", "too many", "texts"],
)
def test_other_rows_are_sorted_externally(
    schema: Schema, batches: list[pa.RecordBatch], memory: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []

    def spied(*given: Any) -> Iterator[pa.RecordBatch]:
        asked.append(given[-1])
        return sorted_batches(*given)

    monkeypatch.setattr(packed_rows, "sorted_batches", spied)
    target = to_arrow_schema(schema)
    batches = [pa.RecordBatch.from_arrays(batch.columns, schema=target) for batch in batches]
    found = pa.Table.from_batches(sorted_rows(iter(batches), schema, ((1,),), memory))
    assert asked == [memory]
    assert found.equals(reference(batches, schema))
