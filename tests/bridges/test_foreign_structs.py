"""Structs, maps and lists of foreign files are read where a file lacks a field, or holds NULL for a list of one length."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import tamis
from tamis.core.types.arrow import from_arrow_schema
from tamis.storage.files.column_conversion import plain_list
from tamis.storage.files.parquet.foreign_columns import ForeignLayout, ForeignNames
from tests.bridges.foreign_files import write_file

COUNTS = pa.map_(pa.string(), pa.int32())
DEEP = pa.map_(pa.string(), pa.struct([("k", pa.int32()), ("m", COUNTS)]))
FIRST: dict[str, tuple[pa.DataType, Any]] = {
    "map": (COUNTS, [("a", 1), ("b", None)]),
    "map of maps": (DEEP, [("a", {"k": 1, "m": [("b", 2)]})]),
    "list of maps": (pa.list_(COUNTS), [[("a", 1)], None, []]),
    "list of lists of maps": (pa.list_(pa.list_(COUNTS)), [[[("a", 1)], None], []]),
    "struct of a map": (pa.struct([("m", COUNTS)]), {"m": [("a", 1)]}),
}


def adopted(tmp_path: Path, *files: pa.Table) -> tamis.Table:
    for at, rows in enumerate(files):
        write_file(tmp_path / "source" / f"{at}.parquet", rows)
    table = tamis.adopt(tmp_path / "source", tmp_path / "table")
    assert isinstance(table, tamis.Table)
    return table


def grown(tmp_path: Path, name: str, *more: pa.Field) -> tamis.Table:
    """Adopt a file whose struct has one field, and another file whose struct has ``x``, too."""
    kind, value = FIRST[name]
    old, new = pa.struct([("f", kind), *more]), pa.struct([("f", kind), *more, ("x", pa.int32())])
    return adopted(
        tmp_path,
        pa.table({"n": [0, 1, 2], "d": pa.array([{"f": value}, None, {"f": None}], old)}),
        pa.table({"n": [3, 4, 5], "d": pa.array([{"f": value, "x": 1}, {"f": None, "x": None}, None], new)}),
    )


def found(table: tamis.Table, row_filter: str) -> list[int]:
    return sorted(table.scan(row_filter, ["n"]).to_arrow()["n"].to_pylist())


@pytest.mark.parametrize("name", FIRST)
def test_filters_on_a_field_that_a_file_lacks_beside_a_map(tmp_path: Path, name: str) -> None:
    table = grown(tmp_path, name)
    value = FIRST[name][1]
    for way in ("files", "index"):
        assert found(table, "d.x = 1") == [3]
        assert found(table, "d IS NULL") == [1, 5]
        assert found(table, "d.x IS NULL") == [0, 1, 2, 4, 5]
        assert found(table, "d IS NOT NULL AND d.x IS NULL") == [0, 2, 4]
        assert table.scan(None, ["d.x"]).to_arrow().num_rows == 6
        rows = table.scan("d.x = 1 OR n < 3").to_arrow().sort_by("n")["d"].to_pylist()
        assert rows == [{"f": value, "x": None}, None, {"f": None, "x": None}, {"f": value, "x": 1}]
        if way == "files":
            table.create_index("by_x", ["d.x"])
    assert table.delete("d.x = 1").rows_deleted == 1
    assert table.delete("d.x IS NULL AND n < 2").rows_deleted == 2
    assert found(table, "n >= 0") == [2, 4, 5]
    table.analyze()
    assert found(table, "d.x IS NULL") == [2, 4, 5]
    assert table.verify().ok


def test_the_cheapest_field_shows_where_a_struct_is_null() -> None:
    """A map is read whole, so that a plain field beside it is read instead."""
    fields = {"m": COUNTS, "y": pa.int32(), "x": pa.int32()}
    schema = from_arrow_schema(pa.schema([("d", pa.struct(list(fields.items())))])).assign_ids(0)
    wanted = next(column_id for column_id, f in schema.by_id.items() if f.name == "x")
    for names, leaves in (("my", [2]), ("ym", [0]), ("m", [0, 1])):
        file = pa.schema([("d", pa.struct([(name, fields[name]) for name in names]))])
        assert ForeignLayout(file, schema, ForeignNames(schema)).select([wanted]) == leaves


REQUIRED = pa.struct([pa.field("x", pa.int32(), nullable=False)])
PAIRS = [[{"x": 1}, {"x": 2}], None, [{"x": 3}, None], None, None, [{"x": 4}, {"x": 5}]]
LISTS: dict[str, tuple[pa.DataType, list[Any]]] = {
    "pairs of structs": (pa.list_(REQUIRED, 2), PAIRS),
    "large lists of structs": (pa.large_list(REQUIRED), [*PAIRS, []]),
    "pairs in a list": (pa.list_(pa.list_(REQUIRED, 2)), [PAIRS, None, [], [None]]),
    "pairs in a large list": (pa.large_list(pa.list_(REQUIRED, 2)), [PAIRS, None, [], [None]]),
    "pairs of pairs": (pa.list_(pa.list_(REQUIRED, 2), 2), [PAIRS[:2], None, PAIRS[2:4], [None, None]]),
    "pairs of large lists": (pa.list_(pa.large_list(REQUIRED), 2), [PAIRS[:2], None, [[], None]]),
    "pairs in a struct": (pa.struct([("l", pa.list_(REQUIRED, 2))]), [{"l": PAIRS[0]}, None, {"l": None}]),
    "pairs of maps": (pa.list_(COUNTS, 2), [[[("a", 1)], None], None, [[], []]]),
    "pairs of texts": (pa.list_(pa.string(), 2), [["a", None], None, ["b", "c"]]),
}


@pytest.mark.parametrize("note", [{}, {"org.apache.spark.version": "2.4.8"}])
@pytest.mark.parametrize("name", LISTS)
def test_lists_whose_structs_have_required_fields(tmp_path: Path, name: str, note: dict[str, str]) -> None:
    """A NULL list has no elements, and a NULL struct has no fields, whose NULL would be one too many."""
    kind, values = LISTS[name]
    table = adopted(
        tmp_path, pa.table({"n": range(len(values)), "v": pa.array(values, kind)}).replace_schema_metadata(note)
    )
    assert table.scan().to_arrow().sort_by("n")["v"].to_pylist() == values
    nulls = [n for n, value in enumerate(values) if value is None]
    assert found(table, "v IS NULL") == nulls
    table.delete("n = 0")
    assert table.scan().to_arrow().sort_by("n")["v"].to_pylist() == values[1:]
    assert table.verify().ok


@pytest.mark.parametrize("name", [*(name for name, (kind, _) in LISTS.items() if not pa.types.is_struct(kind)), "none"])
def test_slices_of_lists_become_plain_lists(name: str) -> None:
    kind, values = LISTS.get(name, (pa.list_(REQUIRED, 0), [[], None, []]))
    array = pa.array(values, kind)
    for start in range(len(values) + 1):
        for stop in range(start, len(values) + 1):
            plain = plain_list(array.slice(start, stop - start))
            plain.validate(full=True)
            assert pa.types.is_list(plain.type)
            assert plain.to_pylist() == values[start:stop]


def test_elements_under_a_null_list_are_left_out() -> None:
    offsets = pa.array([0, 2, 4, 5], pa.int64())
    array = pa.LargeListArray.from_arrays(offsets, pa.array(range(5)), mask=pa.array([False, True, False]))
    assert plain_list(array).to_pylist() == plain_list(array.slice(0, 3)).to_pylist() == [[0, 1], None, [4]]
    assert plain_list(array.slice(1)).to_pylist() == [None, [4]]
