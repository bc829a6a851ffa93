"""Filters from text, and columns by name. The parser is loaded by the first text, not before."""

from __future__ import annotations

from tamis.core.expr.tree import Column, Expr
from tamis.core.types import Schema


def parse(text: str, schema: Schema, *, zone: str = "UTC", ansi: bool = True, what: str = "a filter") -> Expr:
    """The predicate that ``text`` (Spark SQL) says, over the columns of ``schema``, coerced as Spark's analyser would.

    ``zone`` is the session time zone, ``what`` the text is meant as, for people. Raises ``NotFound`` (``COLUMN_NOT_FOUND``), and ``InvalidInput`` (``PARSE_ERROR``) for text that
    does not parse or is no predicate. A function that is not in the catalogue becomes ``Opaque``.
    """
    from tamis.core.expr.parse_filter import read

    return read(text, schema, zone, ansi, what)


def parse_value(text: str, schema: Schema, *, zone: str = "UTC", ansi: bool = True, what: str = "a value") -> Expr:
    """The expression of any type that ``text`` (Spark SQL) says; otherwise as ``parse``."""
    from tamis.core.expr.parse_filter import read_value

    return read_value(text, schema, zone, ansi, what)


def bound(schema: Schema, ids: tuple[int, ...]) -> Column:
    """The column with this id path, named as people write it."""
    fields = [schema.by_id[i] for i in ids]
    name = ".".join("`" + f.name.replace("`", "``") + "`" if "." in f.name or "`" in f.name else f.name for f in fields)
    return Column(fields[-1].type, ids, name, any(f.nullable for f in fields))
