"""Constants are equal only if no expression can tell them apart."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from tamis.core.expr import Literal, Literals
from tamis.core.types import BOOLEAN, DATE, DOUBLE, FLOAT, INTEGER, LONG, STRING, DataType
from tamis.core.types import Decimal as DecimalType


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ((DOUBLE, 0.0), (DOUBLE, -0.0)),
        ((DOUBLE, float("nan")), (DOUBLE, 0.0)),
        ((FLOAT, 1.0), (DOUBLE, 1.0)),
        ((INTEGER, 1), (LONG, 1)),
        ((INTEGER, 1), (DATE, 1)),
        ((BOOLEAN, True), (INTEGER, 1)),
        ((STRING, "e\u0301"), (STRING, "\u00e9")),
        ((STRING, ""), (STRING, None)),
        ((DecimalType(3, 1), Decimal("1.0")), (DecimalType(3, 2), Decimal("1.00"))),
    ],
)
def test_constants_of_another_meaning_differ(a: tuple[DataType, Any], b: tuple[DataType, Any]) -> None:
    assert Literal(*a) != Literal(*b)
    assert len({Literal(*a), Literal(*b)}) == 2


@pytest.mark.parametrize(
    ("kind", "value"), [(DOUBLE, -0.0), (DOUBLE, float("nan")), (LONG, 2**40), (STRING, "x"), (STRING, None)]
)
def test_equal_constants_are_one_key(kind: DataType, value: Any) -> None:
    other = float("nan") if value != value else value
    assert Literal(kind, value) == Literal(kind, other)
    assert len({Literal(kind, value), Literal(kind, other)}) == 1


@pytest.mark.parametrize("kind", [(DOUBLE, pa.float64()), (FLOAT, pa.float32())])
def test_lists_differ_by_the_sign_of_a_zero(kind: tuple[DataType, pa.DataType]) -> None:
    def listed(*values: float | None) -> Literals:
        return Literals(kind[0], pa.array(values, kind[1]))

    assert listed(0.0, None) != listed(-0.0, None)
    assert listed(0.0, None, float("nan")) == listed(0.0, None, float("nan"))
    assert listed(0.0) != listed(None)
    assert Literals(LONG, pa.array([1, 2])) == Literals(LONG, pa.array([1, 2]))
    assert Literals(LONG, pa.array([1, 2])) != Literals(LONG, pa.array([2, 1]))
