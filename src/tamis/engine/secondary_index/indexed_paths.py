"""Paths into JSON documents as indexed columns: their syntax, their stored form, and their use in filters.

An index stores a path's values under an id of their own, beside plain columns. Paths into a VARIANT have the
requested type; paths into text have the values of ``get_json_object``. If a value has no cast to its type, or
the cast depends on the session's time zone or on the day of the query, or its text on Spark's Java version
(``expr.java_doubles``), the entry is flagged as unsure, and its row is a candidate of every filter on the path.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from tamis.core.expr import Call, Column, Expr, Literal, Mode, evaluate, parse_value
from tamis.core.expr.functions.cast.cast_text import of_today
from tamis.core.expr.functions.json.json_text import asked_path
from tamis.core.expr.java_doubles import spark_decides
from tamis.core.types import BOOLEAN, STRING, TIMESTAMP, VARIANT, DataType, Field, Schema, String
from tamis.core.types.identifiers import BACKQUOTED
from tamis.core.types.logical import type_from_json
from tamis.errors import InvalidInput, NotFound, TamisError
from tamis.storage.commit_log import IndexDefinition, IndexPath

UNSURE = 2**31 - 4
"""Column id of the flag of entries whose values are unknown."""
FIRST = 2**31 - 16
"""Id of an index's first path; the others count down from it."""
_BETWEEN = re.compile(rf"(?:[^,('`]|\([^)]*\)|'[^']*'|{BACKQUOTED})+")
_ZONES = ("UTC", "+13:37", "-13:37")
"""Zones in which values must agree: some two of them differ in the date of any instant, and in any local time."""
_SAID = re.compile(r"(?P<column>[^:]+):(?P<path>[^:].*?)(?:::(?P<type>[^:]+))?")


def parse_indexed_path(schema: Schema, text: str, at: int) -> tuple[tuple[int, ...], IndexPath] | None:
    """Parse an indexed path to its id path and definition; None if ``text`` is not a path.

    Accepts ``body:user.id::bigint`` and ``get_json_object(body, '$.user.id')``. Raises ``NotFound``, and
    ``InvalidInput`` (``BAD_INDEX``) for values without an order.
    """
    call = _call(schema, text)
    if call is None:
        return None
    column, path = call.args
    assert isinstance(column, Column)
    assert isinstance(path, Literal)
    if call.type == VARIANT:
        raise InvalidInput(
            f"{text!r} cannot be indexed: it is variant, whose values have no order.",
            code="BAD_INDEX",
            name=text,
            remedy=f"Give a type: {text}::bigint.",
        )
    said = asked_path(call)
    assert said is not None
    return (*column.ids, FIRST - at), IndexPath(FIRST - at, said[1], json.dumps(call.type.to_json()))


def _call(schema: Schema, text: str) -> Call | None:
    """Parse ``text`` to an expression that extracts a path from a document column."""
    said = _SAID.fullmatch(text.strip())
    try:
        if said is not None and isinstance(schema.find(_names(said["column"]))[-1].type, String):
            if said["type"] is not None:
                raise InvalidInput(
                    f"{text!r} cannot be indexed: a path into text gives text.",
                    code="BAD_INDEX",
                    name=text,
                    remedy=f"Leave the type out; filters may cast get_json_object({said['column']}, …).",
                )
            steps = said["path"]
            path = steps if steps.startswith("$") else f"${'' if steps.startswith('[') else '.'}{steps}"
            quoted = path.replace("\\", "\\\\").replace("'", "\\'")
            text = f"get_json_object({said['column']}, '{quoted}')"
        found = parse_value(text, schema)
    except TamisError as error:
        if isinstance(error, NotFound) or error.code == "BAD_INDEX":
            raise
        return None
    return found if isinstance(found, Call) and asked_path(found) is not None else None


def _names(text: str) -> tuple[str, ...]:
    return Column(STRING, (), text).path


