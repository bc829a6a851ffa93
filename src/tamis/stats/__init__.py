"""Statistics: collected while a part is written, kept as columns of its manifest row, read back as evidence."""

from tamis.stats.collect import Collector
from tamis.stats.encode import wanted
from tamis.stats.evidence import TableEvidence
from tamis.stats.union import union

__all__ = ["Collector", "TableEvidence", "union", "wanted"]
