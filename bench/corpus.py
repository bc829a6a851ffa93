"""Of the parts that a filter could skip, how many it does skip: over the filters that people type (``tests/corpus``), each checked against plain Spark.

A part is skippable for a filter if a scan of it finds no row. What was not skipped is listed with the reason that ``explain`` gives.
``--floors`` raises the floors in ``tests/corpus/*.sql`` to what is skipped now; none is ever lowered.
"""

from __future__ import annotations

import re
import sys
import tempfile
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import numpy as np
from tests.corpus.filters import HERE, Filter, filters, made, matching, plan
from tests.corpus.tables import TABLES

from bench.report import Figure, record, spark_session

GOAL = 5.0
"""Percent that may be missed."""
KINDS = (
    (r"could not be read", "the filter is not understood"),
    (r"may be anything", "a function that is not known"),
    (r"may fail", "it may fail, and errors are part of the answer"),
    (r"no statistics", "no statistics"),
    (r"does not follow", "the function does not follow from bounds"),
    (r"allow it", "the value lies between the bounds of a column that the table is not clustered by"),
)
"""Reasons by kind, the first that fits."""


def main() -> None:
    spark = spark_session()
    spark.conf.set("spark.sql.codegen.wholeStage", "false")
    totals: Counter[str] = Counter()
    misses: dict[str, list[dict[str, Any]]] = defaultdict(list)
    with tempfile.TemporaryDirectory() as home:
        for table in TABLES:
            held = made(table, Path(home))
            skipped: dict[Filter, int] = {}
            for f, match in zip(filters(table), matching(spark, table), strict=True):
                keep, reason = judged(held, f)
                assert not (match & ~keep).any(), f"rows lost: {f}"
                skipped[f] = int((~keep).sum())
                totals["filters"] += 1
                totals["skippable"] += int((~match).sum())
                totals["skipped"] += skipped[f]
                if (left := int((keep & ~match).sum())) > 0:
                    misses[kind(reason)].append({"filter": str(f), "parts_missed": left, "skipped": skipped[f], "reason": reason})
            if "--floors" in sys.argv:
                raise_floors(table, skipped)
    spark.stop()
    report(totals, misses)


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


def report(totals: Counter[str], misses: dict[str, list[dict[str, Any]]]) -> None:
    between = "the value lies between the bounds of a column that the table is not clustered by"
    lost = {name: sum(m["parts_missed"] for m in entries) for name, entries in misses.items()}
    provable = totals["skippable"] - lost.get(between, 0)
    figures = [
        Figure("filters", totals["filters"], ""),
        Figure("skippable parts that are not skipped", 100 - 100 * totals["skipped"] / totals["skippable"], "%", GOAL),
        Figure("… but for values between the bounds, which only an index tells apart", 100 - 100 * totals["skipped"] / provable, "%", GOAL),
    ]
    ordered = {name: sorted(misses[name], key=lambda m: -m["parts_missed"]) for name in sorted(misses, key=lambda n: -lost[n])}
    record("corpus", figures, {**totals, "missed_by_reason": lost, "misses": ordered})
    for name in ordered:
        print(f"  {lost[name]:6d}  {name}")


if __name__ == "__main__":
    main()
