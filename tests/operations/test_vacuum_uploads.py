"""Vacuum removes what killed writers leave on a local disk, where a store writes a file under another name that it does not list."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

import tamis
from tamis.storage.object_store import Store
from tamis.world import world

SCHEMA = pa.schema([("id", pa.int64()), ("body", pa.binary())])
ENDLESS = """
import os, sys
import pyarrow as pa
import tamis

table = tamis.open(sys.argv[1])
schema = pa.schema([("id", pa.int64()), ("body", pa.binary())])
batch = lambda: pa.record_batch([pa.array(range(1000)), pa.array([os.urandom(1000) for _ in range(1000)])], schema=schema)
table.append(pa.RecordBatchReader.from_batches(schema, (batch() for _ in range(100_000))))
"""


def files(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


def test_the_file_of_a_killed_append_goes(tmp_path: Path) -> None:
    table = tamis.create(tmp_path / "t", SCHEMA, properties={"tamis.write.part_bytes": "10GB"})
    table.append(pa.table({"id": [1], "body": [b"x"]}, schema=SCHEMA))
    before = files(tmp_path / "t")
    writer = subprocess.Popen([sys.executable, "-c", ENDLESS, str(tmp_path / "t")], stderr=subprocess.PIPE, text=True)
    until = world().monotonic() + 60
    while not files(tmp_path / "t") - before and writer.poll() is None and world().monotonic() < until:
        world().sleep(0.02)
    os.kill(writer.pid, signal.SIGKILL)
    _, said = writer.communicate()
    left = files(tmp_path / "t") - before
    assert left, said
    assert all("#" in name for name in left)
    assert table.vacuum("7d", dry_run=False).objects.num_rows == 0, "it may still be written"
    done = table.vacuum("0s", dry_run=False, below_retention=True)
    assert {(o["path"], o["kind"]) for o in done.objects.to_pylist()} == {(name, "data file") for name in left}
    assert not any("#" in name for name in files(tmp_path / "t"))
    assert tamis.open(tmp_path / "t").scan().count() == 1


def test_only_old_files_of_writers_go(tmp_path: Path) -> None:
    table = tamis.create(tmp_path / "t", SCHEMA)
    table.append(pa.table({"id": [1], "body": [b"x"]}, schema=SCHEMA))
    (path,) = table.snapshot.parts(None)["path"].to_pylist()
    old = {f"data/{'0' * 32}.parquet#1", f"_tamis/manifest/{'0' * 32}.parquet#12"}
    other = {
        f"{path}#1",
        "data/notes.txt#1",
        f"data/{'z' * 32}.parquet#1",
        f"data/{'1' * 31}#1",
        f"data/{'0' * 32}.parquet#1#x",
    }
    for name in old | other:
        file = tmp_path / "t" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(b"half")
        os.utime(file, (1, 1))
    young = f"data/{'0' * 31}1.parquet#1"
    (tmp_path / "t" / young).write_bytes(b"half")
    listed = table.vacuum("7d")
    assert set(listed.objects["path"].to_pylist()) == old
    table.vacuum("7d", dry_run=False)
    assert files(tmp_path / "t") >= {*other, young, path}
    assert not files(tmp_path / "t") & old


@pytest.mark.parametrize("place", ["memory://uploads/t", "file"])
def test_a_store_deletes_what_it_has(place: str, tmp_path: Path) -> None:
    store = tamis.storage.object_store.open_store(str(tmp_path / "s") if place == "file" else place, None)
    assert isinstance(store, Store)
    store.put("data/a.parquet", b"x")
    store.delete("data/a.parquet")
    store.delete("data/a.parquet#1")
    assert store.list() == store.list_uploads("data") == []
