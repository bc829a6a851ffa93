"""Survivors of several pieces wait for each other, so that what holds them is fetched once; errors and batches come as if they did not."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from tamis.core.expr import conjuncts_of, parse_predicate
from tamis.core.types import DOUBLE, LONG, Field, Schema
from tamis.core.types.arrow import to_arrow_schema
from tamis.engine.part_reader import ReadCounters, ReadSpec, lazy_reader, read_part
from tamis.errors import InvalidInput
from tamis.storage.files import PartRef, named_columns, open_part
from tamis.storage.files.parquet import parquet_part
from tamis.storage.object_store import open_store
from tests.files.parts import write_part

URL = "memory://waiting"
SCHEMA = Schema((Field("k", LONG, id=1), *(Field(f"x{i}", DOUBLE, id=i) for i in range(2, 8))))
ROWS, BLOCK = 300_000, 50_000
"""Three of Vortex's segments, six blocks."""
K = np.arange(ROWS) * 7919 % ROWS
WIDE = [np.random.default_rng(i).random(ROWS) for i in range(6)]


@pytest.fixture(scope="module", params=["parquet", "vortex", "orc"])
def ref(request: pytest.FixtureRequest) -> PartRef:
    whole = pa.record_batch([K, *WIDE], schema=to_arrow_schema(SCHEMA))
    return write_part(
        open_store(URL), SCHEMA, [whole.slice(a, BLOCK) for a in range(0, ROWS, BLOCK)], "wide", form=request.param
    )


def batches(ref: PartRef, text: str, counters: ReadCounters | None = None) -> Iterator[pa.RecordBatch]:
    spec = ReadSpec(
        URL,
        SCHEMA,
        {0: SCHEMA},
        conjuncts=conjuncts_of(parse_predicate(text, SCHEMA)),
        lazy="on",
        block_statistics=False,
    )
    return read_part(ref, spec, counters or ReadCounters())


@pytest.mark.push_cases(15)
@pytest.mark.parametrize(
    "at", [[7], [7, 200_000], [7, 140_000, 290_000], list(range(0, ROWS, 1_000)), list(range(99_990, 130_000))]
)
@pytest.mark.parametrize("most", [0, 100, lazy_reader.MOST_WAITING])
def test_rows_and_their_order(ref: PartRef, at: list[int], most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lazy_reader, "MOST_WAITING", most)
    text = "k % 7919 = 0 AND k < 2375700" if len(at) == 300 else f"k IN ({', '.join(str(K[n]) for n in at)})"
    found = pa.Table.from_batches(batches(ref, text))
    keep = np.flatnonzero((K % 7919 == 0) & (K < 2375700)) if len(at) == 300 else np.array(sorted(at))
    assert found["k"].to_numpy().tolist() == K[keep].tolist()
    for i, values in enumerate(WIDE, 2):
        assert found[f"x{i}"].to_numpy().tolist() == values[keep].tolist()


def test_a_block_with_hits_is_fetched_once_and_others_not(ref: PartRef) -> None:
    costs = {}
    for name, at in {"one": [7, 40_000], "three": [7, 140_000, 290_000]}.items():
        counters = ReadCounters()
        assert sum(len(b) for b in batches(ref, f"k IN ({', '.join(str(K[n]) for n in at)})", counters)) == len(at)
        costs[name] = counters.bytes_follower
    pages = ref.format == "parquet"  # two rows lie on two pages
    assert 0 < costs["one"] < (0.7 if pages else 0.4) * costs["three"]
    assert costs["three"] < 0.6 * ref.bytes


def test_where_hardly_a_row_survives_followers_are_asked_for_together(
    ref: PartRef, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One block tells that few survive; of the five behind it leaders come first, then the followers of what is left of all of them."""
    kind, asked = type(open_part(open_store(URL), ref, SCHEMA)), []
    original = kind.read

    def read(self: Any, columns: Any, blocks: Any, rows: Any = None) -> Any:
        asked.append((min(columns), len(blocks)))
        return original(self, columns, blocks, rows)

    monkeypatch.setattr(kind, "read", read)
    hits = [7, 60_000, 140_000, 290_000]
    found = pa.Table.from_batches(batches(ref, f"k IN ({', '.join(str(K[n]) for n in hits)})"))
    assert found["k"].to_pylist() == [K[n] for n in hits]
    assert asked == [(1, 1), (2, 1), (1, 5), (2, 3)]


def test_rows_before_the_one_that_fails_come_before_the_error(ref: PartRef) -> None:
    """The row that fails lies in another piece: a consumer that has enough by then never meets it."""
    failing, wanted = int(K[180_000]), int(K[7])
    rows = batches(ref, f"1 / (k - {failing}) < 2 AND k = {wanted}")
    assert next(rows)["k"].to_pylist() == [wanted]
    with pytest.raises(InvalidInput, match="FILTER_FAILED"):
        next(rows)


def test_wide_rows_come_in_small_pieces(ref: PartRef, monkeypatch: pytest.MonkeyPatch) -> None:
    """Memory goes by bytes, not by rows; a block is the least that is decoded whole."""
    monkeypatch.setattr(named_columns, "PIECE_BYTES", BLOCK * 7 * 8 * 2)
    monkeypatch.setattr(parquet_part, "PIECE_BYTES", BLOCK * 7 * 8 * 2)
    file = open_part(open_store(URL), ref, SCHEMA)
    pieces = list(file.read(range(1, 8), range(6)))
    assert max(len(p.positions) for p in pieces) <= 2 * BLOCK
    assert np.concatenate([p.positions for p in pieces]).tolist() == list(range(ROWS))
    assert np.concatenate([p.batch.column(0).to_numpy() for p in pieces]).tolist() == K.tolist()
    monkeypatch.setattr(named_columns, "PIECE_BYTES", 7 * 8 * 100)
    monkeypatch.setattr(parquet_part, "PIECE_BYTES", 7 * 8 * 100)
    taken = np.arange(0, ROWS, 500)
    pieces = list(file.read(range(1, 8), range(6), taken))
    assert max(len(p.positions) for p in pieces) <= 100
    assert np.concatenate([p.batch.column(0).to_numpy() for p in pieces]).tolist() == K[taken].tolist()
