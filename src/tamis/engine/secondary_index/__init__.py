"""Secondary indexes: definition, build, coverage, lookup, maintenance."""

from tamis.engine.secondary_index.index_build import Run, Work, run_here
from tamis.engine.secondary_index.index_choice import NO_INDEX, Outcome, choose
from tamis.engine.secondary_index.index_coverage import Coverage, coverage, why_missing
from tamis.engine.secondary_index.index_definition import (
    check_drop,
    check_use,
    defined,
    find,
    users_of,
    with_index,
    without_index,
)
from tamis.engine.secondary_index.index_upkeep import for_load
from tamis.engine.secondary_index.shared_lookup import SharedLookup, read_shared

__all__ = [
    "NO_INDEX",
    "Coverage",
    "Outcome",
    "Run",
    "SharedLookup",
    "Work",
    "check_drop",
    "check_use",
    "choose",
    "coverage",
    "defined",
    "find",
    "for_load",
    "read_shared",
    "run_here",
    "users_of",
    "why_missing",
    "with_index",
    "without_index",
]
