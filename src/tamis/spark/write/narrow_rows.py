"""Hands narrow rows to Python workers without Spark's limit on the bytes of an Arrow batch.

Since 4.1, Spark computes the bytes of a batch after each row, which takes a third of a write's CPU. Where no row is
wide, the number of rows bounds a batch as well. So a write first tries a job without Spark's limit, in a clone of the
session. The plan marks wide rows and replaces their texts by NULL, so that a batch has at most ``BATCH_ROWS`` times
``MAX_ROW_BYTES`` of them. A worker that sees a marked row stops, and the write runs again under Spark's limit.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
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
"""Bytes of the texts and binaries of a row, above which the row is wide."""
_MAX_COLUMNS = 100
"""Columns, and fields of texts, up to which Spark compiles the test of a row (``spark.sql.codegen.maxFields``)."""
_NUMBERS = frozenset({"boolean", "byte", "short", "integer", "long", "float", "double", "decimal"})
_TIMES = frozenset({"date", "timestamp", "timestamp_ntz", "time", "daytimeinterval", "yearmonthinterval"})
_BOUNDED = _NUMBERS | _TIMES
"""Names of the types whose values have a bounded size."""

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
        warnings.warn(
            f"The write to {printable(url)} runs again, in smaller batches, because a row has more than "
            f"{MAX_ROW_BYTES // 1024} KB of text. Set the table property tamis.write.wide_rows = true to write in "
            "smaller batches from the start.",
            stacklevel=2,
        )
    return write(df, False)


def mark_wide_rows(df: Any, function: Callable[[Any], Any]) -> tuple[Any, Callable[[Any], Any]]:
    """Return ``df`` with a last column that marks wide rows, and ``function`` for its batches.

    The columns of a wide row that can be wide are NULL. Columns are named ``c0``, ``c1`` and so on.
    """
    widths = [_widths(field.dataType, f"c{at}") or [] for at, field in enumerate(df.schema.fields)]
    names = [f"c{at}" for at in range(len(widths))]
    total = " + ".join(f"CAST(coalesce(octet_length({place}), 0) AS BIGINT)" for found in widths for place in found)
    marked = df.toDF(*names).selectExpr("*", f"{total or 0} > {MAX_ROW_BYTES} AS wide")
    kept = (f"IF(wide, NULL, {name}) AS {name}" if found else name for name, found in zip(names, widths, strict=True))
    return marked.selectExpr(*kept, "wide"), functools.partial(check_row_width, names=df.columns, function=function)


def _narrow_frame(df: Any, head: Head) -> Any:
    """Return ``df`` in a session without Spark's limit on bytes, or None where the limit has to stay."""
    from pyspark.sql import SparkSession
    from pyspark.sql.classic.dataframe import DataFrame

    bridge = bridge_of(df.sparkSession)
    if not bridge.offers("org.apache.spark.sql.internal.SQLConf", "arrowMaxBytesPerOutputBatch", 0):
        return None  # before 4.1, Spark did not compute the bytes of each row
    widths = [_widths(field.dataType, "") for field in df.schema.fields]
    texts = sum(_MAX_COLUMNS + 1 if found is None else len(found) for found in widths)
    if max(len(widths), texts) > _MAX_COLUMNS:
        return None
    if head.schema is None or any(head.schema.by_id[ids[0]].generated for ids in head.cluster_by):
        return None  # another step of the job hands rows to Python, to compute what they are sorted by
    rows = bridge.helper("ArrowBatches").withoutByteLimit(df._jdf, BATCH_ROWS)
    return None if rows is None else DataFrame(rows, SparkSession(df.sparkSession.sparkContext, rows.sparkSession()))


def _widths(kind: Any, place: str) -> list[str] | None:
    """Return what can be wide in the column ``place`` of the type ``kind``; None where ``octet_length`` cannot tell."""
    name = kind.typeName()
    if name in {"string", "binary", "char", "varchar"}:
        return [place]
    if name == "struct":
        found = [_widths(field.dataType, f"{place}.{backquote(field.name)}") for field in kind.fields]
        return None if any(one is None for one in found) else [inner for one in found if one for inner in one]
    return [] if name in _BOUNDED else None
