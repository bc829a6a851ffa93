"""Changes of a table's schema or properties: one metadata commit, rebased on whatever others committed.

Invariant: no data is written, and none is read but to test it by the new head (``constraint_validation``). The
committed head was checked against the head it follows, so the sequence of schemas is valid at every version; a change
made meaningless by another writer's change is refused instead of reinterpreted.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from tamis.core.schema.difference import shown_path
from tamis.core.schema.schema_sequence import Evolution, append_outcome, check_forward
from tamis.engine.operations.schema.constraint_validation import Validation
from tamis.engine.scan import Options
from tamis.engine.secondary_index.index_definition import check_drop
from tamis.storage.commit_log import Head, Operation, Proposal, Snapshot, commit, load
from tamis.storage.commit_log.commit_objects import read_commits
from tamis.storage.commit_log.retry_policy import HEAD_CHANGES
from tamis.storage.files.formats import check_format
from tamis.storage.object_store import Store

Planned = Callable[[Head], Head]
"""Returns the wanted head after the given one; raises if there is none."""


def commit_schema(
    store: Store,
    snapshot: Snapshot,
    plan: Planned,
    *,
    operation_id: str,
    policy: str | None = None,
    operation: str = "schema",
) -> Snapshot:
    """Commit ``plan`` of the table's head; a no-op if that changes nothing.

    ``policy`` overrides the table's ``tamis.schema.policy``. A repeat with the same ``operation_id`` and
    ``snapshot`` after a lost answer returns the first result. Existing rows are tested by a new CHECK, and by a new
    type that may not hold them. Raises ``IncompatibleSchema`` (``FORWARD_ONLY`` under that policy,
    ``MIGRATION_TYPE_CHANGE``), ``SchemaMismatch`` (``CHECK_VIOLATION``), ``Conflict``, and the errors of ``plan``.
    """
    validation = Validation(store)

    def attempt(before: int) -> Snapshot:
        base = load(store) if before else snapshot
        if before and (made := _made(store, operation_id, snapshot, base)) is not None:
            return made
        head = plan(base.head)
        if head == base.head:
            return base
        check_policy(base.head, head, policy)
        if head.schema is not None and head.schema != base.head.schema:
            check_format(head.format, head.schema)
            for gone in set(head.dropped) - set(base.head.dropped):
                check_drop(base.head, gone.id, gone.name)
        name, parameters = described(base.head, head)
        proposal = Proposal(
            operation=Operation(name if operation == "schema" else operation, parameters=parameters),
            read_version=base.version,
            read_operation_id=base.commit.operation_id,
            head=head,
            operation_id=operation_id,
            table_id=snapshot.head.table_id,
            **validation.run(base, head),
        )
        return commit(store, proposal)

    return HEAD_CHANGES.run(attempt)


def _made(store: Store, operation_id: str, before: Snapshot, latest: Snapshot) -> Snapshot | None:
    """Return the version that an earlier attempt of this operation made after ``before``, if any."""
    commits = read_commits(store, range(before.version + 1, latest.version + 1), latest.head.table_id)
    return next((Snapshot.at(store, commit) for commit in commits if commit.operation_id == operation_id), None)


def check_policy(before: Head, after: Head, policy: str | None = None) -> None:
    """Raise ``IncompatibleSchema`` if the policy forbids the change."""
    chosen = policy or Options.resolve(None, None, after.properties).schema_policy
    if chosen == "forward" and before.schema is not None and after.schema is not None and before.schema != after.schema:
        check_forward(before.schema, before.dropped, after.schema)


def describe_outcome(before: Head, after: Head) -> Evolution:
    """Describe the change, for dry runs and callers."""
    assert after.schema is not None
    constraints = _constraints(before, after)
    if before.schema == after.schema:
        return Evolution(after.schema.schema_id, after.schema, constraints, ())
    found = append_outcome(before.schemas, before.dropped, after.schema)
    return replace(found, changes=(*found.changes, *_clustering(before, after), *constraints))


def _constraints(before: Head, after: Head) -> tuple[str, ...]:
    """Return a phrase for each constraint that was added or dropped."""
    if before.constraints == after.constraints or after.schema is None:
        return ()
    old, new = ({one.constraint_id: one for one in head.constraints} for head in (before, after))
    gone = [f"constraint {old[i].name} dropped" for i in old if i not in new]
    come = [f"constraint {new[i].name} added: {new[i].definition(after.schema)}" for i in new if i not in old]
    return (*gone, *come)


def _clustering(before: Head, after: Head) -> tuple[str, ...]:
    """Return a phrase if the clustering was changed, other than by dropping its columns."""
    schema = after.schema
    if before.schema is None or schema is None:
        return ()
    if after.cluster_by == tuple(ids for ids in before.cluster_by if schema.paths.get(ids[-1]) == ids):
        return ()
    names = [shown_path(schema, schema.by_id[ids[-1]]) for ids in after.cluster_by]
    return (f"clustered by {', '.join(names)}",) if names else ("no longer clustered",)


def described(before: Head, after: Head) -> tuple[str, dict[str, object]]:
    """Return the operation's name and parameters, which describe the changes in words."""
    words = [] if after.schema is None else list(describe_outcome(before, after).changes)
    name = "schema" if words else "properties"
    old, new = before.properties, after.properties
    words += [f"set {key} to {new[key]}" for key in new if not key.startswith("tamis:") and old.get(key) != new[key]]
    words += [f"unset {key}" for key in old if not key.startswith("tamis:") and key not in new]
    if before.comment != after.comment:
        words.append("comment of the table " + ("dropped" if after.comment is None else f"set to {after.comment!r}"))
    return name, {"changes": words} if words else {}
