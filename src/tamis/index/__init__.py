"""Secondary indexes: define, build, cover, look up, keep up (seed 002)."""

from tamis.index.build import Run, Work, run_here
from tamis.index.choose import NO_INDEX, Outcome, choose
from tamis.index.cover import Coverage, coverage, why_missing
from tamis.index.define import check_drop, check_use, defined, find, users_of, with_index, without_index
from tamis.index.shared import SharedLookup, read_shared
from tamis.index.upkeep import for_load

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
