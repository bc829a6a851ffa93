"""Pruning by abstract interpretation: filters are evaluated over columns of statistics as specs."""

from tamis.core.pruning.decide import Decision, decide
from tamis.core.pruning.evidence import ColumnEvidence, DocumentEvidence, Evidence
from tamis.core.pruning.json_rules import document_columns, document_places

__all__ = [
    "ColumnEvidence",
    "Decision",
    "DocumentEvidence",
    "Evidence",
    "decide",
    "document_columns",
    "document_places",
]
