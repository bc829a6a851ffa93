"""Structs without fields, which only Vortex stores: Arrow takes their number from their children."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import tamis

EMPTY = pa.struct([])


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        (EMPTY, [{}, {}, {}]),
        (EMPTY, [{}, None, {}]),
        (pa.list_(EMPTY), [[{}], [], [{}, None, {}]]),
        (pa.map_(pa.string(), EMPTY), [[("a", {})], None, [("a", {}), ("b", None)]]),
        (pa.struct([("f", EMPTY), ("g", pa.int32())]), [{"f": {}, "g": 1}, {"f": None, "g": 2}, None]),
        (pa.struct([("f", EMPTY)]), [{"f": {}}, {"f": {}}, {"f": {}}]),
    ],
)
@pytest.mark.parametrize("beside", [True, False])
def test_structs_without_fields_keep_their_rows(
    kind: pa.DataType, values: list[Any], beside: bool, tmp_path: Path
) -> None:
    data = pa.table({"n": [1, 2, 3], "e": pa.array(values, kind)})
    data = data if beside else data.select(["e"])
    table = tamis.create(tmp_path / "t", data.schema, format="vortex")
    assert table.append(data).rows_inserted == 3
    table.append(data)
    table.compact()
    assert table.scan().to_arrow().to_pylist() == data.to_pylist() * 2
    if beside:
        assert table.scan("n > 1", ["e"]).to_arrow()["e"].to_pylist() == values[1:] * 2
