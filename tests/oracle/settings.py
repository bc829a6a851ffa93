"""Random settings: Spark's, which hold for both sides, and the switches of Tamis, which hold for one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from random import Random  # noqa: TID251  # seeded by the caller
from typing import Any

Settings = dict[str, str]

SPARK: dict[str, tuple[str, ...]] = {
    "spark.sql.ansi.enabled": ("true", "false"),
    "spark.sql.session.timeZone": (
        "UTC",
        "America/New_York",
        "Pacific/Apia",
        "Australia/Lord_Howe",
        "America/Sao_Paulo",
        "WET",
        "America/Vancouver",
    ),
    "spark.sql.legacy.timeParserPolicy": ("CORRECTED", "LEGACY"),
    "spark.sql.caseSensitive": ("true", "false"),
    "spark.sql.cbo.enabled": ("true", "false"),
    "spark.sql.adaptive.enabled": ("true", "false"),
    "spark.sql.autoBroadcastJoinThreshold": ("-1", "10485760"),
    "spark.sql.parquet.enableVectorizedReader": ("true", "false"),
    "spark.sql.codegen.wholeStage": ("true", "false"),
    "spark.sql.parquet.enableNestedColumnVectorizedReader": ("true", "false"),
    "spark.sql.columnVector.offheap.enabled": ("true", "false"),
    "spark.sql.parquet.columnarReaderBatchSize": ("3", "4096"),
    "spark.sql.shuffle.partitions": ("3",),
    "spark.sql.codegen.factoryMode": ("FALLBACK",),
}
TAMIS: dict[str, tuple[str, ...]] = {
    "tamis.read.lazy": ("auto", "auto", "auto", "on", "off", "native"),
    "tamis.read.native_bytes": ("0", "0", "8MB", "1TB"),
    "tamis.index.use": ("auto", "lookup", "plan", "off"),
    "tamis.stats.filter": ("on", "on", "on", "off"),
    "tamis.scan.limits": ("on", "on", "off"),
    "tamis.scan.topk": ("on", "on", "off"),
    "tamis.scan.aggregates": ("on", "on", "off"),
    "tamis.scan.join_keys": ("on", "on", "off"),
    "tamis.audit.percent": ("0", "0", "0", "50"),
}
ALL_OFF: Settings = {
    "tamis.read.lazy": "off",
    "tamis.read.native_bytes": "0",
    "tamis.index.use": "off",
    "tamis.stats.filter": "off",
    "tamis.scan.limits": "off",
    "tamis.scan.topk": "off",
    "tamis.scan.aggregates": "off",
    "tamis.scan.join_keys": "off",
}
USUAL: Settings = {
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}
"""What makes small queries fast, unless a draw says otherwise."""
COMPILED: Settings = {"spark.sql.codegen.wholeStage": "true", "spark.sql.codegen.factoryMode": "FALLBACK"}


def some_settings(rng: Random) -> Settings:
    """A few settings that differ from their defaults."""
    found = dict(USUAL)
    for key, values in SPARK.items():
        if rng.random() < 0.12:
            found[key] = rng.choice(values)
    if rng.random() < 0.4:  # small tables have several tasks, down to one per block
        found["spark.sql.files.openCostInBytes"] = "1"
        found["spark.sql.files.maxPartitionBytes"] = rng.choice(("1b", "300b", "3000b", "3000b"))
    if rng.random() < 0.05:
        return found | ALL_OFF
    return found | {key: rng.choice(values) for key, values in TAMIS.items() if rng.random() < 0.5}


@contextmanager
def settled(spark: Any, settings: Settings) -> Iterator[None]:
    """With these settings; those that stood before come back."""
    before = {key: spark.conf.get(key, None) for key in settings}
    for key, value in settings.items():
        spark.conf.set(key, value)
    try:
        yield
    finally:
        for key, old in before.items():
            spark.conf.unset(key) if old is None else spark.conf.set(key, old)
