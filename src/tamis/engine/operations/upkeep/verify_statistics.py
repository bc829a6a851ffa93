"""Comparison of a part's stored statistics with statistics collected from its rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tamis.core.stats import Collector, TableEvidence
from tamis.core.stats.columns.value_sets import is_listable
from tamis.core.stats.json_paths.packed_paths import PATHS
from tamis.core.stats.json_paths.path_rows import (
    COLUMNS,
    INCOMPLETE,
    LONG,
    REAL,
    ROOT,
    STRANGE,
    STRING,
    Paths,
    path_column,
)
from tamis.core.stats.statistics_columns import UNRELIABLE_VALUES, VALUES, bound_name
from tamis.core.types import Array, DataType, Map, Schema
from tamis.core.types.arrow import to_arrow_type
from tamis.errors import TamisError
from tamis.storage.commit_log import Snapshot

_BOUNDED = {"long": LONG, "real": REAL, "string": STRING}
_VALUE_KINDS = 0xFF
"""The bits of ``path_rows`` that say which kinds of values occur."""


@dataclass(frozen=True, slots=True)
class StoredSet:
    """A value set in a manifest row: the column it is about and where the manifest keeps it."""

    path: tuple[int, ...]
    column: str
    kind: str
    values: pa.Array


class StatisticsCheck:
    """Checks the statistics of one part while its rows are read.

    ``manifest`` is the part's manifest row with all statistics, ``stored_paths`` the rows of its JSON paths.
    """

    def __init__(
        self, schema: Schema, schemas: Mapping[int, Schema], manifest: pa.Table, stored_paths: Mapping[int, pa.Table]
    ) -> None:
        self._schema, self._schemas, self._manifest, self._paths = schema, dict(schemas), manifest, stored_paths
        self._collector = Collector(schema)
        self._sets = list(_stored_sets(schema, manifest))
        self._incomplete: set[str] = set()

    def update(self, batch: pa.RecordBatch) -> None:
        """Process the next rows, as columns of the part's schema."""
        self._collector.update(batch)
        for one in self._sets:
            if one.column in self._incomplete:
                continue
            found = _leaf(batch, self._schema, one.path).drop_null()
            if not pc.all(pc.is_in(found, value_set=one.values), min_count=0).as_py():
                self._incomplete.add(one.column)

    def problems(self) -> Iterator[tuple[str, str]]:
        """Yield a code and a sentence for each stored statistic that contradicts the rows."""
        yield from self._bounds_and_counts()
        for one in self._sets:
            if one.column not in self._incomplete:
                continue
            what = f"The value set of column {self._schema.by_id[one.path[-1]].name!r} lacks a value of the part"
            if one.kind == UNRELIABLE_VALUES:
                yield (
                    "STATISTICS_OBSOLETE",
                    f"{what}. An earlier release wrote it; no reader uses it, and compaction removes it.",
                )
            else:
                yield "STATISTICS_LIE", f"{what}."
        found = self._collector.documents()
        for identifier, stored in self._paths.items():
            wrong = _wrong_paths(identifier, stored, found.get(identifier, {}))
            if wrong:
                column = self._schema.by_id[identifier].name
                yield (
                    "STATISTICS_LIE",
                    f"The statistics of path {wrong[0]} of column {column!r} do not hold for its values.",
                )

    def _bounds_and_counts(self) -> Iterator[tuple[str, str]]:
        fresh = self._collector.finish()
        for fact in ("rows", "schema_id"):
            fresh = fresh.append_column(fact, self._manifest[fact])
        stored, true = TableEvidence(self._manifest, self._schemas), TableEvidence(fresh, self._schemas)
        for path, f in self._schema.walk():
            mine, theirs = stored.column(path), true.column(path)
            if mine is None or theirs is None:
                continue
            lies = [
                pc.any(pc.greater(mine.lo, theirs.lo)).as_py() if _has_order(mine.lo) else False,
                pc.any(pc.less(mine.hi, theirs.hi)).as_py() if _has_order(mine.hi) else False,
                pc.any(pc.not_equal(mine.nulls, theirs.nulls)).as_py(),
                pc.any(pc.not_equal(mine.nans, theirs.nans)).as_py(),
            ]
            if any(lies):
                yield "STATISTICS_LIE", f"The statistics of column {f.name!r} do not hold for its values."
            elif (place := _wrong_place(path, stored, true)) is not None:
                above = self._schema.by_id[path[0]].name
                yield "STATISTICS_LIE", f"The statistics of [{place}] in column {above!r} do not hold for its values."


