"""Secondary indexes: definition, build, coverage, lookup, maintenance."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tamis.lazy_imports import lazy_attributes

if TYPE_CHECKING:
    from tamis.engine.secondary_index.index_build import Run as Run
    from tamis.engine.secondary_index.index_build import Work as Work
    from tamis.engine.secondary_index.index_build import run_here as run_here
    from tamis.engine.secondary_index.index_choice import NO_INDEX as NO_INDEX
    from tamis.engine.secondary_index.index_choice import LookupOutcome as LookupOutcome
    from tamis.engine.secondary_index.index_choice import choose_candidates as choose_candidates
    from tamis.engine.secondary_index.index_coverage import Coverage as Coverage
    from tamis.engine.secondary_index.index_coverage import compute_coverage as compute_coverage
    from tamis.engine.secondary_index.index_coverage import why_missing as why_missing
    from tamis.engine.secondary_index.index_definition import check_drop as check_drop
    from tamis.engine.secondary_index.index_definition import check_use as check_use
    from tamis.engine.secondary_index.index_definition import define_index as define_index
    from tamis.engine.secondary_index.index_definition import find_index as find_index
    from tamis.engine.secondary_index.index_definition import users_of as users_of
    from tamis.engine.secondary_index.index_definition import with_index as with_index
    from tamis.engine.secondary_index.index_definition import without_index as without_index
    from tamis.engine.secondary_index.index_upkeep import entries_for_load as entries_for_load
    from tamis.engine.secondary_index.index_use import IndexUse as IndexUse
    from tamis.engine.secondary_index.shared_lookup import SharedLookup as SharedLookup
    from tamis.engine.secondary_index.shared_lookup import read_shared as read_shared
else:
    __getattr__ = lazy_attributes(
        __name__,
        {
            "Coverage": "tamis.engine.secondary_index.index_coverage",
            "IndexUse": "tamis.engine.secondary_index.index_use",
            "LookupOutcome": "tamis.engine.secondary_index.index_choice",
            "NO_INDEX": "tamis.engine.secondary_index.index_choice",
            "Run": "tamis.engine.secondary_index.index_build",
            "SharedLookup": "tamis.engine.secondary_index.shared_lookup",
            "Work": "tamis.engine.secondary_index.index_build",
            "check_drop": "tamis.engine.secondary_index.index_definition",
            "check_use": "tamis.engine.secondary_index.index_definition",
            "choose_candidates": "tamis.engine.secondary_index.index_choice",
            "compute_coverage": "tamis.engine.secondary_index.index_coverage",
            "define_index": "tamis.engine.secondary_index.index_definition",
            "entries_for_load": "tamis.engine.secondary_index.index_upkeep",
            "find_index": "tamis.engine.secondary_index.index_definition",
            "read_shared": "tamis.engine.secondary_index.shared_lookup",
            "run_here": "tamis.engine.secondary_index.index_build",
            "users_of": "tamis.engine.secondary_index.index_definition",
            "why_missing": "tamis.engine.secondary_index.index_coverage",
            "with_index": "tamis.engine.secondary_index.index_definition",
            "without_index": "tamis.engine.secondary_index.index_definition",
        },
    )
