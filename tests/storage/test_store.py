"""The store's contract, on local disk and in memory alike."""

from __future__ import annotations

import gc
import os
import pickle
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tamis.errors import CorruptData, InvalidInput, NotFound, StoreUnavailable, TamisError
from tamis.storage.object_store import Store, open_store
from tamis.world import new_id

NAMES = ["plain", "with space", 'it\'s "quoted"', "ünïcödé 表", "%20", "a#b?c&d=e", "dots..", "-_~!$()[]{}@,;+"]


@pytest.fixture(params=["local", "memory", "memory-below"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    places: dict[str, str | Path] = {
        "local": tmp_path / "table",
        "memory": f"memory://{new_id()}",
        "memory-below": f"memory://{new_id()}/a b/c",
    }
    return open_store(places[request.param])


def test_objects_come_back_as_they_were_put(store: Store) -> None:
    store.put("a/b", b"one")
    store.put("a/b", b"two")
    assert store.get("a/b") == b"two"
    assert store.size("a/b") == 3
    assert store.get_range("a/b", 1, 2) == b"wo"
    assert store.get_ranges("a/b", [(2, 1), (0, 1), (1, 0)]) == [b"o", b"t", b""]


def test_put_if_absent_succeeds_once(store: Store) -> None:
    assert store.put_if_absent("x", b"first")
    assert not store.put_if_absent("x", b"second")
    assert store.get("x") == b"first"


@pytest.mark.parametrize("call", ["get", "size", "reader", "get_range"])
def test_a_missing_object_is_named(store: Store, call: str) -> None:
    with pytest.raises(NotFound) as caught:
        getattr(store, call)("no/such", *((0, 1) if call == "get_range" else ()))
    assert caught.value.code == "OBJECT_NOT_FOUND"
    assert caught.value.name == f"{store.url}/no/such"


@pytest.mark.parametrize("span", [(2, 5), (3, 1), (9, 1)])
def test_reading_beyond_the_end_is_an_error(store: Store, span: tuple[int, int]) -> None:
    store.put("x", b"abc")
    with pytest.raises(CorruptData) as caught:
        store.get_range("x", *span)
    assert caught.value.code == "TRUNCATED"


def test_listing_is_ordered_and_starts_after(store: Store) -> None:
    for name in ("log/2", "log/1", "log/3", "logs/9", "other"):
        store.put(name, name.encode())
    assert [e.path for e in store.list("log")] == ["log/1", "log/2", "log/3"]
    assert [e.path for e in store.list("log", after="log/1")] == ["log/2", "log/3"]
    assert [e.path for e in store.list()] == ["log/1", "log/2", "log/3", "logs/9", "other"]
    assert store.list("none") == []
    assert store.list("log")[0].size == 5
    folders, objects = store.list_folder()
    assert (list(folders), [e.path for e in objects]) == (["log", "logs"], ["other"])


def test_delete_is_final_and_repeatable(store: Store) -> None:
    store.put("x", b"1")
    store.delete("x")
    store.delete("x")
    with pytest.raises(NotFound):
        store.get("x")


@pytest.mark.parametrize("name", NAMES)
def test_names_of_any_characters(store: Store, name: str) -> None:
    store.put(f"d/{name}", b"x")
    assert store.get(f"d/{name}") == b"x"
    assert [e.path for e in store.list("d")] == [f"d/{name}"]


@pytest.mark.parametrize("name", ["../x", "a/../b", "a//b"])
def test_names_that_leave_the_root_are_refused(store: Store, name: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        store.put(name, b"x")
    assert caught.value.code == "BAD_PATH"


@pytest.mark.parametrize("name", NAMES)
def test_tables_below_folders_of_any_name(tmp_path: Path, name: str) -> None:
    store = open_store(tmp_path / name)
    store.put("x", b"1")
    assert (tmp_path / name / "x").read_bytes() == b"1"


@pytest.mark.parametrize("name", ["plain.parquet", "_log/1", "a=1/b", *NAMES])
def test_ranges_are_those_of_the_whole(store: Store, name: str) -> None:
    """A local file of a plain name is read in this thread; whatever else, by the store's own reader."""
    data = bytes(range(256)) * 400
    store.put(name, data)
    ranges = [(0, 10), (90_000, 300), (50_000, 1), (90_100, 7), (len(data) - 1, 1)]
    assert store.get_ranges(name, ranges) == [data[at : at + size] for at, size in ranges]
    with pytest.raises(CorruptData, match="shorter"):
        store.get_ranges(name, [(0, 10), (len(data) - 1, 2)])
    store.delete(name)
    with pytest.raises(NotFound):
        store.get_ranges(name, ranges)


def test_ranges_of_local_files_take_no_detour(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = open_store(tmp_path)
    store.put("data/x.parquet", b"abc")
    monkeypatch.setattr("obstore.get_ranges", None)
    assert store.get_range("data/x.parquet", 1, 2) == b"bc"
    assert (store.io.requests, store.io.bytes) == (2, 2)


def test_ranges_that_lie_near_are_one_request(store: Store) -> None:
    store.put("x", bytes(100_000))
    view = store.with_new_counters()
    view.get_ranges("x", [(0, 10), (100, 10), (90_000, 10)])
    assert (view.io.requests, view.io.bytes) == (2, 120)


def test_a_reader_serves_pyarrow_and_counts(store: Store) -> None:
    table = pa.table({"a": list(range(1000)), "b": ["x"] * 1000})
    pq.write_table(table, sink := pa.BufferOutputStream())
    store.put("t.parquet", sink.getvalue().to_pybytes())
    view = store.with_new_counters()
    assert pq.read_table(view.reader("t.parquet"), columns=["b"]).column("b").to_pylist() == ["x"] * 1000
    assert view.io.requests >= 2
    assert view.io.bytes > 0
    assert view.reader("t.parquet").read() == store.get("t.parquet")


def test_a_writer_is_visible_when_closed(store: Store) -> None:
    with store.writer("x") as out:
        out.write(b"abc")
        assert store.list() == []
        out.write(b"def")
        assert out.tell() == 6
    assert store.get("x") == b"abcdef"
    with pytest.raises(ValueError, match="closed"):
        out.write(b"more")


@pytest.mark.push_cases(2)
@pytest.mark.parametrize("size", [10, 30_000_000])
def test_a_failed_or_forgotten_writer_leaves_nothing(store: Store, size: int) -> None:
    def failing() -> None:
        with store.writer("x") as out:
            out.write(bytes(size))
            raise KeyError("stop")

    with pytest.raises(KeyError):
        failing()
    forgotten = pa.PythonFile(store.writer("y"), "w")
    forgotten.write(bytes(size))
    del forgotten
    gc.collect()
    assert store.list() == []


def test_a_store_crosses_processes_by_value(store: Store) -> None:
    store.put("x", b"1")
    twin = pickle.loads(pickle.dumps(store))
    assert twin == store
    assert hash(twin) == hash(store)
    assert twin.get("x") == b"1"


def test_reading_makes_no_folder(tmp_path: Path) -> None:
    store = open_store(tmp_path / "none")
    assert store.list() == []
    with pytest.raises(NotFound):
        store.get("x")
    assert not (tmp_path / "none").exists()


def test_memory_stores_are_shared_by_name() -> None:
    name = new_id()
    open_store(f"memory://{name}/t").put("x", b"1")
    assert open_store(f"memory://{name}").get("t/x") == b"1"


def test_a_file_where_the_folder_should_be(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("")
    for path in ("f", "f/below"):
        with pytest.raises(InvalidInput) as caught:
            open_store(tmp_path / path).put("x", b"1")
        assert caught.value.code == "NOT_A_FOLDER"


def test_a_folder_that_cannot_be_written() -> None:
    with pytest.raises(StoreUnavailable) as caught:
        open_store("/proc/nowhere").put("x", b"1")
    assert "/proc/nowhere/x" in caught.value.name


def test_a_fork_says_that_it_cannot(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    store.put("x", b"1")
    read, write = os.pipe()
    child = os.fork()
    if not child:
        try:
            store.get("x")
        except StoreUnavailable as error:
            os.write(write, error.code.encode())
        finally:
            os._exit(0)
    os.close(write)
    os.waitpid(child, 0)
    assert os.read(read, 100) == b"FORKED"
    os.close(read)


S3 = {"region": "eu-west-1", "access_key_id": "secret-key", "secret_access_key": "secret-value"}

BAD_OPTIONS: list[tuple[str, dict[str, Any], str, str]] = [
    ("/tmp/x", {"region": "x"}, "UNKNOWN_OPTION", "region"),
    ("memory://x", {"region": "x"}, "UNKNOWN_OPTION", "region"),
    ("s3://b/x", {**S3, "regoin": "x"}, "UNKNOWN_OPTION", "regoin"),
    ("s3://b/x", {"access_key_id": "only"}, "BAD_OPTION", "access_key_id"),
    ("s3://b/x", {**S3, "region": ["x"]}, "BAD_OPTION", "region"),
    ("s3://b/x", {**S3, "max_retries": "many"}, "BAD_OPTION", "max_retries"),
    ("az://c/x", {}, "BAD_OPTION", "az://c/x"),
]


@pytest.mark.parametrize(("place", "options", "code", "name"), BAD_OPTIONS)
def test_options_that_cannot_be_are_named_at_once(place: str, options: dict[str, Any], code: str, name: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        open_store(place, options)
    assert (caught.value.code, caught.value.name) == (code, name)


def test_secrets_are_never_shown() -> None:
    store = open_store(
        "s3://b/x", {**S3, "endpoint": "http://127.0.0.1:9", "allow_http": True, "max_retries": 0, "retry_timeout": 1}
    )
    with pytest.raises(TamisError) as caught:
        store.get("y")
    assert caught.value.name == "s3://b/x/y"
    assert isinstance(caught.value, StoreUnavailable)
    assert "secret" not in repr(store) + str(caught.value)
