"""Which path each query met: reader × owned × pruning level, and with which shape and format. Scans say it in their reports, and a hook what they do not say."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection
from typing import Any

import pyarrow as pa

import tamis
from tamis.core.expr import Column, short_circuit
from tamis.core.expr.dictionary_values import evaluated_by_dictionary
from tamis.core.pruning.interpreter import Interpreter
from tamis.core.pruning.value_spec import Spec
from tamis.engine.part_reader.lazy_choice import LazyChoice
from tamis.engine.part_writer.collecting_thread import CollectingThread
from tamis.engine.scan import scan_execution
from tamis.engine.scan.parallel_reader import ReadAhead
from tamis.engine.scan.report.scan_report import Report
from tamis.spark.executors.write_task import WideRow
from tamis.spark.scan import scan_answers, spark_batch, spark_scan
from tamis.spark.scan.prepared_scan import cached_preparation
from tamis.spark.scan.scan_answers import checked_files
from tamis.spark.scan.spark_scan import Scan
from tamis.spark.write import narrow_rows, row_change_job, spark_write
from tamis.storage.files.orc.excerpt_reader import ExcerptReader
from tamis.storage.files.parquet import page_excerpt, parquet_part
from tamis.storage.files.parquet.dictionary_texts import dictionary_values, plain_values, taken_columns
from tamis.storage.files.parquet.foreign_part import ForeignParquetPart
from tests.oracle import streams as streams_of
from tests.oracle.libraries import LIBRARY_FEATURES

READERS = ("lazy", "eager", "mixed", "native", "metadata")
LEVELS = ("segment", "part", "block", "index", "keys", "limit", "topk", "answered", "all match", "audited", "nothing")
OWNED = ("owned", "tested")
"""Whether the scan owns its filter, or Spark tests it again; ``free`` where there is none, ``embedded`` without Spark."""
ADOPTED = ("folder", "hive", "delta", "iceberg")
"""The sources of adopted tables."""
READS_SOURCES = ("lazy", "eager", "metadata")
"""Readers of files of sources: Spark's own reads none."""
STREAM = "stream"
"""Instead, where a micro-batch was read."""
KINDS = (*OWNED, "free", STREAM, "embedded")
PLACE = "statistics of a place"
"""Decisions by the statistics of one position of an array or one key of a map."""
STRIPES = "ORC stripes of a block"
"""Reads of ORC parts whose blocks have several stripes, embedded or by Spark's driver."""
WINDOWS = "windows of a part"
"""Parts that an embedded scan cut into several windows."""
BEGUN_EAGERLY = "parts begun eagerly"
"""Parts whose first chunk is read whole, since all chunks of earlier parts of the scan were scattered, embedded or by Spark's driver."""
AHEAD = "read ahead by bytes"
"""Batches that an embedded scan read before they were wanted, beyond two of each window. It depends on the threads' pace, so a run without any has no gap."""
DICTIONARIES = "texts by dictionaries"
"""Columns of Parquet that were decoded as the dictionaries of their chunks, embedded or by Spark's driver."""
BY_DICTIONARY = "filters by dictionaries"
"""Legs of filters that were evaluated once per value of a dictionary, embedded or by Spark's driver."""
FOREIGN_PAGES = "pages of adopted files"
"""Reads of chosen rows of adopted files by pages that their offset indexes locate, embedded or by Spark's driver."""
COLLECTED = "blocks collected in a thread"
"""Blocks of embedded writes whose statistics a thread collected while they were encoded."""
REMEMBERED = "scans planned before"
"""Scans of Spark whose plan was remembered from an equal scan."""
GIVEN = "files given with the scan"
"""Scans of Spark, and plans made with join keys, whose files Java got with them and checks itself."""
MERGED = "merged subqueries"
"""Queries for whose subqueries Spark built one scan of a table. Spark 4.2 and older build none."""
NARROW = "writes without a limit of bytes"
"""Jobs that handed rows to workers without Spark's limit on the bytes of a batch."""
WIDE = "writes of wide rows"
"""Such jobs that met a wide row, and ran again. Only the small scale has wide rows."""
HOOKED = (
    PLACE,
    STRIPES,
    BEGUN_EAGERLY,
    WINDOWS,
    DICTIONARIES,
    BY_DICTIONARY,
    FOREIGN_PAGES,
    COLLECTED,
    REMEMBERED,
    GIVEN,
)
"""What a hook counts and every run must meet."""
NOTE, TASKS = "oracle_kind", "oracle_tasks"

