"""A version of a Delta table, read from its log: its files, their rows, and claims that are true of them."""

from __future__ import annotations

import json
import math
import os
import shutil
from datetime import UTC, date, datetime, timedelta
from decimal import Context, Decimal
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import tamis
from tamis.bridges.sources.delta_schema import delta_schema
from tamis.bridges.sources.delta_source import DeltaOptions, read_delta
from tamis.bridges.sources.foreign_paths import percent_decoded
from tamis.bridges.sources.text_bounds import above_cut_text
from tamis.core.types import Decimal as DecimalType
from tamis.core.types import Map, Schema
from tests.bridges import delta_logs as logs
from tests.bridges.exported_tables import CHANGES, RENAMES, made
from tests.bridges.foreign_tables import check_claims, contents, duckdb_rows, live_rows, sorted_rows

TEXTS = st.text(st.sampled_from(["a", "z", "\x7f", "é", "\ufffd", "\uffff", "😀", "\U0010ffff", "\t"]), max_size=40)
MOMENTS = st.integers(-(10**15), 10**15).map(lambda us: datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=us))
WIDE = Context(prec=38)
VALUES: dict[str, tuple[pa.DataType, st.SearchStrategy[Any]]] = {
    "i": (pa.int32(), st.integers(-(2**31), 2**31 - 1)),
    "l": (pa.int64(), st.integers(-(2**63), 2**63 - 1)),
    "s": (pa.string(), TEXTS),
    "f": (pa.float64(), st.sampled_from([math.nan, -0.0, 0.0, 1.5, -1e300, math.inf, -math.inf])),
    "r": (pa.float32(), st.floats(width=32)),
    "d": (pa.decimal128(12, 2), st.integers(-(10**11), 10**11).map(lambda n: Decimal(n) / 100)),
    "m": (pa.decimal128(16, 3), st.integers(-(10**16) + 1, 10**16 - 1).map(lambda n: Decimal(n).scaleb(-3))),
    "w": (pa.decimal128(38, 10), st.integers(-(10**37), 10**37).map(lambda n: Decimal(n).scaleb(-10, WIDE))),
    "small": (pa.decimal128(15, 14), st.integers(-(10**15) + 1, 10**15 - 1).map(lambda n: Decimal(n).scaleb(-14))),
    "day": (pa.date32(), st.dates()),
    "t": (pa.timestamp("us", "UTC"), MOMENTS),
    "b": (pa.bool_(), st.booleans()),
}
ROWS = st.lists(st.fixed_dictionaries({name: st.none() | s for name, (_, s) in VALUES.items()}), min_size=1, max_size=6)
SCHEMA = pa.schema([(name, kind) for name, (kind, _) in VALUES.items()])


@given(st.lists(ROWS, min_size=1, max_size=3), st.booleans())
def test_claims_of_tables_of_deltalake_are_true(
    tmp_path_factory: pytest.TempPathFactory, parts: list[list[dict[str, Any]]], checkpoint: bool
) -> None:
    folder = tmp_path_factory.mktemp("delta")
    for rows in parts:
        nested = pa.array([{"x": r["l"], "y": r["s"]} if r["i"] is not None else None for r in rows])
        data = pa.Table.from_pylist(rows, SCHEMA).append_column("n", nested.cast(NESTED))
        deltalake.write_deltalake(folder, data, mode="append")
    if checkpoint:
        deltalake.DeltaTable(folder).create_checkpoint()
    source = read_delta(str(folder))
    assert check_claims(source) > 10
    assert sorted_rows(live_rows(source)) == sorted_rows(deltalake.DeltaTable(folder).to_pyarrow_table())


NESTED = pa.struct([("x", pa.int64()), ("y", pa.string())])


def spark_maximum(values: list[str]) -> str | None:
    """The maximum as Delta wrote it before 3.3: cut by UTF-16 units, with a mark that is not above all characters."""
    units = max(values, key=lambda v: v.encode()).encode("utf-16-le", "surrogatepass")
    if len(units) <= 64:
        return units.decode("utf-16-le")
    return units[:64].decode("utf-16-le", "surrogatepass").encode("utf-8", "replace").decode() + "\ufffd"


@example(["a" + "😀" * 20], "old")
@given(st.lists(TEXTS, min_size=1, max_size=5), st.sampled_from(["plain", "old", "newest"]))
def test_an_upper_bound_of_text_holds_however_it_was_cut(values: list[str], how: str) -> None:
    highest = max(values, key=lambda v: v.encode())
    cut = {"plain": highest[:32], "old": spark_maximum(values), "newest": highest[:32] + "\U0010ffff"}[how]
    bound = above_cut_text(pa.array([cut, None, "short"]))
    assert bound[1].as_py() is None
    assert bound[2].as_py() == "short"
    if bound[0].is_valid:
        assert all(v.encode() <= bound[0].as_py().encode() for v in values)


def test_bounds_of_long_decimals_are_widened_by_what_a_double_loses(tmp_path: Path) -> None:
    """deltalake computes them with doubles: 57000000000000007 becomes 57000000000000010 on either side."""
    value = Decimal("57000000000000007.1234567891")
    deltalake.write_deltalake(tmp_path / "d", pa.table({"w": pa.array([value], pa.decimal128(38, 10))}))
    source = read_delta(str(tmp_path / "d"))
    assert check_claims(source) == 3
    low, high = (source.files[f"1|decimal(38,10)|{side}"][0].as_py() for side in ("lo", "hi"))
    assert value - 1000 < low < value < high < value + 1000
    tamis.adopt(tmp_path / "d", tmp_path / "t")
    assert tamis.open(tmp_path / "t").scan(f"w = {value}").count() == 1


