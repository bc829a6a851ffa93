"""Derives a head with a new schema, and the effect on the order of existing parts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tamis.core.expr.generated_columns import FEATURE, check_generated
from tamis.core.schema import dropped_between
from tamis.core.schema.carried_defaults import carry_defaults, check_default_texts
from tamis.core.stats.place_properties import renamed_properties
from tamis.core.types import Schema
from tamis.errors import InvalidInput
from tamis.storage.commit_log.constraint_columns import renamed_constraints, with_constraints
from tamis.storage.commit_log.identity_columns import IDENTITY, check_identity
from tamis.storage.commit_log.model import Head
from tamis.storage.commit_log.table_constraints import Constraint

RESERVED = "_tamis_"
"""Prefix of the metadata columns that give a row's position; Spark finds them beside the table's own."""


def next_schema(
    head: Head,
    schema: Schema,
    cluster_by: Sequence[tuple[int, ...]] | None = None,
    constraints: Sequence[Constraint] | None = None,
) -> Head:
    """Return ``head`` with ``schema`` (all ids given) as its latest schema, clustered by ``cluster_by``.

    The schema's id is its position; the fields it lacks are remembered as dropped; earlier schemas do not
    change. Without ``cluster_by`` (id paths), the clustering stays. A dropped column is removed from either.

    Rows sorted by (a, b, c) are sorted by (a, b) but not by (a, c). So unless the new clustering columns are
    the first of the old ones, existing parts count as unordered (``ordered_now``) until they are compacted.
    A writer that still has the old clustering writes parts of an earlier schema, which count as unordered, too.

    Without ``constraints`` (under the names of ``schema``), those of the head follow the change, and so do the names
    in its properties. What rows older than a column show of it stays the same, whatever changes within the column.

    Raises ``InvalidInput``: ``RESERVED_NAME`` for a new column with the prefix of metadata columns,
    ``CONSTRAINED_COLUMN`` for a change that a constraint forbids; and the errors of ``check_generated``,
    ``carry_defaults`` and ``check_default_texts``.
    """
    before = set(head.schema.names) if head.schema else set[str]()
    for name in schema.names:
        if name.lower().startswith(RESERVED) and name not in before:
            raise InvalidInput(
                f"Column {name!r}: names that begin with {RESERVED!r} are reserved for metadata columns.",
                code="RESERVED_NAME",
                name=name,
                remedy="Choose another name.",
            )
    given = replace(schema, schema_id=len(head.schemas))
    if head.schema:
        given = carry_defaults(head.schema, given)
        check_default_texts(head.schema, given)
    check_generated(head.schema, given)
    check_identity(head.schema, given)
    dropped = dropped_between(head.schema, given) if head.schema else ()
    live = (*(gone for gone in head.dropped if gone.parent == 0 or gone.parent in given.by_id), *dropped)
    asked = head.cluster_by if cluster_by is None else cluster_by
    kept = tuple(path for path in asked if given.paths.get(path[-1]) == path)
    properties = head.properties
    if constraints is None:
        constraints = renamed_constraints(head.constraints, head.schema or given, given)
        properties = renamed_properties(properties, head.schema or given, given)
    broken = kept != head.cluster_by[: len(kept)]
    constrained = with_constraints(head, constraints)
    return replace(
        constrained,
        properties=properties,
        schemas=(*head.schemas, given),
        highest_column_id=max(head.highest_column_id, given.highest_id()),
        dropped=live,
        cluster_by=kept,
        ordered_since=given.schema_id if broken else head.ordered_since,
        writer_features=_writer_features(constrained, given),
    )


def _writer_features(head: Head, schema: Schema) -> tuple[str, ...]:
    """Return the features that writers must know under ``schema``."""
    others = tuple(name for name in head.writer_features if name not in {FEATURE, IDENTITY})
    generated = (FEATURE,) if any(f.generated is not None for f in schema.fields) else ()
    counted = (IDENTITY,) if any(f.identity is not None for f in schema.fields) else ()
    return (*others, *generated, *counted)


def ordered_now(head: Head, parts: pa.Table) -> pa.BooleanArray:
    """Return which of ``parts`` (columns ``ordered``, ``schema_id``) are in the current clustering order.

    None are if the table is not clustered. Code that relies on order must use this, never ``ordered`` alone.
    """
    if not head.cluster_by:
        return pa.array(np.zeros(len(parts), np.bool_))
    said = pc.fill_null(parts["ordered"], False)
    found = pc.and_(said, pc.fill_null(pc.greater_equal(parts["schema_id"], head.ordered_since), False))
    return found.combine_chunks() if isinstance(found, pa.ChunkedArray) else found
