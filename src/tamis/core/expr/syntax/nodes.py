"""The syntax tree of Spark SQL text: one small class for each construct of the grammar.

Every node knows its position in the text (``start``, ``end``), so that errors can quote it. Parentheses make
no node.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Any


@dataclass(frozen=True, slots=True)
class Node:
    """A construct, and the range of characters that it covers."""

    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Name(Node):
    """A column with the struct fields below it: ``a.b.c``.

    Also a word that names a function if no column has that name.
    """

    parts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Star(Node):
    """``*``, ``t.*``."""


@dataclass(frozen=True, slots=True)
class Text(Node):
    """A string, unquoted and unescaped; ``filled`` means that it has parameters among its parts."""

    value: str
    filled: bool = False


@dataclass(frozen=True, slots=True)
class Number(Node):
    """A number: its digits with their sign, and the suffix that gives its type (``L``, ``BD``), if any."""

    digits: str
    suffix: str


@dataclass(frozen=True, slots=True)
class Constant(Node):
    """NULL, TRUE or FALSE."""

    value: bool | None


@dataclass(frozen=True, slots=True)
class Typed(Node):
    """A typed literal: ``DATE '2024-01-01'``, ``X'FF'``, ``INTERVAL '1 day'``."""

    kind: str
    text: str


@dataclass(frozen=True, slots=True)
class Interval(Node):
    """``INTERVAL 1 DAY 2 HOURS``: amounts with their units.

    With ``to``, it is one amount of several fields (``'1-2' YEAR TO MONTH``).
    """

    amounts: tuple[tuple[str, str], ...]
    to: str = ""


@dataclass(frozen=True, slots=True)
class Parameter(Node):
    """``?``, ``:name``."""


@dataclass(frozen=True, slots=True)
class Values(Node):
    """A long list of constants, read at once; ``constants`` is a ``literal_lists.Constants``."""

    constants: Any


@dataclass(frozen=True, slots=True)
class Query(Node):
    """A query in parentheses, which is not parsed; ``exists`` means EXISTS."""

    exists: bool = False


@dataclass(frozen=True, slots=True)
class Unary(Node):
    """``-``, ``+``, ``~`` or ``NOT``."""

    operator: str
    operand: Node


@dataclass(frozen=True, slots=True)
class Binary(Node):
    """An arithmetic, bit, comparison or logical operator."""

    operator: str
    left: Node
    right: Node


@dataclass(frozen=True, slots=True)
class Predicate(Node):
    """A predicate after its value, at most one: BETWEEN, IN, LIKE, ILIKE, RLIKE, IS.

    ``kind`` is its word, or for IS what is tested (``NULL``, ``TRUE``, ``FALSE``, ``UNKNOWN``, ``DISTINCT``).
    ``quantifier`` is ANY, SOME or ALL after LIKE.
    """

    kind: str
    negated: bool
    value: Node
    others: tuple[Node, ...] = ()
    quantifier: str = ""
    escape: str | None = None
    bang: bool = False
    """Whether NOT is written as ``!``, which Spark's grammar accepts here but its parser rejects."""


@dataclass(frozen=True, slots=True)
class Case(Node):
    """``CASE [subject] WHEN … THEN … [ELSE …] END``."""

    subject: Node | None
    branches: tuple[tuple[Node, Node], ...]
    default: Node | None


@dataclass(frozen=True, slots=True)
class Type:
    """The name of a type, in capitals, with its sizes, element types, fields, or further words."""

    start: int
    end: int
    name: str
    sizes: tuple[int, ...] = ()
    inner: tuple[Type, ...] = ()
    fields: tuple[TypeField, ...] = ()
    words: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class TypeField:
    """A field of a struct, or a column: ``name type [NOT NULL] [GENERATED ALWAYS AS (…)] [COMMENT '…']``."""

    name: str
    type: Type
    nullable: bool = True
    comment: str | None = None
    generated: str | None = None
    """The text between the parentheses of GENERATED ALWAYS AS."""
    identity: tuple[bool, int, int] | None = None
    """Of GENERATED … AS IDENTITY: whether ALWAYS, the start and the increment."""


@dataclass(frozen=True, slots=True)
class Cast(Node):
    """``CAST(x AS type)``, ``TRY_CAST``, ``x::type``."""

    value: Node
    type: Type
    tries: bool = False


@dataclass(frozen=True, slots=True)
class Function(Node):
    """A call by name.

    ``unit`` is the bare word that ``date_add`` and similar functions begin with. ``beside`` names the clauses
    of the call that are not computed here (DISTINCT, FILTER, OVER, WITHIN GROUP, IGNORE NULLS).
    """

    name: tuple[str, ...]
    args: tuple[Node, ...]
    beside: tuple[str, ...] = ()
    unit: str = ""
    others: tuple[Node, ...] = ()


@dataclass(frozen=True, slots=True)
class Named(Node):
    """``name => value`` among the arguments of a function."""

    name: str
    value: Node


@dataclass(frozen=True, slots=True)
class Alias(Node):
    """``x AS name``, which a filter has only in structs and rows."""

    value: Node
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Row(Node):
    """``(a, b)``."""

    items: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Lambda(Node):
    """``x -> …``, ``(x, y) -> …``."""

    names: tuple[str, ...]
    body: Node


@dataclass(frozen=True, slots=True)
class Subscript(Node):
    """``value[at]``."""

    value: Node
    at: Node


@dataclass(frozen=True, slots=True)
class Dot(Node):
    """``value.field`` where the value is not a name."""

    value: Node
    field: str


@dataclass(frozen=True, slots=True)
class Path(Node):
    """``value:a.b[0]``. A step that is neither a key nor a position is None."""

    value: Node
    steps: tuple[str | int | None, ...]


@dataclass(frozen=True, slots=True)
class Collate(Node):
    """``value COLLATE name``."""

    value: Node
    name: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Extract(Node):
    """``EXTRACT(field FROM source)``."""

    field: str
    source: Node


@dataclass(frozen=True, slots=True)
class Trim(Node):
    """``TRIM([BOTH | LEADING | TRAILING] [characters] FROM source)``."""

    side: str
    characters: Node | None
    source: Node


def children(node: Node) -> list[Node]:
    """Return the nodes directly below ``node``, in the order of the text."""
    return [child for f in fields(node) for child in _nodes(getattr(node, f.name))]


def _nodes(value: Any) -> Iterator[Node]:
    if isinstance(value, Node):
        yield value
    elif isinstance(value, tuple):
        for part in value:
            yield from _nodes(part)


def walk_nodes(node: Node) -> Iterator[Node]:
    """Yield ``node`` and all below it, without recursion."""
    open_nodes = [node]
    while open_nodes:
        found = open_nodes.pop()
        yield found
        open_nodes.extend(reversed(children(found)))
