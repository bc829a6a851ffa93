"""Large parts cut into windows, so that few of them keep all cores busy.

Law: the windows of a part, read one after another, give what the part gives: the same rows in the same order, and counters that add up to the same.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np

from tamis.storage.files import PartRef
from tamis.storage.files.formats import format_named


def windows(ref: PartRef, count: int) -> list[PartRef]:
    """The part as at most ``count`` references to runs of its blocks, of about as many rows each; itself where it has no two blocks, is one already, or its format
    would fetch too much twice."""
    least = format_named(ref.format).window_rows
    count = min(count, ref.rows // least) if least else count
    if count < 2 or len(ref.blocks) < 2 or ref.window is not None:
        return [ref]
    ends = np.cumsum(np.array(ref.blocks, dtype=np.int64))
    piece = (ends - np.array(ref.blocks) // 2) * min(count, len(ref.blocks)) // max(int(ends[-1]), 1)
    cuts = [0, *(np.flatnonzero(np.diff(piece)) + 1).tolist(), len(ref.blocks)]
    return [replace(ref, window=(int(a), int(z))) for a, z in pairwise(cuts)]
