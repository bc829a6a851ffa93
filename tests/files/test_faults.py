"""A file that is not what was committed is ``CorruptData``, naming part and path; never other rows."""

import zlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tamis.core.types import LONG, STRING, Field, Schema
from tamis.core.types.arrow import to_arrow_schema
from tamis.errors import CorruptData
from tamis.storage.files import PartRef
from tamis.storage.files.file_source import PartSource
from tamis.storage.files.parquet.footer import check_end
from tamis.storage.object_store.store import open_store
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


@pytest.mark.push_cases(10)
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


@pytest.mark.push_cases(19)
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


def test_a_footer_with_a_name_that_is_no_text(tmp_path: Path) -> None:
    """The library decodes names when it opens the file, before the footer's checksum is known."""
    ref = part_in(tmp_path, 50_000)
    file = tmp_path / ref.path
    data = file.read_bytes()
    at = data.rindex(b"\x18\x01s", 0, data.rindex(b"\x18\x01s"))  # the schema's, before the chunk's
    file.write_bytes(data[: at + 2] + b"\xff" + data[at + 3 :])
    with pytest.raises(CorruptData, match=ref.path):
        read_all(open_store(tmp_path), replace(ref, checksum=None), SCHEMA)


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
    from tamis.storage.files import create_part

    writer = create_part(open_store(tmp_path), "data/p.parquet", form, to_arrow_schema(SCHEMA))
    writer.write(pa.record_batch([[1], ["a"]], schema=to_arrow_schema(SCHEMA)))
    writer.abort()
    assert not (tmp_path / "data/p.parquet").exists()


def test_what_another_decoder_opens_a_file_by(tmp_path: Path) -> None:
    """Every byte behind the pages has a checksum: the footer in the log, the page indexes in the footer."""
    ref = part_in(tmp_path, 10_000)
    file, store = tmp_path / ref.path, open_store(tmp_path)
    whole = file.read_bytes()
    footer = len(whole) - 8 - int.from_bytes(whole[-8:-4], "little")
    noted = pq.read_metadata(file).metadata[b"tamis.index_crc32"].decode()
    index = footer - int(noted[8:], 16)
    assert check_end(PartSource(store, ref))
    assert int(noted[:8], 16) == zlib.crc32(whole[index:footer])
    for at in range(index, len(whole)):
        file.write_bytes(whole[:at] + bytes([whole[at] ^ 1 << at % 8]) + whole[at + 1 :])
        if at < footer:
            assert not check_end(PartSource(store, ref)), at
        else:
            with pytest.raises(CorruptData, match=ref.path):
                check_end(PartSource(store, ref))


def test_pages_of_a_file_without_the_note_are_not_believed(tmp_path: Path) -> None:
    ref = part_in(tmp_path, 10_000)
    file = tmp_path / ref.path
    whole = file.read_bytes().replace(b"tamis.index_crc32", b"other.index_crc32")
    file.write_bytes(whole)
    length = int.from_bytes(whole[-8:-4], "little") + 8
    older = replace(ref, footer_checksum=zlib.crc32(whole[-length:]), checksum=None)
    assert not check_end(PartSource(open_store(tmp_path), older))
    assert not check_end(PartSource(open_store(tmp_path), replace(older, footer_checksum=None)))


@pytest.mark.parametrize(
    "path", ["../t/data/p.parquet", "data/../../x", "/etc/passwd", "data//x", "./data/x", "data/.", "data/\n"]
)
def test_a_part_outside_of_its_table(tmp_path: Path, path: str) -> None:
    ref = replace(part_in(tmp_path / "t", 10), path=path)
    with pytest.raises(CorruptData, match="outside") as raised:
        read_all(open_store(tmp_path / "t"), ref, SCHEMA)
    assert raised.value.code == "PATH_OUTSIDE"
