"""Reads checkpoints of a Delta log: classic ones, in one file or several, and those of version 2 with sidecars."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from tamis.bridges.sources.delta_actions import ADDED, REMOVED, Actions, read_commit
from tamis.errors import CorruptData, NotFound, StoreUnavailable
from tamis.storage.object_store.parallel_requests import gather_requests
from tamis.storage.object_store.store import Store

_SIDECARS = "_delta_log/_sidecars/"
_WANTED = ("path", "partitionValues", "size", "dataChange", "stats", "stats_parsed", "deletionVector")
_PARSED = "stats_parsed"


class DamagedCheckpoint(Exception):
    """A checkpoint that is not whole; an older one, or the commits, say the same."""


def read_checkpoint(store: Store, names: Sequence[str]) -> Actions:
    """Read the checkpoint that the files make up together. Raises ``DamagedCheckpoint``."""
    try:
        found = gather_requests(store, lambda name: _read_file(store, name), names)
        sidecars = [f"{_SIDECARS}{unquote(path).rsplit('/', 1)[-1]}" for _, paths in found for path in paths]
        found += gather_requests(store, lambda name: _read_file(store, name), sidecars)
        actions = [a for a, _ in found]
        protocol = next((a.protocol for a in actions if a.protocol), None)
        metadata = next((a.metadata for a in actions if a.metadata), None)
        if protocol is None or metadata is None:
            raise DamagedCheckpoint(names[0])
    except StoreUnavailable:
        raise
    except (
        NotFound,
        CorruptData,
        pa.ArrowException,
        OSError,
        ValueError,
        LookupError,
        TypeError,
        AttributeError,
        RecursionError,
    ) as error:
        raise DamagedCheckpoint(names[0]) from error
    added = pa.concat_tables([a.added for a in actions], promote_options="permissive")
    return Actions(added, REMOVED.empty_table(), protocol, metadata)


def _read_file(store: Store, name: str) -> tuple[Actions, list[str]]:
    """Return the actions of one file and the sidecars that it names."""
    if name.endswith(".json"):
        lines = [json.loads(line) for line in store.get(name).splitlines() if b'"sidecar"' in line]
        return read_commit(store, name), [line["sidecar"]["path"] for line in lines if "sidecar" in line]
    with pq.ParquetFile(pa.PythonFile(store.reader(name), mode="r")) as file:
        top = file.schema_arrow
        inside = [f.name for f in top.field("add").type] if "add" in top.names else []
        wanted = [n for n in _WANTED if n in inside and not (n == _PARSED and _has_text(file, inside))]
        table = file.read(
            columns=[
                *(f"add.{n}" for n in wanted),
                *(n for n in ("protocol", "metaData", "sidecar") if n in top.names),
            ]
        )
    sidecars = _one_struct(table, "sidecar").drop_null().to_pylist()
    added = _added(_one_struct(table, "add"))
    protocol, metadata = (_first(_one_struct(table, n)) for n in ("protocol", "metaData"))
    return Actions(added, REMOVED.empty_table(), protocol, metadata), [s["path"] for s in sidecars]


def _has_text(file: pq.ParquetFile, inside: Sequence[str]) -> bool:
    """Return whether the statistics stand there as text in every row that has some."""
    if "stats" not in inside:
        return False
    places = {file.schema.column(n).path: n for n in range(len(file.schema))}
    at, paths = places["add.stats"], places["add.path"]
    for group in range(file.metadata.num_row_groups):
        texts, files = (file.metadata.row_group(group).column(n).statistics for n in (at, paths))
        if texts is None or files is None or texts.null_count != files.null_count:
            return False
    return True


def _one_struct(table: pa.Table, name: str) -> pa.Array:
    if name not in table.column_names:
        return pa.nulls(0, pa.struct([]))
    chunks = table[name].chunks
    return pa.concat_arrays(chunks) if chunks else pa.nulls(0, table.schema.field(name).type)


def _first(array: pa.Array) -> dict[str, Any] | None:
    found = array.drop_null()
    return _without_pairs(found[0].as_py(maps_as_pydicts="strict")) if len(found) else None


def _without_pairs(value: dict[str, Any]) -> dict[str, Any]:
    return {key: item for key, item in value.items() if item is not None}


def _added(array: pa.Array) -> pa.Table:
    array = array.drop_null()
    if not len(array):
        return ADDED.empty_table()
    names = {f.name for f in array.type}
    columns: dict[str, Any] = {}
    for wanted in ADDED:
        if wanted.name == "partitionValues":
            columns[wanted.name] = _json_of(pc.struct_field(array, wanted.name), len(array))
        elif wanted.name == "deletionVector" and wanted.name in names:
            columns[wanted.name] = _vectors(pc.struct_field(array, wanted.name))
        elif wanted.name in names:
            columns[wanted.name] = pc.struct_field(array, wanted.name).cast(wanted.type)
        else:
            columns[wanted.name] = pa.nulls(len(array), wanted.type)
    if _PARSED in names:
        columns[_PARSED] = pc.struct_field(array, _PARSED)
    return pa.table(columns)


def _vectors(found: pa.StructArray) -> pa.StructArray:
    wanted = ADDED.field("deletionVector").type
    names = {f.name for f in found.type}
    fields = [
        pc.struct_field(found, f.name).cast(f.type) if f.name in names else pa.nulls(len(found), f.type) for f in wanted
    ]
    absent = pc.or_(found.is_null(), fields[0].is_null())
    return pa.StructArray.from_arrays(fields, fields=list(wanted), mask=absent)


def _json_of(maps: pa.MapArray, rows: int) -> pa.Array:
    """Return each map of texts as a JSON object without its NULLs: one by one only for what differs.

    A key that a map lacks must not get into its object: files of one table may spell a key in different case.
    """
    if not pa.types.is_map(maps.type):
        raise ValueError("partitionValues is no map")
    keys = pc.unique(maps.keys).to_pylist() if len(maps) else []
    if not keys:
        return pa.array(["{}"], pa.string()).take(pa.array([0] * rows, pa.int32()))
    pieces = []
    for key in keys:
        values = pc.map_lookup(maps, pa.scalar(key, maps.type.key_type), "first")
        encoded = values.dictionary_encode()
        texts = pa.array([json.dumps(v) for v in encoded.dictionary.to_pylist()], pa.string())
        pieces.append(pc.binary_join_element_wise(",", json.dumps(key), ":", texts.take(encoded.indices), ""))
    present = [pc.fill_null(piece, "") for piece in pieces]
    inside = pc.utf8_slice_codeunits(pc.binary_join_element_wise(*present, ""), 1)
    return pc.binary_join_element_wise(pa.scalar("{"), inside, pa.scalar("}"), "")
