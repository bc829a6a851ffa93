"""Deletion vectors: what is deleted stays deleted, at every version, whether the vector stands in its commit, in a file or in a rollup."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from types import SimpleNamespace

import numpy as np
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamis.errors import CorruptData, InvalidInput
from tamis.storage.commit_log import Operation, Proposal, Snapshot, commit, deletion_vectors, features, load
from tamis.storage.commit_log.deletion_vectors import FOLDER, read_bitmap, row_ordinals, serialize_vector
from tamis.storage.object_store import Store
from tamis.storage.object_store.metadata_files import columns_from_json
from tests.storage.faults import FaultyStore, Plan, single_faults
from tests.storage.making import append, copy, forget, manifest, memory, new_table

Rows = dict[str, set[int]]


def deletion(snapshot: Snapshot, rows: dict[str, list[int]], operation_id: str = "") -> Proposal:
    gone = {part: serialize_vector(np.array(ids)) for part, ids in rows.items()}
    return Proposal(Operation("delete"), snapshot.version, delete_rows=gone, operation_id=operation_id)


def delete(store: Store, snapshot: Snapshot, **rows: list[int]) -> Snapshot:
    return commit(store, deletion(snapshot, rows))


def deleted(snapshot: Snapshot) -> Rows:
    """The deleted rows of every live part, from what a reader is given; counts checked on the way."""
    forget()
    parts = load(snapshot.store, snapshot.version).parts()
    found = {
        row["part_id"]: set(read_bitmap(row["deletion"])) if row["deletion"] else set() for row in parts.to_pylist()
    }
    assert [len(found[i]) for i in found] == parts["deleted"].to_pylist()
    live = sum(row["rows"] - len(found[row["part_id"]]) for row in parts.to_pylist())
    assert pc.sum(snapshot.segments["rows"]).as_py() in {live, None}
    assert 0 not in snapshot.segments["rows"].to_pylist()
    return found


@pytest.fixture
def store() -> Iterator[Store]:
    made = memory()
    append(made, new_table(made), manifest(3, ids=["a", "b", "c"]))
    yield made
    forget()


def test_rows_go_and_the_part_stays(store: Store) -> None:
    before = load(store)
    after = delete(store, before, a=[3, 5], c=[99])
    assert deleted(after) == {"a": {3, 5}, "b": set(), "c": {99}}
    assert after.segments.select(["rows", "parts", "physical_rows"]).to_pylist() == [
        {"rows": 297, "parts": 3, "physical_rows": 300}
    ]
    assert deleted(delete(store, after, a=[0])) == {"a": {0, 3, 5}, "b": set(), "c": {99}}
    assert deleted(before) == {"a": set(), "b": set(), "c": set()}


def test_a_part_that_loses_its_last_row_is_gone(store: Store) -> None:
    first = delete(store, load(store), b=list(range(50)), a=[1])
    second = delete(store, first, b=list(range(50, 100)))
    assert deleted(second) == {"a": {1}, "c": set()}
    assert [p.part_id for p in second.commit.remove_parts] == ["b"]
    assert second.commit.deletions is None
    last = delete(store, second, a=[0, *range(2, 100)], c=list(range(100)))
    assert deleted(last) == {}
    assert last.segments.num_rows == 0


def test_two_that_started_from_one_version_both_delete(store: Store) -> None:
    base = load(store)
    delete(store, base, a=[1], b=[1])
    after = delete(store, base, a=[2], c=[2])
    assert deleted(after) == {"a": {1, 2}, "b": {1}, "c": {2}}
    emptied = [(base, {"a": [0, *range(3, 60)]}), (base, {"a": list(range(60, 100))})]
    for at, rows in emptied:
        after = delete(store, at, **rows)
    assert deleted(after) == {"b": {1}, "c": {2}}  # neither of the two emptied part a alone


@pytest.mark.parametrize(
    ("rows", "code"),
    [({"z": [1]}, "UNKNOWN_PART"), ({"a": [100]}, "UNKNOWN_ROW"), ({"a": [7]}, "UNKNOWN_ROW")],
    ids=str,
)
def test_what_is_not_there_is_refused(store: Store, rows: dict[str, list[int]], code: str) -> None:
    base = delete(store, load(store), a=[7])
    with pytest.raises(InvalidInput) as caught:
        delete(store, base, **rows)
    assert (caught.value.code, load(store).version) == (code, base.version)


def test_large_vectors_are_a_file(store: Store) -> None:
    rows = np.random.default_rng(1).permutation(2_000_000)
    base = append(store, load(store), manifest(2, rows=2_000_000, ids=["x", "y"]))
    gone = {"x": serialize_vector(rows[:100_000]), "y": serialize_vector(rows[:9])}
    after = commit(store, Proposal(Operation("delete"), base.version, delete_rows=gone))
    assert len(store.list(FOLDER)) == 1
    assert len(store.get(f"_tamis/log/{after.version:020}.json")) < 4_000
    more = commit(
        store,
        Proposal(
            Operation("delete"),
            after.version,
            delete_rows={"x": serialize_vector(rows[100_000:100_002]), "a": serialize_vector(np.array([1]))},
        ),
    )
    for snapshot, count in ((after, 100_000), (more, 100_002)):
        found = deleted(snapshot)
        assert (found["x"], found["y"]) == (set(rows[:count].tolist()), set(rows[:9].tolist()))


def test_a_reader_must_know(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    base = load(store)
    assert base.head.reader_features == ()
    after = delete(store, base, a=[1])
    assert after.head.reader_features == ("deletion-vectors",)
    assert delete(store, after, a=[2]).commit.head is None
    monkeypatch.setattr(features, "READER_FEATURES", frozenset())
    forget()
    with pytest.raises(InvalidInput) as caught:
        load(store)
    assert (caught.value.code, caught.value.name) == ("UNSUPPORTED_FEATURE", "deletion-vectors")
    assert load(store, base.version).version == base.version


def test_a_garbled_vector_is_named() -> None:
    with pytest.raises(CorruptData) as caught:
        read_bitmap(b"garbage", "p1")
    assert (caught.value.code, caught.value.name) == ("BAD_DELETIONS", "p1")


def test_every_fault_at_every_call(store: Store) -> None:
    """Refused, lost, late or answered twice: the rows are deleted once, or not at all, and proposing the same again settles it."""

    def run(plan: Plan) -> Store:
        twin = copy(store)
        faulty = FaultyStore(twin, plan)
        forget()
        with contextlib.suppress(OSError):
            commit(faulty, deletion(load(twin), {"a": [1, 2]}, "mine"))
        plan.settle()
        return twin

    fine = Plan.none()
    run(fine)
    for index, fault in single_faults(fine):
        twin = run(Plan.at(index, fault))
        forget()
        assert deleted(load(twin))["a"] in (set(), {1, 2})
        again = Proposal(
            Operation("delete"), 1, delete_rows={"a": serialize_vector(np.array([1, 2]))}, operation_id="mine"
        )
        assert deleted(commit(twin, again)) == {"a": {1, 2}, "b": set(), "c": set()}
        assert load(twin).version == 2


STEPS = st.lists(
    st.tuples(st.sampled_from(["append", "delete", "delete", "delete", "remove", "stale"]), st.integers(0, 10**6)),
    max_size=40,
)


@pytest.mark.slow
@given(STEPS)
def test_as_a_plain_model(steps: list[tuple[str, int]]) -> None:
    """Any order of appends, deletions and removals; every version keeps what it had, rollups included."""
    store = memory()
    snapshot = new_table(store)
    model: Rows = {}
    history: list[tuple[Snapshot, Rows]] = [(snapshot, {})]
    for what, dice in steps:
        base = history[-2][0] if what == "stale" and len(history) > 1 else snapshot
        left = {part: set(range(8)) - rows for part, rows in model.items()}
        old = {row["part_id"] for row in base.parts().to_pylist()}
        choice = [(part, sorted(rows)) for part, rows in left.items() if part in old]
        if what == "append" or not choice:
            snapshot = append(
                store,
                snapshot,
                manifest(1 + dice % 3, rows=8, ids=[f"{len(history)}.{i}" for i in range(1 + dice % 3)]),
            )
            model |= {f"{len(history)}.{i}": set() for i in range(1 + dice % 3)}
        elif what == "remove":
            part = choice[dice % len(choice)][0]
            snapshot = commit(store, Proposal(Operation("delete"), snapshot.version, remove_parts=[part]))
            del model[part]
        else:
            rows = {part: have[dice % len(have) :: 1 + dice % 3] for part, have in choice[dice % 2 :: 2]}
            snapshot = delete(store, base, **rows) if any(rows.values()) else snapshot
            model = {part: gone | set(rows.get(part, ())) for part, gone in model.items()}
            model = {part: gone for part, gone in model.items() if len(gone) < 8}
        history.append((snapshot, {part: set(gone) for part, gone in model.items()}))
    for at, expected in (history[-1], history[len(history) // 2]):
        assert deleted(at) == expected


def test_vectors_and_ordinals_are_inverse() -> None:
    rows = np.array([0, 5, 70_000, 4_000_000_000])
    assert row_ordinals(read_bitmap(serialize_vector(rows))).tolist() == rows.tolist()


def test_a_part_whose_vector_is_missing_is_named(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without its vector, a part would show its deleted rows."""
    rows = np.random.default_rng(1).permutation(2_000_000)
    base = append(store, load(store), manifest(2, rows=2_000_000, ids=["x", "y"]))
    after = delete(store, base, x=rows[:100_000].tolist(), a=[1])

    def without_x(value: dict[str, object]) -> object:
        table = columns_from_json(value).read(store, lambda _: ["part_id", "vector"])
        return SimpleNamespace(read=lambda *_: table.filter(pc.not_equal(table["part_id"], "x")))

    assert set(deleted(after)) == {"a", "b", "c", "x", "y"}
    monkeypatch.setattr(deletion_vectors, "columns_from_json", without_x)
    forget()
    with pytest.raises(CorruptData) as caught:
        load(store).parts()
    assert (caught.value.code, caught.value.name) == ("BAD_DELETIONS", "x")
    assert deleted(base)["x"] == set()