_original: Callable[..., Any] = Scan.register
_placed: Counter[str] = Counter()


def times_met(path: str) -> int:
    """How often a path of ``HOOKED`` was taken in this process."""
    return _placed[path]


def _watch_writes() -> None:
    """Count jobs without Spark's limit on the bytes of a batch, and those that met a wide row."""
    of_narrow = narrow_rows.write_without_byte_limit

    def counted(df: Any, url: str, head: Any, options: Any, write: Callable[[Any, bool], Any]) -> Any:
        def written(rows: Any, narrow: bool) -> Any:
            _placed[NARROW] += narrow
            try:
                return write(rows, narrow)
            except WideRow:
                _placed[WIDE] += 1
                raise

        return of_narrow(df, url, head, options, written)

    for module in (spark_write, row_change_job):
        setattr(module, "write_without_byte_limit", counted)  # noqa: B010


def _watch_lazy_choices() -> None:
    """Count parts that begin eagerly because of what earlier ones showed."""
    prefers_lazy = LazyChoice.prefers_lazy

    def chosen(choice: LazyChoice, chunk: Any) -> bool:
        found = prefers_lazy(choice, chunk)
        _placed[BEGUN_EAGERLY] += (
            not found
            and choice._observed_share is None
            and choice.needs_decoded_share
            and choice._scattering.is_everywhere
        )
        return found

    setattr(LazyChoice, "prefers_lazy", chosen)  # noqa: B010


def watch() -> None:
    """Has Spark scans write into their report whether they own their filter."""

    def register(scan: Scan, key: str) -> None:
        setattr(scan.plan.report, NOTE, kind_of(scan))
        setattr(scan.plan.report, TASKS, len(scan.cut))
        _original(scan, key)

    setattr(Scan, "register", register)  # noqa: B010  # mypy takes an assignment for an error
    narrowed = Scan._plan_with_keys

    def narrow(scan: Scan, now: str, keys: Any) -> Any:
        made = narrowed(scan, now, keys)
        if made is not None:
            setattr(made.plan.report, NOTE, kind_of(scan))
        return made

    setattr(Scan, "_plan_with_keys", narrow)  # noqa: B010
    of_place = Interpreter.place

    def place(run: Interpreter, column: Column, ids: tuple[int, ...], name: str, rest: Spec) -> Spec:
        found = of_place(run, column, ids, name, rest)
        _placed[PLACE] += found is not rest
        return found

    setattr(Interpreter, "place", place)  # noqa: B010
    _watch_lazy_choices()
    _watch_writes()
    of_stripes = ExcerptReader.read

    def read(reader: ExcerptReader, places: Any, stripes: Any) -> Any:
        _placed[STRIPES] += len(reader.rows) > reader.blocks
        return of_stripes(reader, places, stripes)

    setattr(ExcerptReader, "read", read)  # noqa: B010
    setattr(page_excerpt, "taken_columns", plain_columns)  # noqa: B010
    setattr(parquet_part, "plain_values", plain)  # noqa: B010
    setattr(parquet_part, "dictionary_values", encoded)  # noqa: B010
    setattr(short_circuit, "evaluated_by_dictionary", by_dictionary)  # noqa: B010
    of_windows = scan_execution._windows

    def windows(*about: Any) -> Any:
        found = of_windows(*about)
        _placed[WINDOWS] += len(found) > 1
        return found

    setattr(scan_execution, "_windows", windows)  # noqa: B010
    of_plans = cached_preparation

    def remembered(scan: Scan, prepare: Callable[[], Any]) -> Any:
        made: list[Any] = []

        def first() -> Any:
            made.append(prepare())
            return made[0]

        found = of_plans(scan, first)
        _placed[REMEMBERED] += not made
        return found

    setattr(spark_scan, "cached_preparation", remembered)  # noqa: B010
    for module in (scan_answers, spark_batch):
        setattr(module, "checked_files", given)  # noqa: B010
    of_block = CollectingThread.add

    def add(collecting: CollectingThread, block: pa.RecordBatch) -> None:
        of_block(collecting, block)
        _placed[COLLECTED] += collecting._running is not None

    setattr(CollectingThread, "add", add)  # noqa: B010
    of_pages = ForeignParquetPart._from_pages

    def from_pages(part: ForeignParquetPart, plan: Any, fetched: Any) -> Any:
        found = of_pages(part, plan, fetched)
        _placed[FOREIGN_PAGES] += found is not None
        return found

    setattr(ForeignParquetPart, "_from_pages", from_pages)  # noqa: B010
    of_room = ReadAhead.has_room

    def has_room(ahead: ReadAhead) -> bool:
        found = of_room(ahead)
        _placed[AHEAD] += found
        return found

    setattr(ReadAhead, "has_room", has_room)  # noqa: B010


