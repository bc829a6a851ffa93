"""What a table declares to Spark that it can do."""

from __future__ import annotations

from typing import Any

from tamis.spark.jvm_bridge.adapter import Bridge

REQUIRED = (
    "BATCH_READ",
    "MICRO_BATCH_READ",
    "V1_BATCH_WRITE",
    "STREAMING_WRITE",
    "TRUNCATE",
    "OVERWRITE_BY_FILTER",
)
EVOLVING = "AUTOMATIC_SCHEMA_EVOLUTION"
MERGED_SCANS = "SCAN_MERGING"
"""Spark then reads a table once for scalar subqueries that aggregate different columns under one filter.

It builds one scan with the columns of all. The version of a table is fixed when the table is loaded, and columns
do not decide which rows a scan returns. Spark does not merge scans with a pushed limit, order or aggregate.
"""
_ENUM = "org.apache.spark.sql.connector.catalog.TableCapability"


def table_capabilities(bridge: Bridge, *, evolving: bool) -> list[Any]:
    """Return the constants of Spark's ``TableCapability`` that hold for every table.

    ``evolving`` adds the one for WITH SCHEMA EVOLUTION. Spark 4.2 and older know nothing of merged scans.
    """
    known = bridge.make_once("constants", _ENUM, lambda: {found.name(): found for found in bridge.cls(_ENUM).values()})
    optional = [MERGED_SCANS] if MERGED_SCANS in known else []
    return [known[name] for name in (*REQUIRED, *([EVOLVING] if evolving else []), *optional)]
