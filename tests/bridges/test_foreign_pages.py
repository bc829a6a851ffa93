"""Chosen rows of adopted files are read by the pages that offset indexes locate, whatever these say."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any
from unittest import mock

import deltalake
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tamis
from tamis.core.types import Schema
from tamis.core.types.arrow import from_arrow_schema
from tamis.errors import CorruptData
from tamis.storage.commit_log import Source
from tamis.storage.files import PartRef, open_part
from tamis.storage.files.parquet.compact_thrift import thrift_varint
from tamis.storage.files.parquet.foreign_pages import ForeignPages
from tamis.storage.files.parquet.foreign_part import ForeignParquetPart
from tamis.storage.files.parquet.legacy_calendar import gregorian_days
from tamis.storage.files.parquet.offset_index import _locations, page_locations
from tamis.storage.files.parquet.page_excerpt import Excerpt
from tamis.storage.files.parquet.page_offsets import Chunk
from tamis.storage.object_store import open_store
from tests.bridges.foreign_files import write_file

ROWS = 6_000
GROUP = 2_500
PAGE = 100


def columns(rows: int = ROWS) -> pa.Table:
    """Columns of every flat type, with and without dictionaries and NULLs, whose pages have different sizes, and nested ones."""
    n = np.arange(rows)
    gap = np.random.default_rng(7).random(rows) < 0.2
    return pa.table(
        {
            "n": pa.array(n),
            "few": pa.array(n % 7, pa.int32(), mask=gap),
            "text": pa.array([f"{i:x}" * (i % 9) for i in n], mask=gap),
            "long": pa.array([f"{i}" * 40 for i in n]),
            "word": pa.array([f"word {i % 5}" for i in n]),
            "bytes": pa.array([bytes([i % 256]) * (i % 3) for i in n], pa.binary()),
            "fixed": pa.array([int(i).to_bytes(4, "big") for i in n], pa.binary(4)),
            "x": pa.array(np.where(n % 5 == 0, np.nan, n / 3)),
            "single": pa.array(n / 3, pa.float32()),
            "flag": pa.array(n % 3 == 0, mask=gap),
            "day": pa.array(n, pa.int32()).cast(pa.date32()),
            "at": pa.array(n * 10**9).view(pa.timestamp("us", "UTC")),
            "local": pa.array(n * 10**9).view(pa.timestamp("us")),
            "small": pa.array([Decimal(int(i)).scaleb(-2) for i in n], pa.decimal128(9, 2)),
            "large": pa.array([Decimal(int(i)).scaleb(-3) for i in n], pa.decimal128(30, 3)),
            "byte": pa.array(n % 100, pa.int8()),
            "none": pa.nulls(rows, pa.int64()),
            "list": pa.array([[int(i)] * (i % 3) for i in n], pa.list_(pa.int64())),
            "pair": pa.StructArray.from_arrays([pa.array(n), pa.array(n.astype(str))], names=["a", "b"]),
        }
    )


WHOLE = columns()
WAYS: dict[str, dict[str, Any]] = {
    "rows": {"max_rows_per_page": PAGE},
    "bytes": {"max_rows_per_page": 8 * PAGE, "data_page_size": 2_000, "write_batch_size": 10},
    "without dictionaries": {"max_rows_per_page": PAGE, "use_dictionary": False, "compression": "none"},
    "second version": {"max_rows_per_page": PAGE, "data_page_version": "2.0", "compression": "zstd"},
    "checksums": {"max_rows_per_page": PAGE, "write_page_checksum": True, "compression": "gzip"},
    "int96": {"max_rows_per_page": PAGE, "use_deprecated_int96_timestamps": True},
    "decimals as numbers": {"max_rows_per_page": PAGE, "store_decimal_as_integer": True},
    "no schema of arrow": {"max_rows_per_page": PAGE, "store_schema": False},
}


def schema_of(table: pa.Table) -> Schema:
    return from_arrow_schema(table.schema).assign_ids(0)


def part_of(folder: Path, table: pa.Table = WHOLE, name: str = "a.parquet", **options: Any) -> ForeignParquetPart:
    """The file as a part of a source; ``row_group_size`` is ``GROUP``, and it has page indexes."""
    write_file(folder / name, table, **{"row_group_size": GROUP, "write_page_index": True, **options})
    return opened(folder / name, table)


def opened(path: Path, table: pa.Table = WHOLE) -> ForeignParquetPart:
    schema = schema_of(table)
    names = {f.id: f.name for f in schema.fields}
    source = Source("s", "parquet", str(path.parent), column_names=names)
    ref = PartRef("p", path.name, "parquet", 0, len(table), path.stat().st_size, source="s")
    part = open_part(open_store(str(path.parent)), ref, schema, [source])
    assert isinstance(part, ForeignParquetPart)
    return part


def read(part: ForeignParquetPart, rows: list[int], names: list[str], table: pa.Table = WHOLE) -> set[str]:
    """Read the rows, which must be those of ``table``, and return the columns that were read by pages."""
    ids = [schema_of(table).find(name)[0].id for name in names]
    by_pages: set[int] = set()
    original = part._from_pages

    def from_pages(plan: Excerpt, fetched: Any) -> list[pa.Array] | None:
        found = original(plan, fetched)
        by_pages.update(part._layout.top_column_ids(plan.leaves) if found is not None else ())
        return found

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(part, "_from_pages", from_pages)
        patch.setattr("tamis.storage.files.parquet.foreign_pages._PERCENT", 10_000)
        pieces = list(part.read(ids, range(len(part.block_rows)), np.array(rows, dtype=np.int64)))
    assert [p for piece in pieces for p in piece.positions.tolist()] == rows
    found = pa.Table.from_batches([piece.batch for piece in pieces])
    expected = table.take(pa.array(rows))
    for i, name in zip(ids, names, strict=True):
        assert str(found[str(i)].to_pylist()) == str(expected[name].to_pylist()), name
    return {schema_of(table).by_id[i].name for i in by_pages}


@pytest.fixture(scope="module", params=list(WAYS))
def part(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> ForeignParquetPart:
    return part_of(tmp_path_factory.mktemp("files"), **WAYS[request.param])


EDGES = sorted(
    {at + step for at in (0, 100, 300, 1_000, 2_400, 2_500, 2_600, 5_000, 5_900) for step in (-1, 0, 1)} - {-1}
)


@given(
    rows=st.sets(st.sampled_from(EDGES) | st.integers(0, ROWS - 1), min_size=1, max_size=9),
    names=st.sets(st.sampled_from(WHOLE.column_names), min_size=1),
)
def test_rows_by_pages_are_rows(part: ForeignParquetPart, rows: set[int], names: set[str]) -> None:
    read(part, sorted(rows), sorted(names))


FLAT = [f.name for f in WHOLE.schema if not pa.types.is_nested(f.type)]


@pytest.mark.parametrize("way", list(WAYS))
def test_every_flat_column_is_read_by_pages(tmp_path: Path, way: str) -> None:
    assert read(part_of(tmp_path, **WAYS[way]), [4_321], WHOLE.column_names) == set(FLAT)


def test_pages_of_different_rows(tmp_path: Path) -> None:
    """Some columns of ``bytes`` end their pages at other rows than others."""
    part = part_of(tmp_path, **WAYS["bytes"])
    read(part, [0], FLAT)
    assert isinstance(part._pages, ForeignPages)
    assert len(part._pages.group_by_page_boundaries(range(len(FLAT)), [0], np.array([GROUP]))) > 1


def test_many_pages_are_read_as_chunks(tmp_path: Path) -> None:
    assert read(part_of(tmp_path, max_rows_per_page=PAGE), list(range(0, ROWS, 50)), ["n"]) == set()


def test_a_scan_fetches_pages(tmp_path: Path) -> None:
    """Followers of one row: a page of each of ten columns of a million bytes, and the index."""
    rows = 200_000
    random = np.random.default_rng(3)
    table = pa.table({"n": np.arange(rows)} | {f"c{at}": random.random(rows) for at in range(10)})
    for name, index in (("with", True), ("without", False)):
        options = {"max_rows_per_page": 2_000, "use_dictionary": False, "write_page_index": index}
        write_file(tmp_path / name / "a.parquet", table, **options)
        adopted = tamis.adopt(tmp_path / name, tmp_path / f"{name} table")
        assert isinstance(adopted, tamis.Table)
        scan = adopted.scan("n = 123456")
        assert (
            scan.to_arrow().drop_columns(["n"]).to_pylist() == table.slice(123_456, 1).drop_columns(["n"]).to_pylist()
        )
        fetched = tamis.reports(1)[0].bytes.follower
        assert (fetched < 800_000) if index else (fetched > 10_000_000), (name, fetched)


def test_rows_that_are_decoded_are_known_with_the_index(tmp_path: Path) -> None:
    part = part_of(tmp_path, max_rows_per_page=PAGE)
    ids, rows = [schema_of(WHOLE).find("long")[0].id], np.array([GROUP + 1])
    assert part.decoded_rows(ids, rows) == 1  # not known: only lazy reads can show that the index is worth its bytes
    assert read(part, rows.tolist(), ["long"]) == {"long"}
    assert part.decoded_rows(ids, rows) == PAGE
    assert isinstance(part._pages, ForeignPages)
    part._pages.ignore_page_index()
    assert part.decoded_rows(ids, rows) == GROUP
    part._constants = {ids[0]: pa.scalar(1)}
    assert part.decoded_rows(ids, rows) == 0


def test_an_index_that_saves_little_is_not_read(tmp_path: Path) -> None:
    """It has 25 pages of each of 19 columns, and one of these is wanted."""
    part = part_of(tmp_path, max_rows_per_page=PAGE)
    before = part.io.bytes
    (piece,) = part.read([10], [0, 1, 2], np.array([2_600]))
    assert piece.batch.column(0).to_pylist() == WHOLE["flag"].slice(2_600, 1).to_pylist()
    assert part.io.bytes - before == part.cost([10], [1])


def index_of(path: Path) -> tuple[bytearray, int]:
    """The file's bytes, and where its page indexes begin."""
    data, footer = bytearray(path.read_bytes()), pq.read_metadata(path)
    last = footer.row_group(footer.num_row_groups - 1)
    chunks = [last.column(at) for at in range(footer.num_columns)]
    return data, max((c.dictionary_page_offset or c.data_page_offset) + c.total_compressed_size for c in chunks)


