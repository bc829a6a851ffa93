"""Keys of joins and merges filter by IN only where that keeps every equal row."""

import pyarrow as pa
import pytest

from tamis.core.expr import Column, equal_as_arrow, key_filter, to_sql
from tamis.core.expr import key_filters as rules
from tamis.core.types import (
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    LONG,
    STRING,
    TIMESTAMP,
    VARIANT,
    DataType,
    Field,
    String,
    Struct,
)


def column(kind: DataType) -> Column:
    return Column(kind, (1,), "k")


@pytest.mark.parametrize("kind", [FLOAT, DOUBLE, VARIANT, String(collation="UTF8_LCASE"), Struct((Field("x", LONG),))])
def test_types_whose_equality_is_not_that_of_arrow(kind: DataType) -> None:
    assert not equal_as_arrow(kind)


@pytest.mark.parametrize("kind", [LONG, STRING, DATE, BOOLEAN, BINARY, TIMESTAMP])
def test_types_whose_equality_is_that_of_arrow(kind: DataType) -> None:
    assert equal_as_arrow(kind)


def test_null_equals_nothing_and_each_key_counts_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rules, "MOST_KEYS", 2)
    found = key_filter(column(LONG), pa.chunked_array([[1, None, 1], [2]], pa.int64()))
    assert found is not None
    assert to_sql(found) == "(k IN (1L, 2L))"
    assert key_filter(column(LONG), pa.array([1, 2, 3])) is None


def test_keys_of_another_type_filter_nothing() -> None:
    assert key_filter(column(LONG), pa.array([1], pa.int32())) is None
    assert key_filter(column(DOUBLE), pa.array([0.0])) is None


def test_instants_are_equal_in_every_zone_but_not_to_local_times() -> None:
    paris = pa.array([0], pa.timestamp("us", "Europe/Paris"))
    assert key_filter(column(TIMESTAMP), paris) is not None
    assert key_filter(column(TIMESTAMP), pa.array([0], pa.timestamp("us"))) is None
