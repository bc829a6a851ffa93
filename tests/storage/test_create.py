"""Where a table can be made, and what is said where it cannot."""

from __future__ import annotations

from pathlib import Path

import pytest

from tamis.errors import AlreadyExists, InvalidInput, NotFound, TamisError
from tamis.storage.commit_log import PART_COLUMNS, Head, Operation, StreamEpoch, create, load
from tamis.storage.object_store import Store, open_store
from tamis.world import new_id
from tests.storage.making import HEAD, append, manifest, memory, new_table


def test_a_new_table_is_version_0() -> None:
    store = memory()
    snapshot = create(store, HEAD, Operation("create"))
    assert (snapshot.version, snapshot.segments.num_rows, snapshot.parts().num_rows) == (0, 0, 0)
    assert snapshot.parts().column_names == ["segment", "part", *PART_COLUMNS, "deleted", "deletion"]
    assert snapshot.schema == HEAD.schema
    assert len(snapshot.head.table_id) == 32
    assert snapshot.head.created_micros == snapshot.timestamp_micros > 0


def test_a_table_can_begin_without_a_schema() -> None:
    assert create(memory(), Head(""), Operation("create")).commit.schema_id is None


def test_a_table_can_begin_with_rows() -> None:
    store = memory()
    store.put("data/x.parquet", b"written before the commit")
    snapshot = create(store, HEAD, Operation("ctas", stream=StreamEpoch("q", 0)), add=[manifest(2), manifest(1)])
    assert snapshot.segments.select(["version", "parts", "rows"]).to_pylist() == [
        {"version": 0, "parts": 3, "rows": 300}
    ]
    assert load(store).commit.streams == (StreamEpoch("q", 0),)


def test_there_is_one_table_at_a_place() -> None:
    store = memory()
    snapshot = append(store, new_table(store))
    with pytest.raises(AlreadyExists) as caught:
        create(store, HEAD, Operation("create"))
    assert (caught.value.code, caught.value.name) == ("TABLE_EXISTS", store.url)
    assert load(store).version == snapshot.version


def test_creation_repeated_is_the_same_creation() -> None:
    store = memory()
    operation_id = new_id()
    first = create(store, HEAD, Operation("create"), operation_id=operation_id)
    append(store, first)
    again = create(store, HEAD, Operation("create"), operation_id=operation_id)
    assert (again.version, again.head) == (0, first.head)


FOREIGN = {
    "a Delta table": "_delta_log/00000000000000000000.json",
    "an Iceberg table": "metadata/v1.metadata.json",
    "Parquet files": "part-0.parquet",
    "something else: notes.txt": "notes.txt",
    "something else: year=2024": "year=2024/part-0.parquet",
}


@pytest.mark.parametrize(("what", "path"), FOREIGN.items())
@pytest.mark.parametrize("kind", ["local", "memory"])
def test_nothing_is_made_among_other_things(what: str, path: str, kind: str, tmp_path: Path) -> None:
    store = memory() if kind == "memory" else open_store(tmp_path)
    store.put(path, b"x")
    with pytest.raises(InvalidInput) as caught:
        create(store, HEAD, Operation("create"))
    assert (caught.value.code, caught.value.name) == ("PATH_NOT_EMPTY", store.url)
    assert what in caught.value.message
    with pytest.raises(NotFound) as missing:
        load(store)
    assert (missing.value.code, missing.value.name) == ("TABLE_NOT_FOUND", store.url)
    assert what in missing.value.remedy
    assert [e.path for e in store.list()] == [path]


@pytest.mark.parametrize("path", [".DS_Store", ".hidden/x", "data/left-over.parquet"])
def test_what_does_not_stand_in_the_way(path: str) -> None:
    store = memory()
    store.put(path, b"x")
    assert new_table(store).version == 0


BAD_PLACES = [
    ("file", InvalidInput, "NOT_A_FOLDER"),
    ("file/below", TamisError, ""),
    ("missing/folder", NotFound, "TABLE_NOT_FOUND"),
    ("empty", NotFound, "TABLE_NOT_FOUND"),
]


@pytest.mark.parametrize(("place", "kind", "code"), BAD_PLACES)
def test_opening_what_is_no_table(place: str, kind: type[TamisError], code: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("hello")
    (tmp_path / "empty").mkdir()
    with pytest.raises(kind) as caught:
        load(open_store(tmp_path / place))
    assert not code or caught.value.code == code
    assert str(tmp_path) in caught.value.name
    assert caught.value.remedy
    assert not (tmp_path / "missing").exists()


@pytest.mark.parametrize("place", ["file", "file/below"])
def test_making_a_table_where_a_file_is(place: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("hello")
    with pytest.raises(InvalidInput) as caught:
        new_table(open_store(tmp_path / place))
    assert caught.value.code == "NOT_A_FOLDER"
    assert (tmp_path / "file").read_text() == "hello"


@pytest.mark.parametrize("name", ["with space", 'it\'s "q"', "ünï 表", "%41", "a#b", "x" * 200])
def test_tables_of_any_name(name: str, tmp_path: Path) -> None:
    store = open_store(tmp_path / name)
    append(store, new_table(store), manifest(2_000))
    assert load(open_store(tmp_path / name)).parts().num_rows == 2_000


def test_dots_in_a_path_are_resolved(tmp_path: Path) -> None:
    new_table(open_store(tmp_path / "a" / ".." / "b"))
    assert load(open_store(tmp_path / "b")).version == 0
    assert [p.name for p in tmp_path.iterdir()] == ["b"]


def test_a_place_that_cannot_be_written() -> None:
    with pytest.raises(TamisError) as caught:
        new_table(open_store("/proc/tamis-nowhere"))
    assert "/proc/tamis-nowhere" in caught.value.name
    assert caught.value.remedy


def loaded_twice(store: Store) -> bool:
    return load(store).head == load(store).head


def test_two_makers_one_table() -> None:
    """Both see nothing; one of them is first."""
    store = memory()

    class Late(Store):
        """Another table is made just before this one's commit."""

        def put_if_absent(self, path: str, data: bytes) -> bool:
            if not store.list("_tamis/log"):
                new_table(store)
            return super().put_if_absent(path, data)

    with pytest.raises(AlreadyExists):
        create(Late(store.location, {}), Head("", name="mine"), Operation("create"))
    assert load(store).head.name == ""
    assert loaded_twice(store)
