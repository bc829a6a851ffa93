"""Specs and their lattice; abstract interpretation of filters over columns of statistics (seed 000)."""

from tamis.core.pruning.decide import Decision, decide
from tamis.core.pruning.evidence import ColumnEvidence, DocumentEvidence, Evidence
from tamis.core.pruning.json_rules import document_columns, document_places

__all__ = ["ColumnEvidence", "Decision", "DocumentEvidence", "Evidence", "decide", "document_columns", "document_places"]
