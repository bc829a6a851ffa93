"""Who tests each conjunct of a scan's filter, and by which conjuncts Spark's Parquet reader may skip data.

Every conjunct is tested on every row that leaves the scan, by at least one of these:

- ``SPARK``: the conjunct was returned by ``pushFilters``, so Spark keeps a Filter above the scan.
- ``READER``: the Python reader evaluates the conjunct and returns no row for which it is not true.
- ``STATISTICS``: the conjunct is true for every row of every part that is read.
- ``JOIN``: the conjunct holds the keys of a join above the scan, which drops all other rows.

A scan *owns* its filter when it returned nothing from ``pushFilters``. Then Spark neither tests the filter
nor asks for its columns.

Hints are conjuncts passed to Spark's Parquet reader. The reader skips row groups and pages by them, may
return rows that do not satisfy them, and treats a column outside its requested schema as NULL. So a conjunct
may be a hint only if ``SPARK`` or ``JOIN`` tests it, and hints name requested columns only.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from enum import Enum

from tamis.core.expr import Column, Expr, short_sql
from tamis.engine.part_reader import can_fail


class FilterTester(Enum):
    """Who tests a conjunct."""

    SPARK = "Spark"
    READER = "the Python reader"
    STATISTICS = "statistics"
    JOIN = "a join above the scan"


@dataclass(frozen=True, slots=True)
class FilterContract:
    """Who tests the conjuncts of one scan.

    Raises ``AssertionError`` for a conjunct that nobody tests or an unsound hint: the scan would return wrong
    rows.
    """

    conjuncts: tuple[Expr, ...]
    testers: tuple[frozenset[FilterTester], ...]
    """The testers of each conjunct."""
    hints: tuple[Expr, ...] = ()
    requested: frozenset[int] = frozenset()
    """Ids of the top-level columns that the scan returns."""

    def __post_init__(self) -> None:
        for conjunct, testers in zip(self.conjuncts, self.testers, strict=True):
            if not testers:
                raise AssertionError(f"Nobody tests {short_sql(conjunct)}.")
            if conjunct in self.hints and testers.isdisjoint((FilterTester.SPARK, FilterTester.JOIN)):
                raise AssertionError(f"{short_sql(conjunct)} is a hint, but nobody tests it above the scan.")
        for hint in self.hints:
            if hint not in self.conjuncts or not _columns_of(hint) <= self.requested:
                raise AssertionError(f"{short_sql(hint)} is a hint on a column that the scan does not return.")


def contract_of(
    conjuncts: Sequence[Expr],
    *,
    owned: bool,
    join_keys: Collection[Expr] = (),
    evaluated: Collection[Expr] | None,
    every_row_matches: bool,
    requested: frozenset[int],
) -> FilterContract:
    """The contract of a scan.

    ``evaluated`` are the conjuncts that the Python reader evaluates, or None if Spark's Parquet reader reads.
    ``every_row_matches``: statistics prove all conjuncts true for every row of every remaining part.
    """
    testers = []
    for conjunct in conjuncts:
        mine = set()
        if conjunct in join_keys:
            mine.add(FilterTester.JOIN)
        elif not owned:
            mine.add(FilterTester.SPARK)
        if evaluated is not None and conjunct in evaluated:
            mine.add(FilterTester.READER)
        if every_row_matches:
            mine.add(FilterTester.STATISTICS)
        testers.append(frozenset(mine))
    hints = _hints(conjuncts, testers, requested) if evaluated is None else ()
    return FilterContract(tuple(conjuncts), tuple(testers), hints, requested)


def _hints(
    conjuncts: Sequence[Expr], testers: Sequence[frozenset[FilterTester]], requested: frozenset[int]
) -> tuple[Expr, ...]:
    """The conjuncts that may be hints.

    Conjuncts after one that can fail are excluded: skipping a row by them would hide its error.
    """
    found = []
    for conjunct, mine in zip(conjuncts, testers, strict=True):
        if can_fail(conjunct):
            break
        if not mine.isdisjoint((FilterTester.SPARK, FilterTester.JOIN)) and _columns_of(conjunct) <= requested:
            found.append(conjunct)
    return tuple(found)


def _columns_of(expr: Expr) -> frozenset[int]:
    """Ids of the top-level columns that an expression reads."""
    return frozenset(node.ids[0] for node in expr.walk() if isinstance(node, Column))
