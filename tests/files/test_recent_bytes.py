"""Bytes that an open part has fetched are not fetched again; what is kept is bounded, and right."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tamis.storage.files.file_source import PartSource
from tamis.storage.files.protocol import PartRef
from tamis.storage.files.recent_bytes import RecentBytes
from tamis.storage.object_store import open_store

DATA = bytes(n * 7919 % 251 for n in range(100_000))
STORE = open_store("memory://recent")
STORE.put("data/p", DATA)
REF = PartRef("p", "data/p", "parquet", 0, 1, len(DATA))
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
