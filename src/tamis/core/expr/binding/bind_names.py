"""Binds names and accesses: columns, struct fields, elements of arrays and maps, variables of lambdas."""

from __future__ import annotations

from collections.abc import Sequence

from tamis.core.expr.binding import bind_json as documents
from tamis.core.expr.binding.bind_base import BinderBase
from tamis.core.expr.bound_column import column_by_ids
from tamis.core.expr.functions.nested.constructed import item_of
from tamis.core.expr.functions.nested.nested_fields import field_of
from tamis.core.expr.registry import sql_name
from tamis.core.expr.syntax.nodes import Dot, Name, Path, Subscript
from tamis.core.expr.tree import Cause, Column, Constructed, Element, Expr, Literal, Opaque
from tamis.core.types import NULL, STRING, Array, Field, Map, Struct
from tamis.errors import NotFound

_NO_PARENTHESES = frozenset(
    [
        "current_catalog",
        "current_database",
        "current_date",
        "current_path",
        "current_schema",
        "current_time",
        "current_timestamp",
        "current_user",
        "localtime",
        "localtimestamp",
        "session_user",
        "user",
    ]
)
"""Functions that Spark resolves without parentheses if no column has the name."""


class BinderOfNames(BinderBase):
    """Binds ``Name`` nodes and nodes that select a part of a value."""

    def name(self, node: Name) -> Expr:
        """Bind a variable, else a column with its fields, else a function without parentheses."""
        parts = node.parts
        if parts[0].lower() in self.variables:
            return self._of_variable(parts) or self._opaque(node)
        function = parts[0].lower() if len(parts) == 1 else ""
        if function in _NO_PARENTHESES and not any(f.name.lower() == function for f in self.schema):
            found = sql_name(function)
            return self.call(found) if found is not None else self._opaque(node)
        return self.field(parts)

    def _opaque(self, node: Name) -> Opaque:
        return Opaque(NULL, self.source_text(node), cause=Cause.FUNCTION)

    def _of_variable(self, parts: tuple[str, ...]) -> Expr | None:
        out: Expr | None = self.variables[parts[0].lower()]
        for name in parts[1:]:
            kind = out.type if isinstance(out, Element) else None
            found = (
                next((f for f in kind.fields if f.name.lower() == name.lower()), None)
                if isinstance(kind, Struct)
                else None
            )
            out = (
                Element(found.type, (*out.ids, found.id), f"{out.name}.{found.name}")
                if found and isinstance(out, Element)
                else None
            )
        return out

    def field(self, parts: tuple[str, ...]) -> Expr:
        """Return the column with these names from the top level down, or what its arrays and maps hold.

        ``map.key`` is the value of a key, ``array.field`` the array of the field's values. What only Spark can
        compute is opaque.
        """
        try:
            top = self.schema.find(parts[:1])
        except NotFound as error:
            raise self._missing(parts, error) from None
        found: Expr = column_by_ids(self.schema, (top[0].id,))
        for depth, name in enumerate(parts[1:], 2):
            if isinstance(found, Column) and not isinstance(found.type, Array | Map):
                found = column_by_ids(self.schema, tuple(f.id for f in self.schema.find(parts[:depth])))
            else:
                found = self._below(found, name, parts)
        return found

    def _below(self, value: Expr, name: str, parts: tuple[str, ...]) -> Expr:
        """Return what ``name``, one of ``parts``, selects of a map, an array of structs, or one of their values."""
        if isinstance(value.type, Map) or isinstance(value, Opaque):
            return self.call("map_value", value, Literal(STRING, name))
        found = field_of(value, name)
        if found is not None:
            return found
        struct = value.type.element.type if isinstance(value.type, Array) else value.type
        fields = struct.fields if isinstance(struct, Struct) else ()
        if any(f.name.lower() == name.lower() for f in fields):
            return Opaque(NULL, ".".join(parts), (value,), cause=Cause.FUNCTION)
        raise _no_field_below(parts, fields)

    def _missing(self, parts: tuple[str, ...], error: NotFound) -> NotFound:
        """Return the error for an unknown column, with a suggestion."""
        remedy = error.remedy
        if len(parts) > 1 and any(f.name.lower() == name.lower() for f in self.schema for name in parts[1:]):
            remedy = f"In {'.'.join(parts)!r}, leave the table's name out. {remedy}"
        elif parts[0].lower() == "nan":
            remedy = "Write isnan(x); the value itself is CAST('NaN' AS DOUBLE)."
        elif len(parts) == 1 and self.schema.fields:
            remedy += f" String literals need quotes: '{parts[0]}'."
        return NotFound(error.message, code=error.code, name=error.name, remedy=remedy)

    def subscript(self, node: Subscript) -> Expr:
        """Bind ``array[0]`` or ``map['key']``."""
        source, at = self.bind(node.value), self.bind(node.at)
        if isinstance(at, Literal) and isinstance(at.value, str) and isinstance(source.type, Struct | Array):
            return field_of(source, at.value) or self.unknown(node)
        return self.call("map_value" if isinstance(source.type, Map) else "element", source, at)

    def dot(self, node: Dot) -> Expr:
        """Bind a field of a value that is not a column."""
        if (found := documents.from_json_field(node, self.bind)) is not None:
            return found
        value = self.bind(node.value)
        inner = item_of(value, node.field) if isinstance(value, Constructed) else field_of(value, node.field)
        return inner or self.unknown(node)

    def path(self, node: Path) -> Expr:
        """Bind ``v:a.b[0]``, steps into a VARIANT."""
        steps = tuple(step for step in node.steps if step is not None)
        return documents.extract(self.bind(node.value), steps, self.mode, self.zone) or self.unknown(node)


def _no_field_below(parts: tuple[str, ...], fields: Sequence[Field]) -> NotFound:
    """Return the error for names that lead through an array or a map to a value without such a field."""
    name = ".".join(parts)
    remedy = f"Fields are: {', '.join(f.name for f in fields)}." if fields else "For one element, use element_at."
    return NotFound(f"There is no column {name!r}.", code="COLUMN_NOT_FOUND", name=name, remedy=remedy)
