"""Decodes pyarrow expressions, such as ``pc.field("a") > 5``.

pyarrow has no interface to walk an expression. Its pickled form is an Arrow file of one row: literals and options
are columns, and the schema's metadata lists the nodes in order. ``Expression._deserialize`` restores an
expression from exactly this, so nothing is lost in it (Substrait drops the options of ``is_in``). Each key of
the list occurs many times, and pyarrow's own ``schema.metadata`` keeps one; so the list is read through the
Arrow C data interface. Whatever is not known here becomes ``other``: it is never guessed.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from tamis.table.foreign_expressions import (
    Constant,
    Name,
    Node,
    Operation,
    and_operation,
    other_operation,
    set_constants,
)

_COMPARISONS = {
    "equal": "eq",
    "not_equal": "ne",
    "less": "lt",
    "less_equal": "le",
    "greater": "gt",
    "greater_equal": "ge",
}
_LOGIC = {"and_kleene": ("and", 2), "or_kleene": ("or", 2), "invert": ("not", 1), "is_valid": ("is_not_null", 1)}
_MATCH, _SKIP = 0, 1
"""How ``is_in`` treats NULL: as a value like others, or as one that is in no set."""


def decode_expression(expression: pc.Expression) -> Node:
    """Return the tree of ``expression``; ``other`` if pyarrow cannot serialize it."""
    try:
        file = pa.ipc.open_file(expression.__reduce__()[1][0])
        row = file.read_all()
        entries = _metadata(file.schema)
    except (pa.ArrowException, AttributeError, IndexError, TypeError, ValueError):
        return other_operation(str(expression))
    return _node(entries, row, *next(entries))


def _metadata(schema: pa.Schema) -> Iterator[tuple[str, str]]:
    """Yield the entries of the schema's metadata in order, with those whose keys repeat."""
    capsule = schema.__arrow_c_schema__()
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    struct = ctypes.cast(pointer(capsule, b"arrow_schema"), ctypes.POINTER(ctypes.c_void_p))
    at = struct[2]  # after the format and the name
    texts = []
    if at:
        count = ctypes.c_int32.from_address(at).value
        at += 4
        for _ in range(2 * count):
            length = ctypes.c_int32.from_address(at).value
            texts.append(ctypes.string_at(at + 4, length).decode())
            at += 4 + length
    del capsule  # its memory was read above
    return iter(list(zip(texts[::2], texts[1::2], strict=True)))


def _node(entries: Iterator[tuple[str, str]], row: pa.Table, key: str, value: str) -> Node:
    """Read one node, whose first entry has been taken."""
    if key == "field_ref":
        return Name(value)
    if key == "literal":
        return constant(row.column(int(value))[0])
    if key == "nested_field_ref":
        inner = [_node(entries, row, *next(entries)) for _ in range(int(value))]
        return other_operation("a nested field", *inner[:1])
    assert key == "call", key
    args: list[Node] = []
    options: dict[str, Any] = {}
    for key, inner_value in entries:  # noqa: PLR1704  # the entries of this call, up to its end
        if key == "end":
            break
        if key == "options":
            options = _options(row.column(int(inner_value)))
        else:
            args.append(_node(entries, row, key, inner_value))
    return _operation(value, args, options)


def _options(column: pa.ChunkedArray) -> dict[str, Any]:
    struct = column.combine_chunks()
    return {name: struct.field(i)[0] for i, name in enumerate(f.name for f in struct.type)}


def _operation(name: str, args: list[Node], options: dict[str, Any]) -> Node:
    if name in _COMPARISONS and len(args) == 2 and not options:
        return Operation(_COMPARISONS[name], tuple(args), text=name)
    if name in _LOGIC and len(args) == _LOGIC[name][1] and not options:
        return Operation(_LOGIC[name][0], tuple(args), text=name)
    nan_is_null = options.get("nan_is_null")  # absent: False
    if name == "is_null" and len(args) == 1 and (nan_is_null is None or nan_is_null.as_py() is False):
        return Operation("is_null", tuple(args), text=name)
    if name == "is_in" and len(args) == 1 and isinstance(args[0], Name):
        return _member(args[0], options["value_set"].values, options["null_matching_behavior"].as_py())
    return other_operation(name, *args)


def _member(column: Name, values: pa.Array, nulls: int) -> Node:
    """Return ``is_in`` in the terms of SQL. It is never NULL: a NULL is in the set, or it is not."""
    constants = set_constants(values)
    if nulls not in {_MATCH, _SKIP} or constants is None:
        return other_operation("is_in", column)
    there = Operation("in", (column,), constants, "is_in")
    if nulls == _MATCH and values.null_count:
        return Operation("or", (Operation("is_null", (column,)), there))
    return and_operation(Operation("is_not_null", (column,)), there)


def constant(scalar: pa.Scalar) -> Node:
    """Return the constant that ``scalar`` is; ``other`` for NULL, and for types that are not compared alike."""
    kind = scalar.type
    if not scalar.is_valid:
        return other_operation("a comparison with NULL")
    if pa.types.is_boolean(kind):
        return Constant("boolean", scalar.as_py())
    if pa.types.is_integer(kind):
        return Constant("integer", scalar.as_py())
    if pa.types.is_float64(kind):
        return Constant("double", scalar.as_py())
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return Constant("string", scalar.as_py())
    if pa.types.is_date32(kind):
        return Constant("date", scalar.cast(pa.int32()).as_py())
    if pa.types.is_timestamp(kind):
        try:
            micros = scalar.cast(pa.timestamp("us", kind.tz)).cast(pa.int64()).as_py()
        except pa.ArrowInvalid:  # finer than microseconds, or out of their range
            return other_operation(f"a constant of the type {kind}")
        return Constant("local time" if kind.tz is None else "instant", micros)
    return other_operation(f"a constant of the type {kind}")
