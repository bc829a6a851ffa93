"""Under ``tamis.stats.filter=off`` no statistic says that a concurrent commit has nothing to do with a change."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

import tamis
from tamis.core.expr import Expr, conjuncts_of, parse_predicate
from tamis.core.stats.statistics_budget import trim_statistics
from tamis.engine import operations
from tamis.engine.part_writer import trimmed_statistics
from tamis.engine.scan import Options
from tamis.errors import Conflict
from tests.operations.making import filled, rows


def lying(*arguments: Any) -> Any:
    """Claim that every value is a million."""
    left = trim_statistics(*arguments)
    wrong = {
        name: pa.array([10**6], array.type) if pa.types.is_integer(array.type) and "|long|" in name else array
        for name, array in left.statistics.items()
    }
    return replace(left, statistics=wrong)


Verb = Callable[[tamis.Table, Any, tuple[Expr, ...], Options], Any]


def overwritten(table: tamis.Table, snapshot: Any, wanted: tuple[Expr, ...], options: Options) -> Any:
    data = rows(10, 1).to_reader()
    return operations.overwrite(table.store, snapshot, snapshot.head, data, wanted, options)


VERBS: dict[str, Verb] = {
    "delete": lambda t, s, wanted, options: operations.delete(t.store, s, wanted, options),
    "overwrite": overwritten,
}


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("use", ["on", "off"])
def test_wrong_bounds_of_a_concurrent_append_hide_no_conflict(
    verb: str, use: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = filled(1)
    before = table.refresh().snapshot
    monkeypatch.setattr(trimmed_statistics, "trim_statistics", lying)
    table.append(rows(10, 1))  # a row that the filter matches
    assert before.head.schema is not None
    wanted = conjuncts_of(parse_predicate("ts = 10", before.head.schema))
    options = Options.resolve({"tamis.stats.filter": use}, None, before.head.properties)
    if use == "on":  # the planted bounds are believed, and the row of the append is missed
        VERBS[verb](table, before, wanted, options)
        return
    with pytest.raises(Conflict):
        VERBS[verb](table, before, wanted, options)
