"""Generated columns in what Spark hands over: NULL stands for a value that is to be computed."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from tamis.engine.part_writer.identity_values import given_number, identity_of
from tamis.spark.executors.executor_function import executor_function
from tamis.spark.executors.generated_task import fill_generated
from tamis.spark.executors.row_change_task import OPERATION
from tamis.spark.executors.row_metadata import PART, POSITION
from tamis.spark.write.session_frames import python_frame
from tamis.storage.commit_log import Head

_PLAIN = frozenset({OPERATION, PART, POSITION})

if TYPE_CHECKING:
    from tamis.spark.catalog.loaded_table import LoadedTable


def null_unassigned_columns(df: Any, table: LoadedTable, scan_key: str) -> Any:
    """Return the row changes ``df`` with NULL in the generated columns that an UPDATE or MERGE does not assign."""
    names = _generated(table.head)
    if not names:
        return df
    helper = table.bridge.helper("RowLevel")
    return python_frame(helper.withoutKept(df._jdf, table.bridge.list(names), scan_key))


def check_numbers(df: Any, table: LoadedTable, scan_keys: list[str]) -> None:
    """Raise ``InvalidInput`` (``IDENTITY_VALUE``) if an UPDATE or MERGE gives a number that only Tamis gives."""
    column = None if table.head.schema is None else identity_of(table.head.schema)
    if column is None or column.identity is None or not column.identity.always:
        return
    java = table.bridge
    if java.helper("RowLevel").assigns(df._jdf, column.name, java.list(scan_keys)):
        raise given_number(column.name, "a value")


def compute_sort_columns(df: Any, head: Head) -> Any:
    """Return ``df``, rows of the table or row changes, with the generated columns by which they will be sorted."""
    if head.schema is None or not any(head.schema.by_id[ids[0]].generated for ids in head.cluster_by):
        return df
    names = df.columns
    plain = df.toDF(*(name if name in _PLAIN else f"c{at}" for at, name in enumerate(names)))  # PySpark splits dots
    compute = executor_function(df.sparkSession, partial(fill_generated, schema=head.schema))
    return plain.mapInArrow(compute, plain.schema).toDF(*names)


def _generated(head: Head) -> list[str]:
    return [] if head.schema is None else [f.name for f in head.schema if f.generated is not None]
