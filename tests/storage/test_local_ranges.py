"""Ranges of local files: the bytes, whatever memory they are read into."""

from __future__ import annotations

from pathlib import Path

import pytest

from tamis.storage.object_store import local_ranges, pooled_memory
from tamis.storage.object_store.local_ranges import read_here

DATA = bytes(range(256)) * 2_000


def pool_from(monkeypatch: pytest.MonkeyPatch, length: int) -> None:
    for module in (local_ranges, pooled_memory):
        monkeypatch.setattr(module, "POOLED", length)


@pytest.mark.parametrize("pooled", [1, 1_000, 2**40])
@pytest.mark.parametrize("spans", [[(0, 1)], [(200, 100), (1_000, 300_000)], [(len(DATA) - 7, 2_000), (0, len(DATA))]])
def test_ranges_are_the_bytes_cut_short_at_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pooled: int, spans: list[tuple[int, int]]
) -> None:
    pool_from(monkeypatch, pooled)
    file = tmp_path / "data"
    file.write_bytes(DATA)
    for view, (offset, length) in zip(read_here(str(file), spans), spans, strict=True):
        assert view == DATA[offset : offset + length], "also as numbers: bytes above 127 are not negative"
        assert (view.readonly, view.format, view.nbytes) == (True, "B", len(DATA[offset : offset + length]))


@pytest.mark.parametrize("pooled", [1, 2**40])
def test_a_range_behind_the_end_is_empty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pooled: int) -> None:
    pool_from(monkeypatch, pooled)
    file = tmp_path / "data"
    file.write_bytes(DATA)
    assert [bytes(view) for view in read_here(str(file), [(len(DATA), 10), (len(DATA) + 5, 10)])] == [b"", b""]
