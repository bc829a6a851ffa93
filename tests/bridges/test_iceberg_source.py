"""A snapshot of an Iceberg table, read from its metadata: its files, their rows, and claims that are true of them."""

from __future__ import annotations

import contextlib
import gzip
import json
import math
import sqlite3
import struct
from collections.abc import Mapping
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import fastavro
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyiceberg.manifest import ManifestContent
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema as IcebergSchema
from pyiceberg.table import StaticTable
from pyiceberg.transforms import IdentityTransform, VoidTransform
from pyiceberg.types import (
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
    IntegerType,
    LongType,
    NestedField,
    StringType,
    TimestampType,
    UUIDType,
)

import tamis
from tamis.bridges.sources.iceberg_bounds import decoded_bounds
from tamis.bridges.sources.iceberg_equality import matching
from tamis.bridges.sources.iceberg_manifests import Entries
from tamis.bridges.sources.iceberg_metadata import IcebergOptions
from tamis.bridges.sources.iceberg_schema import iceberg_schema
from tamis.bridges.sources.iceberg_source import read_iceberg
from tamis.core.types import BOOLEAN, DATE, DOUBLE, FLOAT, LONG, STRING, TIMESTAMP_NTZ
from tamis.core.types import Decimal as Decimals
from tamis.core.types.defaults import initial_scalar
from tests.bridges import iceberg_tables as ice
from tests.bridges.exported_tables import CHANGES, RENAMES, made
from tests.bridges.foreign_tables import check_claims, contents, duckdb_rows, live_rows, sorted_rows

TEXTS = st.text(st.sampled_from(["a", "z", "é", "\uffff", "😀", "\U0010ffff"]), max_size=24)
MOMENTS = st.integers(-(10**15), 10**15).map(lambda us: datetime(1970, 1, 1) + timedelta(microseconds=us))
VALUES: dict[str, tuple[pa.DataType, st.SearchStrategy[Any]]] = {
    "i": (pa.int32(), st.integers(-(2**31), 2**31 - 1)),
    "l": (pa.int64(), st.integers(-(2**63), 2**63 - 1)),
    "s": (pa.string(), TEXTS),
    "x": (pa.binary(), st.binary(max_size=24)),
    "f": (pa.float64(), st.sampled_from([math.nan, -0.0, 0.0, 1.5, -1e300, math.inf])),
    "d": (pa.decimal128(12, 2), st.integers(-(10**11), 10**11).map(lambda n: Decimal(n) / 100)),
    "e": (pa.decimal128(38, 0), st.integers(-(10**37), 10**37).map(Decimal)),
    "day": (pa.date32(), st.dates()),
    "c": (pa.time64("us"), st.times()),
    "t": (pa.timestamp("us", "UTC"), MOMENTS.map(lambda m: m.replace(tzinfo=UTC))),
    "n": (pa.timestamp("us"), MOMENTS),
    "b": (pa.bool_(), st.booleans()),
}
ROWS = st.lists(st.fixed_dictionaries({name: st.none() | s for name, (_, s) in VALUES.items()}), min_size=1, max_size=6)
SCHEMA = pa.schema([(name, kind) for name, (kind, _) in VALUES.items()])


@given(st.lists(ROWS, min_size=1, max_size=2))
def test_claims_of_tables_of_pyiceberg_are_true(
    tmp_path_factory: pytest.TempPathFactory, parts: list[list[dict[str, Any]]]
) -> None:
    folder = tmp_path_factory.mktemp("iceberg")
    nested = pa.field("p", pa.struct([("y", pa.int64()), ("q", pa.string())]))
    table = ice.catalog(folder).create_table("n.t", SCHEMA.append(nested))
    for rows in parts:
        nested_rows = [{**r, "p": {"y": r["l"], "q": r["s"]} if r["i"] is not None else None} for r in rows]
        table.append(pa.Table.from_pylist(nested_rows, SCHEMA.append(nested)))
    source = read_iceberg(str(ice.metadata_of(table)))
    assert check_claims(source) >= 10
    assert sorted_rows(live_rows(source)) == sorted_rows(table.scan().to_arrow())


