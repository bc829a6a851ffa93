"""Finds the Tamis catalog that a name in a statement leads to, as Spark would resolve it."""

from __future__ import annotations

from typing import Any

from tamis.spark.jvm_bridge.adapter import Bridge


def tamis_catalog(bridge: Bridge, names: tuple[str, ...]) -> tuple[Any, tuple[str, ...]] | None:
    """Return the Tamis catalog that a name leads to, and the name within it; None if it is another catalog."""
    session = bridge.active_session()
    catalog = bridge.registered_catalog(names[0]) if len(names) > 1 else None
    if catalog is None:
        manager = session._jsparkSession.sessionState().catalogManager()
        if len(names) > 1 and (manager.isCatalogRegistered(names[0]) or "/" in names[-1]):
            return None  # a table of another catalog, or a path: format.`/folder`
        catalog = bridge.registered_catalog(str(manager.currentCatalog().name()))
        inside = names if len(names) > 1 else (*bridge.texts(manager.currentNamespace()), *names)
    else:
        inside = names[1:]
    if catalog is None or catalog.application != session.sparkContext.applicationId:
        return None
    return catalog, inside
