"""The commit's JSON form, to the letter: whoever changes these texts changes the format (``docs/format.md``)."""

from __future__ import annotations

import json
import zlib
from dataclasses import replace

import pyarrow as pa
import pytest

from tamis.core.types import LONG, Field, Schema
from tamis.errors import CorruptData, InvalidInput
from tamis.storage.commit_log import Head, Operation, Proposal, ReadSet, StreamEpoch, commit, create, load
from tamis.storage.commit_log.commit_objects import commit_bytes, commit_path, read_commit
from tamis.storage.commit_log.commit_record import Commit, RemovedPart, Segment, commit_from_json, commit_to_json
from tamis.storage.object_store.checked_json import seal_json
from tamis.storage.object_store.metadata_files import Stored, inline_table
from tamis.world import SeededWorld, use
from tests.storage.making import append, forget, manifest, memory, new_table

HEAD = Head(
    "t1",
    name="events",
    schemas=(Schema((Field("ts", LONG, False, 1, "when"),), 0),),
    highest_column_id=1,
    cluster_by=((1,),),
    properties={"tamis.write.part_bytes": "1000"},
    created_micros=5,
)

CREATE = Commit(
    version=0,
    table_id="t1",
    operation_id="op0",
    timestamp_micros=6,
    operation=Operation("create", {"by": "me"}, {}),
    schema_id=0,
    head_version=0,
    head=HEAD,
)

CREATE_JSON = {
    "reader_features": [],
    "version": 0,
    "table_id": "t1",
    "operation_id": "op0",
    "timestamp_micros": 6,
    "operation": {"name": "create", "parameters": {"by": "me"}, "metrics": {}},
    "schema_id": 0,
    "head_version": 0,
    "head": {
        "table_id": "t1",
        "name": "events",
        "schemas": [
            {"schema_id": 0, "fields": [{"id": 1, "name": "ts", "type": "long", "nullable": False, "comment": "when"}]}
        ],
        "highest_column_id": 1,
        "cluster_by": [[1]],
        "format": "parquet",
        "properties": {"tamis.write.part_bytes": "1000"},
        "comment": None,
        "reader_features": [],
        "writer_features": [],
        "created_micros": 5,
        "dropped": [],
        "ordered_since": 0,
    },
}

EVERYTHING = Commit(
    version=9,
    table_id="t1",
    operation_id="op9",
    timestamp_micros=7,
    operation=Operation("merge", {}, {"rows_inserted": 3}, StreamEpoch("query", 4, 1700)),
    schema_id=0,
    head_version=0,
    read_version=7,
    reads=ReadSet("ts > 1", ((1,),), "Europe/Paris", ansi=False),
    blind_append=False,
    data_change=False,
    segment=Segment("s9", 2, 20, 200, None, {"parts": Stored(2, "_tamis/manifest/s9.parquet", 900, 300, 0xABC)}),
    remove_all=True,
    remove_segments=("s1",),
    remove_parts=(RemovedPart("s2", "p3", 10, 100),),
    add_index=({"segment_id": "i1", "index": "by_user"},),
    remove_index=("i0",),
    streams_version=9,
    streams=(StreamEpoch("other", 1), StreamEpoch("query", 4, 1700)),
    reader_features=("variant-statistics",),
)

EVERYTHING_JSON = {
    "reader_features": ["variant-statistics"],
    "version": 9,
    "table_id": "t1",
    "operation_id": "op9",
    "timestamp_micros": 7,
    "operation": {"name": "merge", "parameters": {}, "metrics": {"rows_inserted": 3}},
    "schema_id": 0,
    "head_version": 0,
    "stream": ["query", 4, 1700],
    "read_version": 7,
    "reads": {"filter": "ts > 1", "columns": [[1]], "zone": "Europe/Paris", "ansi": False},
    "data_change": False,
    "add": [
        {
            "segment_id": "s9",
            "parts": 2,
            "rows": 20,
            "bytes": 200,
            "schema_id": None,
            "tables": {
                "parts": {
                    "rows": 2,
                    "path": "_tamis/manifest/s9.parquet",
                    "bytes": 900,
                    "footer": 300,
                    "crc32": "00000abc",
                }
            },
            "statistics": None,
        }
    ],
    "remove_all": True,
    "remove_segments": ["s1"],
    "remove_parts": [["s2", "p3", 10, 100]],
    "add_index": [{"segment_id": "i1", "index": "by_user"}],
    "remove_index": ["i0"],
    "streams_version": 9,
    "streams": [["other", 1], ["query", 4]],
    "stream_batches": [None, 1700],
}


WITHOUT_TIMES = replace(
    EVERYTHING,
    operation=replace(EVERYTHING.operation, stream=StreamEpoch("query", 4)),
    streams=(StreamEpoch("other", 1), StreamEpoch("query", 4)),
)
WITHOUT_TIMES_JSON = {
    name: value for name, value in (EVERYTHING_JSON | {"stream": ["query", 4]}).items() if name != "stream_batches"
}
"""As all releases before the times wrote it."""


@pytest.mark.parametrize(
    ("commit_", "expected"),
    [(CREATE, CREATE_JSON), (EVERYTHING, EVERYTHING_JSON), (WITHOUT_TIMES, WITHOUT_TIMES_JSON)],
    ids=["create", "everything", "without times"],
)
def test_the_json_of_a_commit(commit_: Commit, expected: dict[str, object]) -> None:
    assert commit_to_json(commit_) == expected
    assert list(commit_to_json(commit_)) == list(expected)
    assert commit_from_json(json.loads(json.dumps(expected))) == commit_


