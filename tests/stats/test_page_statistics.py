"""Statistics of pages by one call for all are those that a collector finds page by page."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamis.core.stats.columns import page_statistics
from tamis.core.stats.columns.page_statistics import PageStatistics, collected_pages, pages_of, whole_pages
from tamis.core.types import INTEGER, DataType, Field, Schema
from tests.values import ATOMIC, column, kind_of

WHOLE = [t for t in ATOMIC if t in page_statistics._WHOLE]


@pytest.mark.parametrize("data_type", WHOLE, ids=kind_of)
@given(st.data())
def test_whole_numbers(data_type: DataType, data: st.DataObject) -> None:
    values = data.draw(column(data_type).map(lambda a: a.drop_null()).filter(len))
    field, rows = Field("c", data_type, id=7), data.draw(st.integers(1, 5))
    found, expected = list(whole_pages(field, values, rows)), list(collected_pages(field, values, rows))
    assert [name for name, _ in found] == [name for name, _ in expected]
    for (name, mine), (_, theirs) in zip(found, expected, strict=True):
        assert mine.equals(theirs), name


@pytest.mark.parametrize("data_type", ATOMIC, ids=kind_of)
@given(st.data())
def test_blocks_of_every_type(data_type: DataType, data: st.DataObject) -> None:
    """Blocks with and without NULLs give columns of one type, with a value per page."""
    schema = Schema((Field("c", data_type, id=7),))
    blocks, rows = data.draw(st.lists(column(data_type), min_size=1, max_size=4)), data.draw(st.integers(1, 5))
    pages = PageStatistics(schema, rows)
    for block in blocks:
        pages.update(pa.record_batch([block, pa.nulls(len(block))], names=["c", "beside"]))
    count = sum(map(len, blocks))
    found = pages_of(pages.note(), count)
    if not count:
        assert found is None
        return
    assert found is not None
    assert found["rows"].to_pylist() == [min(rows, len(b) - at) for b in blocks for at in range(0, len(b), rows)]
    assert found["7|nulls"].to_pylist() == [b[at : at + rows].null_count for b in blocks for at in range(0, len(b), rows)]  # fmt: skip


def test_whole_pages_are_used_without_nulls_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page_statistics, "collected_pages", lambda *_: iter([("collected", pa.array([1]))]))
    pages = PageStatistics(Schema((Field("c", INTEGER, id=7),)), 2)
    pages.update(pa.record_batch([pa.array([1, 2], pa.int32())], names=["c"]))
    assert set(pages._figures) == {"7|integer|lo", "7|integer|hi", "7|exact", "7|nulls"}
    pages.update(pa.record_batch([pa.array([1, None], pa.int32())], names=["c"]))
    assert "collected" in pages._figures