def test_a_long_bound_is_still_near() -> None:
    assert above_cut_text(pa.array(["a" * 40])).to_pylist() == ["a" * 30 + "b"]


FIELDS = [
    logs.field("a", "long"),
    logs.field("s", "string"),
    logs.field("f", "double"),
    logs.field("t", "timestamp"),
    logs.field("n", "timestamp_ntz"),
]


def adversarial(folder: Path) -> None:
    """A log as Spark and others may have written it."""
    naive = datetime(1969, 12, 31, 23, 59, 59, 999_999)
    data = pa.table(
        {
            "a": [1, None, 3],
            "s": ["b" * 31 + "\U0010ffff" * 9, "a" * 40, None],
            "f": [math.nan, -0.0, 0.0],
            "t": pa.array([datetime(2020, 1, 1, 0, 0, 0, 123_999, UTC)] * 3, pa.timestamp("us", "UTC")),
            "n": pa.array([naive, naive, None], pa.timestamp("us")),
        }
    )
    spark = {
        "minValues": {
            "a": 1,
            "s": "a" * 32,
            "f": 0.0,
            "t": "2020-01-01T01:00:00.123+01:00",
            "n": "1970-01-01T00:00:00.000",  # truncated towards 1970
        },
        "maxValues": {
            "a": 3,
            "s": "b" * 31 + "\U0010ffff\ufffd",
            "f": "NaN",
            "t": "2020-01-01T00:00:00.123Z",
            "n": "1970-01-01T00:00:00.000",
        },
        "nullCount": {"a": 1, "s": 1, "f": 0, "t": 0, "n": 1},
    }
    odd: list[Any] = [
        spark,
        None,
        "",
        "no JSON",
        "[1]",
        {"numRecords": 3, "minValues": None, "maxValues": 7, "nullCount": {"a": 9}},
        {"minValues": {"a": 1.0, "s": 5, "t": "12020-01-01T00:00:00Z"}, "maxValues": {"a": "3", "t": "yesterday"}},
        {"minValues": {"a": 1, "s": "a"}, "nullCount": {"a": 1, "s": True, "f": -1}},
        {"minValues": {"gone": 1}, "maxValues": {"gone": 1}, "nullCount": {"gone": 0}},
        '{"numRecords":3,"minValues":{"s":"a\\ud83d"},"maxValues":{"a":3,"a":3}}',
        '{"numRecords":\n3,\n"nullCount":{"a":1}}',
    ]
    logs.create(folder, FIELDS, [logs.add(folder, f"{at}.parquet", data, each) for at, each in enumerate(odd)])


def test_claims_of_an_odd_log_are_true(tmp_path: Path) -> None:
    adversarial(tmp_path)
    source = read_delta(str(tmp_path))
    assert check_claims(source) >= 20
    first = source.files.to_pylist()[0]
    assert (first["3|double|lo"], first["3|double|hi"]) == (0.0, None)  # what NaN hides is not known
    assert first["1|nulls"] == 1
    assert first["rows"] == 3
    assert source.files["rows"].to_pylist().count(None) == 4
    assert source.files["1|nulls"].to_pylist()[-1] == 1  # a document on several lines


def test_a_version_is_that_of_deltalake(tmp_path: Path) -> None:
    schema = pa.schema([("p", pa.string()), ("q", pa.date32()), ("v", pa.int64())])
    places = ["a b", "ü/%", "", None, "x=y", "a%20b"]
    for at in range(6):
        rows = [{"p": places[at], "q": date(2020, 1, at + 1), "v": n} for n in range(at + 1)]
        deltalake.write_deltalake(tmp_path, pa.Table.from_pylist(rows, schema), mode="append", partition_by=["p", "q"])
    table = deltalake.DeltaTable(tmp_path)
    table.delete("v = 0 and p = 'a b'")
    table.create_checkpoint()
    table.update({"v": "v + 10"}, predicate="p = 'x=y'")
    table.optimize.compact()
    before = contents(tmp_path)
    for version in range(table.version() + 1):
        table.load_as_version(version)
        source = read_delta(str(tmp_path), version=version)
        assert source.version == str(version)
        assert sorted_rows(live_rows(source)) == sorted_rows(table.to_pyarrow_table()), version
        check_claims(source)
    assert contents(tmp_path) == before


def test_a_time_finds_the_version_that_was_current(tmp_path: Path) -> None:
    for at in range(4):
        deltalake.write_deltalake(tmp_path, pa.table({"v": [at]}), mode="append")
        # the clock of the third writer is behind
        stamp = [100, 200, 150, 400][at] * 10**9
        os.utime(tmp_path / "_delta_log" / f"{at:020}.json", ns=(stamp, stamp))
    found = [read_delta(str(tmp_path), timestamp_micros=s * 10**6).version for s in (100, 199, 201, 399, 10**6)]
    assert found == ["0", "0", "2", "2", "3"]
    with pytest.raises(tamis.errors.NotFound, match="DELTA_VERSION_NOT_FOUND"):
        read_delta(str(tmp_path), timestamp_micros=1)


