"""``table.alter()``: table changes collected one by one and committed together."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa

from tamis.core.expr import parse_value
from tamis.core.expr.column_definitions import parse_columns
from tamis.core.expr.generated_columns import added_column
from tamis.core.schema.schema_edits import Path, Place
from tamis.core.schema.schema_sequence import Evolution
from tamis.core.types import DataType, Field, Schema
from tamis.core.types.arrow import from_arrow_field, from_arrow_type
from tamis.core.types.defaults import initial_json
from tamis.core.types.identifiers import split_path
from tamis.engine.operations.rows.store_assignment import assigned_value
from tamis.engine.operations.schema.alter import Alteration
from tamis.engine.operations.schema.constraint_definitions import request_check, request_key
from tamis.engine.operations.schema.evolve import describe_outcome
from tamis.engine.part_writer.column_defaults import default_scalar
from tamis.engine.scan.column_selection import names_of
from tamis.errors import InvalidInput, NotFound, SchemaMismatch
from tamis.storage.commit_log import Snapshot
from tamis.storage.commit_log.table_constraints import FOREIGN_KEY, PRIMARY_KEY, UNIQUE
from tamis.table.scan_request import sql_text
from tamis.table.table_definition import checked_field

Name = str | tuple[str, ...]
"""A column, a dotted path to a nested field, or the path's parts as a tuple.

