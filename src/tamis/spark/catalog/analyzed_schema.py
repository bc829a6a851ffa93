"""Resolution of the columns of a plan analysed earlier in the current table.

Invariant: a column means the id, name, type and nullability that it had in the schema under which the plan
was analysed. Spark keeps that schema's id with each column, but loses it if only a field of a struct is
required. A required column that is dropped, or no longer has a valid type or nullability, fences the plan.
Renames, and columns that the plan does not read, do not.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

from tamis.core.schema import fence_reader
from tamis.core.types import DataType, Field, Schema, Struct
from tamis.core.types.logical import with_children
from tamis.errors import SchemaFenced
from tamis.spark.jvm_bridge.spark_types import FIELD_ID, SCHEMA_ID, pruned_schema
from tamis.storage.commit_log import Head


def captured_schema(head: Head, current: Schema, required: dict[str, Any], analysed: Iterable[int] = ()) -> Schema:
    """``current`` with its columns named as in ``required``, Spark's struct as JSON.

    ``analysed``: ids of the schemas under which the plan may have been analysed, used if Spark has kept no
    schema ids. Fields that have been added since are left out. Raises ``SchemaFenced`` naming the column, also if
    ``required`` means other fields in one of these schemas than in another (``FENCED_AMBIGUOUS``).
    """
    schema_ids = {known for f in required["fields"] if (known := (f.get("metadata") or {}).get(SCHEMA_ID)) is not None}
    readers = []
    for schema_id in sorted(schema_ids or set(analysed)):
        then = head.schemas[schema_id] if schema_id < len(head.schemas) else current
        then = current if then.fields == current.fields else then
        reader = _reader(then, required)
        if reader is not None:
            readers.append((then, reader))
    if not readers and _reader(current, required) is None:
        raise SchemaFenced(
            f"No known schema of the table has the columns {', '.join(f['name'] for f in required['fields'])} as the "
            "query was analysed with them.",
            code="FENCED_AMBIGUOUS",
            remedy="Make all DataFrames of the query again.",
        )
    _check_one_meaning([reader for _, reader in readers])
    earlier = [(then, reader) for then, reader in readers if then is not current]
    for _, reader in earlier:
        fence_reader(current, head.dropped, reader)
    return replace(current, fields=_named_as(current.fields, earlier[-1][0].fields)) if earlier else current


def check_folded_columns(head: Head, then: Schema) -> None:
    """Raise ``SchemaFenced`` if a type or NOT NULL of ``then``, the schema of a plan, no longer holds.

    Spark has simplified the plan by the types and nullability of ``then``: ``n = 3000000000`` is FALSE for an INT,
    and ``k IS NOT NULL`` is TRUE for a NOT NULL column. The scan is not asked for columns that
    were simplified away, so all columns are checked: for another type, for NULLs, and whether a NOT NULL column was
    dropped. Dropping a nullable column contradicts nothing.
    """
    now = head.schema
    if now is None or now.fields == then.fields:
        return
    fence_reader(now, head.dropped, replace(then, fields=_relied_on(then.fields, now.fields)))


def _relied_on(then: Iterable[Field], now: Iterable[Field]) -> tuple[Field, ...]:
    """The fields of ``then`` that are also in ``now`` or were NOT NULL, at any depth."""
    left = {f.id: f for f in now}
    return tuple(_field_relied_on(f, left[f.id]) if f.id in left else f for f in then if f.id in left or not f.nullable)


def _field_relied_on(then: Field, now: Field) -> Field:
    if not then.type.children or type(then.type) is not type(now.type):
        return then
    inner = _relied_on(then.type.children, now.type.children)
    # of a struct whose fields are all others now, only its own nullability counts
    return replace(then, type=with_children(then.type, inner) if inner else now.type)


def _reader(schema: Schema, required: dict[str, Any]) -> Schema | None:
    """``schema`` reduced to the ``required`` fields; None if it cannot be the plan's schema.

    It lacks one of the names, or gives it to another field than the one whose id Spark has kept.
    """
    try:
        reader = pruned_schema(schema, required)
    except LookupError:
        return None
    return reader if all(_has_id(f, kept) for f, kept in zip(reader, required["fields"], strict=True)) else None


def _has_id(ours: Field, kept: dict[str, Any]) -> bool:
    """Whether a field and those within it have the ids that Spark has kept in ``kept``, the field as JSON."""
    known = (kept.get("metadata") or {}).get(FIELD_ID)
    return (known is None or int(known) == ours.id) and _has_ids(ours.type, kept["type"])


def _has_ids(ours: DataType, kept: Any) -> bool:
    if not isinstance(kept, dict):
        return not ours.children
    if isinstance(ours, Struct) or kept["type"] == "struct":
        return isinstance(ours, Struct) and all(map(_has_id, ours.fields, kept.get("fields", ())))
    inner_types = [kept[name] for name in ("elementType", "keyType", "valueType") if name in kept]
    return len(ours.children) == len(inner_types) and all(
        _has_ids(f.type, inner) for f, inner in zip(ours.children, inner_types, strict=True)
    )


def _check_one_meaning(readers: Sequence[Schema]) -> None:
    """Raise ``SchemaFenced`` if a name refers to different fields in two consecutive ``readers``."""
    for one, other in pairwise(readers):
        for (ids, _), (other_ids, f) in zip(one.walk(), other.walk(), strict=False):
            if ids != other_ids:
                raise SchemaFenced(
                    f"The query was analysed under schemas {one.schema_id} and {other.schema_id}, in which "
                    f"{f.name!r} names two different fields.",
                    code="FENCED_AMBIGUOUS",
                    name=f.name,
                    remedy="Make all DataFrames of the query again.",
                )


def _named_as(fields: Iterable[Field], then: Iterable[Field]) -> tuple[Field, ...]:
    """The fields of ``fields`` that are also in ``then``, at any depth, with their names in ``then``."""
    before = {f.id: f for f in then}
    found = (_field_named_as(f, before[f.id]) for f in fields if f.id in before)
    return tuple(f for f in found if f is not None)


def _field_named_as(f: Field, then: Field) -> Field | None:
    """``f`` with the names of ``then``; None if ``then`` has none of the fields within it."""
    inner = _named_as(f.type.children, then.type.children)
    if len(inner) < (1 if isinstance(f.type, Struct) else len(f.type.children)):
        return None
    return replace(f, name=then.name, type=with_children(f.type, inner) if inner else f.type)
