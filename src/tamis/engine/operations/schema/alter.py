"""Table changes by name, committed together; shared by ``table.alter()`` and ALTER TABLE.

Invariant: names are resolved against the head that the change follows. If another writer has made a name
refer to another column since the change was requested, nothing happens, and ``Conflict`` is raised.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from tamis.core.schema import schema_edits as edit
from tamis.core.schema.additions import added_fields, widened_fields
from tamis.core.schema.carried_defaults import carry_defaults
from tamis.core.schema.clustering_key import clustering_keys
from tamis.core.schema.schema_edits import Path, Place
from tamis.core.schema.schema_sequence import Evolution, check_next
from tamis.core.stats.place_properties import renamed_properties
from tamis.core.types import DataType, Field, Schema
from tamis.engine.operations.schema.constraint_definitions import ConstraintRequest, with_constraint, without_constraint
from tamis.engine.operations.schema.evolve import check_policy, commit_schema, describe_outcome
from tamis.engine.scan import check_places, check_properties
from tamis.errors import Conflict, InvalidInput, TamisError
from tamis.storage.commit_log import Constraint, Head, Snapshot, load, next_schema
from tamis.storage.commit_log.constraint_columns import renamed_constraints, with_constraints
from tamis.storage.object_store import Store
from tamis.world import new_id


@dataclass(slots=True)
class Draft:
    """A head under construction; ``targets`` are the ids of the columns resolved so far."""

    schema: Schema
    highest_id: int
    properties: dict[str, str]
    comment: str | None
    targets: list[int] = field(default_factory=list)
    said: dict[str, str] = field(default_factory=dict)
    """The properties set by the steps."""
    cluster_by: tuple[tuple[int, ...], ...] | None = None
    """The clustering set by the steps as id paths; None if they leave it."""
    constraints: tuple[Constraint, ...] = ()
    """The constraints under the names of ``schema``."""
    follows: bool = True
    """Whether constraints follow the changes; False to resolve the targets only."""

    def set(self, properties: Mapping[str, str]) -> None:
        self.properties.update(properties)
        self.said.update(properties)

    def edit(self, change: Callable[[Schema, Path], Schema], path: Path) -> None:
        self.targets.append(self.schema.find(path)[-1].id)
        self._next(change(self.schema, path))

    def _next(self, schema: Schema) -> None:
        if self.follows:
            self.constraints = renamed_constraints(self.constraints, self.schema, schema)
            schema = carry_defaults(self.schema, schema)  # also those of columns that an earlier step added
        self.properties = renamed_properties(self.properties, self.schema, schema)
        self.said = renamed_properties(self.said, self.schema, schema)
        self.schema = schema

    def constrain(self, asked: ConstraintRequest) -> None:
        self.constraints = with_constraint(self.constraints, asked, self.schema)
        self.targets.extend(ids[-1] for ids in self.constraints[-1].columns)

    def add(self, path: Path, column: Field, place: Place | None) -> None:
        if path[:-1]:
            self.targets.append(self.schema.find(path[:-1])[-1].id)
        given = edit.with_ids(column, self.highest_id)
        self.highest_id = Schema((given,)).highest_id()
        self._next(edit.add(self.schema, path, given, place))

    def cluster(self, paths: Sequence[Path]) -> None:
        self.cluster_by = clustering_keys(self.schema, paths)
        self.targets.extend(key[-1] for key in self.cluster_by)


Step = Callable[[Draft], None]


class Alteration:
    """Steps in the given order, committed all together or not at all."""

    def __init__(self, store: Store, snapshot: Snapshot, held: Schema | None = None) -> None:
        self._store, self._snapshot, self._held = store, snapshot, held
        self._steps: list[Step] = []
        self._operation_id = new_id()
        self._reshapes = False
        """Whether a step changes which columns there are, their names or their types."""
        self._was_tried = False
        """Whether a commit of the steps was tried, which may have been made even if it failed."""

    def following(self, snapshot: Snapshot) -> Alteration:
        """Return an alteration without steps that starts from ``snapshot``, which a commit of this one has made."""
        return Alteration(self._store, snapshot)

    def _record(self, step: Step, *, reshapes: bool = False) -> None:
        """Add a step; ``reshapes``: it changes which columns there are, their names or their types."""
        self._steps.append(step)
        self._reshapes = self._reshapes or reshapes
        if self._was_tried:  # under the same id, a commit without this step would be taken for one with it
            self._operation_id, self._was_tried = new_id(), False

    def __len__(self) -> int:
        return len(self._steps)

    def add(self, path: Path, column: Field, place: Place | None = None) -> None:
        """Add a column or field named by the end of ``path``; older rows show its ``initial_default``."""
        if len(path) > 1 and (column.initial_default is not None or column.write_default is not None):
            raise edit.nested_default(path)
        self._record(lambda draft: draft.add(path, column, place), reshapes=True)

    def drop(self, path: Path, *, missing_ok: bool = False) -> None:
        def step(draft: Draft) -> None:
            if not (missing_ok and _missing(draft.schema, path)):
                draft.edit(edit.drop, path)

        self._record(step, reshapes=True)

    def rename(self, path: Path, name: str) -> None:
        self._record(lambda draft: draft.edit(lambda s, p: edit.rename(s, p, name), path), reshapes=True)

    def drop_not_null(self, path: Path) -> None:
        self._record(lambda draft: draft.edit(edit.drop_not_null, path))

    def widen(self, path: Path, to: DataType) -> None:
        self._record(lambda draft: draft.edit(lambda s, p: edit.widen(s, p, to), path), reshapes=True)

    def set_default(self, path: Path, sql: str | None) -> None:
        self._record(lambda draft: draft.edit(lambda s, p: edit.set_default(s, p, sql), path))

    def comment(self, path: Path, text: str | None) -> None:
        self._record(lambda draft: draft.edit(lambda s, p: edit.comment(s, p, text), path))

    def move(self, path: Path, place: Place) -> None:
        self._record(lambda draft: draft.edit(lambda s, p: edit.move(s, p, place), path))

    def cluster_by(self, paths: Sequence[Path]) -> None:
        """Sort new parts by these columns; by none if there are none. Existing parts stay as they are."""

        def step(draft: Draft) -> None:
            if not draft.schema.fields:
                raise self._no_schema()
            draft.cluster(paths)

        self._record(step)

    def add_constraint(self, asked: ConstraintRequest) -> None:
        """Add a constraint; existing rows are tested by a CHECK before the commit."""

        def step(draft: Draft) -> None:
            if not draft.schema.fields:
                raise self._no_schema()
            draft.constrain(asked)

        self._record(step)

    def drop_constraint(self, name: str, *, missing_ok: bool = False) -> None:
        def step(draft: Draft) -> None:
            draft.constraints = without_constraint(draft.constraints, name, missing_ok=missing_ok)

        self._record(step)

    def set_properties(self, properties: Mapping[str, object]) -> None:
        checked = check_properties(properties)
        self._record(lambda draft: draft.set(checked))

    def unset_property(self, name: str) -> None:
        def step(draft: Draft) -> None:
            draft.properties.pop(name, None)

        self._record(step)

    def set_comment(self, text: str | None) -> None:
        def step(draft: Draft) -> None:
            draft.comment = text

        self._record(step)

    def plan(self, head: Head) -> Head:
        """Return the head after all steps.

        Raises the errors of the steps, ``IncompatibleSchema``, and ``Conflict`` if a name now refers to
        another column.
        """
        meant = self._meant()
        after, targets = self._apply(head)
        if meant is not None and meant != targets:
            raise Conflict(
                "Another commit dropped or renamed a column that this change names.",
                code="CONFLICT_COLUMN_CHANGED",
                name=self._store.url,
                remedy="Open or refresh the table, look at its columns, and alter it again.",
            )
        return after

    def schema_so_far(self) -> Schema | None:
        """Return the schema after the steps recorded so far, from the snapshot on; None if they cannot be taken."""
        if not self._reshapes:
            return self._snapshot.head.schema
        try:
            return self._apply(self._snapshot.head)[0].schema
        except TamisError:
            return None

    def applied(self, head: Head) -> Head:
        """Return the head after all steps, whatever the names referred to before. Raises the steps' errors."""
        return self._apply(head)[0]

    def commit(self) -> Snapshot:
        """Commit the steps; raises the errors of ``plan`` and ``schema.evolve.evolve``.

        A repeat after a lost answer returns the first result.
        """
        self._was_tried = True
        return commit_schema(self._store, self._snapshot, self.plan, operation_id=self._operation_id)

    def dry_run(self) -> Evolution:
        """Describe what ``commit`` would do now, and whom it would fence; commits nothing."""
        head = load(self._store).head
        after = self.plan(head)
        check_policy(head, after)
        return describe_outcome(head, after)

    def _meant(self) -> list[int] | None:
        """Resolve the targets under the caller's schema; None if they cannot be resolved there."""
        head = self._snapshot.head
        held = self._held or head.schema
        if held is None:
            return None
        try:
            return self._apply(replace(head, schemas=(*head.schemas[: held.schema_id], held)), follows=False)[1]
        except TamisError:
            return None

    def _apply(self, head: Head, *, follows: bool = True) -> tuple[Head, list[int]]:
        before = head.schema or Schema(())
        draft = Draft(before, head.highest_column_id, dict(head.properties), head.comment)
        draft.constraints, draft.follows = head.constraints, follows
        for step in self._steps:
            step(draft)
        if draft.schema.fields == before.fields and draft.cluster_by in (None, head.cluster_by):
            after = head
        elif head.schema is None:
            raise self._no_schema()
        else:
            check_next(before, head.dropped, draft.schema, widen=True, presented=False)
            after = next_schema(head, draft.schema, draft.cluster_by, draft.constraints)
        if after.schema is not None:
            check_places(draft.said, after.schemas)
        if draft.constraints != after.constraints:
            after = with_constraints(after, draft.constraints)
        old = draft.targets
        return replace(after, properties=draft.properties, comment=draft.comment), [
            i for i in old if i <= head.highest_column_id
        ]

    def _no_schema(self) -> InvalidInput:
        return InvalidInput(
            "The table has no columns yet.",
            code="NO_SCHEMA",
            name=self._store.url,
            remedy="Append rows, or give it a schema, first.",
        )


def merge_schema(store: Store, snapshot: Snapshot, brought: Schema, check: Callable[[Schema], None]) -> Snapshot:
    """Add the columns of ``brought`` that the table lacks, and widen those that it has with a wider type.

    This is one commit, and none if there is nothing to change. If another commit changes the schema first, what
    is left to add and to widen is found again, so that two appends may bring the same change. ``check`` is called with
    each schema that is changed, and may raise. Raises as ``Alteration.commit`` does, except ``Conflict`` for a changed
    column.
    """

    def plan(head: Head) -> Head:
        current, change = head.schema, Alteration(store, snapshot)
        if current is None:
            return head
        check(current)
        for path, column in added_fields(current, brought):
            change.add(path, column)
        for path, wider in widened_fields(current, brought):
            change.widen(path, wider)
        return change.applied(head) if len(change) else head

    return commit_schema(store, snapshot, plan, operation_id=new_id())


def _missing(schema: Schema, path: Path) -> bool:
    try:
        schema.find(path)
    except TamisError:
        return True
    return False
