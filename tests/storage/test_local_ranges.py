"""Ranges of local files: the bytes, whatever memory they are read into."""

from __future__ import annotations

from pathlib import Path

import pytest

from tamis.errors import TamisError
from tamis.storage.object_store import local_ranges, open_store, pooled_memory
from tamis.storage.object_store.local_ranges import read_local_file, read_local_ranges

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
    for view, (offset, length) in zip(read_local_ranges(str(file), spans, {}), spans, strict=True):
        assert view == DATA[offset : offset + length], "also as numbers: bytes above 127 are not negative"
        assert (view.readonly, view.format, view.nbytes) == (True, "B", len(DATA[offset : offset + length]))


@pytest.mark.parametrize("pooled", [1, 2**40])
def test_a_range_behind_the_end_is_empty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pooled: int) -> None:
    pool_from(monkeypatch, pooled)
    file = tmp_path / "data"
    file.write_bytes(DATA)
    assert [bytes(view) for view in read_local_ranges(str(file), [(len(DATA), 10), (len(DATA) + 5, 10)], {})] == [
        b"",
        b"",
    ]


def test_a_range_with_a_target_is_read_into_it(tmp_path: Path) -> None:
    file = tmp_path / "data"
    file.write_bytes(DATA)
    whole = memoryview(bytearray(500))
    views = read_local_ranges(str(file), [(300, 100), (7, 20)], {(300, 100): whole[50:150]})
    assert [bytes(view) for view in views] == [DATA[300:400], DATA[7:27]]
    assert bytes(whole) == bytes(50) + DATA[300:400] + bytes(350)
    assert views[0].readonly
    (short,) = read_local_ranges(str(file), [(len(DATA) - 7, 100)], {(len(DATA) - 7, 100): whole[:100]})
    assert bytes(short) == DATA[-7:]


def test_a_whole_file_is_read_here_or_left_to_the_store(tmp_path: Path) -> None:
    file = tmp_path / "data"
    file.write_bytes(DATA)
    (tmp_path / "link").symlink_to(file)
    (tmp_path / "folder").mkdir()
    assert read_local_file(str(file), "data", len(DATA)) == DATA
    assert read_local_file(str(tmp_path / "link"), "link", len(DATA)) == DATA
    assert read_local_file(str(file), "data", len(DATA) - 1) is None, "the store says that it is too large"
    for name in ("folder", "data/below"):
        assert read_local_file(str(tmp_path / name), name, len(DATA)) is None
    assert read_local_file(str(file), "a key%that the store escapes", len(DATA)) is None
    with pytest.raises(FileNotFoundError):
        read_local_file(str(tmp_path / "none"), "none", len(DATA))


def test_a_store_says_the_same_of_objects_that_it_reads_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "data").write_bytes(DATA)
    store = open_store(tmp_path)

    def answer_of(path: str) -> str:
        try:
            return str(len(store.get(path)))
        except TamisError as error:
            return f"{error.code} {error}"

    paths = ["data", "none", "folder", "folder/none", "data/below", "none/below"]
    here = [answer_of(path) for path in paths]
    monkeypatch.setattr("tamis.storage.object_store.store.read_local_file", lambda *_: None)
    assert [answer_of(path) for path in paths] == here
    assert here[0] == str(len(DATA))
    assert here[1].startswith("OBJECT_NOT_FOUND")
