"""A stream's ranges under a filter: no row of a match is left out, however the table grows, and what is read does not grow with the past."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tamis
from tamis.core.expr.parse_filter import parse_predicate
from tamis.core.expr.tree import conjuncts_of
from tamis.engine.operations.streaming import stream_source
from tamis.engine.operations.streaming.range_plan import kept_parts, plan_ranges
from tamis.engine.operations.streaming.stream_source import Bools, Follower, Position
from tamis.engine.part_reader import ReadCounters, read_part
from tamis.engine.part_writer import write_part
from tamis.engine.scan import Options, Plan, PlanRequest
from tamis.storage.commit_log.part_range import PartRange
from tests.operations.making import filled, rows, table

FILTERS: dict[str, Callable[[int, int, str], bool]] = {
    "ts >= 95": lambda ts, user, name: ts >= 95,
    "ts < 30": lambda ts, user, name: ts < 30,
    "ts BETWEEN 40 AND 60": lambda ts, user, name: 40 <= ts <= 60,
    "user = 7": lambda ts, user, name: user == 7,
    "name = 'n3' AND ts > 20": lambda ts, user, name: name == "n3" and ts > 20,
    "ts < 0": lambda ts, user, name: ts < 0,
    "ts % 7 = 1": lambda ts, user, name: ts % 7 == 1,
}


def planned(of: tamis.Table, ranges: list[PartRange], text: str | None, **options: Any) -> Plan:
    schema = of.refresh().snapshot.head.schema
    assert schema is not None
    parts = () if text is None else conjuncts_of(parse_predicate(text, schema))
    request = PlanRequest(conjuncts=parts, selected=schema, options=Options(**options), errors="keep", filter_text=text)
    return plan_ranges(ranges, of.store, request)


def read(plan: Plan) -> list[tuple[Any, ...]]:
    """The rows that a plan returns, as Spark's filter above it then sees them."""
    batches = [batch for ref in plan.parts for batch in read_part(ref, plan.spec, ReadCounters())]
    return [tuple(row.values()) for batch in batches for row in batch.to_pylist()]


def matching(found: list[tuple[Any, ...]], text: str) -> list[tuple[Any, ...]]:
    return [row for row in found if FILTERS[text](*row)]


