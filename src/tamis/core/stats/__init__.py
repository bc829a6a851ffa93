"""Statistics: collected while a part is written, stored as columns of its manifest row, read as evidence."""

from tamis.core.stats.collector import Collector
from tamis.core.stats.statistics_columns import columns_of_ids
from tamis.core.stats.statistics_union import union_statistics
from tamis.core.stats.table_evidence import TableEvidence

__all__ = ["Collector", "TableEvidence", "columns_of_ids", "union_statistics"]
