"""The rule of tables that follow a source: only a synchronization changes their rows and columns."""

from __future__ import annotations

from tamis.errors import InvalidInput
from tamis.storage.commit_log.features import FOLLOWING
from tamis.storage.commit_log.model import Head
from tamis.storage.commit_log.proposal import Proposal

UPKEEP = frozenset({"analyze"})
"""Operations that add parts anew with more statistics, over the same files and rows."""


def follows_source(head: Head) -> bool:
    """Return whether the table follows a source."""
    return FOLLOWING in head.writer_features


def check_writable(head: Head, url: str) -> None:
    """Raise ``InvalidInput`` (``FOLLOWING_TABLE``) if the table follows a source."""
    if follows_source(head):
        place = next((source.root for source in reversed(head.sources)), "another table")
        raise InvalidInput(
            f"The table {url} follows {place}, so only a synchronization changes its rows and columns.",
            code="FOLLOWING_TABLE",
            name=url,
            remedy="Write there, then call sync; or adopt the source once more without follow=True.",
        )


def check_following(head: Head, proposal: Proposal, url: str) -> None:
    """Raise as ``check_writable`` does for a change of rows or columns that is no synchronization and no upkeep."""
    if not follows_source(head) or proposal.follows:
        return
    after = proposal.head
    columns = after is not None and (
        after.schemas != head.schemas
        or after.sources != head.sources
        or after.cluster_by != head.cluster_by
        or not follows_source(after)
        or after.constraints != head.constraints
    )
    removes = proposal.remove_segments or proposal.remove_parts or proposal.delete_rows or proposal.replace_all
    rows = (proposal.add or removes) and not (proposal.operation.name in UPKEEP and not proposal.data_change)
    if columns or rows:
        check_writable(head, url)
