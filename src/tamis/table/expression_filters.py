"""Translates filters given as pyarrow or Polars expressions to the filter language, where both mean the same.

The rules hold for every row, also under NOT, so each result is true, false or NULL exactly where the original
is. What differs somewhere is refused: FLOAT columns, constants that their column cannot hold, decimals, collated
texts. pyarrow's comparisons of doubles are those of IEEE 754: NaN is greater than nothing. Those of Polars and
Spark put NaN above all numbers.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import reduce
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from tamis.core.expr import Call, Column, Expr, Literal, Literals, column_by_ids, conjuncts_of, make_call
from tamis.core.types import (
    BOOLEAN,
    BYTE,
    DATE,
    DOUBLE,
    INTEGER,
    LONG,
    SHORT,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    DataType,
    Schema,
)
from tamis.core.types.arrow import to_arrow_type
from tamis.errors import InvalidInput
from tamis.table import arrow_expressions, polars_expressions
from tamis.table.foreign_expressions import Constant, Name, Node, Operation, names_in, parts_of

_BITS: dict[DataType, int] = {BYTE: 8, SHORT: 16, INTEGER: 32, LONG: 64}
_KINDS: dict[DataType, str] = {
    **dict.fromkeys(_BITS, "integer"),
    DOUBLE: "double",
    STRING: "string",
    BOOLEAN: "boolean",
    DATE: "date",
    TIMESTAMP: "instant",
    TIMESTAMP_NTZ: "local time",
}
"""The types whose values are compared alike, and the kind of their constants."""
_MIRRORED = {"eq": "eq", "ne": "ne", "lt": "gt", "le": "ge", "gt": "lt", "ge": "le"}
_MEMBERS = {"integer", "string", "date"}
"""The kinds for which membership in a set is alike. For doubles, pyarrow tells 0.0 from -0.0."""


@dataclass(frozen=True, slots=True)
class ImpliedFilter:
    """What a filter of another library says in the filter language."""

    conjuncts: tuple[Expr, ...]
    """They are true wherever the filter is."""
    exact: bool
    """Whether the filter is true wherever they are, so that rows need no other test."""


NO_FILTER = ImpliedFilter((), exact=True)


class Untranslatable(Exception):
    """A part of a filter that has no exact counterpart; the text says which."""


def is_foreign(row_filter: object) -> bool:
    """Test whether a filter is a pyarrow or a Polars expression, without importing Polars."""
    return isinstance(row_filter, pc.Expression) or _is_polars(row_filter)


def translated_filter(row_filter: Any, schema: Schema) -> Expr:
    """Return the filter that is true, false and NULL for the same rows as a pyarrow or Polars expression.

    Raises ``NotFound`` for an unknown column, ``InvalidInput`` (``UNTRANSLATABLE_FILTER``) naming the part that
    has no exact counterpart.
    """
    tree, nan_is_greatest = _tree(row_filter)
    for name in names_in(tree):
        schema.find((name,))
    try:
        return _Translation(schema, nan_is_greatest).predicate(tree)
    except Untranslatable as problem:
        raise InvalidInput(
            f"The filter {row_filter!s:.100} cannot be translated: {problem}.",
            code="UNTRANSLATABLE_FILTER",
            name="row_filter",
            remedy="Write it as Spark SQL text, such as \"a > 5 AND s IN ('x', 'y')\", "
            "or filter the rows that to_batches() returns.",
        ) from None


def implied_conjuncts(row_filter: Any, schema: Schema) -> ImpliedFilter:
    """Return those conjuncts of a pyarrow or Polars expression that translate exactly."""
    tree, nan_is_greatest = _tree(row_filter)
    found: list[Expr] = []
    exact = True
    for part in parts_of(tree):
        try:
            found.extend(conjuncts_of(_Translation(schema, nan_is_greatest).predicate(part)))
        except (Untranslatable, LookupError):  # the library itself evaluates this part, or finds no such column
            exact = False
    # Columns are found here in any case, and in the libraries by their exact names only: the error is theirs.
    return ImpliedFilter(tuple(found), exact and set(names_in(tree)).issubset(schema.names))


def columns_of(row_filter: Any) -> set[str] | None:
    """Return the names of the columns in a pyarrow expression; None if it cannot be decoded."""
    tree = _tree(row_filter)[0]
    unknown = isinstance(tree, Operation) and tree.function == "other" and not tree.args
    return None if unknown else set(names_in(tree))


def _is_polars(row_filter: object) -> bool:
    return any(c.__module__.partition(".")[0] == "polars" and c.__name__ == "Expr" for c in type(row_filter).__mro__)


def _tree(row_filter: Any) -> tuple[Node, bool]:
    """Return the tree of an expression, and whether NaN is greater than all numbers in its library."""
    if isinstance(row_filter, pc.Expression):
        return arrow_expressions.decode_expression(row_filter), False
    return polars_expressions.decode_expression(row_filter), True


class _Translation:
    def __init__(self, schema: Schema, nan_is_greatest: bool) -> None:
        self._schema = schema
        self._nan_is_greatest = nan_is_greatest

    def predicate(self, node: Node) -> Expr:
        """Return the boolean expression of ``node``. Raises ``Untranslatable``."""
        match node:
            case Name():
                column = self._column(node)
                if column.type != BOOLEAN:
                    raise Untranslatable(f"the column {node.name!r} is {column.type}, not boolean")
                return column
            case Constant("boolean", value):
                return Literal(BOOLEAN, value)
            case Operation("and" | "or" | "not" as function, args):
                return self._made(function, *map(self.predicate, args))
            case Operation("is_null" | "is_not_null" as function, (Name() as name,)):
                return self._made(function, self._column(name))
            case Operation("in", (Name() as name,), values):
                return self._member(name, values)
            case Operation(function, (left, right)) if function in _MIRRORED:
                return self._comparison(function, left, right)
            case Operation(text=text):
                raise Untranslatable(f"{text or 'a part of it'} has no exact counterpart")
        raise Untranslatable("a part of it is not boolean")

    def _comparison(self, function: str, left: Node, right: Node) -> Expr:
        if isinstance(left, Constant):
            function, left, right = _MIRRORED[function], right, left
        if not isinstance(left, Name):
            raise Untranslatable(f"{_text(left)} has no exact counterpart")
        column = self._column(left)
        kind = self._kind(left.name, column.type)
        if kind == "boolean" and function not in {"eq", "ne"}:
            raise Untranslatable("booleans have no order here")
        if isinstance(right, Constant):
            made = self._made(function, column, _literal(left.name, column.type, kind, right))
            if kind == "double" and function in {"gt", "ge"} and not self._nan_is_greatest:
                made = self._made("and", made, self._made("not", self._made("is_nan", column)))
            return made
        if isinstance(right, Name):
            against = self._column(right)
            if self._kind(right.name, against.type) != kind or kind == "double":
                raise Untranslatable(f"the columns {left.name!r} and {right.name!r} may compare otherwise here")
            return self._made(function, column, against)
        raise Untranslatable(f"{_text(right)} has no exact counterpart")

    def _member(self, name: Name, values: pa.Array) -> Expr:
        column = self._column(name)
        kind = self._kind(name.name, column.type)
        if kind not in _MEMBERS or not _alike(values.type, kind):
            raise Untranslatable(f"is_in of {column.type} and {values.type} may differ here")
        wanted = to_arrow_type(column.type)
        try:
            array = values.cast(wanted)
        except pa.ArrowInvalid:
            raise Untranslatable(f"the column {name.name!r} cannot hold a value of is_in") from None
        return self._made("in", column, Literals(column.type, array.unique()))

    def _column(self, name: Name) -> Column:
        field = self._schema.find((name.name,))[0]
        return column_by_ids(self._schema, (field.id,))

    def _kind(self, name: str, data_type: DataType) -> str:
        if data_type not in _KINDS:
            raise Untranslatable(f"the column {name!r} is {data_type}, whose comparisons may differ here")
        return _KINDS[data_type]

    def _made(self, function: str, *args: Expr) -> Expr:
        if function in {"and", "or"} and len(args) != 2:
            return reduce(lambda a, b: self._made(function, a, b), args)
        made = make_call(function, *args)
        assert isinstance(made, Call | Literal | Column), made
        return made


def _literal(name: str, data_type: DataType, kind: str, given: Constant) -> Literal:
    """Return the constant in the column's type. Raises ``Untranslatable`` for one that the column cannot hold."""
    value = given.value
    if kind == "double" and given.kind in {"integer", "double"}:
        try:
            same = math.isfinite(value) and float(value) == value
        except OverflowError:
            same = False
        if not same:
            raise Untranslatable(f"{value!r} is no finite number that a double holds exactly")
        return Literal(DOUBLE, float(value))
    if given.kind != kind:
        raise Untranslatable(f"the column {name!r} is {data_type}, and {value!r:.40} is of another kind ({given.kind})")
    if kind == "integer" and not -(1 << (_BITS[data_type] - 1)) <= value < 1 << (_BITS[data_type] - 1):
        raise Untranslatable(f"the column {name!r} is {data_type}, which cannot hold {value}")
    return Literal(data_type, value)


def _alike(values: pa.DataType, kind: str) -> bool:
    if kind == "integer":
        return bool(pa.types.is_integer(values))
    return bool(
        pa.types.is_date32(values) if kind == "date" else pa.types.is_string(values) or pa.types.is_large_string(values)
    )


def _text(node: Node) -> str:
    return node.text if isinstance(node, Operation) and node.text else "a part of it"
