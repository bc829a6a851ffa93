"""The phrases that are compared with Spark name every entry of the catalogue, or it is said here who else compares it."""

from __future__ import annotations

from tamis.core import expr
from tamis.core.expr import Call
from tests.expr.oracle import bound
from tests.expr.phrases import PHRASES

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
