"""The actions of a Delta log as columns, and which of the files that they add are live in the end."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pj

from tamis.bridges.sources.foreign_paths import Root
from tamis.errors import CorruptData
from tamis.storage.object_store.store import Store

VECTOR = pa.struct(
    [
        ("storageType", pa.string()),
        ("pathOrInlineDv", pa.string()),
        ("offset", pa.int64()),
        ("sizeInBytes", pa.int64()),
        ("cardinality", pa.int64()),
    ]
)
PARTITION = pa.map_(pa.string(), pa.string())
ADDED = pa.schema(
    [
        ("path", pa.string()),
        ("partitionValues", pa.string()),  # JSON, with the keys in order
        ("size", pa.int64()),
        ("dataChange", pa.bool_()),
        ("stats", pa.string()),
        ("deletionVector", VECTOR),
    ]
)
"""Added files; ``stats_parsed`` follows where a checkpoint has that and no ``stats``."""
REMOVED = pa.schema([("path", pa.string()), ("dataChange", pa.bool_()), ("deletionVector", VECTOR)])

# a line whose first key has a file's action and no other; some writers spell out the keys that are null
_OTHERS = re.compile(rb'^(?![ \t\r]*\{\s*"(?:add|remove|cdc)"\s*:\s*\{)[^\n]*\S[^\n]*$', re.MULTILINE)
_PARTITION_VALUES = re.compile(rb'"partitionValues"\s*:\s*(\{(?:[^{}"]|"(?:[^"\\]|\\.)*")*\})')


@dataclass(slots=True)
class Actions:
    """What a commit or a checkpoint says: files added and removed, and the other actions that readers need."""

    added: pa.Table
    removed: pa.Table
    protocol: dict[str, Any] | None = None
    metadata: dict[str, Any] | None = None
    info: dict[str, Any] = field(default_factory=dict)


def read_commit(store: Store, path: str, data: bytes | None = None) -> Actions:
    """Read a commit, or understand its ``data``. Raises ``CorruptData`` (``DELTA_LOG_DAMAGED``) naming it."""
    data = store.get(path) if data is None else data
    try:
        added, removed = _file_actions(data)
        others = [json.loads(line) for line in _OTHERS.findall(data)]
        found = {key: value for other in others for key, value in other.items() if isinstance(value, dict)}
        if pc.any(pc.or_(added["path"].is_null(), pc.fill_null(pc.less(added["size"], 0), True))).as_py():
            raise ValueError("an add action without a path or a size")
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError, pa.ArrowException) as error:
        raise damaged(store.name(path), str(error)) from error
    return Actions(added, removed, found.get("protocol"), found.get("metaData"), found.get("commitInfo", {}))


def damaged(name: str, why: str) -> CorruptData:
    """Return the error of a log whose object ``name`` cannot be understood."""
    return CorruptData(
        f"{name} of the Delta log is damaged: {why[:200]}",
        code="DELTA_LOG_DAMAGED",
        name=name,
        remedy="Restore it from a backup, or repair the Delta table.",
    )


def _file_actions(data: bytes) -> tuple[pa.Table, pa.Table]:
    """Return the added and the removed files of a commit's lines."""
    # the keys of partition values differ from table to table: they are read as the text that they are
    quoted = _PARTITION_VALUES.sub(lambda m: b'"partitionValues":' + json.dumps(m[1].decode()).encode(), data)
    adding = pa.struct(list(ADDED))
    schema = pa.schema([("add", adding), ("remove", pa.struct(list(REMOVED)))])
    try:
        table = pj.read_json(
            pa.BufferReader(quoted),
            read_options=pj.ReadOptions(block_size=min(max(len(quoted) + 1, 2**16), 2**31 - 2**16)),
            parse_options=pj.ParseOptions(explicit_schema=schema, unexpected_field_behavior="ignore"),
        )
    except pa.ArrowInvalid:  # such as half a character in a statistic: Python is more tolerant, and slower
        lines = [json.loads(line) for line in data.splitlines() if line.strip()]
        table = pa.Table.from_pylist([_plain(line) for line in lines], schema=schema)
    return (
        pa.table(_fields(table["add"], ADDED), schema=ADDED),
        pa.table(_fields(table["remove"], REMOVED), schema=REMOVED),
    )


def _plain(line: dict[str, Any]) -> dict[str, Any]:
    found = {key: dict(line[key]) for key in ("add", "remove") if line.get(key) is not None}
    for action in found.values():
        if isinstance(action.get("stats"), str):
            action["stats"] = action["stats"].encode("utf-8", "replace").decode()
        if "partitionValues" in action:
            action["partitionValues"] = json.dumps(action["partitionValues"])
    return found


def _fields(column: pa.ChunkedArray, wanted: pa.Schema) -> list[pa.Array]:
    whole = column.drop_null().combine_chunks()
    struct = pa.concat_arrays(whole.chunks) if isinstance(whole, pa.ChunkedArray) else whole
    return [pc.struct_field(struct, f.name) for f in wanted]


def file_keys(files: pa.Table, root: Root) -> pa.Array:
    """Return what identifies a logical file: its path and its deletion vector.

    Writers escape the same path in different ways, and name it relative to the root or in full.
    """
    vector = files["deletionVector"]
    kind, place, offset = (pc.struct_field(vector, name) for name in ("storageType", "pathOrInlineDv", "offset"))
    where = pc.fill_null(pc.binary_join_element_wise("@", offset.cast(pa.string()), ""), "")
    named = pc.fill_null(pc.binary_join_element_wise(kind, place, where, ""), "")
    keys = pc.binary_join_element_wise(root.file_identities(files["path"]), named.cast(pa.binary()), b"\n")
    return keys.combine_chunks() if isinstance(keys, pa.ChunkedArray) else keys


def live_files(actions: Sequence[Actions], root: Root) -> pa.Table:
    """Return the files that are live after ``actions``, in their order: the last word about each file counts."""
    tables = [table for a in actions for table in (a.removed, a.added)]
    adds = np.concatenate([np.full(len(t), bool(at % 2)) for at, t in enumerate(tables)])
    keys = _concatenated([file_keys(t, root) for t in tables])
    if not len(keys):
        return ADDED.empty_table()
    codes = keys.dictionary_encode().indices.to_numpy(zero_copy_only=False)
    last = np.zeros(codes.max() + 1, np.int64)
    np.maximum.at(last, codes, np.arange(len(codes)))
    live = adds & (last[codes] == np.arange(len(codes)))
    added = pa.concat_tables([a.added for a in actions], promote_options="permissive")
    return added.filter(pa.array(live[adds]))


def _concatenated(arrays: Iterable[pa.Array]) -> pa.Array:
    chunks = [c for a in arrays for c in (a.chunks if isinstance(a, pa.ChunkedArray) else [a])]
    return pa.concat_arrays([c.cast(pa.large_binary()) for c in chunks])


def check_paths_once(files: pa.Table, root: Root) -> None:
    """Raise ``CorruptData`` (``DELTA_FILE_TWICE``) if a file is live under two deletion vectors."""
    paths = root.file_identities(files["path"]).combine_chunks()
    if len(pc.unique(paths)) == len(files):
        return
    counts = pc.value_counts(paths)
    twice = counts.filter(pc.greater(counts.field("counts"), 1)).field("values")[0].as_py().decode(errors="replace")
    raise CorruptData(
        f"The log of {root.store.url} has the file {twice} twice, under different deletion vectors.",
        code="DELTA_FILE_TWICE",
        name=twice,
        remedy="Repair the Delta table's log.",
    )
