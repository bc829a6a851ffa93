"""Input files of rows as Arrow streams, with text typed by the table's columns."""

from __future__ import annotations

import json
import re
from base64 import b64decode
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import reduce
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tamis.cli.ingest_files import ENDINGS
from tamis.errors import InvalidInput, NotFound, TamisError

LONGEST_ROW = 16 * 2**20
"""Bytes of a CSV or JSON file that are parsed at once; a longer row is refused."""
_MAYBE_NULL_RECORD = re.compile(rb"\A(?:\xef\xbb\xbf)?\s*null|[}\]]\s*null")
_NULL_RECORD = re.compile(
    rb'"(?:[^"\\]++|\\.)*+"|(?P<record>\A(?:\xef\xbb\xbf)?\s*null|[}\]]\s*null)',
    re.DOTALL,
)
"""Texts, so that what is in them is passed over, and records ``null``: the first, or one after the end of another."""
_BETWEEN_LINES = re.compile(rb"(?<=})[ \t\r]*+\n\s*+(?={)")
"""Between two records: within one, a comma or the end of a list stands between objects, and texts have no line end."""
_NOT_SPACE = re.compile(r"\S")
_DECODER = json.JSONDecoder(parse_int=str, parse_float=str)
"""For keys: Python refuses to read integers of very many digits."""


@contextmanager
def rows_of(path: str, file_format: str | None, schema: pa.Schema) -> Iterator[pa.RecordBatchReader]:
    """Open the rows of a file.

    Raises ``NotFound`` (``NO_FILES``), ``InvalidInput`` (``UNKNOWN_FORMAT``, ``BAD_DATA``).
    """
    name = path.lower()
    kind = file_format or next((k for k, endings in ENDINGS.items() if name.endswith(endings)), None)
    if kind not in ENDINGS:
        raise InvalidInput(
            f"{path} is not a file of a known kind.",
            code="UNKNOWN_FORMAT",
            name=path,
            remedy=f"Say which by --format: {', '.join(ENDINGS)}.",
        )
    try:
        with ExitStack() as opened:
            with _reading(path, kind):
                if not Path(path).is_file():
                    raise NotFound(
                        f"There is no file {path}.",
                        code="NO_FILES",
                        name=path,
                        remedy="Give one file with rows in it.",
                    )
                rows = opened.enter_context(_opened(path, kind, schema))
            yield pa.RecordBatchReader.from_batches(rows.schema, _batches(path, kind, rows))
    except (pa.ArrowInvalid, pa.ArrowKeyError, pa.ArrowNotImplementedError) as error:
        raise _unreadable(path, kind, error) from error


@contextmanager
def _reading(path: str, kind: str) -> Iterator[None]:
    """Raise ``InvalidInput`` (``BAD_DATA``) for errors of the file; those of what uses its rows stay as they are."""
    try:
        yield
    except TamisError:
        raise
    except (OSError, UnicodeDecodeError) as error:
        raise _unreadable(path, kind, error) from error


def _unreadable(path: str, kind: str, error: Exception) -> InvalidInput:
    return InvalidInput(
        f"{path} cannot be read as {kind}: {error}",
        code="BAD_DATA",
        name=path,
        remedy="Correct the file, or say its kind by --format.",
    )


def _batches(path: str, kind: str, rows: pa.RecordBatchReader) -> Iterator[pa.RecordBatch]:
    with _reading(path, kind):
        yield from rows


@contextmanager
def _opened(path: str, kind: str, schema: pa.Schema) -> Iterator[pa.RecordBatchReader]:
    if kind == "parquet":
        import pyarrow.parquet as pq

        # as nanoseconds, an INT96 might not fit
        with pq.ParquetFile(path, coerce_int96_timestamp_unit="us") as file:
            yield _parquet_rows(path, file)
    elif kind == "csv":
        from pyarrow import csv

        reading = csv.ReadOptions(block_size=LONGEST_ROW)
        quoted = csv.ParseOptions(newlines_in_values=True)
        with csv.open_csv(path, read_options=reading, parse_options=quoted) as rows:
            _check_names_once(rows.schema.names)
            named = _named_in_file(schema, rows.schema.names)
            # Others are texts: a type that is guessed would change 007. No text is a value of a nested type.
            types = dict.fromkeys(rows.schema.names, pa.string()) | {
                name: kind for name, kind in named.items() if not pa.types.is_nested(kind)
            }
        read_as = {n: pa.string() if pa.types.is_integer(kind) else kind for n, kind in types.items()}
        options = csv.ConvertOptions(
            column_types=read_as,
            null_values=[""],  # as Spark: other texts, such as NA, are values
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
        )
        with csv.open_csv(path, read_options=reading, parse_options=quoted, convert_options=options) as rows:
            numbers = {n: kind for n, kind in types.items() if pa.types.is_integer(kind)}
            fields = [f.with_type(numbers.get(f.name, f.type)) for f in rows.schema]
            yield pa.RecordBatchReader.from_batches(pa.schema(fields), (_with_integers(b, numbers) for b in rows))
    else:
        yield _json_rows(path, schema)


