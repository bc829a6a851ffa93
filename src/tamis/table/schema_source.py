"""The schema of a new table, from whatever a user has: DDL text, a schema, or a frame."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from tamis.core.types.arrow import to_arrow_schema
from tamis.errors import InvalidInput
from tamis.lazy_imports import lazy_module
from tamis.table.row_stream import arrow_schema, is_spark

if TYPE_CHECKING:
    from tamis.core.expr import column_definitions
else:
    column_definitions = lazy_module("tamis.core.expr.column_definitions")


def schema_from(given: Any) -> pa.Schema | None:
    """Return the Arrow schema of DDL text, of a schema, or of rows, whose values are not taken; None for None.

    Raises ``InvalidInput`` (``BAD_SCHEMA``, ``BAD_TYPE``, ``UNSUPPORTED_TYPE``) naming what is invalid.
    """
    if given is None or isinstance(given, pa.Schema):
        return given
    if isinstance(given, str):
        return column_definitions.parse_columns(given)
    if is_spark(given):
        types = importlib.import_module("tamis.spark.jvm_bridge.spark_types")
        return to_arrow_schema(types.from_spark(given.schema.json()))
    try:
        if hasattr(given, "__arrow_c_stream__") or hasattr(given, "__arrow_c_array__"):
            return arrow_schema(given)
        if type(given).__module__.partition(".")[0] == "pandas":
            return arrow_schema(given)
        if hasattr(given, "__arrow_c_schema__"):
            return pa.schema(given)
    except InvalidInput as error:
        raise _bad(given, f". {error.message.removesuffix('.')}") from error
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        raise _bad(given, f": {error}") from error
    raise _bad(given, "")


def _bad(given: Any, why: str) -> InvalidInput:
    return InvalidInput(
        f"A {type(given).__name__} has no schema of a table{why}.",
        code="BAD_SCHEMA",
        name="schema",
        remedy='Give DDL text such as "id BIGINT NOT NULL, ts TIMESTAMP", a pyarrow.Schema, or a DataFrame of '
        "pandas, Polars or Spark.",
    )
