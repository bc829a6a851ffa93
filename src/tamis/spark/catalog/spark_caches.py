"""Cache invalidation: after a commit of this process to a table, Spark recomputes cached plans over it.

Spark does so itself after its own commands (INSERT, DELETE), but not after RESTORE and other procedures,
writes to a path, or ``tamis.open(path).append(…)``. All of these commit, so the commit triggers it.
"""

from __future__ import annotations

import warnings
from typing import Any

from tamis.spark.jvm_bridge.adapter import Bridge
from tamis.storage.commit_log.commit_landing import watch_commits
from tamis.storage.object_store import Store


def watch_spark_caches(bridge: Bridge) -> None:
    """Invalidate Spark's caches after every commit of this process. Registers once per JVM."""
    bridge.make_once("caches", "watcher", lambda: _watched(bridge))


def _watched(bridge: Bridge) -> bool:
    watch_commits(lambda store, _: _recache(bridge, store))
    return True


def _recache(bridge: Bridge, store: Store) -> None:
    """Invalidate cached plans over the table. Any failure only warns, since the commit has succeeded.

    Spark runs scans of cached plans again, which may fail. And where Ctrl-C has interrupted a call to Java, Py4J may
    give later calls of the thread the answers of earlier ones.
    """
    from py4j.protocol import Py4JNetworkError

    failures: list[Exception] = []
    try:
        helper = bridge.helper("Caches")
        found = list(helper.relations())
        for relation, key in zip(found[::2], found[1::2], strict=True):
            if _is_over(bridge.target_of_key(key), store):
                try:
                    helper.recache(relation)
                except Exception as error:  # noqa: BLE001  # others must be invalidated even so
                    failures.append(error)
    except Exception as error:  # noqa: BLE001  # see above: a wrong answer fails anywhere
        failures.append(error)
    if any(isinstance(error, (Py4JNetworkError, ReferenceError)) for error in failures):
        return  # the JVM and its caches are gone
    if failures:
        warnings.warn(
            f"What Spark has cached of {store.url} may be older than the table: {failures[0]}. Run REFRESH TABLE.",
            RuntimeWarning,
            stacklevel=3,
        )


def _is_over(target: Any, store: Store) -> bool:
    """Whether a cached relation reads the table in ``store``; metadata tables and feeds have no store."""
    cached = getattr(target, "store", None)
    return cached is not None and bool(cached.location.resolved_url == store.location.resolved_url)
