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
from tests.oracle.embedded import NOT_SAID, WAYS, misread, some_options
from tests.oracle.kinds import KINDS, embedded_array
from tests.oracle.predicates import Predicates
from tests.oracle.tables import Tables

OFF = {"tamis.stats.filter": "off", "tamis.index.use": "off", "tamis.read.lazy": "off"}
FILTERS = 60
WITHOUT_SPARK = (h.Append, h.Delete, h.Update, h.Index, h.Compact, h.Repair, h.ForgetSegments, h.Properties)


def embedded_history(rng: Random) -> h.History:
    """A history of steps that need no SQL."""
    made = Tables(rng).history(plain=rng.random() < 0.4)
    kept = [step for step in made[1:] if isinstance(step, WITHOUT_SPARK)]
    columns = h.columns_of(made)
    names = set(columns[0])
    fits = [step for step in kept if not isinstance(step, h.Append) or set(step.values) <= names]
    later = any(columns[0] != after for after in columns)
    return (made[0], *(step for step in fits if not later or isinstance(step, h.Append | h.Index | h.Compact)))


def build(history: h.History, path: Path) -> Any:
    """The table of a history, made without Spark."""
    first = history[0]
    assert isinstance(first, h.Create)
    schema = pa.schema([(name, embedded_array(kind, []).type) for name, kind in first.columns.items()])
    table = tamis.create(str(path), schema, cluster_by=first.cluster_by, format=first.format, properties=first.properties)
    for step in history[1:]:
        match step:
            case h.Append(values):
                table.append(pa.table({name: embedded_array(first.columns[name], found) for name, found in values.items()}))
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
    except tamis.InvalidInput as error:
        if error.code in NOT_SAID:
            return 0, []
        raise
    columns = {name: kind for name, kind in h.columns_of(history)[0].items() if name in table.schema.names and kind in KINDS}
    asked = Predicates(rng, columns, samples=h.samples_of(history))
    found: list[tuple[Case, str]] = []
    for _ in range(FILTERS):
        predicate = asked.simple() if rng.random() < 0.5 else asked.predicate()
        try:
            wanted = Counter(table.scan(predicate, ["k"], options=OFF).to_arrow()["k"].to_pylist())
        except tamis.InvalidInput:
            continue
        options, limit = some_options(rng, {}), rng.choice((1, 2, 7, 100))
        problem = misread(table, predicate, wanted, options, limit, (rng.choice(WAYS),))
        if problem is not None:
            found.append(
                (Case((history,), predicate=predicate, options=options, limit=limit), f"switches on and off: {predicate}: {problem}")
            )
    return FILTERS, found
