"""The lazy reader of a single part."""

from tamis.core.pruning.selectivity import expected_share
from tamis.engine.part_reader.evidence_cache import block_evidence, evidence_of, page_evidence
from tamis.engine.part_reader.filter_failure import failure_error, is_left_to_spark
from tamis.engine.part_reader.filter_order import can_fail
from tamis.engine.part_reader.lazy_choice import MOST_ROWS, ScanScattering
from tamis.engine.part_reader.lazy_reader import evaluates_all, read_part, runnable_conjuncts
from tamis.engine.part_reader.part_windows import split_windows
from tamis.engine.part_reader.read_spec import ReadCounters, ReadSpec

__all__ = [
    "MOST_ROWS",
    "ReadCounters",
    "ReadSpec",
    "ScanScattering",
    "block_evidence",
    "can_fail",
    "evaluates_all",
    "evidence_of",
    "expected_share",
    "failure_error",
    "is_left_to_spark",
    "page_evidence",
    "read_part",
    "runnable_conjuncts",
    "split_windows",
]
