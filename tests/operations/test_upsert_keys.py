"""Keys of an upsert are compared as the table stores them."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import tamis
from tamis.errors import InvalidInput, SchemaMismatch

DAY, MORNING, EVENING = dt.date(2026, 1, 1), dt.datetime(2026, 1, 1, 10), dt.datetime(2026, 1, 1, 20)
CONVERTED: dict[str, tuple[pa.DataType, list[Any], Any]] = {
    "double as float": (pa.float32(), [0.1, 0.1 + 1e-12], 0.10000000149011612),
    "bigint as float": (pa.float32(), [16_777_217, 16_777_216], 16_777_216.0),
    "decimal of more places": (pa.decimal128(8, 2), [Decimal("3.001"), Decimal("3.002")], Decimal("3.00")),
    "double as decimal": (pa.decimal128(8, 2), [1.5, 1.5001], Decimal("1.50")),
    "double as bigint": (pa.int64(), [1.5, 1.25], 1),
    "instant as date": (pa.date32(), [MORNING, EVENING], DAY),
}
"""Type of the column, two values that it stores alike, and what it stores."""


@pytest.mark.push_cases(2)
@pytest.mark.parametrize("case", CONVERTED)
def test_keys_that_are_stored_alike_are_one_key(tmp_path: Path, case: str) -> None:
    column, (first, second), stored = CONVERTED[case]
    table = tamis.create(tmp_path / "t", pa.schema({"k": column, "v": pa.string()}))
    for key, value in ((first, "a"), (second, "b"), (first, "c")):
        result = table.upsert(pa.table({"k": [key], "v": [value]}), "k")
    assert (result.rows_updated, result.rows_inserted) == (1, 0)
    assert table.scan().to_arrow().to_pylist() == [{"k": stored, "v": "c"}]
    with pytest.raises(InvalidInput) as caught:
        table.upsert(pa.table({"k": [first, second], "v": ["d", "e"]}), "k")
    assert caught.value.code == "DUPLICATE_KEYS"
    assert table.scan().count() == 1


TEXTS: dict[str, tuple[Any, str, str]] = {
    "bigint": (1, "1", "01"),
    "double": (1.0, "1.0", "1"),
    "decimal": (Decimal("1.50"), "1.50", "1.5"),
    "date": (DAY, "2026-01-01", "2026-1-1"),
    "boolean": (True, "true", "TRUE"),
}
"""A key of another type, the text that it is stored as, and another text of which Spark's cast makes that key."""


@pytest.mark.parametrize("case", TEXTS)
@pytest.mark.parametrize("column", ["STRING", "VARCHAR(12)", "CHAR(12)"])
def test_keys_of_other_types_match_the_text_that_they_are_stored_as(tmp_path: Path, column: str, case: str) -> None:
    key, stored, other = TEXTS[case]
    table = tamis.create(tmp_path / "t", f"k {column}, v STRING")
    table.append(pa.table({"k": [other, "no such day"], "v": ["kept", "kept"]}))
    for value, updated in (("a", 0), ("b", 1)):
        assert table.upsert(pa.table({"k": [key], "v": [value]}), "k").rows_updated == updated
    rows = sorted((row["k"].rstrip(), row["v"]) for row in table.to_arrow().to_pylist())
    assert rows == sorted([(other, "kept"), ("no such day", "kept"), (stored, "b")])


def test_text_keys_are_cut_to_the_columns_length(tmp_path: Path) -> None:
    """Blanks beyond the length are not stored, those within it are; what is really longer is no other key."""
    table = tamis.create(tmp_path / "t", "k VARCHAR(3), v STRING")
    for key in ("ab", "ab ", "ab       ", "abc  ", "äöü   ", "äöü"):
        table.upsert(pa.table({"k": [key], "v": [key]}), "k")
    rows = [("ab", "ab"), ("ab ", "ab       "), ("abc", "abc  "), ("äöü", "äöü")]
    assert sorted(tuple(row.values()) for row in table.to_arrow().to_pylist()) == rows
    for keys, code in ((["zz    ", "zz   "], "DUPLICATE_KEYS"), (["abcd", "abce"], "TOO_LONG")):
        with pytest.raises(InvalidInput) as caught:
            table.upsert(pa.table({"k": keys, "v": keys}), "k")
        assert caught.value.code == code
    assert table.upsert(pa.table({"k": pa.array([None, None], pa.string()), "v": ["n", "n"]}), "k").rows_inserted == 2


@pytest.mark.parametrize("kind", ["VARCHAR(8)", "STRING"])
def test_text_keys_skip_parts(tmp_path: Path, kind: str) -> None:
    table = tamis.create(tmp_path / "t", f"k {kind}, v INT")
    for first in "abc":
        table.append(pa.table({"k": [f"{first}{n}" for n in range(5)], "v": pa.array(range(5), pa.int32())}))
    result = table.upsert(pa.table({"k": ["b1", "b2"], "v": pa.array([8, 9], pa.int32())}), "k")
    assert (result.rows_updated, result.rows_inserted, result.parts_read) == (2, 0, 1)


def test_times_finer_than_a_microsecond_are_refused_by_name(tmp_path: Path) -> None:
    table = tamis.create(tmp_path / "t", pa.schema({"k": pa.int64(), "at": pa.timestamp("us", "UTC")}))
    fine, coarse = (pa.array([n], pa.timestamp("ns", "UTC")) for n in (1_001, 1_000))
    with pytest.raises(SchemaMismatch) as caught:
        table.upsert(pa.table({"k": [1], "at": fine}), "k")
    assert (caught.value.code, caught.value.name) == ("VALUE_MISMATCH", "at")
    merge = table.merge(pa.table({"k": [1], "at": fine}), "target.k = source.k")
    assert merge.when_not_matched_insert({"k": "source.k"}).execute().rows_inserted == 1, (
        "what is not named may be finer"
    )
    assert table.upsert(pa.table({"k": [1], "at": coarse}), "k").rows_updated == 1


@pytest.mark.parametrize("form", ["some", "all"])
def test_columns_that_begin_like_a_side_of_a_merge_are_their_own(tmp_path: Path, form: str) -> None:
    """pandas' ``json_normalize`` makes such names; ``target.`` before others is left out."""
    names = {"id": pa.int64(), "target.v": pa.int64(), "v": pa.int64()}
    table = tamis.create(tmp_path / "t", pa.schema(names))
    table.append(pa.table({"id": [7], "target.v": [1], "v": [2]}))
    if form == "some":
        table.upsert(pa.table({"id": [7, 8], "target.v": [100, 200]}), on="id")
        expected = [{"id": 7, "target.v": 100, "v": 2}, {"id": 8, "target.v": 200, "v": None}]
    else:
        both = pa.table({"id": [7, 8], "target.v": [100, 200], "v": [3, 4]})
        table.upsert(both, on="id")
        expected = [{"id": 7, "target.v": 100, "v": 3}, {"id": 8, "target.v": 200, "v": 4}]
    assert sorted(table.scan().to_arrow().to_pylist(), key=lambda row: row["id"]) == expected