@given(
    steps=st.lists(
        st.sampled_from(["append", "append", "two", "compact", "delete", "properties"]), min_size=2, max_size=6
    ),
    cuts=st.lists(st.integers(1, 4), min_size=1, max_size=4),
    text=st.sampled_from(sorted(FILTERS)),
    whole=st.booleans(),
    width=st.sampled_from([1, 3, 256]),
)
@pytest.mark.merge
def test_a_filter_leaves_out_no_match(steps: list[str], cuts: list[int], text: str, whole: bool, width: int) -> None:
    """With appends, compaction, deletes that are skipped, and in ranges cut anywhere."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stream_source, "RUN_VERSIONS", width)
        patch.setattr(write_part, "BLOCK_ROWS", (4, 4))
        _leaves_out_no_match(steps, cuts, text, whole)


def _leaves_out_no_match(steps: list[str], cuts: list[int], text: str, whole: bool) -> None:
    of = filled(2, size=10, write__part_bytes=1)
    assert len(of.snapshot.parts()) == 6, "a segment has several parts, so that cuts go through segments"
    if whole:
        of.delete("ts IN (1, 7, 12) OR ts >= 15")
    expected = [row for row in range(20) if not whole or row not in {1, 7, 12, 15, 16, 17, 18, 19}]
    follower = Follower(of.store, skip_changes=True)
    at = Follower(of.store).begin() if whole else follower.begin(0)
    for number, step in enumerate(steps):
        start = 20 + number * 10
        if step == "compact":
            of.compact()
        elif step == "delete":
            of.delete(f"ts = {start - 15}")
        elif step == "properties":
            of.alter().set_properties({"said": str(number)}).commit()
        else:
            size = 10 if step == "append" else 20
            of.append(rows(start, size))
            expected += range(start, start + size)
        of = of.refresh()
    last = follower.end()
    everything, pruned = [], []
    for step_size in [*cuts, None]:
        after = follower.advance(at, max_parts=step_size, until=last)
        ranges = follower.ranges(at, Position.from_json(after.to_json()))
        everything += read(planned(of, ranges, None))
        plan = planned(of, ranges, text)
        pruned += read(plan)
        assert plan.report.parts["total"] == sum(len(one.parts()) for one in ranges)
        assert plan.report.parts["kept"] == len(plan.parts)
        assert plan.report.bytes["table"] == sum(int(one.parts()["bytes"].to_numpy().sum()) for one in ranges)
        held = [one.parts() for one in ranges]
        live = sum(int(t["rows"].to_numpy().sum() - t["deleted"].to_numpy().sum()) for t in held)
        assert plan.report.rows["total"] == live
        audited = planned(of, ranges, text, audit_percent=100.0)
        assert len(audited.parts) + len(audited.audit) == plan.report.parts["total"] == len(audited.proofs)
        at = after
    assert at == last
    assert [row[0] for row in everything] == expected
    assert matching(pruned, text) == matching(everything, text)


def wanted(of: tamis.Table, text: str, one: PartRange) -> Bools:
    return kept_parts(one, planned(of, [one], text))


def consumed(of: tamis.Table, start: Position, text: str) -> tuple[int, int, int]:
    """Parts and bytes that a stream from ``start`` reads, and its micro-batches, four parts each."""
    follower, at, parts, size, batches = Follower(of.store), start, 0, 0, 0
    last = follower.end()
    while at != last:
        at_end = follower.advance(at, max_parts=4, until=last, wanted=partial(wanted, of, text))
        plan = planned(of, follower.ranges(at, at_end), text)
        parts, size, batches = parts + len(plan.parts), size + plan.parts.bytes, batches + 1
        at = at_end
    return parts, size, batches


@pytest.mark.merge
def test_the_past_costs_no_reads() -> None:
    """The last 15 loads of 30, and of 300."""
    found = {}
    for loads in (30, 300):
        of = table()
        for load in range(loads):
            of.append(rows(1_000 - loads + load, 1))
        text, ids = "ts >= 985", of.snapshot.head.table_id
        of = of.refresh()
        found[loads] = [
            consumed(of, Follower(of.store).begin(), text),
            consumed(of, Follower(of.store).begin(0), text),
            consumed(of, Position(ids, loads // 2), text),
        ]
    assert found[30] == found[300]
    assert [parts for parts, _, _ in found[30]] == [15] * 3
    assert [batches for _, _, batches in found[30]] == [4] * 3


def test_a_limited_step_passes_over_what_is_not_wanted() -> None:
    of = filled(6, size=10)
    follower = Follower(of.store)
    start = follower.begin(0)
    for text, version in (("ts >= 40", 6), ("ts < 0", 7), ("ts < 10", 7), ("ts < 20", 2)):
        after = follower.advance(start, max_parts=1, wanted=partial(wanted, of, text))
        assert after == Position(start.table_id, version), text


def test_a_table_that_changes_fails_only_after_what_came_before() -> None:
    of = filled(3, size=10)
    of.delete("ts = 5")
    follower = Follower(of.store)
    first = follower.advance(follower.begin(0), max_parts=2)
    assert first == Position(first.table_id, 3)
    with pytest.raises(Exception, match="Version 4"):
        follower.advance(first, max_parts=2)


def test_an_offset_of_an_earlier_release_is_read() -> None:
    of = filled(4, size=10)
    written = f'{{"index": 2, "table_id": "{of.snapshot.head.table_id}", "version": 4, "whole": true}}'
    start = Position.from_json(written)
    follower = Follower(of.store)
    plan = planned(of, follower.ranges(start, follower.end()), "ts >= 35")
    assert [row[0] for row in read(plan)] == list(range(35, 40))
    assert (plan.report.parts["total"], plan.report.parts["kept"]) == (2, 1)


def test_indexes_prune_a_range() -> None:
    of = filled(6, size=10)
    of.create_index("by_user", ["user"])
    of = of.refresh()
    follower = Follower(of.store)
    user = rows(20, 10)["user"][3].as_py()
    plan = planned(of, follower.ranges(follower.begin(), follower.end()), f"user = {user}", stats_filter=False)
    every = read(planned(of, follower.ranges(follower.begin(), follower.end()), None))
    assert [r for r in read(plan) if r[1] == user] == [r for r in every if r[1] == user]
    assert plan.report.parts["skipped_index"] > 0