Backquotes protect dots; ``element``, ``key`` and ``value`` lead into arrays and maps.
"""


class Alter:
    """A builder of table changes.

    Methods record a change and return the builder; nothing happens before ``commit``.
    """

    def __init__(self, alteration: Alteration, before: Snapshot, adopt: Callable[[Snapshot], None]) -> None:
        self._alteration, self._before, self._adopt = alteration, before, adopt
        self._committed: Snapshot | None = None
        """The version that ``commit`` made last; None if changes were recorded since."""
        self._result: Evolution | None = None
        """What ``commit`` returned last."""

    @property
    def _base(self) -> Snapshot:
        """The version in which further changes name columns."""
        return self._committed or self._before

    def _pending(self) -> Alteration:
        """Return the alteration that takes a further change: after a commit, a new one from the version it made."""
        if self._committed is not None:
            self._alteration, self._before = self._alteration.following(self._committed), self._committed
            self._committed = None
        return self._alteration

    def add_column(
        self,
        name: Name,
        type: Any,  # noqa: A002  # the word
        *,
        nullable: bool = True,
        default: Any = None,
        comment: str | None = None,
        first: bool = False,
        after: str | None = None,
    ) -> Alter:
        """Add a column (or field: ``"a.b"``) with a new id, even under the name of a dropped one.

        ``type`` is an Arrow type or SQL text. ``default`` is SQL text (numbers and booleans stand for
        themselves), evaluated now for existing rows, and by each later write for rows without a value.
        ``first`` and ``after`` only affect presentation.
        """
        path, default = self._new_path(name), sql_text(str(name), default)
        comment = _comment(name, comment)
        made = checked_field(Field(path[-1], _type(type, path[-1]), nullable, comment=comment, write_default=default))
        if default is not None:
            value = _default(default, made.type, path[-1])
            made = checked_field(Field(path[-1], made.type, nullable, -1, comment, initial_json(value), default))
        place = Place() if first else Place(after) if after is not None else None
        self._pending().add(path, made, place)
        return self

    def drop_column(self, name: Name, *, missing_ok: bool = False) -> Alter:
        """Drop a column (metadata only: files keep it, but it is no longer read) and fence its readers."""
        self._pending().drop(self._path(name), missing_ok=missing_ok)
        return self

    def rename_column(self, name: Name, to: str) -> Alter:
        """Rename a column; data and readers are unaffected."""
        self._pending().rename(self._path(name), to)
        return self

    def drop_not_null(self, name: Name) -> Alter:
        self._pending().drop_not_null(self._path(name))
        return self

    def widen(self, name: Name, type: Any) -> Alter:  # noqa: A002  # the word
        """Change a column to a type that holds every value of the old one.

        Allowed: larger integers, float to double, date to timestamp_ntz, decimals with more digits. ``commit`` raises
        ``IncompatibleSchema`` for a date beyond the year 294,247, where timestamp_ntz ends.
        """
        path = self._path(name)
        self._pending().widen(path, _type(type, path[-1]))
        return self

    def set_default(self, name: Name, default: Any) -> Alter:
        """Set the default for later writes (None: remove it). Existing rows keep their values."""
        default = sql_text(str(name), default)
        path, pending = self._path(name), self._pending()
        schema = pending.schema_so_far()
        if default is not None and schema is not None:
            found = schema.find(path)[-1]
            _default(default, found.type, found.name)
        pending.set_default(path, default)
        return self

    def set_comment(self, name: Name, comment: str | None) -> Alter:
        self._pending().comment(self._path(name), _comment(name, comment))
        return self

    def move_column(self, name: Name, *, first: bool = False, after: str | None = None) -> Alter:
        """Change a column's displayed position among its siblings."""
        if first == (after is not None):
            raise InvalidInput(
                "A place is first, or after another column.",
                code="BAD_COLUMN",
                name=str(name),
                remedy="Give one of them.",
            )
        self._pending().move(self._path(name), Place(after))
        return self

    def cluster_by(self, names: Sequence[Name]) -> Alter:
        """Sort the rows of later writes by these columns; ``[]``: by none.

        Existing parts stay as they are, and are not in order until they are compacted.
        """
        self._pending().cluster_by([self._path(name) for name in names_of(names, "cluster_by")])
        return self

    def add_check(self, name: str, expression: str) -> Alter:
        """Refuse rows for which ``expression``, a Spark SQL predicate, is false. NULL passes.

        ``commit`` tests existing rows; it raises ``SchemaMismatch`` (``CHECK_VIOLATION``) with the first wrong one.
        """
        asked = request_check(name, expression)
        self._pending().add_constraint(asked)
        return self

    def add_primary_key(self, name: str, columns: Sequence[Name] | Name) -> Alter:
        """Note that ``columns`` identify a row. This is information: nothing enforces it."""
        return self._key(PRIMARY_KEY, name, columns)

    def add_unique(self, name: str, columns: Sequence[Name] | Name) -> Alter:
        """Note that no two rows are equal in ``columns``. This is information: nothing enforces it."""
        return self._key(UNIQUE, name, columns)

    def add_foreign_key(
        self, name: str, columns: Sequence[Name] | Name, references: str, referenced_columns: Sequence[str] | str
    ) -> Alter:
        """Note that ``columns`` refer to columns of the table ``references``. This is information, too."""
        return self._key(FOREIGN_KEY, name, columns, (references, names_of(referenced_columns, "referenced_columns")))

    def _key(
        self, kind: str, name: str, columns: Sequence[Name] | Name, refers: tuple[str, tuple[str, ...]] = ("", ())
    ) -> Alter:
        one = isinstance(columns, str)
        paths = [self._path(column) for column in ([columns] if one else columns)]
        asked = request_key(kind, name, paths, refers=refers)
        self._pending().add_constraint(asked)
        return self

    def drop_constraint(self, name: str, *, missing_ok: bool = False) -> Alter:
        """Drop the constraint called ``name``, ignoring case."""
        self._pending().drop_constraint(name, missing_ok=missing_ok)
        return self

    def set_properties(self, properties: Mapping[str, Any]) -> Alter:
        self._pending().set_properties(properties)
        return self

    def unset_properties(self, *names: str) -> Alter:
        for name in names:
            if not isinstance(name, str):
                raise InvalidInput(
                    f"{name!r} is not a property's name.",
                    code="BAD_PROPERTY",
                    name=repr(name),
                    remedy='Give names: unset_properties("a", "b").',
                )
            self._pending().unset_property(name)
        return self

    def dry_run(self) -> Evolution:
        """Describe the changes that ``commit`` would make, and whom it would fence."""
        if self._committed is not None:  # nothing was recorded since
            return self._pending().dry_run()
        return self._alteration.dry_run()

    def commit(self) -> Evolution:
        """Apply all changes in one metadata commit; the table object adopts the result.

        A repeat without further changes returns the first result. Changes that are recorded later start from the
        version that this one made. Raises ``IncompatibleSchema``, ``AlreadyExists``, ``NotFound``,
        ``InvalidInput`` naming the column, ``SchemaMismatch`` for a row that violates a new CHECK, ``Conflict`` if a
        name now refers to another column.
        """
        if self._result is not None and not len(self._alteration):  # what was to be recorded since was refused
            return self._result
        after = self._alteration.commit()
        self._adopt(after)
        self._committed = after
        self._result = replace(describe_outcome(self._before.head, after.head), version=after.version)
        return self._result

    def _path(self, name: Any) -> Path:
        """Return a tuple as is; resolve text by ``Schema.named``, or split it if the column is new."""
        path = name if isinstance(name, tuple) else split_path(name) if isinstance(name, str) else ()
        if not path or not all(isinstance(part, str) and part for part in path):
            raise InvalidInput(
                f"{name!r} is not a column name.",
                code="BAD_COLUMN",
                name=repr(name),
                remedy="Give text, or a tuple of names.",
            )
        known = self._base.schema
        if not isinstance(name, str) or known is None:
            return path
        try:
            return tuple(f.name for f in known.resolve_name(name))
        except NotFound:
            return path

    def _new_path(self, name: Any) -> Path:
        """Return the path of a new field, whose own name is spelled as given: one that goes may differ in case."""
        path = self._path(name)
        given = split_path(name) if isinstance(name, str) else path
        return (*path[:-1], given[-1]) if len(given) == len(path) else path