def test_bounds_are_decoded_by_the_specification() -> None:
    def raw(*values: bytes | None) -> list[bytes | None]:
        return [*values, None]

    def number(value: float, kind: str) -> bytes:
        return np.array(value, kind).tobytes()

    cases: list[tuple[Any, list[bytes | None], list[Any]]] = [
        (LONG, raw(number(-5, "<i8"), number(-5, "<i4"), b"", b"abc"), [-5, -5, None, None, None]),
        (
            DOUBLE,
            raw(number(0.1, "<f8"), number(0.1, "<f4"), number(math.nan, "<f8")),
            [0.1, 0.10000000149011612, None, None],
        ),
        (FLOAT, raw(number(0.5, "<f4")), [0.5, None]),
        (BOOLEAN, raw(b"\1", b"\0"), [True, False, None]),
        (STRING, raw("é".encode(), b"\xff"), ["é", None, None]),
        (DATE, raw(number(1, "<i4")), [date(1970, 1, 2), None]),
        (
            TIMESTAMP_NTZ,
            raw(number(1, "<i8"), number(-1, "<i4")),
            [datetime(1970, 1, 1, 0, 0, 0, 1), datetime(1969, 12, 31), None],
        ),
        (
            Decimals(9, 2),
            raw(b"\xff", b"\x00\xff", b"", b"\x7f" * 16),
            [Decimal("-0.01"), Decimal("2.55"), None, None, None],
        ),
    ]
    for data_type, values, expected in cases:
        found = decoded_bounds(values, data_type)
        assert found is not None
        assert found.to_pylist() == expected, data_type


def test_bounds_of_floats_need_a_count_of_nan(tmp_path: Path) -> None:
    table = ice.catalog(tmp_path).create_table("n.t", pa.schema([("f", pa.float64())]))
    table.append(pa.table({"f": [1.0, math.nan]}))
    assert read_iceberg(str(ice.metadata_of(table))).files["1|double|lo"].to_pylist() == [None]


def evolved(folder: Path) -> Any:
    """A table whose schema changed in every way that PyIceberg knows, with rows of each schema."""
    schema = IcebergSchema(
        NestedField(1, "i", IntegerType(), required=False),
        NestedField(2, "f", FloatType(), required=False),
        NestedField(3, "d", DecimalType(6, 2), required=False),
        NestedField(4, "gone", StringType(), required=False),
        NestedField(5, "s", StringType(), required=False),
    )
    table = ice.catalog(folder).create_table("n.t", schema)
    first = {
        "i": pa.array([1, None], pa.int32()),
        "f": pa.array([0.1, 2.0], pa.float32()),
        "d": pa.array([Decimal("1.50"), None], pa.decimal128(6, 2)),
        "gone": ["x", "y"],
        "s": ["k", "l"],
    }
    table.append(pa.table(first))
    with table.update_schema() as update:
        update.update_column("i", LongType()).update_column("f", DoubleType()).update_column("d", DecimalType(10, 2))
        update.delete_column("gone").rename_column("s", "text").add_column("later", StringType())
    with table.update_schema() as update:
        update.add_column("gone", LongType())
    second = {
        "i": [2**40],
        "f": [0.3],
        "d": pa.array([Decimal("12345678.25")], pa.decimal128(10, 2)),
        "text": ["m"],
        "later": ["n"],
        "gone": [7],
    }
    table.append(pa.table(second))
    return table


def test_an_evolved_schema_reads_as_in_pyiceberg(tmp_path: Path) -> None:
    table = evolved(tmp_path)
    source = read_iceberg(str(ice.metadata_of(table)))
    assert sorted_rows(live_rows(source)) == sorted_rows(table.scan().to_arrow())
    assert check_claims(source) >= 14
    assert source.by_field_id
    first = table.snapshots()[0].snapshot_id
    old = read_iceberg(str(ice.metadata_of(table)), snapshot=first)
    assert old.schema.names == ("i", "f", "d", "gone", "s")
    assert sorted_rows(live_rows(old)) == sorted_rows(table.scan(snapshot_id=first).to_arrow())


def test_branches_and_tags_name_snapshots(tmp_path: Path) -> None:
    table = evolved(tmp_path)
    first, second = (s.snapshot_id for s in table.snapshots())
    table.manage_snapshots().create_tag(first, "release").create_branch(first, "audit").commit()
    place = str(ice.metadata_of(table))
    tag, branch, main = (read_iceberg(place, ref=name) for name in ("release", "audit", "main"))
    assert (tag.version, branch.version, main.version) == (str(first), str(first), str(second))
    assert tag.schema.names != main.schema.names == branch.schema.names
    with pytest.raises(tamis.errors.NotFound, match="audit, main, release"):
        read_iceberg(place, ref="other")
    with pytest.raises(tamis.errors.NotFound, match="It may have expired"):
        read_iceberg(place, snapshot=5)


