"""No number in stored metadata decides how much memory its reader takes."""

from __future__ import annotations

import json
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyroaring import BitMap

import tamis
from tamis.core.expr.json_codec import variant_columns, variant_text
from tamis.core.expr.json_codec.variant_encoding import encode_variant
from tamis.core.stats.json_paths.path_rows import INCOMPLETE, ROOT
from tamis.core.stats.json_paths.variant_paths import paths_of
from tamis.core.types import bounded_decoding
from tamis.core.types.bounded_decoding import MOST_ROWS, MOST_UNPACKED, read_stream, unpacked_zstd
from tamis.errors import CorruptData
from tamis.storage.commit_log.deletion_vectors import read_bitmap
from tamis.storage.files.file_seal import MAGIC, Seal
from tamis.storage.files.orc.protobuf import message_fields
from tamis.storage.object_store import open_store
from tamis.storage.object_store import store as stores
from tamis.storage.object_store.checked_json import seal_json, unseal_json
from tamis.storage.object_store.metadata_files import Inline, columns_from_json, inline_table
from tamis.storage.object_store.object_cache import CACHE

ROWS = pa.table({"a": [1, 2, 3], "s": ["x", None, "z"], "l": [[1], None, []]})


def stream(table: pa.Table, **options: Any) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema, options=pa.ipc.IpcWriteOptions(**options)) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())


def zstd(data: bytes) -> bytes:
    return bytes(pa.Codec("zstd").compress(data, asbytes=True))


@given(st.lists(st.tuples(st.integers(-(2**63), 2**63 - 1) | st.none(), st.text() | st.none()), max_size=50))
def test_what_is_written_comes_back(rows: list[tuple[int | None, str | None]]) -> None:
    table = pa.table(
        {"a": pa.array([r[0] for r in rows], pa.int64()), "s": pa.array([r[1] for r in rows], pa.string())}
    )
    raw = stream(table)
    assert read_stream(unpacked_zstd(zstd(raw), len(raw))).equals(table)


