"""The phrases that are compared with Spark name every entry of the catalogue, or it is said here who else compares it."""

from __future__ import annotations

import pytest

from tamis.core import expr
from tamis.core.expr import Call
from tests.expr.oracle import bound, plain
from tests.expr.phrases import PHRASES
from tests.pruning.piece_decisions import rows
from tests.pruning.trees import SCHEMA

ELSEWHERE = {
    "test_collections": {"array_contains", "array_field", "array_size", "exists", "forall", "map_value"},
    "test_documents_oracle": {"from_json", "get_json_object", "is_variant_null", "parse_json", "variant_get"},
    "rows are left to Spark: Java computes the last digit otherwise": {
        *("exp", "ln", "log10", "log2", "raised", "acos", "asin", "atan", "atanh", "cbrt", "cosh"),
        *("degrees", "expm1", "log1p", "radians", "sinh", "tanh"),
    },
    "no column here has months (PySpark has no Arrow type for them)": {"months_add", "months_subtract"},
    "the parser writes <> as NOT =": {"ne"},
}


def test_every_entry_is_compared_with_spark() -> None:
    named = {node.function for phrase in PHRASES for node in bound(phrase, "UTC").walk() if isinstance(node, Call)}
    assert {entry.name for entry in expr.all_entries()} - named == set().union(*ELSEWHERE.values())


@pytest.mark.parametrize("mode", list(expr.Mode))
def test_every_entry_takes_no_rows(mode: expr.Mode) -> None:
    """A body of ``exists`` has none where all arrays of a batch are empty."""
    piece = rows(integer0=[])
    columns = {f.id: piece.column(i) for i, f in enumerate(SCHEMA.fields)}
    wrong = {}
    for phrase in PHRASES:
        tree = bound(phrase, "UTC", mode)
        if expr.is_supported(tree):
            try:
                if found := plain(expr.evaluate(tree, columns, 0).values):
                    wrong[phrase] = repr(found)
            except Exception as error:
                wrong[phrase] = repr(error)
    assert wrong == {}
