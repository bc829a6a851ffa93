"""What errors say to people."""

import pyarrow as pa
import pytest

import tamis
from tamis.errors import InvalidInput
from tamis.state.backend import translate

ROW = pa.schema([("a", pa.int64())])


def test_a_file_name_that_is_too_long(tmp_path):
    for call in (tamis.open, lambda path: tamis.create(path, ROW)):
        with pytest.raises(InvalidInput) as caught:
            call(tmp_path / ("x" * 300))
        assert caught.value.code == "BAD_PATH"
        assert "x" * 300 in caught.value.name


def test_no_rows_at_all(tmp_path):
    table = tamis.create(tmp_path)
    with pytest.raises(InvalidInput, match="None is not a table of rows"):
        table.append(None)
    with pytest.raises(InvalidInput, match="An object of type int is not"):
        table.append(3)


def test_the_name_of_a_format_is_text(tmp_path):
    with pytest.raises(InvalidInput) as caught:
        tamis.create(tmp_path, ROW, format=["x"])
    assert (caught.value.code, caught.value.name) == ("UNKNOWN_FORMAT", "['x']")


def test_what_the_system_says_ends_before_the_remedy():
    assert "(os error 2). Check" in str(translate(FileNotFoundError("No such file or directory (os error 2)"), "write", "x"))
