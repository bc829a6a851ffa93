"""ORDER BY for a scan with a limit: keys, row order, and the bound implied by the rows found so far.

Invariant: the order is Spark's: NULLs first or last as the key says (by default first if ascending, last if
descending), NaN above every number, −0.0 = 0.0, text by its bytes. Which of several tied rows are returned
is unspecified, but the same scan of the same version returns the same ones.

The bound is an ordinary expression (``sorts_before``), so that it prunes segments, parts, blocks and rows like the
filter.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from tamis.core.expr import FALSE, Column, Expr, Literal, column_by_ids, make_call
from tamis.core.expr.arrow_values import plain_value
from tamis.core.stats.statistics_columns import has_bounds
from tamis.core.types import Field, Schema
from tamis.core.types.arrow import sortable_array
from tamis.core.types.identifiers import BACKQUOTED
from tamis.engine.scan.column_selection import find_fields
from tamis.errors import InvalidInput

_HOW = r"(?:\s+(?P<direction>asc|ascending|desc|descending))?(?:\s+nulls\s+(?P<nulls>first|last))?\s*"
_ITEM = re.compile(rf"\s*(?P<name>(?:{BACKQUOTED}|[^`,\s])+)" + _HOW, re.IGNORECASE)
_OF_PAIR = re.compile(_HOW, re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Key:
    """One sort key."""

    field: Field
    column: Column
    descending: bool = False
    nulls_first: bool = True

    def __str__(self) -> str:
        usual = self.nulls_first is not self.descending
        return (
            self.column.name
            + " DESC" * self.descending
            + ("" if usual else " NULLS FIRST" if self.nulls_first else " NULLS LAST")
        )


Order = tuple[Key, ...]


def order_text(order: Order, limit: int | None) -> str:
    """Return the order and the limit as SQL text."""
    return f"ORDER BY {', '.join(map(str, order))} LIMIT {limit}"


def parse_order(given: Any, schema: Schema) -> Order:
    """Parse ``"ts DESC, id"``, or a sequence of such texts or of pairs ``("ts", "descending")``.

    Raises ``InvalidInput`` (``BAD_ORDER``), ``NotFound``.
    """
    items = _split(given) if isinstance(given, str) else list(given) if isinstance(given, Iterable) else [given]
    return tuple(_key(item, schema) for item in items)


def sort_key(schema: Schema, name: str, *, descending: bool, nulls_first: bool) -> Key:
    """Return the sort key of a column.

    Raises ``InvalidInput`` (``BAD_ORDER``) if rows cannot be ordered by it.
    """
    path = find_fields(schema, name)
    if len(path) > 1 or not has_bounds(path[0].type):
        raise _bad(
            name,
            f"{name!r} is {path[-1].type}{' within a struct' * (len(path) > 1)}: rows cannot be ordered by it here",
        )
    return Key(path[0], column_by_ids(schema, (path[0].id,)), descending, nulls_first)


def _key(item: Any, schema: Schema) -> Key:
    pair = isinstance(item, tuple | list) and len(item) == 2 and all(isinstance(x, str) for x in item)
    match = _OF_PAIR.fullmatch(f" {item[1]}") if pair else _ITEM.fullmatch(item) if isinstance(item, str) else None
    if match is None:
        raise _bad(str(item), f"{item!r} is no column to order by")
    name = item[0] if pair else match["name"]  # names in pairs are literal and need no quotes
    direction, nulls = match["direction"], match["nulls"]
    descending = (direction or "").lower().startswith("desc")
    return sort_key(
        schema,
        name,
        descending=descending,
        nulls_first=(nulls or ("last" if descending else "first")).lower() == "first",
    )


def _split(given: str) -> list[str]:
    """Split at commas outside backquotes."""
    return [found.group() for found in re.finditer(rf"(?:{BACKQUOTED}|[^`,])+|(?<=,)(?=,|$)", given)] or [given]


def _bad(name: str, what: str) -> InvalidInput:
    return InvalidInput(
        f"{what}.",
        code="BAD_ORDER",
        name=name,
        remedy='Name top-level columns, such as order_by="ts DESC NULLS LAST, id".',
    )


# --- sorting of rows ---


def sorted_rows(rows: pa.Table, order: Order, most: int) -> pa.Table:
    """Return the first ``most`` of ``rows``, whose first columns hold the key values; the sort is stable."""
    keys: dict[str, pa.Array] = {}
    directions: list[tuple[str, str]] = []
    for at, by in enumerate(order):
        values = rows.column(at).combine_chunks()
        for flag, rises in (*_flags(values, by), (sortable_array(values), not by.descending)):
            name = str(len(directions))
            keys[name] = flag
            directions.append((name, "ascending" if rises else "descending"))
    return rows.take(pc.sort_indices(pa.table(keys), directions)[:most])


def _flags(values: pa.Array, by: Key) -> list[tuple[pa.Array, bool]]:
    """Return extra sort keys where Arrow's order differs from Spark's: NULLs, and NaN."""
    flags = [(values.is_valid().cast(pa.int8()), by.nulls_first)] if values.null_count else []
    if pa.types.is_floating(values.type):
        flags.append((pc.fill_null(pc.is_nan(values), False).cast(pa.int8()), not by.descending))
    return flags


# --- bounds on rows not read yet ---


def sorts_before(order: Order, row: Sequence[Any]) -> Expr:
    """Return a predicate true of rows that sort strictly before ``row`` (an Arrow scalar per key)."""
    first, rest = _before(order[0], row[0]), order[1:]
    if not rest:
        return first
    tied = make_call("and", _equal(order[0], row[0]), sorts_before(rest, row[1:]))
    return tied if first == FALSE else make_call("or", first, tied)


def at_least(by: Key, value: Any) -> Expr:
    """Return a predicate true of rows whose first key sorts before or equals ``value``.

    ``value`` is an Arrow scalar that is neither NULL nor NaN.
    """
    reached = make_call("ge" if by.descending else "le", by.column, _literal(by, value))
    return make_call("or", make_call("is_null", by.column), reached) if by.nulls_first else reached


def _before(by: Key, value: Any) -> Expr:
    if not value.is_valid:
        return FALSE if by.nulls_first else make_call("is_not_null", by.column)
    beyond = make_call("gt" if by.descending else "lt", by.column, _literal(by, value))
    return make_call("or", make_call("is_null", by.column), beyond) if by.nulls_first else beyond


def _equal(by: Key, value: Any) -> Expr:
    return make_call("eq", by.column, _literal(by, value)) if value.is_valid else make_call("is_null", by.column)


def _literal(by: Key, value: Any) -> Literal:
    return Literal(by.column.type, plain_value(value))
