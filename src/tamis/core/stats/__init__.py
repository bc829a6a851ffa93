"""Statistics: collected while a part is written, stored as columns of its manifest row, read as evidence."""

from tamis.core.stats.collector import Collector
from tamis.core.stats.statistics_columns import wanted
from tamis.core.stats.statistics_union import union
from tamis.core.stats.table_evidence import TableEvidence

__all__ = ["Collector", "TableEvidence", "union", "wanted"]