def split_definitions(text: str) -> list[str]:
    """Split at commas outside parentheses and quotes: ``body:price::decimal(10,2), day``."""
    return [part.strip() for part in _BETWEEN.findall(text) if part.strip()]


def type_of(path: IndexPath) -> DataType:
    return type_from_json(json.loads(path.type))


def path_fits(document: Field, path: IndexPath) -> bool:
    """Whether a document column is still of a type that the path applies to."""
    return document.type == VARIANT or (isinstance(document.type, String) and type_of(path) == STRING)


def path_text(index: IndexDefinition, path: tuple[int, ...], document: str, schema: Schema | None) -> str:
    """Format a path in user syntax."""
    known = index.by_path[path[-1]]
    said = f"{document}:{known.path.removeprefix('$').removeprefix('.')}"
    variant = schema is not None and path[-2] in schema.by_id and schema.by_id[path[-2]].type == VARIANT
    return f"{said}::{type_of(known)}" if variant else said


def path_expression(index: IndexDefinition, path: tuple[int, ...], schema: Schema) -> Call:
    """Return the expression whose values a build stores."""
    known, field = index.by_path[path[-1]], schema.by_id[path[-2]]
    column = Column(field.type, path[:-1], field.name)
    function = "variant_get" if field.type == VARIANT else "get_json_object"
    zone = _ZONES[0] if function == "variant_get" else None
    return Call(type_of(known), function, (column, Literal(STRING, known.path)), Mode.ANSI, zone)


def path_values(call: Call, batch: Any, length: int) -> tuple[pa.Array, np.ndarray[Any, np.dtype[np.bool_]]]:
    """Return the values of a path, and a mask of unsure ones (stored as NULL)."""
    with spark_decides():
        first, *others = (
            evaluate(replace(call, zone=zone), batch, length) for zone in (_ZONES if call.zone else _ZONES[:1])
        )
    array = _whole(first.values)
    doubt = np.zeros(length, dtype=np.bool_) if first.failed is None else first.failed.copy()
    for other in others:
        same = pa.compute.fill_null(pa.compute.equal(array, _whole(other.values)), False).to_numpy(zero_copy_only=False)
        both_null = array.is_null().to_numpy(zero_copy_only=False) & _whole(other.values).is_null().to_numpy(
            zero_copy_only=False
        )
        doubt |= ~(same | both_null)
        doubt |= np.zeros(length, dtype=np.bool_) if other.failed is None else other.failed
    if call.type == TIMESTAMP:  # a time of day alone is one of the day of the query
        text = evaluate(replace(call, type=STRING, mode=Mode.TRY), batch, length)
        doubt |= of_today(_whole(text.values))
    return pa.compute.if_else(pa.array(doubt), pa.scalar(None, array.type), array), doubt


def _whole(values_: Any) -> pa.Array:
    return values_.combine_chunks() if isinstance(values_, pa.ChunkedArray) else values_


def with_index_columns(expr: Expr, index: IndexDefinition, schema: Schema) -> Expr:
    """Replace indexed paths in ``expr`` by index columns; rows flagged as unsure are kept."""
    if not index.paths:
        return expr
    keys = {
        asked_path(path_expression(index, path, schema)): path
        for path in index.columns
        if path[-1] in index.by_path and path[-2] in schema.by_id
    }
    changed, met = _replaced(expr, keys)
    if not met:
        return changed
    return Call(BOOLEAN, "or", (changed, Column(BOOLEAN, (UNSURE,), "unsure", False)))


def _replaced(expr: Expr, keys: dict[Any, tuple[int, ...]]) -> tuple[Expr, bool]:
    path = keys.get(asked_path(expr))
    if path is not None:
        return Column(expr.type, path, f"c{path[-1]}"), True
    if not isinstance(expr, Call):
        return expr, False
    args: Sequence[tuple[Expr, bool]] = [_replaced(arg, keys) for arg in expr.args]
    return replace(expr, args=tuple(arg for arg, _ in args)), any(met for _, met in args)
