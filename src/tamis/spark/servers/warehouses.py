"""Warehouses that a driver attaches as catalogs, by arguments and by Spark's configuration."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tamis.errors import InvalidInput
from tamis.spark.session import attach

PREFIX = "spark.tamis.warehouse."
"""``spark.tamis.warehouse.lake = s3://bucket/wh``, for example in spark-defaults.conf, attaches the catalog lake."""


def attach_warehouses(
    spark: Any, warehouses: Mapping[str, str], storage_options: Mapping[str, str] | None = None
) -> dict[str, str]:
    """Attach ``warehouses`` (place by catalog name) and those of the configuration; return all of them.

    An argument wins over the configuration. Raises ``InvalidInput`` (``NO_WAREHOUSE``) if there are none, and what
    ``attach`` raises.
    """
    conf = spark.sparkContext.getConf()
    configured = {key.removeprefix(PREFIX): place for key, place in conf.getAll() if key.startswith(PREFIX)}
    found = {**configured, **warehouses}
    if not found:
        raise InvalidInput(
            "No warehouse is given.",
            code="NO_WAREHOUSE",
            name="warehouse",
            remedy=f"Name one: --warehouse lake=s3://bucket/folder, or {PREFIX}lake in spark-defaults.conf.",
        )
    for name, place in found.items():
        attach(spark, name, place, storage_options=storage_options)
    return found
