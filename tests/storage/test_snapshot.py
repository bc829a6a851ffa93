"""A snapshot reads what it is asked for, no more, and never changes."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from tamis.errors import CorruptData
from tamis.storage.commit_log import PART_COLUMNS, SEGMENT_COLUMNS, Operation, Proposal, commit, load
from tamis.storage.object_store import Store
from tests.storage.making import append, forget, manifest, memory, new_table, part_ids


@pytest.fixture
def store() -> Store:
    """Segments of 3, 2,000 (a file of its own), 1 and 4 parts."""
    store = memory()
    snapshot = new_table(store)
    for low, parts in enumerate((3, 2_000, 1, 4)):
        snapshot = append(store, snapshot, manifest(parts, low=100_000 * low))
    forget()
    return store


def test_the_segments(store: Store) -> None:
    segments = load(store).segments
    assert tuple(segments.column_names) == SEGMENT_COLUMNS
    assert segments.select(["version", "rows", "bytes", "parts", "schema_id"]).to_pylist() == [
        {"version": v, "rows": 100 * n, "bytes": 800 * n, "parts": n, "schema_id": 0}
        for v, n in enumerate((3, 2_000, 1, 4), 1)
    ]


def test_the_parts_are_in_order(store: Store) -> None:
    parts = load(store).parts(ids={1})
    assert parts.column_names == [
        "segment",
        "part",
        *PART_COLUMNS,
        "1|long|lo",
        "1|long|hi",
        "1|nulls",
        "1|count",
        "1|exact",
        "deleted",
        "deletion",
    ]
    places = list(zip(parts["segment"].to_pylist(), parts["part"].to_pylist(), strict=True))
    assert places == [(s, p) for s, n in enumerate((3, 2_000, 1, 4)) for p in range(n)]
    assert parts["1|long|lo"].to_pylist() == [100_000 * s + 10 * p for s, p in places]
    assert parts["blocks"].to_pylist()[:2] == [[100], [100]]


@pytest.mark.parametrize("mask", [[0, 0, 0, 0], [1, 0, 0, 0], [0, 1, 0, 1], [1, 1, 1, 1]])
def test_the_parts_of_chosen_segments(store: Store, mask: list[int]) -> None:
    everything = load(store).parts(ids={2})
    chosen = load(store).parts(np.array(mask, dtype=np.bool_), ids={2})
    assert chosen.schema.names[:12] == everything.schema.names[:12]
    assert chosen.to_pylist() == [row for row in everything.to_pylist() if mask[row["segment"]]]


def test_the_evidence_of_segments_is_physical(store: Store) -> None:
    snapshot = load(store)
    snapshot = commit(store, Proposal(Operation("delete"), snapshot.version, remove_parts=part_ids(snapshot)[:1]))
    evidence = snapshot.segment_evidence({1})
    assert evidence.column_names[:2] == ["rows", "schema_id"]
    assert evidence["rows"].to_pylist() == [300, 200_000, 100, 400]
    assert evidence["1|long|lo"].to_pylist() == [0, 100_000, 200_000, 300_000]
    assert evidence["1|long|hi"].to_pylist() == [29, 119_999, 200_009, 300_039]
    assert not [name for name in evidence.column_names if name.startswith("2|")]
    assert snapshot.segments["rows"].to_pylist() == [200, 200_000, 100, 400]
    assert snapshot.segments["physical_rows"].to_pylist() == [300, 200_000, 100, 400]


def test_only_what_is_asked_for_is_read(store: Store) -> None:
    snapshot = load(store)
    opened = snapshot.io.requests
    snapshot.parts(np.array([True, False, True, True]), ids={1})
    selected_bytes = snapshot.io.bytes
    assert opened == 6  # the hint, the newest, the one before it, two beyond it, the head
    assert snapshot.io.requests == opened + 2  # the commits between but the last; no manifest
    snapshot.parts(ids={1})
    assert snapshot.io.bytes > 2 * selected_bytes


def test_a_segment_without_parts_left_is_gone(store: Store) -> None:
    snapshot = load(store)
    first = snapshot.parts(np.array([True, False, False, False]))["part_id"].to_pylist()
    for name in first:
        snapshot = commit(store, Proposal(Operation("delete"), snapshot.version, remove_parts=[name]))
    assert snapshot.segments["version"].to_pylist() == [2, 3, 4]
    assert snapshot.parts()["segment"].to_pylist()[0] == 0
    assert snapshot.segment_evidence({1}).num_rows == 3


def test_an_old_snapshot_does_not_change(store: Store) -> None:
    old = load(store)
    commit(store, Proposal(Operation("overwrite"), old.version, replace_all=True))
    assert len(part_ids(old)) == 2_008
    assert part_ids(load(store)) == []


@pytest.mark.parametrize("damage", ["delete", "cut", "statistics", "facts"])
def test_a_damaged_manifest(store: Store, damage: str) -> None:
    """Facts must be read; statistics that cannot be are unknown."""
    (path,) = [e.path for e in store.list("_tamis/manifest")]
    whole = load(store).parts(ids={1})
    data = bytearray(store.get(path))
    column = load(store, 2).commit.segment.tables["parts"]
    offset = column._end(store).chunks["1|long|lo" if damage == "statistics" else "rows"][0][0]
    data[offset + 20] ^= 255
    if damage == "delete":
        store.delete(path)
    else:
        store.put(path, bytes(data[: len(data) // 2] if damage == "cut" else data))
    forget()
    snapshot = load(store)
    if damage == "statistics":
        assert snapshot.parts().to_pylist() == whole.select(snapshot.parts().column_names).to_pylist()
        assert snapshot.parts(ids={1})["1|long|lo"].to_pylist()[3:2_003] == [None] * 2_000
        return
    with pytest.raises(CorruptData) as caught:
        snapshot.parts(ids={1})
    assert caught.value.name == store.name(path)
    others = snapshot.parts(np.array([True, False, True, True]), ids={1})
    assert len(others) == 8


def test_further_tables_of_a_segment() -> None:
    """Room for rows of JSON paths: a table beside the parts, which loses the rows of parts that go."""
    store = memory()
    snapshot = new_table(store)
    add = manifest(2, ids=["p0", "p1"])
    paths = pa.table(
        {
            "part": pa.array([0, 0, 1], pa.int32()),
            "part_id": ["p0", "p0", "p1"],
            "path": ["$.a", "$.b", "$.a"],
            "9|long|lo": [1, 2, 3],
        }
    )
    snapshot = commit(store, Proposal(Operation("append"), 0, blind_append=True, add=[add], tables={"paths": paths}))
    for _ in range(20):
        snapshot = append(store, snapshot)
    forget()
    snapshot = load(store)
    found = snapshot.table("paths", ["path"], ids={9})
    assert found.to_pydict() == {
        "segment": [0] * 3,
        "part": [0, 0, 1],
        "path": ["$.a", "$.b", "$.a"],
        "9|long|lo": [1, 2, 3],
    }
    snapshot = commit(store, Proposal(Operation("delete"), snapshot.version, remove_parts=["p0"]))
    assert snapshot.table("paths", ["path"]).to_pydict() == {"segment": [0], "part": [1], "path": ["$.a"]}


def test_index_segments_are_carried() -> None:
    store = memory()
    snapshot = new_table(store)
    entry = {"segment_id": "i1", "index": "by_user", "covers": ["p"]}
    snapshot = commit(store, Proposal(Operation("index"), 0, add_index=[entry, {"segment_id": "i2"}]))
    for _ in range(20):
        snapshot = append(store, snapshot)
    snapshot = commit(store, Proposal(Operation("index"), snapshot.version, remove_index=["i2"]))
    forget()
    assert load(store).index_segments.to_pylist() == [
        {"segment_id": "i1", "version": 1, "detail": '{"segment_id": "i1", "index": "by_user", "covers": ["p"]}'}
    ]
    assert load(store, 1).index_segments["segment_id"].to_pylist() == ["i1", "i2"]
