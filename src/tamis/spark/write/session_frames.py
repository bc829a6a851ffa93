"""PySpark DataFrames over Java ones, and the options in force in their sessions."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tamis.engine.scan import Options, check_places
from tamis.spark.jvm_bridge.adapter import Bridge
from tamis.spark.jvm_bridge.python_sessions import python_session
from tamis.storage.commit_log import Head


def python_frame(java_df: Any) -> Any:
    """Return a PySpark DataFrame over a Java one, in its own session."""
    from pyspark.sql.classic.dataframe import DataFrame

    return DataFrame(java_df, python_session(java_df.sparkSession()))


def write_switches(spark: Any, bridge: Bridge, options: dict[str, str], head: Head) -> Options:
    """Return the options in force: the statement's over the session's conf over the table's properties.

    Time zone and ANSI mode are the session's; the log records them with the filter of what a statement has read.
    Raises ``InvalidInput`` (``BAD_OPTION``) if the statement's ``tamis.stats.keep`` names what cannot be kept. The
    conf's is for many tables, so its other names are ignored.
    """
    if head.schemas:  # a table without columns may get them by this statement
        check_places(options, head.schemas, code="BAD_OPTION")
    conf = spark._jsparkSession.sessionState().conf()
    found = Options.resolve(options, bridge.dict(conf.settings(), "tamis."), head.properties, foreign=True)
    return replace(found, timezone=str(conf.sessionLocalTimeZone()), ansi=bool(conf.ansiEnabled()))
