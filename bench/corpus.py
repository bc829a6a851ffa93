"""Of the parts that a filter could skip, how many it does skip: over the filters that people type (``tests/corpus``), each checked against plain Spark.

A part is skippable for a filter if a scan of it finds no row. What was not skipped is listed with the reason that ``explain`` gives. The tables are made twice, of few
rows a part and of many: where a part holds many, more columns hold every value that they ever have, and fewer parts can be skipped at all.
``--floors`` raises the floors in ``tests/corpus/*.sql`` to what is skipped now; none is ever lowered.
"""

from __future__ import annotations

import re
import sys
import tempfile
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from tests.corpus.filters import HERE, Filter, filters, made, matching, plan
from tests.corpus.tables import ROWS, TABLES

from bench.report import Figure, record, spark_session

GOAL = 5.0
"""Percent that may be missed."""
MANY = 3_000
"""Rows per part of the larger tables."""
KINDS = (
    (r"could not be read", "the filter is not understood"),
    (r"may be anything", "a function that is not known"),
    (r"may fail", "it may fail, and errors are part of the answer"),
    (r"no statistics", "no statistics"),
    (r"does not follow", "the function does not follow from bounds"),
    (r"allow it", "the value lies between the bounds of a column that the table is not clustered by"),
)
"""Reasons by kind, the first that fits."""


@dataclass
class Judged:
    """What the filters come to over tables of one size."""

    totals: Counter[str] = field(default_factory=Counter)
    misses: dict[str, list[dict[str, Any]]] = field(default_factory=lambda: defaultdict(list))


def main() -> None:
    spark = spark_session()
    spark.conf.set("spark.sql.codegen.wholeStage", "false")
    with tempfile.TemporaryDirectory() as home:
        small_parts, large_parts = (every(spark, Path(home) / str(rows), rows) for rows in (ROWS, MANY))
    spark.stop()
    report(small_parts, large_parts)


def every(spark: Any, home: Path, rows: int) -> Judged:
    """All filters over all tables, of ``rows`` rows a part."""
    out = Judged()
    for table in TABLES:
        held = made(table, home, rows)
        skipped: dict[Filter, int] = {}
        for f, match in zip(filters(table), matching(spark, table, rows), strict=True):
            keep, reason = judged(held, f)
            assert not (match & ~keep).any(), f"rows lost: {f}"
            skipped[f] = int((~keep).sum())
            out.totals["filters"] += 1
            out.totals["skippable"] += int((~match).sum())
            out.totals["skipped"] += skipped[f]
            if (left := int((keep & ~match).sum())) > 0:
                out.misses[kind(reason)].append(
                    {"filter": str(f), "parts_missed": left, "skipped": skipped[f], "reason": reason}
                )
        if "--floors" in sys.argv and rows == ROWS:
            raise_floors(table, skipped)
    return out


def judged(held: Any, f: Filter) -> tuple[np.ndarray[Any, np.dtype[np.bool_]], str]:
    """Which parts would be read, and what ``explain`` says about those that are."""
    mask = np.zeros(TABLES[f.table][1], dtype=np.bool_)
    try:
        found = plan(held, f)
    except Exception as error:  # noqa: BLE001  # a filter that is refused skips nothing
        return ~mask, f"could not be read: {error}"
    mask[found.parts.table["segment"].to_numpy()] = True
    report = found.report
    reasons = [e["reason"] for e in report.not_skipped_because] or [e["rest"] for e in report.because if e["rest"]]
    return mask, "; ".join(reasons)


def kind(reason: str) -> str:
    return next((name for pattern, name in KINDS if re.search(pattern, reason)), "other")


def raise_floors(table: str, skipped: dict[Filter, int]) -> None:
    path = HERE / f"{table}.sql"
    lines = path.read_text().splitlines()
    for f, count in skipped.items():
        lines[f.line] = f"{max(count, f.floor):2d} | {f.text}"
    path.write_text("\n".join(lines) + "\n")


def report(small_parts: Judged, large_parts: Judged) -> None:
    figures = [
        Figure("filters", small_parts.totals["filters"], ""),
        *shares(small_parts, ""),
        *shares(large_parts, f", parts of {MANY:,} rows"),
    ]
    detail = {"rows_per_part": ROWS, **detail_of(small_parts), f"parts_of_{MANY}_rows": detail_of(large_parts)}
    record("corpus", figures, detail)
    for found in (small_parts, large_parts):
        for name, lost in detail_of(found)["missed_by_reason"].items():
            print(f"  {lost:6d}  {name}")


def shares(found: Judged, which: str) -> list[Figure]:
    """Of the skippable parts, how many are not skipped."""
    between = sum(m["parts_missed"] for m in found.misses.get(KINDS[-1][1], ()))
    skipped, skippable = found.totals["skipped"], found.totals["skippable"]
    return [
        Figure(f"skippable parts that are not skipped{which}", 100 - 100 * skipped / skippable, "%", GOAL),
        Figure(
            f"… but for values between the bounds, which only an index tells apart{which}",
            100 - 100 * skipped / (skippable - between),
            "%",
            GOAL,
        ),
    ]


def detail_of(found: Judged) -> dict[str, Any]:
    lost = {name: sum(m["parts_missed"] for m in entries) for name, entries in found.misses.items()}
    ordered = {
        name: sorted(found.misses[name], key=lambda m: -m["parts_missed"])
        for name in sorted(lost, key=lambda n: -lost[n])
    }
    return {
        **found.totals,
        "missed_by_reason": dict(sorted(lost.items(), key=lambda item: -item[1])),
        "misses": ordered,
    }


if __name__ == "__main__":
    main()
