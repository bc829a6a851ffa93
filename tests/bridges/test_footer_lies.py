"""What footers of other writers say wrongly, or do not say, is never believed: each test fails with its bug planted."""

from __future__ import annotations

import math
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import deltalake
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tamis
from tamis.core.types import Field, Schema
from tamis.core.types.arrow import from_arrow_type
from tamis.storage.files.parquet.foreign_columns import ForeignLayout, ForeignNames
from tamis.storage.files.parquet.foreign_statistics import bounded_leaves
from tamis.storage.files.parquet.legacy_calendar import LegacyCalendar
from tests.bridges.foreign_files import edit_footer, write_file, writer_of


def adopted(folder: Path) -> tamis.Table:
    table = tamis.adopt(folder / "source", folder / "table")
    assert isinstance(table, tamis.Table)
    return table


def statistics(table: tamis.Table, column: str) -> list[dict[str, Any]]:
    """What the manifest says of a column, part by part."""
    schema = table.snapshot.head.schema
    assert schema is not None
    (field,) = schema.find(column)
    parts = table.snapshot.parts(None, frozenset([field.id]))
    found = [name for name in parts.column_names if name.startswith(f"{field.id}|")]
    return [{name.rpartition("|")[2]: row[name] for name in found} for row in parts.to_pylist()]


