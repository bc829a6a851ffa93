"""Specs and their lattice; abstract interpretation of filters over columns of statistics (seed 000)."""

from tamis.domain.decide import Decision, decide
from tamis.domain.evidence import ColumnEvidence, Evidence

__all__ = ["ColumnEvidence", "Decision", "Evidence", "decide"]
