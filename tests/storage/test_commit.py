"""A commit: once, in order, at a time that never goes back, and recognised when it is proposed again."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from tamis.errors import Conflict, InvalidInput, NotFound
from tamis.storage.commit_log import Operation, Proposal, StreamEpoch, commit, history, load
from tamis.storage.commit_log.stream_epochs import REMEMBERED
from tamis.storage.object_store import Store
from tamis.world import SeededWorld, World, new_id, use
from tests.storage.making import HEAD, append, forget, manifest, memory, new_table, part_ids


@pytest.fixture
def store() -> Store:
    store = memory()
    new_table(store)
    return store


def test_versions_count_up(store: Store) -> None:
    first = append(store, load(store))
    second = append(store, first)
    assert (first.version, second.version, load(store).version) == (1, 2, 2)
    assert load(store).segments["version"].to_pylist() == [1, 2]


def test_a_stale_reader_can_append(store: Store) -> None:
    start = load(store)
    for _ in range(5):
        append(store, start, operation_id=new_id())
    assert load(store).segments["version"].to_pylist() == [1, 2, 3, 4, 5]


def test_many_manifests_are_one_segment(store: Store) -> None:
    snapshot = append(store, load(store), manifest(2, low=0), manifest(0), manifest(1, low=50))
    assert snapshot.segments.select(["parts", "rows"]).to_pylist() == [{"parts": 3, "rows": 300}]
    assert snapshot.parts(ids={1})["1|long|lo"].to_pylist() == [0, 10, 50]
    assert snapshot.segment_evidence({1})["1|long|hi"].to_pylist() == [59]


def test_a_commit_without_parts_has_no_segment(store: Store) -> None:
    snapshot = append(store, load(store), manifest(0))
    assert (snapshot.version, len(snapshot.segments), len(snapshot.parts())) == (1, 0, 0)


def test_parts_of_several_schemas_have_no_common_one(store: Store) -> None:
    snapshot = commit(store, Proposal(Operation("compact"), 0, add=[manifest(1), manifest(1, schema_id=1)]))
    assert snapshot.segments["schema_id"].to_pylist() == [None]


def test_a_manifest_that_lacks_a_column_is_refused(store: Store) -> None:
    with pytest.raises(InvalidInput) as caught:
        append(store, load(store), manifest(1).drop_columns(["checksum"]))
    assert (caught.value.code, caught.value.name) == ("BAD_MANIFEST", "checksum")
    doubled = manifest(1).append_column("bytes", pa.array([1], pa.int64()))
    with pytest.raises(InvalidInput, match="duplicate column 'bytes'") as caught:
        append(store, load(store), doubled)
    assert (caught.value.code, caught.value.name) == ("BAD_MANIFEST", "bytes")
    assert load(store).version == 0


class Clock(World):
    """A clock that is set by hand."""

    def __init__(self, micros: int) -> None:
        self.micros = micros

    def now_micros(self) -> int:
        return self.micros


def test_timestamps_never_go_back(store: Store) -> None:
    start = load(store).timestamp_micros
    times = []
    for now in (start + 10**6, start + 5, start + 10**6, 0, start + 2 * 10**6):
        with use(Clock(now)):
            times.append(append(store, load(store)).timestamp_micros - start)
    assert times == [10**6, 10**6 + 1, 10**6 + 2, 10**6 + 3, 2 * 10**6]


@pytest.mark.parametrize("blind", [True, False])
def test_a_proposal_made_twice_has_effect_once(store: Store, blind: bool) -> None:
    proposal = Proposal(Operation("append"), 0, blind_append=blind, add=[manifest(1)], operation_id=new_id())
    first = commit(store, proposal)
    for _ in range(20):
        append(store, load(store))
    again = commit(store, proposal)
    assert again.version == first.version == 1
    assert again.head == first.head
    assert load(store).version == 21
    assert len(set(part_ids(load(store)))) == 21


def test_each_proposal_without_an_id_is_another(store: Store) -> None:
    proposal = Proposal(Operation("append"), 0, blind_append=True, add=[manifest(1)])
    assert [commit(store, proposal).version, commit(store, proposal).version] == [1, 2]
    ids = [row["operation_id"] for row in history(store).to_pylist()]
    assert len(set(ids)) == 3


def test_replace_all_replaces_whatever_is_there(store: Store) -> None:
    start = append(store, load(store))
    append(store, start)
    after = commit(store, Proposal(Operation("overwrite"), start.version, add=[manifest(2)], replace_all=True))
    assert after.segments["version"].to_pylist() == [3]
    assert commit(store, Proposal(Operation("truncate"), 3, replace_all=True)).segments.num_rows == 0


def test_removing_parts_and_segments(store: Store) -> None:
    snapshot = append(store, load(store), manifest(3, ids=["a0", "a1", "a2"]))
    snapshot = append(store, snapshot, manifest(2, ids=["b0", "b1"]))
    snapshot = append(store, snapshot, manifest(1, ids=["c0"]))
    segment = snapshot.segments["segment_id"].to_pylist()[2]
    after = commit(
        store,
        Proposal(
            Operation("x"), 3, remove_parts=["b0", "a1", "b1"], remove_segments=[segment], add=[manifest(1, ids=["d0"])]
        ),
    )
    assert part_ids(after) == ["a0", "a2", "d0"]
    assert len(after.commit.remove_segments) == 2  # the one named, and the one whose parts are all gone
    assert after.removed_parts["part_id"].to_pylist() == ["a1"]
    assert part_ids(load(store, 3)) == ["a0", "a1", "a2", "b0", "b1", "c0"]


@pytest.mark.parametrize(
    ("change", "code", "name"),
    [
        ({"remove_parts": ["a0", "nope"]}, "UNKNOWN_PART", "nope"),
        ({"remove_segments": ["nope"]}, "UNKNOWN_SEGMENT", "nope"),
        ({"head": replace(HEAD, table_id="another")}, "WRONG_TABLE", ""),
    ],
)
def test_what_is_not_there_cannot_be_changed(store: Store, change: dict[str, Any], code: str, name: str) -> None:
    append(store, load(store), manifest(1, ids=["a0"]))
    with pytest.raises(InvalidInput) as caught:
        commit(store, replace(Proposal(Operation("x"), 1), **change))
    assert caught.value.code == code
    assert caught.value.name == (name or store.url)
    assert load(store).version == 1


def test_a_removed_part_cannot_be_removed_again(store: Store) -> None:
    append(store, load(store), manifest(2, ids=["a0", "a1"]))
    commit(store, Proposal(Operation("x"), 1, remove_parts=["a0"]))
    with pytest.raises(InvalidInput):
        commit(store, Proposal(Operation("x"), 2, remove_parts=["a0"]))


def test_without_a_table_nothing_can_be_committed() -> None:
    with pytest.raises(NotFound) as caught:
        append(memory(), new_table(memory()))
    assert caught.value.code == "TABLE_NOT_FOUND"


def test_a_version_that_is_not_there_yet_is_a_conflict(store: Store) -> None:
    with pytest.raises(Conflict) as caught:
        commit(store, Proposal(Operation("x"), 7))
    assert caught.value.code == "CONFLICT_REPLACED"


def test_a_table_made_in_its_place_is_another(store: Store) -> None:
    before = load(store)
    for entry in store.list():
        store.delete(entry.path)
    append(store, new_table(store))
    change = Proposal(Operation("append"), 0, blind_append=True, add=[manifest(1)], table_id=before.head.table_id)
    with pytest.raises(Conflict) as caught:
        commit(store, change)
    assert caught.value.code == "CONFLICT_REPLACED"
    assert commit(store, replace(change, table_id=load(store).head.table_id)).version == 2


def test_a_new_head_is_found_through_later_commits(store: Store) -> None:
    head = replace(load(store).head, properties={"a": "b"}, comment="c")
    snapshot = commit(store, Proposal(Operation("properties"), 0, head=head))
    for _ in range(20):
        snapshot = append(store, snapshot)
    forget()
    assert load(store).head == head
    assert load(store).commit.head_version == 1
    assert load(store, 0).head.properties == {}


def test_the_same_seed_gives_the_same_log() -> None:
    def run() -> list[bytes]:
        store = memory()
        with use(SeededWorld(7)):
            snapshot = new_table(store)
            for _ in range(18):
                snapshot = append(store, snapshot)
        return [store.get(e.path) for e in store.list("_tamis")]

    assert run() == run()


def epoch(store: Store, query: str, number: int, batch_millis: int | None = None) -> int:
    snapshot = load(store)
    operation = Operation("append", stream=StreamEpoch(query, number, batch_millis))
    return commit(
        store, Proposal(operation, snapshot.version, blind_append=True, add=[manifest(1)], operation_id=new_id())
    ).version


def test_an_epoch_is_committed_once(store: Store) -> None:
    assert [epoch(store, "q", n) for n in (0, 1, 1, 0)] == [1, 2, 2, 2]
    append(store, load(store))
    assert epoch(store, "q", 1) == 3
    assert epoch(store, "other", 1) == 4
    assert epoch(store, "q", 5) == 5
    assert epoch(store, "other", 1) == 5
    assert len(part_ids(load(store))) == 5
    streams = history(store).select(["version", "stream_query", "stream_epoch"]).to_pylist()
    assert streams[0] == {"version": 5, "stream_query": "q", "stream_epoch": 5}
    assert streams[2] == {"version": 3, "stream_query": None, "stream_epoch": None}


def test_another_batch_under_a_known_epoch_is_refused(store: Store) -> None:
    assert [epoch(store, "q", n, 100 + n) for n in (0, 1, 1)] == [1, 2, 2], "a batch that is repeated keeps its time"
    append(store, load(store))
    for number, millis in ((1, 900), (0, 100), (0, 900)):  # Spark repeats only the last one
        with pytest.raises(InvalidInput, match="'q' up to 1") as caught:
            epoch(store, "q", number, millis)
        assert caught.value.code == "EPOCH_DIFFERS"
    assert epoch(store, "q", 1) == 3, "a writer that does not know the time skips the batch"
    assert epoch(store, "old", 4) == 4
    assert epoch(store, "old", 4, 400) == 4, "a table of an earlier release does not know the time"
    assert epoch(store, "old", 3, 400) == 4
    assert epoch(store, "q", 2, 102) == 5


def test_epochs_are_found_at_any_length_at_the_same_cost(store: Store) -> None:
    epoch(store, "q", 0)
    costs = []
    for _ in range(2):
        for _ in range(20):
            append(store, load(store))
        forget()
        view = store.with_new_counters()
        snapshot = commit(
            view, Proposal(Operation("append", stream=StreamEpoch("q", 0)), 1, blind_append=True, add=[manifest(1)])
        )
        costs.append(snapshot.io.requests)
    assert costs[0] == costs[1] <= 7


@pytest.mark.merge
def test_only_so_many_queries_are_remembered(store: Store) -> None:
    for n in range(REMEMBERED + 1):
        epoch(store, f"q{n}", 3)
        if n == 100:
            epoch(store, "q0", 4)
    version = load(store).version
    assert epoch(store, "q0", 4) == version  # it committed again since, so it was not the oldest
    assert epoch(store, "q2", 3) == version
    assert epoch(store, "q1", 3) == version + 1  # forgotten


def test_statistics_are_of_the_parts_alone(store: Store) -> None:
    add = manifest(2).append_column("note", pa.array(["x", "y"]))
    snapshot = append(store, load(store), add)
    assert "note" not in snapshot.parts(ids={1}).column_names
    assert snapshot.table("parts", ["note"])["note"].to_pylist() == ["x", "y"]