def test_the_time_in_a_commit_counts_where_the_table_says_so(tmp_path: Path) -> None:
    metadata = logs.metadata([logs.field("v", "long")], **{"delta.enableInCommitTimestamps": "true"})
    first = {"commitInfo": {"inCommitTimestamp": 1_000}}
    logs.commit(tmp_path, 0, [first, {"protocol": logs.PROTOCOL}, {"metaData": metadata}])
    logs.commit(tmp_path, 1, [{"commitInfo": {"inCommitTimestamp": 2_000}}])
    assert read_delta(str(tmp_path), timestamp_micros=1_999_999).version == "0"
    assert read_delta(str(tmp_path)).timestamp_micros == 2_000_000


@pytest.mark.push_cases(6)
@pytest.mark.parametrize("name", [*CHANGES, *RENAMES])
def test_an_export_reads_as_what_was_exported(tmp_path: Path, name: str) -> None:
    table = made(tmp_path / "t")
    table.delete("id % 9 = 2")
    {**CHANGES, **RENAMES}[name](table)
    table.export("delta")
    source = read_delta(str(tmp_path / "t"))
    ours, theirs = table.scan().to_arrow(), live_rows(source)
    flat = [f.name for f in ours.schema if not pa.types.is_nested(f.type)]
    assert sorted_rows(theirs.select(flat)) == sorted_rows(ours.select(flat))
    assert check_claims(source) > 10


def vectors(folder: Path) -> list[dict[str, Any]]:
    stored = logs.stored_vectors(folder, [0, 2], [1], prefix="ab")
    return [
        logs.inline_vector([3, 4, 7, 11, 18, 29]),
        *stored,
        *logs.stored_vectors(folder, [9], absolute=True),
        *logs.stored_vectors(folder, range(5, 25)),
    ]


def deleted(folder: Path) -> None:
    """Write a table with a deletion vector of every kind, and one file without any."""
    metadata = logs.metadata([logs.field("v", "long")])
    adds = []
    for at, vector in enumerate([*vectors(folder), None]):
        data = pa.table({"v": [at * 100 + n for n in range(30)]})
        wide = {"minValues": {"v": at * 100}, "maxValues": {"v": at * 100 + 29}, "nullCount": {"v": 0}}
        more = {} if vector is None else {"deletionVector": vector}
        adds.append(logs.add(folder, f"{at}.parquet", data, {**wide, "tightBounds": vector is None}, **more))
    logs.commit(folder, 0, [{"protocol": logs.protocol("deletionVectors")}, {"metaData": metadata}, *adds])


GONE = [{3, 4, 7, 11, 18, 29}, {0, 2}, {1}, {9}, set(range(5, 25)), set()]


def test_deletion_vectors_are_decoded(tmp_path: Path) -> None:
    deleted(tmp_path)
    source = read_delta(str(tmp_path))
    expected = [at * 100 + n for at, gone in enumerate(GONE) for n in range(30) if n not in gone]
    assert sorted(live_rows(source)["v"].to_pylist()) == expected
    assert check_claims(source) == 18


def test_the_vector_of_the_protocol_is_decoded(tmp_path: Path) -> None:
    vector = {
        "storageType": "i",
        "pathOrInlineDv": "wi5b=000010000siXQKl0rr91000f55c8Xg0@@D72lkbi5=-{L",
        "sizeInBytes": 40,
        "cardinality": 6,
    }
    add = logs.add(tmp_path, "a.parquet", pa.table({"v": list(range(30))}), {}, deletionVector=vector)
    metadata_action = {"metaData": logs.metadata([logs.field("v", "long")])}
    logs.commit(tmp_path, 0, [{"protocol": logs.protocol("deletionVectors")}, metadata_action, add])
    assert sorted(live_rows(read_delta(str(tmp_path)))["v"].to_pylist()) == sorted(set(range(30)) - GONE[0])


def test_duckdb_sees_the_same_rows(tmp_path: Path) -> None:
    deleted(tmp_path)
    theirs = duckdb_rows(["delta"], f"SELECT v FROM delta_scan('{tmp_path}') ORDER BY v")
    assert [v for (v,) in theirs] == sorted(live_rows(read_delta(str(tmp_path)))["v"].to_pylist())


@pytest.mark.parametrize("harm", ["checksum", "size", "cardinality", "version", "magic", "beyond", "gone", "kind"])
def test_a_damaged_vector_is_an_error(tmp_path: Path, harm: str) -> None:
    (vector,) = logs.stored_vectors(tmp_path, [1, 40] if harm == "beyond" else [1, 2])
    file = next(tmp_path.glob("*.bin"))
    data = bytearray(file.read_bytes())
    at = {"checksum": len(data) - 6, "size": 4, "version": 0, "magic": 5}.get(harm)
    if at is not None:
        data[at] ^= 1
        file.write_bytes(data)
    if harm == "gone":
        file.unlink()
    more = {"cardinality": 3} if harm == "cardinality" else {"storageType": "x"} if harm == "kind" else {}
    add = logs.add(tmp_path, "a.parquet", pa.table({"v": list(range(30))}), {}, deletionVector={**vector, **more})
    metadata_action = {"metaData": logs.metadata([logs.field("v", "long")])}
    logs.commit(tmp_path, 0, [{"protocol": logs.protocol("deletionVectors")}, metadata_action, add])
    wanted = tamis.errors.NotFound if harm == "gone" else tamis.errors.CorruptData
    with pytest.raises(wanted):
        read_delta(str(tmp_path))