def location(start: int, size: int, row: int) -> bytes:
    """A page's location as an offset index has it."""
    parts = ((b"\x16", start), (b"\x15", size), (b"\x16", row))
    return b"".join(header + thrift_varint(2 * value) for header, value in parts) + b"\x00"


def changed(path: Path, old: bytes, new: bytes) -> None:
    """Change bytes of the page indexes, once."""
    data, begin = index_of(path)
    assert data.count(old, begin) == 1
    assert len(old) == len(new)
    path.write_bytes(data[:begin] + data[begin:].replace(old, new))


def second_page(path: Path) -> tuple[int, int]:
    """Return offset and size of the second page of the first column, all of whose pages have the same size."""
    column_chunk = pq.read_metadata(path).row_group(0).column(0)
    pages = -(-GROUP // PAGE)
    assert column_chunk.total_compressed_size % pages == 0
    size = column_chunk.total_compressed_size // pages
    return column_chunk.data_page_offset + size, size


PLAIN = {"max_rows_per_page": PAGE, "use_dictionary": False, "compression": "none"}


def plain_file(folder: Path) -> Path:
    """Numbers whose pages all have one size."""
    write_file(folder / "a.parquet", WHOLE.select(["n", "x"]), row_group_size=GROUP, write_page_index=True, **PLAIN)
    return folder / "a.parquet"


@pytest.mark.parametrize("row", [PAGE - 1, PAGE + 1, PAGE + 20])
def test_an_index_that_says_other_rows_is_not_believed(tmp_path: Path, row: int) -> None:
    """Its pages have their places, but not the rows: their headers say how many they have."""
    path, table = plain_file(tmp_path), WHOLE.select(["n", "x"])
    start, size = second_page(path)
    changed(path, location(start, size, PAGE), location(start, size, row))
    for wanted in ([PAGE - 1], [PAGE], [PAGE + 1], [2 * PAGE - 1], [PAGE - 1, PAGE, 4_321]):
        read(opened(path, table), wanted, ["n", "x"], table)
    assert read(opened(path, table), [PAGE + 1], ["n", "x"], table) == set(), "it is not asked again"


@pytest.mark.parametrize(("later", "larger"), [(1, 0), (0, 1), (0, -1), (-1, 1), (1, -1)])
def test_pages_that_do_not_follow_each_other_are_not_believed(tmp_path: Path, later: int, larger: int) -> None:
    path, table = plain_file(tmp_path), WHOLE.select(["n", "x"])
    start, size = second_page(path)
    changed(path, location(start, size, PAGE), location(start + later, size + larger, PAGE))
    assert read(opened(path, table), [PAGE + 1], ["n", "x"], table) == {"x"}


def test_types_that_only_arrow_notes(tmp_path: Path) -> None:
    """Texts of Polars, categories of pandas and times of any zone are read by pages as what Parquet has of them."""
    kinds = {
        "large": WHOLE["text"].cast(pa.large_string()),
        "view": WHOLE["text"].cast(pa.string_view()),
        "large bytes": WHOLE["bytes"].cast(pa.large_binary()),
        "category": WHOLE["word"].combine_chunks().dictionary_encode(),
        "zone": WHOLE["at"].cast(pa.timestamp("us", "Europe/Berlin")),
    }
    table = pa.table(kinds)
    write_file(tmp_path / "a.parquet", table, row_group_size=GROUP, write_page_index=True, max_rows_per_page=PAGE)
    plain = pa.table(
        {
            "large": WHOLE["text"],
            "view": WHOLE["text"],
            "large bytes": WHOLE["bytes"],
            "category": WHOLE["word"],
            "zone": WHOLE["at"],
        }
    )
    assert read(opened(tmp_path / "a.parquet", plain), [7, 4_321], plain.column_names, plain) == set(kinds)


@pytest.mark.parametrize("codec", ["LZ4", "LZ4_RAW", "BROTLI"])
def test_codecs_of_delta(tmp_path: Path, codec: str) -> None:
    """The library has no name for LZ4 as Hadoop wrote it, so that such files are read whole."""
    table = WHOLE.select(["n", "text"])
    options = deltalake.WriterProperties(compression=codec, data_page_row_count_limit=PAGE, write_batch_size=PAGE)
    deltalake.write_deltalake(tmp_path, table, writer_properties=options)
    (path,) = tmp_path.glob("*.parquet")
    assert read(opened(path, table), [7, 4_321], ["n", "text"], table) == (set() if codec == "LZ4" else {"n", "text"})


@pytest.mark.parametrize("pages", [14, 15, 127, 128, 16_383, 16_384])
def test_any_number_of_pages(tmp_path: Path, pages: int) -> None:
    table = pa.table({"n": np.arange(2 * pages)})
    write_file(tmp_path / "a.parquet", table, max_rows_per_page=2, write_batch_size=2, write_page_index=True)
    assert read(opened(tmp_path / "a.parquet", table), [2 * pages - 3], ["n"], table) == {"n"}


def test_an_index_between_pages_and_bloom_filters(tmp_path: Path) -> None:
    table = WHOLE.select(["n", "text"])
    path = tmp_path / "a.parquet"
    write_file(path, table, row_group_size=GROUP, write_page_index=True, bloom_filter_options={"n": True}, **PLAIN)
    assert pq.read_metadata(path).row_group(0).column(0).bloom_filter_offset is not None
    assert read(opened(path, table), [7, 4_321], ["n", "text"], table) == {"n", "text"}


def test_statistics_full_of_what_an_index_begins_with() -> None:
    """The search for the first index gives up: each attempt reads the rest of the indexes."""
    hostile = b"\x19\x1c\x16\x08\x15" * 20_000 + b"\x00"
    with mock.patch("tamis.storage.files.parquet.offset_index._locations", wraps=_locations) as tried:
        assert page_locations(hostile, 4, 2) is None
    assert tried.call_count < 20


@pytest.mark.parametrize("offset", [-1, 0, 2**40])
def test_footers_with_impossible_offsets(tmp_path: Path, offset: int) -> None:
    """The wanted row is in another row group than the damage."""
    path, table = plain_file(tmp_path), WHOLE.select(["n", "x"])
    part = opened(path, table)
    real = ForeignPages._chunk

    def chunk(pages: ForeignPages, block: int, leaf: int) -> Chunk:
        found = real(pages, block, leaf)
        return found._replace(begin=offset) if (block, leaf) == (0, 0) else found

    with mock.patch.object(ForeignPages, "_chunk", chunk):
        assert read(part, [4_321], ["n", "x"], table) == set()


@pytest.mark.parametrize("size", [-1, -(2**62)])
def test_footers_with_negative_sizes(tmp_path: Path, size: int) -> None:
    path, table = plain_file(tmp_path), WHOLE.select(["n", "x"])
    part = opened(path, table)
    real = ForeignPages._chunk
    with (
        mock.patch.object(ForeignPages, "_chunk", lambda *a: real(*a)._replace(size=size)),
        pytest.raises(CorruptData, match="points outside of the file"),
    ):
        read(part, [4_321], ["n", "x"], table)


@pytest.mark.parametrize("behind", [b"\x00", b"a bloom filter, or anything else"])
def test_an_index_that_is_not_the_last_before_the_footer(tmp_path: Path, behind: bytes) -> None:
    path, table = plain_file(tmp_path), WHOLE.select(["n", "x"])
    data = path.read_bytes()
    end = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    path.write_bytes(data[:end] + behind + data[end:])
    assert read(opened(path, table), [PAGE + 1], ["n", "x"], table) == set()


def test_a_file_without_an_index(tmp_path: Path) -> None:
    assert read(part_of(tmp_path, write_page_index=False, max_rows_per_page=PAGE), [4_321], ["n", "x"]) == set()


@given(data=st.data())
def test_any_changed_byte_of_an_index(data: st.DataObject, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Whatever an index says, the rows are those of the file."""
    path, table = plain_file(tmp_path_factory.mktemp("changed")), WHOLE.select(["n", "x"])
    content, begin = index_of(path)
    end = len(content) - 8 - int.from_bytes(content[-8:-4], "little")
    for _ in range(data.draw(st.integers(1, 3))):
        content[data.draw(st.integers(begin, end - 1))] = data.draw(st.integers(0, 255))
    path.write_bytes(content)
    rows = sorted(data.draw(st.sets(st.integers(0, ROWS - 1), min_size=1, max_size=5)))
    read(opened(path, table), rows, ["n", "x"], table)


def test_a_decimal_in_more_bytes_than_it_needs_is_read_whole(tmp_path: Path) -> None:
    """The library would write 18 digits in 8 bytes, and the file has 13. Other columns of the same read come by pages."""
    table = pa.table({"small": WHOLE["large"], "n": WHOLE["n"]})
    path = write_file(
        tmp_path / "a.parquet", table, row_group_size=GROUP, write_page_index=True, store_schema=False, **PLAIN
    )
    data = path.read_bytes()
    start = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    digits = b"\x15\x06\x15\x3c"  # scale 3, precision 30: 18 digits, which fit into 8 bytes
    assert data.count(digits, start) == 2
    path.write_bytes(data[:start] + data[start:].replace(digits, b"\x15\x06\x15\x24"))
    narrow = table.set_column(0, "small", table["small"].cast(pa.decimal128(18, 3)))
    assert read(opened(path, narrow), [4_321], ["small", "n"], narrow) == {"n"}


def test_dates_of_the_old_calendar_come_by_pages(tmp_path: Path) -> None:
    """Spark 2 wrote days of the Julian calendar, whose 4 June 1422 is nine days later in the Gregorian one."""
    julian = pa.array(np.arange(ROWS) - 200_000, pa.int32())
    note = {"org.apache.spark.version": "2.4.8"}
    stored = pa.table({"day": julian.cast(pa.date32())}).replace_schema_metadata(note)
    gregorian = pa.table(
        {"day": pa.array(gregorian_days(julian.to_numpy().astype(np.int64)), pa.int32()).cast(pa.date32())}
    )
    write_file(tmp_path / "a.parquet", stored, row_group_size=GROUP, write_page_index=True, **PLAIN)
    assert read(opened(tmp_path / "a.parquet", gregorian), [1, 4_321], ["day"], gregorian) == {"day"}
