"""Specs and their lattice; abstract interpretation of filters over columns of statistics (seed 000)."""

from tamis.domain.decide import Decision, decide
from tamis.domain.documents import document_columns, document_places
from tamis.domain.evidence import ColumnEvidence, DocumentEvidence, Evidence

__all__ = ["ColumnEvidence", "Decision", "DocumentEvidence", "Evidence", "decide", "document_columns", "document_places"]
