"""The position at which a stream begins, kept in the checkpoint of its query.

Invariant: a query has one start. Spark's own log of offsets holds no start, and without one the newest version of
the table would be another start at each attempt.
"""

from __future__ import annotations

from collections.abc import Callable

from tamis.engine.operations.streaming.stream_source import Position
from tamis.spark.jvm_bridge.adapter import Bridge

_FILE = "tamis_start.json"


def stored_start(owner: Bridge, folder: str, begin: Callable[[], Position]) -> Position:
    """Return the start that ``folder`` holds; the first call keeps ``begin()`` there.

    ``folder`` is that of the source in the query's checkpoint. Call it in a thread of the query.
    """
    conf = owner.active_session()._jsparkSession.sessionState().newHadoopConf()
    files = owner.helper("Offsets")
    text = files.kept(conf, folder, _FILE)
    return Position.from_json(files.keep(conf, folder, _FILE, begin().to_json()) if text is None else text)
