"""The data of a merge is read in the types that an append would store, whatever Arrow layout and ids it comes with."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import tamis
from tamis.errors import InvalidInput, SchemaMismatch


@pytest.fixture
def table(tmp_path: Path) -> tamis.Table:
    made = tamis.create(tmp_path / "t", "id BIGINT, v BIGINT, tags ARRAY<STRING>")
    made.append(pa.table({"id": [1, 2], "v": [0, 0], "tags": [["a"], ["b"]]}))
    return made


def values(table: tamis.Table) -> list[int]:
    return sorted(table.scan().to_arrow()["v"].to_pylist())


def test_ids_that_the_data_brings_for_its_fields_are_not_taken_for_ours(table: tamis.Table, tmp_path: Path) -> None:
    other = tamis.create(tmp_path / "other", "id BIGINT, s STRUCT<a: BIGINT, b: BIGINT, c: BIGINT, d: BIGINT>")
    other.append(pa.table({"id": [1, 2], "s": [{"a": k, "b": 10 * k, "c": 100 * k, "d": 1000 * k} for k in (1, 2)]}))
    rows = other.scan().to_arrow()
    assert b"PARQUET:field_id" in (rows.schema.field("s").type.field(0).metadata or {})
    for name, factor in (("a", 1), ("b", 10), ("c", 100), ("d", 1000)):
        table.merge(rows, "target.id = source.id").when_matched_update({"v": f"source.s.{name}"}).execute()
        assert values(table) == [factor, 2 * factor]
    table.merge(rows, "target.v = source.s.d").when_matched_update({"v": "source.s.a"}).execute()
    assert values(table) == [1, 2]


def test_fields_that_are_not_named_may_hold_anything(table: tamis.Table) -> None:
    kind = pa.struct([("a", pa.int64()), ("t", pa.timestamp("ns")), pa.field("n", pa.int32(), nullable=False)])
    held = pa.StructArray.from_arrays(
        [pa.array([5, 6]), pa.array([1, 2], pa.timestamp("ns")), pa.array([1, None], pa.int32())], fields=list(kind)
    )
    rows = pa.table({"id": [1, 2], "s": held}).slice(1)
    table.merge(rows, "target.id = source.id").when_matched_update({"v": "source.s.a"}).execute()
    assert values(table) == [0, 6]
    with pytest.raises(SchemaMismatch):
        table.merge(rows, "target.id = source.id").when_matched_delete(condition="source.s IS NULL").execute()


def test_fields_within_structs_are_fitted_where_they_are_named(table: tamis.Table, tmp_path: Path) -> None:
    other = tamis.create(tmp_path / "o", "id BIGINT, s STRUCT<l: ARRAY<STRUCT<a: BIGINT, b: BIGINT, c: BIGINT>>>")
    other.append(pa.table({"id": [1, 2], "s": [{"l": [{"a": k, "b": 10 * k, "c": 100 * k}]} for k in (1, 2)]}))
    rows = other.scan().to_arrow()
    table.merge(rows, "target.id = source.id").when_matched_update({"v": "source.s.l[0].a"}).execute()
    assert values(table) == [1, 2]
    merge = table.merge(rows, "target.id = source.id")
    merge.when_matched_update({"v": "9"}, condition="exists(source.s.l, x -> x.b = 20)").execute()
    assert values(table) == [1, 9]
    held = {"e": pa.array([[1.0, 4.0]], pa.list_(pa.float64(), 2)), "t": pa.array([1], pa.timestamp("ns"))}
    rows = pa.table({"id": [1], "s": pa.StructArray.from_arrays([*held.values(), pa.array([{}])], [*held, "empty"])})
    merge = table.merge(rows, "target.id = source.id").when_matched_update({"v": "CAST(source.s.e[1] AS BIGINT)"})
    merge.execute()
    assert values(table) == [4, 9]
    merge = table.merge(rows, "target.id = source.id").when_matched_delete(condition="source.s.t IS NULL")
    with pytest.raises(SchemaMismatch) as caught:
        merge.execute()
    assert caught.value.code == "VALUE_MISMATCH"


def test_what_lies_below_a_null_struct_is_no_value(table: tamis.Table) -> None:
    hidden = pa.StructArray.from_arrays([pa.array([1], pa.timestamp("ns"))], names=["t"], mask=pa.array([True]))
    rows = pa.table({"id": [1], "s": hidden})
    table.merge(rows, "target.id = source.id").when_matched_delete(condition="source.s.t IS NULL").execute()
    assert values(table) == [0]
    shown = pa.table({"id": [2], "s": pa.StructArray.from_arrays([pa.array([1], pa.timestamp("ns"))], names=["t"])})
    with pytest.raises(SchemaMismatch, match=r"'s\.t'"):
        table.merge(shown, "target.id = source.id").when_matched_delete(condition="source.s.t IS NULL").execute()


def test_null_structs_and_slices_keep_their_rows(table: tamis.Table) -> None:
    kind = pa.struct([("a", pa.int64()), ("in", pa.struct([("b", pa.int64())]))])
    held = [None, {"a": 1, "in": None}, {"a": 2, "in": {"b": 20}}, None, {"a": None, "in": {"b": 30}}]
    rows = pa.table({"id": [9, 1, 2, 3, 4], "s": pa.array(held, kind)}).slice(1)
    merge = table.merge(rows, "target.id = source.id").when_matched_update({"v": "source.s.in.b"})
    merge.when_not_matched_insert({"id": "source.id", "v": "source.s.in.b"}).execute()
    assert dict(zip(*table.scan(None, ["id", "v"]).to_arrow().to_pydict().values(), strict=True)) == {
        1: None,
        2: 20,
        3: None,
        4: 30,
    }


def test_names_of_fields_that_are_numbers_are_names(table: tamis.Table) -> None:
    kind = pa.struct([(str(number), pa.int64()) for number in range(4, 12)])
    rows = pa.table({"id": [1, 2], "s": pa.array([{str(n): n * k for n in range(4, 12)} for k in (1, 2)], kind)})
    for number in range(4, 12):
        table.merge(rows, "target.id = source.id").when_matched_update({"v": f"source.s.`{number}`"}).execute()
        assert values(table) == [number, 2 * number]


def test_elements_are_tested_in_conditions(table: tamis.Table) -> None:
    rows = pa.table({"id": [1, 2], "tags": [["x"], ["a"]]})
    merge = table.merge(rows, "target.id = source.id")
    merge.when_matched_update({"v": "7"}, condition="exists(source.tags, x -> x = 'a')").execute()
    assert table.scan("v = 7").to_arrow()["id"].to_pylist() == [2]
    merge = table.merge(rows, "target.id = source.id AND exists(target.tags, x -> x = 'a')")
    merge.when_matched_update({"v": "8"}).execute()
    assert table.scan("v = 8").to_arrow()["id"].to_pylist() == [1]


@pytest.mark.parametrize(
    ("kind", "array"),
    [
        ("INTERVAL DAY TO SECOND", pa.array([1], pa.duration("ns"))),
        ("TIME(6)", pa.array([1], pa.time64("ns"))),
        ("TIMESTAMP", pa.array([2**62], pa.timestamp("s", "UTC"))),
        ("DATE", pa.array([1], pa.date64())),
    ],
)
def test_a_value_that_does_not_fit_is_refused_as_by_append(tmp_path: Path, kind: str, array: pa.Array) -> None:
    made = tamis.create(tmp_path / "t", f"id BIGINT, x {kind}")
    rows = pa.table({"id": [1], "x": array})
    for call in (made.append, lambda data: made.upsert(data, "id")):
        with pytest.raises(SchemaMismatch) as caught:
            call(rows)
        assert caught.value.code in {"VALUE_MISMATCH", "TYPE_MISMATCH"}
    assert made.scan().count() == 0


def test_lists_of_one_size_are_lists(table: tamis.Table) -> None:
    rows = pa.table({"id": [1], "e": pa.array([[5.0, 6.0]], pa.list_(pa.float64(), 2))})
    merge = table.merge(rows, "target.id = source.id")
    merge.when_matched_update({"v": "CAST(source.e[1] AS BIGINT)"}, condition="size(source.e) = 2").execute()
    assert values(table) == [0, 6]


def test_a_value_that_python_cannot_hold_is_shown(tmp_path: Path) -> None:
    made = tamis.create(tmp_path / "t", "s STRING, u STRING GENERATED ALWAYS AS (upper(s))")
    with pytest.raises(InvalidInput, match="MALFORMED_TEXT"):
        made.append(pa.table({"s": pa.array([b"\xff"], pa.binary()).view(pa.string())}))
    far = tamis.create(tmp_path / "f", "ts TIMESTAMP, d DATE GENERATED ALWAYS AS (CAST(ts AS DATE))")
    ts = pa.array([10**18], pa.int64()).view(pa.timestamp("us", "UTC"))
    with pytest.raises(InvalidInput) as caught:
        far.append(pa.table({"ts": ts, "d": [dt.date(2020, 1, 1)]}))
    assert caught.value.code == "GENERATED_VALUE"


@pytest.mark.parametrize(
    ("call", "code"),
    [
        (lambda t: t.scan(keys={"id": [2**64]}).to_arrow(), "BAD_KEYS"),
        (lambda t: t.append(pytest.importorskip("pandas").DataFrame({"id": [2**64]})), "BAD_DATA"),
        (lambda t: t.upsert(pa.table({"id": [1]}), on=5), "BAD_COLUMN"),
        (lambda t: t.create_index(5, "id"), "BAD_NAME"),
        (lambda t: t.create_index("i", None), "NO_COLUMNS"),
        (lambda t: t.create_index("i", 5), "NO_COLUMNS"),
    ],
)
def test_arguments_of_other_types_are_named(table: tamis.Table, call: Any, code: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        call(table)
    assert caught.value.code == code


def test_names_of_keys_may_come_in_any_sequence(table: tamis.Table) -> None:
    rows = pa.table({"id": [1], "v": [5], "tags": [["a"]]})
    names: Any = np.array(["id", "v"]).astype(object)[:1]
    table.upsert(rows, on=names)
    assert values(table) == [0, 5]


def test_segments_of_an_index_are_named_by_texts(table: tamis.Table) -> None:
    table.create_index("i", "id")
    (segment,) = table.snapshot.segments["segment_id"].to_pylist()
    assert table.repair_index("i", segment).version
    bad: Any
    for call, bad in ((table.repair_index, [5]), (table.drop_index_segments, None)):
        with pytest.raises(InvalidInput) as caught:
            call("i", bad)
        assert caught.value.code == "UNKNOWN_SEGMENT"


def test_a_variant_is_made_of_bytes(tmp_path: Path) -> None:
    made = tamis.create(tmp_path / "t", "v VARIANT")
    with pytest.raises(SchemaMismatch) as caught:
        made.append(pa.table({"v": pa.array([{"value": 1, "metadata": 2}])}))
    assert caught.value.code == "TYPE_MISMATCH"
    kind = pa.struct([("value", pa.binary()), ("metadata", pa.binary())])
    with pytest.raises(SchemaMismatch) as caught:
        made.append(pa.table({"v": pa.array([{"value": None, "metadata": b"\x01\x00\x00"}], kind)}))
    assert caught.value.code == "NULL_IN_REQUIRED"
    made.append(pa.table({"v": pa.array([None, {"value": b"\x00", "metadata": b"\x01\x00\x00"}], kind)}))
    assert made.scan("v IS NULL").count() == 1