def _type(given: Any, name: str) -> DataType:
    """Return the type of column ``name``.

    Raises ``InvalidInput``: ``BAD_TYPE``; ``GENERATED_COLUMN`` or ``IDENTITY_COLUMN`` for a definition of its values.
    """
    if isinstance(given, DataType):
        return given
    if isinstance(given, pa.DataType):
        return from_arrow_type(given)
    if isinstance(given, str):
        made = parse_columns(f"c {given}")
        field = from_arrow_field(made.field(0))
        if len(made) == 1 and field.computed:
            raise added_column(replace(field, name=name))
        if len(made) == 1 and field.nullable:
            return field.type
        raise InvalidInput(
            f"{given!r} is not a single type.",
            code="BAD_TYPE",
            name=given,
            remedy="Give one type; a new column is nullable, and a default fills it.",
        )
    raise InvalidInput(
        f"{given!r} is not a type.",
        code="BAD_TYPE",
        name=repr(given),
        remedy='Give an Arrow type, or SQL text such as "BIGINT".',
    )


def _comment(name: Name, comment: Any) -> str | None:
    if comment is not None and not isinstance(comment, str):
        raise InvalidInput(
            f"A comment is text, not {comment!r:.100}.", code="BAD_COLUMN", name=str(name), remedy="Give text, or None."
        )
    return comment


def _default(sql: str, data_type: DataType, name: str) -> pa.Scalar:
    """Evaluate a default.

    Raises ``InvalidInput`` (``BAD_DEFAULT``), also if Spark could not store the value in the column.
    """
    value = default_scalar(sql, data_type, name)
    if not data_type.children and value.is_valid:
        try:
            assigned_value(parse_value(sql, Schema(())), Field(name, data_type), "UTC", sql)
        except SchemaMismatch as error:
            raise InvalidInput(
                f"The default {sql!r}: {error.message}", code="BAD_DEFAULT", name=name, remedy=error.remedy
            ) from error
    return value