def signed(values: list[int], bits: int) -> tuple[bytes, bytes]:
    """The least and greatest of unsigned values in the order of signed ones, as parquet-mr compared them before 1.10."""
    ordered = sorted(values, key=lambda v: v - 2**bits if v >= 2 ** (bits - 1) else v)
    return ordered[0].to_bytes(bits // 8, "little"), ordered[-1].to_bytes(bits // 8, "little")


@pytest.mark.parametrize("writer", [b"impala version 3.0", b"parquet-mr version 1.8.1"])
@pytest.mark.parametrize(("kind", "bits"), [(pa.uint32(), 32), (pa.uint64(), 64)])
def test_bounds_of_unsigned_numbers_in_the_order_of_signed_ones(
    tmp_path: Path, kind: pa.DataType, bits: int, writer: bytes
) -> None:
    """No writer's bounds are believed: the least is 2**31 + 7, which looks negative, the greatest 0x11223344."""
    middle = 2 ** (bits - 1) + 7
    values = [0x11223344, middle, 0x01020304, 2**bits - 0x0A0B0C]
    file = write_file(tmp_path / "source" / "a.parquet", pa.table({"x": pa.array(values, kind), "k": [1, 2, 3, 4]}))
    low, high = (v.to_bytes(bits // 8, "little") for v in (min(values), max(values)))
    least, greatest = signed(values, bits)
    length = bytes([bits // 8])
    edit_footer(file, [(length + high, length + greatest), (length + low, length + least)])
    edit_footer(file, [(writer_of(file), writer.ljust(len(writer_of(file))))])
    arrow_statistics = pq.read_metadata(file).row_group(0).column(0).statistics
    assert (arrow_statistics is None) == writer.startswith(b"parquet-mr"), "Arrow hides those of old parquet-mr"
    table = adopted(tmp_path)
    assert all(one.get("lo") is None and one.get("hi") is None for one in statistics(table, "x"))
    for value in values:
        assert table.scan(f"x = {value}", ["k"]).count() == 1
    assert table.scan(f"x > {0x11223344}", ["k"]).count() == 2
    assert table.scan(f"x < {0x11223344}", ["k"]).count() == 1
    assert table.scan().aggregate(["min(x)", "max(x)"]).to_pylist()[0] == {
        "min(x)": min(values),
        "max(x)": max(values),
    }


def test_bounds_of_unsigned_numbers_that_are_right_are_not_believed_either(tmp_path: Path) -> None:
    """Nothing in a footer says in which order they were compared."""
    write_file(tmp_path / "source" / "a.parquet", pa.table({"x": pa.array([5, 7], pa.uint32())}))
    (found,) = statistics(adopted(tmp_path), "x")
    assert (found.get("lo"), found.get("hi"), found["nulls"]) == (None, None, 0)


@pytest.mark.parametrize("wrong", [b"2300", b"1700"])
def test_a_note_of_pages_that_describes_other_rows(tmp_path: Path, wrong: bytes) -> None:
    """A file of a Tamis table that was copied out and edited: its note still fits the pages, but not their rows."""
    made = tamis.create(tmp_path / "made", pa.schema([("k", pa.int64()), ("v", pa.int64())]))
    made.append(pa.table({"k": np.arange(5000), "v": np.arange(5000) * 7}))
    (file,) = (tmp_path / "made" / "data").iterdir()
    copied = tmp_path / "source" / "a.parquet"
    copied.parent.mkdir()
    shutil.copy(file, copied)
    note = pq.read_metadata(copied).metadata[b"tamis.pages"]
    rows = note.split(b" ")[0]
    pages = {n: -(-5000 // n) for n in (int(rows), int(wrong))}
    if len(set(pages.values())) > 1 or len(rows) != len(wrong):
        wrong = b"%d" % next(n for n in range(int(rows) + 400, int(rows), -1) if -(-5000 // n) == pages[int(rows)])
    edit_footer(copied, [(note[: len(rows) + 1], wrong + b" ")])
    table = adopted(tmp_path)
    for key in (0, 1, int(rows) - 1, int(rows), int(rows) + 1, 4999):
        assert table.scan(f"k = {key}", options={"tamis.read.lazy": "on"}).to_arrow().to_pylist() == [
            {"k": key, "v": key * 7}
        ]
    table.create_index("by_v", ["v"])
    for key in (3, int(rows) + 2, 4998):
        assert table.scan(f"v = {key * 7}", options={"tamis.index.use": "lookup"}).to_arrow()["k"].to_pylist() == [key]


def test_statistics_in_notes_of_tamis_that_describe_other_rows(tmp_path: Path) -> None:
    """Counts of NaN, pages and shredded leaves stay in a file when a tool writes other rows with its notes."""
    schema = pa.schema([("k", pa.int64()), ("x", pa.float64()), ("doc", pa.string())])
    made = tamis.create(tmp_path / "made", schema, properties={"tamis.write.shred": "doc.a"})
    count = 20_000
    made.append(
        pa.table({"k": range(count), "x": [1.0] * count, "doc": [f'{{"a":{i}}}' for i in range(count)]}, schema=schema)
    )
    (file,) = (tmp_path / "made" / "data").iterdir()
    whole = pq.read_table(file)
    notes = dict(pq.read_metadata(file).metadata)
    assert {b"tamis.pages", b"tamis.nans"} <= set(notes)
    other = pa.table(
        {
            "k": range(50_000, 50_000 + count),
            "x": [math.nan if i % 2 else 1.0 for i in range(count)],
            "doc": [f'{{"a":{-i}}}' for i in range(count)],
        },
        schema=schema,
    ).replace_schema_metadata({**(whole.schema.metadata or {}), **notes})
    write_file(tmp_path / "source" / "a.parquet", other, row_group_size=count // 2)
    table = adopted(tmp_path)
    assert table.scan("isnan(x)", ["k"]).count() == count // 2
    assert table.scan("x > 5", ["k"]).count() == count // 2, "NaN is the greatest number"
    assert table.scan("k = 50007").to_arrow()["doc"].to_pylist() == ['{"a":-7}']
    assert table.scan("get_json_object(doc, '$.a') = '-7'", ["k"]).to_arrow()["k"].to_pylist() == [50_007]
    assert table.scan("k < 50000", ["k"]).count() == 0
    assert table.verify().ok


def test_a_missing_number_of_nulls_is_not_none(tmp_path: Path) -> None:
    """A writer may leave it out; here the field is renumbered to one that readers do not know it by."""
    values = [None if i % 4 == 0 else i for i in range(40)]
    file = write_file(tmp_path / "source" / "a.parquet", pa.table({"k": range(40), "x": pa.array(values, pa.int64())}))
    nulls = pq.read_metadata(file).row_group(0).column(1).statistics.null_count
    assert nulls == 10
    # in Thrift: field 3 (after field 2) with the count, then field 5 or 4; the count becomes field 4
    edit_footer(file, [(bytes([0x16, 2 * nulls, 0x28]), bytes([0x26, 2 * nulls, 0x18]))])
    assert not pq.read_metadata(file).row_group(0).column(1).statistics.has_null_count
    table = adopted(tmp_path)
    assert statistics(table, "x")[0]["nulls"] is None
    assert table.scan("x IS NULL", ["k"]).count() == 10
    assert table.scan("x IS NOT NULL", ["k"]).count() == 30
    assert table.scan().aggregate(["count(x)", "count(*)"]).to_pylist() == [{"count(x)": 30, "count(*)": 40}]
    assert table.scan("x >= 0", ["k"]).count() == 30
    assert table.scan("x >= 0", ["k"], limit=35).to_arrow().num_rows == 30
    order = table.scan(None, ["x"], order_by="x DESC NULLS LAST", limit=35).to_arrow()["x"].to_pylist()
    assert order == sorted((v for v in values if v is not None), reverse=True) + [None] * 5


def test_bounds_that_were_cut_answer_no_minimum_or_maximum(tmp_path: Path) -> None:
    """parquet-rs cuts bounds of texts and binaries, and raises the last byte of the upper one."""
    texts = [letter * 200 for letter in "bcd"]
    data = pa.table({"k": [1, 2, 3], "s": texts, "b": [t.encode() for t in texts]})
    deltalake.write_deltalake(tmp_path / "delta", data)
    (tmp_path / "source").mkdir()
    (file,) = (tmp_path / "delta").glob("*.parquet")
    shutil.copy(file, tmp_path / "source" / "a.parquet")
    writer = writer_of(file)
    edit_footer(tmp_path / "source" / "a.parquet", [(writer, b"parquet-rs version 58.0".ljust(len(writer)))])
    table = adopted(tmp_path)
    (bounds,) = statistics(table, "s")
    assert bounds["hi"] is not None, "the writer is one whose bounds of texts are believed"
    assert bounds["hi"] != texts[2]
    assert table.scan().aggregate(["min(s)", "max(s)"]).to_pylist() == [{"min(s)": texts[0], "max(s)": texts[2]}]
    assert table.scan(None, ["s"], order_by="s DESC", limit=1).to_arrow()["s"].to_pylist() == texts[2:]
    assert table.scan(f"s = '{texts[2]}'", ["k"]).count() == 1
    assert table.scan(f"s >= '{bounds['lo']}' AND s <= '{bounds['hi']}'", ["k"]).count() == 3


class _Metadata:
    """As much of a footer as ``bounded_leaves`` asks for."""

    def __init__(self, physical: str, writer: str) -> None:
        self.created_by = writer
        self.schema = SimpleNamespace(column=lambda at: SimpleNamespace(physical_type=physical))


@pytest.mark.parametrize(
    ("kind", "physical", "writer", "believed"),
    [
        (pa.timestamp("us", "UTC"), "INT96", "parquet-mr version 1.15.2", False),
        (pa.timestamp("us", "UTC"), "INT64", "parquet-mr version 1.15.2", True),
        (pa.decimal128(9, 2), "INT32", "somebody", True),
        (pa.decimal128(18, 2), "INT64", "somebody", True),
        (pa.decimal128(38, 2), "FIXED_LEN_BYTE_ARRAY", "parquet-mr version 1.9.0", False),
        (pa.decimal128(38, 2), "FIXED_LEN_BYTE_ARRAY", "parquet-mr version 1.10.0", True),
        (pa.decimal128(38, 2), "BYTE_ARRAY", "parquet-cpp version 1.5.0", False),
        (pa.string(), "BYTE_ARRAY", "parquet-mr version 1.8.1", False),
        (pa.binary(), "BYTE_ARRAY", "parquet-mr version 1.8.1", False),
        (pa.binary(), "BYTE_ARRAY", "impala version 4.0.0", False),
    ],
)
def test_order_of_bounds_is_known_of_these_writers_alone(
    kind: pa.DataType, physical: str, writer: str, believed: bool
) -> None:
    """INT96 has no order that the specification defines, whoever wrote it."""
    schema = Schema((Field("x", from_arrow_type(kind), id=1),))
    layout = ForeignLayout(pa.schema([("x", kind)]), schema, ForeignNames(schema))
    metadata: Any = _Metadata(physical, writer)
    (leaf,) = bounded_leaves(metadata, layout, schema, LegacyCalendar())
    assert leaf.vouched == believed


@pytest.mark.parametrize("noted", [True, False])
def test_nulls_of_fields_of_structs_that_arrow_wrote_from_a_dictionary(tmp_path: Path, noted: bool) -> None:
    """Arrow counts no NULL of the struct itself then, whether it notes the type or not: here it says that there are none."""
    values = [None if i % 4 == 3 else {"s": str(i % 9)} for i in range(40)]
    kind = pa.struct([("s", pa.dictionary(pa.int8(), pa.string()))])
    data = pa.table({"k": range(40), "x": pa.array(values, kind)})
    file = write_file(tmp_path / "source" / "a.parquet", data, row_group_size=20, store_schema=noted)
    assert pq.read_metadata(file).row_group(0).column(1).statistics.null_count == 0
    table = adopted(tmp_path)
    assert table.scan("x.s IS NULL", ["k"]).count() == 10
    assert table.scan("x IS NULL", ["k"]).count() == 10
    assert table.scan("x.s IS NOT NULL", ["k"]).count() == 30
    assert table.scan("x.s >= '0'", ["k"]).count() == 30
    assert table.scan("x.s >= '0'", ["k"], limit=35).to_arrow().num_rows == 30
    assert table.verify().ok
