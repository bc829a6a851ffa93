"""Reads ORC: chosen stripes × columns, decoded by pyarrow.

Rows are selected after a stripe is decoded, because the library cannot do it earlier. A block is made of stripes, of
which only those with wanted rows are read.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import pairwise
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from tamis.core.types import Field, Schema
from tamis.storage.files.corrupt_parts import corrupt_part
from tamis.storage.files.named_columns import Ordinals, SealedPart
from tamis.storage.files.orc.excerpt_reader import ExcerptReader
from tamis.storage.files.orc.file_reader import FileReader
from tamis.storage.files.protocol import PartRef, Piece
from tamis.storage.files.sealed_reader import Sealed, open_sealed


class StripeReader(Protocol):
    """Decodes whole stripes of a part."""

    @property
    def names(self) -> Sequence[str]:
        """The names of the columns in the file, in order."""
        ...

    @property
    def rows(self) -> Ordinals:
        """Rows of each stripe."""
        ...

    def read(self, places: Sequence[int], stripes: Sequence[int]) -> list[pa.RecordBatch]:
        """Return a batch per stripe with the columns at ``places`` (ascending). Raises ``CorruptData``."""
        ...


def open_orc(store: Any, ref: PartRef, schema: Schema) -> OrcPart:
    """Open the part and check its seal. Raises ``CorruptData``.

    ``schema`` is the one under which the part was written.
    """
    return OrcPart(open_sealed(store, ref), schema)


class OrcPart(SealedPart):
    """One open ORC file (see ``PartFile``). Not thread-safe."""

    def __init__(self, source: Sealed, schema: Schema) -> None:
        super().__init__(source, schema)
        self._stripes: StripeReader = ExcerptReader(source) if source.seal.layout else FileReader(source)
        self._starts = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(self._stripes.rows)])
        self._places = {name: at for at, name in enumerate(self._stripes.names)}
        """Positions of the columns in the file, including leaves that its note does not declare."""

    @cached_property
    def _first_stripes(self) -> Ordinals:
        """The first stripe of each block, and the end."""
        return np.searchsorted(self._starts, self._columns.starts).astype(np.int64)

    def read(self, columns: Sequence[int], blocks: Sequence[int], rows: Ordinals | None = None) -> Iterator[Piece]:
        fields, starts = self._columns.stored_fields(columns), self._starts
        stripes = self._stripes_of(blocks)
        if rows is not None:
            cuts = np.searchsorted(rows, starts)
            stripes = stripes[cuts[stripes] < cuts[stripes + 1]]
        for run in self._runs(fields, stripes):
            block = int(np.searchsorted(self._first_stripes, run[0], side="right")) - 1
            if rows is None:
                places = [(int(starts[s]), int(starts[s + 1])) for s in run]
                yield Piece(block, _joined(places), self._decode(fields, run, None))
                continue
            taken = [rows[cuts[s] : cuts[s + 1]] for s in run]
            found = self._decode(fields, run, [some - starts[s] for some, s in zip(taken, run, strict=True)])
            yield Piece(block, np.concatenate(taken), found)

    def decoded_rows(self, columns: Sequence[int], rows: Ordinals) -> int:
        del columns  # all of them have the same stripes
        return int(self._stripes.rows[np.diff(np.searchsorted(rows, self._starts)) > 0].sum())

    def _stripes_of(self, blocks: Sequence[int]) -> Ordinals:
        first = self._first_stripes
        found = [np.arange(first[b], first[b + 1], dtype=np.int64) for b in blocks]
        return np.concatenate([np.zeros(0, dtype=np.int64), *found])

    def _runs(self, fields: Sequence[Field], stripes: Ordinals) -> Iterator[list[int]]:
        """Group stripes to decode together, as far as memory allows, whether or not they are neighbours."""
        most = self._columns.rows_at_once(fields)
        ends = np.cumsum(self._stripes.rows[stripes])
        at = done = 0
        while at < len(stripes):
            end = max(int(np.searchsorted(ends, done + most, side="right")), at + 1)
            yield stripes[at:end].tolist()
            at, done = end, int(ends[end - 1])

    def _decode(self, fields: list[Field], stripes: list[int], taken: Sequence[Ordinals] | None) -> pa.RecordBatch:
        """Decode all rows of these stripes, or those ``taken`` from each."""
        counts = self._stripes.rows[stripes] if taken is None else [len(some) for some in taken]
        if not fields:
            return self._columns.batch([], [], int(sum(counts)))
        if any(f.name not in self._places for f in fields):
            raise corrupt_part(self._source.ref, "lacks a column that was written")
        batches = self._stripes.read([self._places[f.name] for f in fields], stripes)
        if [len(batch) for batch in batches] != self._stripes.rows[stripes].tolist():
            raise corrupt_part(self._source.ref, f"has other rows in stripes {stripes} than its seal says")
        if taken is not None:
            batches = [b.take(pa.array(some)) for b, some in zip(batches, taken, strict=True)]
        whole = batches[0] if len(batches) == 1 else pa.concat_batches(batches)
        return self._columns.batch(fields, whole.columns, len(whole))


def _joined(places: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the same rows with adjacent runs joined."""
    starts = [places[0][0], *(b for (_, a), (b, _) in pairwise(places) if a != b)]
    ends = [*(a for (_, a), (b, _) in pairwise(places) if a != b), places[-1][1]]
    return list(zip(starts, ends, strict=True))
