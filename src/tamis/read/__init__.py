"""The lazy reader of one part (seed 003)."""

from tamis.read.conjunction import can_fail
from tamis.read.expected import expected
from tamis.read.failure import failure
from tamis.read.gate import MOST_ROWS
from tamis.read.known import block_evidence, evidence_of, page_evidence
from tamis.read.lazy import read_part, runnable
from tamis.read.spec import ReadCounters, ReadSpec
from tamis.read.window import windows

__all__ = [
    "MOST_ROWS",
    "ReadCounters",
    "ReadSpec",
    "block_evidence",
    "can_fail",
    "evidence_of",
    "expected",
    "failure",
    "page_evidence",
    "read_part",
    "runnable",
    "windows",
]
