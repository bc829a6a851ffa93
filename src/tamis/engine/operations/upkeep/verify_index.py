"""Verification of an index: it must have an entry with the right values for every physical row it covers.

Both sides are reduced to a count and a sum of hashes per part, so that memory is one batch plus two numbers
per part, and the order of entries does not matter.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tamis.engine.part_reader import ReadCounters, ReadSpec, read_part
from tamis.engine.scan import PartRefs
from tamis.engine.secondary_index import Coverage, compute_coverage
from tamis.engine.secondary_index.index_build import BuildSpec, build_spec, entries_of
from tamis.engine.secondary_index.index_damage import damage_sentences, damaged_segments
from tamis.engine.secondary_index.index_definition import schemas_of
from tamis.engine.secondary_index.index_segments import live_entries, refs_of
from tamis.storage.commit_log import IndexDefinition, Snapshot
from tamis.storage.files.file_check import Problem
from tamis.storage.object_store import Store

Words = np.ndarray[Any, np.dtype[np.uint64]]
_NULL = np.uint64(0x9E3779B97F4A7C15)


def index_problems(
    store: Store, snapshot: Snapshot, index: IndexDefinition, listed: Mapping[str, int], *, data: bool
) -> Iterator[Problem]:
    """Yield the problems of ``index``: its objects, and, with ``data``, their entries against the rows.

    Index segments with a damaged object are reported and left out; the others are checked. Raises read errors.
    """
    known = [entry for entry in live_entries(snapshot) if entry.index_id == index.index_id]
    bad = damaged_segments(store, snapshot, known, listed, data=data)
    for problems in bad.values():
        for code, name, problem in problems:
            yield code, name, f"{problem} The index {index.name!r} needs it: call repair_index."
    if data:
        yield from _entries_against_rows(store, snapshot, index, damage_sentences(bad))


def _entries_against_rows(
    store: Store, snapshot: Snapshot, index: IndexDefinition, bad: Mapping[str, str]
) -> Iterator[Problem]:
    """Yield the parts about which the index segments that are not ``bad`` say something wrong."""
    parts = snapshot.parts(None)
    covered = compute_coverage(snapshot, index, parts, damage=bad)
    if covered.problem is not None:
        yield "INDEX_UNREADABLE", index.name, covered.problem
    if not covered.built:
        return
    spec = build_spec(store, snapshot.head, index)
    refs = PartRefs(parts, np.zeros(len(parts), dtype=np.bool_))
    for at in np.unique(covered.holder[covered.holder >= 0]).tolist():
        count = len(covered.built[at].covers(store))
        indexed = _reduced(_index_entries(store, snapshot, covered, at, spec), count)
        mine = np.flatnonzero(covered.holder == at).tolist()
        for place in mine:
            ordinal = int(covered.ordinal[place])
            true = _reduced(entries_of([(ordinal, refs[place])], spec), count)
            if (indexed[0][ordinal], indexed[1][ordinal]) != (true[0][ordinal], true[1][ordinal]):
                said = (
                    f"The index {index.name!r} has {indexed[0][ordinal]} entries "
                    f"for part {refs[place].part_id} of {refs[place].rows} rows"
                )
                yield "INDEX_LIES", refs[place].path, f"{said}, and they are not its rows and values."


def _index_entries(
    store: Store, snapshot: Snapshot, covered: Coverage, at: int, spec: BuildSpec
) -> Iterator[pa.RecordBatch]:
    """Yield the entries of an index segment: values, the part's ordinal, the row."""
    schemas = schemas_of(covered.index, snapshot.head)
    read = ReadSpec(
        url=store.url, storage_options=dict(store.options), schema=spec.write.schema, part_schemas=schemas, lazy="off"
    )
    for ref in refs_of(covered.built[at].manifest(store, frozenset())):
        yield from read_part(ref, read, ReadCounters())


def _reduced(batches: Iterable[pa.RecordBatch], parts: int) -> tuple[np.ndarray[Any, np.dtype[np.int64]], Words]:
    """Return the number of entries and the sum of their hashes, per part ordinal."""
    counts, sums = np.zeros(parts, dtype=np.int64), np.zeros(parts, dtype=np.uint64)
    for batch in batches:
        *values, ordinals, rows = batch.columns
        at = ordinals.to_numpy()
        hashes = _mixed(rows.to_numpy().astype(np.uint64))
        for column in values:
            hashes = _mixed(hashes ^ _words(column))
        counts += np.bincount(at, minlength=parts)
        np.add.at(sums, at, hashes)
    return counts, sums


def _words(column: pa.Array) -> Words:
    """Return a hash word per value, equal for equal values."""
    if pa.types.is_floating(column.type):
        # −0.0 becomes 0.0
        numbers = pc.fill_null(column.cast(pa.float64()), 0.0).to_numpy(zero_copy_only=False) + 0.0
        words = np.where(np.isnan(numbers), np.nan, numbers).view(np.uint64)
    elif pa.types.is_boolean(column.type) or pa.types.is_integer(column.type) or pa.types.is_temporal(column.type):
        plain = (
            column
            if pa.types.is_boolean(column.type)
            else column.view({8: "int8", 16: "int16", 32: "int32"}.get(column.type.bit_width, "int64"))
        )
        words = pc.fill_null(plain.cast(pa.int64()), 0).to_numpy(zero_copy_only=False).view(np.uint64)
    else:
        coded = column.dictionary_encode(null_encoding="encode")
        values = coded.dictionary
        if pa.types.is_string(values.type):  # which need not be UTF-8
            values = values.cast(pa.binary(), safe=False)
        known = np.fromiter((hash(value) for value in values.to_pylist()), np.int64, len(values)).view(np.uint64)
        words = known[coded.indices.to_numpy()]
    return np.where(column.is_null().to_numpy(zero_copy_only=False), _NULL, words)


def _mixed(words: Words) -> Words:
    """Mix the bits of each word (the finaliser of splitmix64)."""
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return words ^ (words >> np.uint64(31))
