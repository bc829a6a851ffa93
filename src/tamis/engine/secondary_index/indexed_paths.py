"""Paths into JSON documents as indexed columns: what is said, what is stored, and where a filter says the same.

A path's values stand in an index under an id of their own, beside those of plain columns. Of a VARIANT they have the type that was asked for, of text they are what
``get_json_object`` gives. Where a value has no cast to its type, or one that depends on the session's time zone, or a text that depends on the Java that runs Spark
(``expr.java_doubles``), the entry says that it is not sure, and its row is a candidate of every filter about the path.
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
from tamis.core.expr.functions.json.json_text import asked_path
from tamis.core.expr.java_doubles import spark_decides
from tamis.core.types import BOOLEAN, STRING, VARIANT, DataType, Field, Schema, String
from tamis.core.types.logical import type_from_json
from tamis.errors import InvalidInput, NotFound, TamisError
from tamis.storage.commit_log import IndexDefinition, IndexPath

UNSURE = 2**31 - 4
"""Column id of the flag of entries whose values are not known."""
FIRST = 2**31 - 16
"""Id of the first path of an index; the others count down from it."""
_BETWEEN = re.compile(r"(?:[^,('`]|\([^)]*\)|'[^']*'|`[^`]*`)+")
_ZONES = ("UTC", "+13:37")
_SAID = re.compile(r"(?P<column>[^:]+):(?P<path>[^:].*?)(?:::(?P<type>[^:]+))?")


def parsed(schema: Schema, text: str, at: int) -> tuple[tuple[int, ...], IndexPath] | None:
    """The id path and the definition of what ``text`` says: ``body:user.id::bigint``, ``get_json_object(body, '$.user.id')``; None where it is no path.

    Raises ``InvalidInput`` (``BAD_INDEX``) for one whose values have no order, ``NotFound``.
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
    """``text`` as a step into a document of a column."""
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


def split(text: str) -> list[str]:
    """What stands between the commas of ``text``, but for commas within parentheses or quotes: ``body:price::decimal(10,2), day``."""
    return [part.strip() for part in _BETWEEN.findall(text) if part.strip()]


def type_of(path: IndexPath) -> DataType:
    return type_from_json(json.loads(path.type))


def fits(document: Field, path: IndexPath) -> bool:
    """Whether a document column still is one that the path leads into."""
    return document.type == VARIANT or (isinstance(document.type, String) and type_of(path) == STRING)


def shown(index: IndexDefinition, path: tuple[int, ...], document: str, schema: Schema | None) -> str:
    """A path as a user would say it."""
    known = index.by_path[path[-1]]
    said = f"{document}:{known.path.removeprefix('$').removeprefix('.')}"
    variant = schema is not None and path[-2] in schema.by_id and schema.by_id[path[-2]].type == VARIANT
    return f"{said}::{type_of(known)}" if variant else said


def source(index: IndexDefinition, path: tuple[int, ...], schema: Schema) -> Call:
    """The expression whose values a build writes."""
    known, field = index.by_path[path[-1]], schema.by_id[path[-2]]
    column = Column(field.type, path[:-1], field.name)
    function = "variant_get" if field.type == VARIANT else "get_json_object"
    zone = _ZONES[0] if function == "variant_get" else None
    return Call(type_of(known), function, (column, Literal(STRING, known.path)), Mode.ANSI, zone)


def values(call: Call, batch: Any, length: int) -> tuple[pa.Array, np.ndarray[Any, np.dtype[np.bool_]]]:
    """The values of a path, and where they are not sure (NULL there)."""
    with spark_decides():
        first, *others = (evaluate(replace(call, zone=zone), batch, length) for zone in (_ZONES if call.zone else _ZONES[:1]))
    array = _whole(first.values)
    doubt = np.zeros(length, dtype=np.bool_) if first.failed is None else first.failed.copy()
    for other in others:
        same = pa.compute.fill_null(pa.compute.equal(array, _whole(other.values)), False).to_numpy(zero_copy_only=False)
        both_null = array.is_null().to_numpy(zero_copy_only=False) & _whole(other.values).is_null().to_numpy(zero_copy_only=False)
        doubt |= ~(same | both_null)
        doubt |= np.zeros(length, dtype=np.bool_) if other.failed is None else other.failed
    return pa.compute.if_else(pa.array(doubt), pa.scalar(None, array.type), array), doubt


def _whole(values_: Any) -> pa.Array:
    return values_.combine_chunks() if isinstance(values_, pa.ChunkedArray) else values_


def keyed(expr: Expr, index: IndexDefinition, schema: Schema) -> Expr:
    """``expr`` with the paths of the index as columns of it. Where one of them may be unsure, its rows are kept."""
    if not index.paths:
        return expr
    keys = {
        asked_path(source(index, path, schema)): path for path in index.columns if path[-1] in index.by_path and path[-2] in schema.by_id
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
