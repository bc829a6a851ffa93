"""Columns of foreign files have the types that Spark reads, or are refused by name before anything is written."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tamis
from tamis.core.types import BINARY, STRING
from tamis.core.types.arrow import from_arrow_schema
from tamis.errors import InvalidInput
from tests.bridges.foreign_files import patched, write_enums, write_file

WORDS = [None, "red", "blue", "é", "", "zz", "red", None, "blue"]


def adopted(tmp_path: Path, **options: Any) -> tamis.Table:
    table = tamis.adopt(tmp_path / "source", tmp_path / "table", **options)
    assert isinstance(table, tamis.Table)
    return table


def enums(tmp_path: Path, name: str = "0", words: list[str | None] = WORDS) -> Path:
    rows = pa.table({"n": range(len(words)), "e": pa.array(words, pa.string())})
    return write_enums(tmp_path / "source" / f"{name}.parquet", rows, "e", row_group_size=3)


def found(table: tamis.Table, row_filter: str) -> list[int]:
    return sorted(table.scan(row_filter, ["n"]).to_arrow()["n"].to_pylist())


@pytest.mark.parametrize("mode", ["reference", "copy"])
def test_enums_are_texts(tmp_path: Path, mode: str) -> None:
    file = enums(tmp_path)
    assert pq.read_schema(file).field("e").type == pa.binary()
    table = adopted(tmp_path, mode=mode)
    assert from_arrow_schema(table.schema).fields[1].type == STRING
    for way in ("files", "index"):
        assert table.scan().to_arrow().sort_by("n")["e"].to_pylist() == WORDS
        assert found(table, "e = 'red'") == found(table, "upper(e) = 'RED'") == [1, 6]
        assert found(table, "length(e) = 1") == found(table, "e = 'é'") == [3]
        assert found(table, "e >= 'zz'") == [3, 5]
        assert found(table, "e IS NULL") == [0, 7]
        if way == "files":
            table.create_index("by_e", ["e"])
    assert table.delete("e = 'blue'").rows_deleted == 2
    assert found(table, "e <> 'red'") == [3, 4, 5]
    assert table.verify().ok


def test_bounds_of_enums_are_those_of_texts(tmp_path: Path) -> None:
    enums(tmp_path, "0", ["a", "b", "c", None, "e", "é"])
    enums(tmp_path, "1", ["x", "y", None])
    table = adopted(tmp_path)
    parts = table.snapshot.parts(None, frozenset([2])).sort_by("2|string|lo").to_pydict()
    assert (parts["2|string|lo"], parts["2|string|hi"]) == (["a", "x"], ["é", "y"])
    assert table.explain("e = 'b'").parts.kept == 1
    assert table.explain("e > 'é'").parts.kept == 0
    scan = table.scan("e = 'b'", ["n"])
    assert scan.to_arrow()["n"].to_pylist() == [1]
    assert scan.report is not None
    assert scan.report.blocks.read == 1
    assert table.verify().ok
    table.analyze()
    assert found(table, "e = 'y'") == found(table, "e = 'b'") == [1]
    assert table.verify().ok


def test_enums_in_structs_lists_and_maps(tmp_path: Path) -> None:
    kind = pa.struct([("e", pa.string())])
    columns = {
        "s": pa.array([{"e": "red"}, None], kind),
        "l": pa.array([[{"e": "red"}, None], []], pa.list_(kind)),
        "m": pa.array([[("k", {"e": "red"})], None], pa.map_(pa.string(), kind)),
    }
    write_enums(tmp_path / "source" / "0.parquet", pa.table(columns), "e", count=3)
    table = adopted(tmp_path)
    assert table.scan().to_arrow().to_pylist() == pa.table(columns).to_pylist()
    assert table.scan("s.e = 'red' AND l[0].e = 'red' AND m['k'].e = 'red'").count() == 1


def test_enums_and_texts_are_one_column_while_binaries_are_another(tmp_path: Path) -> None:
    enums(tmp_path, "0", ["a"])
    write_file(tmp_path / "source" / "1.parquet", pa.table({"n": [1], "e": ["b"]}))
    assert sorted(adopted(tmp_path).scan().to_arrow()["e"].to_pylist()) == ["a", "b"]
    write_file(tmp_path / "source" / "2.parquet", pa.table({"n": [2], "e": [b"c"]}), store_schema=False)
    with pytest.raises(InvalidInput) as caught:
        tamis.adopt(tmp_path / "source", tmp_path / "other")
    assert (caught.value.code, caught.value.name) == ("SCHEMAS_DIFFER", "e")
    texts = tamis.adopt(tmp_path / "source", tmp_path / "other", binary_as_string=True)
    assert isinstance(texts, tamis.Table)
    assert sorted(texts.scan().to_arrow()["e"].to_pylist()) == ["a", "b", "c"]


def test_a_table_that_was_adopted_with_enums_as_binaries_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    enums(tmp_path)
    monkeypatch.setattr("tamis.bridges.sources.parquet_schema.STRING", BINARY)
    table = adopted(tmp_path)
    monkeypatch.undo()
    assert from_arrow_schema(table.schema).fields[1].type == BINARY
    assert found(table, "e = X'726564'") == [1, 6]
    assert table.scan("n = 3").to_arrow()["e"].to_pylist() == ["é".encode()]
    assert table.verify().ok


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
@pytest.mark.parametrize("nested", ["plain", "list", "struct"])
def test_durations_are_refused(tmp_path: Path, unit: str, nested: str) -> None:
    """Arrow notes them; to Spark they are whole numbers."""
    plain = pa.array([1500, None], pa.int64()).cast(pa.duration(unit))
    column, name = {
        "plain": (plain, "d"),
        "list": (pa.ListArray.from_arrays(pa.array([0, 1, 2], pa.int32()), plain), "d.element"),
        "struct": (pa.StructArray.from_arrays([plain], ["x"]), "d.x"),
    }[nested]
    file = write_file(tmp_path / "source" / "0.parquet", pa.table({"n": [1, 2], "d": column}))
    for mode in ("reference", "copy"):
        with pytest.raises(InvalidInput, match="holds durations, which Parquet stores as another type") as caught:
            adopted(tmp_path, mode=mode)
        assert (caught.value.code, caught.value.name) == ("UNSUPPORTED_TYPE", name)
        assert not (tmp_path / "table").exists()
    rows = pa.table({"n": [1, 2], "d": column})
    write_file(file, rows, store_schema=False)  # without Arrow's note, they are the numbers that they are in Spark
    assert adopted(tmp_path).scan("d IS NOT NULL").count() == (1 if nested == "plain" else 2)


def test_durations_of_tables_that_were_adopted_with_them_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = pa.table({"n": [1, 2], "d": pa.array([1500, None], pa.duration("us"))})
    write_file(tmp_path / "source" / "0.parquet", rows)
    monkeypatch.setattr("tamis.bridges.sources.parquet_schema.DayTimeInterval", Decimal)
    table = adopted(tmp_path)
    monkeypatch.undo()
    assert table.scan().to_arrow()["d"].to_pylist() == [dt.timedelta(microseconds=1500), None]
    assert found(table, "d > INTERVAL '0' SECOND") == [1]


def test_decimals_of_more_bytes_than_can_be_read_are_refused(tmp_path: Path) -> None:
    """Arrow reads no binary of more than 16 bytes as a decimal."""
    rows = pa.table({"n": [1], "s": pa.array([{"c": Decimal("1.00")}], pa.struct([("c", pa.decimal128(38, 2))]))})
    file = write_file(tmp_path / "source" / "0.parquet", rows, write_statistics=False)
    assert adopted(tmp_path).scan("s.c = 1").count() == 1
    # the length is the second field of the column's element: 16, then 17, as a varint with its sign last
    patched(file, b"\x15\x0e\x15\x20\x15\x02\x18\x01c", b"\x15\x0e\x15\x22\x15\x02\x18\x01c")
    assert pq.read_metadata(file).schema.column(1).length == 17
    with pytest.raises(InvalidInput, match=r"decimals of 17 bytes.*Write it in 16 bytes at most") as caught:
        tamis.adopt(tmp_path / "source", tmp_path / "other")
    assert (caught.value.code, caught.value.name) == ("UNSUPPORTED_TYPE", "s.c")
    assert not (tmp_path / "other").exists()
