"""Generated columns: binds their expressions to a schema, and decides which expressions and changes are possible.

Invariant: in every row of a part that was written under a schema with a generated column, the stored value is the
value of its expression on that row, in the stored time zone and mode; it may be cut only if the column is not
``exact``, and differ where an older release computed it otherwise (``certain``). Writers compute it (the writer feature
``generated-columns`` keeps out those that would not), and neither the expression nor what it reads can change.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from tamis.core.expr.calls import make_call
from tamis.core.expr.parse_filter import parse_value
from tamis.core.expr.portable_values import is_portable, may_differ_from_older_releases, prints_doubles
from tamis.core.expr.tree import Call, Column, Expr, Literal, Moving
from tamis.core.expr.unsupported_rows import can_fail, is_supported, refusal_error
from tamis.core.types import (
    BINARY_COLLATION,
    BOOLEAN,
    DOUBLE,
    FLOAT,
    INTEGRAL,
    NULL,
    STRING,
    TIMESTAMP,
    VARIANT,
    DataType,
    Decimal,
    Field,
    Schema,
    String,
)
from tamis.errors import IncompatibleSchema, InvalidInput, NotFound, TamisError

FEATURE = "generated-columns"
"""The required writer feature; a writer without it would store other values."""
LAST_NUMBER = "9\U0010ffff"
"""A text behind the texts of all numbers in JSON, which begin with - or a digit."""
CACHED = 64
"""Schemas whose bound expressions are remembered."""


@dataclass(frozen=True, slots=True)
class GeneratedColumn:
    """A generated column, and the bound expression of its values, in the column's type but for the length of text."""

    field: Field
    column: Column
    value: Expr

    @property
    def sources(self) -> tuple[Column, ...]:
        """The columns, or struct fields, that the expression reads."""
        return tuple(dict.fromkeys(node for node in self.value.walk() if isinstance(node, Column)))

    @property
    def exact(self) -> bool:
        """Whether rows hold the value itself; text that is cut to a length may lose blanks at its end.

        Tables can no longer be made with such columns.
        """
        return not _may_cut(self.field.type, self.value)

    @property
    def certain(self) -> bool:
        """Whether rows hold what this release computes: the value itself, which older releases computed alike."""
        return self.exact and not may_differ_from_older_releases(self.value)

    @property
    def portable(self) -> bool:
        """Whether every release of Java gives the value that was stored."""
        return is_portable(self.value)

    @property
    def portable_but_numbers(self) -> bool:
        """Whether the value is a text of JSON, about which releases of Java agree unless it is a number."""
        return self.value.type == STRING and prints_doubles(self.value) and all(map(is_portable, self.value.children))


def _may_cut(to: DataType, value: Expr) -> bool:
    """Whether a column of type ``to`` may have to cut the text of ``value``."""
    return isinstance(to, String) and to.length is not None and value.type != to


_bound: dict[int, tuple[Schema, tuple[GeneratedColumn, ...]]] = {}


def generated_columns(schema: Schema) -> tuple[GeneratedColumn, ...]:
    """Return the generated columns of ``schema`` in order. Raises ``InvalidInput`` for one that cannot be bound."""
    known = _bound.get(id(schema))
    if known is not None and known[0] is schema:
        return known[1]
    found = tuple(_bind(f, schema) for f in schema.fields if f.generated is not None)
    if len(_bound) >= CACHED:
        _bound.clear()  # in one step, because scans run in threads
    _bound[id(schema)] = schema, found  # the schema is referenced, so that its id is not reused
    return found


def derived_ids(schema: Schema, ids: frozenset[int]) -> frozenset[int]:
    """Return the ids of the generated columns whose expressions read one of the columns ``ids``.

    There are none if one cannot be bound, as an older release may have made it: rows are read without such facts.
    """
    try:
        columns = generated_columns(schema)
    except TamisError:
        return frozenset()
    return frozenset(
        generated.field.id
        for generated in columns
        if any(not ids.isdisjoint(source.ids) for source in generated.sources)
    )


def canonical_expression(expr: Expr) -> Expr:
    """Return ``expr`` with columns known by id alone, so that equal trees mean the same whatever names were used."""
    if isinstance(expr, Column):
        return Column(expr.type, expr.ids, "")
    changed: dict[str, Any] = (
        {"args": tuple(canonical_expression(arg) for arg in expr.children)} if expr.children else {}
    )
    return replace(expr, **changed) if changed else expr


def check_generated(before: Schema | None, after: Schema) -> None:
    """Check that ``after`` (ids given) may follow ``before``.

    Raises ``InvalidInput`` (``GENERATED_COLUMN``) for an expression that cannot be computed here, or a column that
    is added to existing rows; ``IncompatibleSchema`` (``GENERATED_SOURCE``) for a change of what one reads.
    """
    old = {} if before is None else {f.id: f for f in before.fields}
    continued = any(f.id in old for f in after.fields)
    for field in after.fields:
        if field.generated is None:
            continue
        if field.write_default is not None:
            raise _bad(field.name, "it has a default, too", "Leave one of them out.")
        if field.id in old:
            assert before is not None
            _check_kept(before, after, field)
        elif continued:
            raise added_column(field)
        else:
            _check_new(field, after)
    for _, nested in after.walk():
        if nested.generated is not None and all(nested is not f for f in after.fields):
            raise _bad(nested.name, "it is inside another column", "Generate a whole column.")


