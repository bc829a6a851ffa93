"""Learns the full statistics of one part by reading it once.

Invariant: they describe all physical rows of the file in the state that the part names, whichever of them are deleted.
A file that is in another state before or after it was read gives an error, and no statistics.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial

import pyarrow as pa

from tamis.core.stats import Collector
from tamis.core.stats import kept_statistics as kept
from tamis.core.stats.collection_limits import limits_within
from tamis.core.stats.statistics_budget import part_budget
from tamis.engine.part_reader import ReadCounters, ReadSpec, read_part
from tamis.engine.part_writer.trimmed_statistics import trimmed_statistics
from tamis.engine.scan import Options
from tamis.engine.scan.parallel_reader import reader_threads
from tamis.errors import CorruptData, TamisError
from tamis.storage.commit_log import Snapshot
from tamis.storage.commit_log.external_sources import source_named
from tamis.storage.files import PartRef
from tamis.storage.files.parquet.foreign_part import check_still_there
from tamis.storage.object_store import open_store

Places = tuple[tuple[int, str], ...]


@dataclass(frozen=True, slots=True)
class AnalysisSpec:
    """How parts are read, and what room their statistics have. Picklable."""

    read: ReadSpec
    stats_bytes: int | None = None
    keep: Mapping[int, Places] = field(default_factory=dict)
    """By schema id: columns and paths whose statistics are never dropped."""
    recent: Places = ()


@dataclass(frozen=True, slots=True)
class PartAnalysis:
    """The statistics of a part, as columns of one manifest row; or why there are none. Picklable."""

    part_id: str
    bytes_read: int = 0
    row: pa.Table | None = None
    error: TamisError | None = None


LearnParts = Callable[[AnalysisSpec, Sequence[PartRef]], Iterable[PartAnalysis]]
"""Learns the statistics of several parts; an error of one is its result."""


def analysis_spec(snapshot: Snapshot, options: Options) -> AnalysisSpec:
    """Return the spec for parts of any schema of ``snapshot``."""
    head = snapshot.head
    assert head.schema is not None
    known = {schema.schema_id: schema for schema in head.schemas}
    store = snapshot.store
    read = ReadSpec(store.url, head.schema, known, dict(store.options), sources=head.sources)
    keep = {i: tuple(kept.resolve_names(options.stats_keep, schema)) for i, schema in known.items()}
    return AnalysisSpec(read, options.stats_budget_bytes, keep, tuple(kept.recent_places(store.url)))


def learn_here(spec: AnalysisSpec, refs: Sequence[PartRef]) -> Iterable[PartAnalysis]:
    """Learn the statistics of parts in threads of this process."""
    with ThreadPoolExecutor(min(len(refs), reader_threads(spec.read.url)), thread_name_prefix="tamis-analyze") as pool:
        yield from pool.map(partial(analyze_part, spec), refs)


def analyze_part(spec: AnalysisSpec, ref: PartRef) -> PartAnalysis:
    """Read a part once and return its statistics, or the error that reading it raised."""
    counters = ReadCounters()
    try:
        row = _statistics(spec, ref, counters)
    except TamisError as error:
        return PartAnalysis(ref.part_id, _bytes(counters), error=error)
    return PartAnalysis(ref.part_id, _bytes(counters), row)


def _bytes(counters: ReadCounters) -> int:
    return counters.bytes_leader + counters.bytes_follower


def _statistics(spec: AnalysisSpec, ref: PartRef, counters: ReadCounters) -> pa.Table:
    schema = spec.read.part_schemas[ref.schema_id]
    room = part_budget(spec.stats_bytes, ref.rows)
    keep = spec.keep.get(ref.schema_id, ())
    limits = limits_within(schema, room, {identifier for identifier, _ in (*keep, *spec.recent)})
    collector = Collector(schema, keep=keep, recent=spec.recent, limits=limits)
    whole = replace(ref, segment=0, part=0, all_match=False, deletion=None)
    rows = 0
    for batch in read_part(whole, replace(spec.read, schema=schema), counters):
        collector.update(batch)
        rows += len(batch)
    if ref.source is not None:  # what was read last may be of another state
        source = source_named(spec.read.sources, ref.source, ref.path)
        check_still_there(open_store(spec.read.url, spec.read.storage_options), ref, source)
    if rows != ref.rows:
        raise CorruptData(
            f"The part {ref.path} has {rows} rows, and its manifest says {ref.rows}.",
            code="ROWS_DIFFER",
            name=ref.path,
            remedy="Nothing was learned about it; run tamis verify.",
        )
    return pa.table(trimmed_statistics(collector, room, keep, spec.recent))


def learn_pickled(payload: bytes) -> list[bytes]:
    """Learn the statistics of a pickled ``(spec, refs)`` in a task; return pickled results."""
    spec, refs = pickle.loads(payload)  # noqa: S301  # made by our own driver
    return [pickle.dumps(analyze_part(spec, ref)) for ref in refs]