def plain(column: Any) -> Any:
    """Counts what it does with dictionaries."""
    _placed[DICTIONARIES] += pa.types.is_dictionary(column.type)
    return plain_values(column)


def plain_columns(columns: Any, taken: Any) -> Any:
    """Counts those that are dictionaries."""
    _placed[DICTIONARIES] += sum(pa.types.is_dictionary(column.type) for column in columns)
    return taken_columns(columns, taken)


def encoded(column: Any) -> Any:
    _placed[DICTIONARIES] += 1
    return dictionary_values(column)


def by_dictionary(*about: Any) -> Any:
    found = evaluated_by_dictionary(*about)
    _placed[BY_DICTIONARY] += found is not None
    return found


def given(*about: Any) -> Any:
    found = checked_files(*about)
    _placed[GIVEN] += found is not None
    return found


def kind_of(scan: Scan) -> str:
    if not scan.filters.conjuncts:
        return "free"
    return "owned" if scan.pushed.owned else "tested"


def levels(report: Report) -> list[str]:
    """At which levels something was left out."""
    parts, blocks = report.parts, report.blocks
    met = {
        "segment": parts.skipped_segment,
        "part": parts.skipped_stats,
        "block": blocks.skipped_stats + blocks.skipped_filter,
        "index": parts.skipped_index + blocks.skipped_index,
        "keys": parts.skipped_join,
        "limit": parts.skipped_limit,
        "topk": parts.skipped_topk,
        "answered": parts.answered,
        "all match": parts.all_match,
        "audited": parts.audited,
    }
    return [name for name, count in met.items() if count] or ["nothing"]


