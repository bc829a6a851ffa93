"""Reads Parquet files of other writers, which lie in a source, as parts.

Invariant: a file that is not in the state in which it was adopted raises ``CorruptData`` naming it. Notes of Tamis in
its footer mean nothing, because tools that rewrite a file copy them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

import numpy as np
import pyarrow as pa

from tamis.core.types import Schema
from tamis.errors import InvalidInput
from tamis.storage.commit_log import Source
from tamis.storage.files.column_conversion import convert_array
from tamis.storage.files.constant_columns import constant_columns, constant_statistics
from tamis.storage.files.file_source import PartSource
from tamis.storage.files.parquet.excerpt_file import Octets
from tamis.storage.files.parquet.footer import Footer, footer_of
from tamis.storage.files.parquet.foreign_columns import ForeignLayout, foreign_names, int96_columns
from tamis.storage.files.parquet.foreign_pages import ForeignPages
from tamis.storage.files.parquet.foreign_statistics import group_statistics
from tamis.storage.files.parquet.legacy_calendar import Rebasing, file_calendar
from tamis.storage.files.parquet.page_excerpt import Excerpt
from tamis.storage.files.parquet.parquet_part import Ordinals, ParquetPart, Shape
from tamis.storage.files.protocol import PartRef, Piece
from tamis.storage.object_store import Store


def open_foreign_parquet(store: Store, ref: PartRef, schema: Schema, source: Source) -> ForeignParquetPart:
    """Open a part that lies in ``source``; ``store`` is that of the table. Raises ``CorruptData``."""
    place = source_store(store, source)
    part = PartSource(place, ref)
    part.check_unchanged()
    return ForeignParquetPart(part, schema, footer_of(part), source)


def check_still_there(store: Store, ref: PartRef, source: Source) -> None:
    """Raise ``CorruptData`` (``SOURCE_CHANGED``, ``PART_MISSING``) if the file is no longer the one that was adopted.

    ``store`` is that of the table. It is always asked: no earlier answer is used.
    """
    PartSource(source_store(store, source), ref).check_listed()


def source_store(store: Store, source: Source) -> Store:
    """Return the store of a source, reached with the options of the table's store.

    Raises ``InvalidInput`` (``LOCAL_SOURCE``) if a table on an object store names files of a local disk: on another
    machine they are other files.
    """
    place = store.open_source_store(source.root)
    if store.remote and place.location.scheme == "file":
        raise InvalidInput(
            f"The table {store.url} is on an object store, and its source {source.root} on a local disk.",
            code="LOCAL_SOURCE",
            name=source.root,
            remedy='Copy the rows instead (mode="copy"), or put both on stores that every reader reaches.',
        )
    return place


class ForeignParquetPart(ParquetPart):
    """One open Parquet file of another writer (see ``PartFile``). Not thread-safe."""

    def __init__(self, part: PartSource, schema: Schema, footer: Footer, source: Source) -> None:
        self._origin = source
        self._constants: Mapping[int, pa.Scalar] = constant_columns(part.ref.constants, schema)
        self._calendar = file_calendar(source.kind, footer.metadata)
        super().__init__(part, schema, footer)
        self._rebasing: Rebasing | None = None
        if self._calendar:
            assert isinstance(self._layout, ForeignLayout)
            self._rebasing = Rebasing(self._calendar, int96_columns(footer, self._layout), self._names)

    def read(self, columns: Sequence[int], blocks: Sequence[int], rows: Ordinals | None = None) -> Iterator[Piece]:
        given = {i: self._constants[i] for i in columns if i in self._constants}
        if rows is not None:
            assert isinstance(self._pages, ForeignPages)
            self._pages.load_page_index(self._source, self._saved_bytes(columns, blocks, rows))
        if not given:
            yield from super().read(columns, blocks, rows)
            return
        for piece in super().read([i for i in columns if i not in given], blocks, rows):
            length = len(piece)
            arrays = [*piece.batch.columns, *(pa.repeat(value, length) for value in given.values())]
            names = [*piece.batch.schema.names, *(str(i) for i in given)]
            yield Piece(piece.block, piece.rows, pa.RecordBatch.from_arrays(arrays, names=names))

    def _saved_bytes(self, columns: Sequence[int], blocks: Sequence[int], rows: Ordinals) -> int:
        """Return about how many bytes are not read if only pages with these rows are."""
        hits = np.diff(np.searchsorted(rows, self._starts))
        hit = [b for b in blocks if hits[b]]
        share = int(hits[hit].sum()) / max(int(self._rows[hit].sum()), 1)
        return int(self.cost(columns, hit) * (1 - share))

    def cost(self, columns: Sequence[int], blocks: Sequence[int]) -> int:
        return super().cost([i for i in columns if i not in self._constants], blocks)

    def decoded_rows(self, columns: Sequence[int], rows: Ordinals) -> int:
        assert isinstance(self._pages, ForeignPages)
        if not self._pages.is_index_known:  # it is read when it saves enough, which only lazy reads can show
            return len(rows)
        stored = [i for i in columns if i not in self._constants]
        return super().decoded_rows(stored, rows) if self._pages.has_page_index or not stored else self._hit_rows(rows)

    def statistics(self, ids: Collection[int]) -> pa.Table:
        assert isinstance(self._layout, ForeignLayout)
        stored = frozenset(ids) - self._constants.keys()
        found = group_statistics(self._footer, self._layout, self._schema, self._calendar, stored)
        given = constant_statistics(self._constants, self._schema, self._rows.tolist(), frozenset(ids))
        for name, column in given.items():
            found = found.append_column(name, column)
        return found

    def _chunks(
        self, leaves: Sequence[int], blocks: Sequence[int], row_limits: Ordinals, *, chosen: bool
    ) -> Iterator[list[int]]:
        assert isinstance(self._layout, ForeignLayout)
        fields, paths = self._layout.fields, self._layout.leaves
        if any(pa.types.is_dictionary(fields[at].type) and len(paths[at]) > 1 for at in leaves):
            yield from ([block] for block in blocks)  # Arrow decodes nested dictionaries of one block alone
            return
        yield from super()._chunks(leaves, blocks, row_limits, chosen=chosen)

    def pages(self) -> pa.Table | None:
        return None

    def _found_by(self) -> tuple[object, ...]:
        return self._origin.kind, self._origin.by_field_id, tuple(sorted(self._origin.column_names.items()))

    def _shape(self) -> Shape:
        found = self._file.schema_arrow
        with self._stream.decoding("its footer"):
            names = foreign_names(self._origin, self._schema, found)
            layout = ForeignLayout(found, self._schema, names)
            return Shape(self._footer, self._schema, layout, names, ForeignPages(self._footer, found))

    def _from_pages(self, plan: Excerpt, fetched: Sequence[Octets]) -> list[pa.Array] | None:
        if not plan.pages_hold_expected_rows(fetched):
            assert isinstance(self._pages, ForeignPages)
            self._pages.ignore_page_index()
            return None
        return plan.decode(fetched)

    def _typed(self, column_id: int, array: pa.Array) -> pa.Array:
        known = self._schema.by_id[column_id]
        if self._rebasing is not None:
            array = self._rebasing.rebase(array, known, f"Column {known.name!r} of {self._ref.path}")
        return convert_array(array, self._layout.prune(known, array.type, self._names), self._names)
