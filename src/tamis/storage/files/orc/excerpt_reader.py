"""Reads stripes through excerpts of the file: one fetch and one call of the library for any number of stripes."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
from pyarrow import orc

from tamis.storage.files.corrupt_parts import DAMAGED_CONTENT, corrupt_part
from tamis.storage.files.file_source import decoding_errors
from tamis.storage.files.orc.stripe_excerpt import ColumnsExcerpt
from tamis.storage.files.orc.stripe_layout import StripeLayout
from tamis.storage.files.sealed_reader import CACHE_BYTES, Sealed
from tamis.storage.object_store.lru_cache import LruCache

_layouts = LruCache[StripeLayout](CACHE_BYTES)


class ExcerptReader:
    """The stripes of a part whose seal has their layout (see ``StripeReader``)."""

    def __init__(self, source: Sealed) -> None:
        self._source, self._layout = source, _layout_of(source)
        self.names, self.rows = self._layout.names, self._layout.rows
        self.blocks = len(source.seal.blocks)
        self._excerpts: dict[tuple[int, ...], ColumnsExcerpt] = {}

    def read(self, places: Sequence[int], stripes: Sequence[int]) -> list[pa.RecordBatch]:
        key = tuple(places)
        excerpt = self._excerpts.get(key)
        if excerpt is None:
            excerpt = self._excerpts[key] = ColumnsExcerpt(self._layout, places)
        streams = excerpt.streams(stripes)
        data = self._source.views(excerpt.ranges(streams))
        with decoding_errors(self._source.ref, f"stripes {stripes}"):
            table = orc.ORCFile(pa.BufferReader(excerpt.file(stripes, streams, data))).read()
            batches: list[pa.RecordBatch] = table.to_batches()
        return batches


def _layout_of(source: Sealed) -> StripeLayout:
    seal = source.seal
    key = (*source.key, len(seal.crcs), seal.crcs[-1:].tobytes())
    found = _layouts.get(key)
    if found is None:
        try:
            found = StripeLayout.unpack(seal.layout, seal.blocks, seal.size)
        except DAMAGED_CONTENT as error:
            raise corrupt_part(source.ref, f"has an unreadable layout in its seal ({error})") from error
        _layouts.put(key, found, found.nbytes)
    return found
