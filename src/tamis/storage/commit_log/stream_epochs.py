"""Which epochs of which streaming queries are in the table: each at most once.

A commit of a stream holds the last epoch of every query that the table remembers, other commits point to it. So the check
costs one object, however long the log is.
"""

from __future__ import annotations

from tamis.storage.commit_log.commit_log import read_commits
from tamis.storage.commit_log.commit_record import Commit
from tamis.storage.object_store.store import Store

REMEMBERED = 256
"""Streaming queries whose last epoch is remembered; the one that committed longest ago is forgotten first."""

Streams = tuple[tuple[str, int], ...]
"""(query, last epoch), the latest to commit last."""


def next_streams(store: Store, latest: Commit | None, stream: tuple[str, int] | None) -> Streams | None:
    """What a commit of ``stream`` after ``latest`` must remember: nothing where it is of no stream; None where that epoch is in the table already."""
    if stream is None:
        return ()
    query, epoch = stream
    known: Streams = ()
    if latest is not None and latest.streams_version is not None:
        known = read_commits(store, [latest.streams_version], latest.table_id)[0].streams
    if epoch <= dict(known).get(query, -1):
        return None
    return (*(pair for pair in known if pair[0] != query), (query, epoch))[-REMEMBERED:]
