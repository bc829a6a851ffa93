"""Adopted CHAR columns have padded values, as Spark reads them, whether their writer padded or not."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import tamis
from tamis.engine.part_reader import read_columns
from tests.bridges import delta_logs as logs

VALUES = ["ab", "abc", "ab   ", None, "ab\x01", "abcde", ""]
PADDED = [None if value is None else value.ljust(5) for value in VALUES]
DECLARED = "__CHAR_VARCHAR_TYPE_STRING"
FILTERS = {
    "c = 'ab'": lambda c: c == "ab   ",
    "c IN ('ab', 'abc')": lambda c: c in {"ab   ", "abc  "},
    "c > 'ab'": lambda c: c is not None and c > "ab   ",
    "c >= 'ab '": lambda c: c is not None and c >= "ab   ",
    "c < 'ab'": lambda c: c is not None and c < "ab   ",
    "c LIKE 'ab  %'": lambda c: c is not None and c.startswith("ab  "),
    "length(c) = 5": lambda c: c is not None,
    "s.c = 'q  '": lambda c: c is not None,
    "c = 'ab' AND p = 'k'": lambda c: c == "ab   ",
    "p = 'k   '": lambda c: True,
    "c IS NULL": lambda c: c is None,
}


def fields() -> pa.Schema:
    def text(name: str, kind: pa.DataType, declared: str) -> pa.Field:
        return pa.field(name, kind, metadata={DECLARED: declared})

    return pa.schema(
        [
            pa.field("id", pa.int32()),
            text("c", pa.string(), "char(5)"),
            text("s", pa.struct([("c", pa.string()), ("n", pa.int32())]), "struct<c:char(3),n:int>"),
            text("p", pa.string(), "char(4)"),
        ]
    )


def rows(values: list[str | None], start: int = 0) -> pa.Table:
    structs = [None if v is None else {"c": "q", "n": 1} for v in values]
    numbers = list(range(start, start + len(values)))
    return pa.table({"id": numbers, "c": values, "s": structs, "p": ["k"] * len(values)}, schema=fields())


@pytest.fixture(params=["reference", "copy", "one file each"])
def adopted(request: pytest.FixtureRequest, tmp_path: Path) -> tamis.Table:
    source = tmp_path / "source"
    pieces = [VALUES] if request.param != "one file each" else [[value] for value in VALUES]
    for at, piece in enumerate(pieces):
        deltalake.write_deltalake(source, rows(piece, at), mode="append", partition_by=["p"])
    table = tamis.adopt(source, tmp_path / "t", mode="copy" if request.param == "copy" else "reference")
    assert isinstance(table, tamis.Table)
    return table


def matches(table: tamis.Table, text: str) -> list[int]:
    return sorted(table.scan(text, ["id"]).to_arrow()["id"].to_pylist())


def check_filters(table: tamis.Table) -> None:
    for text, holds in FILTERS.items():
        assert matches(table, text) == [i for i, c in enumerate(PADDED) if holds(c)], text


def test_values_are_padded_and_filters_see_them_so(adopted: tamis.Table) -> None:
    found = adopted.scan().to_arrow().sort_by("id")
    assert found["c"].to_pylist() == PADDED
    assert set(found["p"].to_pylist()) == {"k   "}
    assert set(pc.struct_field(found["s"].combine_chunks(), "c").to_pylist()) == {"q  ", None}
    check_filters(adopted)


def test_an_index_and_later_statistics_hold_padded_values(adopted: tamis.Table) -> None:
    adopted.create_index("by_c", ["c"])
    check_filters(adopted)
    adopted.analyze()
    check_filters(adopted)
    adopted.compact(adopted=True)
    check_filters(adopted)


def test_value_sets_from_before_readers_padded_are_not_trusted(tmp_path: Path) -> None:
    deltalake.write_deltalake(tmp_path / "source", rows(["ab", "mm", "zz"] * 50))
    table = tamis.adopt(tmp_path / "source", tmp_path / "t")
    assert isinstance(table, tamis.Table)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(read_columns, "padded_array", lambda array, _: array)
        table.analyze()
    assert len(matches(table, "c = 'mm'")) == 50


def test_rows_are_changed_by_padded_values(adopted: tamis.Table) -> None:
    row = rows(["abc"], 100)
    adopted.upsert(row.set_column(0, "id", pa.array([100], pa.int32())), on=["c"])
    assert matches(adopted, "c = 'abc'") == [100]
    adopted.delete("c = 'ab'")
    assert matches(adopted, "c LIKE 'ab%'") == [4, 5, 100]


def test_bounds_still_prune(tmp_path: Path) -> None:
    for at, value in enumerate(("ab", "cd", "ef")):
        deltalake.write_deltalake(tmp_path / "source", rows([value], at), mode="append")
    table = tamis.adopt(tmp_path / "source", tmp_path / "t")
    assert table.scan("c = 'cd'").plan().report.parts["kept"] == 1
    assert table.scan("c > 'cd'").plan().report.parts["kept"] == 1
    assert table.scan("s.c = 'x  '").plan().report.parts["kept"] == 0


def spark_note(*columns: tuple[str, str]) -> dict[bytes, bytes]:
    held = [{"name": n, "type": "string", "nullable": True, "metadata": {DECLARED: kind}} for n, kind in columns]
    return {b"org.apache.spark.sql.parquet.row.metadata": json.dumps({"type": "struct", "fields": held}).encode()}


def test_the_footers_of_spark_declare_char(tmp_path: Path) -> None:
    """Where all files with the column agree; a file that does not declare it has a text of any length."""
    source = tmp_path / "source"
    source.mkdir()
    both = {"c": ["ab"], "d": ["x"], "e": ["y"]}
    one = pa.table(both).replace_schema_metadata(spark_note(("c", "char(5)"), ("d", "char(3)"), ("e", "varchar(9)")))
    two = pa.table(both).replace_schema_metadata(spark_note(("c", "char(5)"), ("d", "char(4)")))
    pq.write_table(one, source / "1.parquet")
    pq.write_table(two, source / "2.parquet")
    pq.write_table(pa.table({"f": [1]}), source / "3.parquet")
    table = tamis.adopt(source, tmp_path / "t")
    assert [table.schema.field(n).metadata.get(b"tamis:type") for n in "cde"] == [b"char(5)", None, None]
    assert table.scan("c = 'ab'", ["c", "d"]).to_arrow().to_pylist() == [{"c": "ab   ", "d": "x"}] * 2
    for damaged in (b"{", b"[]", b'{"fields": 1}', b'{"fields": [{"name": "c", "metadata": {"x": 1}}]}'):
        note = {b"org.apache.spark.sql.parquet.row.metadata": damaged}
        pq.write_table(pa.table({"c": ["ab"]}).replace_schema_metadata(note), source / "1.parquet")
        again = tamis.adopt(source, tmp_path / damaged.hex())
        assert again.scan("c = 'ab'").to_arrow().num_rows == 2


def text_column(declared: str | None) -> dict[str, Any]:
    return logs.field("c", "string", **({} if declared is None else {DECLARED: declared}))


def changed(tmp_path: Path, before: str | None, after: str | None) -> tamis.Table:
    """A table that follows a source whose column got another type, not yet synchronized."""
    source = tmp_path / "source"
    old = logs.add(source, "1.parquet", pa.table({"c": ["ab"]}))
    logs.create(source, [text_column(before)], [old])
    table = tamis.adopt(source, tmp_path / "t", follow=True)
    new = logs.add(source, "2.parquet", pa.table({"c": ["ab"]}))
    logs.commit(source, 1, [{"metaData": logs.metadata([text_column(after)])}, new])
    assert isinstance(table, tamis.Table)
    return table


@pytest.mark.parametrize(
    ("before", "after"), [("varchar(3)", None), ("varchar(3)", "varchar(5)"), (None, "varchar(5)")]
)
def test_a_column_stays_itself_if_its_length_changes(tmp_path: Path, before: str | None, after: str | None) -> None:
    table = changed(tmp_path, before, after)
    table.sync()
    with pytest.raises(tamis.errors.SchemaFenced):
        table.scan().to_arrow()
    table = tamis.open(tmp_path / "t")
    assert table.scan().to_arrow()["c"].to_pylist() == ["ab", "ab"]
    assert table.scan("c = 'ab'").to_arrow().num_rows == 2
    assert table.verify().ok


@pytest.mark.parametrize("skip_history", [False, True])
@pytest.mark.parametrize(("before", "after"), [(None, "char(5)"), ("char(3)", "varchar(5)"), ("char(3)", "char(5)")])
def test_a_column_that_is_padded_otherwise_ends_the_following(
    tmp_path: Path, before: str | None, after: str | None, skip_history: bool
) -> None:
    """Indexes and analyzed statistics hold the older values as they were."""
    table = changed(tmp_path, before, after)
    with pytest.raises(
        tamis.errors.InvalidInput, match=r"SOURCE_LAYOUT.*'c' of the source .* changed from .* to .*char\(5\)"
    ):
        table.sync(skip_history=skip_history)
    assert table.scan().to_arrow().num_rows == 1


LONG = ["ab", "abcdef", "abc", "zz    "]
"""Values of a CHAR(3) and a VARCHAR(3), some of which another writer let be longer."""
OF_LONG = {
    "c = 'abcdef'": [1],
    "c = 'abcd'": [1],  # Spark pads to four characters, and cuts what is longer
    "c = 'zz   '": [3],
    "c = 'zz'": [],
    "c IN ('abcdef', 'q')": [1],
    "c = 'ab    '": [0],
    "v = 'abcdef'": [1],
    "v = 'zz    '": [3],
}
"""Filters, and the rows that Spark gives for them."""


@pytest.mark.parametrize("statistics", ["source's", "own"])
def test_values_longer_than_their_column_are_found(tmp_path: Path, statistics: str) -> None:
    kinds = [pa.field("id", pa.int32())]
    kinds += [pa.field(n, pa.string(), metadata={DECLARED: t}) for n, t in (("c", "char(3)"), ("v", "varchar(3)"))]
    for at, value in enumerate(LONG):
        row = pa.table({"id": pa.array([at], pa.int32()), "c": [value], "v": [value]}, schema=pa.schema(kinds))
        deltalake.write_deltalake(tmp_path / "source", row, mode="append")
    table = tamis.adopt(tmp_path / "source", tmp_path / "t")
    assert isinstance(table, tamis.Table)
    if statistics == "own":
        table.create_index("by_c", ["c"])
        table.create_index("by_v", ["v"])
        table.analyze()
    for text, ids in OF_LONG.items():
        assert matches(table, text) == ids, text
    for name, key, ids in (("c", "abcdef", [1]), ("c", "ab", [0]), ("v", "abcdef", [1]), ("v", "zz    ", [3])):
        assert table.scan(keys={name: [key]}).to_arrow()["id"].to_pylist() == ids, (name, key)
    table.delete("c = 'abcdef'")
    assert table.scan().count() == 3
