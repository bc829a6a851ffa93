"""Which keys of a map column have statistics of their own, and where their entries are in a batch.

Keys are chosen by how often the first batches have them, equals by their text, so that parts of like rows choose the
same ones. If most keys occur once, as ids do, none is chosen: no filter would be served by the few that have room.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tamis.core.stats.collector_state import GAVE_UP, GaveUp
from tamis.core.stats.columns.bounds import LIMIT
from tamis.core.types import BINARY_COLLATION, DataType, Map, String
from tamis.sizes import SIZES

Places = np.ndarray[Any, np.dtype[np.int64]]
"""Positions of values among those of all rows of a batch."""

MOST_KEYS = SIZES.map_keys
"""Largest number of keys of a column with statistics of their own in a part."""
_SAMPLE = SIZES.map_sample
"""Entries of a batch that are sampled to detect early that most keys occur once."""
_FEW = 8
"""Rows below which a block does not tell that most keys occur once: it has each of them once."""


def has_text_keys(data_type: DataType) -> bool:
    """Return whether the map's keys are texts that compare by their bytes."""
    key = data_type.key.type if isinstance(data_type, Map) else None
    return isinstance(key, String) and key.collation == BINARY_COLLATION


class MapKeys:
    """The keys chosen so far of one map column of a part."""

    def __init__(self) -> None:
        self._chosen: dict[str, None] | GaveUp = {}
        self.listed = True
        """Whether the part has no other keys than the chosen ones."""

    @property
    def gave_up(self) -> bool:
        """Whether nothing is known of any key."""
        return isinstance(self._chosen, GaveUp)

    def places(self, keys: pa.Array, sizes: np.ndarray[Any, np.dtype[np.int64]]) -> dict[str, Places]:
        """Return where the entries of each chosen key are; ``sizes`` are the numbers of entries of each row."""
        if isinstance(self._chosen, GaveUp) or not len(keys):
            return {}
        sizes = sizes[sizes > 0]
        row = _common_row(keys, sizes)
        try:
            found = self._of_rows_alike(row, len(keys)) if row is not None else self._of_entries(keys, sizes)
        except UnicodeDecodeError:  # Spark allows strings that are not UTF-8
            found = None
        if found is None:
            self._chosen = GAVE_UP
            return {}
        return found

    def _of_rows_alike(self, row: pa.Array, entries: int) -> dict[str, Places] | None:
        """Return the places where every row has the keys of ``row``; None if a key occurs twice in it."""
        texts = row.to_pylist()
        if len(set(texts)) < len(texts):
            return None
        self._choose([(text, 1) for text in texts])
        return {text: np.arange(at, entries, len(texts)) for at, text in enumerate(texts) if text in self._keys()}

    def _of_entries(self, keys: pa.Array, sizes: np.ndarray[Any, np.dtype[np.int64]]) -> dict[str, Places] | None:
        """Return the places of each chosen key; None if the keys are unfit."""
        first = self.listed and not self._keys()
        if keys.null_count or (first and len(sizes) >= _FEW and _mostly_once(keys)):
            return None
        codes = self._codes(keys)
        if self.listed and codes.null_count:
            counts = pc.value_counts(keys.filter(codes.is_null()))
            values, many = counts.field(0).to_pylist(), counts.field(1).to_pylist()
            self._choose(list(zip(values, many, strict=True)))
            codes = self._codes(keys)
        of_key = codes.fill_null(len(self._keys())).to_numpy(zero_copy_only=False).astype(np.int16)
        order = np.argsort(of_key, kind="stable")
        owner = np.repeat(np.arange(len(sizes)), sizes)[order]
        twice = (np.diff(owner) == 0) & (np.diff(of_key[order]) == 0) & (of_key[order][1:] < len(self._keys()))
        if twice.any():
            return None
        ends = np.cumsum(np.bincount(of_key, minlength=len(self._keys()) + 1))
        return {
            text: order[ends[at] - size : ends[at]]
            for at, text in enumerate(self._keys())
            if (size := int(ends[at] - (ends[at - 1] if at else 0)))
        }

    def _keys(self) -> dict[str, None]:
        return {} if isinstance(self._chosen, GaveUp) else self._chosen

    def _codes(self, keys: pa.Array) -> pa.Int32Array:
        return pc.index_in(keys, value_set=pa.array(list(self._keys()), keys.type))

    def _choose(self, counts: Sequence[tuple[str, int]]) -> None:
        """Choose the most frequent of these keys, as far as there is room; others make the list incomplete."""
        chosen = self._keys()
        fresh = sorted((-count, text) for text, count in counts if text not in chosen)
        fit = [text for _, text in fresh if len(text) <= LIMIT][: max(0, MOST_KEYS - len(chosen))]
        if self.listed:
            chosen.update(dict.fromkeys(fit))
        self.listed = self.listed and len(fit) == len(fresh)


def _common_row(keys: pa.Array, sizes: np.ndarray[Any, np.dtype[np.int64]]) -> pa.Array | None:
    """Return the first row's keys if all rows have the same ones in the same order, by their bytes alone; else None."""
    each = int(sizes[0])
    if keys.type != pa.string() or keys.null_count or not each or each > MOST_KEYS or (sizes != each).any():
        return None
    ends = np.frombuffer(keys.buffers()[1], np.int32, len(keys) + 1, keys.offset * 4)
    widths = np.diff(ends).reshape(-1, each)
    if (widths != widths[0]).any() or not int(ends[-1]) > int(ends[0]):
        return None
    data = np.frombuffer(keys.buffers()[2], np.uint8, int(ends[-1] - ends[0]), int(ends[0])).reshape(len(sizes), -1)
    return None if (data != data[0]).any() else keys.slice(0, each)


def _mostly_once(keys: pa.Array) -> bool:
    """Return whether most keys of a sample occur in it once."""
    step = -(-len(keys) // _SAMPLE)
    sample = keys.take(pa.array(np.arange(0, len(keys), step))) if step > 1 else keys
    return len(sample) > MOST_KEYS and 2 * len(pc.unique(sample)) > len(sample)
