"""Narrowing of an index part to pages that may match, by statistics of pages or, failing that, blocks.

Invariant: a page is dropped only by proof (``pruning.decide``). A part without page statistics is judged
block by block, a part without any statistics is read whole.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from pyroaring import BitMap

from tamis.core.expr import Expr
from tamis.core.pruning import decide
from tamis.core.types import Schema
from tamis.engine.part_reader import ReadCounters, block_evidence, page_evidence
from tamis.engine.secondary_index.candidate_rows import Bools, Ints
from tamis.engine.secondary_index.index_definition import PART, ROW
from tamis.sizes import SIZES
from tamis.storage.commit_log.deletion_vectors import serialize_vector
from tamis.storage.files import PartRef, open_part
from tamis.storage.object_store import Store

WHOLE_ROWS = SIZES.index_whole_rows
"""Index parts with at most this many entries are read whole, which is faster than judging pages."""


@dataclass(frozen=True, slots=True)
class Narrowed:
    """What is left of an index part; ``ref`` is None if nothing is."""

    ref: PartRef | None
    hits: int
    """A lower bound of the matching entries."""
    bytes: int
    """The estimated cost of reading it."""


def narrow_index_part(
    store: Store,
    ref: PartRef,
    schemas: Mapping[int, Schema],
    ids: Collection[int],
    conjuncts: Sequence[Expr],
    now: tuple[int, int],
    counters: ReadCounters,
) -> Narrowed:
    """Narrow the part ``ref``.

    Reads its footer, once per process. Raises ``CorruptData``, ``StoreUnavailable``.
    """
    part = open_part(store, ref, schemas[ref.schema_id])
    counters.bytes_leader += part.io.bytes
    counters.requests += part.io.requests
    found = page_evidence(part, ref, store.url, schemas)
    blocks = np.asarray(part.block_rows, dtype=np.int64)
    if found is None:
        sizes, evidence = blocks, block_evidence(part, ref, store.url, ids, schemas)
    else:
        sizes, evidence = found[0].to_numpy(), found[1]
    decision = decide(conjuncts, evidence, now=now, reasons=False)
    alive = ~decision.none
    if not alive.any():
        return Narrowed(None, 0, 0)
    hits = int(sizes[decision.all & alive].sum()) + int((alive & ~decision.all).sum())
    starts = np.cumsum(sizes) - sizes
    touched = np.unique(np.searchsorted(np.cumsum(blocks), starts[alive], side="right"))
    share = int(sizes[alive].sum()) / max(int(blocks[touched].sum()), 1)
    size = int(part.cost([*ids, PART, ROW], touched.tolist()) * share)
    return Narrowed(ref if alive.all() else replace(ref, candidates=_rows(starts, sizes, alive)), hits, size)


def _rows(starts: Ints, sizes: Ints, alive: Bools) -> bytes:
    """Return the rows of the pages in ``alive`` as serialized candidates."""
    rows = BitMap()
    edges = np.flatnonzero(np.diff(np.concatenate([[False], alive, [False]]).astype(np.int8)))
    for first, end in zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True):
        rows.add_range(int(starts[first]), int(starts[end - 1] + sizes[end - 1]))
    return serialize_vector(rows)
