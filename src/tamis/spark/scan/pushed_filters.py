"""Which scan builders this Spark hands Catalyst filters to: any that takes them, or its own file scans only (4.0)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tamis.spark.jvm_bridge.adapter import Bridge

CATALYST_FILTERS = "org.apache.spark.sql.internal.connector.SupportsPushDownCatalystFilters"
_BUILDER = "org.apache.spark.sql.connector.read.ScanBuilder"
_PUSHING = "org.apache.spark.sql.execution.datasources.v2.PushDownUtils"


def java_builder(owner: Bridge, interfaces: Sequence[str], target: object) -> Any:
    """A Java ``ScanBuilder`` that ``target`` implements, of a class that gets its filters from this Spark."""
    proxy, wrap = owner.implement(interfaces, target, "builder"), builder_wrapper(owner)
    return proxy if wrap is None else wrap.over(proxy)


def builder_wrapper(owner: Bridge) -> Any:
    """The helper that makes of a builder one that gets its filters from this Spark; None if any does."""
    return None if _any_builder_gets_filters(owner) else owner.helper("FileFilters")


def _any_builder_gets_filters(owner: Bridge) -> bool:
    """Have Spark push no filters into a builder that notes whether it is asked. Once per JVM."""
    return bool(owner.make_once("probe", _PUSHING, lambda: _asked(owner)))


def _asked(owner: Bridge) -> bool:
    from py4j.protocol import Py4JError

    probe = _Probe()
    try:
        owner.scala_object(_PUSHING).pushFilters(owner.implement([_BUILDER, CATALYST_FILTERS], probe), owner.seq([]))
    except Py4JError:  # another signature, so a newer Spark
        return True
    return probe.asked


class _Probe:
    def __init__(self) -> None:
        self.asked = False

    def pushFilters(self, filters: Any) -> Any:  # noqa: N802  # Spark's name
        self.asked = True
        return filters

    def pushedFilters(self) -> list[Any]:  # noqa: N802  # Spark's name
        return []
