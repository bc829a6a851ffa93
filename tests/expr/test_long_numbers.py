"""Numbers of thousands of digits in filters and in rows: an error or a value, in linear time."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import tamis
from tamis.errors import InvalidInput

DIGITS = "1" * 5_000


@pytest.mark.parametrize(
    "text",
    [
        f"a = {DIGITS}",
        f"a = {DIGITS}L",
        f"a = {DIGITS}.5",
        f"a = {DIGITS}BD",
        f"CAST(a AS DECIMAL({DIGITS})) = 1",
        f"l[{DIGITS}] = 1",
    ],
)
def test_a_number_that_python_does_not_read_is_an_error(tmp_path: Path, text: str) -> None:
    table = tamis.create(tmp_path / "t", "a BIGINT, l ARRAY<INT>")
    with pytest.raises(InvalidInput) as caught:
        table.scan(text)
    assert caught.value.code == "PARSE_ERROR"


def test_a_long_text_that_is_no_number_takes_no_long_time(tmp_path: Path) -> None:
    """With a pattern that may split digits anywhere, this took hours."""
    table = tamis.create(tmp_path / "t", "id INT, s STRING")
    texts = ["1" * 1_000_000 + "x", "1" * 1_000_000, "12.50", "7."]
    table.append(pa.table({"id": pa.array(range(4), pa.int32()), "s": texts}))
    found = table.scan("try_cast(s AS DECIMAL(10, 2)) > 0", ["id"]).to_arrow()
    assert found["id"].to_pylist() == [2, 3]