def test_a_table_without_rows(tmp_path: Path) -> None:
    table = ice.catalog(tmp_path).create_table("n.t", SCHEMA)
    source = read_iceberg(str(ice.metadata_of(table)))
    assert (len(source.files), source.version, source.schema.names) == (0, None, tuple(SCHEMA.names))


def partitioned(folder: Path) -> Any:
    schema = IcebergSchema(
        NestedField(1, "s", StringType(), required=False),
        NestedField(2, "day", TimestampType(), required=False),
        NestedField(3, "v", LongType(), required=False),
        NestedField(4, "d", DecimalType(9, 2), required=False),
    )
    spec = PartitionSpec(
        PartitionField(1, 1000, IdentityTransform(), "s"),
        PartitionField(3, 1002, VoidTransform(), "nothing"),
        PartitionField(4, 1003, IdentityTransform(), "d"),
    )
    table = ice.catalog(folder).create_table("n.t", schema, partition_spec=spec)
    rows = [
        {"s": s, "day": datetime(2020, 1, n + 1, 5), "v": n, "d": Decimal(n) if n else None}
        for n, s in enumerate(["a b", "é/%", None, ""])
    ]
    table.append(pa.Table.from_pylist(rows, schema.as_arrow()))
    return table


def test_columns_of_an_identity_partition_are_constants(tmp_path: Path) -> None:
    table = partitioned(tmp_path)
    source = read_iceberg(str(ice.metadata_of(table)))
    constants = [json.loads(text) for text in source.files["constants"].to_pylist()]
    assert sorted(map(repr, constants)) == sorted(
        map(
            repr,
            [{"1": "a b", "4": None}, {"1": "é/%", "4": "1.00"}, {"1": None, "4": "2.00"}, {"1": "", "4": "3.00"}],
        )
    )
    assert sorted_rows(live_rows(source)) == sorted_rows(table.scan().to_arrow())
    for path in source.files["path"].to_pylist():  # as in files of Hive: they lack the columns
        file = Path(source.root) / path
        pq.write_table(pq.read_table(file, partitioning=None).drop_columns(["s", "d"]), file)
    assert sorted_rows(live_rows(source)) == sorted_rows(table.scan().to_arrow())


def two_files(folder: Path, **more: Any) -> Any:
    table = ice.catalog(folder).create_table("n.t", pa.schema([("k", pa.int64()), ("s", pa.string())]), **more)
    for start in (0, 10):
        table.append(rows(start))
    return table


def rows(start: int) -> pa.Table:
    return pa.table({"k": list(range(start, start + 10)), "s": [f"s{n}" for n in range(start, start + 10)]})


def keys(metadata: Path) -> list[int]:
    return sorted(live_rows(read_iceberg(str(metadata)))["k"].to_pylist())


def test_position_deletes(tmp_path: Path) -> None:
    table = two_files(tmp_path)
    one, two = ice.data_paths(table)
    files = [ice.position_file(table, [(one, 1), (one, 3), (two, 0)]), ice.position_file(table, [(two, 9), (two, 0)])]
    made = ice.commit_deletes(ice.metadata_of(table), files)
    assert keys(made) == [0, 2, *range(4, 10), *range(11, 19)]
    assert keys(made) == sorted(StaticTable.from_metadata(str(made)).scan().to_arrow()["k"].to_pylist())
    assert check_claims(read_iceberg(str(made))) >= 8


def test_deletes_hold_for_older_files_alone(tmp_path: Path) -> None:
    """A position delete of the file's own commit holds, an equality delete does not."""
    table = two_files(tmp_path)
    one, two = ice.data_paths(table)
    made = ice.commit_deletes(
        ice.metadata_of(table),
        [
            ice.position_file(table, [(one, 1), (two, 1)]),
            ice.equality_file(table, pa.table({"k": [2, 12, None]}), {"k": 1}),
        ],
    )
    table_metadata = json.loads(made.read_text())
    listed = ice.local(table_metadata["snapshots"][-1]["manifest-list"])
    _rewrite(listed, lambda m: {**m, "sequence_number": 2 if m["content"] else m["sequence_number"]})
    assert keys(made) == [0, *range(3, 10), 10, *range(12, 20)]
    _rewrite(listed, lambda m: {**m, "sequence_number": 1 if m["content"] else m["sequence_number"]})
    assert keys(made) == [0, *range(2, 20)]