def test_counts_of_rows_that_are_deleted_meanwhile_say_nothing(tmp_path: Path) -> None:
    """With wide bounds, a count of NULLs is kept only where no row or every row has one."""
    adds = [
        logs.add(
            tmp_path,
            f"{nulls}.parquet",
            pa.table({"v": [None] * nulls + [1] * (4 - nulls)}, pa.schema([("v", pa.int64())])),
            {"nullCount": {"v": nulls}, "tightBounds": False},
            deletionVector=logs.inline_vector([3]),
        )
        for nulls in (0, 2, 4)
    ]
    metadata_action = {"metaData": logs.metadata([logs.field("v", "long")])}
    logs.commit(tmp_path, 0, [{"protocol": logs.protocol("deletionVectors")}, metadata_action, *adds])
    assert read_delta(str(tmp_path)).files["1|nulls"].to_pylist() == [0, None, 4]


def mapped(name: str, kind: Any, identifier: int, physical: str, **more: Any) -> dict[str, Any]:
    ids = {"delta.columnMapping.id": identifier, "delta.columnMapping.physicalName": physical}
    return logs.field(name, kind, **ids, **more)


@pytest.mark.parametrize("mode", ["name", "id"])
def test_column_mapping_gives_ids_and_names(tmp_path: Path, mode: str) -> None:
    inner = {"type": "struct", "fields": [mapped("x", "long", 5, "col-x")]}
    listed = {"type": "array", "elementType": "long", "containsNull": True}
    fields = [mapped("renamed", "long", 3, "col-a"), mapped("st", inner, 4, "col-st"), mapped("l", listed, 6, "col-l")]
    fields.append(mapped("p", "string", 7, "col-p"))
    data = pa.table({"col-a": [1, 2], "col-st": [{"col-x": 5}, None], "col-l": [[1], None]})
    by_id = [f.with_metadata({"PARQUET:field_id": str(n)}) for f, n in zip(data.schema, (3, 4, 6), strict=True)]
    add = logs.add(
        tmp_path,
        "a.parquet",
        data.cast(pa.schema(by_id)),
        {
            "minValues": {"col-a": 1, "col-st": {"col-x": 5}, "renamed": 99},
            "maxValues": {"col-a": 2, "col-st": {"col-x": 5}},
            "nullCount": {"col-a": 0, "col-st": {"col-x": 1}, "col-l": 1},
        },
        partitionValues={"col-p": "here"},
    )
    metadata = logs.metadata(fields, ["p"], **{"delta.columnMapping.mode": mode})
    logs.commit(tmp_path, 0, [{"protocol": logs.protocol("columnMapping")}, {"metaData": metadata}, add])
    source = read_delta(str(tmp_path))
    assert [f.id for f in source.schema.fields] == [3, 4, 6, 7]
    assert source.schema.by_id[6].type.children[0].id == 2**28 + 1
    assert source.column_names == {3: "col-a", 4: "col-st", 5: "col-x", 6: "col-l", 7: "col-p"}
    assert source.by_field_id == (mode == "id")
    row = source.files.to_pylist()[0]
    assert (row["3|long|lo"], row["3|long|hi"], row["5|nulls"], row["6|nulls"]) == (1, 2, 1, 1)
    assert json.loads(row["constants"]) == {"7": "here"}
    assert check_claims(source) >= 8
    assert live_rows(source)["renamed"].to_pylist() == [1, 2]


def test_ids_stay_when_the_schema_changes(tmp_path: Path) -> None:
    listed = {"type": "array", "elementType": "long", "containsNull": True}
    first = [logs.field("a", "long"), logs.field("l", listed), logs.field("m", pair())]
    logs.create(tmp_path, first, [])
    later = [logs.field("new", "long"), logs.field("l", listed), logs.field("m", pair("y")), logs.field("a", "long")]
    logs.commit(tmp_path, 1, [{"metaData": logs.metadata(later)}])
    before = read_delta(str(tmp_path), version=0).schema
    after = read_delta(str(tmp_path), previous=before).schema
    assert {f.name: f.id for f in before.fields} == {"a": 1, "l": 2, "m": 4}
    assert {f.name: f.id for f in after.fields} == {"new": 8, "l": 2, "m": 4, "a": 1}
    assert after.by_id[2].type.children[0].id == 3
    assert set(before.by_id) < set(after.by_id)
    assert len(after.by_id) == len(before.by_id) + 2


def pair(*more: str) -> dict[str, Any]:
    inside = {"type": "struct", "fields": [logs.field(n, "long") for n in ("x", *more)]}
    return {"type": "map", "keyType": "string", "valueType": inside, "valueContainsNull": True}


