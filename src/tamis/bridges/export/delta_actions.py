"""Parts as Delta's actions: lines of a commit, and rows of a checkpoint."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

import pyarrow as pa

from tamis.bridges.export.delta_statistics import plain_json, statistics_json
from tamis.bridges.export.delta_vectors import vector_descriptor, write_vector
from tamis.core.types import Schema
from tamis.storage.object_store import Store
from tamis.storage.object_store.parallel_requests import gather_requests
from tamis.world import made_micros

_VECTOR = pa.struct(
    [
        ("storageType", pa.string()),
        ("pathOrInlineDv", pa.string()),
        ("offset", pa.int32()),
        ("sizeInBytes", pa.int32()),
        ("cardinality", pa.int64()),
    ]
)
_TEXTS = pa.map_(pa.string(), pa.string())


def action_line(action: Mapping[str, Any]) -> str:
    """Return one action as it stands in a commit."""
    return plain_json(action)


def vectors_of_parts(parts: pa.Table) -> list[dict[str, Any] | None]:
    """Return the descriptor of each part's deletion vector, None for those without one."""
    if "descriptor" in parts.column_names:  # files as the log tells them
        return [json.loads(text) for text in parts["descriptor"].to_pylist()]
    paths, vectors, rows = (parts[name].to_pylist() for name in ("path", "deletion", "deleted"))
    return [
        None if vector is None else vector_descriptor(path, vector, lost)
        for path, vector, lost in zip(paths, vectors, rows, strict=True)
    ]


def write_vectors(store: Store, parts: pa.Table) -> None:
    """Write the files of the parts' deletion vectors."""
    some = parts.filter(parts["deletion"].is_valid())
    pairs = list(zip(some["path"].to_pylist(), some["deletion"].to_pylist(), strict=True))
    gather_requests(store, lambda pair: write_vector(store, *pair), pairs)


def add_lines(parts: pa.Table, schema: Schema, physical: Mapping[int, str], *, data_change: bool) -> list[str]:
    """Return an ``add`` for each part."""
    change = "true" if data_change else "false"
    columns = (
        _quoted(parts),
        parts["bytes"].to_pylist(),
        _made_millis(parts),
        statistics_json(parts, schema, physical).to_pylist(),
        vectors_of_parts(parts),
    )
    return [
        f'{{"add":{{"path":"{path}","partitionValues":{{}},"size":{size},"modificationTime":{millis},'
        f'"dataChange":{change},"stats":{plain_json(stats)}'
        + (f',"deletionVector":{plain_json(vector)}' if vector else "")
        + "}}"
        for path, size, millis, stats, vector in zip(*columns, strict=True)
    ]


def remove_lines(parts: pa.Table, millis: int, *, data_change: bool) -> list[str]:
    """Return a ``remove`` for each part."""
    out = []
    for path, size, vector in zip(_quoted(parts), parts["bytes"].to_pylist(), vectors_of_parts(parts), strict=True):
        action = {"path": path, "deletionTimestamp": millis, "dataChange": data_change, "size": size}
        action |= {"extendedFileMetadata": True, "partitionValues": {}}
        out.append(action_line({"remove": action | ({"deletionVector": vector} if vector else {})}))
    return out


def checkpoint_table(
    parts: pa.Table,
    schema: Schema,
    physical: Mapping[int, str],
    protocol: Mapping[str, Any],
    metadata: Mapping[str, Any],
) -> pa.Table:
    """Return the rows of a checkpoint: the protocol, the metadata, and an ``add`` for each part."""
    count = len(parts)
    add = pa.StructArray.from_arrays(
        [
            pa.array(_quoted(parts), pa.string()),
            pa.MapArray.from_arrays(pa.array([0] * (count + 1), pa.int32()), _no_texts(), _no_texts()),
            parts["bytes"].combine_chunks(),
            pa.array(_made_millis(parts), pa.int64()),
            pa.array([False] * count, pa.bool_()),
            statistics_json(parts, schema, physical),
            pa.array(vectors_of_parts(parts), _VECTOR),
        ],
        ["path", "partitionValues", "size", "modificationTime", "dataChange", "stats", "deletionVector"],
    )
    kinds = {"protocol": _PROTOCOL, "metaData": _METADATA}
    stored = dict(metadata) | {
        "configuration": list(metadata["configuration"].items()),
        "format": {"provider": "parquet", "options": []},
    }
    head = {
        "protocol": pa.array([protocol, None], _PROTOCOL),
        "metaData": pa.array([None, stored], _METADATA),
    }
    columns = {name: pa.chunked_array([head[name], pa.nulls(count, kind)]) for name, kind in kinds.items()}
    return pa.table({**columns, "add": pa.chunked_array([pa.nulls(2, add.type), add])})


_PROTOCOL = pa.struct(
    [
        ("minReaderVersion", pa.int32()),
        ("minWriterVersion", pa.int32()),
        ("readerFeatures", pa.list_(pa.field("element", pa.string()))),
        ("writerFeatures", pa.list_(pa.field("element", pa.string()))),
    ]
)
_METADATA = pa.struct(
    [
        ("id", pa.string()),
        ("name", pa.string()),
        ("description", pa.string()),
        ("format", pa.struct([("provider", pa.string()), ("options", _TEXTS)])),
        ("schemaString", pa.string()),
        ("partitionColumns", pa.list_(pa.field("element", pa.string()))),
        ("configuration", _TEXTS),
        ("createdTime", pa.int64()),
    ]
)


def _no_texts() -> pa.Array:
    return pa.array([], pa.string())


def _quoted(parts: pa.Table) -> list[str]:
    return [quote(path, safe="/") for path in parts["path"].to_pylist()]


def _made_millis(parts: pa.Table) -> list[int]:
    """Return when each part's file was made, by its id; 0 where the id does not tell."""
    made = (made_micros(i) for i in parts["part_id"].to_pylist())
    return [micros // 1_000 if micros < 2**62 else 0 for micros in made]