def _rewrite(path: Path, change: Any) -> None:

    with path.open("rb") as file:
        reader = fastavro.reader(file)
        schema, found = reader.writer_schema, [change(r) for r in reader]
    plain = {key: value for key, value in schema.items() if not key.startswith("__")}
    with path.open("wb") as file:
        fastavro.writer(file, plain, found)


def test_an_entry_keeps_its_sequence_number_when_its_manifest_is_rewritten(tmp_path: Path) -> None:
    table = two_files(tmp_path)
    file = ice.equality_file(table, pa.table({"k": [2, 13]}), {"k": 1})
    made = ice.commit_deletes(ice.metadata_of(table), [file])
    table_metadata = json.loads(made.read_text())
    listed = ice.local(table_metadata["snapshots"][-1]["manifest-list"])
    with listed.open("rb") as opened:
        manifests = [m for m in fastavro.reader(opened) if not m["content"]]
    for manifest in manifests:
        _rewrite(ice.local(manifest["manifest_path"]), lambda e: {**e, "status": 0, "sequence_number": 1})
    _rewrite(listed, lambda m: {**m, "sequence_number": m["sequence_number"] if m["content"] else 9})
    assert keys(made) == [n for n in range(20) if n not in (2, 13)]


def test_files_that_pyiceberg_deleted_are_gone(tmp_path: Path) -> None:
    table = two_files(tmp_path)
    table.delete("k < 10")
    table.delete("k = 12")
    assert keys(ice.metadata_of(table)) == [10, 11, *range(13, 20)]
    table.overwrite(rows(50))
    assert keys(ice.metadata_of(table)) == list(range(50, 60))


@pytest.mark.parametrize("key", [{"k": [2, 13]}, {"s": ["s2", "s13"]}, {"s": ["s2", "s13", "s4"], "k": [2, 13, 5]}])
def test_equality_deletes(tmp_path: Path, key: Mapping[str, Any]) -> None:
    table = two_files(tmp_path)
    file = ice.equality_file(table, pa.table(dict(key)), {name: {"k": 1, "s": 2}[name] for name in key})
    made = ice.commit_deletes(ice.metadata_of(table), [file])
    assert keys(made) == [n for n in range(20) if n not in (2, 13)]


def test_equality_deletes_of_a_partition_hold_in_it_alone(tmp_path: Path) -> None:
    schema = IcebergSchema(
        NestedField(1, "p", StringType(), required=False), NestedField(2, "k", LongType(), required=False)
    )
    spec = PartitionSpec(PartitionField(1, 1000, IdentityTransform(), "p"))
    table = ice.catalog(tmp_path).create_table("n.t", schema, partition_spec=spec)
    table.append(pa.table({"p": ["a", "a", "b", "b"], "k": [1, 2, 1, 2]}))
    file = ice.equality_file(table, pa.table({"k": [1]}), {"k": 2})
    made = ice.commit_deletes(ice.metadata_of(table), [file], partition={"p": "a"})
    found = live_rows(read_iceberg(str(made))).to_pylist()
    assert sorted((r["p"], r["k"]) for r in found) == [("a", 2), ("b", 1), ("b", 2)]


def test_deletes_whose_data_files_are_all_gone(tmp_path: Path) -> None:
    """Merge-on-read tables keep the delete files of rows that a later overwrite removed with their files."""
    table = ice.catalog(tmp_path).create_table("n.t", pa.schema([("k", pa.int64())]))
    table.append(pa.table({"k": [1, 2, 3]}))
    made = ice.commit_deletes(ice.metadata_of(table), [ice.position_file(table, [(ice.data_paths(table)[0], 0)])])
    with contextlib.closing(sqlite3.connect(tmp_path / "catalog.db")) as catalog, catalog:
        catalog.execute("UPDATE iceberg_tables SET metadata_location = ?", (made.as_uri(),))
    table = ice.catalog(tmp_path).load_table("n.t")
    table.delete("k >= 0")
    snapshot = table.current_snapshot()
    assert snapshot is not None
    contents = [(m.content, m.existing_files_count, m.added_files_count) for m in snapshot.manifests(table.io)]
    assert [c for c in contents if sum(count or 0 for count in c[1:])] == [(ManifestContent.DELETES, *contents[-1][1:])]
    adopted = tamis.adopt(ice.metadata_of(table), tmp_path / "t")
    assert isinstance(adopted, tamis.Table)
    assert adopted.scan().to_arrow().num_rows == 0
    assert adopted.scan("k = 2").count() == 0


