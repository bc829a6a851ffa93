"""Chunks whose dictionary became too large are read right by pages: the library ends a page early there.

Earlier releases noted the pages of such chunks. If the last page is not full, their number is the expected one, and all
pages behind the short one hold other rows than their place says.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tamis
from tamis.core.types import LONG, STRING, Field, Schema
from tamis.storage.files import PAGE_ROWS, PartRef, open_part
from tamis.storage.files.parquet.offset_index import PageLocations
from tamis.storage.files.parquet.page_offsets import decode_page_note
from tamis.storage.files.parquet.parquet_part import ParquetPart
from tamis.storage.object_store.store import open_store
from tests.files.parts import write_part

STORE = open_store("memory://large-dictionaries")
SCHEMA = Schema((Field("n", LONG, id=1), Field("s", STRING, id=2)))
PAGE = PAGE_ROWS // 2 if PAGE_ROWS >= 4096 else PAGE_ROWS
EARLY = 1024
"""Rows of the library's own batches, after which it looks at the dictionary."""
SIZE = 2 * PAGE + EARLY // 2


def texts(size: int) -> list[str]:
    """Half of them distinct, and of more than a megabyte within the first batch."""
    return [f"{at % (size // 2):06d}" + "x" * 1_100 for at in range(size)]


def block(size: int) -> pa.RecordBatch:
    return pa.record_batch({"1": pa.array(range(size), pa.int64()), "2": texts(size)})


@pytest.fixture(params=["as now", "with early pages", "of earlier releases"])
def ref(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> PartRef:
    """A part with a full and a partial block."""
    made = pq.ParquetWriter
    if request.param != "as now":
        early = {"write_batch_size": EARLY}
        monkeypatch.setattr(pq, "ParquetWriter", lambda *a, **k: made(*a, **{**k, **early}))
    if request.param == "of earlier releases":
        monkeypatch.setattr(PageLocations, "even_starts", lambda self, _: self.starts)
    name = request.param.replace(" ", "-")
    return write_part(STORE, SCHEMA, [block(SIZE), block(4 * PAGE)], name, page_rows=PAGE)


def opened(ref: PartRef) -> ParquetPart:
    part = open_part(STORE, ref, SCHEMA)
    assert isinstance(part, ParquetPart)
    return part


def test_single_rows_are_those_of_whole_chunks(ref: PartRef, request: pytest.FixtureRequest) -> None:
    expected = [*texts(SIZE), *texts(4 * PAGE)]
    for row in range(0, len(expected), 97):
        found = [p.batch.column(0).to_pylist() for p in opened(ref).read([2], [0, 1], np.array([row]))]
        assert found == [[expected[row]]], row


def test_pages_of_the_chunk_are_used_where_they_are_even(ref: PartRef, request: pytest.FixtureRequest) -> None:
    """The pages of a partial chunk with a large dictionary are not: releases before may have written it."""
    how = request.node.callspec.params["ref"]
    part = opened(ref)
    used = [part._pages.chunk(number, 1).first >= 0 for number in (0, 1)]
    assert used == [False, how == "as now"]
    _, starts = decode_page_note(part._footer)
    # the numbers alone look right in the file of an earlier release: the first chunk has as many pages as it should
    assert (len(starts) == 3 + 3 + 5 + 4) == (how == "of earlier releases")


def test_rows_of_one_load_are_found_by_key_and_by_index(tmp_path: Any) -> None:
    """E-mail addresses, of which a block has more than a megabyte."""
    rows = 50_000
    mail = [f"{(at * 7919) % 24_001:06d}-some.name.of.this.length@example-company.org" for at in range(rows)]
    table = tamis.create(tmp_path / "t", pa.schema([("id", pa.int64()), ("mail", pa.string())]))
    table.append(pa.table({"id": range(rows), "mail": mail}))
    for key in range(0, rows, 1_999):
        assert table.scan(f"id = {key}").to_arrow()["mail"].to_pylist() == [mail[key]], key
    table.create_index("by_mail", ["mail"])
    for key in range(0, rows, 4_999):
        found = table.scan(f"mail = '{mail[key]}'").to_arrow()["id"].to_pylist()
        assert sorted(found) == [at for at in range(rows) if mail[at] == mail[key]], key
    table.delete("id < 36000")
    assert table.scan().to_arrow()["mail"].to_pylist() == mail[36_000:]
