"""What the Spark of the tests lacks: ``needs_…`` skips the rest of a test there, with the reason."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tamis.spark.jvm_bridge.adapter import bridge_of


def knows_syntax(spark: Any, text: str) -> bool:
    """Whether Spark's own parser reads ``text``."""
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import ParseException

    try:
        spark._jsparkSession.sessionState().sqlParser().parsePlan(text)
    except (ParseException, Py4JJavaError):  # PySpark does not know the error of Spark 4.0 for scripts
        return False
    return True


def needs_syntax(spark: Any, text: str) -> None:
    """Skip where Spark's own parser does not read ``text``."""
    if not knows_syntax(spark, text):
        pytest.skip(f"Spark {spark.version} does not parse {text!r}")


def knows_function(spark: Any, name: str) -> bool:
    """Whether Spark has the function ``name``."""
    return bool(spark.catalog.functionExists(name))


def has_time_type(spark: Any) -> bool:
    """Whether Spark has the type TIME."""
    return bridge_of(spark).has_class("org.apache.spark.sql.types.TimeType")


def needs_filled_columns(spark: Any) -> None:
    """Skip where Spark fills no columns that an INSERT leaves out. It came with the class that tables are made of."""
    if not bridge_of(spark).has_class("org.apache.spark.sql.connector.catalog.TableInfo"):
        pytest.skip(f"Spark {spark.version} fills no columns that an INSERT leaves out")


def needs_recursion(spark: Any) -> None:
    """Skip where Spark runs no recursive queries."""
    if not bridge_of(spark).has_class("org.apache.spark.sql.execution.UnionLoopExec"):
        pytest.skip(f"Spark {spark.version} runs no recursive queries")


def has_changes(spark: Any) -> bool:
    """Whether Spark has CHANGES FROM."""
    return bridge_of(spark).has_class("org.apache.spark.sql.connector.catalog.Changelog")


def needs_changes(spark: Any) -> None:
    """Skip where Spark has no CHANGES FROM."""
    if not has_changes(spark):
        pytest.skip(f"Spark {spark.version} has no CHANGES FROM")


def needs_state_options(spark: Any) -> None:
    """Skip where Spark does not tell the catalog the options of a table that is read."""
    if not bridge_of(spark).has_method("org.apache.spark.sql.connector.catalog.TableCatalog", "loadTable", 3):
        pytest.skip(f"Spark {spark.version} does not tell a catalog the options of a table")


def reads_newest(spark: Any) -> bool:
    """Whether a DataFrame that was analyzed before a commit reads the version after it."""
    return bridge_of(spark).has_class("org.apache.spark.sql.execution.datasources.v2.V2TableRefreshUtil")


def needs_newest(spark: Any) -> None:
    """Skip where a DataFrame that was analyzed before a commit keeps its version."""
    if not reads_newest(spark):
        pytest.skip(f"In Spark {spark.version}, a DataFrame keeps the version at which it was made")


def merges_scans(spark: Any) -> bool:
    """Whether Spark builds one scan for several subqueries that read one table of a catalog."""
    constants = bridge_of(spark).cls("org.apache.spark.sql.connector.catalog.TableCapability").values()
    return any(constant.name() == "SCAN_MERGING" for constant in constants)


def needs_merged_scans(spark: Any) -> None:
    """Skip where Spark reads a table of a catalog once for each subquery."""
    if not merges_scans(spark):
        pytest.skip(f"Spark {spark.version} merges no scans of tables of catalogs")


def has_views(spark: Any) -> bool:
    """Whether Spark has catalogs of tables and views."""
    return bridge_of(spark).has_class("org.apache.spark.sql.connector.catalog.RelationCatalog")


@contextmanager
def newer_statements(spark: Any) -> Iterator[None]:
    """Skip the rest of a test where a Spark before 4.2 is told, by name, that a statement needs a newer one."""
    from pyspark.errors import PySparkException

    try:
        yield
    except PySparkException as error:
        if has_views(spark) or error.getCondition() != "UNSUPPORTED_STATEMENT" or "or newer" not in str(error):
            raise
        pytest.skip(str(error)[:200])


def needs_views(spark: Any) -> None:
    """Skip where Spark has no catalogs of tables and views."""
    if not has_views(spark):
        pytest.skip(f"Spark {spark.version} has no permanent views of other catalogs than its own")


def measures_batches(spark: Any) -> bool:
    """Whether Spark computes the bytes of an Arrow batch after each row."""
    return bool(bridge_of(spark).has_method("org.apache.spark.sql.internal.SQLConf", "arrowMaxBytesPerOutputBatch", 0))