def by_double(folder: Path) -> Any:
    schema = IcebergSchema(NestedField(1, "p", DoubleType()), NestedField(2, "k", LongType()))
    by_p = PartitionSpec(PartitionField(1, 1000, IdentityTransform(), "p"))
    return ice.catalog(folder).create_table("n.t", schema, partition_spec=by_p)


def test_zeros_of_both_signs_are_two_partitions(tmp_path: Path) -> None:
    table = by_double(tmp_path)
    for zero in (0.0, -0.0):
        table.append(pa.table({"p": [zero, zero], "k": [1, 2]}))
    gone = ice.equality_file(table, pa.table({"k": [1]}), {"k": 2})
    made = ice.commit_deletes(ice.metadata_of(table), [gone], partition={"p": -0.0})
    for place, expected in (
        (ice.metadata_of(table), {("0.0", 1), ("0.0", 2), ("-0.0", 1), ("-0.0", 2)}),
        (made, {("0.0", 1), ("0.0", 2), ("-0.0", 2)}),
    ):
        adopted = tamis.adopt(place, tmp_path / f"of-{len(expected)}")
        assert isinstance(adopted, tamis.Table)
        rows = adopted.scan().to_arrow().to_pylist()
        assert {(str(row["p"]), row["k"]) for row in rows} == expected
        assert len(rows) == len(expected)


def test_partitions_are_equal_as_in_java() -> None:
    nan, other = float("nan"), struct.unpack(">d", bytes.fromhex("fff8000000000001"))[0]
    values = [nan, other, 0.0, -0.0, 1.5, None, 1]
    entries = Entries(specs=[0] * len(values), partitions=[{1000: value, 1001: "x"} for value in values])
    keys = [entries.partition_key(at) for at in range(len(values))]
    assert keys[0] == keys[1]
    assert len(set(keys)) == len(values) - 1


def test_an_equality_delete_by_a_column_that_files_lack(tmp_path: Path) -> None:
    """Files from before the column hold NULL in it; one that was renamed and widened meanwhile is found by its id."""
    table = evolved(tmp_path)
    file = ice.equality_file(table, pa.table({"later": pa.array([None], pa.string()), "i": [1]}), {"later": 6, "i": 1})
    made = ice.commit_deletes(ice.metadata_of(table), [file])
    found = live_rows(read_iceberg(str(made)))
    assert sorted(found["text"].to_pylist()) == ["l", "m"]


def test_equality_is_that_of_iceberg() -> None:
    data = pa.table({"f": [0.0, -0.0, math.nan, None, 1.0], "s": ["a", "a", "a", None, None]})
    assert matching(data, pa.table({"f": [math.nan, -0.0, None], "s": ["a", "a", None]})).tolist() == [1, 2, 3]
    assert matching(data, data.slice(0, 0)).tolist() == []


def test_deletion_vectors(tmp_path: Path) -> None:
    table = two_files(tmp_path)
    one, two = ice.data_paths(table)
    older = ice.commit_deletes(ice.metadata_of(table), [ice.position_file(table, [(one, 5), (two, 5)])])
    made = ice.commit_deletes(older, ice.vector_files(table, {one: [0, 2]}), version=3)
    # the vector of the first file replaces its position deletes
    assert keys(made) == [1, *range(3, 15), *range(16, 20)]


@pytest.mark.parametrize("harm", ["checksum", "length", "magic", "cardinality", "beyond", "no place"])
def test_a_damaged_vector_is_an_error(tmp_path: Path, harm: str) -> None:
    table = two_files(tmp_path)
    one, _ = ice.data_paths(table)
    (entry,) = ice.vector_files(table, {one: [0, 40] if harm == "beyond" else [0, 2]})
    file = ice.local(entry["file_path"])
    data, at = bytearray(file.read_bytes()), entry["content_offset"]
    place = {"checksum": at + entry["content_size_in_bytes"] - 6, "length": at + 3, "magic": at + 4}.get(harm)
    if place is not None:
        data[place] ^= 1
        file.write_bytes(data)
    changes: dict[str, dict[str, Any]] = {"cardinality": {"record_count": 3}, "no place": {"content_offset": None}}
    more = changes.get(harm, {})
    made = ice.commit_deletes(ice.metadata_of(table), [{**entry, **more}], version=3)
    with pytest.raises(tamis.errors.CorruptData, match="ICEBERG_METADATA_DAMAGED"):
        read_iceberg(str(made))