class Coverage:
    """Counts; ``table()`` is what is printed."""

    def __init__(self) -> None:
        self.cells: Counter[tuple[str, str, str]] = Counter()
        self.shapes: Counter[tuple[str, str]] = Counter()
        self.formats: Counter[tuple[str, str]] = Counter()
        self.features: Counter[str] = Counter()
        """Questions about tables with something unusual, and outcomes of damage."""
        self.adopted: Counter[str] = Counter()
        """Scans of adopted tables through Spark, by reader."""
        self.queries = 0
        self.wanted = [*HOOKED, *LIBRARY_FEATURES]
        """Features that every run must meet."""
        self._seen: list[Report] = []

    def take(
        self, shape: str, formats: set[str], features: Collection[str] = (), adopted: Collection[str] = ()
    ) -> None:
        """Takes the reports that have come since the last call; ``adopted`` are the names of adopted tables."""
        self.queries += 1
        self.features.update(features)
        for feature in (*HOOKED, AHEAD, NARROW, WIDE):
            self.features[feature] += _placed.pop(feature, 0)
        fresh = []
        for report in tamis.reports(12):
            if any(report is seen for seen in self._seen):
                break
            fresh.append(report)
        self._seen = (fresh + self._seen)[:12]
        for report in fresh:
            kind = STREAM if report.stream is not None else getattr(report, NOTE, "embedded")
            reader = report.reader if report.parts.kept else "metadata"
            self.features["several tasks"] += getattr(report, TASKS, 0) > 1
            for level in levels(report):
                self.cells[reader, kind, level] += 1
            self.shapes[shape, kind] += 1
            if kind != "embedded" and report.table.rstrip("/").replace("/", ".").rpartition(".")[2] in adopted:
                self.adopted[reader] += 1
            for data_format in formats:
                self.formats[data_format, reader] += 1

    def met(self, reader: str, kind: str) -> int:
        return sum(count for (r, k, _), count in self.cells.items() if (r, k) == (reader, kind))

    def gaps(self) -> list[str]:
        """Pairs of reader and ownership that no query met, sources that no table came from, readers that read none, ways of reading a stream."""
        pairs = [f"{reader} × {kind}" for reader in READERS for kind in OWNED if not self.met(reader, kind)]
        sources = [f"adopted {source}" for source in ADOPTED if not self.features[f"adopted {source}"]]
        unread = [f"adopted × {reader}" for reader in READS_SOURCES if not self.adopted[reader]]
        streams = [way for way in streams_of.FEATURES if not self.features[way]]
        streams += [f"{reader} × {STREAM}" for reader in ("lazy", "eager") if not self.met(reader, STREAM)]
        places = [feature for feature in self.wanted if not self.features[feature]]
        return [*pairs, *sources, *unread, *streams, *places]

    def as_dict(self) -> dict[str, Any]:
        return {
            "queries": self.queries,
            "reader_owned_level": {" × ".join(cell): count for cell, count in sorted(self.cells.items())},
            "shape_owned": {" × ".join(cell): count for cell, count in sorted(self.shapes.items())},
            "format_reader": {" × ".join(cell): count for cell, count in sorted(self.formats.items())},
            "adopted_reader": dict(sorted(self.adopted.items())),
            "features": dict(sorted(self.features.items())),
            "gaps": self.gaps(),
        }

    def table(self) -> str:
        rows = [(reader, kind) for reader in READERS for kind in KINDS if self.met(reader, kind) or kind in OWNED]
        first = [f"{'reader × owned':20}" + "".join(f"{level:>10}" for level in LEVELS)]
        body = [
            f"{f'{r} × {k}':20}" + "".join(f"{self.cells[r, k, level] or '·':>10}" for level in LEVELS) for r, k in rows
        ]
        shapes = sorted({shape for shape, _ in self.shapes})
        second = ["", f"{'shape':20}" + "".join(f"{kind:>10}" for kind in KINDS)]
        more = [f"{shape:20}" + "".join(f"{self.shapes[shape, kind] or '·':>10}" for kind in KINDS) for shape in shapes]
        formats = sorted({name for name, _ in self.formats})
        third = ["", f"{'format':20}" + "".join(f"{reader:>10}" for reader in READERS)]
        last = [
            f"{name:20}" + "".join(f"{self.formats[name, reader] or '·':>10}" for reader in READERS) for name in formats
        ]
        last.append(f"{'adopted, by Spark':20}" + "".join(f"{self.adopted[r] or '·':>10}" for r in READERS))
        unusual = ["", *(f"{name:30}{count:>10}" for name, count in sorted(self.features.items()))]
        gaps = ["", "gaps: " + (", ".join(self.gaps()) or "none")]
        return "\n".join([*first, *body, *second, *more, *third, *last, *unusual, *gaps])
