"""Input files of rows as Arrow streams, with text typed by the table's columns."""

from __future__ import annotations

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

        types = {f.name: f.type for f in schema if not pa.types.is_nested(f.type)}
        with csv.open_csv(
            path,
            convert_options=csv.ConvertOptions(
                column_types=types, strings_can_be_null=True, quoted_strings_can_be_null=False
            ),
        ) as rows:
            yield rows
    else:
        from pyarrow import json

        known = pa.schema([pa.field(f.name, f.type) for f in schema])
        yield json.read_json(path, parse_options=json.ParseOptions(explicit_schema=_present(path, known))).to_reader()


def _present(path: str, known: pa.Schema) -> pa.Schema:
    """Restrict the table's columns to those in the file: others must keep their values."""
    from pyarrow import json

    return pa.schema([known.field(name) for name in json.read_json(path).schema.names if name in known.names])
