"""Parts cut into windows: the same rows in the same order, counted the same."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tamis.core.expr import conjuncts_of, parse_predicate
from tamis.core.types import LONG, STRING, Field, Schema
from tamis.core.types.arrow import to_arrow_schema
from tamis.engine.part_reader import ReadCounters, ReadSpec, read_part, split_windows
from tamis.storage.commit_log.deletion_vectors import serialize_vector
from tamis.storage.files import PartRef
from tamis.storage.object_store import open_store
from tests.files.parts import write_part

URL = "memory://windows"
SCHEMA = Schema((Field("n", LONG, id=1), Field("s", STRING, id=2)))
SIZES = (1500, 2000, 1200, 3000, 1100)


def make_part(form: str) -> PartRef:
    arrow, start, blocks = to_arrow_schema(SCHEMA), 0, []
    for size in SIZES:
        numbers = list(range(start, start + size))
        blocks.append(pa.record_batch([numbers, [str(n) for n in numbers]], schema=arrow))
        start += size
    return write_part(open_store(URL), SCHEMA, blocks, f"windows-{form}", form=form)


REFS = {form: make_part(form) for form in ("parquet", "vortex", "orc")}


@pytest.mark.parametrize("form", REFS)
@pytest.mark.parametrize("text", ["n >= 0", "n % 97 = 3", "n BETWEEN 1400 AND 1600", "n < 0", None])
@settings(max_examples=settings().max_examples // 4)
@given(st.integers(1, 8), st.sets(st.integers(0, sum(SIZES) - 1), max_size=20), st.sampled_from(["on", "off", "auto"]))
def test_windows_are_the_part(form: str, text: str | None, count: int, gone: set[int], lazy: str) -> None:
    ref = replace(REFS[form], deletion=serialize_vector(np.array(sorted(gone), dtype=np.int64)) if gone else None)
    wanted = conjuncts_of(parse_predicate(text, SCHEMA)) if text else ()
    spec = ReadSpec(URL, SCHEMA, {0: SCHEMA}, conjuncts=wanted, lazy=lazy)
    whole, pieces = ReadCounters(), ReadCounters()
    expected = [n for b in read_part(ref, spec, whole) for n in b.column(0).to_pylist()]
    cut = split_windows(ref, count)
    assert [n for w in cut for b in read_part(w, spec, pieces) for n in b.column(0).to_pylist()] == expected
    assert len(cut) == min(count, len(cut))
    for name in ("rows_total", "rows_matched", "blocks_total"):
        assert getattr(pieces, name) == getattr(whole, name), name
    assert pieces.blocks_skipped_stats + pieces.blocks_skipped_filter + pieces.blocks_read == pieces.blocks_total


def test_windows_cover_every_block_once() -> None:
    ref = PartRef("p", "p", "parquet", 0, 100, 1, blocks=(10,) * 10)
    for count in range(1, 14):
        cut = [w.window or (0, 10) for w in split_windows(ref, count)]
        assert [a for a, _ in cut] == [0, *(z for _, z in cut[:-1])]
        assert cut[-1][1] == 10
        assert len(cut) == min(count, 10)
    assert split_windows(replace(ref, blocks=(100,)), 4) == [replace(ref, blocks=(100,))]
