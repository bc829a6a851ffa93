"""Damage that comes while this process remembers better is met by the next explicit ``open``."""

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

import tamis
from tamis.errors import CorruptData
from tamis.storage.object_store import open_store
from tests.storage.making import append, manifest, new_table

ROWS = pa.table({"id": pa.array([1, 2], pa.int64())})

DAMAGE = {
    "truncated": lambda path: path.write_bytes(path.read_bytes()[: path.stat().st_size // 2]),
    "garbled": lambda path: path.write_bytes(bytes(byte ^ 85 for byte in path.read_bytes())),
    "deleted": Path.unlink,
}


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE)
def test_a_damaged_commit(tmp_path: Path, damage: Callable[[Path], object]) -> None:
    table = tamis.create(tmp_path)
    for _ in range(4):
        table.append(ROWS)
    victim = tmp_path / "_tamis" / "log" / f"{2:020}.json"
    assert tamis.open(tmp_path).scan().count() == 8
    damage(victim)
    assert table.scan().count() == 8  # it is held: what it has read, it knows
    with pytest.raises(CorruptData, match=victim.name) as caught:
        tamis.open(tmp_path).scan().to_arrow()
    assert caught.value.name.endswith(victim.name)


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE)
def test_a_damaged_manifest(tmp_path: Path, damage: Callable[[Path], object]) -> None:
    store = open_store(tmp_path)
    append(store, new_table(store), manifest(1_500))
    (victim,) = (tmp_path / "_tamis" / "manifest").iterdir()
    assert tamis.open(tmp_path).explain().parts.total == 1_500
    damage(victim)
    with pytest.raises(CorruptData, match=victim.name) as caught:
        tamis.open(tmp_path).explain()
    assert caught.value.name.endswith(victim.name)
