"""Which files of a folder are ingested, and in which commits."""

from __future__ import annotations

from pathlib import Path

import pytest

from tamis import InvalidInput, NotFound
from tamis.bridges.sources.hive_partitions import partitions_of
from tamis.cli.ingest import ingest_folder
from tamis.cli.ingest_files import commit_batches, file_kind
from tamis.cli.source_folders import File, check_linked_files, list_files


def make(folder: Path, *names: str) -> list[File]:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("x")
    return list_files(folder)


def test_files_by_path_without_hidden_ones(tmp_path: Path) -> None:
    files = make(tmp_path, "b.csv", "a/2.csv", "a/1.csv", "_SUCCESS", ".part.crc", "_temporary/0.csv", "a/.x.csv")
    assert [f.name for f in files] == ["a/1.csv", "a/2.csv", "b.csv"]


@pytest.mark.parametrize(
    ("names", "wanted", "expected"),
    [
        (["a.parquet", "README.md"], None, "parquet"),
        (["a.csv.gz", "b.CSV"], None, "csv"),
        (["a.jsonl", "b.ndjson.zst"], None, "json"),
        (["a.csv", "b.json"], "json", "json"),
    ],
)
def test_the_kind_is_list_files(tmp_path: Path, names: list[str], wanted: str | None, expected: str) -> None:
    chosen, files = file_kind(tmp_path, make(tmp_path, *names), wanted)
    assert chosen == expected
    assert all(f.name.lower() != "readme.md" for f in files)


@pytest.mark.parametrize(
    ("names", "wanted", "code"),
    [
        (["a.csv", "b.json"], None, "SEVERAL_FORMATS"),
        (["a.csv"], "xml", "UNKNOWN_FORMAT"),
        (["a.csv"], "parquet", "NO_FILES"),
        (["a.parquet.gz"], None, "NO_FILES"),
        ([], None, "NO_FILES"),
    ],
)
def test_what_cannot_be_ingested_is_refused(tmp_path: Path, names: list[str], wanted: str | None, code: str) -> None:
    with pytest.raises((InvalidInput, NotFound)) as caught:
        file_kind(tmp_path, make(tmp_path, *names), wanted)
    assert caught.value.code == code


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="nowhere"):
        list_files(tmp_path / "nowhere")


@pytest.mark.parametrize(
    ("sizes", "most", "expected"),
    [([], 9, []), ([5, 5, 5], 10, [2, 1]), ([50, 1], 10, [1, 1]), ([1] * 2500, 10**9, [1000, 1000, 500])],
)
def test_batches(sizes: list[int], most: int, expected: list[int]) -> None:
    files = [File(f"{i:05}", size) for i, size in enumerate(sizes)]
    cut = list(commit_batches(files, most))
    assert [len(b) for b in cut] == expected
    assert [f for b in cut for f in b] == files


@pytest.mark.parametrize(
    ("log", "of"),
    [
        ("_delta_log/0.json", "Delta"),
        ("metadata/v1.metadata.json", "Iceberg"),
        (".hoodie/x", "Hudi"),
        ("_tamis/l", "Tamis"),
    ],
)
@pytest.mark.parametrize("below", ["", "day=1", "deep/er"])
def test_a_table_is_refused(tmp_path: Path, log: str, of: str, below: str) -> None:
    """Whether the folder is the table, holds it, or is one of its partitions."""
    root = tmp_path / "root"
    (root / "t" / log).parent.mkdir(parents=True)
    (root / "t" / log).write_text("{}")
    (root / "t" / below).mkdir(parents=True, exist_ok=True)
    for folder in (root, root / "t", root / "t" / below):
        with pytest.raises(InvalidInput, match=f"is a table of {of}") as caught:
            list_files(folder)
        assert (caught.value.code, caught.value.name) == ("TABLE_FOLDER", str(root / "t"))
        assert ("tamis adopt" in caught.value.remedy) == (of in {"Delta", "Iceberg"})


def test_a_folder_named_metadata_is_a_folder(tmp_path: Path) -> None:
    assert [f.name for f in make(tmp_path, "metadata/a.json", "_day=1/b.json")] == ["_day=1/b.json", "metadata/a.json"]


def partition_columns(files: list[File]) -> tuple[str, ...]:
    return partitions_of([file.name for file in files]).names


def test_partition_columns(tmp_path: Path) -> None:
    assert partition_columns(make(tmp_path, "a.csv", "deep/b.csv")) == ()
    below = tmp_path / "below"
    assert partition_columns(make(below, "day=1/h%20r=2/a.csv", "day=2/h%20r=%3D/a.csv")) == ("day", "h r")
    with pytest.raises(InvalidInput, match=r"day=1/c.csv has the partition columns day, .* has day, h r") as caught:
        partition_columns(make(below, "day=1/c.csv"))
    assert caught.value.code == "PARTITIONS_DIFFER"
    for name in ("x=1/a/y=2/f.csv", "a/x=1/f.csv", "x=1/a/f.csv"):
        with pytest.raises(InvalidInput, match="of the form k=v and others") as caught:
            partition_columns([File(name, 1)])
        assert caught.value.code == "PLAIN_FOLDER"


