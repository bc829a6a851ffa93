"""How many values pages say that they hold: as files of each kind of page have it, and what does not begin as a page does."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tamis.storage.files.parquet.compact_thrift import thrift_varint
from tamis.storage.files.parquet.page_headers import HEADER_BYTES, values_per_page


def values_of(*heads: bytes) -> list[int]:
    padded = b"".join(head[:HEADER_BYTES].ljust(HEADER_BYTES, b"\0") for head in heads)
    found: list[int] = values_per_page(np.frombuffer(padded, np.uint8).reshape(-1, HEADER_BYTES)).tolist()
    return found


@pytest.mark.parametrize("rows", [1, 63, 64, 8_191, 8_192, 300_000])
@pytest.mark.parametrize("options", [{}, {"data_page_version": "2.0"}, {"write_page_checksum": True}])
def test_the_values_of_a_page(rows: int, options: dict[str, Any]) -> None:
    sink = pa.BufferOutputStream()
    kept = {"use_dictionary": ["t"], "max_rows_per_page": rows, "data_page_size": 2**30}
    table = pa.table({"n": pa.array(range(rows)), "t": ["a", *[None] * (rows - 1)]})
    pq.write_table(table, sink, **kept, **options)
    data = sink.getvalue().to_pybytes()
    group = pq.read_metadata(pa.BufferReader(data)).row_group(0)
    pages = [data[group.column(at).data_page_offset :] for at in (0, 1)]
    dictionary = data[group.column(1).dictionary_page_offset :]
    assert values_of(pages[0], dictionary, pages[1], b"") == [rows, -1, rows, -1]


def number(value: int) -> bytes:
    return b"\x15" + thrift_varint(value << 1)


def test_what_does_not_begin_as_a_page_does() -> None:
    sizes = number(2**31 - 1) * 2
    assert values_of(number(0) + sizes + b"\x2c" + number(7)) == [7]
    assert values_of(number(0) + sizes + number(2**31 - 1) + b"\x1c" + number(2**31 - 1)) == [2**31 - 1]
    assert values_of(number(3) + sizes + b"\x5c" + number(7)) == [7]
    wrong = [
        number(1) + sizes + b"\x2c" + number(7),
        number(0) + sizes + b"\x5c" + number(7),
        number(3) + sizes + b"\x2c" + number(7),
        number(0) + sizes + b"\x1c" + number(7),
        number(0) + sizes + number(1) + b"\x2c" + number(7),
        number(0) + sizes + b"\x2c" + b"\x16\x0e",
        number(0) + sizes + b"\x2c\x15" + b"\xff" * 6,
        b"\x25\x00" + sizes + b"\x2c" + number(7),
        number(0) + b"\x15" + b"\xff" * 20,
        b"\xff" * HEADER_BYTES,
    ]
    assert values_of(*wrong) == [-1] * len(wrong)
