"""A file that is not what was committed is ``CorruptData``, naming part and path; never other rows."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from tamis.errors import CorruptData
from tamis.files import PartRef
from tamis.state.store import open_store
from tamis.types import LONG, STRING, Field, Schema
from tamis.types.arrow import to_arrow_schema
from tests.files.parts import read_all, write_part

SCHEMA = Schema((Field("n", LONG, id=1), Field("s", STRING, id=2)))


def part_in(folder: Path, rows: int, part_id: str = "p", form: str = "parquet") -> PartRef:
    noise = np.random.default_rng(rows).integers(0, 2**62, rows)
    batch = pa.record_batch([noise, [str(n) for n in noise]], schema=to_arrow_schema(SCHEMA))
    return write_part(open_store(folder), SCHEMA, [batch], part_id, form=form)


def cut(data: bytes) -> bytes:
    return data[:-1]


def flip_middle(data: bytes) -> bytes:
    return data[: len(data) // 3] + bytes([data[len(data) // 3] ^ 1]) + data[len(data) // 3 + 1 :]


def flip_footer(data: bytes) -> bytes:
    return data[:-40] + bytes([data[-40] ^ 0xFF]) + data[-39:]


def empty(_: bytes) -> bytes:
    return b""


def noise(data: bytes) -> bytes:
    return np.random.default_rng(0).bytes(len(data))


def long_footer(data: bytes) -> bytes:
    return data[:-8] + (2**31 - 1).to_bytes(4, "little") + data[-4:]


FORMATS = pytest.mark.parametrize("form", ["parquet", "vortex", "orc"])


@pytest.mark.parametrize("damage", [cut, flip_middle, empty, noise, long_footer], ids=lambda f: f.__name__)
@pytest.mark.parametrize("rows", [10, 50_000])
@FORMATS
def test_damaged(tmp_path: Path, form: str, rows: int, damage: Callable[[bytes], bytes]) -> None:
    ref = part_in(tmp_path, rows, form=form)
    file = tmp_path / ref.path
    file.write_bytes(damage(file.read_bytes()))
    with pytest.raises(CorruptData, match=ref.path) as raised:
        read_all(open_store(tmp_path), replace(ref, checksum=ref.checksum), SCHEMA)
    assert ref.part_id in raised.value.message
    assert raised.value.remedy


@FORMATS
def test_what_was_appended_to_a_file_is_not_read(tmp_path: Path, form: str) -> None:
    ref = part_in(tmp_path, 50_000, form=form)
    before = read_all(open_store(tmp_path), ref, SCHEMA)
    with (tmp_path / ref.path).open("ab") as file:
        file.write(b"more")
    assert read_all(open_store(tmp_path), replace(ref, checksum=1), SCHEMA).equals(before)


@pytest.mark.parametrize("at", range(20, 400, 20))
@FORMATS
def test_any_byte_of_the_footer(tmp_path: Path, form: str, at: int) -> None:
    """A footer's statistics may skip blocks: none of its bytes may be other than what was written."""
    ref = part_in(tmp_path, 50_000, form=form)
    file = tmp_path / ref.path
    data = bytearray(file.read_bytes())
    data[-at] ^= 0xFF
    file.write_bytes(data)
    with pytest.raises(CorruptData, match=ref.path):
        read_all(open_store(tmp_path), replace(ref, checksum=at), SCHEMA)


@FORMATS
def test_missing(tmp_path: Path, form: str) -> None:
    ref = part_in(tmp_path, 10, form=form)
    (tmp_path / ref.path).unlink()
    with pytest.raises(CorruptData, match="missing"):
        read_all(open_store(tmp_path), ref, SCHEMA)


@FORMATS
def test_vanished_after_its_footer_was_read(tmp_path: Path, form: str) -> None:
    ref = part_in(tmp_path, 10, form=form)
    read_all(open_store(tmp_path), ref, SCHEMA)
    (tmp_path / ref.path).unlink()
    with pytest.raises(CorruptData, match="missing"):
        read_all(open_store(tmp_path), ref, SCHEMA)


@FORMATS
def test_replaced_by_another_part_of_the_same_size(tmp_path: Path, form: str) -> None:
    """Big enough that the checksum of the whole is not computed; a seal may be a byte longer."""
    ref, other = part_in(tmp_path, 50_000, form=form), part_in(tmp_path, 50_000, "q", form)
    ref = replace(ref, bytes=other.bytes)
    (tmp_path / other.path).replace(tmp_path / ref.path)
    with pytest.raises(CorruptData, match="part q"):
        read_all(open_store(tmp_path), ref, SCHEMA)


@FORMATS
def test_fewer_rows_than_were_committed(tmp_path: Path, form: str) -> None:
    ref = part_in(tmp_path, 10, form=form)
    with pytest.raises(CorruptData, match="10 rows instead of 11"):
        read_all(open_store(tmp_path), replace(ref, rows=11), SCHEMA)
    with pytest.raises(CorruptData, match="other blocks"):
        read_all(open_store(tmp_path), replace(ref, blocks=(4, 6)), SCHEMA)


@FORMATS
def test_a_writer_that_is_given_up_leaves_nothing(tmp_path: Path, form: str) -> None:
    from tamis.files import create_part

    writer = create_part(open_store(tmp_path), "data/p.parquet", form, to_arrow_schema(SCHEMA))
    writer.write(pa.record_batch([[1], ["a"]], schema=to_arrow_schema(SCHEMA)))
    writer.abort()
    assert not (tmp_path / "data/p.parquet").exists()