def test_an_id_of_delta_never_meets_one_of_ours(tmp_path: Path) -> None:
    listed = {"type": "array", "elementType": "long", "containsNull": True}
    mode = {"delta.columnMapping.mode": "name"}
    old = {"metaData": logs.metadata([mapped("l", listed, 1, "l")], **mode)}
    logs.commit(tmp_path, 0, [{"protocol": logs.protocol("columnMapping")}, old])
    fields = [mapped("l", listed, 1, "l"), mapped("b", "long", 2, "b"), mapped("m", listed, 3, "m")]
    logs.commit(tmp_path, 1, [{"metaData": logs.metadata(fields, **mode)}])
    before = read_delta(str(tmp_path), version=0).schema
    after = read_delta(str(tmp_path), previous=before).schema
    assert sorted(after.by_id) == [1, 2, 3, 2**28 + 1, 2**28 + 2]
    assert after.by_id[1].type == before.by_id[1].type


def test_a_widened_column_keeps_sound_bounds(tmp_path: Path) -> None:
    changes = [{"fromType": "float", "toType": "double"}]
    fields = [
        logs.field("f", "double", **{"delta.typeChanges": changes}),
        logs.field("d", "timestamp_ntz", **{"delta.typeChanges": [{"fromType": "date", "toType": "timestamp_ntz"}]}),
        logs.field("m", "decimal(12,2)", **{"delta.typeChanges": [{"fromType": "integer", "toType": "decimal(12,2)"}]}),
    ]
    data = pa.table(
        {
            "f": pa.array([0.7, 0.8], pa.float32()),
            "d": pa.array([date(2020, 1, 1), None], pa.date32()),
            "m": pa.array([1, 2], pa.int32()),
        }
    )
    stats = {
        "minValues": {"f": 0.7, "d": "2020-01-01", "m": 1},
        "maxValues": {"f": 0.8, "d": "2020-01-01", "m": 2},
        "nullCount": {"f": 0, "d": 1, "m": 0},
    }
    metadata_action = {"metaData": logs.metadata(fields)}
    logs.commit(
        tmp_path,
        0,
        [
            {"protocol": logs.protocol("typeWidening", "timestampNtz")},
            metadata_action,
            logs.add(tmp_path, "a.parquet", data, stats),
        ],
    )
    source = read_delta(str(tmp_path))
    assert check_claims(source) == 9
    assert source.schema.fields[2].type == DecimalType(12, 2)


@pytest.mark.parametrize(("old", "new"), [("long", "double"), ("string", "long"), ("decimal(10,2)", "decimal(10,4)")])
def test_an_unknown_change_of_type_is_refused(tmp_path: Path, old: str, new: str) -> None:
    changed = logs.field("f", new, **{"delta.typeChanges": [{"fromType": old, "toType": new}]})
    logs.create(tmp_path, [changed], [])
    with pytest.raises(tamis.errors.InvalidInput, match=f"'f' was changed from {old.split('(', maxsplit=1)[0]}"):
        read_delta(str(tmp_path))


@pytest.mark.parametrize(
    ("protocol", "name"),
    [
        (logs.protocol("deletionVectors", "catalogManaged"), "catalogManaged"),
        (logs.protocol("somethingNew"), "somethingNew"),
        (logs.protocol("variantShredding"), "variantShredding"),
        ({"minReaderVersion": 4, "minWriterVersion": 9}, "reader version 4"),
    ],
)
def test_an_unknown_feature_is_refused_by_name(tmp_path: Path, protocol: dict[str, Any], name: str) -> None:
    logs.commit(tmp_path, 0, [{"protocol": protocol}, {"metaData": logs.metadata([logs.field("v", "long")])}])
    with pytest.raises(tamis.errors.InvalidInput, match=f"DELTA_FEATURE.*{name}"):
        read_delta(str(tmp_path))


def test_partition_values_are_constants_of_their_types(tmp_path: Path) -> None:
    kinds = {
        "b": ("byte", "-5", -5),
        "l": ("long", "9007199254740993", 9007199254740993),
        "f": ("double", "NaN", "nan"),
        "g": ("float", "-Infinity", "-inf"),
        "d": ("decimal(10,2)", "1.5", "1.50"),
        "day": ("date", "1969-12-31", -1),
        "t": ("timestamp", "1970-01-01T00:00:00.000001Z", 1),
        "n": ("timestamp_ntz", "1970-01-01 00:00:01", 1_000_000),
        "o": ("boolean", "true", True),
        "e": ("string", "", None),
        "m": ("string", None, None),
    }
    fields = [logs.field("v", "long"), *(logs.field(name, kind) for name, (kind, _, _) in kinds.items())]
    texts = {name: text for name, (_, text, _) in kinds.items()}
    add = logs.add(tmp_path, "a.parquet", pa.table({"v": [1, 2]}), {}, partitionValues=texts)
    metadata_action = {"metaData": logs.metadata(fields, list(kinds))}
    logs.commit(tmp_path, 0, [{"protocol": logs.protocol("timestampNtz")}, metadata_action, add])
    source = read_delta(str(tmp_path))
    found = json.loads(source.files["constants"][0].as_py())
    by_name = {f.name: found[str(f.id)] for f in source.schema.fields if f.name != "v"}
    assert by_name == {name: value for name, (_, _, value) in kinds.items()}
    assert check_claims(source) >= 20
    identifier = source.schema.find("m")[0].id
    assert source.files[f"{identifier}|nulls"].to_pylist() == [2]


