"""However Arrow holds values, plain they are the same values."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from tamis.engine.part_writer.plain_arrays import plain_stream, plain_type, to_plain

TEXT = pa.array(["a", None, "b", "c", "a"], pa.string_view())
CODED = pa.DictionaryArray.from_arrays(
    pa.array([1, 0, None, 1, 2], pa.uint32()), pa.array(["a", "b", None], pa.string_view())
)
RUNS = pa.RunEndEncodedArray.from_arrays(pa.array([2, 3, 5], pa.int32()), pa.array(["x", None, "y"], pa.string_view()))
OFFSETS, MASK = pa.array([0, 2, 2, 2, 5], pa.int32()), pa.array([False, False, True, False])
HELD: dict[str, tuple[pa.Array, pa.DataType]] = {
    "text": (TEXT, pa.string()),
    "binary": (pa.array([b"a", None, b"\xff"], pa.binary_view()), pa.binary()),
    "dictionary": (CODED, pa.string()),
    "runs": (RUNS, pa.string()),
    "list": (pa.ListArray.from_arrays(OFFSETS, TEXT, mask=MASK), pa.list_(pa.string())),
    "large list": (
        pa.LargeListArray.from_arrays(OFFSETS.cast(pa.int64()), CODED, mask=MASK),
        pa.large_list(pa.string()),
    ),
    "list of runs": (pa.ListArray.from_arrays(OFFSETS, RUNS), pa.list_(pa.string())),
    "fixed-size list": (pa.FixedSizeListArray.from_arrays(TEXT[:4], 2), pa.list_(pa.string(), 2)),
    "list view": (
        pa.ListViewArray.from_arrays([3, 0, 1], [2, 2, 0], CODED, mask=pa.array([False, False, True])),
        pa.list_(pa.string()),
    ),
    "list view of numbers": (pa.array([[1], None, [2, 3]], pa.list_view(pa.int64())), pa.list_(pa.int64())),
    "struct": (
        pa.StructArray.from_arrays([TEXT, CODED], names=["t", "c"], mask=pa.array([False, True, False, False, False])),
        pa.struct([("t", pa.string()), ("c", pa.string())]),
    ),
    "map": (
        pa.MapArray.from_arrays(pa.array([0, 1, 3]), pa.array(["k", "l", "m"], pa.string_view()), RUNS[:3]),
        pa.map_(pa.string(), pa.string()),
    ),
}


@pytest.mark.parametrize("name", HELD)
def test_the_same_values(name: str) -> None:
    array, kind = HELD[name]
    assert plain_type(array.type) == kind
    for piece in (array, array[1:], array[1:-1], array[:0]):
        made = to_plain(piece)
        made.validate(full=True)
        assert (made.type, made.to_pylist()) == (kind, piece.to_pylist())


def test_what_is_plain_is_passed_on() -> None:
    whole: Any = pa.table({"a": [1], "b": [["x"]], "c": [{"d": b"y"}]}).to_reader()
    assert plain_stream(whole) is whole
    metadata = {b"PARQUET:field_id": b"7"}
    (field,) = plain_stream(
        pa.table([TEXT], schema=pa.schema([pa.field("a", TEXT.type, metadata=metadata)])).to_reader()
    ).schema
    assert (field.type, field.metadata) == (pa.string(), metadata)
