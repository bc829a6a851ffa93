"""The filter language: tree, function catalogue, parse, evaluate."""

from tamis.expr.catalogue import call, catalyst_name, entries, function, sql_name
from tamis.expr.evaluate import evaluate, filter_mask
from tamis.expr.frontend import bound, parse, parse_value
from tamis.expr.readable import check_readable
from tamis.expr.refusal import check_supported, refused, supported
from tamis.expr.sql import short_sql, to_sql
from tamis.expr.tree import (
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
    columns,
    conjuncts,
    evidence_ids,
)
from tamis.expr.tree import columns as fields
from tamis.expr.values import Evaluated

__all__ = [
    "FALSE",
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
    "bound",
    "call",
    "catalyst_name",
    "check_readable",
    "check_supported",
    "columns",
    "conjuncts",
    "entries",
    "evaluate",
    "evidence_ids",
    "fields",
    "filter_mask",
    "function",
    "parse",
    "parse_value",
    "refused",
    "short_sql",
    "sql_name",
    "supported",
    "to_sql",
]