def test_duckdb_sees_the_same_rows(tmp_path: Path) -> None:
    table = two_files(tmp_path)
    one, two = ice.data_paths(table)
    made = ice.commit_deletes(ice.metadata_of(table), [ice.position_file(table, [(one, 1), (two, 9)])])
    made = ice.commit_deletes(made, [ice.equality_file(table, pa.table({"k": [2, 13]}), {"k": 1})])
    theirs = duckdb_rows(["avro", "iceberg"], f"SELECT k FROM iceberg_scan('{made}') ORDER BY k")
    assert [k for (k,) in theirs] == keys(made)


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("name", [*CHANGES, *RENAMES])
@pytest.mark.push_cases(4)
def test_an_export_reads_as_what_was_exported(tmp_path: Path, name: str, version: int) -> None:
    table = made(tmp_path / "t")
    table.delete("id % 9 = 2")
    {**CHANGES, **RENAMES}[name](table)
    table.export("iceberg", format_version=version)
    source = read_iceberg(str(tmp_path / "t"))
    ours, theirs = table.scan().to_arrow(), live_rows(source)
    flat = [f.name for f in ours.schema if not pa.types.is_nested(f.type)]
    assert sorted_rows(theirs.select(flat)) == sorted_rows(ours.select(flat))
    assert check_claims(source) > 10


def test_a_folder_needs_a_hint(tmp_path: Path) -> None:
    table = two_files(tmp_path)
    folder = ice.local(table.location())
    with pytest.raises(tamis.errors.InvalidInput, match="ICEBERG_WHICH_METADATA"):
        read_iceberg(str(folder))
    (folder / "metadata" / "version-hint.text").write_text(ice.metadata_of(table).name.removesuffix(".metadata.json"))
    assert len(read_iceberg(str(folder)).files) == 2


def test_a_hint_may_be_behind(tmp_path: Path) -> None:
    """As Hadoop's tables count: the newest version after the hint is current. It may be compressed."""
    table = two_files(tmp_path)
    folder = ice.local(table.location())
    log = [ice.local(e.metadata_file) for e in table.metadata.metadata_log] + [ice.metadata_of(table)]
    for n, path in enumerate(log, 1):
        (folder / "metadata" / f"v{n}.metadata.json").write_bytes(path.read_bytes())
    (folder / "metadata" / "v3.metadata.json").unlink()
    (folder / "metadata" / "v3.gz.metadata.json").write_bytes(gzip.compress(log[-1].read_bytes()))
    (folder / "metadata" / "version-hint.text").write_text("2")
    assert len(log) == 3
    assert len(read_iceberg(str(folder)).files) == 2


def test_a_catalog_names_the_metadata(tmp_path: Path) -> None:
    table = two_files(tmp_path)
    properties = {"type": "sql", "uri": f"sqlite:///{tmp_path}/catalog.db", "warehouse": f"file://{tmp_path}/warehouse"}
    options = IcebergOptions(catalog="local", catalog_properties=properties)
    assert read_iceberg("n.t", options).version == str(table.current_snapshot().snapshot_id)
    with pytest.raises(tamis.errors.NotFound, match=r"has no table 'n\.other'"):
        read_iceberg("n.other", options)
    broken = IcebergOptions(catalog="local", catalog_properties={"type": "sql", "uri": "nothing://secret"})
    with pytest.raises(tamis.errors.InvalidInput, match="ICEBERG_CATALOG") as raised:
        read_iceberg("n.t", broken)
    assert "secret" not in str(raised.value)


def test_nothing_of_the_source_is_written(tmp_path: Path) -> None:
    table = evolved(tmp_path)
    before = contents(tmp_path)
    read_iceberg(str(ice.metadata_of(table)))
    assert contents(tmp_path) == before


def test_files_without_ids_are_read_by_the_name_mapping(tmp_path: Path) -> None:
    table = ice.catalog(tmp_path).create_table("n.t", pa.schema([("k", pa.int64()), ("s", pa.string())]))
    plain = tmp_path / "warehouse" / "n" / "t" / "plain.parquet"
    plain.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(rows(0), plain)
    table.add_files([plain.as_uri()])
    assert read_iceberg(str(ice.metadata_of(table))).column_names == {}
    with table.update_schema() as update:
        update.rename_column("s", "text")
    with pytest.raises(tamis.errors.InvalidInput, match="several names for the column 'text'"):
        read_iceberg(str(ice.metadata_of(table)))
    with table.transaction() as change:
        mapping = [{"field-id": 1, "names": ["k"]}, {"field-id": 2, "names": ["s"]}]
        change.set_properties({"schema.name-mapping.default": json.dumps(mapping)})
    source = read_iceberg(str(ice.metadata_of(table)))
    assert source.column_names == {2: "s"}
    made = ice.commit_deletes(
        ice.metadata_of(table), [ice.equality_file(table, pa.table({"text": ["s3"]}), {"text": 2})]
    )
    assert keys(made) == [0, 1, 2, *range(4, 10)]


