"""Spark's schema in the footers of a folder's files decides collations, and which columns are not adopted."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tamis
from tamis.bridges.sources import parquet_schema
from tamis.bridges.sources.spark_row_schema import RowSchema, row_schema_of
from tamis.core.types.arrow import from_arrow_schema
from tamis.errors import InvalidInput

KEY = b"org.apache.spark.sql.parquet.row.metadata"
LCASE = "spark.UTF8_LCASE"
STRUCT = pa.struct([("x", pa.string()), ("y", pa.list_(pa.string()))])
ROWS = pa.table(
    {
        "s": ["a", "A", "b"],
        "l": [["a"], ["A"], None],
        "m": pa.array([[("k", "v")], [], None], pa.map_(pa.string(), pa.string())),
        "t": pa.array([{"x": "a", "y": ["q"]}, None, {"x": None, "y": None}], STRUCT),
        "n": [1, 2, 3],
    }
)


def field(name: str, kind: Any, **metadata: Any) -> dict[str, Any]:
    return {"name": name, "type": kind, "nullable": True, "metadata": metadata}


def listed(kind: Any) -> dict[str, Any]:
    return {"type": "array", "elementType": kind, "containsNull": True}


COLLATED = [
    field("s", "string", __COLLATIONS={"s": LCASE}),
    field("l", listed("string"), __COLLATIONS={"l.element": LCASE}),
    field(
        "m",
        {"type": "map", "keyType": "string", "valueType": "string", "valueContainsNull": True},
        __COLLATIONS={"m.value": "icu.UNICODE_CI"},
    ),
    field(
        "t",
        {
            "type": "struct",
            "fields": [
                field("x", "string", __COLLATIONS={"x": LCASE}),
                field("y", listed("string"), __COLLATIONS={"y.element": LCASE}),
            ],
        },
    ),
    field("n", "long"),
]


def write(folder: Path, name: str, rows: pa.Table, *fields: dict[str, Any]) -> None:
    folder.mkdir(exist_ok=True)
    note = {KEY: json.dumps({"type": "struct", "fields": fields})} if fields else {}
    pq.write_table(rows.replace_schema_metadata(note), folder / f"{name}.parquet")


def types_of(table: Any) -> list[str]:
    return [str(f.type) for f in from_arrow_schema(table.schema).fields]


@pytest.mark.parametrize("mode", ["reference", "copy"])
def test_collations_are_those_of_spark(tmp_path: Path, mode: str) -> None:
    write(tmp_path / "source", "1", ROWS, *COLLATED)
    write(tmp_path / "source", "2", ROWS.select(["n", "s"]), COLLATED[4], COLLATED[0])
    assert types_of(tamis.adopt(tmp_path / "source", tmp_path / "t", mode=mode)) == [
        "string collate UTF8_LCASE",
        "array<string collate UTF8_LCASE>",
        "map<string,string collate UNICODE_CI>",
        "struct<x:string collate UTF8_LCASE,y:array<string collate UTF8_LCASE>>",
        "bigint",
    ]


def test_files_of_two_collations_are_refused(tmp_path: Path) -> None:
    write(tmp_path / "source", "1", ROWS, *COLLATED)
    write(tmp_path / "source", "2", ROWS)
    with pytest.raises(InvalidInput, match="Column 's' of the files") as caught:
        tamis.adopt(tmp_path / "source", tmp_path / "t")
    assert caught.value.code == "SCHEMAS_DIFFER"
    assert "string collate UTF8_LCASE" in str(caught.value)


@pytest.mark.parametrize(
    ("kind", "shown"),
    [
        ("variant", "VARIANT"),
        ("interval day to second", "INTERVAL DAY TO SECOND"),
        ("interval year", "INTERVAL YEAR"),
        ("geometry(4326)", "GEOMETRY"),
        (listed("interval day"), "INTERVAL DAY"),
        ({"type": "struct", "fields": [field("v", listed("variant"))]}, "VARIANT"),
    ],
)
def test_types_that_parquet_stores_as_others_are_refused(tmp_path: Path, kind: Any, shown: str) -> None:
    write(tmp_path / "source", "1", ROWS, field("n", kind))
    with pytest.raises(InvalidInput, match=f"'n'.*{shown}") as caught:
        tamis.adopt(tmp_path / "source", tmp_path / "t")
    assert caught.value.code == "UNSUPPORTED_TYPE"
    assert not (tmp_path / "t").exists()


def test_structs_that_are_no_variant_are_adopted(tmp_path: Path) -> None:
    rows = pa.table({"v": pa.array([{"metadata": b"m", "value": b"v"}])})
    write(tmp_path / "source", "1", rows)
    assert types_of(tamis.adopt(tmp_path / "source", tmp_path / "t")) == ["struct<metadata:binary,value:binary>"]


def test_a_field_that_came_later_may_be_collated(tmp_path: Path) -> None:
    """A file that lacks a field, or has no rows, says nothing of its collation."""
    one = pa.table({"t": pa.array([{"x": "a"}], pa.struct([("x", pa.string())]))})
    write(tmp_path / "source", "1", one, field("t", {"type": "struct", "fields": [field("x", "string")]}))
    plain = field("x", "string")
    collated = field("y", listed("string"), __COLLATIONS={"y.element": LCASE})
    write(tmp_path / "source", "2", ROWS.select(["t"]), field("t", {"type": "struct", "fields": [plain, collated]}))
    write(tmp_path / "source", "3", ROWS.select(["t"]).slice(0, 0))
    assert types_of(tamis.adopt(tmp_path / "source", tmp_path / "t")) == [
        "struct<x:string,y:array<string collate UTF8_LCASE>>"
    ]


def test_a_collation_beside_an_unknown_type_is_refused(tmp_path: Path) -> None:
    inner = [field("x", "string", __COLLATIONS={"x": LCASE}), field("y", "tomorrows_type")]
    write(tmp_path / "source", "1", ROWS.select(["t"]), field("t", {"type": "struct", "fields": inner}))
    with pytest.raises(InvalidInput, match="a collated text beside a type") as caught:
        tamis.adopt(tmp_path / "source", tmp_path / "t")
    assert caught.value.code == "UNSUPPORTED_TYPE"


def test_each_schema_is_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(80):
        rows = pa.table({f"c{number}_{at}": ["a"] for at in range(5)})
        write(tmp_path / "source", str(number), rows, *(field(name, "string") for name in rows.column_names))
    calls: list[bytes | None] = []

    def counted(note: bytes | None) -> RowSchema:
        calls.append(note)
        return row_schema_of(note)

    monkeypatch.setattr(parquet_schema, "row_schema_of", counted)
    assert len(types_of(tamis.adopt(tmp_path / "source", tmp_path / "t"))) == 400
    assert len(calls) == 80
