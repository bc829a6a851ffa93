"""Rollups: few tiles cover any log, and the table reads the same with and without them, whatever state they are in."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamis.storage.commit_log import Operation, Proposal, Snapshot, commit, load, rollups
from tamis.storage.commit_log.deletion_vectors import read_bitmap, serialize_vector
from tamis.storage.commit_log.rollups import FAN_OUT, Tile, covering_tiles
from tamis.storage.object_store import Store
from tamis.storage.object_store.checked_json import seal_json, unseal_json
from tests.storage.making import append, copy, forget, manifest, memory, new_table

LENGTH = 280


@given(st.integers(0, 10**7))
def test_tiles_cover_the_log_once_in_order(count: int) -> None:
    cover = covering_tiles(count)
    ends = [tile.first + FAN_OUT**tile.level for tile in cover]
    assert [tile.first for tile in cover] == [0, *ends][: len(cover)]
    assert (ends[-1] if ends else 0) == count
    assert all(tile.first % FAN_OUT**tile.level == 0 for tile in cover)
    assert len(cover) <= (FAN_OUT - 1) * 7


def test_children_make_up_their_tile() -> None:
    assert Tile(512, 2).children == [Tile(512 + 16 * i, 1) for i in range(16)]


@pytest.fixture(scope="module")
def table() -> Store:
    """A table whose history has everything: small and large manifests, removed parts, segments and rows, two full overwrites; rollups inline and in files."""
    store = memory()
    snapshot = new_table(store)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rollups, "INLINE_BYTES", 1_700)
        while snapshot.version < LENGTH:
            snapshot = step(store, snapshot)
    return store


def fresh(deletion: bytes | None, version: int) -> np.ndarray:
    """Some row ordinals that are not deleted yet; all that are left, now and then."""
    left = np.array(sorted(set(range(100)) - set(read_bitmap(deletion) if deletion else ())))
    return left if version % 15 == 1 else left[version % 3 :: 1 + version % 13]


def step(store: Store, snapshot: Snapshot) -> Snapshot:
    version = snapshot.version
    if version in {37, 100}:
        return commit(
            store, Proposal(Operation("overwrite"), version, add=[manifest(3, low=version)], replace_all=True)
        )
    if version % 60 == 7:
        return append(store, snapshot, manifest(1_000, low=version))
    if version % 5 == 1:
        parts = snapshot.parts()
        chosen = [0, version % len(parts)]
        gone = {
            parts["part_id"][at].as_py(): serialize_vector(fresh(parts["deletion"][at].as_py(), version))
            for at in chosen
        }
        return commit(store, Proposal(Operation("delete"), version, delete_rows=gone))
    if version % 9 == 5:
        ids = snapshot.parts()["part_id"].to_pylist()
        return commit(store, Proposal(Operation("delete"), version, remove_parts=ids[: 1 + version % 4]))
    if version % 31 == 3:
        gone = snapshot.segments["segment_id"].to_pylist()[-1:]
        return commit(
            store,
            Proposal(
                Operation("compact"), version, remove_segments=gone, add=[manifest(2, low=version)], data_change=False
            ),
        )
    return append(store, snapshot, manifest(1 + version % 4, low=version))


@pytest.fixture
def store(table: Store) -> Iterator[Store]:
    forget()
    yield copy(table)
    forget()


def content(store: Store, version: int | None = None) -> tuple[list[object], ...]:
    """All that a reader can see."""
    forget()
    snapshot = load(store, version)
    evidence = snapshot.segment_evidence({1, 2})
    tables = (
        snapshot.segments,
        evidence.select(sorted(evidence.column_names)),
        snapshot.parts(ids={1}),
        snapshot.removed_parts,
    )
    return tuple(t.to_pylist() for t in tables)


def rollup_paths(store: Store, end: str = "") -> list[str]:
    return [e.path for e in store.list("_tamis/rollup") if e.path.endswith(end)]


@pytest.mark.merge
def test_rollups_are_there_and_are_used(store: Store) -> None:
    descriptors = rollup_paths(store, ".json")
    assert set(descriptors) == {t.path for n in range(16, LENGTH + 2, 16) for t in covering_tiles(n) if t.level}
    assert 8 <= len(rollup_paths(store, ".parquet")) < 2 * len(descriptors)
    forget()
    snapshot = load(store)
    snapshot.parts(ids={1})
    assert snapshot.io.requests < 60


@pytest.mark.slow
@pytest.mark.push_cases(5)
@pytest.mark.parametrize("version", [0, 14, 15, 16, 37, 38, 39, 100, 101, 102, 255, 256, LENGTH])
def test_the_same_without_any(store: Store, version: int) -> None:
    before = content(store, version)
    for path in rollup_paths(store):
        store.delete(path)
    assert content(store, version) == before


def test_what_every_version_holds(store: Store) -> None:
    """Against the plainest reading of the log there is."""
    expected: dict[str, list[str]] = {}
    lost: dict[str, int] = {}
    forget()
    for version in range(LENGTH + 1):
        commit_ = load(store, version).commit
        if commit_.remove_all:
            expected.clear()
        for gone in commit_.remove_segments:
            del expected[gone]
        for part in commit_.remove_parts:
            expected[part.segment_id].remove(part.part_id)
            if not expected[part.segment_id]:
                del expected[part.segment_id]
        if commit_.deletions:
            thinned = commit_.deletions.read(store, lambda _: ["part_id", "rows"])
            lost |= dict(zip(thinned["part_id"].to_pylist(), thinned["rows"].to_pylist(), strict=True))
        if commit_.segment:
            names = commit_.segment.tables["parts"].read(store, lambda _: ["part_id"])["part_id"].to_pylist()
            expected[commit_.segment.segment_id] = names
        if version % 7 == 0 or version in {37, 38, 100, 101}:
            snapshot = load(store, version)
            assert snapshot.segments["segment_id"].to_pylist() == list(expected)
            assert snapshot.parts()["part_id"].to_pylist() == [name for names in expected.values() for name in names]
            assert snapshot.segments["parts"].to_pylist() == [len(names) for names in expected.values()]
            assert snapshot.segments["rows"].to_pylist() == [
                sum(100 - lost.get(name, 0) for name in names) for names in expected.values()
            ]


@pytest.mark.slow
@pytest.mark.parametrize("damage", ["delete", "empty", "half", "byte", "other"])
@pytest.mark.push_cases(1)
def test_each_damaged_object_alone(store: Store, damage: str) -> None:
    before = content(store)
    for path in rollup_paths(store)[::3] + rollup_paths(store, "parquet"):
        data = store.get(path)
        if damage == "delete":
            store.delete(path)
        else:
            store.put(
                path,
                {
                    "empty": b"",
                    "half": data[: len(data) // 2],
                    "byte": _flip(data),
                    "other": seal_json("rollup", {"x": 1}),
                }[damage],
            )
        assert content(store) == before, path
        store.put(path, data)


def _flip(data: bytes) -> bytes:
    at = len(data) // 2
    return data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]


@pytest.mark.parametrize("change", [{"table_id": "another"}, {"first": 16}, {"level": 2}])
def test_a_rollup_of_something_else_is_ignored(store: Store, change: dict[str, object]) -> None:
    before = content(store)
    path = Tile(256, 1).path
    store.put(path, seal_json("rollup", unseal_json("rollup", store.get(path), path) | change | {"reset": True}))
    assert content(store) == before


def test_a_store_that_cannot_write_rollups_fails_no_commit(store: Store) -> None:
    class Stubborn(Store):
        def put(self, path: str, data: bytes) -> None:
            super().put("rollup-refused/../x" if "rollup" in path else path, data)

        def put_if_absent(self, path: str, data: bytes) -> bool:
            return super().put_if_absent("../x" if "rollup" in path else path, data)

    before = rollup_paths(store)
    stubborn = Stubborn(store.location, {})
    snapshot = load(stubborn)
    for version in range(LENGTH + 1, LENGTH + 20):
        snapshot = append(stubborn, snapshot)
        assert snapshot.version == version
    assert rollup_paths(store) == before


def test_later_commits_make_up_for_missing_and_damaged_ones(store: Store) -> None:
    store.delete(Tile(256, 1).path)
    store.put(Tile(0, 2).path, b"garbage")
    forget()
    snapshot = load(store)
    while (snapshot.version + 1) % 16:
        snapshot = append(store, snapshot)
    forget()
    for tile in (Tile(0, 2), Tile(256, 1), Tile(272, 1)):
        assert rollups.read(store, snapshot.head.table_id, tile) is not None
    before = content(store)
    for path in rollup_paths(store):
        store.delete(path)
    assert content(store) == before


def test_a_rollup_too_large_is_not_built(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    before = content(store)
    for path in rollup_paths(store):
        store.delete(path)
    monkeypatch.setattr(rollups, "LARGEST", 1_000)
    table_id = load(store).head.table_id
    rollups.write(store, table_id, Tile(0, 1), None)
    assert rollup_paths(store) == []
    assert content(store) == before


def test_a_defect_in_writing_is_a_warning_and_fails_no_commit(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(rollups, "write", broken)
    snapshot = load(store)
    while (snapshot.version + 2) % 16:
        snapshot = append(store, snapshot)
    with pytest.warns(RuntimeWarning, match="could not be written"):
        snapshot = append(store, snapshot)
    forget()
    assert load(store).version == snapshot.version


def test_columns_that_come_later_are_unknown_before(store: Store) -> None:
    snapshot = load(store)
    while snapshot.version < LENGTH + 40:
        add = manifest(2, low=snapshot.version)
        if snapshot.version % 3 == 0:
            add = add.append_column("3|long|lo", pa.array([1, 2])).drop_columns(["2|string|lo", "2|string|hi"])
        snapshot = append(store, snapshot, add)
    before = content(store)
    for path in rollup_paths(store):
        store.delete(path)
    assert content(store) == before
    forget()
    found = load(store).parts(ids={3})["3|long|lo"].to_pylist()
    assert set(found) == {1, 2, None}
