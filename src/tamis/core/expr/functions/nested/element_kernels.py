"""Kernels over array and map members: their positions, and tests folded into one result per row."""

from __future__ import annotations

import numpy as np

from tamis.core.expr.arrow_values import (
    Datum,
    Evaluated,
    any_set,
    boolean_array,
    full_length,
    is_false,
    is_true,
    null_mask,
)


def member_ranges(x: Datum) -> tuple[np.ndarray, np.ndarray]:
    """Return the start and number of each row's members (0 for a NULL array)."""
    offsets = np.asarray(x.offsets.to_numpy(zero_copy_only=False)).astype(np.int64)
    sizes = np.diff(offsets)
    null = null_mask(x)
    return offsets[:-1], sizes if null is None else np.where(null, 0, sizes)


def member_positions(starts: np.ndarray, sizes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return, for each member of each array, its row and its position among all values."""
    owner = np.repeat(np.arange(len(sizes)), sizes)
    before = np.cumsum(sizes) - sizes
    return owner, np.arange(len(owner)) - np.repeat(before, sizes) + np.repeat(starts, sizes)


def any_of(test: Evaluated, owner: np.ndarray, length: int, *, exists: bool) -> Evaluated:
    """Fold a test of members into one result per row, in order, up to the first true (``exists``) or false one.

    NULL is handled as in OR (``exists``) and AND (``forall``).
    """
    values = full_length(test.values, len(owner))
    stop = is_true(values) if exists else is_false(values)
    failed = np.zeros(len(owner), bool) if test.failed is None else np.broadcast_to(test.failed, (len(owner),))
    null = ~(is_true(values) | is_false(values)) & ~failed
    place = np.arange(len(owner))
    none = len(owner) + 1
    first_stop, first_fail = (_first(owner[m], place[m], length, none) for m in (stop & ~failed, failed))
    bad = first_fail < first_stop
    stopped = (first_stop < none) & ~bad
    unsure = (np.bincount(owner[null], minlength=length) > 0) & ~stopped & ~bad
    rest = ~(stopped | unsure | bad)
    out = boolean_array(stopped, rest, length) if exists else boolean_array(rest, stopped, length)
    return Evaluated(out, any_set(bad), test.error)


def _first(owner: np.ndarray, place: np.ndarray, length: int, none: int) -> np.ndarray:
    out = np.full(length, none, np.int64)
    np.minimum.at(out, owner, place)
    return out
