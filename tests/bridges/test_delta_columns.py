"""Columns of a Delta table keep their ids through column mapping, and sound bounds when their types are widened."""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import tamis
from tamis.bridges.sources.delta_schema import delta_schema
from tamis.bridges.sources.delta_source import read_delta
from tamis.core.types import Decimal as DecimalType
from tamis.core.types import Map, Schema
from tests.bridges import delta_logs as logs
from tests.bridges.foreign_tables import check_claims, live_rows


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
    assert (row["3|long|lo"], row["3|long|hi"], row["5|nulls"]) == (1, 2, 1)
    assert json.loads(row["constants"]) == {"7": "here"}
    assert check_claims(source) >= 8
    assert live_rows(source)["renamed"].to_pylist() == [1, 2]


def test_a_file_without_ids_is_refused_where_columns_are_found_by_them(tmp_path: Path) -> None:
    """The protocol of Delta forbids to look for names there: the names of files may be those of other columns."""
    metadata = logs.metadata([mapped("a", "long", 1, "b")], **{"delta.columnMapping.mode": "id"})
    add = logs.add(tmp_path / "d", "a.parquet", pa.table({"b": [1]}), None)
    logs.commit(tmp_path / "d", 0, [{"protocol": logs.protocol("columnMapping")}, {"metaData": metadata}, add])
    with pytest.raises(tamis.errors.InvalidInput, match=r"DELTA_FIELD_IDS.*a\.parquet has no field ids"):
        tamis.adopt(tmp_path / "d", tmp_path / "t")


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


def listed(kind: str) -> dict[str, Any]:
    return {"type": "array", "elementType": kind, "containsNull": True}


def test_types_are_ours() -> None:
    """Nested types, CHAR and VARCHAR, and collations."""
    fields = [
        logs.field("c", "string", __CHAR_VARCHAR_TYPE_STRING="char(3)"),
        logs.field("k", "string", __COLLATIONS={"k": "ICU.UNICODE_CI"}),
        logs.field("l", listed("string"), __COLLATIONS={"l.element": "spark.UTF8_LCASE"}),
        logs.field("m", pair()),
        logs.field("v", "variant"),
    ]
    schema = delta_schema(logs.metadata(fields), "here").schema
    assert [str(f.type) for f in schema.fields] == [
        "char(3)",
        "string collate UNICODE_CI",
        "array<string collate UTF8_LCASE>",
        "map<string,struct<x:bigint>>",
        "variant",
    ]
    assert isinstance(schema, Schema)
    assert isinstance(schema.fields[3].type, Map)
    with pytest.raises(tamis.errors.InvalidInput, match="geometry"):
        delta_schema(logs.metadata([logs.field("g", "geometry(0)")]), "here")
