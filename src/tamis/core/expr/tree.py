"""The filter language: a typed tree. Immutable, comparable by value, light to import.

Both front ends (SQL text, Catalyst) end here, and both interpreters (concrete over Arrow columns, abstract over
statistics) start here. Names of functions are those of the catalogue (``tamis.core.expr.registry``).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from tamis.core.types import BOOLEAN, Array, DataType, Map
from tamis.core.types.identifiers import parse_path


class Mode(Enum):
    """What a function does without a result: raise, give NULL, or do as Spark did before ANSI."""

    ANSI = "ansi"
    TRY = "try"
    LEGACY = "legacy"


class Cause(Enum):
    """Why an expression is opaque; used in messages."""

    FUNCTION = "function"
    """The function is not in the catalogue."""
    ARGUMENTS = "arguments"
    """The function is in the catalogue, but not for these arguments."""
    TYPE = "type"
    AGGREGATE = "aggregate"
    WINDOW = "window function"
    SUBQUERY = "subquery"
    PARAMETER = "parameter"
    STAR = "star"
    PYTHON = "Python function"


@dataclass(frozen=True, slots=True)
class Expr:
    """Base of all nodes; ``type`` is the logical type of its values."""

    type: DataType

    @property
    def children(self) -> tuple[Expr, ...]:
        return ()

    def walk(self) -> Iterator[Expr]:
        """Yield this node and all below it, parents first."""
        yield self
        for child in self.children:
            yield from child.walk()


@dataclass(frozen=True, slots=True)
class Column(Expr):
    """A column, or a struct field below it.

    ``ids`` lead from the top-level column down. ``name`` is the current name as users write it (dotted, with
    backquotes where needed).
    """

    ids: tuple[int, ...]
    name: str
    nullable: bool = True

    @property
    def path(self) -> tuple[str, ...]:
        """The names from the top-level column down."""
        return parse_path(self.name) or (self.name,)


@dataclass(frozen=True, slots=True)
class Element(Expr):
    """The current element while an array's elements are tested (``exists(arr, x -> …)``), or a field of it.

    ``ids`` lead from the top-level column through the array's element; ``name`` is the variable as written.
    """

    ids: tuple[int, ...]
    name: str


def _is_same(a: Any, b: Any) -> bool:
    if isinstance(a, float) and isinstance(b, float):
        return (a == b and math.copysign(1, a) == math.copysign(1, b)) or (a != a and b != b)  # noqa: PLR0124  # NaN
    return type(a) is type(b) and bool(a == b)


def _in_bits(array: Any) -> Any:
    """Return the array with fractions as their bits, so that -0.0 is not 0.0, and NaN is itself."""
    bits = {"double": "int64", "float": "int32"}.get(str(array.type))
    return array if bits is None else array.view(bits)


@dataclass(frozen=True, slots=True)
class Literal(Expr):
    """A constant.

    ``value`` is a plain Python value or None: int for integers and day-time intervals (microseconds),
    timestamps (microseconds since the epoch), dates (days since the epoch) and times (microseconds since
    midnight); ``decimal.Decimal``, float, str, bytes and bool as they are.
    """

    value: Any
    narrows: bool = field(default=True, compare=False, repr=False)
    """Whether coercion beside a decimal takes the digits of a whole number for its precision.

    False for the result of a cast, which has the precision of its type.
    """

    def __eq__(self, other: object) -> bool:
        """Whether both are the same constant. Zeros of two signs are not, since their texts and quotients differ."""
        return isinstance(other, Literal) and self.type == other.type and _is_same(self.value, other.value)

    def __hash__(self) -> int:
        return hash((self.type, self.value if self.value == self.value else None))  # NaN


@dataclass(frozen=True, slots=True)
class Literals(Expr):
    """The constants of an IN list, including NULLs, as one Arrow array of ``type``.

    A list of 100,000 values is one object, not 100,000.
    """

    array: Any

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Literals) or self.type != other.type:
            return False
        mine, theirs = _in_bits(self.array), _in_bits(other.array)
        return bool(mine.equals(theirs))

    def __hash__(self) -> int:
        """Includes values: programs ask for many lists of one length, and keys of one hash are compared one by one."""
        return hash((self.type, len(self.array), self.array.to_string(window=4, skip_new_lines=True)))


@dataclass(frozen=True, slots=True)
class Moving(Expr):
    """The instant of the query (``current_timestamp()``, ``current_date()``).

    It is known when rows are read, and a range during planning. ``zone`` is the session time zone, for dates
    and local times.
    """

    name: str
    zone: str | None = None


@dataclass(frozen=True, slots=True)
class Call(Expr):
    """A call of a catalogue function; ``zone`` is the session time zone if the function needs one."""

    function: str
    args: tuple[Expr, ...]
    mode: Mode = Mode.ANSI
    zone: str | None = None

    @property
    def children(self) -> tuple[Expr, ...]:
        return self.args


@dataclass(frozen=True, slots=True)
class Opaque(Expr):
    """An expression unknown to the catalogue (a UDF, a new function): any value, NULL or an error.

    ``text`` is for messages. ``total`` means that it never fails by itself (a hash, a bit operation), so that
    only its arguments can.
    """

    text: str
    args: tuple[Expr, ...] = ()
    total: bool = False
    cause: Cause = Cause.FUNCTION

    @property
    def children(self) -> tuple[Expr, ...]:
        return self.args


@dataclass(frozen=True, slots=True)
class Constructed(Opaque):
    """A struct or an array that the filter makes of ``args``, until it is taken apart again."""


TRUE = Literal(BOOLEAN, True)
FALSE = Literal(BOOLEAN, False)


def conjuncts_of(expr: Expr | None) -> tuple[Expr, ...]:
    """Return the top-level conjuncts in written order; none for None."""
    if expr is None:
        return ()
    if isinstance(expr, Call) and expr.function == "and":
        return tuple(c for arg in expr.args for c in conjuncts_of(arg))
    return (expr,)


def evidence_ids(expr: Expr | None) -> frozenset[int]:
    """Return the column ids whose statistics matter to ``expr``.

    These are its columns, their parents, and the contents of arrays and maps.
    """
    out: set[int] = set()
    for node in expr.walk() if expr is not None else ():
        if isinstance(node, Column):
            out.update(node.ids)
            inner = list(node.type.children) if isinstance(node.type, Array | Map) else []
            while inner:
                field = inner.pop()
                out.add(field.id)
                inner.extend(field.type.children)
    return frozenset(out)


def column_paths(expr: Expr | None) -> tuple[tuple[int, ...], ...]:
    """Return the distinct id paths of the columns in ``expr``, in order of first appearance."""
    if expr is None:
        return ()
    return tuple(dict.fromkeys(node.ids for node in expr.walk() if isinstance(node, Column)))
