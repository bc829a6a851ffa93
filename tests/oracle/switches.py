"""The judge that needs no Spark: with every switch off an embedded scan gives the rows that it gives with any switches on. It asks many filters a second."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from random import Random  # noqa: TID251  # seeded by the caller
from typing import Any

import pyarrow as pa

import tamis
from tests.oracle import history as h
from tests.oracle.case import Case
from tests.oracle.embedded import NOT_SAID, WAYS, misread, some_limit, some_options
from tests.oracle.judges import plain_value
from tests.oracle.kinds import KINDS, PLAIN, embedded_array
from tests.oracle.predicates import Predicates
from tests.oracle.query import Query
from tests.oracle.tables import Tables

OFF = {"tamis.stats.filter": "off", "tamis.index.use": "off", "tamis.read.lazy": "off"}
FILTERS = 60
WITHOUT_SPARK = (h.Append, h.Delete, h.Update, h.Index, h.Compact, h.Repair, h.ForgetSegments, h.Properties)


def embedded_history(rng: Random) -> h.History:
    """A history of steps that need no SQL."""
    made = Tables(rng).history(plain=rng.random() < 0.25)
    columns = h.columns_of(made)
    same = next((at for at, after in enumerate(columns) if after != columns[0]), len(made))
    return (made[0], *(step for step in made[1:same] if isinstance(step, WITHOUT_SPARK)))


def build(history: h.History, path: Path) -> Any:
    """The table of a history, made without Spark."""
    first = history[0]
    assert isinstance(first, h.Create)
    schema = pa.schema([(name, embedded_array(kind, []).type) for name, kind in first.columns.items()])
    table = tamis.create(
        str(path), schema, cluster_by=first.cluster_by, format=first.format, properties=first.properties
    )
    for step in history[1:]:
        match step:
            case h.Append(values):
                table.append(
                    pa.table({name: embedded_array(first.columns[name], found) for name, found in values.items()})
                )
            case h.Delete(predicate):
                table.delete(predicate)
            case h.Update(sets, predicate):
                table.update(sets, predicate)
            case h.Index(name, columns, how, repair):
                table.create_index(name, list(columns), build=how)
                if repair:
                    table.repair_index(name)
            case h.Compact():
                table.compact()
            case h.Repair():
                table.repair_index()
            case h.ForgetSegments():
                for index in table.indexes():
                    if covered := list(index.covered)[::2]:
                        table.drop_index_segments(index.name, covered)
            case h.Properties(values):
                table.alter().set_properties(values).commit()
    return table


def wrong_filters(rng: Random, path: Path) -> tuple[int, list[tuple[Case, str]]]:
    """How many filters were asked of one random table, and which of them gave other rows than with every switch off."""
    history = embedded_history(rng)
    try:
        table = build(history, path)
    except Exception as error:
        if isinstance(error, tamis.InvalidInput) and error.code in NOT_SAID:
            return 0, []
        return 0, [(Case((history,)), f"the history fails: {type(error).__name__}: {str(error)[:300]}")]
    columns = {
        name: kind for name, kind in h.columns_of(history)[0].items() if name in table.schema.names and kind in KINDS
    }
    asked = Predicates(rng, columns, samples=h.samples_of(history))
    found: list[tuple[Case, str]] = []
    for _ in range(FILTERS):
        predicate = asked.simple() if rng.random() < 0.5 else asked.predicate()
        try:
            wanted = Counter(table.scan(predicate, ["k"], options=OFF).to_arrow()["k"].to_pylist())
        except tamis.InvalidInput:
            continue
        for problem, query in (
            _misaggregated(rng, table, predicate, columns),
            _misordered(rng, table, predicate, columns),
        ):
            if problem is not None:
                found.append((Case((history,), query=Query(query)), f"switches on and off: {query}: {problem}"))
        options, limit = some_options(rng, {}), some_limit(rng, wanted.total())
        problem = misread(table, predicate, wanted, options, limit, (rng.choice(WAYS),))
        if problem is not None:
            found.append(
                (
                    Case((history,), predicate=predicate, options=options, limit=limit),
                    f"switches on and off: {predicate}: {problem}",
                )
            )
    return FILTERS, found


def _misaggregated(rng: Random, table: Any, predicate: str, columns: h.Columns) -> tuple[str | None, str]:
    """Whether aggregates differ from those with every switch off, and the query that asks them in SQL."""
    plain = [name for name, kind in columns.items() if kind in PLAIN]
    groups = rng.sample(plain, rng.choice((0, 0, 1, 2)))
    x, y = rng.choice(plain), rng.choice(plain)
    measures = rng.sample(["count(*)", f"count({x})", f"min({x})", f"max({x})", f"max({y})"], rng.choice((1, 2, 3)))
    query = f"SELECT {', '.join([*groups, *measures])} FROM oracle_t0 WHERE {predicate}" + (
        f" GROUP BY {', '.join(groups)}" if groups else ""
    )
    off, on = (
        table.scan(predicate, options=options).aggregate(measures, groups)
        for options in (OFF | {"tamis.scan.aggregates": "off"}, {})
    )
    return _different(Counter(_rows(on)), Counter(_rows(off))), query


def _misordered(rng: Random, table: Any, predicate: str, columns: h.Columns) -> tuple[str | None, str]:
    """As ``_misaggregated``, for the first rows of an order."""
    keys = rng.sample([name for name, kind in columns.items() if kind in PLAIN], rng.choice((1, 1, 2)))
    order = ", ".join(f"{key} {rng.choice(('ASC', 'DESC'))} NULLS {rng.choice(('FIRST', 'LAST'))}" for key in keys)
    limit = rng.choice((1, 2, 5, 20, 60))
    query = f"SELECT {', '.join(keys)} FROM oracle_t0 WHERE {predicate} ORDER BY {order} LIMIT {limit}"
    off, on = (
        _rows(table.scan(predicate, keys, order_by=order, limit=limit, options=options).to_arrow())
        for options in (OFF | {"tamis.scan.topk": "off", "tamis.scan.limits": "off"}, {})
    )
    return (None if on == off else f"{on[:4]} and not {off[:4]}, of {len(off)}"), query


def _rows(table: pa.Table) -> list[Any]:
    return [plain_value(row) for row in zip(*(column.to_pylist() for column in table.columns), strict=True)]


def _different(on: Counter[Any], off: Counter[Any]) -> str | None:
    return None if on == off else f"lost {list(off - on)[:4]}, invented {list(on - off)[:4]}"
