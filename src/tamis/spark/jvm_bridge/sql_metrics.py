"""SQL metrics of Tamis's nodes in the Spark UI and the event log, reported by the driver."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from tamis.spark.jvm_bridge.adapter import Bridge
from tamis.spark.jvm_bridge.wire_format import words_text

_PACKAGE = "org.apache.spark.sql.connector.metric."


class Metric(NamedTuple):
    """A metric that a node declares; ``kind`` is ``count`` or ``bytes``."""

    kind: str
    name: str
    description: str


def declared_metrics(owner: Bridge, metrics: Iterable[Metric]) -> Any:
    """A Java array of metrics."""
    return _made(owner, [(metric, 0) for metric in metrics])


def metric_values(owner: Bridge, metrics: Iterable[Metric], values: Mapping[str, int]) -> Any:
    """A Java array of the values of those ``metrics`` that are in ``values``, by name."""
    return _made(owner, [(metric, values[metric.name]) for metric in metrics if metric.name in values])


def _made(owner: Bridge, metrics: list[tuple[Metric, int]]) -> Any:
    text = words_text(word for metric, value in metrics for word in (*metric, str(value)))
    return owner.make_once("metrics", "maker", lambda: _maker(owner))(text)


def define_metrics(owner: Bridge) -> None:
    """Define the Java classes of metrics, which others may then be compiled against."""
    for name in ("TamisCount", "TamisBytes"):
        owner.define_beside(_PACKAGE + "CustomMetric", _PACKAGE + name)


def _maker(owner: Bridge) -> Any:
    define_metrics(owner)
    return owner.static(_PACKAGE + "TamisBytes", "made")
