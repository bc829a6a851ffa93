"""Index builds: the indexed values of base parts with their positions, sorted and written as parts.

Invariant: an index part has an entry for every physical row of the base parts it covers, including deleted
rows and NULLs, so that it is valid for every version in which these parts are live. The same code runs in
this process and in Spark's workers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from tamis.core.expr import Call, Column
from tamis.core.expr.evaluate import read_column
from tamis.core.types import Field, Struct
from tamis.core.types.arrow import to_arrow_schema
from tamis.engine.part_reader import ReadCounters, ReadSpec, read_part
from tamis.engine.part_writer import WriteSpec, write_parts
from tamis.engine.part_writer.packed_rows import sorted_rows
from tamis.engine.secondary_index.index_definition import schema_of
from tamis.engine.secondary_index.index_segments import FOLDER
from tamis.engine.secondary_index.indexed_paths import UNSURE, path_expression, path_values
from tamis.errors import InvalidInput, StoreUnavailable
from tamis.sizes import SIZES
from tamis.storage.commit_log import Head, IndexDefinition
from tamis.storage.files import PartRef
from tamis.storage.object_store import Store
from tamis.world import new_id, world

FAIL = "TAMIS_INDEX_BUILD"
"""Environment variable: ``fail`` fails every build, ``fail:<name>`` that of one index (``docs/indexes.md``).
"""
PART_BYTES = SIZES.index_part_bytes
BLOCK_ROWS = SIZES.index_block_rows
"""The block size; a lookup reads a footer and a block or two, whose sum is smallest here (docs/design/0013).
"""
PAGE_ROWS = SIZES.index_page_rows
"""Rows per page, small because an index is searched and never read whole."""
SORT_MEMORY = 256 * 2**20


Done = Callable[[PartRef], None]


class Work(Protocol):
    """A unit of work that writes index parts; picklable."""

    @property
    def rows(self) -> int:
        """An upper bound of the number of entries."""
        ...

    @property
    def url(self) -> str:
        """The table's location."""
        ...

    def manifests(self, done: Done | None = None) -> list[pa.Table]:
        """Run in this process in bounded memory; return manifest rows.

        ``done`` is called per base part read.
        """
        ...

    def cut(self, count: int) -> Sequence[Work]:
        """Split into at most ``count`` pieces, each of which produces its own sorted run."""
        ...


Run = Callable[[Work], list[pa.Table]]
"""Runs work: locally, or as tasks of a job."""


@dataclass(frozen=True, slots=True)
class BuildSpec:
    """What to build; picklable."""

    read: ReadSpec
    write: WriteSpec
    columns: tuple[Column | Call, ...]
    """The indexed columns and document paths, in the order of the index's schema."""


def build_failed(message: str, name: str, remedy: str) -> StoreUnavailable:
    """Build the error for a failed index build: the rows are intact, and coverage is unchanged."""
    return StoreUnavailable(message, code="INDEX_BUILD_FAILED", name=name, remedy=remedy)


def build_spec(store: Store, head: Head, index: IndexDefinition) -> BuildSpec:
    """Return the spec of an index build.

    Raises ``InvalidInput`` if the current schema lacks an indexed column.
    """
    base = head.schema
    schema = None if base is None else schema_of(index, base)
    if base is None or schema is None:
        raise InvalidInput(
            f"The index {index.name!r} cannot be built: a column of it is gone.",
            code="BAD_INDEX",
            name=index.name,
            remedy="Drop the index.",
        )
    read = ReadSpec(
        url=store.url,
        storage_options=dict(store.options),
        schema=replace(
            base,
            fields=_pruned(base.fields, [path[:-1] if path[-1] in index.by_path else path for path in index.columns]),
        ),
        part_schemas={s.schema_id: s for s in head.schemas},
        sources=head.sources,
    )
    write = WriteSpec(
        url=store.url,
        storage_options=dict(store.options),
        schema=schema,
        format="parquet",
        part_bytes=PART_BYTES,
        block_rows=BLOCK_ROWS,
        cluster_by=tuple((path[-1],) for path in index.columns),
        run_id=new_id(),
        folder=FOLDER,
        by_page=len(index.columns),
        page_rows=PAGE_ROWS,
    )
    columns = tuple(
        path_expression(index, path, base)
        if path[-1] in index.by_path
        else Column(base.by_id[path[-1]].type, path, base.by_id[path[-1]].name)
        for path in index.columns
    )
    return BuildSpec(read, write, columns)


