"""Parts of real size whose columns change their character halfway: every filter counts what NumPy counts."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import tamis
from tamis.core.expr import conjuncts_of, parse_predicate
from tamis.core.stats import Collector, TableEvidence
from tamis.core.types import DOUBLE, Field, Schema
from tamis.engine.part_reader import expected_share

ROWS = 200_000
_AT = np.arange(ROWS)
_LATE = _AT > ROWS * 0.7
COLUMNS: dict[str, np.ndarray[Any, np.dtype[np.int64]]] = {
    "few_then_many": np.where(_LATE, _AT, _AT % 5),
    "many_then_few": np.where(_LATE, _AT % 3, 7 + _AT),
    "one_then_other": np.where(_LATE, 1, 0),
    "step": _AT // 5_000,
    "last": np.where(_AT > ROWS - 5, _AT, 42),
    "sorted_but_one": np.where(_AT == ROWS // 2, -1, _AT),
}
OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "=": np.equal,
    "<": np.less,
    ">=": np.greater_equal,
    "<>": np.not_equal,
}


@pytest.fixture(scope="module")
def table() -> tamis.Table:
    made = tamis.create("memory://changing-character", pa.schema([(name, pa.int64()) for name in COLUMNS]))
    made.append(pa.table(COLUMNS))
    return made


@pytest.mark.push_cases(2)
@pytest.mark.parametrize("name", COLUMNS)
def test_every_filter_counts_what_numpy_counts(table: tamis.Table, name: str) -> None:
    values = COLUMNS[name]
    for value in (
        0,
        1,
        4,
        41,
        42,
        7,
        100_000,
        int(values[0]),
        int(values[-1]),
        int(values[ROWS // 2]),
        int(values[ROWS - 3]),
    ):
        for operator, compare in OPERATORS.items():
            assert table.scan(f"{name} {operator} {value}").count() == int(compare(values, value).sum()), (
                name,
                operator,
                value,
            )


def test_a_first_batch_of_few_values_is_not_the_whole_part() -> None:
    table = tamis.create("memory://few-then-many", pa.schema([("a", pa.int64())]))
    table.append(pa.table({"a": [i // 5_000 for i in range(100_000)] + list(range(100, 20_100))}))
    assert table.scan("a = 5000").count() == 1


@pytest.mark.parametrize(
    ("filter_", "parts"),
    [("one_then_other = 2", 0), ("one_then_other IN (2, 3)", 0), ("last > 300000", 0), ("step = 2", 1)],
)
def test_filters_that_must_prune_still_do(table: tamis.Table, filter_: str, parts: int) -> None:
    assert len(table.scan(filter_).plan().parts) == parts


def test_documents_of_many_layouts_keep_every_value() -> None:
    table = tamis.create("memory://many-layouts", pa.schema([("v", pa.string())]))
    texts = [
        *(json.dumps({"zz": i % 10}) for i in range(100)),
        json.dumps({f"k{i}": i for i in range(600)} | {"zz": 999}),
    ]
    table.append(pa.table({"v": texts}))
    assert table.scan("try_cast(get_json_object(v, '$.zz') AS INT) > 500").count() == 1


def test_infinite_bounds_are_estimated_without_a_warning() -> None:
    """The estimate of what a filter keeps computes with bounds; warnings are errors in tests."""
    schema = Schema((Field("x", DOUBLE), Field("y", DOUBLE))).assign_ids(0)
    collector = Collector(schema)
    batch = pa.record_batch({"x": [float("-inf"), 1.0, float("inf")], "y": [0.0, 2.0, 3.0]})
    collector.update(batch)
    evidence = TableEvidence(collector.finish().append_column("rows", pa.array([3])), schema)
    share = expected_share(conjuncts_of(parse_predicate("x < y", schema)), evidence)
    assert share is not None
    assert 0 <= share[0] <= 1
