"""Bytes that an open part has fetched are not fetched again; what is kept is bounded, and right."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamis.storage.files.file_source import PartSource
from tamis.storage.files.protocol import PartRef
from tamis.storage.files.recent_bytes import RecentBytes
from tamis.storage.object_store import open_store
from tamis.storage.object_store.store import merge_ranges

DATA = bytes(n * 7919 % 251 for n in range(100_000))
STORE = open_store("memory://recent")
STORE.put("data/p", DATA)
REF = PartRef("p", "data/p", "parquet", 0, 1, len(DATA))
Spans: TypeAlias = list[tuple[int, int]]
Targets: TypeAlias = Mapping[tuple[int, int], memoryview]
RANGES = st.lists(st.tuples(st.integers(0, 99_999), st.integers(0, 40_000)), min_size=1, max_size=4)


def clipped(ranges: list[tuple[int, int]]) -> list[tuple[int, int]]:
    return [(offset, min(length, len(DATA) - offset)) for offset, length in ranges]


@given(st.lists(RANGES, min_size=1, max_size=6))
def test_every_byte_is_fetched_once_and_is_the_right_one(requests: list[list[tuple[int, int]]]) -> None:
    source = PartSource(STORE, REF)
    for ranges in map(clipped, requests):
        found = source.get(ranges)
        assert [bytes(view) for view in found] == [DATA[o : o + n] for o, n in ranges]
    assert source.io.bytes <= len(DATA)
    before = source.io.bytes
    for ranges in map(clipped, requests):
        source.get(ranges)
    assert source.io.bytes == before


@given(st.integers(1, 200), st.data())
def test_bytes_that_others_drop_meanwhile_are_right(limit: int, data: st.DataObject) -> None:
    """While a read fetches what is missing, another thread's read drops what it found kept."""
    source = PartSource(STORE, REF)
    source._recent = RecentBytes(limit)
    fetch, ranges = source._views, st.tuples(st.integers(0, 400), st.integers(1, 300))

    def fetch_beside_another(missing: Spans, targets: Targets) -> list[memoryview]:
        source._views = fetch  # type: ignore[method-assign]
        offset = data.draw(st.integers(0, 50_000))
        assert bytes(source.get([(offset, limit)])[0]) == DATA[offset : offset + limit]
        return fetch(missing, targets)

    for _ in range(4):
        source._views = fetch_beside_another  # type: ignore[assignment, method-assign]
        wanted = data.draw(st.lists(ranges, min_size=1, max_size=3))
        assert [bytes(view) for view in source.get(wanted)] == [DATA[o : o + n] for o, n in wanted]


def test_bytes_that_another_read_fetches_meanwhile_are_kept_once() -> None:
    source = PartSource(STORE, REF)
    fetch = source._views

    def fetch_beside_another(missing: Spans, targets: Targets) -> list[memoryview]:
        source._views = fetch  # type: ignore[method-assign]
        source.get([(0, 100)])
        return fetch(missing, targets)

    source._views = fetch_beside_another  # type: ignore[assignment, method-assign]
    assert bytes(source.get([(50, 100)])[0]) == DATA[50:150]
    assert source._recent._size == 150


def test_a_range_that_is_not_kept_is_refused() -> None:
    recent = RecentBytes()
    recent.add(0, memoryview(DATA)[:10])
    recent.add(12, memoryview(DATA)[12:20])
    with pytest.raises(LookupError, match="20 bytes from 0"):
        recent.joined(0, 20)


def test_a_source_that_forgot_asks_the_store_again() -> None:
    source = PartSource(STORE, REF)
    source.get([(0, 1_000)])
    source.forget()
    source.get([(0, 1_000)])
    assert source.io.bytes == 2_000


@given(st.lists(st.tuples(st.integers(0, 500), st.integers(1, 60)), max_size=30))
def test_the_oldest_bytes_are_dropped_beyond_the_limit(spans: list[tuple[int, int]]) -> None:
    recent = RecentBytes(100)
    for offset, length in spans:
        for at, size in recent.missing([(offset, length)]):
            recent.add(at, memoryview(DATA)[at : at + size])
        kept = 600 - sum(size for _, size in recent.missing([(0, 600)]))
        assert kept <= 100


@given(st.lists(st.lists(st.tuples(st.integers(0, 500), st.integers(0, 60)), max_size=5), max_size=10))
def test_kept_are_the_spans_that_came_last(rounds: list[list[tuple[int, int]]]) -> None:
    """Beside a list of spans in order of arrival, of which the first are dropped."""
    recent, model = RecentBytes(150), list[tuple[int, int]]()
    for spans in rounds:
        wanted = merge_ranges([span for span in spans if span[1]], 0)
        there = {byte for at, size in model for byte in range(at, at + size)}
        missing = recent.missing(wanted)
        expected = sorted({byte for at, size in wanted for byte in range(at, at + size)} - there)
        assert [byte for at, size in missing for byte in range(at, at + size)] == expected
        recent.add_all([(at, memoryview(DATA)[at : at + size]) for at, size in missing])
        model += [(at, size) for at, size in missing if size <= 150]
        while sum(size for _, size in model) > 150:
            model.pop(0)
        for at, size in model:
            assert bytes(recent.joined(at, size)) == DATA[at : at + size]
        assert recent._size == sum(size for _, size in model)
        pieces = list(recent.overlapping([(0, 600)]).pieces_within(0, 600))
        assert [(at, len(view)) for at, view in pieces] == sorted(model)


class Counted(int):
    """A number that counts how often it is compared."""

    compared = 0

    def __lt__(self, other: int) -> bool:
        Counted.compared += 1
        return int(self) < int(other)


@pytest.mark.parametrize("limit", [10**6, 1_000])
def test_many_spans_take_few_comparisons(limit: int) -> None:
    """Added one by one in order, asked for together, and added in the wrong order; also where the first are dropped."""
    count, data = 4_000, memoryview(DATA)[:1]
    recent, Counted.compared = RecentBytes(limit), 0
    for at in range(0, 4 * count, 4):
        recent.add(Counted(at), data)
    assert bool(recent.overlapping([(Counted(0), 4 * count)]))
    for at in range(4 * count - 2, 0, -4):
        recent.add(Counted(at), data)
    for _ in range(count):
        recent.add_all([])
    assert Counted.compared < 100 * count
