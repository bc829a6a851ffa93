"""The same predicates against the embedded scan: what plain Spark says of every row decides."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from random import Random  # noqa: TID251  # seeded by the caller
from typing import Any

import pyarrow as pa

import tamis
from tamis.core.types.dictionary_arrays import plain_array
from tests.oracle.lab import Built
from tests.oracle.settings import Settings, settled

OPTIONS: dict[str, tuple[Any, ...]] = {
    "tamis.read.lazy": ("auto", "on", "off"),
    "tamis.index.use": ("auto", "lookup", "plan", "off"),
    "tamis.stats.filter": ("on", "on", "off"),
    "tamis.audit.percent": (0, 0, 100),
}
POLICY = "spark.sql.legacy.timeParserPolicy"
"""Of which an embedded scan knows one value."""
NOT_SAID = {"UNKNOWN_FUNCTION", "BAD_FILTER", "UNSUPPORTED_FILTER"}
"""Codes with which the embedded scan says that it cannot say this."""
LEFT_TO_SPARK = "[LEFT_TO_SPARK]"
"""How it says so of a single row, such as a TIMESTAMP in a VARIANT that is read as a DECIMAL."""

LEFT_PATHS = "'get_json_object("
"""How it begins to say so of a path that Spark reads by rules of its own, such as `$["a"]`."""


def is_left_to_spark(error: tamis.InvalidInput) -> bool:
    """Whether the embedded scan says that it cannot say this, of a filter or of a row."""
    left = error.code == "BAD_ARGUMENTS" and error.message.startswith(LEFT_PATHS)
    return error.code in NOT_SAID or left or LEFT_TO_SPARK in str(error)


def truths(spark: Any, built: Built, predicates: Sequence[str]) -> list[Counter[Any]] | None:
    """Of each predicate, the numbers of the rows of which it is true; None where plain Spark raises."""
    listed = ", ".join(f"{p} AS p{i}" for i, p in enumerate(predicates))
    try:
        with settled(spark, {POLICY: "CORRECTED"}):
            rows = spark.sql(f"SELECT k, {listed} FROM {built.plain()}").collect()
    except Exception:
        return None
    return [Counter(row[0] for row in rows if row[i + 1]) for i in range(len(predicates))]


def some_options(rng: Random, settings: Settings) -> dict[str, Any]:
    found = {key: rng.choice(values) for key, values in OPTIONS.items() if rng.random() < 0.5}
    return found | {
        "timezone": settings.get("spark.sql.session.timeZone", "UTC"),
        "ansi": settings.get("spark.sql.ansi.enabled", "true") == "true",
    }


def some_limit(rng: Random, total: int) -> int:
    """A limit, often about as large as what there is."""
    return rng.choice(
        (1, 2, 7, 100, max(total, 1), max(total - 1, 1), total + 1, max(total // 2, 1), max(total // 3, 1))
    )


WAYS = ("rows", "whole", "whole", "count", "count", "exists", "limit", "limited count", "encoded")
"""How a filter is asked. ``whole``: all columns of its rows, which must be those of an eager scan without a filter."""


def misread(
    table: Any,
    predicate: str,
    wanted: Counter[Any],
    options: dict[str, Any],
    limit: int,
    ways: Sequence[str] = WAYS,
    through: tuple[type[Exception], ...] = (),
) -> str | None:
    """What is wrong with a filter, asked in these ways; None where nothing is, or where the embedded scan cannot say it. Errors of ``through`` are the caller's."""
    try:
        return next(
            (problem for way in ways if (problem := _misread(table, predicate, wanted, options, limit, way))), None
        )
    except through:
        raise
    except tamis.InvalidInput as error:
        return None if is_left_to_spark(error) else f"raises {error.code}: {str(error)[:200]}"
    except Exception as error:
        return f"raises {type(error).__name__}: {str(error)[:200]}"


def plain_keys(batch: pa.RecordBatch) -> list[Any]:
    """The keys of a batch, all of whose columns can be read."""
    for column in batch.columns:
        plain_array(column).validate(full=True)
    keys: list[Any] = batch["k"].to_pylist()
    return keys


def _misread(
    table: Any, predicate: str, wanted: Counter[Any], options: dict[str, Any], limit: int, way: str
) -> str | None:
    total = sum(wanted.values())
    scan = table.scan(
        predicate,
        ["k"] if way in {"rows", "limit"} else ["*"],
        options=options,
        limit=limit if "limit" in way else None,
    )
    match way:
        case "count" | "limited count":
            count, most = scan.count(), total if way == "count" else min(limit, total)
            return None if count == most else f"{way} is {count}, not {most}, of {total} with limit {limit}"
        case "exists":
            there = scan.exists()
            return None if there == bool(total) else f"exists() is {there} of {total} rows"
    if way == "whole":
        rows = scan.to_arrow()
        every = table.scan(options=options | {"tamis.read.lazy": "off"}).to_arrow()
        invented = Counter(map(repr, rows.to_pylist())) - Counter(map(repr, every.to_pylist()))
        if invented:
            return f"rows that the table lacks: {list(invented)[:3]}"
        found = Counter(rows["k"].to_pylist())
    elif way == "encoded":
        found = Counter(key for batch in scan.encoded_batches() for key in plain_keys(batch))
    else:
        found = Counter(scan.to_arrow()["k"].to_pylist())
    if way == "limit":
        sound = found.total() == min(limit, total) and not found - wanted
        return (
            None
            if sound
            else f"limit {limit} gives {found.total()} rows of {total}, invented {list(found - wanted)[:5]}"
        )
    return (
        None
        if found == wanted
        else f"rows: lost {list(wanted - found)[:5]}, invented {list(found - wanted)[:5]}, of {total}"
    )
