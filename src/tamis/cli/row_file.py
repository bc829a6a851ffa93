"""Input files of rows as Arrow streams, with text typed by the table's columns."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa

from tamis.cli.ingest_files import ENDINGS
from tamis.errors import InvalidInput, NotFound


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
    if not Path(path).is_file():
        raise NotFound(f"There is no file {path}.", code="NO_FILES", name=path, remedy="Give one file with rows in it.")
    try:
        with _opened(path, kind, schema) as rows:
            yield rows
    except (pa.ArrowInvalid, pa.ArrowKeyError, pa.ArrowNotImplementedError) as error:
        raise InvalidInput(
            f"{path} cannot be read as {kind}: {error}",
            code="BAD_DATA",
            name=path,
            remedy="Correct the file, or say its kind by --format.",
        ) from error


@contextmanager
def _opened(path: str, kind: str, schema: pa.Schema) -> Iterator[pa.RecordBatchReader]:
    if kind == "parquet":
        import pyarrow.parquet as pq

        with pq.ParquetFile(path) as file:
            yield pa.RecordBatchReader.from_batches(file.schema_arrow, file.iter_batches())
    elif kind == "csv":
        from pyarrow import csv

        with csv.open_csv(path) as rows:
            found = _named_in_file(schema, rows.schema.names)
        options = csv.ConvertOptions(
            column_types={name: kind for name, kind in found.items() if not pa.types.is_nested(kind)},
            null_values=[""],  # as Spark: other texts, such as NA, are values
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
        )
        with csv.open_csv(path, convert_options=options) as rows:
            yield rows
    else:
        yield _json_rows(path, schema)


def _named_in_file(schema: pa.Schema, names: list[str]) -> dict[str, pa.DataType]:
    """Return the types of the table's columns by the names that a file has for them, in any case."""
    types = {f.name.lower(): f.type for f in schema}
    return {name: types[name.lower()] for name in names if name.lower() in types}


def _json_rows(path: str, schema: pa.Schema) -> pa.RecordBatchReader:
    """Read the columns that are in the file; the others must keep their values."""
    from pyarrow import json

    types = _named_in_file(schema, json.read_json(path).schema.names)
    as_text = [n for n, kind in types.items() if pa.types.is_date(kind) or pa.types.is_binary(kind)]
    held = pa.schema({name: pa.string() if name in as_text else kind for name, kind in types.items()})
    table = json.read_json(path, parse_options=json.ParseOptions(explicit_schema=held))
    for name in as_text:
        column = table.column(name)
        values = _from_base64(column) if pa.types.is_binary(types[name]) else column.cast(types[name])
        table = table.set_column(table.schema.get_field_index(name), name, values)
    return table.to_reader()


def _from_base64(column: pa.ChunkedArray) -> pa.Array:
    """Decode bytes as JSON has them in Spark. Raises ``pa.ArrowInvalid``."""
    try:
        return pa.array([None if v is None else b64decode(v, validate=True) for v in column.to_pylist()], pa.binary())
    except ValueError as error:
        raise pa.ArrowInvalid(f"a value of a BINARY column is not base64: {error}") from error