def test_links_to_folders_are_followed(tmp_path: Path) -> None:
    make(tmp_path / "elsewhere", "a.csv", "deep/b.csv")
    make(tmp_path / "in", "k=1/a.csv")
    (tmp_path / "in" / "k=2").symlink_to(tmp_path / "elsewhere")
    found = [f.name for f in list_files(tmp_path / "in")]
    assert found == ["k=1/a.csv", "k=2/a.csv", "k=2/deep/b.csv"]


@pytest.mark.parametrize("target", ["k=1", ".", "..", "/", "../elsewhere", "k=0/aside"])
def test_links_that_take_files_twice_are_refused(tmp_path: Path, target: str) -> None:
    make(tmp_path / "elsewhere", "a.csv", "deep/b.csv")
    (tmp_path / "elsewhere" / "back").symlink_to(tmp_path / "in")
    make(tmp_path / "in", "k=0/a.csv", "k=1/a.csv")
    (tmp_path / "in" / "k=0" / "aside").symlink_to(tmp_path / "elsewhere" / "deep")
    (tmp_path / "in" / "k=2").symlink_to(target)
    with pytest.raises(InvalidInput) as caught:
        list_files(tmp_path / "in")
    assert caught.value.code == "LINKED_TWICE"


@pytest.mark.parametrize("target", ["k=1/a.csv", "k=0/also.csv", "../elsewhere/a.csv", "../elsewhere/link.csv"])
def test_links_to_files_that_are_taken_anyway_are_refused(tmp_path: Path, target: str) -> None:
    """Such as latest.csv, which leads to the newest file of its folder."""
    make(tmp_path / "elsewhere", "a.csv")
    (tmp_path / "elsewhere" / "link.csv").symlink_to("a.csv")
    make(tmp_path / "in", "k=0/a.csv", "k=1/a.csv")
    (tmp_path / "in" / "k=0" / "also.csv").symlink_to(tmp_path / "elsewhere" / "a.csv")
    assert [f.name for f in list_files(tmp_path / "in")] == ["k=0/a.csv", "k=0/also.csv", "k=1/a.csv"]
    (tmp_path / "in" / "latest.csv").symlink_to(target)
    with pytest.raises(InvalidInput, match=r"The link .* leads to .* also found by another path") as caught:
        ingest_folder(str(tmp_path / "t"), str(tmp_path / "in"))
    assert caught.value.code == "LINKED_TWICE"
    assert not (tmp_path / "t").exists()


@pytest.mark.parametrize("target", [".kept.csv", "kept.raw"])
def test_a_link_to_a_file_that_is_not_taken_by_its_own_name(tmp_path: Path, target: str) -> None:
    make(tmp_path, "b.csv", target)
    (tmp_path / "a.csv").symlink_to(target)
    chosen, files = file_kind(tmp_path, list_files(tmp_path), None)
    check_linked_files(tmp_path, files)
    assert (chosen, [f.name for f in files]) == ("csv", ["a.csv", "b.csv"])


def test_a_link_to_a_file_of_a_table_is_refused(tmp_path: Path) -> None:
    (tmp_path / "delta" / "_delta_log").mkdir(parents=True)
    (tmp_path / "delta" / "p.parquet").write_text("x")
    make(tmp_path / "in", "a.parquet")
    (tmp_path / "in" / "b.parquet").symlink_to(tmp_path / "delta" / "p.parquet")
    with pytest.raises(InvalidInput) as caught:
        list_files(tmp_path / "in")
    assert caught.value.code == "TABLE_FOLDER"


@pytest.mark.parametrize(
    "name",
    ["pathGlobFilter", "modifiedbefore", "MODIFIEDAFTER", "recursiveFileLookup", "basePath", "ignoreCorruptFiles"],
)
def test_options_that_leave_out_files_are_refused(tmp_path: Path, name: str) -> None:
    make(tmp_path / "in", "a.csv")
    with pytest.raises(InvalidInput, match="would leave out files") as caught:
        ingest_folder(str(tmp_path / "t"), str(tmp_path / "in"), read_options={"sep": ";", name: "x"})
    assert (caught.value.code, caught.value.name) == ("BAD_OPTION", name)
    assert not (tmp_path / "t").exists()


def test_a_link_into_a_table_is_refused(tmp_path: Path) -> None:
    (tmp_path / "delta" / "_delta_log").mkdir(parents=True)
    (tmp_path / "delta" / "p=1").mkdir()
    make(tmp_path / "in", "p=0/a.parquet")
    (tmp_path / "in" / "p=1").symlink_to(tmp_path / "delta" / "p=1")
    with pytest.raises(InvalidInput) as caught:
        list_files(tmp_path / "in")
    assert caught.value.code == "TABLE_FOLDER"
