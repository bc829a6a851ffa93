"""Deletion vectors: which rows of a part are deleted, while its file stays unchanged.

Invariant: a vector holds every physical row ordinal of its part that is deleted at its version; a later
vector of the same part replaces it and contains it. A part whose rows are all deleted gets no vector: it is
removed.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyroaring import BitMap

from tamis.core.types.bounded_decoding import MOST_ROWS, bounded_integer
from tamis.errors import CorruptData, InvalidInput
from tamis.storage.object_store.metadata_files import Columns, columns_from_json
from tamis.storage.object_store.store import Store

Ordinals = np.ndarray[Any, np.dtype[np.int64]]

FOLDER = "_tamis/deletions"
"""Folder of the vector tables that are too large for their commit."""

DELETIONS = pa.schema(
    [("segment_id", pa.string()), ("part_id", pa.string()), ("rows", pa.int64()), ("vector", pa.binary())]
)
"""Schema of a commit's table of vectors.

Each row has the part, the number of its deleted rows, and the serialized roaring bitmap of their 32-bit
ordinals.
"""


def read_bitmap(vector: bytes, name: str = "") -> Any:
    """Deserialize ``vector``. Raises ``CorruptData`` (``BAD_DELETIONS``) naming the part ``name``."""
    try:
        found = BitMap.deserialize(vector)
        bounded_integer(len(found), MOST_ROWS, "the number of deleted rows")
    except (ValueError, IndexError) as error:
        raise CorruptData(
            f"The deletion vector of part {name} is corrupt.",
            code="BAD_DELETIONS",
            name=name,
            remedy="Restore the log from a backup.",
        ) from error
    return found


def serialize_vector(ordinals: Ordinals | Any) -> bytes:
    """Serialize row ordinals (an array or a bitmap) as a deletion vector."""
    rows = ordinals if isinstance(ordinals, BitMap) else BitMap(np.ascontiguousarray(ordinals, dtype=np.uint32))
    rows.run_optimize()
    return bytes(rows.serialize())


def row_ordinals(found: Any) -> Ordinals:
    """Return the row ordinals in a bitmap, ascending."""
    rows: Ordinals = np.asarray(found.to_array(), dtype=np.int64)
    return rows


@dataclass(slots=True)
class Touched:
    """A part that loses rows: those deleted by this operation (``mine``) and earlier ones (``before``)."""

    segment_id: str
    rows: int
    bytes: int
    mine: Any
    before: Any

    @property
    def total(self) -> Any:
        return self.mine | self.before


@dataclass(slots=True)
class RowRemoval:
    """The rows that an operation deletes, by part id, relative to the version checked last."""

    parts: dict[str, Touched] = field(default_factory=dict)

    @property
    def segments(self) -> set[str]:
        return {part.segment_id for part in self.parts.values()}

    def overlap(self, store: Store, theirs: Columns | None) -> str | None:
        """Return a part in which ``theirs`` deleted a row that this operation deletes too, or None."""
        return next(
            (part_id for part_id, rows in self._shared(store, theirs) if not rows.isdisjoint(self.parts[part_id].mine)),
            None,
        )

    def add_concurrent_deletions(self, store: Store, theirs: Columns | None) -> None:
        """Add the rows that ``theirs`` deleted from the same parts to ``before``."""
        for part_id, rows in self._shared(store, theirs):
            self.parts[part_id].before |= rows

    def emptied_parts(self) -> dict[str, Touched]:
        """Return the parts that have no rows left."""
        return {part_id: part for part_id, part in self.parts.items() if len(part.total) >= part.rows}

    def table(self) -> pa.Table:
        """Return the vectors of the parts that keep rows, as ``DELETIONS``."""
        left = {part_id: part for part_id, part in self.parts.items() if len(part.total) < part.rows}
        rows = [
            (part.segment_id, part_id, len(part.total), serialize_vector(part.total)) for part_id, part in left.items()
        ]
        columns = list(zip(*rows, strict=True)) or [(), (), (), ()]
        return pa.table([pa.array(list(c), f.type) for c, f in zip(columns, DELETIONS, strict=True)], schema=DELETIONS)

    def _shared(self, store: Store, theirs: Columns | None) -> list[tuple[str, Any]]:
        if theirs is None or not self.parts:
            return []
        found = theirs.read(store, lambda _: ["part_id", "vector"])
        found = found.filter(pc.is_in(found["part_id"], value_set=pa.array(list(self.parts), pa.string())))
        return [
            (i, read_bitmap(v, i))
            for i, v in zip(found["part_id"].to_pylist(), found["vector"].to_pylist(), strict=True)
        ]


def vectors_of(segment_id: str, added: Mapping[str, bytes]) -> pa.Table:
    """Return the vectors of new parts whose rows are partly deleted from the start, as ``DELETIONS``."""
    rows = [(segment_id, part_id, len(read_bitmap(found, part_id)), found) for part_id, found in added.items()]
    return pa.table(
        [pa.array(list(c), f.type) for c, f in zip(zip(*rows, strict=True), DELETIONS, strict=True)], schema=DELETIONS
    )


def removal_of(parts: pa.Table, delete_rows: Mapping[str, bytes]) -> RowRemoval:
    """Resolve ``delete_rows`` against the live parts of the version that was read.

    ``parts`` has the columns ``part_id, segment_id, rows, bytes, deletion``. Raises ``InvalidInput``:
    ``UNKNOWN_PART`` for a part that is not live, ``UNKNOWN_ROW`` for a row that does not exist or is already
    deleted.
    """
    known = {row["part_id"]: row for row in parts.to_pylist()}
    out = RowRemoval()
    for part_id, rows in delete_rows.items():
        if part_id not in known:
            raise _unknown(f"There is no live part {part_id!r} in the version that was read.", "UNKNOWN_PART", part_id)
        row, mine = known[part_id], read_bitmap(rows, part_id)
        if not mine:
            continue
        before = read_bitmap(row["deletion"], part_id) if row["deletion"] else BitMap()
        if mine.max() >= row["rows"] or not mine.isdisjoint(before):
            raise _unknown(f"Part {part_id} has no such row to delete.", "UNKNOWN_ROW", part_id)
        out.parts[part_id] = Touched(row["segment_id"], row["rows"], row["bytes"], mine, before)
    return out


def chosen_vectors(store: Store, layers: Sequence[Any], found: pa.Table) -> pa.Array:
    """Return one vector for each chosen change (``layer, row, part_id, rows, tables``).

    Raises ``CorruptData`` (``BAD_DELETIONS``) naming a part that has deleted rows and no vector: they would be shown.
    """
    vectors = _stored_vectors(store, layers, found)
    lost = found.filter(pc.and_(vectors.is_null(), pc.greater(found["rows"], 0)))
    if len(lost):
        name = lost["part_id"][0].as_py()
        raise CorruptData(
            f"The deletion vector of part {name} is missing.",
            code="BAD_DELETIONS",
            name=name,
            remedy="Restore the log from a backup.",
        )
    return vectors


def _stored_vectors(store: Store, layers: Sequence[Any], found: pa.Table) -> pa.Array:
    """Return the vectors, each from its rollup or commit, or from the file named there; NULL where there is none."""
    layer_of, row_of = found["layer"].to_numpy(), found["row"].to_numpy()
    pieces, places = [], []
    for at in np.unique(layer_of).tolist():
        here = np.flatnonzero(layer_of == at)
        table = layers[at].read(store, layers[at].changes, lambda names: [n for n in names if n == "deletion"])
        column = (
            table["deletion"].combine_chunks() if table.num_columns else pa.nulls(int(row_of.max()) + 1, pa.binary())
        )
        pieces.append(column.take(pa.array(row_of[here])))
        places.append(here)
    inline = (
        pa.chunked_array(pieces, pa.binary()).combine_chunks().take(pa.array(np.argsort(np.concatenate(places))))
        if pieces
        else None
    )
    if inline is None or not found["tables"].is_valid().to_numpy().any():
        return inline if inline is not None else pa.array([], pa.binary())
    files = found["tables"].combine_chunks()
    for text in pc.unique(files).drop_null().to_pylist():
        stored = columns_from_json(json.loads(text)["deletions"]).read(store, lambda _: ["part_id", "vector"])
        mine = pc.fill_null(pc.equal(files, text), False)
        at = pc.index_in(found["part_id"].combine_chunks().filter(mine), value_set=stored["part_id"].combine_chunks())
        inline = pc.replace_with_mask(inline, mine, stored["vector"].combine_chunks().take(at))
    return inline


def _unknown(message: str, code: str, part_id: str) -> InvalidInput:
    return InvalidInput(message, code=code, name=part_id, remedy="Plan again over the version that is read.")
