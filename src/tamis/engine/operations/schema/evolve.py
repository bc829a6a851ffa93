"""Changing a table's schema or properties: one commit of metadata, made again on whatever others committed meanwhile.

Law: no data is read or written. What is committed was checked against the very head that it follows, so the sequence of schemas is valid at every
version; and a change that another writer's change has made meaningless is refused instead of guessed at.
"""

from __future__ import annotations

from collections.abc import Callable

from tamis.core.schema.registry import Evolution, check_forward, evolution
from tamis.engine.scan import Options
from tamis.engine.secondary_index.index_definition import check_drop
from tamis.errors import Conflict
from tamis.storage.commit_log import Head, Operation, Proposal, Snapshot, commit, load
from tamis.storage.commit_log.commit_log import read_commits
from tamis.storage.files.formats import check_format
from tamis.storage.object_store import Store

ATTEMPTS = 100
"""Changes of the head by others after which a change gives up."""

Planned = Callable[[Head], Head]
"""The head that is wanted after the one given; raises where that cannot be."""


def evolve(
    store: Store, snapshot: Snapshot, plan: Planned, *, operation_id: str, policy: str | None = None, operation: str = "schema"
) -> Snapshot:
    """Commits ``plan`` of the table's head; nothing where it plans no change. ``policy`` overrides the table's own ``tamis.schema.policy``.

    Raises ``IncompatibleSchema`` (``FORWARD_ONLY``) under that policy, ``Conflict``, and what ``plan`` raises. Repeated with the same ``operation_id`` and
    ``snapshot`` after an answer was lost, it gives the first answer.
    """
    for _ in range(ATTEMPTS):
        head = plan(snapshot.head)
        if head == snapshot.head:
            return snapshot
        check_policy(snapshot.head, head, policy)
        if head.schema is not None and head.schema != snapshot.head.schema:
            check_format(head.format, head.schema)
            for gone in set(head.dropped) - set(snapshot.head.dropped):
                check_drop(snapshot.head, gone.id, gone.name)
        name, told = described(snapshot.head, head)
        try:
            return commit(
                store,
                Proposal(
                    operation=Operation(name if operation == "schema" else operation, parameters=told),
                    read_version=snapshot.version,
                    head=head,
                    operation_id=operation_id,
                    table_id=snapshot.head.table_id,
                ),
            )
        except Conflict as error:
            if error.code != "CONFLICT_HEAD_CHANGED":
                raise
            latest = load(store)
            made = _made(store, operation_id, snapshot, latest)
            if made is not None:
                return made
            snapshot = latest
    raise Conflict(
        f"{ATTEMPTS} other changes of the table's schema or properties landed before this one.",
        code="CONFLICT_HEAD_CHANGED",
        name=store.url,
        remedy="Try again with fewer writers.",
    )


def _made(store: Store, operation_id: str, before: Snapshot, latest: Snapshot) -> Snapshot | None:
    """The version that this very operation made after ``before``, behind a change of another: an earlier call of it whose answer was lost."""
    commits = read_commits(store, range(before.version + 1, latest.version + 1), latest.head.table_id)
    return next((Snapshot.at(store, commit) for commit in commits if commit.operation_id == operation_id), None)


def check_policy(before: Head, after: Head, policy: str | None = None) -> None:
    """Raises ``IncompatibleSchema`` where the policy forbids the step."""
    chosen = policy or Options.resolve(None, None, after.properties).schema_policy
    if chosen == "forward" and before.schema is not None and after.schema is not None and before.schema != after.schema:
        check_forward(before.schema, before.dropped, after.schema)


def outcome(before: Head, after: Head) -> Evolution:
    """What the step does, for a dry run and for the caller."""
    assert after.schema is not None
    if before.schema == after.schema:
        return Evolution(after.schema.schema_id, after.schema, (), ())
    return evolution(before.schemas, before.dropped, after.schema)


def described(before: Head, after: Head) -> tuple[str, dict[str, object]]:
    """The operation's name and parameters: what changed, in words."""
    words = [] if after.schema is None or after.schema == before.schema else list(outcome(before, after).changes)
    name = "schema" if words else "properties"
    old, new = before.properties, after.properties
    words += [f"set {key} to {new[key]}" for key in new if not key.startswith("tamis:") and old.get(key) != new[key]]
    words += [f"unset {key}" for key in old if not key.startswith("tamis:") and key not in new]
    if before.comment != after.comment:
        words.append("comment of the table " + ("dropped" if after.comment is None else f"set to {after.comment!r}"))
    return name, {"changes": words} if words else {}
