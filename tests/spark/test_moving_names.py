"""DataFrames and new queries read the fields that they mean, however names move between them."""

from __future__ import annotations

from random import Random  # noqa: TID251  # seeded
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql.functions import asc_nulls_last, expr
from tests.spark.capabilities import needs_newest
from tests.spark.conftest import Lake
from tests.spark.moving_names import Held, MovingTable, paths

pytestmark = pytest.mark.spark

READERS = ("auto", "on", "native")


def asked(frame: Any, texts: list[str], where: str | None = None) -> list[tuple[Any, ...]] | str:
    """The rows, or the condition of the error."""
    try:
        found = (frame if where is None else frame.where(where)).selectExpr(*texts).collect()
    except PySparkException as error:
        return str(error.getCondition())
    return [tuple(row) for row in found]


def check(held: Held, rng: Random) -> str | None:
    """What a random projection of ``held``, with or without a filter, returns wrongly."""
    chosen = rng.sample(list(paths(held.fields)), 2)
    columns = [held.expected(p) for p in chosen]
    leaves = [p for p in paths(held.fields) if not p.array]
    tested = rng.choice(leaves) if rng.random() < 0.5 else None
    values = held.expected(tested) if tested else None
    where, kept = None, list(range(len(held.table.rows)))
    if tested:
        known = [v for v in values or () if v is not None] or [0]
        where = f"{tested.text} = {rng.choice(known)}"
        kept = [row for row in kept if values and f"{tested.text} = {values[row]}" == where]
    got = asked(held.frame, [p.text for p in chosen], where)
    if None in columns or (tested and values is None):
        right = isinstance(got, str) and got.startswith("FENCED_")
        return None if right else f"{chosen} where {where}: {got}, expected to be fenced"
    expected = [tuple(column[row] for column in columns if column is not None) for row in kept]
    right = not isinstance(got, str) and sorted(got, key=str) == sorted(expected, key=str)
    return None if right else f"{chosen} where {where}: {got}, not {expected}"


def check_pushed(held: Held, rng: Random) -> str | None:
    """What an aggregate or the least value of ``held`` returns wrongly."""
    p = rng.choice([p for p in paths(held.fields) if not p.array])
    values = held.expected(p)
    there = [v for v in values or () if v is not None]
    expected: list[tuple[Any, ...]]
    if rng.random() < 0.5:
        texts, frame = [f"max({p.text})", f"count({p.text})"], held.frame
        expected = [(max(there, default=None), len(there))]
    else:
        texts, frame = [p.text], held.frame.orderBy(asc_nulls_last(expr(p.text))).limit(1)
        expected = [(min(there, default=None),)]
    got = asked(frame, texts)
    if values is None:
        return None if isinstance(got, str) and got.startswith("FENCED_") else f"{texts}: {got}, not fenced"
    return None if got == expected else f"{texts}: {got}, not {expected}"


def check_both(one: Held, other: Held, rng: Random) -> str | None:
    """What a UNION of two DataFrames returns wrongly. An array's field is refused where it means two fields."""
    first, second = (rng.choice([p for p in paths(held.fields) if not p.array]) for held in (one, other))
    columns = [one.expected(first), other.expected(second)]
    got = asked(one.frame.selectExpr(f"{first.text} AS v").union(other.frame.selectExpr(f"{second.text} AS v")), ["v"])
    if None in columns:
        return None if isinstance(got, str) and got.startswith("FENCED_") else f"{first}, {second}: {got}, not fenced"
    expected = [(v,) for column in columns for v in column or ()]
    right = not isinstance(got, str) and sorted(got, key=str) == sorted(expected, key=str)
    return None if right else f"{first}, {second}: {got}, not {expected}"


@pytest.mark.parametrize("seed", [0, 1, *(pytest.param(seed, marks=pytest.mark.merge) for seed in range(2, 10))])
def test_names_move_and_readers_read_what_they_meant(lake: Lake, seed: int) -> None:
    needs_newest(lake.spark)
    try:
        wrong = list(differences(lake, seed, 12))
    finally:
        lake.spark.conf.unset("tamis.read.lazy")
    assert not wrong, wrong[:3]


def differences(lake: Lake, seed: int, steps: int) -> Any:
    """Yield what is read wrongly while a table changes at random."""
    rng = Random(seed)
    table = MovingTable(lake, rng)
    held = [table.hold()]
    for step in range(steps):
        table.change()
        if rng.random() < 0.3:
            table.insert()
        if rng.random() < 0.3:
            held.append(table.hold())
        lake.spark.conf.set("tamis.read.lazy", READERS[step % len(READERS)])
        for reader in (rng.choice(held), table.hold(), rng.choice(held)):
            if (found := check(reader, rng)) is not None:
                yield step, found
        if (found := check_pushed(rng.choice([*held, table.hold()]), rng)) is not None:
            yield step, found
        if (found := check_both(rng.choice(held), rng.choice([*held, table.hold()]), rng)) is not None:
            yield step, found
