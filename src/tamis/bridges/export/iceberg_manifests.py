"""The manifests of a version: each holds the parts that a range of versions added, so a change rewrites few of them.

Invariant: everything in an entry follows from the table's own log: sequence number and snapshot id of a file are those
of the version that added its segment, and row ids are counted from it. So a manifest can be written again at any time,
and nothing has to be remembered but which manifests there are; their names say which versions they hold.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from tamis.bridges.export.export_parts import exported_columns
from tamis.bridges.export.iceberg_avro import avro_rows, manifest_bytes
from tamis.bridges.export.iceberg_bounds import METRICS, metrics_of
from tamis.bridges.export.iceberg_deletes import DeletedRows, delete_file
from tamis.core.types import Schema
from tamis.storage.commit_log import Snapshot
from tamis.storage.commit_log.commit_objects import read_commits
from tamis.storage.object_store import Store
from tamis.storage.object_store.parallel_requests import gather_requests
from tamis.world import new_id

FOLDER = "metadata/tamis"
MOST_ENTRIES, MERGE_FROM = 4_000, 16
"""Most parts in a manifest of several versions, and the number of young manifests from which they are merged."""
ROW_IDS = 2**40
"""Row ids that each version has, for the rows that it adds."""

_NAME = re.compile(rf"{FOLDER}/(\d+)-(\d+)-(\d+)-(data|deletes|gone)-[0-9a-f]{{32}}\.avro")
EXISTING, ADDED, DELETED = 0, 1, 2


def snapshot_id(version: int) -> int:
    """Return the id and the sequence number of the snapshot of a version of the table."""
    return version + 1


class Span(NamedTuple):
    """The parts that a manifest holds: those that the versions ``first`` to ``last`` added.

    Of a version with many parts it holds those of one ``block`` of ``MOST_ENTRIES``, in their order; else it is 0.
    """

    first: int
    last: int
    block: int


@dataclass(frozen=True, slots=True)
class Manifest:
    """A manifest: its row in the list of manifests, and the span of its parts."""

    span: Span
    kind: str
    row: Mapping[str, Any]

    @property
    def entries(self) -> int:
        return int(self.row["added_files_count"]) + int(self.row["existing_files_count"])


def manifest_of(row: Mapping[str, Any], root: str) -> Manifest | None:
    """Return a row of a list of manifests as a manifest; None if its name is not one of ours."""
    match = _NAME.fullmatch(str(row["manifest_path"]).removeprefix(f"{root}/"))
    return Manifest(Span(int(match[1]), int(match[2]), int(match[3])), match[4], row) if match else None


def spans_of(snapshot: Snapshot, after: int = -1) -> list[Span]:
    """Return the spans that hold the live segments of the versions behind ``after``."""
    segments = snapshot.segments
    columns = (segments[n].to_pylist() for n in ("version", "physical_parts"))
    out: list[Span] = []
    room = 0
    for version, parts in zip(*columns, strict=True):
        if version <= after or not parts:
            continue
        if parts > MOST_ENTRIES:
            out += [Span(version, version, block) for block in range(-(-parts // MOST_ENTRIES))]
            room = 0
        elif parts <= room:
            out[-1], room = out[-1]._replace(last=version), room - parts
        else:
            out.append(Span(version, version, 0))
            room = MOST_ENTRIES - parts
    return out


Places = np.ndarray[tuple[int, int], np.dtype[np.int64]]
"""Where parts stand: a line for each, with the version that added it and its ordinal among those of that version."""


def holds_any(span: Span, places: Places) -> bool:
    """Return whether a span holds a part at one of ``places``."""
    versions, ordinals = places.T
    here = (versions >= span.first) & (versions <= span.last)
    if span.first == span.last:
        here &= ordinals // MOST_ENTRIES == span.block
    return bool(here.any())


class Manifests:
    """Writes the manifests of one version."""

    def __init__(
        self,
        store: Store,
        root: str,
        snapshot: Snapshot,
        schema: Schema,
        iceberg_schema: Mapping[str, Any],
        format_version: int,
    ) -> None:
        self._store = store
        self._root = root
        self._snapshot = snapshot
        self._schema = schema
        self._iceberg_schema = iceberg_schema
        self._format = format_version

    def parts(self, span: Span) -> pa.Table:
        """Return the live parts of a span, with the ``version`` that added them."""
        versions = self._snapshot.segments["version"].to_numpy()
        mask = (versions >= span.first) & (versions <= span.last)
        found = with_versions(self._snapshot, self._snapshot.parts(mask, exported_columns(self._snapshot)))
        if span.first < span.last:
            return found
        return found.filter(pa.array(found["part"].to_numpy() // MOST_ENTRIES == span.block))

    def write_data(self, span: Span) -> list[Manifest]:
        """Write the manifest of the data files of a span; none without parts."""
        parts = self.parts(span)
        return [self._written(span, "data", self._data_entries(parts))] if len(parts) else []

    def write_deletes(self, span: Span, old: Iterable[Manifest], unchanged: Collection[str]) -> list[Manifest]:
        """Write the manifest of the deleted rows of a span; none if no row is deleted.

        Files that ``old`` manifests have for parts with ``unchanged`` URLs are taken over.
        """
        parts = self.parts(span)
        parts = parts.filter(parts["deletion"].is_valid())
        if not len(parts):
            return []
        known = self._known(old, unchanged) if unchanged else {}
        deleted = [
            DeletedRows(f"{self._root}/{path}", vector, rows)
            for path, vector, rows in zip(*(parts[n].to_pylist() for n in ("path", "deletion", "deleted")), strict=True)
        ]
        files = gather_requests(
            self._store,
            lambda one: known.get(one.url) or delete_file(self._store, self._root, one, self._format),
            deleted,
        )
        entries = []
        for one, file, version in zip(deleted, files, parts["version"].to_pylist(), strict=True):
            status = EXISTING if one.url in known else ADDED
            number = snapshot_id(version if status == EXISTING else self._snapshot.version)
            entries.append(_entry(status, number, file))
        return [self._written(span, "deletes", entries)]

    def write_removed(self, removed: pa.Table) -> list[Manifest]:
        """Write the manifest that says which files this version removed."""
        if not len(removed):
            return []
        number = snapshot_id(self._snapshot.version)
        columns = (removed[n].to_pylist() for n in ("path", "rows", "bytes"))
        entries = [
            _entry(DELETED, number, _file(f"{self._root}/{path}", rows, size))
            for path, rows, size in zip(*columns, strict=True)
        ]
        version = self._snapshot.version
        return [self._written(Span(version, version, 0), "gone", entries)]

    def _data_entries(self, parts: pa.Table) -> list[dict[str, Any]]:
        metrics = metrics_of(parts, self._schema)
        ids = self._row_ids(parts) if self._format >= 3 else [None] * len(parts)
        columns = [parts[n].to_pylist() for n in ("path", "rows", "bytes", "version")]
        out = []
        for at, (path, rows, size, version) in enumerate(zip(*columns, strict=True)):
            file = _file(f"{self._root}/{path}", rows, size)
            for name in METRICS:
                file[name] = metrics[name][at]
            if self._format >= 3:
                file["first_row_id"] = ids[at]
            out.append(_entry(ADDED if version == self._snapshot.version else EXISTING, snapshot_id(version), file))
        return out

    def _row_ids(self, parts: pa.Table) -> list[int]:
        """Return the first row id of each part: rows are counted over all parts that its segment ever had."""
        found = np.zeros(len(parts), dtype=np.int64)
        of, ordinals, rows = (parts[n].to_numpy() for n in ("segment", "part", "rows"))
        segments = self._snapshot.segments
        for segment in np.unique(of).tolist():
            at = np.flatnonzero(of == segment)
            version = segments["version"][segment].as_py()
            whole = len(at) == segments["physical_parts"][segment].as_py()
            every = rows[at] if whole else self._physical_rows(version)
            starts = np.concatenate([[0], np.cumsum(every)[:-1]])
            found[at] = version * ROW_IDS + starts[ordinals[at]]
        return [int(i) for i in found]

    def _physical_rows(self, version: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
        """Return the rows of each part that a version added, also of those that are gone."""
        commit = read_commits(self._store, [version], self._snapshot.commit.table_id)[0]
        assert commit.segment is not None
        table = commit.segment.tables["parts"].read(self._store, lambda names: [n for n in names if n == "rows"])
        found: np.ndarray[tuple[int], np.dtype[np.int64]] = table["rows"].to_numpy()
        return found

    def _known(self, old: Iterable[Manifest], unchanged: Collection[str]) -> dict[str, Mapping[str, Any]]:
        found = {}
        for manifest in old:
            data = self._store.get(str(manifest.row["manifest_path"]).removeprefix(f"{self._root}/"))
            for row in avro_rows(data):
                url = row["data_file"]["referenced_data_file"]
                if url in unchanged:
                    found[url] = row["data_file"]
        return found

    def _written(self, span: Span, kind: str, entries: Sequence[dict[str, Any]]) -> Manifest:
        data = manifest_bytes(entries, self._iceberg_schema, self._format, deletes=kind == "deletes")
        path = f"{FOLDER}/{span.first}-{span.last}-{span.block}-{kind}-{new_id()}.avro"
        self._store.put(path, data)  # under a name that nobody else has
        number = snapshot_id(self._snapshot.version)
        row: dict[str, Any] = {
            "manifest_path": f"{self._root}/{path}",
            "manifest_length": len(data),
            "partition_spec_id": 0,
            "content": int(kind == "deletes"),
            "sequence_number": number,
            "min_sequence_number": min(entry["sequence_number"] for entry in entries),
            "added_snapshot_id": number,
        }
        for status, name in ((ADDED, "added"), (EXISTING, "existing"), (DELETED, "deleted")):
            mine = [entry["data_file"]["record_count"] for entry in entries if entry["status"] == status]
            row[f"{name}_files_count"], row[f"{name}_rows_count"] = len(mine), sum(mine)
        if self._format >= 3 and kind != "deletes":
            row["first_row_id"] = self._snapshot.version * ROW_IDS
        return Manifest(span, kind, row)


def merged_span(manifests: Sequence[Manifest]) -> Span | None:
    """Return the span of the young data manifests that are to be merged into one, or None."""
    total, young = 0, []
    for manifest in sorted((m for m in manifests if m.kind == "data"), key=lambda m: m.span, reverse=True):
        total += manifest.entries
        if total > MOST_ENTRIES:
            break
        young.append(manifest)
    if len(young) < MERGE_FROM:
        return None
    first, last = young[-1].span.first, young[0].span.last
    # A span of one version stands for one block of its parts, so that the others would be lost.
    return Span(first, last, 0) if first < last else None


def with_versions(snapshot: Snapshot, parts: pa.Table) -> pa.Table:
    """Return parts with the column ``version``: the one that added them."""
    versions = snapshot.segments["version"].to_numpy()
    return parts.append_column("version", pa.array(versions[parts["segment"].to_numpy()], pa.int64()))


def _entry(status: int, number: int, file: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "status": status,
        "snapshot_id": number,
        "sequence_number": number,
        "file_sequence_number": number,
        "data_file": dict(file),
    }


def _file(url: str, rows: int, size: int) -> dict[str, Any]:
    return {
        "content": 0,
        "file_path": url,
        "file_format": "PARQUET",
        "partition": {},
        "record_count": rows,
        "file_size_in_bytes": size,
    }
