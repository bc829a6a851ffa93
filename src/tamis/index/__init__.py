"""Secondary indexes: define, build, cover, look up, keep up (seed 002)."""

from tamis.index.build import BuildSpec, Run, run_here
from tamis.index.choose import Outcome, choose
from tamis.index.cover import Coverage, coverage, why_missing
from tamis.index.define import check_drop, defined, find, users_of, with_index, without_index
from tamis.index.keep import for_load

__all__ = [
    "BuildSpec",
    "Coverage",
    "Outcome",
    "Run",
    "check_drop",
    "choose",
    "coverage",
    "defined",
    "find",
    "for_load",
    "run_here",
    "users_of",
    "why_missing",
    "with_index",
    "without_index",
]
