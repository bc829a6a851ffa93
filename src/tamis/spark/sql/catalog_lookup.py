"""Finds the Tamis catalog that a name in a statement leads to, as Spark would resolve it."""

from __future__ import annotations

from typing import Any

from tamis.spark.jvm_bridge.adapter import Bridge


def tamis_catalog(bridge: Bridge, names: tuple[str, ...]) -> tuple[Any, tuple[str, ...]] | None:
    """Return the Tamis catalog that a name leads to, and the name within it; None if it is another catalog.

    In the text of a view, as long as Spark analyzes it, names are those of the session that made the view.
    """
    session = bridge.active_session()
    catalog = bridge.registered_catalog(names[0]) if len(names) > 1 else None
    if catalog is None:
        manager = session._jsparkSession.sessionState().catalogManager()
        if len(names) > 1 and (manager.isCatalogRegistered(names[0]) or "/" in names[-1]):
            return None  # a table of another catalog, or a path: format.`/folder`
        of_view = _view_namespace(bridge)
        current = of_view or (str(manager.currentCatalog().name()), *bridge.texts(manager.currentNamespace()))
        catalog = bridge.registered_catalog(current[0])
        inside = names if len(names) > 1 else (*current[1:], *names)
    else:
        inside = names[1:]
    if catalog is None or catalog.application != session.sparkContext.applicationId:
        return None
    return catalog, inside


def _view_namespace(bridge: Bridge) -> tuple[str, ...]:
    """Return the catalog and namespace of the view that Spark analyzes in this thread; nothing outside of views."""
    context = bridge.scala_object("org.apache.spark.sql.catalyst.analysis.AnalysisContext").get()
    return bridge.texts(
        bridge.static("scala.jdk.javaapi.CollectionConverters", "asJava")(context.catalogAndNamespace())
    )
