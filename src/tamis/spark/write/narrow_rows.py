"""Hands narrow rows to Python workers without Spark's limit on the bytes of an Arrow batch.

Since 4.1, Spark computes the bytes of a batch after each row, which takes a third of a write's CPU. Where no row is
wide, the number of rows bounds a batch as well. So a write first tries a job without Spark's limit, in a clone of the
session. The plan marks wide rows and replaces what makes them wide by NULL, so that a batch has at most ``BATCH_ROWS``
times ``MAX_ROW_BYTES`` of it. A worker that sees a marked row stops, and the write runs again under Spark's limit.
"""

from __future__ import annotations

import contextlib
import functools
import warnings
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from tamis.core.types.identifiers import backquote
from tamis.core.types.printable import printable
from tamis.engine.scan import Options
from tamis.sizes import SIZES
from tamis.spark.executors.write_task import WideRow, check_row_width
from tamis.spark.jvm_bridge.adapter import bridge_of
from tamis.storage.commit_log import Head

BATCH_ROWS = SIZES.narrow_batch_rows
MAX_ROW_BYTES = SIZES.narrow_row_bytes
"""Bytes of the texts, binaries, arrays and maps of a row, above which the row is wide."""
_MAX_COLUMNS = 100
"""Columns, and fields of texts, up to which Spark compiles the test of a row (``spark.sql.codegen.maxFields``)."""
_MAX_LEAVES = 400
"""Columns and fields of structs up to which numbers, which are not counted, have at most some MiB in a batch."""
_NUMBERS = frozenset({"boolean", "byte", "short", "integer", "long", "float", "double", "decimal"})
_TIMES = frozenset({"date", "timestamp", "timestamp_ntz", "time", "daytimeinterval", "yearmonthinterval"})
_BOUNDED = _NUMBERS | _TIMES
"""Names of the types whose values have a bounded size."""
_TEXTS = frozenset({"string", "char", "varchar"})
_ITEM_BYTES = 16
"""Bytes of an item of an array, but for its text."""

Written = TypeVar("Written")
_wide_tables: set[str] = set()
"""Ids of tables that were given a wide row by this process."""


def write_without_byte_limit(
    df: Any, url: str, head: Head, options: Options, write: Callable[[Any, bool], Written]
) -> Written:
    """Return what ``write(rows, narrow)`` does for the rows of ``df``, to be written to the table at ``url``.

    ``narrow``: ``write`` hands the rows to Python by ``mark_wide_rows``. For a wide row, it has to undo what it did and
    to raise ``WideRow``. It is then called again, without ``narrow``.
    """
    rows = None if options.write_wide_rows or head.table_id in _wide_tables else _narrow_frame(df, head)
    if rows is None:
        return write(df, False)
    try:
        return write(rows, True)
    except WideRow:
        _wide_tables.add(head.table_id)
        with contextlib.suppress(UserWarning):  # where warnings are errors, the write goes on
            warnings.warn(
                f"The write to {printable(url)} runs again, in smaller batches, because a row has more than "
                f"{MAX_ROW_BYTES:,} bytes. Set the table property tamis.write.wide_rows = true to write in "
                "smaller batches from the start.",
                stacklevel=2,
            )
    return write(df, False)


def mark_wide_rows(df: Any, function: Callable[[Any], Any]) -> tuple[Any, Callable[[Any], Any]]:
    """Return ``df`` with a last column that marks wide rows, and ``function`` for its batches.

    The columns of a wide row that can be wide are NULL. Columns are named ``c0``, ``c1`` and so on.
    """
    names = [f"c{at}" for at in range(len(df.columns))]
    sizes = [_sizes(field.dataType, name) or [] for field, name in zip(df.schema.fields, names, strict=True)]
    total = " + ".join(f"coalesce(CAST({size} AS BIGINT), 0)" for found in sizes for size in found)
    marked = df.toDF(*names).selectExpr("*", f"{total or 0} > {MAX_ROW_BYTES} AS wide")
    kept = (f"IF(wide, NULL, {name}) AS {name}" if found else name for name, found in zip(names, sizes, strict=True))
    return marked.selectExpr(*kept, "wide"), functools.partial(check_row_width, names=df.columns, function=function)


def _narrow_frame(df: Any, head: Head) -> Any:
    """Return ``df`` in a session without Spark's limit on bytes, or None where the limit has to stay."""
    from pyspark.sql.classic.dataframe import DataFrame

    bridge = bridge_of(df.sparkSession)
    if not bridge.has_method("org.apache.spark.sql.internal.SQLConf", "arrowMaxBytesPerOutputBatch", 0):
        return None  # before 4.1, Spark did not compute the bytes of each row
    sizes = [_sizes(field.dataType, "") for field in df.schema.fields]
    terms = sum(_MAX_COLUMNS + 1 if found is None else len(found) for found in sizes)
    numbers = sum(_leaves(field.dataType) for field in df.schema.fields)
    if max(len(sizes), terms) > _MAX_COLUMNS or numbers > _MAX_LEAVES:
        return None
    if head.schema is None or any(head.schema.by_id[ids[0]].generated for ids in head.cluster_by):
        return None  # another step of the job hands rows to Python, to compute what they are sorted by
    rows = bridge.helper("ArrowBatches").withoutByteLimit(df._jdf, BATCH_ROWS)
    return None if rows is None else DataFrame(rows, df.sparkSession)


def _sizes(kind: Any, place: str) -> list[str] | None:
    """Return SQL for the bytes that ``place`` has beyond those of a number: terms of a sum, each of which may be NULL.

    None for a type ``kind`` whose bytes SQL cannot count. ``place`` is SQL, too.
    """
    name = kind.typeName()
    if name in _TEXTS | {"binary"}:
        return [f"octet_length({place})"]
    if name == "struct":
        return _joined(_sizes(field.dataType, f"{place}.{backquote(field.name)}") for field in kind.fields)
    if name == "array":
        return _item_sizes(kind.elementType, place)
    if name == "map":
        keys, values = f"map_keys({place})", f"map_values({place})"
        return _joined((_item_sizes(kind.keyType, keys), _item_sizes(kind.valueType, values)))
    return [] if name in _BOUNDED else None


def _leaves(kind: Any) -> int:
    """Return the number of fields below a column of the type ``kind`` that are no structs."""
    return sum(_leaves(field.dataType) for field in kind.fields) if kind.typeName() == "struct" else 1


def _item_sizes(kind: Any, place: str) -> list[str] | None:
    """Return what ``_sizes`` does, for an array at ``place`` of items of the type ``kind``."""
    name = kind.typeName()
    if name in _BOUNDED:
        return [f"{_ITEM_BYTES}L * array_size({place})"]
    if name in _TEXTS:
        return [f"{_ITEM_BYTES}L * array_size({place})", f"octet_length(array_join({place}, ''))"]
    if name == "struct":
        return _joined(_item_sizes(field.dataType, f"{place}.{backquote(field.name)}") for field in kind.fields)
    return None


def _joined(found: Iterable[list[str] | None]) -> list[str] | None:
    listed = list(found)
    return None if any(one is None for one in listed) else [term for one in listed if one for term in one]
