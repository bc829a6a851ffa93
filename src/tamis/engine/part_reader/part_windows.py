"""Division of large parts into windows, so that few parts keep all cores busy.

Invariant: reading a part's windows in sequence gives the part's rows in the same order, and counters with the
same sums.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np

from tamis.storage.files import PartRef


def split_windows(ref: PartRef, count: int) -> list[PartRef]:
    """Split the part into at most ``count`` runs of blocks with about equally many rows.

    Returns the part itself if it has fewer than two blocks or is already a window.
    """
    if count < 2 or len(ref.blocks) < 2 or ref.window is not None:
        return [ref]
    ends = np.cumsum(np.array(ref.blocks, dtype=np.int64))
    piece = (ends - np.array(ref.blocks) // 2) * min(count, len(ref.blocks)) // max(int(ends[-1]), 1)
    cuts = [0, *(np.flatnonzero(np.diff(piece)) + 1).tolist(), len(ref.blocks)]
    return [replace(ref, window=(int(a), int(z))) for a, z in pairwise(cuts)]
