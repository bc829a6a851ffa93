"""The Iceberg metadata of an export: foreign readers see every version's rows, and a change writes few manifests."""

from __future__ import annotations

import json
import re
import struct
import zlib
from datetime import timedelta
from decimal import Decimal
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.expressions import GreaterThan
from pyiceberg.table import StaticTable

import tamis
from tamis.bridges.export import iceberg_manifests, iceberg_metadata
from tamis.bridges.export.iceberg_avro import avro_rows
from tamis.bridges.export.iceberg_bounds import serialized
from tamis.bridges.export.iceberg_export import export_iceberg
from tamis.core.types import BOOLEAN, BYTE, DATE, DOUBLE, LONG, STRING, DataType
from tamis.core.types import Decimal as DecimalType
from tamis.errors import Conflict, InvalidInput, StoreUnavailable, TamisError
from tamis.storage.commit_log import load
from tamis.storage.object_store import Store, open_store
from tests.bridges.exported_tables import CHANGES, RENAMES, append_parts, expected, made, rows, values_of, widen
from tests.bridges.foreign_readers import iceberg_by_polars, iceberg_by_pyiceberg, metadata_file
from tests.storage.faults import FAULTS, FaultyStore, Plan

pytestmark = pytest.mark.filterwarnings("ignore::polars.exceptions.PerformanceWarning")

EVERY = {**CHANGES, **RENAMES, "widen": widen}
"""Iceberg finds columns by their ids, so renames are as any change."""


def opened(path: str) -> StaticTable:
    return StaticTable.from_metadata(metadata_file(path))


def listed(path: str) -> set[str]:
    return {p.name for p in Path(path, "metadata", "tamis").iterdir()}


@pytest.mark.parametrize("format_version", [2, 3])
@pytest.mark.parametrize("change", EVERY)
@pytest.mark.push_cases(4)
def test_readers_see_the_rows_after_each_change(tmp_path: Path, change: str, format_version: int) -> None:
    table = made(tmp_path / "t")
    table.delete("id = 4")
    table.export("iceberg", format_version=format_version)
    assert iceberg_by_pyiceberg(table.path) == expected(table)
    EVERY[change](table)
    assert table.export("iceberg").written
    assert iceberg_by_pyiceberg(table.path) == expected(table)
    assert iceberg_by_polars(table.path) == expected(table)


