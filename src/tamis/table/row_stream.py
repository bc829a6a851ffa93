"""Conversion of user-supplied rows to one Arrow stream."""

from __future__ import annotations

import contextlib
import weakref
from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from tamis.engine.part_writer.plain_arrays import plain_stream
from tamis.errors import InvalidInput


def is_spark(data: Any) -> bool:
    """Test whether ``data`` is a Spark DataFrame (classic or Connect), without importing Spark."""
    return any(c.__module__.startswith("pyspark.sql.") and c.__name__ == "DataFrame" for c in type(data).__mro__)


def arrow_stream(data: Any) -> pa.RecordBatchReader:
    """Return a reader over any Arrow data: tables, batches, streams, and pandas or Polars frames.

    Named pandas index levels become columns; unnamed ones are dropped. Encoded columns become plain arrays.
    Raises ``InvalidInput`` (``BAD_DATA``) naming the type of anything else, and for a stream of which an earlier call
    has read rows.
    """
    rows = plain_stream(_stream(data))
    if not _gives_its_rows_once(data):
        return rows
    if id(data) in _begun_streams:
        raise _read_before()
    return pa.RecordBatchReader.from_batches(rows.schema, _recorded(data, rows))


def arrow_schema(data: Any) -> pa.Schema:
    """Return the schema of ``arrow_stream``, also of a stream that was read before."""
    return plain_stream(_stream(data)).schema


_begun_streams: weakref.WeakValueDictionary[int, Any] = weakref.WeakValueDictionary()
"""By ``id``, the streams of which rows have been read.

A statement that fails may have read some of its data. Repeated with the rest, or with nothing, it would succeed: an
overwrite would empty the table.
"""


def _gives_its_rows_once(data: Any) -> bool:
    """Whether ``data`` is a reader. Queries, such as relations of DuckDB, run again; what they read may be a reader."""
    return hasattr(data, "read_next_batch") or hasattr(data, "__next__")


def _recorded(data: Any, rows: pa.RecordBatchReader) -> Iterator[pa.RecordBatch]:
    """Yield ``rows``; the stream ``data`` counts as read once the first batch is asked for."""
    with contextlib.suppress(TypeError):  # an object without weak references cannot be remembered
        _begun_streams[id(data)] = data
    yield from rows


class MergeSource:
    """The rows of a merge, which may run more than once: whoever has the ``Merge`` may call ``execute`` again."""

    def __init__(self, data: Any) -> None:
        self._data: Any = data
        self._spent = False

    def stream(self) -> pa.RecordBatchReader:
        """Return a reader over all rows. Raises ``InvalidInput`` (``BAD_DATA``) if a stream has been read before."""
        if self._spent:
            raise _read_before()
        rows = arrow_stream(self._data)
        self._spent = not _can_be_read_again(self._data)
        return rows


def _can_be_read_again(data: Any) -> bool:
    """Whether ``data`` holds its rows. The second reader of a stream finds none, which looks like no data."""
    held = isinstance(data, (pa.Table, pa.RecordBatch)) or hasattr(data, "__arrow_c_array__")
    return held or (_library(data) in {"pandas", "polars"} and type(data).__name__ == "DataFrame")


def _stream(data: Any) -> pa.RecordBatchReader:
    if isinstance(data, pa.RecordBatchReader):
        return data
    if isinstance(data, pa.Table):
        return data.to_reader()
    if isinstance(data, pa.RecordBatch):
        return pa.RecordBatchReader.from_batches(data.schema, [data])
    if _library(data) == "polars" and (name := _object_column(data)) is not None:
        raise _bad(data, f": its column {name!r} holds Python objects, of which Polars hands over the addresses")
    try:
        if _library(data) == "pandas":
            return _pandas(data).to_reader()
        if hasattr(data, "__arrow_c_stream__"):
            return pa.RecordBatchReader.from_stream(data)
        if hasattr(data, "__arrow_c_array__"):
            batch = pa.record_batch(data)
            return pa.RecordBatchReader.from_batches(batch.schema, [batch])
    except (
        pa.ArrowInvalid,
        pa.ArrowTypeError,
        pa.ArrowNotImplementedError,
        AttributeError,
        TypeError,
        ValueError,
        OverflowError,
    ) as error:
        raise _bad(data, f": {error}") from error
    raise _bad(data, "")


def _library(data: Any) -> str:
    return type(data).__module__.partition(".")[0]


def _object_column(frame: Any) -> str | None:
    """Return the name of the first column of a Polars frame whose type is ``Object``."""
    types = getattr(frame, "schema", {})
    return next((str(name) for name, kind in dict(types).items() if str(kind) == "Object"), None)


def _pandas(frame: Any) -> pa.Table:
    named = [level for level in frame.index.names if level is not None and level not in frame.columns]
    if named:  # otherwise these values would be lost, and NULL in a table with such columns
        frame = frame.reset_index(level=named)
    return pa.Table.from_pandas(frame, preserve_index=False)


def _read_before() -> InvalidInput:
    return InvalidInput(
        "The data is a stream, and has been read before.",
        code="BAD_DATA",
        name="data",
        remedy="Repeat the call with a new stream, or give a table, which can be read again.",
    )


def _bad(data: Any, why: str) -> InvalidInput:
    kind = type(data)
    name = kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"
    return InvalidInput(
        f"{'None' if data is None else f'An object of type {name}'} is not a table of rows{why}.",
        code="BAD_DATA",
        name=name,
        remedy=(
            "Give a pyarrow table, batch or reader, any object with __arrow_c_stream__, "
            "a pandas or Polars frame, or a Spark DataFrame."
        ),
    )
