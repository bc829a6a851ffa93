"""A folder of Parquet files as a table: every verb works over files that nobody may write."""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import tamis
from tamis.bridges.adoption.adopt_source import Adoption
from tamis.engine.scan import funnel
from tamis.errors import AlreadyExists, CorruptData, InvalidInput, NotFound, TamisError
from tamis.storage.commit_log import Snapshot, features
from tamis.storage.object_store.store import Store
from tests.bridges.foreign_files import contents, write_file

ROWS = 1000


def rows(first: int, count: int = ROWS, kind: pa.DataType | None = None) -> pa.Table:
    ids = list(range(first, first + count))
    return pa.table(
        {
            "id": pa.array(ids, kind or pa.int64()),
            "name": [f"n{i % 50:02}" for i in ids],
            "amount": pa.array([i / 4 if i % 9 else None for i in ids], pa.float64()),
            "place": pa.array([{"x": i, "y": str(i)} if i % 5 else None for i in ids]),
        }
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    place = tmp_path / "source"
    for month in range(1, 4):
        write_file(place / f"month={month}" / "part-0.parquet", rows(month * ROWS), row_group_size=300)
    (place / "_SUCCESS").write_text("")
    return place


def adopted(folder: Path, tmp_path: Path, **more: Any) -> tamis.Table:
    table = tamis.adopt(folder, tmp_path / "table", **more)
    assert isinstance(table, tamis.Table)
    return table


def ids_of(table: tamis.Table, row_filter: str | None = None, **more: Any) -> list[int]:
    return sorted(table.scan(row_filter, ["id"], **more).to_arrow()["id"].to_pylist())


def every(*months: int) -> list[int]:
    return [i for month in months for i in range(month * ROWS, month * ROWS + ROWS)]


def test_rows_and_partition_columns_are_those_of_the_folder(folder: Path, tmp_path: Path) -> None:
    found = adopted(folder, tmp_path).scan().to_arrow().sort_by("id")
    assert found.schema.names == ["id", "name", "amount", "place", "month"]
    assert found["month"].type == pa.int32()
    for month in range(1, 4):
        mine = found.slice((month - 1) * ROWS, ROWS)
        assert mine.drop_columns(["month"]).to_pylist() == rows(month * ROWS).to_pylist()
        assert set(mine["month"].to_pylist()) == {month}


def test_many_files_may_be_skipped_by_what_all_of_them_hold(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = adopted(folder, tmp_path)
    monkeypatch.setattr(funnel, "MANY_PARTS", 3)
    monkeypatch.setattr(funnel, "FEW_PARTS", 2)
    asked: list[list[bool]] = []
    real = Snapshot.parts

    def parts(snapshot: Snapshot, mask: Any = None, ids: Any = ()) -> pa.Table:
        asked.append(list(mask))
        return real(snapshot, mask, ids)

    monkeypatch.setattr(Snapshot, "parts", parts)
    report = table.explain("id = 99999")
    assert (report.segments.skipped, report.parts.kept, report.parts.total) == (1, 0, 3)
    assert asked == [[False]], "the files' own statistics are not read"
    monkeypatch.setattr(Snapshot, "parts", real)
    assert ids_of(table, "id = 2500") == [2500]


def test_filters_skip_files_and_row_groups(folder: Path, tmp_path: Path) -> None:
    table = adopted(folder, tmp_path)
    scan = table.scan("id = 2500")
    assert scan.to_arrow().num_rows == 1
    report = scan.report
    assert report is not None
    assert (report.parts.kept, report.parts.total) == (1, 3)
    assert report.blocks.read == 1, "three of four row groups are skipped by their own statistics"
    assert ids_of(table, "month = 3") == every(3)
    assert table.explain("month = 3").parts.kept == 1
    assert table.explain("month > 3").parts.kept == 0


def test_nothing_of_the_source_is_written_or_deleted(folder: Path, tmp_path: Path) -> None:
    before = contents(folder)
    table = adopted(folder, tmp_path)
    table.delete("id % 2 = 0")
    table.update({"name": "'x'"}, "id < 1100")
    table.append(rows(9000, 10).append_column("month", pa.array([9] * 10, pa.int32())))
    table.create_index("by_name", ["name"])
    table.compact()
    table.overwrite(table.scan("month = 2").to_arrow(), "month = 2")
    table.overwrite(table.scan("id > 2500").to_arrow())
    table.vacuum("0m", dry_run=False, below_retention=True)
    assert table.verify().ok
    assert contents(folder) == before


def test_rows_change_while_their_files_stay(folder: Path, tmp_path: Path) -> None:
    table = adopted(folder, tmp_path)
    table.delete("id % 2 = 0")
    assert ids_of(table) == [i for i in every(1, 2, 3) if i % 2]
    table.update({"name": "'changed'"}, "id = 1001")
    assert table.scan("name = 'changed'").to_arrow()["id"].to_pylist() == [1001]
    table.upsert(pa.table({"id": [1003, 5000], "name": ["m", "new"]}), "id")
    assert ids_of(table, "name IN ('m', 'new')") == [1003, 5000]
    assert ids_of(table, version=0) == every(1, 2, 3)
    assert len(table.changes(0, 1).to_arrow()) == len(every(1, 2, 3)) // 2
    table.restore(0)
    assert ids_of(table) == every(1, 2, 3)
    assert table.verify().ok


def test_columns_change_while_their_files_stay(folder: Path, tmp_path: Path) -> None:
    table = adopted(folder, tmp_path)
    table.alter().rename_column("name", "label").add_column("extra", "INT", default=7).commit()
    table.alter().drop_column("amount").widen("month", "BIGINT").commit()
    table.alter().add_column("name", "STRING").add_column("amount", "DOUBLE").add_column("place.z", "INT").commit()
    table.refresh()
    found = table.scan("id = 1001").to_arrow().to_pylist()
    assert found == [
        {
            "id": 1001,
            "label": "n01",
            "place": {"x": 1001, "y": "1001", "z": None},
            "month": 1,
            "extra": 7,
            "name": None,
            "amount": None,
        }
    ], "a new column never takes the values of an old one in the file"
    assert table.verify().ok


def test_indexes_top_k_and_aggregates_work_over_foreign_files(folder: Path, tmp_path: Path) -> None:
    table = adopted(folder, tmp_path)
    table.create_index("by_name", ["name"])
    scan = table.scan("name = 'n07'", ["id"])
    assert sorted(scan.to_arrow()["id"].to_pylist()) == [i for i in every(1, 2, 3) if i % 50 == 7]
    report = scan.report
    assert report is not None
    assert report.indexes, "the index answers"
    top = table.scan(None, ["id"], order_by="id DESC", limit=5).to_arrow()["id"].to_pylist()
    assert top == [3999, 3998, 3997, 3996, 3995]
    assert table.scan("month = 2").count() == ROWS
    measured = table.scan().aggregate(["min(id)", "max(amount)", "min(month)", "count(*)"]).to_pylist()
    assert [list(row.values()) for row in measured] == [[1000, 3999 / 4, 1, 3 * ROWS]]
    assert table.verify().ok


@pytest.mark.parametrize(
    ("damage", "code"),
    [
        (lambda file: file.unlink(), "PART_MISSING"),
        (lambda file: os.utime(file, (1, 1)), "SOURCE_CHANGED"),
        (lambda file: write_file(file, rows(1000, 900)), "SOURCE_CHANGED"),
    ],
    ids=["gone", "written again", "other rows"],
)
def test_a_changed_file_is_named_by_readers_and_by_verify(
    folder: Path, tmp_path: Path, damage: Callable[[Path], object], code: str
) -> None:
    table = adopted(folder, tmp_path)
    ids_of(table)  # footers are remembered now
    damage(folder / "month=1" / "part-0.parquet")
    with pytest.raises(CorruptData) as caught:
        table.scan().to_arrow()
    assert (caught.value.code, caught.value.name) == (code, "month=1/part-0.parquet")
    assert "adopt the source again" in caught.value.remedy
    problems = table.verify().problems.to_pylist()
    assert [(p["code"], p["object"]) for p in problems[:1]] == [
        ("SOURCE_GONE" if code == "PART_MISSING" else "SOURCE_CHANGED", "month=1/part-0.parquet")
    ]
    assert ids_of(table, "month > 1") == every(2, 3), "other files are read"


def test_another_file_with_the_old_size_and_time_is_found_by_its_footer(folder: Path, tmp_path: Path) -> None:
    table = adopted(folder, tmp_path)
    file = folder / "month=1" / "part-0.parquet"
    was = file.stat()
    data = bytearray(file.read_bytes())
    at = data.rindex(b"parquet-cpp")
    data[at : at + 7] = b"PARQUET"
    file.write_bytes(data)
    os.utime(file, ns=(was.st_atime_ns, was.st_mtime_ns))
    with pytest.raises(CorruptData) as caught:
        tamis.open(table.path).scan("id = 1000").to_arrow()
    assert caught.value.code == "CHECKSUM"


def test_an_older_reader_refuses_the_table_by_name(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = adopted(folder, tmp_path)
    monkeypatch.setattr(features, "READER_FEATURES", frozenset({"deletion-vectors"}))
    with pytest.raises(InvalidInput, match="external-parts"):
        tamis.open(table.path)


def test_a_dry_run_writes_nothing(folder: Path, tmp_path: Path) -> None:
    plan = tamis.adopt(folder, tmp_path / "table", dry_run=True)
    assert isinstance(plan, Adoption)
    assert (plan.files, plan.rows, plan.version) == (3, 3 * ROWS, None)
    assert not (tmp_path / "table").exists()


def test_copying_writes_the_rows_into_the_table(folder: Path, tmp_path: Path) -> None:
    table = adopted(folder, tmp_path, mode="copy")
    shutil.rmtree(folder)
    assert ids_of(table) == every(1, 2, 3)
    assert set(table.scan("id < 2000").to_arrow()["month"].to_pylist()) == {1}


def test_compaction_leaves_foreign_files_where_they_are(folder: Path, tmp_path: Path) -> None:
    table = adopted(folder, tmp_path)
    table.delete("id < 1900")
    compacted = table.compact()
    assert compacted.parts_removed == 0
    assert ids_of(table) == [i for i in every(1, 2, 3) if i >= 1900]
    assert set(table.snapshot.parts()["source"].to_pylist()) != {None}


def test_two_adoptions_at_once_make_one_table(folder: Path, tmp_path: Path) -> None:
    outcomes: list[object] = []

    def run() -> None:
        try:
            outcomes.append(tamis.adopt(folder, tmp_path / "table"))
        except TamisError as error:
            outcomes.append(error)

    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(type(outcome).__name__ for outcome in outcomes) == ["AlreadyExists"] * 3 + ["Table"]
    assert ids_of(tamis.open(tmp_path / "table")) == every(1, 2, 3)
    with pytest.raises(AlreadyExists):
        tamis.adopt(folder, tmp_path / "table")


@pytest.mark.parametrize("change", ["gone", "cut", "written"])
def test_a_source_that_changes_while_it_is_adopted_is_refused(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    """Every listing after the first meets the change, as do the footers."""
    file, listings, real = folder / "month=2" / "part-0.parquet", [0], Store.list

    def listed(store: Store, prefix: str = "", after: str | None = None) -> Any:
        found = real(store, prefix, after)
        if store.url == str(folder):
            listings[0] += 1
            if listings[0] == (2 if change == "written" else 1):
                if change == "gone":
                    file.unlink()
                else:
                    write_file(file, rows(0, 10 if change == "cut" else ROWS))
        return real(store, prefix, after) if change == "written" else found

    monkeypatch.setattr(Store, "list", listed)
    with pytest.raises(CorruptData) as caught:
        tamis.adopt(folder, tmp_path / "table")
    assert (caught.value.code, caught.value.name) == ("SOURCE_CHANGED", "month=2/part-0.parquet")
    with pytest.raises(NotFound):
        tamis.open(tmp_path / "table")


def _delta(place: Path) -> None:
    (place / "month=1" / "_delta_log").mkdir()
    (place / "month=1" / "_delta_log" / "0.json").write_text("{}")


@pytest.mark.parametrize(
    ("make", "code"),
    [
        (lambda place: (place / "month=1" / "notes.csv").write_text("not a file of columns"), "NOT_PARQUET"),
        (_delta, "TABLE_FOLDER"),
        (lambda place: (place / "_tamis").mkdir(), "UNKNOWN_SOURCE_KIND"),
        (lambda place: (place / ".hoodie").mkdir(), "UNKNOWN_SOURCE_KIND"),
        (lambda place: write_file(place / "month=4" / "x.parquet", pa.table({"id": ["a"]})), "SCHEMAS_DIFFER"),
        (lambda place: write_file(place / "month=4" / "x.parquet", pa.table({"ID": [1]})), "SCHEMAS_DIFFER"),
        (lambda place: write_file(place / "x.parquet", rows(0)), "PARTITIONS_DIFFER"),
        (lambda place: write_file(place / "plain" / "month=1" / "x.parquet", rows(0)), "PLAIN_FOLDER"),
        (
            lambda place: write_file(place / "month=4" / "x.parquet", pa.table({"t": pa.array([1], pa.time64("ns"))})),
            "UNSUPPORTED_TYPE",
        ),
        (
            lambda place: write_file(
                place / "month=4" / "x.parquet", pa.table({"t": pa.array([1], pa.decimal256(50, 2))})
            ),
            "UNSUPPORTED_TYPE",
        ),
    ],
)
def test_what_does_not_fit_is_refused_before_anything_is_written(
    folder: Path, tmp_path: Path, make: Callable[[Path], object], code: str
) -> None:
    make(folder)
    before = contents(folder)
    with pytest.raises(TamisError) as caught:
        tamis.adopt(folder, tmp_path / "table")
    assert caught.value.code == code
    assert not (tmp_path / "table" / "_tamis").exists()
    assert contents(folder) == before


def test_places_that_lie_in_each_other_are_refused(folder: Path, tmp_path: Path) -> None:
    for path in (folder, folder / "table", tmp_path):
        with pytest.raises(InvalidInput) as caught:
            tamis.adopt(folder, path)
        assert caught.value.code == "OVERLAPPING_PLACES"
    with pytest.raises(NotFound) as missing:
        tamis.adopt(tmp_path / "nothing", tmp_path / "table")
    assert missing.value.code == "SOURCE_NOT_FOUND"


def test_narrower_columns_and_missing_ones_of_some_files_are_read_as_the_others(tmp_path: Path) -> None:
    place = tmp_path / "source"
    write_file(place / "a.parquet", pa.table({"id": pa.array([1], pa.int32()), "x": pa.array([1.5], pa.float32())}))
    write_file(place / "b.parquet", pa.table({"id": pa.array([2**40]), "y": ["only here"]}))
    table = adopted(place, tmp_path)
    assert table.scan().to_arrow().sort_by("id").to_pylist() == [
        {"id": 1, "x": 1.5, "y": None},
        {"id": 2**40, "x": None, "y": "only here"},
    ]
    assert table.explain("id > 5").parts.kept == 1
    assert table.explain("y IS NULL").parts.kept == 1


def test_partition_values_are_typed_as_spark_infers_them(tmp_path: Path) -> None:
    place = tmp_path / "source"
    for name in ("k=1/d=2024-01-01/s=a%2Fb", "k=__HIVE_DEFAULT_PARTITION__/d=2024-02-30/s=7", "k=3000000000/d=x/s=1.5"):
        write_file(place / name / "f.parquet", pa.table({"id": [len(name)], "k": ["in the file too"]}))
    table = adopted(place, tmp_path)
    found = table.scan().to_arrow()
    assert [(f.name, str(f.type)) for f in found.schema] == [
        ("id", "int64"),
        ("k", "int64"),
        ("d", "string"),
        ("s", "string"),
    ]
    assert found.sort_by("k")["k"].to_pylist() == [1, 3000000000, None]
    assert sorted(found["s"].to_pylist()) == ["1.5", "7", "a/b"]
    given = tamis.adopt(place, tmp_path / "given", partition_types="k STRING")
    assert isinstance(given, tamis.Table)
    assert sorted(str(k) for k in given.scan().to_arrow()["k"].to_pylist()) == ["1", "3000000000", "None"]
    with pytest.raises(InvalidInput) as caught:
        tamis.adopt(place, tmp_path / "bad", partition_types="d DATE")
    assert caught.value.code == "BAD_PARTITION"


def test_options_of_the_source_are_not_those_of_the_table(tmp_path: Path, folder: Path) -> None:
    with pytest.raises(InvalidInput, match="nonsense"):
        tamis.adopt(folder, "memory://adopted-options", storage_options={"source.nonsense": "1"})
    with pytest.raises(InvalidInput, match="nonsense"):
        tamis.adopt(folder, "memory://adopted-options", storage_options={"nonsense": "1"})


def test_a_source_in_a_store_with_etags_is_asked_for_by_them(folder: Path) -> None:
    place = tamis.create("memory://etags/any").store.open_source_store("memory://etags/source")
    for file in sorted(folder.rglob("*.parquet")):
        place.put(file.relative_to(folder).as_posix(), file.read_bytes())
    table = tamis.adopt("memory://etags/source", "memory://etags/table")
    assert isinstance(table, tamis.Table)
    assert ids_of(table) == every(1, 2, 3)
    assert None not in table.snapshot.parts()["etag"].to_pylist()
    place.put("month=1/part-0.parquet", (folder / "month=1" / "part-0.parquet").read_bytes())
    with pytest.raises(CorruptData) as caught:
        ids_of(table)
    assert (caught.value.code, caught.value.name) == ("SOURCE_CHANGED", "month=1/part-0.parquet")
    assert ids_of(table, "month = 2") == every(2)


def test_a_table_on_an_object_store_names_no_local_files(folder: Path, tmp_path: Path) -> None:
    table = adopted(folder, tmp_path)
    remote = tamis.open(table.path)
    with pytest.raises(InvalidInput) as caught:
        tamis.adopt(
            folder, "s3://bucket/table", storage_options={"region": "x", "access_key_id": "a", "secret_access_key": "b"}
        )
    assert caught.value.code == "LOCAL_SOURCE"
    assert remote.version == 0


@pytest.mark.parametrize(("text", "value"), [("+5", 5), ("+9999999999", 9_999_999_999), ("-5", -5), ("+1.5", 1.5)])
def test_folders_of_signed_numbers(text: str, value: float, tmp_path: Path) -> None:
    write_file(tmp_path / "s" / f"p={text}" / "a.parquet", pa.table({"k": [1]}))
    adopted = tamis.adopt(tmp_path / "s", tmp_path / "t")
    assert isinstance(adopted, tamis.Table)
    assert adopted.scan(f"p = {text.removeprefix('+')}").to_arrow()["p"].to_pylist() == [value]


def test_folders_of_two_signs(tmp_path: Path) -> None:
    write_file(tmp_path / "s" / "p=+-5" / "a.parquet", pa.table({"k": [1]}))
    with pytest.raises(InvalidInput, match="BAD_PARTITION"):
        tamis.adopt(tmp_path / "s", tmp_path / "t", partition_types="p INT")


def test_partition_texts_that_spark_reads_otherwise(tmp_path: Path) -> None:
    """Spark 4.3 takes each escape for a character of its own, and refuses a folder without a value."""
    for number, name in enumerate(("p=%C3%A9", "p=", "p=a")):
        write_file(tmp_path / "s" / name / "a.parquet", pa.table({"k": [number]}))
    found = adopted(tmp_path / "s", tmp_path)
    assert found.scan().to_arrow().sort_by("k")["p"].to_pylist() == ["é", "", "a"]
    for number, text in enumerate(("é", "", "a")):
        assert found.scan(f"p = '{text}'").to_arrow()["k"].to_pylist() == [number]


@pytest.mark.parametrize("inner", ["archive/old.parquet", "a/b/old.parquet"])
def test_a_plain_folder_beside_files_is_refused(tmp_path: Path, inner: str) -> None:
    """Spark reads the files of the root alone there; rows of a forgotten backup would come twice."""
    for name in ("new.parquet", inner):
        write_file(tmp_path / "source" / name, pa.table({"id": [1]}))
    with pytest.raises(InvalidInput) as caught:
        tamis.adopt(tmp_path / "source", tmp_path / "table")
    assert (caught.value.code, caught.value.name) == ("PLAIN_FOLDER", inner)
    (tmp_path / "source" / "new.parquet").rename((tmp_path / "source" / inner).with_name("new.parquet"))
    assert tamis.adopt(tmp_path / "source", tmp_path / "table").scan().count() == 2, "all are in folders"
