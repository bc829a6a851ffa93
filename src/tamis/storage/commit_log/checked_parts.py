"""Proof that new rows were tested: the manifest of a part names the constraints that its writer tested.

Invariant: no commit adds rows that were not tested by every CHECK of the head in force when it lands, whichever
writer made them and however old the head was that it knew.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from tamis.errors import Conflict
from tamis.storage.commit_log.model import Head
from tamis.storage.commit_log.table_constraints import enforced_constraints

CHECKED = "checked"
"""The manifest column of the ids of the constraints by which the part's rows were tested. It is not stored."""


def add_tested_constraints(manifest: pa.Table, constraint_ids: Collection[str]) -> pa.Table:
    """Add the column ``CHECKED`` to a manifest."""
    values = pa.array([sorted(constraint_ids)] * len(manifest), pa.list_(pa.string()))
    return manifest.append_column(CHECKED, values)


def drop_tested_constraints(manifest: pa.Table) -> pa.Table:
    return manifest.drop_columns([CHECKED]) if manifest.schema.get_field_index(CHECKED) >= 0 else manifest


def check_tested_constraints(add: Sequence[pa.Table], head: Head) -> None:
    """Raise ``Conflict`` (``CONFLICT_CONSTRAINT``) if a part of ``add`` was not tested by a CHECK of ``head``."""
    for constraint in enforced_constraints(head.constraints):
        for manifest in add:
            if len(manifest) and _tested(manifest, constraint.constraint_id) < len(manifest):
                raise Conflict(
                    f"The constraint {constraint.name!r} was added after these rows were made: they were not tested.",
                    code="CONFLICT_CONSTRAINT",
                    name=constraint.name,
                    remedy="None of its changes were committed. Reload the table and write again.",
                )


def _tested(manifest: pa.Table, constraint_id: str) -> int:
    """Return how many parts were tested by the constraint."""
    if CHECKED not in manifest.column_names:
        return 0
    flat = pc.list_flatten(manifest[CHECKED])
    return int(pc.sum(pc.equal(flat, constraint_id)).as_py() or 0)
