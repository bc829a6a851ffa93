"""The lazy reader of one part (seed 003)."""

from tamis.read.failure import failure
from tamis.read.lazy import read_part
from tamis.read.spec import ReadCounters, ReadSpec
from tamis.read.window import windows

__all__ = ["ReadCounters", "ReadSpec", "failure", "read_part", "windows"]
