"""Pre- and post-images of a change feed: pairs the deleted and inserted rows of a commit by key columns.

A table does not store which new row replaced which old one, so a key has to say it. Invariant: a pair has equal
keys without NULL, and neither row has another one of its key on its side. All other rows stay deletes and inserts.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from tamis.core.expr.arrow_values import plain_value
from tamis.core.types import VARIANT, Schema
from tamis.core.types.bounded_batches import joined_batches
from tamis.core.types.numbered_rows import NumberedRows
from tamis.engine.operations.rows.row_codes import Ints, row_codes
from tamis.errors import InvalidInput
from tamis.sizes import SIZES

INSERT, DELETE, PREIMAGE, POSTIMAGE = "insert", "delete", "update_preimage", "update_postimage"

BATCH_ROWS = SIZES.feed_batch_rows
BATCH_BYTES = SIZES.feed_batch_bytes

Bools = np.ndarray[Any, np.dtype[np.bool_]]


def key_columns(schema: Schema, keys: Sequence[str]) -> tuple[int, ...]:
    """Return the places of the key columns, each as a user writes its name.

    Raises ``NotFound`` (``COLUMN_NOT_FOUND``), and ``InvalidInput`` (``BAD_KEY``) for a column that cannot be a key.
    """
    places: list[int] = []
    for name in keys:
        path = schema.resolve_name(name)
        if len(path) > 1 or path[0].type.children or path[0].type == VARIANT:
            raise InvalidInput(
                f"{name} cannot be a key of changes: it is nested.",
                code="BAD_KEY",
                name=name,
                remedy="Name columns with plain values that together identify a row.",
            )
        places.append(schema.fields.index(path[0]))
    return tuple(places)


def image_rows(
    gone: pa.Table, come: pa.Table, places: Sequence[int], where: str
) -> Iterator[tuple[str, Iterator[pa.RecordBatch]]]:
    """Yield kinds and rows: deletes, images before and after in the same order, inserts.

    ``where`` describes the commit in an error. Raises ``InvalidInput`` (``DUPLICATE_KEYS``) if several rows could
    be the row before or after an update.
    """
    codes = row_codes(pa.concat_tables([gone.select(list(places)), come.select(list(places))]))
    left, right = codes[: len(gone)], codes[len(gone) :]
    whole_left, whole_right = (_whole(rows, places) for rows in (gone, come))
    size = int(codes.max(initial=-1)) + 1
    before, after = np.bincount(left[whole_left], minlength=size), np.bincount(right[whole_right], minlength=size)
    both = (before > 0) & (after > 0)
    if (many := both & ((before > 1) | (after > 1))).any():
        raise _ambiguous(gone, np.flatnonzero(whole_left & many[left]), places, where)
    paired_left, paired_right = whole_left & both[left], whole_right & both[right]
    yield DELETE, _chosen(gone, ~paired_left)
    for kind, rows, paired, code in (
        (PREIMAGE, gone, paired_left, left),
        (POSTIMAGE, come, paired_right, right),
    ):
        at = np.flatnonzero(paired)
        at = at[np.argsort(code[at], kind="stable")]
        yield kind, NumberedRows(rows).pieces(at, BATCH_BYTES, BATCH_ROWS)
    yield INSERT, _chosen(come, ~paired_right)


def _chosen(rows: pa.Table, chosen: Bools) -> Iterator[pa.RecordBatch]:
    return joined_batches(rows.filter(pa.array(chosen)).to_batches(), BATCH_ROWS, BATCH_BYTES)


def _whole(rows: pa.Table, places: Sequence[int]) -> Bools:
    """Return which rows have no NULL in their key."""
    out = np.ones(len(rows), dtype=np.bool_)
    for at in places:
        out &= rows.column(at).is_valid().to_numpy()
    return out


def _ambiguous(gone: pa.Table, at: Ints, places: Sequence[int], where: str) -> InvalidInput:
    names = [gone.schema.names[place] for place in places]
    key = ", ".join(f"{name} = {_shown(gone.column(name)[int(at[0])])}" for name in names)
    return InvalidInput(
        f"{where} has several deleted or inserted rows with {key}.",
        code="DUPLICATE_KEYS",
        name=", ".join(names),
        remedy="Name columns that identify a row, or read the changes without keys.",
    )


def _shown(value: pa.Scalar) -> str:
    try:
        return str(value.as_py())
    except (ValueError, OverflowError):  # a date or an instant beyond Python's range
        return str(plain_value(value))
