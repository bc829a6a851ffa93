"""Files that are built of pages: what their footers say."""

import io

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tamis.storage.files.parquet import excerpt_file as module
from tamis.storage.files.parquet.compact_thrift import NUMBER, wide_numbers
from tamis.storage.files.parquet.excerpt_file import (
    ExcerptColumn,
    _remembered_footer,
    excerpt_file,
    open_excerpt,
    schema_element,
)

COLUMNS = {"number": ("INT64", pa.int64()), "text": ("BYTE_ARRAY", pa.string())}


def excerpt_column(kind: str) -> ExcerptColumn:
    physical, arrow = COLUMNS[kind]
    element = schema_element(arrow, True, physical, 0)
    assert element is not None
    return ExcerptColumn(element, physical, "UNCOMPRESSED")


Group = tuple[int, list[tuple[bytes, list[bytes]]]]


def written_group(rows: pa.Table, dictionaries: list[bool]) -> Group:
    """The pages of a file of these rows, each column's cut in two pieces."""
    sink = io.BytesIO()
    named = [name for name, flag in zip(rows.column_names, dictionaries, strict=True) if flag]
    pq.write_table(rows, sink, use_dictionary=named, compression="NONE", write_page_checksum=True)
    data, group = sink.getvalue(), pq.read_metadata(sink).row_group(0)
    found = []
    for at, flag in enumerate(dictionaries):
        chunk = group.column(at)
        assert chunk.has_dictionary_page is flag
        start = chunk.dictionary_page_offset if flag else chunk.data_page_offset
        pages = data[chunk.data_page_offset : start + chunk.total_compressed_size]
        found.append((data[start : chunk.data_page_offset], [pages[:10], pages[10:]]))
    return len(rows), found


@pytest.mark.parametrize("remembered", [True, False])
def test_chunks_with_and_without_a_dictionary(remembered: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Groups of other rows and dictionaries; a second file of the same shape has other numbers in the same footer."""
    if not remembered:
        monkeypatch.setattr(module, "_REMEMBERED_CHUNKS", 0)
    columns = [excerpt_column("number"), excerpt_column("text")]
    flags = ([True, False], [False, True], [True, True], [False, False])
    before = _remembered_footer.cache_info()
    for lengths in ([100, 37, 1, 64], [3, 200, 5, 1]):
        tables = [
            pa.table({"number": pa.array(range(at, at + n)), "text": [str(at * n % 7)] * n})
            for at, n in enumerate(lengths)
        ]
        groups = [written_group(table, found) for table, found in zip(tables, flags, strict=True)]
        file = open_excerpt(excerpt_file(columns, groups))
        said = [file.metadata.row_group(at) for at in range(4)]
        assert file.metadata.num_rows == sum(lengths)
        assert [group.num_rows for group in said] == lengths
        assert [group.column(0).num_values for group in said] == lengths
        assert [[group.column(at).has_dictionary_page for at in range(2)] for group in said] == list(flags)
        for at, table in enumerate(tables):
            assert file.read_row_group(at).rename_columns(table.column_names).equals(table)
    after = _remembered_footer.cache_info()
    assert (after.hits - before.hits >= 1, after.misses - before.misses <= 1) == (remembered, True)


def test_names_are_positions() -> None:
    file = open_excerpt(excerpt_file([excerpt_column("number")] * 20, [(0, [(b"", [])] * 20)]))
    assert file.schema_arrow.names == [str(at) for at in range(20)]
    assert file.schema_arrow.field(19).type == pa.int64()


def test_numbers_have_one_width() -> None:
    values = np.array([0, 1, 63, 64, 2**31, 2**34 - 1])
    encoded = wide_numbers(values)
    assert encoded.shape == (len(values), len(NUMBER))
    assert bytes(encoded[0]) == NUMBER
    decoded = ((encoded.astype(np.int64) & 0x7F) << (7 * np.arange(len(NUMBER)))).sum(axis=1) >> 1
    assert decoded.tolist() == values.tolist()
    assert (encoded[:, :-1] & 0x80).all()
    assert not (encoded[:, -1] & 0x80).any()
    for wrong in (2**34, -1):
        with pytest.raises(ValueError, match=f"{wrong} does not fit into 5 bytes"):
            wide_numbers(np.array([5, wrong]))
