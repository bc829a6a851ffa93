"""Keeps Spark's caches true: whatever commits to a table in this process, what Spark has cached of the table is computed anew.

Spark does so after its own commands (INSERT, DELETE …). It knows nothing of RESTORE and other procedures, of writes to a path, or of
``tamis.open(path).append(…)``; and a commit is what they all have in common.
"""

from __future__ import annotations

import warnings

from tamis.spark.jvm_bridge.adapter import Bridge
from tamis.storage.commit_log.commit_landing import watch_commits
from tamis.storage.object_store import Store


def keep_caches_true(bridge: Bridge) -> None:
    """Sees to it, once for this JVM, that every commit of this process reaches Spark's caches."""
    bridge.once("caches", "watcher", lambda: _watched(bridge))


def _watched(bridge: Bridge) -> bool:
    watch_commits(lambda store: _recache(bridge, store))
    return True


def _recache(bridge: Bridge, store: Store) -> None:
    """The commit stands: what fails here fails no write, but is said."""
    from py4j.protocol import Py4JError, Py4JNetworkError

    try:
        helper = bridge.helper("Caches")
        found = list(helper.relations())
        for relation, key in zip(found[::2], found[1::2], strict=True):
            table = bridge.target_of_key(key)
            if table is not None and table.store.url == store.url:
                helper.recache(relation)
    except (Py4JNetworkError, ReferenceError):  # the JVM has gone, and its caches with it
        return
    except Py4JError as error:
        warnings.warn(
            f"What Spark has cached of {store.url} may be older than the table: {error}. Run REFRESH TABLE.", RuntimeWarning, stacklevel=2
        )
