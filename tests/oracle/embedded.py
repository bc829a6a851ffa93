"""The same predicates against the embedded scan: what plain Spark says of every row decides."""

from __future__ import annotations

from collections import Counter
from random import Random  # noqa: TID251  # seeded by the caller
from typing import Any

import tamis
from tests.oracle.lab import Built
from tests.oracle.settings import Settings

OPTIONS: dict[str, tuple[Any, ...]] = {
    "tamis.read.lazy": ("auto", "on", "off"),
    "tamis.index.use": ("auto", "lookup", "plan", "off"),
    "tamis.stats.filter": ("on", "on", "off"),
    "tamis.audit.percent": (0, 0, 100),
}
NOT_SAID = {"UNKNOWN_FUNCTION", "BAD_FILTER", "UNSUPPORTED_FILTER"}
"""Codes with which the embedded scan says that it cannot say this."""


def truths(spark: Any, built: Built, predicates: list[str]) -> list[Counter[Any]] | None:
    """Of each predicate, the numbers of the rows of which it is true; None where plain Spark raises."""
    listed = ", ".join(f"{p} AS p{i}" for i, p in enumerate(predicates))
    try:
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


def misread(built: Built, predicate: str, wanted: Counter[Any], options: dict[str, Any], limit: int) -> str | None:
    """What is wrong with the rows, the count, the existence and a limit of a filter; None where nothing is, or where it cannot be said."""
    try:
        table = built.open()
        found = Counter(table.scan(predicate, ["k"], options=options).to_arrow()["k"].to_pylist())
        total, count = sum(wanted.values()), table.scan(predicate, options=options).count()
        there = table.scan(predicate, options=options).exists()
        some = Counter(table.scan(predicate, ["k"], limit=limit, options=options).to_arrow()["k"].to_pylist())
        counted = table.scan(predicate, limit=limit, options=options).count()
    except tamis.InvalidInput as error:
        return None if error.code in NOT_SAID else f"raises {error.code}: {str(error)[:200]}"
    except Exception as error:
        return f"raises {type(error).__name__}: {str(error)[:200]}"
    if found != wanted:
        return f"rows: lost {list(wanted - found)[:5]}, invented {list(found - wanted)[:5]}, of {total}"
    if count != total:
        return f"count() is {count}, not {total}"
    if there != bool(total):
        return f"exists() is {there} of {total} rows"
    if sum(some.values()) != min(limit, total) or some - wanted:
        return f"limit={limit} gives {sum(some.values())} rows of {total}"
    return None if counted == min(limit, total) else f"limit={limit}, count() is {counted} of {total}"
