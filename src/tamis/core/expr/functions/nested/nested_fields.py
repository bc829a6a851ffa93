"""Fields of structs in arrays and maps: ``lines[0].sku``, ``map['k'].v``, or as an array ``lines.sku``.

The access is one call with the remaining names as its last argument, so that the statistics of the field
itself are used.
"""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from tamis.core.expr.arrow_values import Datum, Evaluated, full_length, null_mask
from tamis.core.expr.registry import Function, Signature, declare_function
from tamis.core.expr.tree import Call, Column, Expr, Literal, Mode
from tamis.core.types import STRING, Array, DataType, Field, Map, Struct
from tamis.core.types.arrow import FIELD_ID, to_arrow_type

ACCESS = frozenset({"element", "element_at", "map_value"})


def field_of(parent: Expr, name: str) -> Expr | None:
    """Return the field of this name (case-insensitive) of a struct, or None if it is not supported.

    For an array of structs, the result is an array of the fields.
    """
    kind, each = parent.type, False
    if isinstance(kind, Array) and isinstance(kind.element.type, Struct):
        kind, each = kind.element.type, True
    fields = [f for f in kind.fields if f.name.lower() == name.lower()] if isinstance(kind, Struct) else []
    if len(fields) != 1 or "." in fields[0].name:
        return None
    (found,) = fields
    if each:
        return _of_each(parent, found)
    if isinstance(parent, Column):
        return Column(
            found.type, (*parent.ids, found.id), f"{parent.name}.{found.name}", parent.nullable or found.nullable
        )
    if isinstance(parent, Call) and parent.function in ACCESS:
        path = ".".join([*path_of(parent), found.name])
        return replace(parent, type=found.type, args=(*parent.args[:2], Literal(STRING, path)))
    return None


def _of_each(parent: Expr, found: Field) -> Expr | None:
    """Return the array of a field's values of the structs in an array; None if the array is computed otherwise."""
    kind = Array(Field("element", found.type, id=found.id))
    if isinstance(parent, Column):
        return Call(kind, "array_field", (parent, Literal(STRING, found.name)))
    if isinstance(parent, Call) and parent.function == "array_field":
        path = ".".join([*path_of(parent), found.name])
        return replace(parent, type=kind, args=(parent.args[0], Literal(STRING, path)))
    return None


def path_of(call: Call) -> tuple[str, ...]:
    """Return the names that follow an access."""
    last = call.args[-1]
    named = call.function == "array_field" or len(call.args) == 3
    return tuple(last.value.split(".")) if named and isinstance(last, Literal) else ()


def members(call: Call) -> tuple[DataType, tuple[int, ...]] | None:
    """Return the type that ``call`` gives for each element or value, and the ids that lead to it.

    The ids begin with those of the column; None if the source is not a column.
    """
    source = call.args[0]
    if not isinstance(source, Column) or not isinstance(source.type, Array | Map):
        return None
    inner = source.type.element if isinstance(source.type, Array) else source.type.value
    kind, ids = inner.type, [*source.ids, inner.id]
    for name in path_of(call):
        found = next((f for f in kind.fields if f.name == name), None) if isinstance(kind, Struct) else None
        if found is None:
            return None
        kind, ids = found.type, [*ids, found.id]
    return kind, tuple(ids)


def nested_field(values: Datum, kind: DataType, path: tuple[str, ...]) -> Datum:
    """Return the field below structs; NULL where one of them is."""
    for name in path:
        assert isinstance(kind, Struct)
        field = next(f for f in kind.fields if f.name == name)
        values, kind = pc.struct_field(values, [_position(values.type, field)]), field.type
    target = to_arrow_type(kind)
    return values if values.type == target or pa.types.is_nested(target) else values.cast(target)


def _position(struct: pa.DataType, field: Field) -> int:
    """Return the field's position by column id (in the metadata, or as its name), else by name."""
    wanted = str(field.id).encode()
    by_id = [i for i in range(struct.num_fields) if (struct.field(i).metadata or {}).get(FIELD_ID) == wanted]
    return by_id[0] if by_id else max(struct.get_field_index(str(field.id)), struct.get_field_index(field.name))


def _no_signature(args: tuple[Expr, ...], mode: Mode, zone: str | None) -> Signature | None:  # noqa: ARG001
    return None  # built by ``field_of`` only


def _each(call: Call, args: list[Datum]) -> Evaluated:
    """Return an array of the field's values."""
    x, kind = full_length(args[0], 1), call.args[0].type
    assert isinstance(kind, Array)
    values = nested_field(x.values, kind.element.type, path_of(call))
    null = null_mask(x)
    offsets = pa.array(x.offsets.to_numpy(zero_copy_only=False))
    return Evaluated(pa.ListArray.from_arrays(offsets, values, mask=None if null is None else pa.array(null)))


declare_function(
    Function(
        "array_field", _no_signature, _each, rule="unknown_array", note="by the statistics of the field in the elements"
    )
)
