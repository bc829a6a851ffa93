"""Spark copies arrays of numbers without asking which elements are NULL: no dictionary may stand in the way."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tamis
from tamis.core.types import INTEGER, LONG, STRING, Array, DataType, Decimal, Field, Map, Struct
from tamis.spark.scan.file_checks import has_copied_elements
from tamis.storage.files.parquet import encoding
from tamis.storage.files.parquet.copied_arrays import copied_leaves, copies_safely

ROWS = 5_000
EMPTY = pa.array([[None]] * ROWS, pa.list_(pa.int32()))
STALE = pa.array(
    [[i * 7919 % 2000] for i in range(ROWS)] + [[None if i % 2 else 7] for i in range(ROWS)], pa.list_(pa.int32())
)
"""NULL elements in a block whose dictionary is smaller than that of the block before."""

ASKED = "sum(aggregate(a, 0, (x, y) -> x + coalesce(y, 0))), sum(size(filter(a, x -> x > 5))), sum(size(transform(a, x -> x)))"


def made(lake: Any, data: pa.Array) -> pq.FileMetaData:
    """Makes ``lake.db.t`` with one part of these arrays, and plain Spark's view ``plain`` of the same; the part's footer."""
    folder = lake.folder / "db" / "t"
    table = tamis.create(folder, pa.schema([("a", data.type)]), properties={"tamis.read.lazy": "native"})
    table.append(pa.table({"a": data}))
    (part,) = (folder / "data").iterdir()
    pq.write_table(pa.table({"a": data}), folder.parent / "plain.parquet", use_dictionary=False)
    lake.spark.read.parquet(str(folder.parent / "plain.parquet")).createOrReplaceTempView("plain")
    return pq.read_metadata(part)


@pytest.mark.parametrize("data", [EMPTY, STALE], ids=["empty", "stale"])
def test_elements_have_no_dictionary(lake: Any, data: pa.Array) -> None:
    footer = made(lake, data)
    assert not any(footer.row_group(g).column(0).has_dictionary_page for g in range(footer.num_row_groups))
    assert lake.rows(f"SELECT {ASKED} FROM lake.db.t") == lake.rows(f"SELECT {ASKED} FROM plain")
    assert tamis.reports(1)[0].reader == "native"


@pytest.mark.parametrize("data", [EMPTY, STALE], ids=["empty", "stale"])
def test_parts_of_earlier_releases_are_read_by_ours(lake: Any, data: pa.Array, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(encoding, "copied_leaves", lambda _: ())
    footer = made(lake, data)
    assert footer.row_group(0).column(0).has_dictionary_page
    assert lake.rows(f"SELECT {ASKED} FROM lake.db.t") == lake.rows(f"SELECT {ASKED} FROM plain")
    assert tamis.reports(1)[0].reader != "native"


def test_a_dictionary_is_no_obstacle_without_null_elements(lake: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(encoding, "copied_leaves", lambda _: ())
    assert (
        made(lake, pa.array([[i % 3, 1] for i in range(ROWS)], pa.list_(pa.int32())))
        .row_group(0)
        .column(0)
        .has_dictionary_page
    )
    assert lake.rows(f"SELECT {ASKED} FROM lake.db.t") == lake.rows(f"SELECT {ASKED} FROM plain")
    assert tamis.reports(1)[0].reader == "native"


INTS = pa.list_(pa.int64())


@pytest.mark.parametrize(
    ("kind", "leaves"),
    [
        (INTS, ["a.list.element"]),
        (pa.list_(INTS), ["a.list.element.list.element"]),
        (pa.list_(pa.string()), []),
        (pa.list_(pa.field("element", pa.int64(), nullable=False)), []),
        (pa.list_(pa.struct([("x", pa.int32())])), []),
        (pa.list_(pa.struct([("x", INTS)])), ["a.list.element.x.list.element"]),
        (pa.struct([("x", pa.int32()), ("y", pa.list_(pa.date32()))]), ["a.y.list.element"]),
        (pa.map_(pa.int32(), pa.float64()), ["a.key_value.value"]),
        (pa.int64(), []),
    ],
    ids=str,
)
def test_which_leaves_are_copied(kind: pa.DataType, leaves: list[str], tmp_path: Path) -> None:
    schema = pa.schema([pa.field("a", kind, metadata={"PARQUET:field_id": "3"})])
    assert list(copied_leaves(schema)) == leaves
    rows: list[Any] = [None, None] if not pa.types.is_nested(kind) else [None, {} if pa.types.is_struct(kind) else []]
    pq.write_table(pa.table({"a": pa.array(rows, kind)}).cast(schema), tmp_path / "f.parquet")
    footer = pq.read_metadata(tmp_path / "f.parquet")
    assert copies_safely(footer, frozenset({3})) is not bool(leaves)
    assert copies_safely(footer, frozenset({4}))


@pytest.mark.parametrize(
    ("kind", "found"),
    [
        (Array(Field("element", INTEGER)), True),
        (Array(Field("element", INTEGER, nullable=False)), False),
        (Array(Field("element", STRING)), False),
        (Array(Field("element", Decimal(9, 2))), True),
        (Struct((Field("x", Map(Field("key", STRING, nullable=False), Field("value", LONG))),)), True),
        (Struct((Field("x", LONG),)), False),
    ],
)
def test_which_types_are_looked_into(kind: DataType, found: bool) -> None:
    assert has_copied_elements(kind) is found
