"""What a filter is told that did not skip: the cause nearest to the statistics, by name."""

from __future__ import annotations

import pyarrow as pa
import pytest

from tamis.core import expr
from tamis.core.pruning import decide
from tamis.core.pruning.evidence import ColumnEvidence
from tests.pruning.evidence_of import RowsEvidence
from tests.pruning.monthly_pieces import PIECES, SCHEMA

REASONS = {
    "i > 300": "the bounds of i allow it",
    "i > 5000": None,
    "i + l > 300": "the bounds of i, l allow it",
    "no_such_function(s) = 3": "may be anything",
    "i < 100 OR no_such_function(s) = 3": "may be anything",
    "substring(s, -2, 2) = '20'": "substring(s, -2, 2) does not follow from the bounds of s",
    "concat(substring(s, -2, 2), 'x') = 'zx'": "substring(s, -2, 2) does not follow from the bounds of s",
    "contains(s, 'z')": "contains(s, 'z') does not follow from the bounds of s",
    "s LIKE '%z'": "does not follow from the bounds of s",
    "s LIKE 'c%'": "the bounds of s allow it",
    "isnan(x)": None,
    "1 / i < 0": "may fail",
    "true": "it is a constant",
}


class Without(RowsEvidence):
    """Evidence that does not know the column ``i`` of some of the pieces."""

    def column(self, ids: tuple[int, ...]) -> ColumnEvidence | None:
        found = super().column(ids)
        if ids != (3,) or found is None:
            return found
        gone = pa.array([n < 4 for n in range(len(self))])

        def hidden(array: pa.Array) -> pa.Array:
            return pa.compute.if_else(gone, pa.scalar(None, array.type), array)

        names = ("count", "lo", "hi", "lo_exact", "hi_exact", "nulls", "nans")
        return ColumnEvidence(type=found.type, **{name: hidden(getattr(found, name)) for name in names})


@pytest.mark.parametrize("text", REASONS)
def test_the_reason_is_named(text: str) -> None:
    why = decide(expr.conjuncts_of(expr.parse_predicate(text, SCHEMA)), RowsEvidence(SCHEMA, PIECES), strict=True).why
    expected = REASONS[text]
    assert why == [None] if expected is None else expected in str(why[-1])


def test_what_an_earlier_conjunct_hides_is_said() -> None:
    conjuncts = expr.conjuncts_of(expr.parse_predicate("1 / (i - 50) > 0 AND i > 5000", SCHEMA))
    why = decide(conjuncts, RowsEvidence(SCHEMA, PIECES[:1]), strict=True).why
    assert "may fail" in str(why[0])
    assert why[1] == "a conjunct before it may fail"


def test_pieces_without_statistics_are_counted() -> None:
    conjuncts = expr.conjuncts_of(expr.parse_predicate("i > 850 AND l > 0", SCHEMA))
    assert decide(conjuncts, Without(SCHEMA, PIECES), strict=True).why[0] == "no statistics for i in 4 of 8"
    assert decide(conjuncts, Without(SCHEMA, PIECES[:3]), strict=True).why[0] == "no statistics for i"


def test_nobody_asks_where_reasons_are_not_wanted() -> None:
    assert decide(
        expr.conjuncts_of(expr.parse_predicate("i > 300", SCHEMA)), RowsEvidence(SCHEMA, PIECES), reasons=False
    ).why == [None]