def _parquet_rows(path: str, file: Any) -> pa.RecordBatchReader:
    """Read all columns. Raises ``InvalidInput`` (``LEGACY_CALENDAR``), as a scan of an adopted file."""
    from tamis.storage.files.parquet.legacy_calendar import file_calendar, rebase_batch

    calendar = file_calendar("parquet", file.metadata.metadata)
    if not calendar:
        return pa.RecordBatchReader.from_batches(file.schema_arrow, file.iter_batches())
    stored = [file.schema.column(at).physical_type for at in range(len(file.schema))]
    nothing = pa.RecordBatch.from_pylist([], file.schema_arrow)
    batches = (rebase_batch(batch, calendar, stored, path) for batch in file.iter_batches())
    return pa.RecordBatchReader.from_batches(rebase_batch(nothing, calendar, stored, path).schema, batches)


def _check_names_once(names: list[str]) -> None:
    (name, times), *_ = Counter(names).most_common(1) or [("", 0)]
    if times > 1:
        raise pa.ArrowInvalid(f"its header has the column {name} more than once")


def _with_integers(batch: pa.RecordBatch, types: dict[str, pa.DataType]) -> pa.RecordBatch:
    """Read texts of whole numbers. Raises ``pa.ArrowInvalid``, as Spark refuses them, for hexadecimal ones."""
    for name, kind in types.items():
        at = batch.schema.get_field_index(name)
        texts = pc.utf8_trim(batch.column(at), " \t")
        if pc.any(pc.match_substring(texts, "x", ignore_case=True)).as_py():
            raise pa.ArrowInvalid(f"a value of the column {name} is not a whole number in decimal digits")
        batch = batch.set_column(at, pa.field(name, kind), texts.cast(kind))
    return batch


def _named_in_file(schema: pa.Schema, names: list[str]) -> dict[str, pa.DataType]:
    """Return the types of the table's columns by the names that a file has for them, in any case."""
    types = {f.name.lower(): f.type for f in schema}
    return {name: types[name.lower()] for name in names if name.lower() in types}


def _json_rows(path: str, schema: pa.Schema) -> pa.RecordBatchReader:
    """Read the columns that are in the file; the others must keep their values.

    Raises ``pa.ArrowInvalid``, also for texts that are not UTF-8 and for records that are no objects; ``InvalidInput``
    (``BAD_DATA``) for a record that lacks a key of others.
    """
    from pyarrow.json import ParseOptions, ReadOptions, read_json

    _check_no_null_records(path)
    reading = ReadOptions(block_size=LONGEST_ROW)
    found = read_json(path, read_options=reading).schema
    types = _named_in_file(schema, found.names)
    others = {f.name: _with_texts(f.type) for f in found if f.name not in types}
    held = pa.schema({name: _type_to_read(kind) for name, kind in types.items()} | others)
    table = read_json(path, read_options=reading, parse_options=ParseOptions(explicit_schema=held))
    table.validate(full=True)
    _check_same_keys(path, table)
    for name, kind in types.items():
        column = table.column(name)
        # Of another type are columns with fields that the table lacks: a cast would drop these.
        if column.type.equals(held.field(name).type) and not column.type.equals(kind):
            values = _from_base64(column) if pa.types.is_binary(kind) else _from_texts(name, column, kind)
            table = table.set_column(table.schema.get_field_index(name), name, values)
    return table.to_reader()


def _with_texts(kind: pa.DataType) -> pa.DataType:
    """Return a type that pyarrow has inferred with texts for the times in it: a text that looks like one is a text."""
    if pa.types.is_struct(kind):
        return pa.struct([f.with_type(_with_texts(f.type)) for f in kind])
    if pa.types.is_list(kind):
        return pa.list_(kind.value_field.with_type(_with_texts(kind.value_type)))
    return pa.string() if pa.types.is_temporal(kind) else kind


