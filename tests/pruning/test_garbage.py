"""Evidence that makes no sense is unknown: never an exception, never 'empty'."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import pytest

from tamis.core import expr
from tamis.core.expr import Literal
from tamis.core.pruning import ColumnEvidence, decide
from tamis.core.types import BOOLEAN, DATE, DOUBLE, INTEGER, LONG, STRING, TIMESTAMP, DataType, Decimal, Field, Schema
from tamis.core.types.arrow import to_arrow_type


def field(data_type: DataType) -> Any:
    return expr.column_by_ids(Schema((Field("c", data_type, True, 1),)), (1,))


@dataclass
class One:
    """Evidence of one piece of ten rows, given as is."""

    evidence: Any
    length: int = 1
    physical: int | None = 10

    def __len__(self) -> int:
        return self.length

    def rows(self) -> Any:
        return pa.array([self.physical] * self.length, pa.int64())

    def column(self, ids: tuple[int, ...]) -> Any:
        if isinstance(self.evidence, Exception):
            raise self.evidence
        return self.evidence


def stats(data_type: DataType, lo: Any, hi: Any, *, nulls: Any = 0, nans: Any = 0, count: Any = 10) -> ColumnEvidence:
    arrow = to_arrow_type(data_type)
    no = pa.array([False])
    whole = [pa.array([v], pa.int64()) for v in (count, nulls, nans)]
    return ColumnEvidence(data_type, whole[0], pa.array([lo], arrow), pa.array([hi], arrow), no, no, whole[1], whole[2])


GOOD = stats(INTEGER, 1, 5)
FAR = expr.make_call("gt", field(INTEGER), Literal(INTEGER, 100))
IS_NULL = expr.make_call("is_null", field(INTEGER))


def test_sense_skips() -> None:
    assert decide([FAR], One(GOOD)).none.all()
    assert decide([IS_NULL], One(GOOD)).none.all()


@pytest.mark.parametrize(
    "evidence",
    [
        None,
        ValueError("undecodable"),
        "not statistics",
        replace(GOOD, lo=pa.array([9], pa.int32()), hi=pa.array([1], pa.int32())),
        replace(GOOD, hi=pa.array([None], pa.int32())),
        replace(GOOD, hi=pa.array([1, 2], pa.int32())),
        replace(GOOD, hi=pa.array(["5"])),
        replace(GOOD, hi=None),
        replace(GOOD, type=LONG),
        replace(GOOD, type=DATE, lo=pa.array([1], pa.date32()), hi=pa.array([5], pa.date32())),
        stats(LONG, 1, 5),
        stats(STRING, "a", "b"),
        stats(DOUBLE, 1.0, 5.0),
    ],
)
def test_nonsense_does_not_skip(evidence: Any) -> None:
    decision = decide([FAR], One(evidence))
    assert not decision.none.any()
    assert not decision.all.any()


@pytest.mark.parametrize("bounds", [(float("nan"), 5.0), (1.0, float("nan")), (float("nan"), float("nan")), (9.0, 1.0)])
def test_nan_in_bounds_is_unknown(bounds: tuple[float, float]) -> None:
    """Inverted, or only NaN."""
    far = expr.make_call("gt", field(DOUBLE), Literal(DOUBLE, 100.0))
    assert not decide([far], One(stats(DOUBLE, *bounds))).none.any()


@pytest.mark.parametrize(
    "counts",
    [
        {"nulls": None},
        {"count": None},
        {"nulls": -1},
        {"nulls": 11},
        {"count": 9},
        {"count": 11},
        {"nulls": 2**40, "count": 2**40},
    ],
)
def test_contradictory_counts_are_unknown(counts: dict[str, Any]) -> None:
    """No statement about NULLs unless the counts agree with each other and with the rows."""
    evidence = One(stats(INTEGER, 1, 5, **counts))
    assert not decide([IS_NULL], evidence).none.any()
    assert not decide([expr.make_call("is_not_null", field(INTEGER))], evidence).none.any()


def test_an_absent_count_is_not_zero() -> None:
    """Neither the piece's rows nor the column's count is known; zero NULLs then do not mean that there are no values."""
    evidence = One(stats(INTEGER, 1, 5, count=None), physical=None)
    assert not decide([expr.make_call("is_not_null", field(INTEGER))], evidence).none.any()
    assert not decide([expr.make_call("lt", field(INTEGER), Literal(INTEGER, 4))], evidence).none.any()


@pytest.mark.parametrize("other", [LONG, DOUBLE, STRING, DATE, TIMESTAMP, Decimal(10, 2), BOOLEAN])
def test_bounds_of_another_type_are_unknown(other: DataType) -> None:
    """Bounds of each type offered to a column of another."""
    values: dict[Any, tuple[Any, Any]] = {STRING: ("a", "b"), BOOLEAN: (False, True), DOUBLE: (1.0, 2.0)}
    lo, hi = values.get(other, (1, 2))
    assert not decide([FAR], One(stats(other, lo, hi))).none.any()


def test_a_widened_column_keeps_its_bounds() -> None:
    far = expr.make_call("gt", field(LONG), Literal(LONG, 100))
    assert decide([far], One(GOOD)).none.all()


def test_no_pieces() -> None:
    assert len(decide([FAR], One(stats(INTEGER, 1, 2), 0)).none) == 0
