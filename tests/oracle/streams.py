"""Streams over a table: at once, in small steps, restarted after a failure, aggregated. All micro-batches together have the rows of a query."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from random import Random  # noqa: TID251  # seeded by the caller
from typing import Any

from tamis.world import new_id, world
from tests.oracle import history as h
from tests.oracle.judges import Answer, ask, condition, plain_value
from tests.oracle.kinds import KINDS, SPAN
from tests.oracle.lab import Built, Lab
from tests.oracle.predicates import Predicates

WAYS = ("stream at once", "stream in steps", "stream restarted", "stream aggregated")
NOW = "stream under now()"
FEATURES = (*WAYS, NOW)
Rows = Counter[tuple[Any, ...]]
HISTORY: h.History = (
    h.Create({"k": "bigint", "a": "int", "at": "timestamp"}),
    *(
        h.Append({"k": [*rows], "a": [k % 7 for k in rows], "at": [KINDS["timestamp"].value(k) for k in rows]})
        for rows in (range(at * 20, at * 20 + 20) for at in range(3))
    ),
)
"""What the fixed walk streams from."""


class Failed(Exception):
    """Raised by a consumer, so that its query is restarted."""


@dataclass(frozen=True)
class Asked:
    """A stream to be read: ``way`` is one of ``WAYS``."""

    way: str
    columns: tuple[str, ...]
    condition: str

    @property
    def features(self) -> set[str]:
        return {self.way, *([NOW] if "now()" in self.condition else [])}

    def __str__(self) -> str:
        return f"{self.way}, SELECT {', '.join(self.columns)} WHERE {self.condition}"


def since(rng: Random, column: str) -> str:
    """A comparison of a column of instants with one that is so many hours ago."""
    passed = world().now_micros() // 3_600_000_000 - int(KINDS["timestamp"].value(0).timestamp()) // 3600
    hours = passed - rng.randrange(-2, SPAN + 2)
    return f"{column} {rng.choice(('>', '>=', '<', '<='))} now() - INTERVAL {hours} HOURS"


def some_stream(rng: Random, built: Built) -> Asked:
    """A random stream over a table."""
    asked = Predicates(rng, built.columns, samples=h.samples_of(built.history))
    predicate = rng.choice((asked.simple, asked.simple, asked.predicate, asked.everything))()
    instants = [name for name, kind in built.columns.items() if kind == "timestamp"]
    if instants and rng.random() < 0.7:
        word = rng.choice((" AND ", " OR "))
        predicate = rng.choice((since(rng, instants[0]), f"({since(rng, instants[0])}{word}{predicate})"))
    names = rng.sample(list(built.columns), rng.choice((1, 2, len(built.columns))))
    way = rng.choice(WAYS)
    if way == WAYS[-1] or any(built.columns[name] in {"map", "keyed", "variant", "typed"} for name in names):
        names = ["k"]
    return Asked(way, tuple(names), predicate)


def walk(rng: Random) -> list[Asked]:
    """The streams of the fixed walk, over ``HISTORY``."""
    conditions = ("k >= 37 AND a > 2", f"{since(rng, 'at')} AND a < 6")
    return [Asked(way, ("k", "a"), text) for way in WAYS for text in conditions]


def wrong_stream(lab: Lab, built: Built, asked: Asked) -> str | None:
    """What is wrong with a stream; None where nothing is, or where plain Spark raises."""
    text = f"SELECT {', '.join(asked.columns)} FROM {built.plain()} WHERE {asked.condition}"
    if asked.way == WAYS[-1]:
        text = f"SELECT {asked.columns[0]}, count(*) FROM ({text}) GROUP BY 1"
    before = ask(lab.spark, text, {})
    try:
        found = _read(lab, built, asked)
    except Exception as error:
        return None if before.rows is None else f"{asked} raises {condition(error)[0]}: {str(error)[:300]}"
    after = ask(lab.spark, text, {})
    if before.rows is None or before.rows != after.rows:
        return None
    return _compared(asked, found, before)


def _compared(asked: Asked, found: Rows, plain: Answer) -> str | None:
    wanted = Counter(plain.rows or ())
    lost, invented = wanted - found, found - wanted
    if not lost and not invented:
        return None
    return f"{asked}: lost {list(lost)[:4]}, invented {list(invented)[:4]}, of {wanted.total()} rows"


def _read(lab: Lab, built: Built, asked: Asked) -> Rows:
    """The rows of all micro-batches, each once."""
    batches: dict[int, Rows] = {}
    failing = asked.way == WAYS[2]

    def take(df: Any, epoch: int) -> None:
        nonlocal failing
        rows = df.groupBy(asked.columns[0]).count() if asked.way == WAYS[-1] else df
        seen = Counter(plain_value(tuple(row)) for row in rows.collect())
        if batches.setdefault(epoch, seen) != seen:
            raise AssertionError(f"Micro-batch {epoch} has other rows when it is repeated.")
        if failing and epoch == 0:
            failing = False
            raise Failed

    folder = lab.folder / "checkpoints" / new_id()
    try:
        _drain(lab, built, asked, take, str(folder))
        if asked.way == WAYS[2]:
            built.open().alter().set_properties({"oracle": new_id()}).commit()  # a commit that adds no rows
            _drain(lab, built, asked, take, str(folder))
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return sum(batches.values(), Counter())


def _drain(lab: Lab, built: Built, asked: Asked, take: Callable[[Any, int], None], checkpoint: str) -> None:
    """Runs the query until it has read the table, or its consumer fails on purpose."""
    reader = lab.spark.readStream
    if asked.way in WAYS[1:3]:
        reader = reader.option("maxFilesPerTrigger", 1)
    frame = reader.table(built.ours()).where(asked.condition).select(*asked.columns)
    query = frame.writeStream.foreachBatch(take).option("checkpointLocation", checkpoint)
    running = query.trigger(availableNow=True).start()
    try:
        running.awaitTermination()
    except Exception as error:
        if Failed.__name__ not in str(error):
            raise
    finally:
        running.stop()
