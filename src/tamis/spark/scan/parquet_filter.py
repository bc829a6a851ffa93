"""What Spark's own Parquet reader is told of a filter, so that it skips row groups and pages by the files' own statistics.

The conjuncts that come here are hints (``filter_contract``): somebody above the scan tests them again, and their columns
are among those that the reader returns. A hint may only leave out rows for which the filter is not true and raises
nothing. So nothing is told of a conjunct that can fail, or of any behind it; an AND may lose a side, an OR may not.
Spark's reader finds columns by name in the file's schema, so a column is named only where it has one name and one type,
the filter's, in the schema of every part. Types are those whose order in a file's statistics is the order of Spark's
values: no floating point (NaN, −0.0), no CHAR, no collations.
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

_TURNED = {"eq": "eq", "lt": "gt", "le": "ge", "gt": "lt", "ge": "le"}
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
"""Names that Spark's filters quote in no release."""
MOST_VALUES = SIZES.pushed_list_values
"""Of an IN list: longer ones would travel with every task, and are within the bounds of most blocks."""
END = "\0"


def advice(conjuncts: Sequence[Expr], written: Iterable[Schema | None]) -> str:
    """What can be told of ``conjuncts`` where parts are of the schemas ``written`` (None: not known), as ``Partitions.filters`` reads it: words in prefix order, a NUL between. "" is nothing."""
    columns = _Columns(list(written))
    said: list[list[str]] = []
    for conjunct in conjuncts:
        if can_fail(conjunct):
            break
        if (words := columns.say(conjunct)) is not None:
            said.append(words)
    return END.join(word for words in said for word in words)


def told_whole(conjuncts: Sequence[Expr], written: Iterable[Schema | None]) -> bool:
    """Whether every one of ``conjuncts`` is told to its end."""
    columns = _Columns(list(written))
    return all(columns.whole(c) for c in conjuncts)


class _Columns:
    """The columns of the parts that are read."""

    def __init__(self, written: Sequence[Schema | None]) -> None:
        self._written = written

    def say(self, expr: Expr) -> list[str] | None:
        """The words for ``expr``, or for what follows from it; None where there are none."""
        match expr:
            case Call(function="and" | "or" as op, args=args):
                sides = [self.say(a) for a in args]
                known = [s for s in sides if s is not None]
                if not known or (op == "or" and len(known) < len(sides)):
                    return None
                return [*[op] * (len(known) - 1), *(word for side in known for word in side)]
            case Call(function="is_null" | "is_not_null" as op, args=(Column() as column,)):
                name = self._name(column)
                return None if name is None else [op, name]
            case Call(function="not", args=(Call(function="is_null", args=(Column() as column,)),)):
                return self.say(Call(expr.type, "is_not_null", (column,)))
            case Call(function="in", args=(Column() as column, Literals() as values)) if 0 < len(values.array) <= MOST_VALUES:
                return self._compare("in", column, values.type, values.array)
            case Call(function=op, args=(Column() as column, Literal() as value)) if op in _TURNED or op == "starts_with":
                return self._compare(op, column, value.type, [value.value])
            case Call(function=op, args=(Literal() as value, Column() as column)) if op in _TURNED:
                return self._compare(_TURNED[op], column, value.type, [value.value])
        return None

    def whole(self, expr: Expr) -> bool:
        """Whether the words for ``expr`` say all of it."""
        if isinstance(expr, Call) and expr.function in {"and", "or"}:
            return all(self.whole(a) for a in expr.args)
        return self.say(expr) is not None

    def _compare(self, op: str, column: Column, kind: DataType, given: Any) -> list[str] | None:
        name = self._name(column)
        if name is None or not _same(kind, column.type) or (values := _texts(kind, given)) is None:
            return None
        if op == "starts_with" and (not isinstance(kind, String) or not values[0]):
            return None
        return [op, name, _kind(kind), *([str(len(values))] if op == "in" else []), *values]

    def _name(self, column: Column) -> str | None:
        """What every part calls a top-level column whose values have one order; None where they differ about it."""
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
    """The word for a type of which something can be told, "" for any other."""
    if isinstance(data_type, String):
        return "string" if data_type.collation == BINARY_COLLATION and data_type.kind != "char" else ""
    if isinstance(data_type, Decimal):
        return "decimal"
    return _KINDS.get(data_type, "")


_KINDS: Mapping[DataType, str] = {**{kind: kind.name for kind in INTEGRAL}, DATE: "date", TIMESTAMP: "timestamp"}


def _texts(kind: DataType, given: Any) -> list[str] | None:
    """The constants as texts, numbers of days and microseconds among them; None where one of them has none. What compares with NULL is never true, but that is for Spark to say."""
    if isinstance(given, pa.Array):
        if pa.types.is_temporal(given.type):
            given = given.view(pa.int32() if kind == DATE else pa.int64())
        given = given.to_pylist()
    texts = [format(value, f".{kind.scale}f") if isinstance(kind, Decimal) and value is not None else str(value) for value in given]
    if any(
        value is None or END in text or (isinstance(value, Number) and Number(text) != value)
        for value, text in zip(given, texts, strict=True)
    ):
        return None
    return texts