def test_a_column_that_the_name_mapping_leaves_out_is_in_no_file_without_ids(tmp_path: Path) -> None:
    """Such as one that was dropped and added again: the values in the file are those of the dropped one."""
    table = ice.catalog(tmp_path).create_table("n.t", pa.schema([("k", pa.int64()), ("s", pa.string())]))
    plain = tmp_path / "warehouse" / "n" / "t" / "plain.parquet"
    plain.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table({"k": [1, 2], "s": ["old", "gone"]}), plain)
    table.add_files([plain.as_uri()])
    with table.update_schema() as update:
        update.delete_column("s")
    with table.update_schema() as update:
        update.add_column("s", StringType())
    with table.transaction() as change:
        mapping = [{"field-id": 1, "names": ["k"]}, {"field-id": 2, "names": ["s"]}]
        change.set_properties({"schema.name-mapping.default": json.dumps(mapping)})
    expected = [{"k": 1, "s": None}, {"k": 2, "s": None}]
    assert table.scan().to_arrow().to_pylist() == expected
    found = tamis.adopt(str(ice.metadata_of(table)), tmp_path / "t")
    assert isinstance(found, tamis.Table)
    assert found.scan().to_arrow().to_pylist() == found.scan("s IS NULL").to_arrow().to_pylist() == expected
    by_new = ice.commit_deletes(ice.metadata_of(table), [ice.equality_file(table, pa.table({"s": ["old"]}), {"s": 3})])
    assert keys(by_new) == [1, 2]
    by_old = ice.commit_deletes(ice.metadata_of(table), [ice.equality_file(table, pa.table({"s": ["gone"]}), {"s": 2})])
    assert keys(by_old) == [1]


@pytest.mark.parametrize("change", ["nothing", "renamed", "added again", "renamed inside"])
def test_files_without_ids_and_name_mapping_are_read_where_names_meant_one_column(tmp_path: Path, change: str) -> None:
    """By the new name, a renamed column would be NULL; one that was added again would have the dropped one's values."""
    data = pa.table({"k": [1], "s": ["old"], "l": [[{"x": "y"}]]})
    table = ice.catalog(tmp_path).create_table("n.t", data.schema)
    plain = tmp_path / "warehouse" / "n" / "t" / "plain.parquet"
    plain.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(data, plain)
    table.add_files([plain.as_uri()])
    if change.startswith("renamed"):
        with table.update_schema() as update:
            update.rename_column("s" if change == "renamed" else "l.element.x", "text")
    elif change == "added again":
        with table.update_schema() as update:
            update.delete_column("s")
        with table.update_schema() as update:
            update.add_column("s", StringType())
    place = changed_metadata(table, properties={})
    if change == "nothing":
        found = tamis.adopt(place, tmp_path / "t")
        assert isinstance(found, tamis.Table)
        assert found.scan().to_arrow().to_pylist() == data.to_pylist()
        return
    with pytest.raises(tamis.errors.InvalidInput, match=r"ICEBERG_NAME_MAPPING.*no name mapping"):
        tamis.adopt(place, tmp_path / "t")


def test_several_names_do_not_matter_where_files_have_ids(tmp_path: Path) -> None:
    table = two_files(tmp_path)
    mapping = [{"field-id": 1, "names": ["k", "key"]}, {"field-id": 2, "names": ["s"]}]
    with table.transaction() as change:
        change.set_properties({"schema.name-mapping.default": json.dumps(mapping)})
    assert read_iceberg(str(ice.metadata_of(table))).column_names == {}


@pytest.mark.parametrize(("kind", "name"), [(UUIDType(), "uuid"), (FixedType(8), r"fixed\[8\]")])
def test_types_that_do_not_fit_are_refused_by_name(tmp_path: Path, kind: Any, name: str) -> None:
    schema = IcebergSchema(NestedField(1, "x", kind, required=False))
    table = ice.catalog(tmp_path).create_table("n.t", schema)
    with pytest.raises(tamis.errors.InvalidInput, match=f"Column 'x' of the Iceberg table is {name}"):
        read_iceberg(str(ice.metadata_of(table)))