def test_partition_timestamps_without_a_zone_need_one(tmp_path: Path) -> None:
    fields = [logs.field("v", "long"), logs.field("t", "timestamp")]
    add = logs.add(tmp_path, "a.parquet", pa.table({"v": [1]}), {}, partitionValues={"t": "2020-07-01 00:00:00"})
    logs.commit(tmp_path, 0, [{"protocol": logs.PROTOCOL}, {"metaData": logs.metadata(fields, ["t"])}, add])
    with pytest.raises(tamis.errors.InvalidInput, match="PARTITION_ZONE"):
        read_delta(str(tmp_path))
    source = read_delta(str(tmp_path), DeltaOptions(zone="Europe/Berlin"))
    assert live_rows(source)["t"].to_pylist() == [datetime(2020, 6, 30, 22, tzinfo=UTC)]


def test_a_partition_value_of_another_type_is_an_error(tmp_path: Path) -> None:
    add = logs.add(tmp_path, "a.parquet", pa.table({"v": [1]}), {}, partitionValues={"p": "x"})
    fields = [logs.field("v", "long"), logs.field("p", "long")]
    logs.commit(tmp_path, 0, [{"protocol": logs.PROTOCOL}, {"metaData": logs.metadata(fields, ["p"])}, add])
    with pytest.raises(tamis.errors.CorruptData, match="'p' has a value that is no bigint"):
        read_delta(str(tmp_path))


@pytest.mark.parametrize("path", ["../b.parquet", "x/../../b.parquet", "/b.parquet", "s3://other/b.parquet", "a//b"])
def test_a_file_outside_the_root_is_refused(tmp_path: Path, path: str) -> None:
    action = {"add": {"path": path, "partitionValues": {}, "size": 1, "modificationTime": 1, "dataChange": True}}
    logs.create(tmp_path, [logs.field("v", "long")], [action])
    with pytest.raises(tamis.errors.InvalidInput, match="OUTSIDE_SOURCE"):
        read_delta(str(tmp_path))


def test_absolute_paths_below_the_root_are_its_own_and_others_may_be_allowed(tmp_path: Path) -> None:
    there, clone = tmp_path / "base table", tmp_path / "clone"
    base = logs.add(there, "a b.parquet", pa.table({"v": [1]}), {})["add"]
    own = logs.add(clone, "c.parquet", pa.table({"v": [2]}), {})["add"]
    actions = [
        {"add": {**base, "path": (there / "a b.parquet").as_uri()}},
        {"add": {**own, "path": (clone / "c.parquet").as_uri()}},
    ]
    logs.create(clone, [logs.field("v", "long")], actions)
    with pytest.raises(tamis.errors.InvalidInput, match="OUTSIDE_SOURCE"):
        read_delta(str(clone))
    source = read_delta(str(clone), DeltaOptions(outside=True))
    assert source.files["path"].to_pylist() == [f"file://{there}/a b.parquet", "c.parquet"]
    assert sorted(live_rows(source)["v"].to_pylist()) == [1, 2]


def table_of_commits(folder: Path, versions: int) -> None:
    for at in range(versions):
        deltalake.write_deltalake(folder, pa.table({"v": [at], "s": [f"t{at}"]}), mode="append")


