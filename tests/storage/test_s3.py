"""The same table on S3, as a small server in this process speaks it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tamis.errors import AlreadyExists, CorruptData, NotFound, StoreUnavailable
from tamis.storage.commit_log import history, load
from tamis.storage.object_store import Store, open_store
from tests.storage.fake_s3 import FakeS3, serve
from tests.storage.making import append, forget, manifest, new_table, part_ids

PLACE = "s3://bucket/lake/with space/ü'%20/t"


@pytest.fixture
def s3() -> Iterator[tuple[dict[str, Any], type[FakeS3]]]:
    with serve(FakeS3) as server:
        yield server


@pytest.fixture
def store(s3: tuple[dict[str, Any], type[FakeS3]]) -> Store:
    return open_store(PLACE, s3[0])


def test_what_lies_near_depends_on_what_a_request_costs(store: Store, s3: tuple[dict[str, Any], type[FakeS3]]) -> None:
    """The same ranges: on a disk each is read by itself, over a network those are one request that lie within a megabyte of each other."""
    data, ranges = bytes(range(256)) * 12_000, [(0, 10), (10_000, 10), (200_000, 10), (900_000, 10), (2_500_000, 10)]
    found = {}
    for kind, place in (("local", open_store("memory://near")), ("remote", store)):
        place.put("x", data)
        view, before = place.with_new_counters(), len(s3[1].asked)
        assert view.get_ranges("x", ranges) == [data[at : at + size] for at, size in ranges]
        found[kind] = (view.io.requests, view.io.bytes, len(s3[1].asked) - before)
    assert found == {"local": (4, 10_010 + 30, 0), "remote": (2, 900_010 + 10, 2)}


def test_objects(store: Store, s3: tuple[dict[str, Any], type[FakeS3]]) -> None:
    assert store.put_if_absent("a b/ü", b"first")
    assert not store.put_if_absent("a b/ü", b"second")
    assert store.get("a b/ü") == b"first"
    assert list(s3[1].objects) == ["lake/with space/ü'%20/t/a b/ü"]
    assert store.get_ranges("a b/ü", [(3, 2), (0, 2)]) == [b"st", b"fi"]
    assert [(e.path, e.size) for e in store.list()] == [("a b/ü", 5)]
    assert store.list_folder() == (["a b"], [])
    with pytest.raises(CorruptData):
        store.get_range("a b/ü", 7, 1)
    store.delete("a b/ü")
    with pytest.raises(NotFound):
        store.get("a b/ü")


@pytest.mark.parametrize("size", [10, 25_000_000])
def test_a_written_object_is_there_when_closed(store: Store, size: int) -> None:
    with store.writer("x") as out:
        out.write(bytes(size))
        assert store.list() == []
    assert store.size("x") == size
    forgotten = store.writer("y")
    forgotten.write(bytes(size))
    forgotten.abort()
    assert [e.path for e in store.list()] == ["x"]


def test_a_table(store: Store) -> None:
    snapshot = new_table(store)
    for n in range(35):
        snapshot = append(store, snapshot, manifest(1_500 if n == 3 else 2, low=n))
    forget()
    found = load(store)
    assert len(found.parts(ids={1})) == 1_500 + 34 * 2
    assert found.version == 35
    assert len(history(store)) == 36
    with pytest.raises(AlreadyExists):
        new_table(store)


def test_opening_asks_little(store: Store, s3: tuple[dict[str, Any], type[FakeS3]]) -> None:
    snapshot = new_table(store)
    for n in range(35):
        snapshot = append(store, snapshot, manifest(2, low=n))
    forget()
    s3[1].asked.clear()
    snapshot = load(store)
    assert len(s3[1].asked) == 6
    snapshot.segment_evidence({1})
    assert len(s3[1].asked) == 6 + 2 + 2  # two rollups, and the commits since but the newest
    assert snapshot.io.requests == len(s3[1].asked)
    s3[1].asked.clear()
    append(store, load(store))
    assert len(s3[1].asked) == 4 + 4 + 3  # opened; looked again; the commit, the one before it, and the hint


def test_an_answer_lost_on_the_way_is_recognised(
    store: Store, s3: tuple[dict[str, Any], type[FakeS3]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The client below us repeats a put whose answer was lost, and meets its own object."""
    snapshot = new_table(store)
    original = FakeS3.do_PUT
    lost = ["00000000000000000001.json"]

    def lose(handler: FakeS3) -> None:
        if lost and lost[0] in handler.path:
            lost.clear()
            handler.answer = lambda *_, **__: handler.connection.close()  # type: ignore[method-assign]
            handler.close_connection = True
        original(handler)

    monkeypatch.setattr(s3[1], "do_PUT", lose, raising=False)
    snapshot = append(store, snapshot)
    assert not lost
    assert (snapshot.version, len(part_ids(snapshot))) == (1, 1)


def test_a_store_that_ignores_conditions_is_refused(
    store: Store, s3: tuple[dict[str, Any], type[FakeS3]], monkeypatch: pytest.MonkeyPatch
) -> None:
    original = FakeS3.do_PUT

    def careless(handler: FakeS3) -> None:
        del handler.headers["If-None-Match"]
        original(handler)

    monkeypatch.setattr(s3[1], "do_PUT", careless, raising=False)
    with pytest.raises(StoreUnavailable) as caught:
        new_table(store)
    assert caught.value.code == "NOT_SUPPORTED"
    assert s3[1].objects == {}


def test_bad_credentials_are_said_at_once(s3: tuple[dict[str, Any], type[FakeS3]]) -> None:
    store = open_store(PLACE, {**s3[0], "access_key_id": "wrong"})
    for call in (lambda: load(store), lambda: new_table(store)):
        with pytest.raises(StoreUnavailable) as caught:
            call()
        assert caught.value.code == "ACCESS_DENIED"
        assert PLACE in caught.value.name
        assert "credentials" in caught.value.remedy
        assert "secret-value" not in str(caught.value)