def added_column(field: Field) -> InvalidInput:
    """Return the error for a generated or identity column that would be added to the rows of a table."""
    why = "the table's rows would have no value for it"
    remedy = "Create a table with it and INSERT the rows, or CREATE OR REPLACE this one."
    if field.identity is None:
        return _bad(field.name, why, remedy)
    return InvalidInput(
        f"Column {field.name!r} cannot be an identity column: {why}.",
        code="IDENTITY_COLUMN",
        name=field.name,
        remedy=remedy,
    )


def _bind(field: Field, schema: Schema) -> GeneratedColumn:
    how = field.generated
    assert how is not None
    value = parse_value(how.expression, schema, zone=how.zone, ansi=how.ansi, what="a generated column")
    if not is_supported(value):
        why = refusal_error(value).message
        raise _bad(field.name, why, "Use functions that are computed here exactly as in Spark.")
    stored = _stored(value, field.type)
    if stored is None:
        raise _bad(
            field.name,
            f"{how.expression} is {value.type}, the column {field.type}",
            f"Write CAST({how.expression} AS {field.type}).",
        )
    return GeneratedColumn(field, Column(field.type, (field.id,), field.name, field.nullable), stored)


def _stored(value: Expr, to: DataType) -> Expr | None:
    """Return ``value`` in the column's type, or None if it would have to be cast by name."""
    if value.type == to or (isinstance(value.type, String) and isinstance(to, String)):
        return value
    if not (_number(value.type) and _number(to)):
        return None
    cast = make_call("cast", value, type=to)
    return None if not isinstance(cast, Call) or can_fail(replace(cast, args=(Column(value.type, (), ""),))) else cast


def _number(kind: DataType) -> bool:
    return isinstance(kind, Decimal) or kind in INTEGRAL or kind in (FLOAT, DOUBLE)


def _check_new(field: Field, schema: Schema) -> None:
    """Raise ``InvalidInput`` (``GENERATED_COLUMN``) unless the column can be computed exactly as Spark does."""
    how = field.generated
    assert how is not None
    name = field.name
    if field.type.children or field.type in (VARIANT, NULL) or not _plain(field.type):
        raise _bad(name, f"it is {field.type}", "Use a plain type; STRING for text.")
    try:
        found = _bind(field, schema)
    except NotFound as error:
        raise _bad(name, error.message, error.remedy) from error
    except InvalidInput as error:
        raise error if error.code == "GENERATED_COLUMN" else _bad(name, error.message, error.remedy) from error
    if _may_cut(field.type, found.value):
        raise _bad(
            name, f"{how.expression} is {found.value.type}, the column {field.type}", "Make the column a STRING."
        )
    generated = {f.id: f.name for f in schema.fields if f.generated is not None}
    for node in found.value.walk():
        if isinstance(node, Column) and schema.by_id[node.ids[0]].identity is not None:
            raise _bad(name, "generated columns cannot reference identity columns", f"Leave {node.name} out.")
        if isinstance(node, Column) and node.ids[0] in generated:
            raise _bad(name, f"it reads {node.name}, which is generated itself", "Read plain columns only.")
        if isinstance(node, Moving):
            raise _bad(name, f"it must be deterministic, and {node.name}() is not", "Use columns and constants only.")
        if isinstance(node, Call) and node.type == TIMESTAMP and _may_be_of_today(node):
            raise _bad(
                name,
                "a text such as '12:00' is a time of the day on which it is cast",
                "Use to_timestamp of the text with a pattern.",
            )
        if isinstance(node, Column) and not _plain(node.type):
            raise _bad(name, f"it reads {node.name}, which is {node.type}", "Read STRING columns.")
    if isinstance(found.value, Literal):
        raise _bad(name, "its value is a constant", "Use DEFAULT for a constant.")
    if not is_supported(make_call("null_safe_eq", found.column, found.column, type=BOOLEAN)):
        raise _bad(name, f"values of {field.type} cannot be compared", "Use another type.")


def _may_be_of_today(call: Call) -> bool:
    """Whether a call makes instants of texts, which may be times of day alone."""
    return call.function == "variant_get" or (call.function == "cast" and isinstance(call.args[0].type, String))


def _plain(kind: DataType) -> bool:
    return not isinstance(kind, String) or (kind.kind != "char" and kind.collation == BINARY_COLLATION)


def _check_kept(before: Schema, after: Schema, field: Field) -> None:
    """Raise ``IncompatibleSchema`` if the column would mean something else under ``after``."""
    old = _bind(before.by_id[field.id], before)
    try:
        new = _bind(field, after)
    except TamisError:
        new = None
    if (
        new is not None
        and old.field.type == field.type
        and canonical_expression(old.value) == canonical_expression(new.value)
    ):
        return
    changed = next((source for source in old.sources if _differs(before, after, source)), old.column)
    what = "Its type cannot change" if changed is old.column else f"{field.name!r} depends on {changed.name!r}"
    raise IncompatibleSchema(
        f"Column {field.name!r} is generated as {field.generated and field.generated.expression}. {what}.",
        code="GENERATED_SOURCE",
        name=changed.name,
        remedy=f"Drop {field.name!r} first, or leave {changed.name!r} as it is: its name and its type stay.",
    )


def _differs(before: Schema, after: Schema, source: Column) -> bool:
    then, now = before.by_id[source.ids[-1]], after.by_id.get(source.ids[-1])
    return now is None or after.path_text(now) != before.path_text(then) or now.type != then.type


def _bad(name: str, why: str, remedy: str) -> InvalidInput:
    return InvalidInput(
        f"Column {name!r} cannot be generated: {why.rstrip('.')}.", code="GENERATED_COLUMN", name=name, remedy=remedy
    )
