"""The filter language: typed tree, registry of functions, parser and binder of Spark SQL text, and evaluator."""

from tamis.core.expr.arrow_values import Evaluated
from tamis.core.expr.bound_column import column_by_ids
from tamis.core.expr.calls import make_call
from tamis.core.expr.evaluate import evaluate, filter_mask
from tamis.core.expr.functions import all_families as _families  # noqa: F401  # declares all functions
from tamis.core.expr.key_filters import MOST_FETCHED_KEYS, MOST_KEYS, equal_as_arrow, key_filter
from tamis.core.expr.parse_filter import parse_predicate, parse_value
from tamis.core.expr.registry import all_entries, catalyst_name, function_entry, sql_name
from tamis.core.expr.short_circuit import ShortCircuit
from tamis.core.expr.to_sql import short_sql, to_sql
from tamis.core.expr.tree import (
    FALSE,
    TRUE,
    Call,
    Column,
    Element,
    Expr,
    Literal,
    Literals,
    Mode,
    Moving,
    Opaque,
    column_paths,
    conjuncts_of,
    evidence_ids,
)
from tamis.core.expr.tree import column_paths as fields
from tamis.core.expr.unsupported_filters import check_readable
from tamis.core.expr.unsupported_rows import can_fail, check_supported, is_supported, refusal_error

__all__ = [
    "FALSE",
    "MOST_FETCHED_KEYS",
    "MOST_KEYS",
    "TRUE",
    "Call",
    "Column",
    "Element",
    "Evaluated",
    "Expr",
    "Literal",
    "Literals",
    "Mode",
    "Moving",
    "Opaque",
    "ShortCircuit",
    "all_entries",
    "can_fail",
    "catalyst_name",
    "check_readable",
    "check_supported",
    "column_by_ids",
    "column_paths",
    "conjuncts_of",
    "equal_as_arrow",
    "evaluate",
    "evidence_ids",
    "fields",
    "filter_mask",
    "function_entry",
    "is_supported",
    "key_filter",
    "make_call",
    "parse_predicate",
    "parse_value",
    "refusal_error",
    "short_sql",
    "sql_name",
    "to_sql",
]