def _type_to_read(kind: pa.DataType) -> pa.DataType:
    """Return the type as which to read JSON: texts for what its parser reads in other ways than that of CSV.

    It drops the zone of an instant in a TIMESTAMP_NTZ, and takes an instant without zone for one in UTC.
    """
    if pa.types.is_struct(kind):
        return pa.struct([f.with_type(_type_to_read(f.type)) for f in kind])
    if pa.types.is_list(kind):
        return pa.list_(kind.value_field.with_type(_type_to_read(kind.value_type)))
    text = pa.types.is_date(kind) or pa.types.is_binary(kind) or pa.types.is_timestamp(kind)
    return pa.string() if text else kind


def _from_texts(name: str, column: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray:
    """Cast a column as ``_type_to_read`` has it. Raises ``pa.ArrowInvalid``, also for a BINARY in another column."""
    for chunk in column.chunks:
        if _has_bytes(chunk, kind):
            raise pa.ArrowInvalid(f"the column {name} has a BINARY in it, which JSON files give as base64")
    return column.cast(kind)


def _has_bytes(values: pa.Array, kind: pa.DataType) -> bool:
    if pa.types.is_struct(kind):
        return any(_has_bytes(values.field(at), field.type) for at, field in enumerate(kind))
    if pa.types.is_list(kind):
        return _has_bytes(values.flatten(), kind.value_type)
    return bool(pa.types.is_binary(kind) and values.null_count < len(values))


def _check_no_null_records(path: str) -> None:
    """Raise ``pa.ArrowInvalid`` for a record ``null``: pyarrow reads it as a row of NULLs, or ends the process."""
    data = _content(path)
    if (
        b"null" in data
        and _MAYBE_NULL_RECORD.search(data)
        and any(found.lastgroup == "record" for found in _NULL_RECORD.finditer(data))
    ):
        raise pa.ArrowInvalid("a record is null, not an object")


def _content(path: str) -> bytes:
    with pa.input_stream(path, compression="detect") as file:
        data: bytes = file.read()
    return data


def _check_same_keys(path: str, table: pa.Table) -> None:
    """Raise ``InvalidInput`` (``BAD_DATA``) for a record without a key of others, for which pyarrow reads NULL.

    A key that no record has keeps the table's values, so NULL must not replace them where one record lacks it.
    """
    nulls = [pc.is_null(column) for column in table.columns if column.null_count]
    if not nulls:
        return
    rows = np.flatnonzero(reduce(pc.or_, nulls).to_numpy()).tolist()
    for row, record in zip(rows, _objects(_content(path), table.num_rows, rows), strict=True):
        if len(record) < table.num_columns:
            key = next(name for name in table.column_names if name not in record)
            raise InvalidInput(
                f"Record {row + 1:,} of {path} has no key {key!r}, and others have it.",
                code="BAD_DATA",
                name=key,
                remedy="Write it as null if the value is NULL. To keep the table's value, put records without it into "
                "a file of their own.",
            )


def _objects(data: bytes, count: int, rows: Sequence[int]) -> Iterator[dict[str, Any]]:
    """Yield some of the ``count`` records. Raises ``pa.ArrowInvalid`` if Python cannot read one."""
    records = _BETWEEN_LINES.split(data.removeprefix(b"\xef\xbb\xbf"))
    try:
        if len(records) == count:
            yield from (_DECODER.decode(records[row].decode()) for row in rows)
        else:  # some lines have several
            every = [found for text in records for found in _objects_in(text.decode())]
            yield from (every[row] for row in rows)
    except (ValueError, RecursionError) as error:
        raise pa.ArrowInvalid(f"its keys cannot be read: {error}") from error


def _objects_in(text: str) -> Iterator[dict[str, Any]]:
    at = 0
    while start := _NOT_SPACE.search(text, at):
        found, at = _DECODER.raw_decode(text, start.start())
        yield found


def _from_base64(column: pa.ChunkedArray) -> pa.Array:
    """Decode bytes as JSON has them in Spark. Raises ``pa.ArrowInvalid``."""
    try:
        return pa.array([None if v is None else b64decode(v, validate=True) for v in column.to_pylist()], pa.binary())
    except ValueError as error:
        raise pa.ArrowInvalid(f"a value of a BINARY column is not base64: {error}") from error
