"""Quotes within texts, as Spark 4.3 reads them."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import tamis

_READ = [
    *(
        ("'it''s'", "it's"),
        ("'a' 'b'", "ab"),
        ('"a""b"', 'a"b'),
        ("'a''''b'", "a''b"),
        ("'it'  's'", "its"),
        ("''", ""),
    ),
    *(("\"it''s\"", "it''s"), ("'a\\'b'", "a'b")),
]
"""A text, and what ``SELECT`` of it gives in Spark; texts side by side are one."""


@pytest.mark.parametrize("form", ["s = {}", "s IN ({}, 'x')"])
def test_a_doubled_quote_is_a_quote(tmp_path: Path, form: str) -> None:
    table = tamis.create(tmp_path / "t", pa.schema([("s", pa.string())]))
    table.append(pa.table({"s": [value for _, value in _READ]}))
    for text, value in _READ:
        found = table.scan(form.format(text)).to_arrow()["s"].to_pylist()
        assert set(found) == {value}, text
