"""Filters of other libraries as trees: what pyarrow and Polars expressions are decoded to."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa


@dataclass(frozen=True, slots=True)
class Name:
    """A top-level column."""

    name: str


@dataclass(frozen=True, slots=True)
class Constant:
    """A value that is not NULL.

    ``kind`` is ``integer``, ``double``, ``string``, ``boolean``, ``date`` (days), ``instant`` or ``local time``
    (microseconds since 1970).
    """

    kind: str
    value: Any


@dataclass(frozen=True, slots=True)
class Operation:
    """A function of the filter language (``eq``, ``and``, ``is_null`` …), or ``other`` with its own name.

    ``values`` are the constants of an ``in``, as an Arrow array without NULLs.
    """

    function: str
    args: tuple[Node, ...]
    values: Any = field(default=None, compare=False)
    text: str = ""
    """What messages call it."""


Node = Name | Constant | Operation


def set_constants(values: pa.Array) -> pa.Array | None:
    """Return the constants of a set without NULLs, and texts in their plain form; None if pyarrow cannot do that."""
    try:
        return (values.cast(pa.string()) if pa.types.is_string_view(values.type) else values).drop_null()
    except pa.ArrowException:  # no kernel for the type, such as binary_view
        return None


def other_operation(text: str, *args: Node) -> Operation:
    """Return an operation that has no counterpart here."""
    return Operation("other", args, text=text)


def and_operation(*args: Node) -> Operation:
    return Operation("and", args)


def names_in(node: Node) -> Iterator[str]:
    """Yield the names of the columns in ``node``."""
    if isinstance(node, Name):
        yield node.name
    elif isinstance(node, Operation):
        for arg in node.args:
            yield from names_in(arg)


def parts_of(node: Node) -> Iterator[Node]:
    """Yield the top-level conjuncts."""
    if isinstance(node, Operation) and node.function == "and":
        for arg in node.args:
            yield from parts_of(arg)
    else:
        yield node
