"""Files that are built of pages: what their footers say."""

import io

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tamis.storage.files.parquet.compact_thrift import NUMBER, wide_numbers
from tamis.storage.files.parquet.excerpt_file import (
    ExcerptColumn,
    excerpt_file,
    named_element,
    open_excerpt,
    schema_element,
)

COLUMNS = {"number": ("INT64", pa.int64()), "text": ("BYTE_ARRAY", pa.string())}


def excerpt_column(kind: str) -> ExcerptColumn:
    physical, arrow = COLUMNS[kind]
    element = schema_element(arrow, True, physical, 0)
    assert element is not None
    return ExcerptColumn(element, physical, "UNCOMPRESSED")


def test_chunks_with_and_without_a_dictionary() -> None:
    """Each group has other dictionaries; the values are those of the file that the pages come from."""
    rows = pa.table({"number": pa.array([7, None, 7, 9] * 25), "text": ["a", "b", None, "a"] * 25})
    groups, columns = [], [excerpt_column("number"), excerpt_column("text")]
    for dictionaries in ([True, False], [False, True], [True, True], [False, False]):
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
        groups.append((len(rows), found))
    file = open_excerpt(excerpt_file(columns, groups))
    assert file.metadata.num_rows == 400
    assert [file.metadata.row_group(at).num_rows for at in range(4)] == [100] * 4
    assert [file.metadata.row_group(at).column(1).has_dictionary_page for at in range(4)] == [False, True, True, False]
    for at in range(4):
        assert file.read_row_group(at).rename_columns(rows.column_names).equals(rows)


def test_names_are_positions() -> None:
    file = open_excerpt(excerpt_file([excerpt_column("number")] * 20, [(0, [(b"", [])] * 20)]))
    assert file.schema_arrow.names == [str(at) for at in range(20)]
    assert named_element(excerpt_column("text").element, "0") != excerpt_column("text").element


def test_numbers_have_one_width() -> None:
    values = np.array([0, 1, 63, 64, 2**31, 2**34 - 1])
    encoded = wide_numbers(values)
    assert encoded.shape == (len(values), len(NUMBER))
    assert bytes(encoded[0]) == NUMBER
    decoded = ((encoded.astype(np.int64) & 0x7F) << (7 * np.arange(len(NUMBER)))).sum(axis=1) >> 1
    assert decoded.tolist() == values.tolist()
    assert (encoded[:, :-1] & 0x80).all()
    assert not (encoded[:, -1] & 0x80).any()
    with pytest.raises(ValueError, match="does not fit into 5 bytes"):
        wide_numbers(np.array([2**34]))