def _pruned(fields: Iterable[Field], paths: Sequence[tuple[int, ...]]) -> tuple[Field, ...]:
    """Reduce ``fields`` to the columns and struct fields on these paths."""
    out = []
    for field in fields:
        below = [path[1:] for path in paths if path[0] == field.id]
        if below and isinstance(field.type, Struct) and () not in below:
            out.append(replace(field, type=Struct(_pruned(field.type.fields, below))))
        elif below:
            out.append(field)
    return tuple(out)


@dataclass(frozen=True, slots=True)
class Build:
    """Builds the index parts of base ``parts``, given with their ordinals."""

    parts: Sequence[tuple[int, PartRef]]
    spec: BuildSpec

    @property
    def rows(self) -> int:
        return sum(ref.rows for _, ref in self.parts)

    @property
    def url(self) -> str:
        return self.spec.write.url

    def manifests(self, done: Done | None = None) -> list[pa.Table]:
        return write_sorted_entries(entries_of(self.parts, self.spec, done), self.spec.write)

    def cut(self, count: int) -> Sequence[Build]:
        step = max(min(count, len(self.parts)), 1)
        return [replace(self, parts=self.parts[at::step]) for at in range(step)]


def write_sorted_entries(entries: Iterator[pa.RecordBatch], spec: WriteSpec) -> list[pa.Table]:
    """Sort entries and write them as index parts, in bounded memory; return a manifest row per part."""
    return list(write_parts(sorted_rows(entries, spec.schema, spec.cluster_by, SORT_MEMORY), spec))


def run_here(work: Work, done: Done | None = None) -> list[pa.Table]:
    """Run the work in this process."""
    return work.manifests(done)


def entries_of(
    parts: Iterable[tuple[int, PartRef]], spec: BuildSpec, done: Done | None = None
) -> Iterator[pa.RecordBatch]:
    """Yield an entry per physical row of ``parts`` (with ordinals): indexed values, ordinal, row."""
    target = to_arrow_schema(spec.write.schema)
    tops = [f.id for f in spec.read.schema]
    for ordinal, ref in parts:
        start = 0
        for batch in read_part(with_all_rows(ref), spec.read, ReadCounters()):
            found = dict(zip(tops, batch.columns, strict=True))
            arrays, doubt = [], np.zeros(len(batch), dtype=np.bool_)
            for column, f in zip(spec.columns, target, strict=False):
                if isinstance(column, Call):
                    array, unknown = path_values(column, found, len(batch))
                    doubt |= unknown
                else:
                    array = read_column(found, column)
                arrays.append(_array(array, f.type))
            flag = [pa.array(doubt)] if UNSURE in spec.write.schema.by_id else []
            rows = pa.array(np.arange(start, start + len(batch), dtype=np.int32))
            ordinals = pa.array(np.full(len(batch), ordinal, dtype=np.int32))
            yield pa.RecordBatch.from_arrays([*arrays, *flag, ordinals, rows], schema=target)
            start += len(batch)
        if start != ref.rows:
            raise build_failed(
                f"Part {ref.part_id} gave {start} rows instead of {ref.rows}.", ref.part_id, "Verify the table."
            )
        if done is not None:
            done(ref)


def with_all_rows(ref: PartRef) -> PartRef:
    """Return the part with all its physical rows: without deletions, candidates and claims about them."""
    clues: dict[str, Any] = {"deletion": None, "candidates": None, "all_match": False}
    return replace(ref, **{name: value for name, value in clues.items() if name in PartRef.__dataclass_fields__})


def _array(values: Any, data_type: pa.DataType) -> pa.Array:
    array = values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
    return array if array.type == data_type else array.cast(data_type)


def raise_planned_failure(index: IndexDefinition, option: str = "") -> None:
    """Raise ``StoreUnavailable`` (``INDEX_BUILD_FAILED``) if a test requests it.

    By ``TAMIS_INDEX_BUILD``, or by ``tamis.index.build = fail``.
    """
    setting = world().environment().get(FAIL, "")
    if "fail" in (setting, option) or setting.lower() == f"fail:{index.name}".lower():
        raise build_failed(
            f"The index {index.name!r} was told to fail.", index.name, f"Unset {FAIL} and tamis.index.build."
        )
