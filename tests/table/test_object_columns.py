"""Columns of Python objects, which Polars hands over as their addresses, are refused."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pyarrow as pa
import pytest

import tamis
from tamis.errors import InvalidInput


def objects() -> pl.DataFrame:
    return pl.DataFrame({"id": [1, 2], "o": pl.Series([object(), None], dtype=pl.Object)})


@pytest.mark.parametrize("verb", ["append", "overwrite", "upsert"])
def test_a_column_of_objects_is_refused(tmp_path: Path, verb: str) -> None:
    table = tamis.create(tmp_path / "t", pa.schema([("id", pa.int64()), ("o", pa.binary())]))
    with pytest.raises(InvalidInput, match="'o' holds Python objects") as caught:
        getattr(table, verb)(objects(), *(["id"] if verb == "upsert" else []))
    assert caught.value.code == "BAD_DATA"
    assert table.refresh().version == 0


def test_they_bring_no_schema(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="BAD_"):
        tamis.create(tmp_path / "t", objects())
    table = tamis.create(tmp_path / "u")
    with pytest.raises(InvalidInput, match="'o' holds Python objects"):
        table.append(objects())
    table.append(objects().drop("o"))
    assert table.scan().to_arrow().to_pydict() == {"id": [1, 2]}