def test_types_of_the_third_format() -> None:
    def one(kind: Any, **more: Any) -> Any:
        field: dict[str, Any] = {"id": 1, "name": "x", "required": False, "type": kind, **more}
        return iceberg_schema({"fields": [field]}, "here")

    assert str(one("variant").fields[0].type) == "variant"
    assert str(one("unknown").fields[0].type) == "void"
    assert one("date", **{"initial-default": "2020-01-02"}).fields[0].initial_default == "2020-01-02"
    assert one("binary", **{"initial-default": "ff00"}).fields[0].initial_default == "/wA="
    made = initial_scalar(one("time", **{"initial-default": "22:31:08.123456"}).fields[0])
    assert made.as_py() == time(22, 31, 8, 123456)
    inner = {"id": 2, "name": "y", "required": False, "type": "int", "initial-default": 3}
    struct = one({"type": "struct", "fields": [inner]}, **{"initial-default": {}}).fields[0]
    assert initial_scalar(struct).as_py() == {"y": 3}
    listed: dict[str, Any] = {"type": "list", "element-id": 2, "element": "int", "element-required": True}
    assert one(listed).by_id[2].nullable is False
    for kind in ("timestamp_ns", "timestamptz_ns", "geometry(srid:1)", "geography"):
        with pytest.raises(tamis.errors.InvalidInput, match="UNSUPPORTED_TYPE"):
            one(kind)
    with pytest.raises(tamis.errors.InvalidInput, match=r"'x\.element'"):
        one({**listed, "element": "uuid"})


def changed_metadata(table: Any, **changes: Any) -> str:
    table_metadata: dict[str, Any] = {**json.loads(ice.metadata_of(table).read_text()), **changes}
    path = ice.metadata_of(table).with_name("88888-changed.metadata.json")
    path.write_text(json.dumps(table_metadata))
    return str(path)


@pytest.mark.parametrize("changes", [{"format-version": 4}, {"encryption-keys": [{"key-id": "a"}]}])
def test_unknown_features_are_refused(tmp_path: Path, changes: dict[str, Any]) -> None:
    with pytest.raises(tamis.errors.InvalidInput, match="ICEBERG_FEATURE"):
        read_iceberg(changed_metadata(two_files(tmp_path), **changes))


def test_a_file_of_another_format_is_refused_by_name(tmp_path: Path) -> None:
    table = two_files(tmp_path)
    made = ice.commit_deletes(ice.metadata_of(table), [])
    table_metadata = json.loads(made.read_text())
    with ice.local(table_metadata["snapshots"][-1]["manifest-list"]).open("rb") as file:
        manifest = ice.local(next(iter(fastavro.reader(file)))["manifest_path"])
    _rewrite(manifest, lambda e: {**e, "data_file": {**e["data_file"], "file_format": "ORC"}})
    with pytest.raises(tamis.errors.InvalidInput, match="SOURCE_FORMAT"):
        read_iceberg(str(made))


def test_a_file_outside_the_location_is_refused(tmp_path: Path) -> None:
    table = two_files(tmp_path)
    moved = changed_metadata(table, location=f"file://{tmp_path}/warehouse/n/t/data")
    with pytest.raises(tamis.errors.InvalidInput, match="OUTSIDE_SOURCE"):
        read_iceberg(moved)
    assert len(read_iceberg(moved, IcebergOptions(outside=True)).files) == 2


@pytest.mark.parametrize("harm", ["metadata", "list", "manifest", "manifest gone", "metadata gone"])
def test_damage_is_an_error_that_names_it(tmp_path: Path, harm: str) -> None:
    table = two_files(tmp_path)
    snapshot = table.current_snapshot()
    places = {"metadata": ice.metadata_of(table), "list": ice.local(snapshot.manifest_list)}
    places["manifest"] = ice.local(snapshot.manifests(table.io)[0].manifest_path)
    path = places[harm.split(maxsplit=1)[0]]
    path.write_bytes(path.read_bytes()[:100])
    if harm.endswith("gone"):
        path.unlink()
    wanted = tamis.errors.NotFound if harm.endswith("gone") else tamis.errors.CorruptData
    with pytest.raises(wanted, match=path.name):
        read_iceberg(str(ice.metadata_of(table)))
