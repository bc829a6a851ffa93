"""Parts: durable before they are told of, of the size asked for, their rows and statistics those of the input; orphans at worst."""

import pickle
import zlib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tamis.core.pruning.evidence import ColumnEvidence
from tamis.core.stats import TableEvidence
from tamis.core.types import DOUBLE, LONG, STRING, Field, Schema
from tamis.core.types.arrow import to_arrow_schema
from tamis.engine.part_writer import WriteSpec, write_part, write_parts
from tamis.engine.part_writer.write_part import BLOCK_ROWS, WIDE_ROWS, _blocks, block_rows_for
from tamis.errors import InvalidInput, SchemaMismatch
from tamis.storage.commit_log import PART_COLUMNS
from tamis.storage.files import PAGE_ROWS, PartRef, open_part
from tamis.storage.files.parquet.page_offsets import PAGES
from tamis.storage.object_store import open_store

SCHEMA = Schema((Field("n", LONG, id=1), Field("x", DOUBLE, id=2), Field("s", STRING, id=3)), schema_id=4)


def batches(rows: int, size: int = 1_000) -> Iterator[pa.RecordBatch]:
    for start in range(0, rows, size):
        n = np.arange(start, min(start + size, rows))
        yield pa.record_batch([n, n / 7, [f"{i:x}" * 4 for i in n]], names=["n", "x", "s"])


def spec_in(folder: Path, **settings: object) -> WriteSpec:
    return replace(WriteSpec(str(folder), SCHEMA, block_rows=500), **settings)  # type: ignore[arg-type]


def ref_of(row: dict[str, object]) -> PartRef:
    names = ("part_id", "path", "format", "schema_id", "rows", "bytes", "checksum", "footer_checksum")
    return PartRef(**{name: row[name] for name in names}, blocks=tuple(row["blocks"]))  # type: ignore[arg-type]


def rows_of(folder: Path, manifest: pa.Table) -> list[int]:
    out: list[int] = []
    for row in manifest.to_pylist():
        part = open_part(open_store(folder), ref_of(row), SCHEMA)
        out += [n for p in part.read([1], range(len(part.block_rows))) for n in p.batch.column(0).to_pylist()]
    return out


def evidence(manifest: pa.Table, column_id: int) -> ColumnEvidence:
    found = TableEvidence(manifest, SCHEMA).column((column_id,))
    assert found is not None
    return found


def test_rows_in_order_blocks_as_told_parts_of_the_size(tmp_path: Path) -> None:
    manifest = pa.concat_tables(write_parts(batches(10_300), spec_in(tmp_path, part_bytes=15_000)))
    assert len(manifest) > 2
    assert rows_of(tmp_path, manifest) == list(range(10_300))
    assert all(set(blocks[:-1]) <= {500} for blocks in manifest["blocks"].to_pylist())
    assert all(15_000 <= size < 45_000 for size in manifest["bytes"].to_pylist()[:-1])
    assert manifest.column_names[: len(PART_COLUMNS)] == list(PART_COLUMNS)


def test_manifest_row_tells_the_truth(tmp_path: Path) -> None:
    (row,) = write_parts(batches(1_200), spec_in(tmp_path, run_id="r"))
    facts = row.to_pylist()[0]
    data = (tmp_path / facts["path"]).read_bytes()
    assert facts["path"] == f"data/{facts['part_id']}.parquet"
    assert (facts["bytes"], facts["checksum"]) == (len(data), zlib.crc32(data))
    assert (facts["rows"], facts["blocks"], facts["schema_id"], facts["run_id"]) == (1_200, [500, 500, 200], 4, "r")
    n, s = evidence(row, 1), evidence(row, 3)
    assert (n.lo.to_pylist(), n.hi.to_pylist(), n.nulls.to_pylist()) == ([0], [1_199], [0])
    assert s.lo.to_pylist() == ["0000"]


def test_statistics_can_be_left_out(tmp_path: Path) -> None:
    (row,) = write_parts(batches(10), spec_in(tmp_path, collect=False))
    assert row.column_names == list(PART_COLUMNS)
    assert evidence(row, 1).nulls.to_pylist() == [None]


@pytest.mark.parametrize(
    ("data", "ordered"), [([1, 2, 2, 3], True), ([1, 3, 2], False), ([None, 1], True), ([1, None], False)]
)
def test_order_is_looked_at_not_believed(tmp_path: Path, data: list[int | None], ordered: bool) -> None:
    """Also across blocks (of one row)."""
    for block_rows in (1, 100):
        spec = spec_in(tmp_path, cluster_by=((1,),), block_rows=block_rows)
        batch = pa.record_batch([pa.array(data, pa.int64())], names=["n"])
        (row,) = write_parts([batch], spec)
        assert row["ordered"].to_pylist() == [ordered]
    (row,) = write_parts([batch], spec_in(tmp_path))
    assert row["ordered"].to_pylist() == [False]


def test_no_rows_no_parts(tmp_path: Path) -> None:
    assert list(write_parts([], spec_in(tmp_path))) == []
    assert list(write_parts([next(batches(5)).slice(0, 0)], spec_in(tmp_path))) == []
    assert not (tmp_path / "data").exists()


