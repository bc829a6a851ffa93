"""A row on which the filter fails: the error names the conjunct, and what helps."""

from pathlib import Path

import pyarrow as pa
import pytest

import tamis
from tamis.errors import InvalidInput

ROWS = pa.table({"n": pa.array([1, 0, 7], pa.int64()), "t": ["1", "x", "3"]})


@pytest.mark.parametrize("verb", ["scan", "overwrite"])
@pytest.mark.parametrize(
    ("text", "name", "tries"),
    [
        ("n >= 0 AND 10 / n > 1", "10.0D / cast(n", ["try_divide"]),
        ("CAST(t AS INT) > 0 AND 10 / n > 1", "CAST(t AS INT", ["try_cast"]),
        ("abs(n - 9223372036854775807 - 2) > 1", "abs", ["try_subtract"]),
        ("-(n * 0 - 9223372036854775807 - 1) > 0", "-", ["try_multiply", "try_subtract"]),
        ("date_add(DATE'2026-01-01', CAST(n AS INT) + 2147483647) IS NULL", "date_add", ["try_add"]),
        ("negative(try_subtract(-9223372036854775807, if(n > 5, 1, 2))) > 0", "try_subtract", []),
    ],
)
def test_the_conjunct_is_named(tmp_path: Path, verb: str, text: str, name: str, tries: list[str]) -> None:
    table = tamis.create(tmp_path)
    table.append(ROWS)
    with pytest.raises(InvalidInput) as caught:
        table.overwrite(ROWS, text) if verb == "overwrite" else table.scan(text).to_arrow()
    error = caught.value
    assert error.code == "FILTER_FAILED"
    assert name.lower() in error.name.lower()
    assert " AND " not in error.name
    assert [
        f"try_{x}" for x in ("add", "cast", "divide", "mod", "multiply", "subtract") if f"try_{x}" in error.remedy
    ] == tries
    assert "condition before it" in error.remedy
    tamis.open(tmp_path).scan(error.name)  # it is SQL