@pytest.mark.parametrize("codec", ["zstd", "lz4"])
def test_compressed_buffers_are_bounded(codec: str) -> None:
    """Notes of pages are written so. A stream that unpacks to more than the limit is refused before memory is taken."""
    small = pa.table({"a": np.zeros(10**6, np.int64), "b": pa.array(["x", None] * (5 * 10**5))})
    raw = stream(small, compression=codec)
    assert len(raw) < small.nbytes // 5
    assert read_stream(raw).equals(small)
    large = stream(pa.table({"a": np.zeros(MOST_UNPACKED // 8 + 1, np.int64)}), compression=codec)
    with pytest.raises(ValueError, match="unpacked size"):
        read_stream(large)


def test_rows_that_take_no_bytes_are_refused() -> None:
    with pytest.raises(ValueError, match="number of rows"):
        read_stream(stream(pa.table({"n": pa.nulls(10**9)})))


@pytest.mark.parametrize(
    "column",
    [
        pa.RunEndEncodedArray.from_arrays(pa.array([2**30], pa.int32()), pa.array(["x" * 1000])),
        pa.array(["abc"], pa.string_view()),
        pa.array(["abc"]).dictionary_encode(),
        pa.array([[{"a": b"x"}]], pa.list_(pa.struct([("a", pa.binary_view())]))),
    ],
    ids=lambda c: str(c.type),
)
def test_layouts_that_say_much_by_little_are_refused(column: pa.Array) -> None:
    with pytest.raises((ValueError, pa.ArrowException)):
        read_stream(stream(pa.table({"n": [1], "a": column.slice(0, 1)})))


@pytest.mark.parametrize("size", [MOST_UNPACKED + 1, -1, 2**70, 1.5, "1", None, True])
def test_a_size_beyond_the_limit_is_refused(size: Any) -> None:
    with pytest.raises(ValueError, match="unpacked size"):
        unpacked_zstd(zstd(b"x"), size)


def forged(folder: Path, change: Any) -> None:
    """The table's last commit, its table of parts changed."""
    log = sorted((folder / "_tamis" / "log").iterdir())[-1]
    body = unseal_json("commit", log.read_bytes(), log.name)
    tables = body["add"][0]["tables"]
    tables["parts"] = change(columns_from_json(tables["parts"]))
    log.write_bytes(seal_json("commit", body))
    CACHE.clear()


def bomb(known: Inline) -> dict[str, Any]:
    """64 KB that unpack to 1.5 GB: a column of zeros beside the parts."""
    table = known.table.append_column("zeros", pa.array([b"\0" * (1500 * 2**20)], pa.large_binary()))
    return inline_table(table).to_json()


def compressed_twice(known: Inline) -> dict[str, Any]:
    raw = stream(
        known.table.append_column("zeros", pa.array([b"\0" * (200 * 2**20)], pa.large_binary())), compression="zstd"
    )
    return Inline(1, len(raw), zstd(raw)).to_json()


CHANGES = {
    "a bomb": (bomb, "BAD_CONTENT"),
    "compressed twice": (compressed_twice, "BAD_CONTENT"),
    "rows": (lambda known: known.to_json() | {"rows": MOST_ROWS + 1}, "BAD_CONTENT"),
    "other rows": (lambda known: known.to_json() | {"rows": 2**20}, "BAD_CONTENT"),
    "a negative size": (lambda known: known.to_json() | {"size": -5}, "BAD_CONTENT"),
    "a huge size": (lambda known: known.to_json() | {"size": 2**62}, "BAD_CONTENT"),
    "a huge file": (lambda _: {"rows": 1, "path": "x", "bytes": 2**62, "footer": 10, "crc32": "0"}, "BAD_CONTENT"),
    "a huge footer": (lambda _: {"rows": 1, "path": "x", "bytes": 2**20, "footer": 2**40, "crc32": "0"}, "BAD_CONTENT"),
}


@pytest.mark.slow
@pytest.mark.parametrize("how", CHANGES)
@pytest.mark.push_cases(2)
def test_a_commit_that_unpacks_to_much_is_refused(tmp_path: Path, how: str) -> None:
    table = tamis.create(tmp_path / "t", pa.schema([("a", pa.int64())]))
    table.append(pa.table({"a": [1]}))
    change, code = CHANGES[how]
    forged(tmp_path / "t", change)
    assert sum(f.stat().st_size for f in (tmp_path / "t" / "_tamis").rglob("*.json")) < 500_000
    before = pa.default_memory_pool().max_memory()
    tracemalloc.start()
    try:
        with pytest.raises(CorruptData) as caught:
            tamis.open(tmp_path / "t").scan().to_arrow()
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert caught.value.code == code
    assert peak < 100 * 2**20
    assert pa.default_memory_pool().max_memory() - before < 100 * 2**20


def test_an_object_beyond_the_limit_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stores, "MOST_OBJECT", 1_000)
    store = open_store(tmp_path)
    store.put("x", b"1" * 1_000)
    store.put("y", b"1" * 1_001)
    assert len(store.get("x")) == 1_000
    with pytest.raises(CorruptData) as caught:
        store.get("y")
    assert (caught.value.code, "1000" in str(caught.value)) == ("TOO_LARGE", True)


def test_a_bitmap_of_more_rows_than_a_part_can_have(monkeypatch: pytest.MonkeyPatch) -> None:
    many = BitMap(range(2**31, 2**32))
    many.run_optimize()
    packed = many.serialize()
    assert len(packed) < 2**20
    with pytest.raises(CorruptData) as caught:
        read_bitmap(packed, "p")
    assert caught.value.code == "BAD_DELETIONS"


def test_a_seal_that_unpacks_to_much_is_refused() -> None:
    body = b"\0" * 2**20
    for size in (2**32 - 1, 2**20):
        packed = zstd(body)
        with pytest.raises((ValueError, KeyError)):
            Seal.unpack(packed + size.to_bytes(4, "little") + len(packed).to_bytes(4, "little") + MAGIC)
    head = json.dumps({"part": "p", "size": 2**60, "chunk": 8192, "blocks": [], "spans": [], "weights": {}}).encode()
    body = len(head).to_bytes(4, "little") + head + stream(ROWS)
    packed = zstd(body)
    with pytest.raises(ValueError, match="size of the file"):
        Seal.unpack(packed + len(body).to_bytes(4, "little") + len(packed).to_bytes(4, "little") + MAGIC)


def test_the_limit_has_a_name() -> None:
    assert bounded_decoding.MOST_UNPACKED < 2**30


def test_names_in_a_variant_do_not_overlap() -> None:
    """Offsets that go back and forth would make any number of long names of a few bytes."""
    ends = [0, 5, 0, 5, 0]
    metadata = bytes([0xC1]) + (4).to_bytes(4, "little") + b"".join(e.to_bytes(4, "little") for e in ends) + b"abcde"
    assert variant_columns.names_of(metadata) == ()


def nested_arrays(depth: int) -> bytes:
    """A VARIANT of arrays of 200 elements, all of which are the one array that follows."""
    value = b"\x00"
    for _ in range(depth):
        value = bytes([0x03, 200]) + bytes(200) + bytes([1]) + value
    return value


def test_elements_of_arrays_have_bytes_of_their_own() -> None:
    """Shared ones would make 200**depth nodes of 200 * depth bytes."""
    kind = pa.struct([("value", pa.binary()), ("metadata", pa.binary())])
    values = pa.array([{"value": nested_arrays(6), "metadata": b"\x01\x00\x00"}], kind)
    assert set(paths_of(values)) == {ROOT}


def test_texts_of_elements_that_share_their_bytes_end() -> None:
    kind = pa.struct([("value", pa.binary()), ("metadata", pa.binary())])
    values = pa.array([{"value": nested_arrays(6), "metadata": b"\x01\x00\x00"}], kind)
    texts, left = variant_text.texts(variant_columns.nodes(values))
    assert (texts, left.tolist()) == ([None], [True])
    shared = (
        bytes([0x03 | 2 << 2, 250]) + bytes(3 * 251) + bytes([0x40]) + (50_000).to_bytes(4, "little") + b"x" * 50_000
    )
    values = pa.array(
        [{"value": shared, "metadata": b"\x01\x00\x00"}, {"value": b"\x04", "metadata": b"\x01\x00\x00"}], kind
    )
    texts, left = variant_text.texts(variant_columns.nodes(values))
    assert (texts[0], left.tolist()[0]) == (None, True), "250 elements are one text"


def test_numbers_of_fields_that_are_made_up_take_no_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of the rows says that it has 20,000 fields, in five bytes."""
    monkeypatch.setattr(variant_columns, "_MOST_IDS", 10**5)
    kind = pa.struct([("value", pa.binary()), ("metadata", pa.binary())])
    row = {"value": bytes([0x42]) + (20_000).to_bytes(4, "little"), "metadata": b"\x01\x01\x00\x01a"}
    behind = {"value": bytes([15 << 2]) + (10**5).to_bytes(4, "little") + bytes(10**5), "metadata": b"\x01\x00\x00"}
    values = pa.array([*[row] * 2_000, behind], kind)
    tracemalloc.start()
    assert set(paths_of(values)) == {ROOT}
    variant_columns.at_path(variant_columns.nodes(values), ("a",))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 64 * 2**20


def test_a_number_of_orc_has_64_bits() -> None:
    with pytest.raises(ValueError, match="more than 64 bits"):
        list(message_fields(b"\x08" + b"\xff" * 1_000_000 + b"\x01"))


def test_a_damaged_row_says_nothing_of_others() -> None:
    """One says that it has 2**31 fields, or a text as long; the others are ordinary, and wider."""
    keys = [f"k{number}" for number in range(400)]
    wide = encode_variant(json.dumps(dict.fromkeys(keys, 7) | {"a": 1}))
    kind = pa.struct([("value", pa.binary()), ("metadata", pa.binary())])
    for damaged in (b"\x42\xff\xff\xff\x7f", b"\x03\x01\x00\x05\x40\xff\xff\xff\x7f"):
        rows = [{"value": damaged, "metadata": wide[1]}, *[{"value": wide[0], "metadata": wide[1]}] * 3]
        if damaged[0] == 0x42:
            assert paths_of(pa.array(rows, kind))[ROOT].kinds & INCOMPLETE, "nothing is proved by what was left out"
        found = variant_columns.nodes(pa.array(rows, kind))
        assert (
            variant_columns.longs(
                variant_columns.at_path(found, ("a",)).take(np.array([False, True, True, True]))
            ).tolist()
            == [1] * 3
        )
        texts, left = variant_text.texts(found)
        assert [text is not None and text.startswith('{"a":1,') for text in texts[1:]] == [True] * 3
        assert left.tolist()[1:] == [False] * 3
