"""A Vortex part is one Vortex file per block; a part of earlier releases, which is a single file, stays readable."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
import vortex

from tamis.core.types import LONG, STRING, Field, Schema
from tamis.core.types.arrow import to_arrow_schema
from tamis.storage.files import open_part
from tamis.storage.files.file_seal import SealingSink, Summary
from tamis.storage.files.protocol import PartRef, WriteOptions
from tamis.storage.files.sealed_reader import open_sealed
from tamis.storage.files.vortex.file_tail import tail_length
from tamis.storage.object_store import open_store
from tests.files.parts import write_part

STORE = open_store("memory://vortex-files")
SCHEMA = Schema((Field("n", LONG, id=1), Field("s", STRING, id=2), Field("m", LONG, id=3)))
SIZES = (3_000, 1, 2_500, 4_000)
STARTS = np.concatenate([[0], np.cumsum(SIZES)])


def batches() -> list[pa.RecordBatch]:
    return [
        pa.record_batch(
            [range(a, z), [f"text {n * 7919 % 10_007}" for n in range(a, z)], [n * 31 % 997 for n in range(a, z)]],
            schema=to_arrow_schema(SCHEMA),
        )
        for a, z in pairwise(STARTS)
    ]


def single_file(folder: Path) -> PartRef:
    """Write a part as earlier releases did: all blocks in one Vortex file, no tails in the seal."""
    path = folder / "one.vortex"
    vortex.io.write(pa.Table.from_batches(batches()), str(path))
    sink, summary = SealingSink(STORE.writer("data/one.vortex")), Summary(SCHEMA)
    sink.write(path.read_bytes())
    for batch in batches():
        summary.add(batch)
        summary.end()
    done = sink.seal(summary, WriteOptions("one"), ())
    rows = sum(SIZES)
    return PartRef("one", "data/one.vortex", "vortex", 0, rows, done.bytes, done.checksum, done.footer_checksum, SIZES)


@pytest.mark.push_cases(8)
@pytest.mark.parametrize("rows", [None, [0, 2_999, 3_000, 3_001, 5_500, 9_500], [3_000], [5_501, 5_502]])
@pytest.mark.parametrize("ids", [[1, 2, 3], [1, 3], [2]])
@pytest.mark.parametrize("single", [False, True])
def test_rows_are_the_same_in_one_file_and_in_several(
    tmp_path: Path, rows: list[int] | None, ids: list[int], single: bool
) -> None:
    ref = single_file(tmp_path) if single else write_part(STORE, SCHEMA, batches(), "several", form="vortex")
    seal = open_sealed(STORE, ref).seal
    assert len(seal.tails) == (0 if single else len(SIZES))
    part = open_part(STORE, ref, SCHEMA)
    wanted = None if rows is None else np.array(rows, dtype=np.int64)
    found = list(part.read(ids, range(len(SIZES)), wanted))
    expected = pa.Table.from_batches(batches()).select([{1: "n", 2: "s", 3: "m"}[i] for i in ids])
    expected = expected if rows is None else expected.take(pa.array(rows))
    assert wanted is None or part.decoded_rows(ids, wanted) == len(wanted)
    assert np.concatenate([p.positions for p in found]).tolist() == (rows or list(range(sum(SIZES))))
    for i, name in zip(ids, expected.column_names, strict=True):
        assert [v for p in found for v in p.batch.column(str(i)).to_pylist()] == expected[name].to_pylist()


def test_the_files_of_a_part_are_vortex_files(tmp_path: Path) -> None:
    """Any tool can cut them apart: ``spans`` tells where each ends. The copy of its tail is what stands there."""
    ref = write_part(STORE, SCHEMA, batches(), "cut", form="vortex")
    seal = open_sealed(STORE, ref).seal
    raw = STORE.get(ref.path)
    for begin, end, tail, batch in zip((0, *seal.spans), seal.spans, seal.tails, batches(), strict=False):
        (tmp_path / "x.vortex").write_bytes(raw[begin:end])
        assert raw[end - len(tail) : end] == tail
        assert len(tail) == tail_length(raw[begin:end]) < 64 * 2**10
        assert vortex.open(str(tmp_path / "x.vortex")).to_arrow().read_all()["n"].to_pylist() == batch["n"].to_pylist()


def test_the_tail_of_what_is_no_vortex_file_is_its_last_bytes() -> None:
    assert tail_length(b"x" * 100_000) == 64 * 2**10
    assert tail_length(b"x" * 100) == 100
    assert tail_length(b"\0" * 100 + b"\x01\0\x10\0VTXF") <= 108