@given(
    st.lists(st.tuples(st.sampled_from(sorted(EVERY)), st.booleans()), max_size=6),
    st.sampled_from([2, 3]),
    st.integers(1, 4),
)
@pytest.mark.merge
def test_random_histories_read_the_same(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, bool]], format_version: int, most: int
) -> None:
    """Every version, read as the snapshot of that version, and however parts are spread over manifests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(iceberg_manifests, "MOST_ENTRIES", most)
        patch.setattr(iceberg_manifests, "MERGE_FROM", 2)
        table = made(tmp_path_factory.mktemp("random") / "t")
        append_parts(table, 200, 3)
        for change, exported in steps:
            try:
                EVERY[change](table)
            except TamisError:
                continue  # such as a second column of one name
            table.refresh()
            if exported:
                table.export("iceberg", format_version=format_version)
        table.export("iceberg", format_version=format_version)
    found = opened(table.path)
    assert values_of(found.scan().to_arrow()) == expected(table)
    assert [s.snapshot_id for s in found.snapshots()] == list(range(1, table.version + 2))
    for version in range(1, table.version + 1):
        rows_then = values_of(tamis.open(table.path, version).scan().to_arrow())
        assert values_of(found.scan(snapshot_id=version + 1).to_arrow()) == rows_then
    if found.inspect.manifests():  # PyIceberg cannot list the files of a snapshot that has none
        assert pc.count_distinct(found.inspect.files()["file_path"]).as_py() == len(found.inspect.files())


def test_an_append_writes_one_manifest(tmp_path: Path) -> None:
    table = made(tmp_path / "t")
    table.delete("id = 4")
    table.export("iceberg")
    before = listed(table.path)
    table.append(rows(50))
    done = table.export("iceberg")
    fresh = listed(table.path) - before
    assert (done.files_added, done.files_removed, done.exported_version) == (1, 0, 2)
    assert sorted("snap" if name.startswith("snap") else name.split("-")[3] for name in fresh) == ["data", "snap"]
    assert not table.export("iceberg").written
    assert len(opened(table.path).inspect.manifests()) == 4  # one of each append, one of deletes


def test_young_manifests_are_merged(tmp_path: Path) -> None:
    table = made(tmp_path / "t")
    for i in range(40):
        table.append(rows(100 + i))
        if i % 10 == 0:
            table.delete(f"id = {100 + i}")
        table.export("iceberg")
    assert len(opened(table.path).inspect.manifests()) < 2 * iceberg_manifests.MERGE_FROM
    assert iceberg_by_pyiceberg(table.path) == expected(table)


def test_a_catalog_registers_the_table_and_filters_skip_files(tmp_path: Path) -> None:
    table = made(tmp_path / "t")
    table.export("iceberg")
    catalog = SqlCatalog("local", uri=f"sqlite:///{tmp_path}/catalog.db", warehouse=str(tmp_path / "warehouse"))
    catalog.create_namespace("shop")
    found = catalog.register_table("shop.orders", metadata_file(table.path))
    assert len(list(found.scan(GreaterThan("id", 30)).plan_files())) == 1
    assert values_of(found.scan(GreaterThan("id", 30)).to_arrow()) == values_of(table.scan("id > 30").to_arrow())


def test_metrics_are_those_of_the_files(tmp_path: Path) -> None:
    table = made(tmp_path / "t")
    table.export("iceberg")
    for file in opened(table.path).inspect.files().to_pylist():
        data = pa.parquet.read_table(file["file_path"].removeprefix("file://"))
        metrics = file["readable_metrics"]
        for name in ("id", "n", "s", "amount", "day", "ts", "flag", "f"):
            values = [v for v in data[name].to_pylist() if v is not None and v == v]
            assert metrics[name]["lower_bound"] <= min(values)
            if name != "f":  # its upper bound is left out, because the column has NaN
                assert metrics[name]["upper_bound"] >= max(values)
            assert metrics[name]["null_value_count"] == data[name].null_count
            assert metrics[name]["value_count"] == len(data)
        assert metrics["f"]["nan_value_count"] == pc.sum(pc.is_nan(data["f"])).as_py()


@pytest.mark.parametrize(
    ("value", "kind", "data"),
    [
        (True, BOOLEAN, b"\x01"),
        (-2, BYTE, struct.pack("<i", -2)),
        (-2, LONG, struct.pack("<q", -2)),
        (1.5, DOUBLE, struct.pack("<d", 1.5)),
        (18262, DATE, struct.pack("<i", 18262)),
        ("é", STRING, "é".encode()),
        (Decimal("14.20"), DecimalType(10, 2), bytes.fromhex("058c")),
        (Decimal("-1.28"), DecimalType(10, 2), b"\x80"),
        (Decimal("1.28"), DecimalType(10, 2), b"\x00\x80"),
        (Decimal("99999999999999999999999999999999.999999"), DecimalType(38, 6), (10**38 - 1).to_bytes(16, "big")),
    ],
)
def test_bounds_are_serialized_as_the_format_says(value: Any, kind: DataType, data: bytes) -> None:
    arrow = tamis.core.types.arrow.to_arrow_type(kind)
    values = pa.array([None, value], pa.int32()).cast(arrow) if kind == DATE else pa.array([None, value], arrow)
    assert serialized(values, kind) == [None, data]


def test_defaults_of_older_files_need_version_3(tmp_path: Path) -> None:
    table = made(tmp_path / "t")
    table.export("iceberg")
    add = table.alter().add_column("more", "BIGINT", default="7").add_column("day2", "DATE", default="DATE'2020-01-02'")
    add.add_column("price", "DECIMAL(10,2)", default="1.50").add_column("word", "STRING", default="'a'").commit()
    table.refresh()
    with pytest.raises(InvalidInput, match="'more'") as error:
        table.export("iceberg", format_version=2)
    assert error.value.code == "EXPORT_DEFAULT"
    assert opened(table.path).metadata.format_version == 2
    table.export("iceberg")
    found = opened(table.path)
    assert found.metadata.format_version == 3
    defaults = {f.name: f.initial_default for f in found.schema().fields if f.initial_default is not None}
    assert {name: str(value) for name, value in defaults.items()} == {
        "more": "7",
        "day2": "2020-01-02",
        "price": "1.50",
        "word": "a",
    }
    table.append(pa.table({"id": [100]}))
    table.export("iceberg")
    assert opened(table.path).metadata.format_version == 3


@pytest.mark.parametrize("default", ["double('NaN')", "double('-Infinity')"])
def test_defaults_that_json_lacks_are_refused_until_they_are_rewritten(tmp_path: Path, default: str) -> None:
    table = made(tmp_path / "t")
    table.alter().add_column("x", "DOUBLE", default=default).commit()
    with pytest.raises(InvalidInput, match="'x'") as error:
        table.refresh().export("iceberg")
    assert error.value.code == "EXPORT_DEFAULT"
    table.compact(cluster_by=["id", "day"])
    table.export("iceberg", format_version=3)
    text = Path(metadata_file(table.path)).read_text()
    assert not {"NaN", "Infinity"} & set(re.findall(r"\w+", text))
    assert iceberg_by_pyiceberg(table.path) == expected(table)


@pytest.mark.parametrize(
    ("columns", "name"),
    [
        ("`a.b` INT, a STRUCT<b: INT>", "a.b"),
        ("a ARRAY<INT>, `a.element` INT", "a.element"),
        ("a MAP<STRING, STRUCT<x: INT>>, `a.value.x` INT", "a.value.x"),
    ],
)
def test_two_columns_of_one_name_in_iceberg_are_refused(tmp_path: Path, columns: str, name: str) -> None:
    table = tamis.create(tmp_path / "t", f"id BIGINT, {columns}")
    with pytest.raises(InvalidInput, match=name) as error:
        table.export("iceberg")
    assert error.value.code == "EXPORT_NAME"


def test_version_3_numbers_rows(tmp_path: Path) -> None:
    """Row ids overlap in no two files, are those of a file in every manifest, and lie below the next one."""
    table = made(tmp_path / "t")
    append_parts(table, 100, 3)
    table.delete("id BETWEEN 100 AND 104")
    table.append(rows(*range(50, 60)))
    table.export("iceberg", format_version=3)
    metadata = json.loads(Path(metadata_file(table.path)).read_text())
    store = open_store(table.path)
    names = [name for name in listed(table.path) if "-data-" in name]
    files = [row["data_file"] for name in names for row in avro_rows(store.get(f"metadata/tamis/{name}"))]
    taken = {(f["first_row_id"], f["first_row_id"] + f["record_count"]) for f in files}
    assert len({(f["file_path"], f["first_row_id"]) for f in files}) == len(taken) < len(files)
    assert len({f["file_path"] for f in files}) == len(taken)
    assert all(end <= start for (_, end), (start, _) in pairwise(sorted(taken)))
    assert max(taken)[1] <= metadata["next-row-id"]


REFUSED = {"INTERVAL": "x INTERVAL DAY TO SECOND", "VARIANT": "x VARIANT", "nested": "x MAP<STRING, VARIANT>"}


@pytest.mark.parametrize("kind", REFUSED)
def test_types_that_iceberg_lacks_are_refused_by_name(tmp_path: Path, kind: str) -> None:
    table = tamis.create(tmp_path / "t", f"id BIGINT, {REFUSED[kind]}")
    with pytest.raises(InvalidInput, match=r"'x") as error:
        table.export("iceberg")
    assert error.value.code == "EXPORT_TYPE"
    assert not (tmp_path / "t" / "metadata").exists()


def test_times_of_day_are_read(tmp_path: Path) -> None:
    table = tamis.create(tmp_path / "t", "id BIGINT, at TIME, small TINYINT, local TIMESTAMP_NTZ, code CHAR(3)")
    at = pa.table(
        [
            [1],
            pa.array([3_600_000_000], pa.time64("us")),
            pa.array([-3], pa.int8()),
            pa.array([5], pa.timestamp("us")),
            ["ab"],
        ],
        names=table.schema.names,
    )
    table.append(at)
    table.export("iceberg")
    assert iceberg_by_pyiceberg(table.path) == expected(table)


@pytest.mark.parametrize(("name", "kind"), [("amount", "DECIMAL(14,4)"), ("day", "TIMESTAMP_NTZ")])
def test_widening_that_iceberg_lacks_is_refused_while_files_hold_the_old_type(
    tmp_path: Path, name: str, kind: str
) -> None:
    table = made(tmp_path / "t")
    table.alter().widen(name, kind).commit()
    with pytest.raises(InvalidInput, match=name) as error:
        table.export("iceberg")
    assert error.value.code == "EXPORT_WIDENING"
    table.refresh().compact(cluster_by=["id", "day"])
    table.export("iceberg")
    assert iceberg_by_pyiceberg(table.path) == expected(table)
    assert len(opened(table.path).snapshots()) == 1  # earlier versions cannot be exported


def test_an_unknown_version_of_iceberg_is_refused(tmp_path: Path) -> None:
    table = made(tmp_path / "t")
    for version in (1, 4, True, 3.0, "3"):
        with pytest.raises(InvalidInput) as error:
            table.export("iceberg", format_version=version)  # type: ignore[arg-type]
        assert error.value.code == "EXPORT_ICEBERG_VERSION"
    with pytest.raises(InvalidInput) as error:
        table.export("delta", format_version=3)
    assert error.value.code == "BAD_OPTION"


def test_a_foreign_commit_ends_the_export(tmp_path: Path) -> None:
    table = made(tmp_path / "t")
    table.export("iceberg")
    catalog = SqlCatalog("local", uri=f"sqlite:///{tmp_path}/catalog.db", warehouse=str(tmp_path / "warehouse"))
    catalog.create_namespace("shop")
    catalog.register_table("shop.orders", metadata_file(table.path)).append(
        rows(100).cast(opened(table.path).schema().as_arrow())
    )
    table.append(rows(50))
    before = {p: p.read_bytes() for p in (tmp_path / "t" / "metadata").glob("*.json")}
    with pytest.raises(Conflict) as error:
        table.export("iceberg")
    assert error.value.code == "EXPORT_FOREIGN_COMMIT"
    assert {p: p.read_bytes() for p in (tmp_path / "t" / "metadata").glob("*.json")} == before


@pytest.mark.parametrize("edit", ["a property", "another table", "no JSON"])
def test_a_metadata_file_of_another_writer_is_recognised(tmp_path: Path, edit: str) -> None:
    table = made(tmp_path / "t")
    table.export("iceberg")
    table_metadata = json.loads(Path(metadata_file(table.path)).read_text())
    if edit == "a property":
        table_metadata["properties"]["owner"] = "me"
    if edit == "another table":
        table_metadata["properties"]["tamis.table_id"] = "0" * 32
    text = "{" if edit == "no JSON" else json.dumps(table_metadata)
    (tmp_path / "t" / "metadata" / "v2.metadata.json").write_text(text)
    table.append(rows(50))
    with pytest.raises(Conflict) as error:
        table.export("iceberg")
    assert error.value.code == "EXPORT_FOREIGN_COMMIT"


def test_two_exporters_at_once(tmp_path: Path) -> None:
    table = made(tmp_path / "t")
    store = open_store(table.path)
    snapshot = load(store)
    other = FaultyStore(open_store(table.path), Plan.none())
    put = other.put_if_absent

    def late(path: str, data: bytes) -> bool:
        if path.endswith(".metadata.json"):
            export_iceberg(store, snapshot)
        return put(path, data)

    other.put_if_absent = late  # type: ignore[method-assign]
    assert not export_iceberg(other, snapshot).written
    assert iceberg_by_pyiceberg(table.path) == expected(table)
    assert [p.name for p in (tmp_path / "t" / "metadata").glob("*.json")] == ["v1.metadata.json"]


@pytest.mark.parametrize("format_version", [2, 3])
@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.push_cases(2)
def test_a_fault_at_any_request_leaves_an_export_that_heals(tmp_path: Path, fault: str, format_version: int) -> None:
    table = made(tmp_path / "t")
    table.export("iceberg", format_version=format_version)
    calls = 0
    for index in range(100):
        plan = Plan.at(index, fault)
        table.update({"n": "n + 1"}, "id % 4 = 2")
        done = False
        try:
            export_iceberg(FaultyStore(open_store(table.path), plan), load(open_store(table.path)))
            done = True
        except TamisError:
            pass
        plan.settle()
        if not done:
            table.export("iceberg")
        number = max(int(p.name[1:].split(".")[0]) for p in (tmp_path / "t" / "metadata").glob("*.json"))
        found = StaticTable.from_metadata(f"{table.path}/metadata/v{number}.metadata.json")
        assert values_of(found.scan().to_arrow()) == expected(table)
        calls = plan.calls
        if calls <= index:
            break
    assert 0 < calls < 100


def test_a_hint_that_was_not_written_is_a_problem_and_heals(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object) -> None:
        raise StoreUnavailable("planted", name="x")

    table = made(tmp_path / "t", properties={"tamis.export": "iceberg"})
    with monkeypatch.context() as patch:
        patch.setattr(iceberg_metadata, "write_hint", fails)
        table.append(rows(50))
    assert iceberg_by_pyiceberg(table.path) != expected(table)
    (row,) = table.refresh().exports().to_pylist()
    assert (row["behind"], row["problem"][:13]) == (0, "[EXPORT_HINT]")
    assert not table.export("iceberg").written
    assert iceberg_by_pyiceberg(table.path) == expected(table)
    assert table.exports()["problem"].to_pylist() == [None]


def test_an_older_hint_that_comes_late_does_not_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = made(tmp_path / "t")
    plain = iceberg_metadata.write_hint
    late: list[int] = []

    def slow(store: Store, number: int) -> None:
        if not late:
            late.append(number)
            table.append(rows(50))
            tamis.open(table.path).export("iceberg")
        plain(store, number)

    monkeypatch.setattr(iceberg_metadata, "write_hint", slow)
    table.export("iceberg")
    assert late == [1]
    assert iceberg_by_pyiceberg(table.path) == expected(table)


@pytest.mark.parametrize("behind", [True, False])
def test_snapshots_of_vacuumed_versions_are_dropped(tmp_path: Path, behind: bool) -> None:
    table = made(tmp_path / "t")
    table.export("iceberg")
    table.compact(cluster_by=["id", "day"])
    table.append(rows(70))
    if not behind:
        table.export("iceberg")
    tamis.engine.operations.vacuum(open_store(table.path), timedelta(0), dry_run=False, below_retention=True)
    table.export("iceberg")
    assert iceberg_by_pyiceberg(table.path) == expected(table)
    for snapshot in opened(table.path).snapshots():
        opened(table.path).scan(snapshot_id=snapshot.snapshot_id).to_arrow()


def test_a_deletion_vector_stands_where_the_manifest_says(tmp_path: Path) -> None:
    table = made(tmp_path / "t")
    table.delete("id = 4")
    table.export("iceberg", format_version=3)
    store = open_store(table.path)
    (name,) = (name for name in listed(table.path) if "-deletes-" in name)
    (row,) = avro_rows(store.get(f"metadata/tamis/{name}"))
    file = row["data_file"]
    data = Path(file["file_path"].removeprefix("file://")).read_bytes()
    assert len(data) == file["file_size_in_bytes"]
    blob = data[file["content_offset"] :][: file["content_size_in_bytes"]]
    assert blob[:4] == (len(blob) - 8).to_bytes(4, "big")
    assert blob[4:8].hex() == "d1d33964"
    assert blob[-4:] == zlib.crc32(blob[4:-4]).to_bytes(4, "big")


def test_a_table_that_has_moved_is_told_at_its_new_place(tmp_path: Path) -> None:
    table = made(tmp_path / "t")
    table.export("iceberg")
    (tmp_path / "t").rename(tmp_path / "moved")
    table = tamis.open(tmp_path / "moved")
    table.append(rows(50))
    table.export("iceberg")
    assert iceberg_by_pyiceberg(table.path) == expected(table)
    assert {f["file_path"].rpartition("/data/")[0] for f in opened(table.path).inspect.files().to_pylist()} == {
        f"file://{table.path}"
    }


def test_without_fastavro_the_package_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = made(tmp_path / "t")
    monkeypatch.setitem(__import__("sys").modules, "fastavro", None)
    with pytest.raises(InvalidInput, match="fastavro") as error:
        table.export("iceberg")
    assert error.value.code == "MISSING_PACKAGE"
