"""What is read and what is not: the point of the lazy reader, seen in its counters."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from tamis.core.expr import Expr, Opaque, conjuncts_of, parse_predicate
from tamis.core.types import BOOLEAN, LONG, STRING, Field, Schema
from tamis.core.types.arrow import to_arrow_schema
from tamis.engine.part_reader import ReadCounters, ReadSpec, read_part
from tamis.engine.part_reader.lazy_choice import LazyChoice, ScanScattering
from tamis.errors import InvalidInput
from tamis.storage.files.protocol import PartRef
from tamis.storage.object_store import open_store
from tests.files.parts import write_part

URL = "memory://cost"
SCHEMA = Schema((Field("n", LONG, id=1), Field("r", LONG, id=2), Field("s", STRING, id=3), Field("t", STRING, id=4)))
BLOCKS, SIZE = 10, 20_000
RANDOM = np.random.default_rng(1).integers(0, 2**40, BLOCKS * SIZE)
RANDOM[::SIZE] = -1_000  # no block's bounds exclude what the filters look for
RANDOM[5 * SIZE + 17] = -1


def make_part() -> tuple[ReadSpec, PartRef]:
    arrow = to_arrow_schema(SCHEMA)
    n = np.arange(BLOCKS * SIZE)
    text = np.char.mod("%012x", RANDOM)
    blocks = [
        pa.record_batch([n[a : a + SIZE], RANDOM[a : a + SIZE], text[a : a + SIZE], text[a : a + SIZE]], schema=arrow)
        for a in range(0, len(n), SIZE)
    ]
    return ReadSpec(URL, SCHEMA, {0: SCHEMA}, lazy="on"), write_part(open_store(URL), SCHEMA, blocks)


SPEC, REF = make_part()
PART: Any = SimpleNamespace(block_rows=[10] * 4, cost=lambda ids, blocks: len(ids) * len(blocks))


def run(
    text: str | tuple[Expr, ...], scattering: ScanScattering | None = None, **changes: Any
) -> tuple[int, ReadCounters]:
    counters = ReadCounters()
    wanted = conjuncts_of(parse_predicate(text, SCHEMA)) if isinstance(text, str) else text
    rows = sum(b.num_rows for b in read_part(REF, replace(SPEC, conjuncts=wanted, **changes), counters, scattering))
    return rows, counters


def test_blocks_excluded_by_their_own_statistics_are_not_read() -> None:
    rows, c = run("n BETWEEN 30000 AND 30010")
    assert (rows, c.blocks_total, c.blocks_skipped_stats, c.blocks_read, c.rows_leader) == (11, 10, 9, 1, SIZE)
    assert c.bytes_leader + c.bytes_follower < REF.bytes / 8


def test_followers_only_where_a_row_survived() -> None:
    rows, c = run("r = -1")
    assert (rows, c.blocks_skipped_filter, c.blocks_read, c.rows_leader) == (1, 9, 1, BLOCKS * SIZE)
    eager = run("r = -1", lazy="off")[1]
    assert c.bytes_follower < eager.bytes_follower / 8
    assert abs(c.bytes_leader - eager.bytes_leader) < eager.bytes_leader / 10


def test_nothing_survives_nothing_else_is_read() -> None:
    rows, c = run("r = -2")
    assert (rows, c.bytes_follower, c.blocks_read) == (0, 0, 0)


def test_blocks_that_match_wholly_are_not_tested() -> None:
    rows, c = run("n >= 40000")
    assert (rows, c.blocks_skipped_stats, c.rows_leader) == (8 * SIZE, 2, 0)


def test_a_block_that_matches_partly_is_tested_beside_those_that_match_wholly() -> None:
    rows, c = run("n <= 50000")
    assert (rows, c.blocks_skipped_stats, c.rows_leader) == (50_001, 7, SIZE)


def test_a_column_that_leads_and_is_selected_is_read_once() -> None:
    both = run("r = -1", schema=SCHEMA.select(("r",)))[1]
    assert both.bytes_follower == 0
    assert both.bytes_leader == run("r = -2", schema=SCHEMA.select(()))[1].bytes_leader


def test_the_gate_turns_eager_where_most_rows_survive() -> None:
    _, c = run("r % 7 < 6", lazy="auto")  # seen
    assert 0 < c.blocks_lazy < c.blocks_eager
    _, c = run("r > 0", lazy="auto")  # known from bounds
    assert (c.blocks_lazy, c.blocks_eager) == (0, BLOCKS)
    _, c = run("r = -1", lazy="auto")
    assert (c.blocks_lazy, c.blocks_eager) == (BLOCKS, 0)


def test_the_gate_turns_eager_where_survivors_are_on_all_pages() -> None:
    scattered = run(f"r < {2**37}", lazy="auto")[1]  # an eighth of the rows
    assert 0 < scattered.blocks_lazy < scattered.blocks_eager
    clustered = run(f"r < {2**40} AND n % {SIZE} < {SIZE // 8}", lazy="auto")[1]  # as many, in the first pages
    assert (clustered.blocks_lazy, clustered.blocks_eager) == (BLOCKS, 0)
    rare = run("r % 50000 = 7", lazy="auto")[1]
    assert (rare.blocks_lazy, rare.blocks_eager) == (BLOCKS, 0)


def test_the_gate_is_eager_where_leaders_are_most_of_the_bytes() -> None:
    _, c = run("s > t", lazy="auto", schema=SCHEMA.select(("n", "s")))
    assert c.blocks_lazy == 0


def test_the_choice_trusts_observed_shares_more_than_estimates() -> None:
    choice = LazyChoice("auto", PART, [1], [2, 3, 4])
    choice.expected_shares = np.array([0.6, 0.6, 0.06, 0.6])
    assert not choice.prefers_lazy([0])
    choice.record_survivors([0], 0, 10, 0.0)  # an outlier had stretched the bounds
    assert choice.prefers_lazy([1])
    choice.record_survivors([1], 5, 10, 0.5)
    assert not choice.prefers_lazy([3])
    assert choice.prefers_lazy([2])


def test_the_gate_turns_lazy_again_when_survivors_lie_together() -> None:
    choice = LazyChoice("auto", PART, [1], [2, 3, 4])
    assert choice.prefers_lazy([0])
    choice.record_survivors([0], 1, 10, 1.0)
    assert not choice.prefers_lazy([1])
    choice.record_survivors([1], 1, 10, 0.2)
    assert choice.prefers_lazy([2])


def test_parts_begin_eagerly_while_all_chunks_of_their_scan_were_scattered() -> None:
    scattering = ScanScattering()
    first, second = (LazyChoice("auto", PART, [1], [2, 3, 4], scattering) for _ in range(2))
    assert first.prefers_lazy([0])
    assert second.prefers_lazy([0])
    first.record_survivors([0], 1, 10, 1.0)
    third = LazyChoice("auto", PART, [1], [2, 3, 4], scattering)
    assert not third.prefers_lazy([0])
    assert LazyChoice("on", PART, [1], [2, 3, 4], scattering).prefers_lazy([0])
    third.record_survivors([0], 1, 10, 0.2)
    assert third.prefers_lazy([1])
    assert LazyChoice("auto", PART, [1], [2, 3, 4], scattering).prefers_lazy([0])
    first.record_survivors([1], 1, 10, 1.0)
    assert LazyChoice("auto", PART, [1], [2, 3, 4], scattering).prefers_lazy([0])


def test_chunks_that_are_always_read_whole_say_nothing_about_a_scan() -> None:
    scattering = ScanScattering()
    LazyChoice("auto", PART, [1], [2, 3, 4], scattering).record_survivors([0], 1, 10, 1.0)
    LazyChoice("auto", PART, [1], [2, 3, 4], scattering).record_survivors([0], 1, 10, None)
    LazyChoice("auto", PART, [1], [], scattering).record_survivors([0], 1, 10, 0.0)
    LazyChoice("off", PART, [1], [2, 3, 4], scattering).record_survivors([0], 1, 10, 0.0)
    assert not LazyChoice("auto", PART, [1], [2, 3, 4], scattering).prefers_lazy([0])


@pytest.mark.parametrize(("text", "lazy"), [(f"r < {2**37}", 3), (f"r < {2**40} AND n % {SIZE} < {SIZE // 8}", BLOCKS)])
def test_a_later_part_of_a_scan_costs_what_the_first_ones_showed(text: str, lazy: int) -> None:
    scattering = ScanScattering()
    rows, first = run(text, lazy="auto", scattering=scattering)
    again, second = run(text, lazy="auto", scattering=scattering)
    assert rows == again
    assert (first.blocks_lazy, second.blocks_lazy) == (lazy, 0 if lazy < BLOCKS else BLOCKS)


def test_scattering_is_observed_only_where_lazy_reading_might_pay() -> None:
    assert LazyChoice("auto", PART, [1], [2, 3, 4]).needs_decoded_share
    assert not LazyChoice("auto", PART, [1], []).needs_decoded_share
    assert not LazyChoice("off", PART, [1], [2, 3, 4]).needs_decoded_share
    assert [LazyChoice.is_dense(kept, 10) for kept in (0, 1, 9)] == [False, False, True]


def test_dense_pieces_of_a_chunk_count_as_decoded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pieces of a chunk that is read eagerly: blocks of 30 % and of 10 % of scattered survivors."""
    shares: list[float] = []
    original = LazyChoice.record_survivors

    def record_survivors(choice: LazyChoice, chunk: Any, kept: int, rows: int, decoded: float) -> None:
        shares.append(decoded)
        original(choice, chunk, kept, rows, decoded)

    monkeypatch.setattr(LazyChoice, "record_survivors", record_survivors)
    monkeypatch.setattr(LazyChoice, "prefers_lazy", lambda *_: False)
    run(f"r % 10 < CASE WHEN n < {5 * SIZE} THEN 3 ELSE 1 END", lazy="auto")
    assert len(shares) > 1
    assert min(shares) == 1.0


UNKNOWN = Opaque(BOOLEAN, "my_udf(n)")


def test_what_cannot_be_run_is_left_to_others_and_hides_no_error() -> None:
    first, last = parse_predicate("n < 5", SCHEMA), parse_predicate("r = -1", SCHEMA)
    assert run((first, UNKNOWN), errors="keep")[0] == 5
    assert run((UNKNOWN, last), errors="keep")[0] == BLOCKS * SIZE
    with pytest.raises(InvalidInput, match="my_udf"):
        run((first, UNKNOWN))


def test_counters_add_up() -> None:
    a, b = ReadCounters(rows_total=1, seconds_open=0.5), ReadCounters(rows_total=2, bytes_leader=3)
    a.merge(b)
    assert (a.as_dict()["rows_total"], a.bytes_leader, a.seconds_open) == (3, 3, 0.5)
