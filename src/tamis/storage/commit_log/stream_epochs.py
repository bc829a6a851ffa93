"""Tracks the committed epochs of streaming queries, so that each epoch is committed at most once.

A commit of a stream holds the last epoch of every query that the table remembers, and other commits point to
it. The check therefore reads one object, however long the log is.
"""

from __future__ import annotations

from tamis.errors import InvalidInput
from tamis.storage.commit_log.commit_objects import read_commits
from tamis.storage.commit_log.commit_record import Commit
from tamis.storage.commit_log.model import StreamEpoch
from tamis.storage.object_store.store import Store

REMEMBERED = 256
"""Number of streaming queries remembered; the one that committed longest ago is forgotten first."""

Streams = tuple[StreamEpoch, ...]
"""The last epoch of each query, the latest to commit last."""


def next_streams(store: Store, latest: Commit | None, stream: StreamEpoch | None) -> Streams | None:
    """Return the epochs that a commit of ``stream`` after ``latest`` must record.

    Returns () if the commit is not of a stream, and None if the epoch is already in the table.
    Raises ``InvalidInput`` (``EPOCH_DIFFERS``) if it is in the table and this is another micro-batch.
    """
    if stream is None:
        return ()
    known: Streams = ()
    if latest is not None and latest.streams_version is not None:
        known = read_commits(store, [latest.streams_version], latest.table_id)[0].streams
    last = next((one for one in known if one.query == stream.query), None)
    if last is not None and stream.epoch <= last.epoch:
        _check_repeated(stream, last)
        return None
    return (*(one for one in known if one.query != stream.query), stream)[-REMEMBERED:]


def _check_repeated(stream: StreamEpoch, last: StreamEpoch) -> None:
    """Raise ``InvalidInput`` (``EPOCH_DIFFERS``) if ``stream`` is another micro-batch than the last one of its query.

    Spark repeats the last micro-batch only, and that one keeps its time. Another one under a known number comes from a
    checkpoint that is new, older than the table, or a copy; its rows may be others.
    """
    if stream.batch_millis is None or last.batch_millis in (None, stream.batch_millis):
        return
    raise InvalidInput(
        f"The table has the micro-batches of the query {stream.query!r} up to {last.epoch}. Micro-batch {stream.epoch} "
        "of this checkpoint may have other rows: the checkpoint is new, older than the table, or a copy.",
        code="EPOCH_DIFFERS",
        name=stream.query,
        remedy="Start the query with a new checkpoint, so that it begins after the last row that the table has "
        "(startingVersion, startingTimestamp or what its source offers), and with another name if it has one: "
        "stream_writer(query='…').",
    )
