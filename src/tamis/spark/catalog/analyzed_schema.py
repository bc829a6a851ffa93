"""Resolution of the columns of a plan analysed earlier in the current table.

Invariant: a column means the id, name, type and nullability that it had in the schema under which the plan
was analysed. Spark keeps that schema's id with each column, but loses it if only a field of a struct is
required. A required column that is dropped, or no longer has a valid type or nullability, fences the plan.
Renames, and columns that the plan does not read, do not.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from tamis.core.schema import fence
from tamis.core.types import Field, Schema
from tamis.core.types.logical import with_children
from tamis.spark.jvm_bridge.spark_types import SCHEMA_ID, pruned
from tamis.storage.commit_log import Head


def captured(head: Head, current: Schema, required: dict[str, Any], analysed: Iterable[int] = ()) -> Schema:
    """``current`` with its columns named as in ``required``, Spark's struct as JSON.

    ``analysed``: ids of the schemas under which the plan may have been analysed, used if Spark has kept no
    schema ids. All of them must agree. Raises ``SchemaFenced`` naming the column.
    """
    schema_ids = {known for f in required["fields"] if (known := (f.get("metadata") or {}).get(SCHEMA_ID)) is not None}
    readers = []
    for schema_id in sorted(schema_ids or set(analysed)):
        then = head.schemas[schema_id] if schema_id < len(head.schemas) else current
        if then.fields == current.fields:
            continue
        try:
            readers.append(pruned(then, required))
        except LookupError:  # not the plan's schema: it lacks the columns
            continue
        fence(current, head.dropped, readers[-1])
    if not readers:
        return current
    names = {ids[-1]: f.name for ids, f in readers[-1].walk()}
    ours = {f.name.lower(): f.id for f in readers[-1]}
    kept = tuple(f for f in current if ours.get(names.get(f.id, f.name).lower(), f.id) == f.id)
    return replace(current, fields=tuple(_called(f, names) for f in kept))


def _called(f: Field, names: Mapping[int, str]) -> Field:
    inner = tuple(_called(child, names) for child in f.type.children)
    return replace(f, name=names.get(f.id, f.name), type=with_children(f.type, inner) if inner else f.type)
