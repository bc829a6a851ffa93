"""Generated columns of a table whose columns a DataFrame replaces by path (``overwriteSchema``)."""

from __future__ import annotations

from dataclasses import replace

from tamis.core.expr.generated_columns import GeneratedColumn, generated_columns
from tamis.core.types import Field, Schema
from tamis.errors import InvalidInput, NotFound


def keep_generated_columns(before: Schema, after: Schema) -> Schema:
    """Return ``after`` with the generation of the columns of the same names (ignoring case) in ``before``.

    A column that ``after`` does not have is dropped. Raises ``InvalidInput`` (``BAD_OPTION``) naming a generated
    column if it, or what it reads, is missing or has another type; and naming an identity column: its numbers are
    reserved under the columns that the table has.
    """
    kept = {generated.field.name.lower(): generated for generated in generated_columns(before)}
    numbered = {f.name.lower() for f in before.fields if f.identity is not None}
    for f in after.fields:
        if f.name.lower() in numbered:
            raise _bad(f.name, "is an identity column, whose numbers overwriteSchema cannot continue")
    return replace(after, fields=tuple(_kept(f, kept.get(f.name.lower()), after) for f in after.fields))


def _kept(field: Field, generated: GeneratedColumn | None, after: Schema) -> Field:
    if generated is None:
        return field
    how = f"is generated as {generated.field.generated and generated.field.generated.expression}"
    if field.type != generated.field.type:
        raise _bad(field.name, f"{how} and is {generated.field.type}; the new rows have {field.type}")
    for source in generated.sources:
        try:
            found = after.find(source.path)[-1]
        except NotFound:
            raise _bad(field.name, f"{how}; the new rows have no {source.name!r}") from None
        if found.type != source.type:
            raise _bad(field.name, f"{how}; the new rows have {found.type} for {source.name!r}, not {source.type}")
    return replace(field, generated=generated.field.generated)


def _bad(name: str, why: str) -> InvalidInput:
    return InvalidInput(
        f"Column {name!r} {why}.",
        code="BAD_OPTION",
        name="overwriteSchema",
        remedy=f"Leave the option out, or leave the column {name!r} out, or drop it from the table first.",
    )