def test_the_object_of_a_commit() -> None:
    body = json.dumps(CREATE_JSON, separators=(",", ":"))
    crc = f"{zlib.crc32(body.encode()):08x}"
    assert commit_bytes(CREATE) == f'{{"crc32":"{crc}","commit":{body}}}'.encode()
    assert commit_path(12) == "_tamis/log/00000000000000000012.json"


def test_a_plain_append_says_no_more_than_it_must() -> None:
    store = memory()
    with use(SeededWorld(1)):
        append(store, new_table(store), manifest(2, low=5))
    body = commit_to_json(read_commit(store, 1))
    assert set(body) == {
        "reader_features", "version", "table_id", "operation_id", "timestamp_micros", "operation", "schema_id", "head_version",
        "read_version", "blind_append", "add", "parent",
    }  # fmt: skip
    (segment,) = body["add"]
    assert set(segment["tables"]["parts"]) == set(segment["statistics"]) == {"rows", "size", "zstd"}
    assert (segment["parts"], segment["rows"], segment["bytes"], segment["schema_id"]) == (2, 200, 1600, 0)


def test_the_objects_of_a_table() -> None:
    store = memory()
    snapshot = new_table(store)
    snapshot = append(store, snapshot, manifest(3_000))
    for _ in range(16):
        snapshot = append(store, snapshot)
    (segment_id,) = [
        s
        for s, n in zip(
            snapshot.segments["segment_id"].to_pylist(), snapshot.segments["parts"].to_pylist(), strict=True
        )
        if n > 1
    ]
    assert {e.path for e in store.list() if not e.path.startswith("_tamis/log/")} == {
        "_tamis/latest",
        f"_tamis/manifest/{segment_id}.parquet",
        "_tamis/rollup/1-00000000000000000000.json",
    }


def test_unknown_keys_are_ignored() -> None:
    value = json.loads(json.dumps(EVERYTHING_JSON))
    value["new"] = value["operation"]["new"] = value["add"][0]["new"] = value["add"][0]["tables"]["parts"]["new"] = 1
    assert commit_from_json(value) == EVERYTHING


@pytest.mark.parametrize("key", [k for k in CREATE_JSON if k != "head"])
def test_a_missing_key_is_corrupt_data(key: str) -> None:
    store = memory()
    store.put(commit_path(0), seal_json("commit", {k: v for k, v in CREATE_JSON.items() if k != key}))
    with pytest.raises(CorruptData) as caught:
        load(store)
    assert caught.value.name == store.name(commit_path(0))


@pytest.mark.parametrize(
    "change",
    [{"version": 3}, {"head_version": 1}, {"head": {}}, {"add": [{}, {}]}, {"operation": None}, {"reader_features": 3}],
)
def test_a_commit_that_contradicts_itself_is_corrupt_data(change: dict[str, object]) -> None:
    store = memory()
    store.put(commit_path(0), seal_json("commit", {**CREATE_JSON, **change}))
    with pytest.raises(CorruptData):
        load(store)


def test_an_unknown_reader_feature_is_refused_by_name_before_anything_else() -> None:
    store = memory()
    new_table(store)
    store.put(commit_path(1), seal_json("commit", {"reader_features": ["time-machine", "flux"], "layout": "unknown"}))
    with pytest.raises(InvalidInput) as caught:
        load(store)
    assert (caught.value.code, caught.value.name) == ("UNSUPPORTED_FEATURE", "flux, time-machine")
    assert "Upgrade" in caught.value.remedy


def test_an_unknown_writer_feature_refuses_writers_only() -> None:
    store = memory()
    new_table(store)
    value = commit_to_json(read_commit(store, 0))
    value["head"]["writer_features"] = ["row-tracking"]
    store.put(commit_path(0), seal_json("commit", value))
    forget()
    snapshot = load(store)
    assert snapshot.version == 0
    with pytest.raises(InvalidInput) as caught:
        append(store, snapshot)
    assert caught.value.name == "row-tracking"


def test_a_table_of_unknown_features_cannot_be_made() -> None:
    store = memory()
    for head in (Head("", reader_features=("x",)), Head("", writer_features=("x",))):
        with pytest.raises(InvalidInput):
            create(store, head, Operation("create"))
    assert store.list() == []


def test_parameters_that_json_cannot_hold_are_refused_and_nothing_is_committed() -> None:
    store = memory()
    new_table(store)
    with pytest.raises(InvalidInput):
        commit(store, Proposal(Operation("x", {"a": object()}), 0))
    assert load(store).version == 0


def test_a_head_comes_back_whole() -> None:
    store = memory()
    made = create(store, HEAD, Operation("create"))
    forget()
    assert load(store).head == HEAD == made.head


def test_inline_statistics_are_one_row_of_the_segment() -> None:
    union = inline_table(pa.table({"1|long|lo": [3]}))
    segment = Segment("s", 1, 1, 1, 0, {"parts": inline_table(manifest(1))}, union)
    again = commit_from_json(commit_to_json(Commit(1, "t", "o", 1, Operation("append"), 0, 0, segment=segment))).segment
    assert again is not None
    assert again.statistics is not None
    assert again.statistics.table.to_pydict() == {"1|long|lo": [3]}