def test_a_damaged_checkpoint_is_passed_over(tmp_path: Path) -> None:
    table_of_commits(tmp_path, 3)
    deltalake.DeltaTable(tmp_path).create_checkpoint()
    table_of_commits(tmp_path, 2)
    whole = live_rows(read_delta(str(tmp_path)))
    checkpoint = next((tmp_path / "_delta_log").glob("*.checkpoint.parquet"))
    data = checkpoint.read_bytes()
    for broken in (data[: len(data) // 2], b"", data[:-9] + b"123456789"):
        checkpoint.write_bytes(broken)
        assert sorted_rows(live_rows(read_delta(str(tmp_path)))) == sorted_rows(whole)
    (tmp_path / "_delta_log" / f"{1:020}.json").unlink()
    with pytest.raises(tamis.errors.NotFound, match="neither commit 1 nor a checkpoint"):
        read_delta(str(tmp_path))


def test_a_checkpoint_stands_for_commits_that_are_gone(tmp_path: Path) -> None:
    table_of_commits(tmp_path, 3)
    deltalake.DeltaTable(tmp_path).create_checkpoint()
    table_of_commits(tmp_path, 1)
    for at in range(3):
        (tmp_path / "_delta_log" / f"{at:020}.json").unlink()
    source = read_delta(str(tmp_path))
    assert len(source.files) == 4
    assert check_claims(source) >= 20
    with pytest.raises(tamis.errors.NotFound, match="neither commit 0 nor a checkpoint"):
        read_delta(str(tmp_path), version=1)


def test_a_checkpoint_in_parts_counts_when_all_are_there(tmp_path: Path) -> None:
    table_of_commits(tmp_path, 4)
    deltalake.DeltaTable(tmp_path).create_checkpoint()
    log = tmp_path / "_delta_log"
    whole = next(log.glob("*.checkpoint.parquet"))
    table = pq.read_table(whole)
    for n, part in enumerate((table.slice(0, 3), table.slice(3)), 1):
        pq.write_table(part, log / f"{3:020}.checkpoint.{n:010}.{2:010}.parquet")
    whole.unlink()
    (log / f"{0:020}.json").unlink()
    assert len(read_delta(str(tmp_path)).files) == 4
    for gone in (1, 2):
        part = log / f"{3:020}.checkpoint.{gone:010}.{2:010}.parquet"
        data = part.read_bytes()
        part.unlink()
        with pytest.raises(tamis.errors.NotFound, match="neither commit 0"):
            read_delta(str(tmp_path))
        part.write_bytes(data)


@pytest.mark.parametrize("form", ["json", "parquet"])
def test_a_checkpoint_with_sidecars(tmp_path: Path, form: str) -> None:
    table_of_commits(tmp_path, 4)
    deltalake.DeltaTable(tmp_path).create_checkpoint()
    log = tmp_path / "_delta_log"
    whole = next(log.glob("*.checkpoint.parquet"))
    table = pq.read_table(whole)
    (log / "_sidecars").mkdir()
    for n, part in enumerate((table.select(["add"]).slice(0, 4), table.select(["add"]).slice(4))):
        pq.write_table(part, log / "_sidecars" / f"{n}.parquet")
    sidecars = [{"path": f"{n}.parquet", "sizeInBytes": 1, "modificationTime": 1} for n in (0, 1)]
    metadata = json.loads((log / f"{0:020}.json").read_text().splitlines()[2])["metaData"]
    name = f"{3:020}.checkpoint.80a083e8-7026-4e79-81be-64bd76c43a11.{form}"
    top = [{"checkpointMetadata": {"version": 3}}, {"protocol": logs.PROTOCOL}, {"metaData": metadata}]
    if form == "json":
        (log / name).write_text("\n".join(json.dumps(a) for a in [*top, *({"sidecar": s} for s in sidecars)]))
    else:
        del metadata["format"], metadata["configuration"]
        rows = [{"protocol": logs.PROTOCOL}, {"metaData": metadata}, *({"sidecar": s} for s in sidecars)]
        pq.write_table(pa.Table.from_pylist([{**dict.fromkeys(KEYS), **r} for r in rows]), log / name)
    whole.unlink()
    (log / f"{0:020}.json").unlink()
    source = read_delta(str(tmp_path))
    assert len(source.files) == 4
    assert check_claims(source) >= 20
    (log / "_sidecars" / "1.parquet").unlink()
    with pytest.raises(tamis.errors.NotFound, match="neither commit 0"):
        read_delta(str(tmp_path))


KEYS = ("protocol", "metaData", "sidecar")


def test_statistics_that_a_checkpoint_has_as_columns(tmp_path: Path) -> None:
    """``delta.checkpoint.writeStatsAsJson`` is false: there is no text."""
    table_of_commits(tmp_path, 2)
    deltalake.DeltaTable(tmp_path).create_checkpoint()
    table_of_commits(tmp_path, 1)
    whole = next((tmp_path / "_delta_log").glob("*.checkpoint.parquet"))
    rows = pq.read_table(whole).to_pylist(maps_as_pydicts="strict")
    for row in rows:
        if row["add"]:
            row["add"]["stats_parsed"] = json.loads(row["add"].pop("stats"))
            row["add"]["partitionValues"] = []
    schema = pq.read_table(whole).schema
    bounds = pa.struct([("v", pa.int64()), ("s", pa.string())])
    counts = pa.struct([("v", pa.int64()), ("s", pa.int64())])
    parsed = pa.struct(
        [("numRecords", pa.int64()), ("minValues", bounds), ("maxValues", bounds), ("nullCount", counts)]
    )
    added = pa.struct(
        [
            ("path", pa.string()),
            ("partitionValues", pa.map_(pa.string(), pa.string())),
            ("size", pa.int64()),
            ("dataChange", pa.bool_()),
            ("stats_parsed", parsed),
        ]
    )
    kept = pa.schema([("add", added), schema.field("protocol"), schema.field("metaData")])
    for row in rows:
        for key, value in (row["metaData"] or {}).items():
            row["metaData"][key] = list(value.items()) if isinstance(value, dict) and key == "configuration" else value
    pq.write_table(pa.Table.from_pylist(rows, kept), whole)
    for at in range(2):
        (tmp_path / "_delta_log" / f"{at:020}.json").unlink()
    source = read_delta(str(tmp_path))
    assert sorted(source.files["1|long|lo"].to_pylist()) == [0, 0, 1]
    assert check_claims(source) == 18


def test_names_of_partition_columns_may_differ_in_case(tmp_path: Path) -> None:
    files = [
        logs.add(tmp_path, f"{at}.parquet", pa.table({"v": [at]}), {}, partitionValues=values)
        for at, values in enumerate([{"P": "3"}, {"p": "4", "P": "5"}, {}])
    ]
    fields = [logs.field("v", "long"), logs.field("p", "long")]
    logs.commit(tmp_path, 0, [{"protocol": logs.PROTOCOL}, {"metaData": logs.metadata(fields, ["p"])}, *files])
    found = live_rows(read_delta(str(tmp_path)))
    assert sorted_rows(found) == sorted_rows(pa.table({"v": [0, 1, 2], "p": [3, 4, None]}))


def test_keys_that_are_null_may_stand_before_an_action(tmp_path: Path) -> None:
    """An action after ``"add": null`` counts, too: a schema that is passed over would give the rows of the old one."""
    first = logs.add(tmp_path, "a.parquet", pa.table({"v": [1]}), {})
    logs.create(tmp_path, [logs.field("v", "long")], [first])
    second = logs.add(tmp_path, "b.parquet", pa.table({"v": [2], "w": [3]}), {})
    changed = logs.metadata([logs.field("v", "long"), logs.field("w", "long")])
    logs.commit(tmp_path, 1, [{"add": None, "remove": None, "metaData": changed}, second])
    found = live_rows(read_delta(str(tmp_path)))
    assert sorted_rows(found) == sorted_rows(pa.table({"v": [1, 2], "w": [None, 3]}))


@pytest.mark.parametrize("line", ['{"add":{"path":null}}', '{"add":', '{"add":{"path":"a"}}', "[]", '{"add":5}'])
def test_a_damaged_commit_is_an_error_that_names_it(tmp_path: Path, line: str) -> None:
    table_of_commits(tmp_path, 1)
    (tmp_path / "_delta_log" / f"{1:020}.json").write_text(line + "\n")
    with pytest.raises(tamis.errors.CorruptData, match=r"DELTA_LOG_DAMAGED.*00001\.json"):
        read_delta(str(tmp_path))


def test_one_file_under_two_vectors_is_an_error(tmp_path: Path) -> None:
    one = logs.add(tmp_path, "a.parquet", pa.table({"v": [1, 2]}), {}, deletionVector=logs.inline_vector([0]))
    two = logs.add(tmp_path, "a.parquet", pa.table({"v": [1, 2]}), {}, deletionVector=logs.inline_vector([1]))
    metadata_action = {"metaData": logs.metadata([logs.field("v", "long")])}
    logs.commit(tmp_path, 0, [{"protocol": logs.protocol("deletionVectors")}, metadata_action, one, two])
    with pytest.raises(tamis.errors.CorruptData, match="DELTA_FILE_TWICE"):
        read_delta(str(tmp_path))


def test_the_last_word_about_a_file_counts(tmp_path: Path) -> None:
    data = pa.table({"v": [1, 2, 3]})
    plain = logs.add(tmp_path, "a.parquet", data, {})
    first, second = logs.inline_vector([0]), logs.inline_vector([0, 1])
    metadata_action = {"metaData": logs.metadata([logs.field("v", "long")])}
    again = logs.add(tmp_path, "a.parquet", data, {"nullCount": {"v": 0}})
    logs.commit(tmp_path, 0, [{"protocol": logs.protocol("deletionVectors")}, metadata_action, plain])
    logs.commit(tmp_path, 1, [again])
    logs.commit(
        tmp_path, 2, [logs.remove("a.parquet"), logs.add(tmp_path, "a.parquet", data, {}, deletionVector=first)]
    )
    with_second = logs.add(tmp_path, "a.parquet", data, {}, deletionVector=second)
    logs.commit(tmp_path, 3, [with_second, logs.remove("a.parquet", deletionVector=first)])
    logs.commit(tmp_path, 4, [logs.remove("a.parquet", deletionVector=second)])
    found = [live_rows(read_delta(str(tmp_path), version=v)) for v in range(4)]
    assert [rows["v"].to_pylist() for rows in found] == [[1, 2, 3], [1, 2, 3], [2, 3], [3]]
    assert read_delta(str(tmp_path), version=1).files["1|nulls"].to_pylist() == [0]
    assert len(read_delta(str(tmp_path)).files) == 0


def test_escapes_in_paths_are_decoded_once() -> None:
    paths = pa.array(["a%20b", "a%2520b", "%c3%BC", "plain", "100%"])
    assert percent_decoded(paths).to_pylist() == ["a b", "a%20b", "ü", "plain", "100%"]


def test_no_table_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(tamis.errors.NotFound, match="DELTA_NOT_FOUND"):
        read_delta(str(tmp_path))
    table_of_commits(tmp_path, 1)
    with pytest.raises(tamis.errors.NotFound, match="The newest is 0"):
        read_delta(str(tmp_path), version=5)
    shutil.rmtree(tmp_path / "_delta_log")
    with pytest.raises(tamis.errors.NotFound):
        read_delta(str(tmp_path))


def test_types_are_ours() -> None:
    """Nested types, CHAR and VARCHAR, and collations."""
    fields = [
        logs.field("c", "string", __CHAR_VARCHAR_TYPE_STRING="char(3)"),
        logs.field("k", "string", __COLLATIONS={"k": "ICU.UNICODE_CI"}),
        logs.field("m", pair()),
        logs.field("v", "variant"),
    ]
    schema = delta_schema(logs.metadata(fields), "here").schema
    assert [str(f.type) for f in schema.fields] == [
        "char(3)",
        "string collate UNICODE_CI",
        "map<string,struct<x:bigint>>",
        "variant",
    ]
    assert isinstance(schema, Schema)
    assert isinstance(schema.fields[2].type, Map)
    with pytest.raises(tamis.errors.InvalidInput, match="geometry"):
        delta_schema(logs.metadata([logs.field("g", "geometry(0)")]), "here")


@pytest.mark.parametrize("mode", ["reference", "copy"])
def test_a_table_without_files_is_an_empty_one(tmp_path: Path, mode: str) -> None:
    deltalake.DeltaTable.create(str(tmp_path / "delta"), deltalake.Schema.from_arrow(pa.schema([("a", pa.int64())])))
    table = tamis.adopt(str(tmp_path / "delta"), str(tmp_path / "ours"), mode=mode)
    assert table.scan().to_arrow().num_rows == 0
    assert table.schema.names == ["a"]
