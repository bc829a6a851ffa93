"""Statistics admit the data: for every type, for awkward values, alone, in pairs, over several batches and through a union."""

import math
from itertools import product
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamis.core.stats import Collector, TableEvidence, union_statistics
from tamis.core.stats.columns.bounds import LIMIT
from tamis.core.types import BINARY, DOUBLE, FLOAT, STRING, DataType, Field, Schema
from tests.values import ATOMIC, BINARIES, FLOATS, SINGLES, TEXTS, array, column, kind_of

each_type = pytest.mark.parametrize("data_type", ATOMIC, ids=kind_of)


def schema_of(data_type: DataType) -> Schema:
    return Schema((Field("c", data_type, id=7),))


def collect(batches: list[pa.Array], data_type: DataType) -> pa.Table:
    collector = Collector(schema_of(data_type))
    for values in batches:
        collector.update(pa.record_batch([values], names=["c"]))
    rows = sum(len(b) for b in batches)
    return collector.finish().append_column("rows", pa.array([rows]))


def key(value: Any) -> Any:
    """The raw value, in an order that Python has."""
    return value.encode("utf-8", "surrogatepass") if isinstance(value, str) else value


def raw(values: pa.Array) -> list[object]:
    if pa.types.is_temporal(values.type):
        values = values.view(pa.int32() if values.type.bit_width == 32 else pa.int64())
    return values.to_pylist()


def is_nan(value: object) -> bool:
    return isinstance(value, float) and math.isnan(value)


def check(table: pa.Table, batches: list[pa.Array], data_type: DataType) -> None:
    evidence = TableEvidence(table, schema_of(data_type)).column((7,))
    assert evidence is not None
    every = [v for b in batches for v in raw(b)]
    counted = [v for v in every if v is not None and not is_nan(v)]
    assert evidence.count.to_pylist() == [len(every)]
    assert evidence.nulls.to_pylist() == [every.count(None)]
    assert evidence.nans.to_pylist() == [sum(is_nan(v) for v in every)]
    low, high = raw(evidence.lo)[0], raw(evidence.hi)[0]
    if not counted:
        assert low is None
        assert high is None
        return
    assert low is not None, "a lower bound can always be cut"
    least, most = min(key(v) for v in counted), max(key(v) for v in counted)
    assert key(low) <= least
    assert high is None or key(high) >= most
    assert len(low) <= LIMIT if isinstance(low, str | bytes) else True
    if isinstance(low, float) and low == 0:
        assert math.copysign(1, low) == -1
    if evidence.lo_exact[0].as_py():
        assert key(low) == least
    if evidence.hi_exact[0].as_py():
        assert key(high) == most


@each_type
@given(st.data())
def test_bounds_admit_every_value(data_type: DataType, data: st.DataObject) -> None:
    batches = data.draw(st.lists(column(data_type), max_size=3))
    check(collect(batches, data_type), batches, data_type)


@each_type
@given(st.data())
def test_a_union_admits_every_value_of_its_rows(data_type: DataType, data: st.DataObject) -> None:
    parts = data.draw(st.lists(column(data_type), min_size=1, max_size=4))
    rows = pa.concat_tables([collect([p], data_type) for p in parts])
    segment = union_statistics(rows).append_column("rows", pa.array([sum(len(p) for p in parts)]))
    check(segment, parts, data_type)


@pytest.mark.parametrize(
    ("data_type", "special"),
    [(DOUBLE, FLOATS), (FLOAT, SINGLES), (STRING, TEXTS), (BINARY, BINARIES)],
    ids=lambda v: str(v)[:12],
)
def test_pairs_of_awkward_values(data_type: DataType, special: list[object]) -> None:
    for pair in product([*special, None], repeat=2):
        batch = array(list(pair), data_type)
        check(collect([batch], data_type), [batch], data_type)
        halves = [batch[:1], batch[1:]]
        check(collect(halves, data_type), halves, data_type)


def test_many_batches_are_merged_as_they_come() -> None:
    batches = [pa.array([i, -i]) for i in range(300)]
    table = collect(batches, ATOMIC[4])
    assert (table["7|long|lo"].to_pylist(), table["7|long|hi"].to_pylist()) == ([-299], [299])


def test_exact_where_nothing_was_cut() -> None:
    table = collect([pa.array(["b", "a" * LIMIT, "c" * (LIMIT + 1)])], STRING)
    assert table["7|exact"].to_pylist() == [1]
    assert table["7|string|hi"].to_pylist() == ["c" * (LIMIT - 1) + "d"]


def test_zero_is_the_wider_zero_and_not_exact() -> None:
    table = collect([pa.array([0.0, 0.0])], DOUBLE)
    assert str(table["7|double|lo"][0]) == "-0.0"
    assert table["7|exact"].to_pylist() == [0]


def test_text_that_is_no_utf8_is_cut_where_it_breaks() -> None:
    broken = pa.array([b"ab\xff", b"ab\xfe\x01"]).view(pa.string())
    table = collect([broken], STRING)
    assert (table["7|string|lo"].to_pylist(), table["7|string|hi"].to_pylist()) == (["ab"], ["ac"])
