"""The abstract rule of casts, except casts of JSON paths."""

from __future__ import annotations

from tamis.core.expr.tree import Call
from tamis.core.pruning import text_rules
from tamis.core.pruning.monotone_rules import monotone_bounds
from tamis.core.pruning.time_zone_rules import local_rule
from tamis.core.pruning.value_spec import Abstract, Spec, truth_of
from tamis.core.types import BOOLEAN, DATE, INTEGRAL, STRING, TIMESTAMP, TIMESTAMP_NTZ


def cast_rule(call: Call, args: list[Spec]) -> Abstract:
    """Return the spec of a cast of ``args``."""
    instants = (DATE, TIMESTAMP, TIMESTAMP_NTZ)
    zoned = args[0].type in instants and (call.type in instants or call.type == STRING)
    if call.type == STRING and args[0].type in INTEGRAL:
        return text_rules.integer_text(call, args[0])
    out = local_rule(call, args) if zoned else monotone_bounds(call, args)
    return truth_of(out) if call.type == BOOLEAN else out