def _wrong_place(path: tuple[int, ...], stored: TableEvidence, true: TableEvidence) -> str | None:
    """Return the first position or key whose statistics exclude a value of the part, or None."""
    for place in dict.fromkeys((*stored.places(path), *true.places(path))):
        mine, theirs = stored.place(path, place), true.place(path, place)
        if mine is None or theirs is None:
            continue
        lies = [
            pc.any(pc.not_equal(getattr(mine, kind), getattr(theirs, kind))).as_py()
            for kind in ("count", "nulls", "nans")
        ]
        if _has_order(mine.lo):
            lies += [pc.any(pc.greater(mine.lo, theirs.lo)).as_py(), pc.any(pc.less(mine.hi, theirs.hi)).as_py()]
        if any(lies):
            return place
    return None


def paths_of_parts(snapshot: Snapshot) -> dict[tuple[int, int], dict[int, pa.Table]]:
    """Return stored rows of JSON paths by (segment, part) and column id; empty if unreadable."""
    ids = frozenset(i for schema in snapshot.head.schemas for i in schema.by_id)
    try:
        table = snapshot.table(PATHS, (), None, ids)
    except TamisError:
        return {}
    found: dict[tuple[int, int], dict[int, pa.Table]] = {}
    names = frozenset(table.column_names)
    identifiers = sorted({int(n.partition("|")[0]) for n in table.column_names if n.endswith("|path")})
    for identifier in identifiers:
        kinds = [path_column(identifier, kind) for kind in COLUMNS if path_column(identifier, kind) in names]
        of_column = table.select(["segment", "part", *kinds])
        rows = of_column.filter(of_column[path_column(identifier, "path")].is_valid())
        keys = np.stack([np.asarray(rows["segment"]), np.asarray(rows["part"])], axis=1).astype(np.int64)
        for segment, part in np.unique(keys, axis=0).tolist():
            of_part = rows.filter(pa.array((keys == (segment, part)).all(axis=1)))
            found.setdefault((segment, part), {})[identifier] = of_part
    return found


def _stored_sets(schema: Schema, manifest: pa.Table) -> Iterator[StoredSet]:
    for path, f in schema.walk():
        if not is_listable(f.type) or any(isinstance(schema.by_id[i].type, Array | Map) for i in path[:-1]):
            continue
        for kind in (VALUES, UNRELIABLE_VALUES):
            column = bound_name(f.id, f.type, kind)
            at = manifest.schema.get_field_index(column)
            if at < 0 or manifest.schema.field(at).type != pa.list_(to_arrow_type(f.type)):
                continue
            stored = manifest.column(at)[0]
            if stored.is_valid:
                yield StoredSet(path, column, kind, stored.values)


def _leaf(batch: pa.RecordBatch, schema: Schema, path: tuple[int, ...]) -> pa.Array:
    """Return the values of a column or nested struct field; NULL where a parent is NULL."""
    array: Any = batch.column(next(i for i, f in enumerate(schema.fields) if f.id == path[0]))
    kind: DataType = schema.by_id[path[0]].type
    for identifier in path[1:]:
        at = next(i for i, f in enumerate(kind.children) if f.id == identifier)
        array, kind = array.flatten()[at], kind.children[at].type
    return array


def _wrong_paths(identifier: int, stored: pa.Table, fresh: Paths) -> list[str]:
    """Return the stored paths whose statistics exclude values of the part's documents."""
    columns = {
        kind: stored[path_column(identifier, kind)].to_pylist()
        for kind in COLUMNS
        if path_column(identifier, kind) in stored.column_names
    }
    root = fresh.get(ROOT)
    if root is None or root.kinds & STRANGE:  # the part's documents cannot be checked
        return []
    wrong = []
    for at, path in enumerate(columns["path"]):
        true = fresh.get(path)
        kinds = columns["kinds"][at]
        if true is None or kinds is None or kinds & STRANGE:
            continue
        lies = bool(true.kinds & ~kinds & _VALUE_KINDS) and not kinds & INCOMPLETE
        for word, bit in _BOUNDED.items():
            low, high = getattr(true, word) if true.kinds & bit else (None, None)
            lo, hi = columns[f"{word}.lo"][at], columns[f"{word}.hi"][at]
            lies |= low is not None and lo is not None and low < lo
            lies |= high is not None and hi is not None and high > hi
        if lies:
            wrong.append(path)
    return wrong


def _has_order(array: pa.Array) -> bool:
    return not (pa.types.is_nested(array.type) or pa.types.is_null(array.type))
