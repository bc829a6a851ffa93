"""Long ranges of which some bytes are kept are put together without a copy, with the right bytes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamis.storage.files import joined_ranges
from tamis.storage.files.file_source import PartSource
from tamis.storage.files.joined_ranges import join_in_place
from tamis.storage.files.protocol import PartRef
from tamis.storage.files.recent_bytes import RecentBytes
from tamis.storage.object_store import open_store
from tamis.storage.object_store.store import Store

DATA = bytes(n * 7919 % 251 for n in range(400_000))
REF = PartRef("p", "data/p", "parquet", 0, 1, len(DATA))
RANGES = st.lists(
    st.tuples(st.integers(0, 399_000), st.integers(1, 1_000)).map(lambda r: (r[0], r[1] * 300)), max_size=4
)


@pytest.fixture(scope="module", params=["file", "memory"])
def store(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Store:
    place = str(tmp_path_factory.mktemp("joined")) if request.param == "file" else "memory://joined"
    made = open_store(place)
    made.put("data/p", DATA)
    return made


@pytest.fixture
def from_one_byte(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(joined_ranges, "POOLED", 1)


@given(requests=st.lists(RANGES, min_size=1, max_size=5))
@pytest.mark.usefixtures("from_one_byte")
def test_ranges_are_the_bytes_of_the_file(store: Store, requests: list[list[tuple[int, int]]]) -> None:
    source = PartSource(store, REF)
    held: list[tuple[memoryview, bytes]] = []
    for ranges in requests:
        wanted = [(offset, min(length, len(DATA) - offset)) for offset, length in ranges]
        held += [(view, DATA[o : o + n]) for view, (o, n) in zip(source.get(wanted), wanted, strict=True)]
        assert all(view == expected for view, expected in held), "also what was returned before"
        assert all(view.readonly for view, _ in held)
    assert source.io.bytes <= len(DATA)


def test_a_kept_chunk_makes_no_copy_of_the_rest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = open_store(str(tmp_path))
    made.put("data/p", DATA)
    source = PartSource(made, REF)
    source.get([(0, 8_192), (390_000, 10_000)])
    monkeypatch.setattr(RecentBytes, "joined", None)  # would copy
    (view,) = source.get([(4_096, 395_000)])
    assert bytes(view) == DATA[4_096:399_096]
    assert source.io.bytes == len(DATA)
    assert source._recent._size == len(DATA)
    assert any(span.obj is view.obj for span in source._recent._spans.values()), (
        "what was fetched is kept where it was read to"
    )


def test_other_threads_pieces_stay_right(store: Store) -> None:
    """While a range is read beside what is kept, another read fetches some of it."""
    source = PartSource(store, REF)
    source.get([(0, 8_192)])
    fetch = source._views

    def fetch_beside_another(*given: Any) -> list[memoryview]:
        source._views = fetch  # type: ignore[method-assign]
        source.get([(100_000, 50_000)])
        return fetch(*given)

    source._views = fetch_beside_another  # type: ignore[assignment, method-assign]
    assert bytes(source.get([(1_000, 300_000)])[0]) == DATA[1_000:301_000]
    assert bytes(source.get([(0, 301_000)])[0]) == DATA[:301_000]
    assert source._recent._size == 301_000


def kept_bytes(*spans: tuple[int, int]) -> RecentBytes:
    kept = RecentBytes()
    for offset, length in spans:
        kept.add(offset, memoryview(DATA)[offset : offset + length])
    return kept


@pytest.mark.usefixtures("from_one_byte")
def test_only_ranges_that_are_partly_kept_and_end_with_their_pieces_get_memory() -> None:
    kept = kept_bytes((0, 100), (300, 100))
    missing = [(100, 200), (400, 600)]
    assert set(join_in_place([(50, 300)], missing, kept).wholes) == {(50, 300)}
    assert not join_in_place([(50, 300)], missing, RecentBytes()).wholes, "nothing is kept"
    assert not join_in_place([(10, 50)], missing, kept).wholes, "all of it is kept"
    assert not join_in_place([(50, 200)], missing, kept).wholes, "a piece is fetched beyond it"
    assert not join_in_place([(500, 100)], missing, kept).wholes, "a piece begins before it"
    both = join_in_place([(50, 300), (20, 330)], missing, kept)
    assert set(both.wholes) == {(50, 300)}, "the piece goes to one memory"
    assert set(both.targets) == {(100, 200)}


def test_short_ranges_are_copied() -> None:
    assert not join_in_place([(50, 300)], [(100, 200)], kept_bytes((0, 100), (300, 100))).wholes
