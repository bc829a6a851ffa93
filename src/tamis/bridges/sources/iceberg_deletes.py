"""Resolves the delete files of an Iceberg snapshot to the positions that each data file lost.

Position deletes and deletion vectors hold for data files of their own sequence number and older ones, equality
deletes for older ones alone.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyroaring import BitMap

from tamis.bridges.sources.foreign_paths import Root
from tamis.bridges.sources.iceberg_manifests import Entries
from tamis.bridges.sources.iceberg_metadata import metadata_damaged
from tamis.bridges.sources.roaring_arrays import portable_rows
from tamis.errors import InvalidInput, NotFound
from tamis.storage.object_store.parallel_requests import gather_requests

_POSITIONS = 1
_MAGIC = b"\xd1\xd3\x39\x64"

Rows = dict[int, Any]
"""Bitmaps of deleted rows by the place of the data file."""


def refuse_format(file: Mapping[str, Any]) -> InvalidInput:
    """Return the error of a data file or delete file that is not Parquet."""
    return InvalidInput(
        f"{file['file_path']} is a file of {file['file_format']}, which Tamis does not read in Iceberg tables.",
        code="SOURCE_FORMAT",
        name=file["file_path"],
        remedy="Rewrite the table there as Parquet (rewrite_data_files), then adopt it.",
    )


def position_deletes(root: Root, data: Entries, deletes: Entries) -> Rows:
    """Return the rows that position delete files and deletion vectors delete, by data file."""
    if not data.files:  # delete files may outlive the data files that they are of
        return {}
    paths = pa.array([file["file_path"] for file in data.files], pa.string())
    sequences = np.array(data.sequences, np.int64)
    wanted = [at for at, file in enumerate(deletes.files) if file["content"] == _POSITIONS]
    vectors = [at for at in wanted if deletes.files[at]["file_format"].upper() == "PUFFIN"]
    rows = _vectors(root, paths, sequences, deletes, vectors)
    own = set(rows)
    others = [at for at in wanted if at not in set(vectors)]
    tables = gather_requests(root.store, lambda at: _positions(root, deletes.files[at]), others)
    for at, table in zip(others, tables, strict=True):
        found = pc.index_in(table["path"], value_set=paths)
        known = np.asarray(found.is_valid())
        files = np.asarray(found.fill_null(0), np.int64)
        here = known & (sequences[files] <= deletes.sequences[at])
        files, positions = files[here], np.asarray(table["pos"])[here]
        order = np.argsort(files, kind="stable")
        starts = np.flatnonzero(np.diff(files[order], prepend=-1))
        for group in np.split(order, starts[1:]) if len(order) else []:
            file = int(files[group[0]])
            if file not in own:  # a vector replaces all position deletes of its file
                rows.setdefault(file, BitMap()).update(BitMap(positions[group].astype(np.uint32)))
    return rows


def _positions(root: Root, file: Mapping[str, Any]) -> pa.Table:
    name = file["file_path"]
    if file["file_format"].upper() != "PARQUET":
        raise refuse_format(file)
    store, path = root.opened(root.resolve(name, encoded=False))
    try:
        with pq.ParquetFile(pa.PythonFile(store.reader(path), mode="r")) as opened:
            table = opened.read(columns=["file_path", "pos"])
        out = pa.table({"path": _whole(table["file_path"], pa.string()), "pos": _whole(table["pos"], pa.int64())})
        if out["path"].null_count or out["pos"].null_count or len(out) != file["record_count"]:
            raise ValueError(f"it has {len(out)} positions instead of {file['record_count']}")
        if len(out) and (pc.min(out["pos"]).as_py() < 0 or pc.max(out["pos"]).as_py() >= 2**32):
            raise ValueError("it has positions beyond 0 and 2^32")
    except NotFound:
        raise
    except (pa.ArrowException, OSError, ValueError, KeyError) as error:
        raise metadata_damaged(name, error) from error
    return out


def _whole(column: pa.ChunkedArray, kind: pa.DataType) -> pa.Array:
    array = pa.concat_arrays(column.chunks) if column.num_chunks else pa.nulls(0, column.type)
    return array.cast(kind)


def _vectors(root: Root, paths: pa.Array, sequences: Any, deletes: Entries, wanted: Sequence[int]) -> Rows:
    if not wanted:
        return {}
    referenced = pa.array([deletes.files[at].get("referenced_data_file") for at in wanted], pa.string())
    places = pc.index_in(referenced, value_set=paths).to_pylist()
    live = [
        (at, place)
        for at, place in zip(wanted, places, strict=True)
        if place is not None and sequences[place] <= deletes.sequences[at]
    ]
    if len({place for _, place in live}) < len(live):
        raise metadata_damaged(root.store.url, "a data file has two deletion vectors")
    found = gather_requests(root.store, lambda one: _vector(root, deletes.files[one[0]]), live)
    return {place: rows for (_, place), rows in zip(live, found, strict=True)}


def _vector(root: Root, file: Mapping[str, Any]) -> Any:
    """Read a deletion vector; its length, kind, checksum and cardinality are checked."""
    name = file["file_path"]
    store, path = root.opened(root.resolve(name, encoded=False))
    offset, size = file.get("content_offset"), file.get("content_size_in_bytes")
    try:
        if offset is None or size is None or offset < 0 or size < 12:
            raise ValueError("its entry has no place in the file")
        data = store.get_range(path, offset, size)
        length, body, checksum = data[:4], data[4:-4], data[-4:]
        if struct.unpack(">i", length)[0] != len(body) or struct.unpack(">I", checksum)[0] != zlib.crc32(body):
            raise ValueError("the length or the checksum of a deletion vector is another one")
        if body[:4] != _MAGIC:
            raise ValueError("a deletion vector is of an unknown kind")
        rows = portable_rows(body[4:])
        if len(rows) != file["record_count"]:
            raise ValueError(f"a deletion vector has {len(rows)} rows instead of {file['record_count']}")
    except (ValueError, IndexError, TypeError, struct.error) as error:
        raise metadata_damaged(name, error) from error
    return rows
