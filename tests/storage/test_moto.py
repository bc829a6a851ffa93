"""The store and the log against moto, an S3 server that others wrote. What it cannot do (faults) is tested in ``test_unreliable_store``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

import tamis
from tamis.errors import NotFound, StoreUnavailable
from tamis.spark.catalog.warehouse_paths import Warehouse
from tamis.storage.commit_log import history, load
from tamis.storage.object_store import Store, open_store
from tests.moto_server import moto
from tests.storage.making import append, forget, new_table

PLACE = "s3://lake/a b/ü'%20"


@pytest.fixture(scope="module")
def s3(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    with moto(tmp_path_factory.mktemp("moto")) as options:
        yield options


def store_at(s3: dict[str, Any], name: str) -> Store:
    return open_store(f"{PLACE}/{name}", s3)


def test_an_object_is_written_once(s3: dict[str, Any]) -> None:
    """Races are run against ``fake_s3``: moto looks and writes in two steps."""
    store, other = store_at(s3, "once"), store_at(s3, "once")
    assert store.put_if_absent("log/0.json", b"1")
    assert not other.put_if_absent("log/0.json", b"2")
    assert not store.put_if_absent("log/0.json", b"3")
    assert other.get("log/0.json") == b"1"
    other.delete("log/0.json")
    assert other.put_if_absent("log/0.json", b"4")


@pytest.mark.merge
def test_listings_of_several_pages(s3: dict[str, Any]) -> None:
    """S3 lists a thousand objects a page."""
    store = store_at(s3, "pages")
    names = [f"m/{n:05}" for n in range(2_003)]
    for name in names:
        store.put(name, b"x")
    store.put("m/f/deep", b"x")
    assert [e.path for e in store.list("m")] == sorted([*names, "m/f/deep"])
    assert [e.path for e in store.list("m", after="m/00999")] == sorted([*names[1_000:], "m/f/deep"])
    folders, objects = store.list_folder("m")
    assert (list(folders), len(objects)) == (["m/f"], 2_003)
    assert store.list("none") == []


@pytest.mark.parametrize("size", [10, 25_000_000])
def test_written_files_appear_when_closed(s3: dict[str, Any], size: int) -> None:
    store = store_at(s3, f"files-{size}")
    with store.writer("x") as out:
        out.write(bytes(size))
        assert store.list() == []
    assert store.size("x") == size
    forgotten = store.writer("y")
    forgotten.write(bytes(size))
    forgotten.abort()
    assert [e.path for e in store.list()] == ["x"]
    assert store.get_ranges("x", [(3, 2), (size - 1, 1)]) == [bytes(2), bytes(1)]
    store.delete("x")
    store.delete("x")
    with pytest.raises(NotFound):
        store.get("x")


def test_a_log(s3: dict[str, Any]) -> None:
    store = store_at(s3, "log")
    snapshot = new_table(store)
    for _ in range(12):
        snapshot = append(store, snapshot)
    forget()
    assert (load(store).version, len(history(store))) == (12, 13)


@pytest.mark.slow
def test_a_table_of_several_writers(s3: dict[str, Any]) -> None:
    """Each appends after a version that is no longer the newest, and no commit is lost."""
    path = f"{PLACE}/writers"
    tamis.create(path, pa.schema({"id": pa.int64()}), storage_options=s3)
    writers = [tamis.open(path, storage_options=s3) for _ in range(4)]
    for turn in range(3):
        for n, writer in enumerate(writers):
            writer.append(pa.table({"id": [n * 10 + turn]}))
    table = tamis.open(path, storage_options=s3)
    assert sorted(table.scan().to_arrow()["id"].to_pylist()) == sorted(n * 10 + k for n in range(4) for k in range(3))
    assert table.version == 12
    assert table.delete("id >= 30").rows_deleted == 3
    table.compact()
    assert table.scan().count() == 9


def test_a_bucket_that_is_not_there(s3: dict[str, Any]) -> None:
    with pytest.raises((StoreUnavailable, NotFound)) as caught:
        new_table(open_store("s3://nobody/t", s3))
    assert "s3://nobody/t" in str(caught.value)
    assert "secret-value" not in str(caught.value)


@pytest.mark.slow
def test_a_table_is_dropped(s3: dict[str, Any]) -> None:
    warehouse = Warehouse(open_store(f"{PLACE}/lake", s3))
    table = tamis.create(f"{PLACE}/lake/db/a", pa.schema([("id", pa.int64())]), storage_options=s3)
    for n in range(20):
        table.append(pa.table({"id": [n]}))
    table.create_index("by_id", ["id"])
    warehouse.drop_table(("db", "a"))
    forget()
    assert warehouse.root.list("db") == []
