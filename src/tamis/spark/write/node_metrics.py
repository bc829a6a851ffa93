"""The SQL metrics of a write node: what its commit did to the table."""

from __future__ import annotations

from typing import Any

from tamis.engine.operations import Result
from tamis.spark.jvm_bridge.adapter import Bridge
from tamis.spark.jvm_bridge.sql_metrics import Metric, declared_metrics, metric_values

_FIELDS = {
    "version": Metric("count", "tamisVersion", "committed version"),
    "rows_inserted": Metric("count", "tamisRowsInserted", "rows inserted"),
    "rows_updated": Metric("count", "tamisRowsUpdated", "rows updated"),
    "rows_deleted": Metric("count", "tamisRowsDeleted", "rows deleted"),
    "parts_added": Metric("count", "tamisPartsAdded", "parts added"),
    "parts_removed": Metric("count", "tamisPartsRemoved", "parts removed"),
    "bytes_written": Metric("bytes", "tamisBytesWritten", "bytes written"),
}


class NodeMetrics:
    """The metrics of a write node, which has values once its write has been committed."""

    def __init__(self, owner: Bridge) -> None:
        self._owner = owner
        self.result: Result | None = None

    def declared(self) -> Any:
        return declared_metrics(self._owner, _FIELDS.values())

    def values(self) -> Any:
        result = {} if self.result is None else self.result.as_dict()
        return metric_values(
            self._owner, _FIELDS.values(), {m.name: result[f] for f, m in _FIELDS.items() if f in result}
        )
