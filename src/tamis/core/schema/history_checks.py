"""Checks of migrations and readers: by name over whole histories, and by column id for a table."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tamis.core.schema.deleted_fields import Dropped, dropped_in, migration_type_of
from tamis.core.schema.migration_rules import evolve_type, migration_violations
from tamis.core.schema.migration_types import Record, from_arrow, from_fields
from tamis.core.types import Schema
from tamis.errors import IncompatibleSchema, InvalidInput, SchemaFenced, TamisError

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, slots=True)
class MigrationType:
    """The summary of a history of schemas: the latest schema and every field ever deleted.

    Both checks accept it in place of a history, so that a program that keeps it need not replay its schemas:
    call ``known = known.then(new)`` after each.
    """

    shape: Record | None = None

    @staticmethod
    def of(history: Iterable[pa.Schema], *, widen: bool = False) -> MigrationType:
        """Summarize ``history``, oldest first. Raises ``IncompatibleSchema`` if a step violates the rules."""
        known, last = MigrationType(), None
        for schema in history:
            if last is None or not _checked(schema).equals(last):
                known, last = known.then(schema, widen=widen), schema
        return known

    def then(self, new: pa.Schema, *, widen: bool = False) -> MigrationType:
        """Return the summary after ``new`` has become the latest schema. Raises as ``check_migration``."""
        after = self.checked(new, widen=widen)
        return MigrationType(after if self.shape is None else evolve_type(self.shape, after))

    def checked(self, new: pa.Schema, *, widen: bool = False) -> Record:
        """Return the shape of ``new``; raises as ``check_migration`` does."""
        after = from_arrow(_checked(new))
        _refuse(self.shape or Record(()), after, IncompatibleSchema, widen, first=self.shape is None)
        return after


History = Sequence["pa.Schema"] | MigrationType


def check_migration(history: History, new: pa.Schema, *, widen: bool = False) -> None:
    """Check that ``new`` may follow ``history`` (oldest first, or its summary); fields match by exact name.

    Raises ``IncompatibleSchema`` (code ``MIGRATION_<RULE>``, ``name`` the dotted path of the offending
    field). ``widen`` also allows lossless type widening.
    """
    _known(history, widen).checked(new, widen=widen)


def check_reader(history: History, reader: pa.Schema) -> None:
    """Check that a reader with schema ``reader`` may read data written under ``history``.

    Fields match by exact name. Raises ``SchemaFenced`` (code ``FENCED_<RULE>``, ``name`` the dotted path).
    Never fenced are the latest schema, a projection of it, and a reader that adds a nullable field that never
    existed.
    """
    current = _known(history, widen=True).shape
    if current is not None:
        _refuse(current, from_arrow(_checked(reader)), SchemaFenced, widen=False)


def check_table_reader(history: tuple[Schema, ...], reader: Schema) -> None:
    """Check that a reader with schema ``reader`` may read a table whose schemas are ``history``.

    Fields are matched by column id.
    """
    if history:
        fence_reader(history[-1], dropped_in(history), reader)


def fence_reader(current: Schema, dropped: Iterable[Dropped], reader: Schema) -> None:
    """Check that a reader with schema ``reader`` may read a table with schema ``current``.

    ``dropped`` are the table's deleted fields. Raises ``SchemaFenced`` naming the field, both schema ids and
    the remedy. A column that the reader does not select cannot fence it. FIRST, AFTER and renames are
    presentation and cannot either.
    """
    gone = tuple(dropped)
    for violation in migration_violations(migration_type_of(current, gone), from_fields(reader.fields)):
        since = next((g.schema_id for g in gone if violation.key == g.id), None)
        when = f" It is gone since schema {since}." if since is not None else ""
        kind: type[TamisError] = SchemaFenced
        raise kind(
            f"{violation.fenced}{when} "
            f"This reader holds schema {reader.schema_id}, and the table is at schema {current.schema_id}.",
            code="FENCED_" + violation.rule.upper(),
            name=violation.path,
            remedy=_READER_REMEDY,
        )


def refuse_migration(before: Record, after: Record, *, widen: bool = False) -> None:
    """Raise ``IncompatibleSchema`` if ``after`` is not a valid migration of ``before``."""
    _refuse(before, after, IncompatibleSchema, widen)


def rows_fit(written: Schema, current: Schema) -> str | None:
    """Return why rows with schema ``written`` cannot be added to a table at ``current``, or None.

    A deleted column is dropped from the rows; a new one is NULL or its default in them. Rows that would have
    no column left are not added.
    """
    first = next(migration_violations(from_fields(written.fields), from_fields(current.fields), widen=True), None)
    if first is not None:
        return first.text.rstrip(".")
    if not {f.id for f in written} & {f.id for f in current}:
        return "none of their columns is left"
    return None


def _known(history: History, widen: bool) -> MigrationType:
    if isinstance(history, MigrationType):
        return history
    if not isinstance(history, Iterable):
        raise InvalidInput(
            f"A history is a list of schemas, not {type(history).__name__}.",
            code="BAD_SCHEMA",
            name="history",
            remedy="Give pyarrow schemas, oldest first; [] for none.",
        )
    return MigrationType.of(history, widen=widen)


def _checked(given: pa.Schema) -> pa.Schema:
    """Return ``given``. Raises ``InvalidInput`` (``BAD_SCHEMA``) if it is not an Arrow schema.

    A schema passed in place of a history yields fields, which are rejected here too.
    """
    import pyarrow as pa

    if not isinstance(given, pa.Schema):
        raise InvalidInput(
            f"A schema is a pyarrow.Schema, not {type(given).__name__}.",
            code="BAD_SCHEMA",
            name="schema",
            remedy="Use pyarrow.schema([...]); a history is a list of them, oldest first.",
        )
    return given


def _refuse(old: Record, new: Record, kind: type[TamisError], widen: bool, *, first: bool = False) -> None:
    for violation in migration_violations(old, new, widen=widen):
        if first and violation.rule == "add_required":
            continue
        fenced = kind is SchemaFenced
        raise kind(
            violation.fenced if fenced else violation.text,
            code=("FENCED_" if fenced else "MIGRATION_") + violation.rule.upper(),
            name=violation.path,
            remedy=_READER_REMEDY if fenced else _REMEDIES[violation.rule],
        )


_READER_REMEDY = "Open the table again, call refresh(), or make the DataFrame again, to read under its newest schema."
_REMEDIES = {
    "duplicate_field": "Give each field its own name.",
    "readd_deleted": "Choose another name, or use ALTER TABLE, which adds a new column under the old name.",
    "add_required": "Make it nullable.",
    "reorder": "Keep the order of the existing fields; new ones may stand anywhere.",
    "tighten": "Keep it nullable.",
    "type_change": "Add a new column of that type, or ask for widening where the new type holds every old value.",
    "map_key": "Keep the key's type or widen it, or add a map with other keys as a new column.",
}
RULES = tuple(_REMEDIES)
"""Names of the rules, as in the codes ``MIGRATION_<RULE>`` and ``FENCED_<RULE>``."""
