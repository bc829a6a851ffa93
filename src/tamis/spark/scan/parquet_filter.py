"""Filter hints for Spark's own Parquet reader, by which it skips row groups and pages.

The conjuncts passed in are hints (``filter_contract``): Spark or a join above the scan tests them again, and
the reader returns their columns. A hint may exclude only rows for which the filter is not true and raises
nothing. So a conjunct that can fail, and all conjuncts after it, are left out; an AND may lose a side, an OR
may not. Spark's reader finds columns by name in the file's schema, so a column is used only if it has one
name and the filter's type in the schema of every part. Only types are used whose order in file statistics is
the order of Spark's values: no floating point (NaN, -0.0), no CHAR, no collations.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal as Number
from typing import Any

import pyarrow as pa

from tamis.core.expr import Call, Column, Expr, Literal, Literals
from tamis.core.types import BINARY_COLLATION, DATE, INTEGRAL, TIMESTAMP, DataType, Decimal, Schema, String
from tamis.engine.part_reader import can_fail
from tamis.sizes import SIZES
from tamis.spark.jvm_bridge.wire_format import NUL, words_text

_TURNED = {"eq": "eq", "lt": "gt", "le": "ge", "gt": "lt", "ge": "le"}
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
"""Names that no Spark release quotes in filters."""
MOST_VALUES = SIZES.pushed_list_values
"""Maximum length of an IN list. A longer one burdens every task and overlaps the bounds of most blocks."""


def filter_hints(conjuncts: Sequence[Expr], written: Iterable[Schema | None]) -> str:
    """The hints for ``conjuncts``, or "" for none.

    NUL-separated words in prefix order, which ``Partitions.filters`` parses.
    ``written`` are the schemas of the parts, None where unknown.
    """
    columns = _Columns(list(written))
    hints: list[list[str]] = []
    for conjunct in conjuncts:
        if can_fail(conjunct):
            break
        if (rendered := columns.hint_words(conjunct)) is not None:
            hints.append(rendered)
    return words_text(word for rendered in hints for word in rendered)


def hints_cover_filter(conjuncts: Sequence[Expr], written: Iterable[Schema | None]) -> bool:
    """Whether hints express all of ``conjuncts`` completely."""
    columns = _Columns(list(written))
    return all(columns.covers(c) for c in conjuncts)


class _Columns:
    """Translates expressions over the columns of the parts that are read."""

    def __init__(self, written: Sequence[Schema | None]) -> None:
        self._written = written

    def hint_words(self, expr: Expr) -> list[str] | None:
        """The words for ``expr``, or for a condition that it implies; None if there are none."""
        match expr:
            case Call(function="and" | "or" as op, args=args):
                sides = [self.hint_words(a) for a in args]
                known = [s for s in sides if s is not None]
                if not known or (op == "or" and len(known) < len(sides)):
                    return None
                return [*[op] * (len(known) - 1), *(word for side in known for word in side)]
            case Call(function="is_null" | "is_not_null" as op, args=(Column() as column,)):
                name = self._name(column)
                return None if name is None else [op, name]
            case Call(function="not", args=(Call(function="is_null", args=(Column() as column,)),)):
                return self.hint_words(Call(expr.type, "is_not_null", (column,)))
            case Call(function="in", args=(Column() as column, Literals() as values)) if (
                0 < len(values.array) <= MOST_VALUES
            ):
                return self._compare("in", column, values.type, values.array)
            case Call(function=op, args=(Column() as column, Literal() as value)) if (
                op in _TURNED or op == "starts_with"
            ):
                return self._compare(op, column, value.type, [value.value])
            case Call(function=op, args=(Literal() as value, Column() as column)) if op in _TURNED:
                return self._compare(_TURNED[op], column, value.type, [value.value])
        return None

    def covers(self, expr: Expr) -> bool:
        """Whether the words for ``expr`` express it completely."""
        if isinstance(expr, Call) and expr.function in {"and", "or"}:
            return all(self.covers(a) for a in expr.args)
        return self.hint_words(expr) is not None

    def _compare(self, op: str, column: Column, kind: DataType, given: Any) -> list[str] | None:
        name = self._name(column)
        if name is None or not _same(kind, column.type) or (values := _texts(kind, given)) is None:
            return None
        if op == "starts_with" and (not isinstance(kind, String) or not values[0]):
            return None
        return [op, name, _kind(kind), *([str(len(values))] if op == "in" else []), *values]

    def _name(self, column: Column) -> str | None:
        """The name of a top-level column of a usable type if all parts agree on both, else None."""
        if len(column.ids) > 1 or not _kind(column.type):
            return None
        found = [s.by_id.get(column.ids[0]) if s is not None else None for s in self._written]
        names = {f.name if f is not None and _same(f.type, column.type) else "" for f in found}
        name = names.pop() if len(names) == 1 else ""
        return name if _PLAIN.fullmatch(name) else None


def _same(written: DataType, asked: DataType) -> bool:
    if isinstance(written, String) and isinstance(asked, String):
        return _kind(written) == _kind(asked) != ""
    return written == asked


def _kind(data_type: DataType) -> str:
    """The word for a usable type, "" for any other."""
    if isinstance(data_type, String):
        return "string" if data_type.collation == BINARY_COLLATION and data_type.kind != "char" else ""
    if isinstance(data_type, Decimal):
        return "decimal"
    return _KINDS.get(data_type, "")


_KINDS: Mapping[DataType, str] = {**{kind: kind.name for kind in INTEGRAL}, DATE: "date", TIMESTAMP: "timestamp"}


def _texts(kind: DataType, given: Any) -> list[str] | None:
    """The constants as texts, dates as days and timestamps as microseconds; None if one has no exact text.

    None for NULL too: a comparison with NULL is never true, but Spark handles that itself.
    """
    if isinstance(given, pa.Array):
        if pa.types.is_temporal(given.type):
            given = given.view(pa.int32() if kind == DATE else pa.int64())
        given = given.to_pylist()
    texts = [
        format(value, f".{kind.scale}f") if isinstance(kind, Decimal) and value is not None else str(value)
        for value in given
    ]
    if any(
        value is None or NUL in text or (isinstance(value, Number) and Number(text) != value)
        for value, text in zip(given, texts, strict=True)
    ):
        return None
    return texts