def failing() -> Iterator[pa.RecordBatch]:
    yield from batches(3_000)
    raise RuntimeError("the source broke")


def test_a_broken_source_leaves_no_file_half_written(tmp_path: Path) -> None:
    parts: list[Any] = []
    with pytest.raises(RuntimeError, match="the source broke"):
        parts.extend(write_parts(failing(), spec_in(tmp_path, block_rows=1_000, part_bytes=2**30)))
    assert parts == []
    assert not [f for f in tmp_path.rglob("*") if f.is_file()]


def test_parts_are_durable_when_they_are_told_of(tmp_path: Path) -> None:
    for row in write_parts(batches(5_000), spec_in(tmp_path, part_bytes=5_000)):
        assert (tmp_path / row["path"][0].as_py()).stat().st_size == row["bytes"][0].as_py()


def test_a_consumer_that_stops_leaves_only_whole_parts(tmp_path: Path) -> None:
    parts = write_parts(batches(5_000), spec_in(tmp_path, part_bytes=5_000))
    first = next(parts)
    parts.close()  # type: ignore[attr-defined]
    assert [f.name for f in (tmp_path / "data").iterdir()] == [Path(first["path"][0].as_py()).name]


def test_what_does_not_fit_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SchemaMismatch, match="EXTRA_COLUMN"):
        list(write_parts([pa.record_batch([[1]], names=["other"])], spec_in(tmp_path)))
    with pytest.raises(InvalidInput, match="UNKNOWN_FORMAT"):
        list(write_parts(batches(1), spec_in(tmp_path, format="csv")))


def test_spec_is_picklable(tmp_path: Path) -> None:
    spec = spec_in(tmp_path, cluster_by=((1,),))
    assert pickle.loads(pickle.dumps(spec)) == spec


def test_blocks_are_larger_where_rows_are_narrow() -> None:
    narrow = pa.record_batch([np.arange(1_000)], names=["n"])
    wide = pa.record_batch([np.arange(1_000)] * 120, names=[str(i) for i in range(120)])
    usual = pa.record_batch([np.arange(1_000)] * 20, names=[str(i) for i in range(20)])
    widest = pa.record_batch([np.arange(1_000)] * 1_200, names=[str(i) for i in range(1_200)])
    amounts = pa.array(np.arange(1_000)).cast(pa.decimal128(20, 0)).cast(pa.decimal128(9, 0))
    priced = pa.record_batch([amounts] * 50, names=[str(i) for i in range(50)])  # 16 bytes each, but 4 in a file
    assert [block_rows_for(batch, 8 * 2**20) for batch in (narrow, usual, priced, wide, widest)] == [
        BLOCK_ROWS[1],
        32_768,
        32_768,
        WIDE_ROWS,
        BLOCK_ROWS[0],
    ]


@pytest.mark.parametrize(("columns", "page"), [(2, 2 * PAGE_ROWS), (80, PAGE_ROWS)])
def test_pages_are_longer_where_rows_are_narrow(tmp_path: Path, columns: int, page: int) -> None:
    schema = Schema(tuple(Field(f"c{i}", LONG, id=i + 1) for i in range(columns)))
    batch = pa.RecordBatch.from_arrays([pa.array(np.arange(70_000))] * columns, schema=to_arrow_schema(schema))
    (row,) = write_parts([batch], WriteSpec(url=str(tmp_path), schema=schema))
    notes = pq.read_metadata(tmp_path / row["path"][0].as_py()).metadata
    assert notes[PAGES.encode()].split()[0] == str(page).encode()


def test_blocks_are_cut_across_batches() -> None:
    batch = pa.record_batch([np.arange(40_000)] * 60, names=[str(i) for i in range(60)])
    found = [len(block) for block in _blocks([batch.slice(0, 10_000), batch.slice(10_000)], 0, 4 * 2**20)]
    assert found == [16_384, 16_384, 40_000 - 2 * 16_384]


def test_passing_columns_by_the_schema_itself(tmp_path: Path) -> None:
    batch = pa.record_batch([[1], [0.5], ["a"]], schema=to_arrow_schema(SCHEMA))
    (row,) = write_parts([batch], spec_in(tmp_path))
    assert rows_of(tmp_path, row) == [1]


def test_a_block_of_nested_texts_beyond_32_bits_of_offsets_is_several(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first batch is of narrow rows, from which the rows of a block follow."""
    monkeypatch.setattr(write_part, "LARGEST_ARRAY", 10_000)

    def nested(size: int, width: int) -> pa.RecordBatch:
        return pa.record_batch({"l": pa.array([{"t": "y" * width}] * size)})

    given = [nested(1, 1), *(nested(30, 100) for _ in range(9))]
    blocks = list(_blocks(iter(given), 200, 2**20))
    assert [len(block) for block in blocks] == [91, 90, 19, 71]
    assert all(block.nbytes <= 10_000 for block in blocks)
    assert pa.Table.from_batches(blocks).equals(pa.Table.from_batches(given).combine_chunks())
