"""Opening by version and by time, and the history."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest

from tamis.errors import InvalidInput, NotFound
from tamis.storage.commit_log import HISTORY, Operation, Proposal, ReadSet, StreamEpoch, commit, history, load
from tamis.storage.object_store import Store
from tamis.world import SeededWorld, use
from tests.storage.making import append, forget, manifest, memory, new_table, part_ids

LENGTH = 37


@pytest.fixture(scope="module")
def store() -> Store:
    store = memory()
    with use(SeededWorld(3)):
        snapshot = new_table(store)
        for _ in range(LENGTH):
            snapshot = append(store, snapshot)
    return store


@pytest.mark.parametrize("version", [0, 1, 16, LENGTH])
def test_every_version_can_be_opened(store: Store, version: int) -> None:
    forget()
    snapshot = load(store, version)
    assert (snapshot.version, len(part_ids(snapshot))) == (version, version)


@pytest.mark.parametrize("version", [LENGTH + 1, 10**30])
def test_a_version_that_is_not_there(store: Store, version: int) -> None:
    with pytest.raises(NotFound) as caught:
        load(store, version)
    assert (caught.value.code, caught.value.name) == ("VERSION_NOT_FOUND", str(version))
    assert f"0 to {LENGTH}" in caught.value.remedy


@pytest.mark.parametrize("version", [-1, True, "3", 2.0])
def test_what_is_no_version(store: Store, version: object) -> None:
    with pytest.raises(InvalidInput) as caught:
        load(store, version)  # type: ignore[arg-type]
    assert caught.value.code == "BAD_VERSION"


def test_the_latest_version_not_later_than_a_time(store: Store) -> None:
    times = [load(store, v).timestamp_micros for v in range(LENGTH + 1)]
    assert times == sorted(set(times))
    for version, micros in enumerate(times):
        assert load(store, timestamp_micros=micros).version == version
        assert load(store, timestamp_micros=micros + 1).version in {version, version + 1}
        if version:
            assert load(store, timestamp_micros=micros - 1).version == version - 1
    assert load(store, timestamp_micros=2**62).version == LENGTH


@pytest.mark.parametrize("before", [1, 10**17, 10**30])
def test_before_the_table_there_is_nothing(store: Store, before: int) -> None:
    with pytest.raises(NotFound) as caught:
        load(store, timestamp_micros=load(store, 0).timestamp_micros - before)
    assert caught.value.code == "VERSION_NOT_FOUND"
    assert datetime.fromtimestamp(load(store, 0).timestamp_micros / 1e6, UTC).isoformat()[:19] in caught.value.remedy


def test_one_of_version_and_time(store: Store) -> None:
    with pytest.raises(InvalidInput):
        load(store, 1, 1)


def test_history_is_newest_first(store: Store) -> None:
    table = history(store)
    assert table.schema.equals(HISTORY)
    assert table["version"].to_pylist() == list(range(LENGTH, -1, -1))
    assert history(store, 3).equals(table.slice(0, 3))
    assert history(store, 0).num_rows == 0


def test_what_history_says_of_a_commit() -> None:
    store = memory()
    new_table(store)
    operation = Operation("merge", {"on": "a = b", "nested": {"x": [1]}}, {"rows_inserted": 3}, StreamEpoch("q", 4))
    made = commit(store, Proposal(operation, 0, reads=ReadSet("ts > 1"), add=[manifest(2)], operation_id="op"))
    row = history(store, 1).to_pylist()[0]
    assert json.loads(row.pop("parameters")) == operation.parameters
    assert row == {
        "version": 1,
        "timestamp": datetime.fromtimestamp(made.timestamp_micros // 10**6, UTC).replace(
            microsecond=made.timestamp_micros % 10**6
        ),
        "operation": "merge",
        "metrics": [("rows_inserted", 3)],
        "read_version": 0,
        "blind_append": False,
        "data_change": True,
        "operation_id": "op",
        "schema_id": 0,
        "filter": "ts > 1",
        "stream_query": "q",
        "stream_epoch": 4,
        "parts_added": 2,
        "rows_added": 200,
        "bytes_added": 1600,
        "changes": [],
    }


def test_no_table_has_no_history() -> None:
    with pytest.raises(NotFound):
        history(memory())
