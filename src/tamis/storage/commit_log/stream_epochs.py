"""Tracks the committed epochs of streaming queries, so that each epoch is committed at most once.

A commit of a stream holds the last epoch of every query that the table remembers, and other commits point to
it. The check therefore reads one object, however long the log is.
"""

from __future__ import annotations

from tamis.storage.commit_log.commit_objects import read_commits
from tamis.storage.commit_log.commit_record import Commit
from tamis.storage.object_store.store import Store

REMEMBERED = 256
"""Number of streaming queries remembered; the one that committed longest ago is forgotten first."""

Streams = tuple[tuple[str, int], ...]
"""(query, last epoch), the latest to commit last."""


def next_streams(store: Store, latest: Commit | None, stream: tuple[str, int] | None) -> Streams | None:
    """Return the epochs that a commit of ``stream`` after ``latest`` must record.

    Returns () if the commit is not of a stream, and None if the epoch is already in the table.
    """
    if stream is None:
        return ()
    query, epoch = stream
    known: Streams = ()
    if latest is not None and latest.streams_version is not None:
        known = read_commits(store, [latest.streams_version], latest.table_id)[0].streams
    if epoch <= dict(known).get(query, -1):
        return None
    return (*(pair for pair in known if pair[0] != query), (query, epoch))[-REMEMBERED:]
