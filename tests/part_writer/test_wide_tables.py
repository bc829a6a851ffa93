"""Tables of more columns than the budget has room for: the first ones have statistics, and those that are named; the others are unknown."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest

import tamis
from tamis.core.stats.collection_limits import limits_within
from tamis.core.types import DOUBLE, STRING, Field, Schema, Struct

WIDE = 3_000


def table_of(name: str, data: pa.Table, **properties: str) -> tamis.Table:
    made = tamis.create(f"memory://wide-{name}", data.schema, properties=properties)
    for shift in range(2):
        made.append(data.set_column(0, "c0", pa.array([shift * 10.0 + i for i in range(len(data))])))
    return made


def doubles(columns: int) -> pa.Table:
    return pa.table({f"c{i}": [float(i), i + 1.0, None] for i in range(columns)})


@pytest.mark.slow
@pytest.mark.parametrize("columns", [100, WIDE])
def test_the_first_columns_skip_and_no_row_is_lost(columns: int) -> None:
    table = table_of(f"doubles-{columns}", doubles(columns))
    last = columns - 1
    assert len(table.scan("c0 > 5").plan().parts) == 1
    assert len(table.scan("c7 > 100").plan().parts) == 0
    assert len(table.scan(f"c{last} > 9999").plan().parts) == (0 if columns == 100 else 2), "unknown, so it is read"
    assert table.scan(f"c{last} = {last}").count() == 2
    assert table.scan(f"c{last} IS NULL").count() == 2
    assert table.scan(f"c{last} > 9999").count() == 0


def test_a_named_column_is_collected_wherever_it_stands() -> None:
    last = WIDE - 1
    table = table_of("named", doubles(WIDE), **{"tamis.stats.keep": f"c{last}"})
    assert len(table.scan(f"c{last} > 9999").plan().parts) == 0
    assert len(table.scan(f"c{last - 1} > 9999").plan().parts) == 2


def test_what_is_not_collected_is_counted() -> None:
    table = table_of("counted", doubles(WIDE))
    assert dict(table.history()["metrics"][0].as_py())["statistics_dropped"] >= WIDE - 2 * 1024


def test_documents_are_collected_of_the_first_columns() -> None:
    texts = [json.dumps({"a": i}) for i in range(3)]
    data = pa.table({"c0": [1.0, 2.0, 3.0]} | {f"d{i}": texts for i in range(400)})
    table = table_of("documents", data)
    assert len(table.scan("CAST(get_json_object(d0, '$.a') AS INT) > 5").plan().parts) == 0
    assert len(table.scan("CAST(get_json_object(d399, '$.a') AS INT) > 5").plan().parts) == 2
    assert table.scan("CAST(get_json_object(d399, '$.a') AS INT) = 2").count() == 2


def test_fields_are_chosen_by_their_leaves() -> None:
    pair = Struct((Field("x", DOUBLE, True, 1_001), Field("y", STRING, True, 1_002)))
    schema = Schema((Field("s", pair, True, 1), *(Field(f"t{i}", STRING, True, i) for i in range(2, 400))))
    limits = limits_within(schema, 0, [399])
    assert 1 in limits.fields
    assert 399 in limits.fields
    assert 2 in limits.fields
    assert 398 not in limits.fields
    assert {1, *range(2, 399)} <= limits_within(schema, 10**6, []).fields
