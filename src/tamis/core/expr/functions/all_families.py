"""Declares the functions of all families in the registry. Importing this module is enough."""

from tamis.core.expr.functions.cast import casts
from tamis.core.expr.functions.datetime import (
    calendar,
    date_fields,
    date_pattern_casts,
    date_patterns,
    days,
    epoch,
    instants,
    interval_products,
    timestamp_parts,
    truncate,
)
from tamis.core.expr.functions.json import json_text, variant_values
from tamis.core.expr.functions.logic import boolean_logic, comparisons, conditional
from tamis.core.expr.functions.nested import collections, constructed, nested_fields
from tamis.core.expr.functions.numeric import arithmetic, bits, curves, powers, rounding, whole_numbers
from tamis.core.expr.functions.text import digests, encodings, regular_expressions, text_kernels, text_order

__all__ = [
    "arithmetic",
    "bits",
    "boolean_logic",
    "calendar",
    "casts",
    "collections",
    "comparisons",
    "conditional",
    "constructed",
    "curves",
    "date_fields",
    "date_pattern_casts",
    "date_patterns",
    "days",
    "digests",
    "encodings",
    "epoch",
    "instants",
    "interval_products",
    "json_text",
    "nested_fields",
    "powers",
    "regular_expressions",
    "rounding",
    "text_kernels",
    "text_order",
    "timestamp_parts",
    "truncate",
    "variant_values",
    "whole_numbers",
]
