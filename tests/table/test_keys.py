"""Rows by a set of keys: the same as an IN of them, of any type, however many; what cannot be a key is refused by name."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tamis
from tamis.core.expr import Literals
from tamis.core.types import FLOAT, Field, Schema, String
from tamis.core.types.arrow import from_arrow_schema
from tamis.errors import InvalidInput, NotFound
from tamis.table.key_filters import parse_keys
from tests.table.random_tables import DATES, FLOATS, INSTANTS, INTEGERS, SEGMENTS, STRINGS, segment

KEYED: dict[str, list[Any]] = {"i": INTEGERS, "f": FLOATS, "s": STRINGS, "d": DATES, "t": INSTANTS, "b": [True, False]}


@given(segments=SEGMENTS.map(lambda found: found[:2]), data=st.data())
def test_as_python_says(segments: list[Any], data: st.DataObject, tmp_path_factory: pytest.TempPathFactory) -> None:
    name = data.draw(st.sampled_from(sorted(KEYED)))
    keys = data.draw(st.lists(st.one_of(st.none(), st.sampled_from(KEYED[name])), max_size=5))
    table = tamis.create(tmp_path_factory.mktemp("keys"), segment([]).schema)
    for rows in segments:
        table.append(segment(rows))
    deleted = data.draw(st.sampled_from(["i = 1", "s = 'a'", "false"]))
    table.delete(deleted)
    array = pa.array(keys, segment([]).schema.field(name).type)
    found = table.scan(keys={name: array}).to_arrow()
    wanted = {_same(k) for k in keys if k is not None}
    everything = table.scan().to_arrow()
    expected = everything.filter(
        pa.array([v is not None and _same(v) in wanted for v in everything[name].to_pylist()], pa.bool_())
    )
    assert str(found.to_pylist()) == str(expected.to_pylist())  # as text: NaN is no other NaN to Python


def _same(value: Any) -> Any:
    """What Spark holds for one value: NaN is NaN, and there is one zero."""
    return ("NaN" if value != value else value + 0.0) if isinstance(value, float) else value


@pytest.fixture
def numbered(tmp_path: Path) -> tamis.Table:
    """Ten parts of 1,000 rows; ``id`` grows, ``k`` is shuffled, ``small`` is an int, ``s.x`` nested."""
    table = tamis.create(tmp_path / "t")
    shuffled = np.random.default_rng(3).permutation(10_000)
    for n in range(10):
        ids = np.arange(n * 1_000, (n + 1) * 1_000)
        columns = {
            "id": ids,
            "k": shuffled[ids],
            "small": ids.astype(np.int32),
            "price": pa.array(ids).cast(pa.decimal128(21, 2)),
            "day": ids.astype("datetime64[D]"),
        }
        table.append(pa.table({**columns, "s": pa.StructArray.from_arrays([pa.array(ids)], ["x"])}))
    return table


@pytest.mark.push_cases(3)
@pytest.mark.parametrize(
    ("column", "keys"),
    [
        ("id", pa.array([3, 9_500, None, 10**12])),
        ("id", np.array([3, 9_500], np.int16)),
        ("id", pa.chunked_array([[3], [9_500]])),
        ("small", pa.array([3, 9_500, 2**32 + 3, 2**40, -(2**31) - 1], pa.int64())),
        ("small", pa.array([3, 9_500, 2**64 - 1], pa.uint64())),
        ("price", [Decimal(3), Decimal(9_500)]),
        ("day", [dt.date(1970, 1, 4), dt.date(1996, 1, 5)]),
        ("s.x", [9_500, 3]),
    ],
)
def test_values_prune_not_their_range(numbered: tamis.Table, column: str, keys: Any) -> None:
    scan = numbered.scan(keys={column: keys})
    assert scan.to_arrow()["id"].to_pylist() == [3, 9_500]
    assert scan.report is not None
    assert scan.report.parts["kept"] == 2, scan.report


def test_with_a_filter_and_an_index(numbered: tamis.Table) -> None:
    numbered.create_index("by_k", ["k"])
    wanted = numbered.scan("k IN (5, 77, 4711)", ["id"]).to_arrow()["id"].to_pylist()
    scan = numbered.scan("id >= 0", ["id"], keys={"k": [5, 77, 4711]})
    assert scan.to_arrow()["id"].to_pylist() == wanted
    assert scan.report is not None
    assert [i.name for i in scan.report.indexes] == ["by_k"]
    assert scan.report.rows["leader"] == 3
    assert scan.row_filter == "(id >= 0) AND (k IN (5L, 77L, 4711L))"
    assert numbered.scan(keys={"k": [5], "id": [-1]}).count() == 0
    assert numbered.explain(keys={"id": [3]}).parts["kept"] == 1


def test_none_and_no_keys(numbered: tamis.Table) -> None:
    assert numbered.scan(keys={"id": pa.array([], pa.int64())}).count() == 0
    assert numbered.scan(keys={"id": [None]}).count() == 0
    assert numbered.scan(keys={}).count() == numbered.scan(keys=None).count() == 10_000


def test_many_keys_are_one_object(numbered: tamis.Table) -> None:
    keys = pa.array(np.arange(0, 2_000_000, 2))
    scan = numbered.scan(keys={"id": keys})
    assert [len(node.array) for c in scan.conjuncts for node in c.walk() if isinstance(node, Literals)] == [1_000_000]
    assert scan.count() == 5_000


NS, EXTREMES = pa.timestamp("ns"), [2**24, 2**24 + 1, 2**63 - 1]
HELD: dict[str, tuple[pa.DataType, Any, Any]] = {  # of a column, the keys given, and those of them that it can hold
    "decimal": (
        pa.decimal128(5, 2),
        [Decimal("1.005"), Decimal("1.5"), Decimal("123456.00"), Decimal(-7)],
        [Decimal("1.50"), Decimal(-7)],
    ),
    "integers for a decimal": (pa.decimal128(5, 2), [999, 1000, -1000, 3], [Decimal(999), Decimal(3)]),
    "a great decimal": (pa.decimal128(38, 0), pa.array([10**30], pa.decimal256(60, 0)), [Decimal(10**30)]),
    "nanoseconds": (pa.timestamp("us"), pa.array([1_000, 1_001, None], NS), [dt.datetime(1970, 1, 1, 0, 0, 0, 1)]),
    "float": (pa.float32(), [0.5, 0.1, float("inf")], [0.5, float("inf")]),
    "integers for a float": (pa.float32(), pa.array(EXTREMES), [2.0**24]),
    "unsigned": (pa.int64(), pa.array([7, 2**64 - 1], pa.uint64()), [7]),
    "negative": (pa.int8(), pa.array([-128, -129, 255], pa.int64()), [-128]),
    "views": (pa.string(), pa.array(["a", None, "a"], pa.string_view()), ["a"]),
    "categories": (pa.string(), pl.Series(["a", "a"], dtype=pl.Categorical), ["a"]),
}


@pytest.mark.parametrize("name", HELD)
def test_what_a_column_cannot_hold_matches_nothing(name: str) -> None:
    kind, keys, expected = HELD[name]
    schema = from_arrow_schema(pa.schema([("x", kind)])).assign_ids(0)
    (found,) = [node for c in parse_keys({"x": keys}, schema) for node in c.walk() if isinstance(node, Literals)]
    assert (found.array.type, found.array.to_pylist()) == (kind, expected)


def test_nan_is_a_key_and_so_is_a_text_longer_than_its_column() -> None:
    """Another writer may have let a value be longer."""
    schema = Schema((Field("f", FLOAT), Field("c", String("char", 2)), Field("v", String("varchar", 2)))).assign_ids(0)
    keys = parse_keys({"f": [float("nan")], "c": ["a", "abc", "ab "], "v": ["abc", "ab"]}, schema)
    assert [node.array.to_pylist().__repr__() for c in keys for node in c.walk() if isinstance(node, Literals)] == [
        "[nan]",
        "['a ', 'abc', 'ab', 'ab ']",
        "['abc', 'ab']",
    ]


NO_KEYS: list[Any] = [
    *([("id", [1])], {"id": 7}, {"id": ["x"]}, {"small": [1.5]}, {"s": [1]}, {"id": object()}),
    *({"id": [{"a": 1}]}, {"id": [[1]]}, {"id": pa.table({"id": [1]})}, {"price": ["x"]}),
]


@pytest.mark.push_cases(4)
@pytest.mark.parametrize("keys", NO_KEYS, ids=range(len(NO_KEYS)))
def test_bad_keys(numbered: tamis.Table, keys: Any) -> None:
    with pytest.raises(InvalidInput) as caught:
        numbered.scan(keys=keys)
    assert caught.value.code == "BAD_KEYS"


def test_unknown_column(numbered: tamis.Table) -> None:
    with pytest.raises(NotFound) as caught:
        numbered.scan(keys={"nothing": [1]})
    assert caught.value.code == "COLUMN_NOT_FOUND"
