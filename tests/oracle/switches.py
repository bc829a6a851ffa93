"""The oracle that needs no Spark: tables whose rows are held in memory too (``mirror``), many filters, aggregates and orders a second. They are asked with any switches on."""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from random import Random  # noqa: TID251  # seeded by the caller
from typing import Any

import pyarrow as pa

import tamis
from tests.oracle import foreign_sources
from tests.oracle import history as h
from tests.oracle.case import Case
from tests.oracle.embedded import NOT_SAID, WAYS, is_left_to_spark, misread, some_limit, some_options
from tests.oracle.kinds import PLAIN, embedded_array
from tests.oracle.lab import change_embedded, definitions
from tests.oracle.mirror import ONLY_SPARK, Mirror, Refused
from tests.oracle.planted import damage_data
from tests.oracle.predicates import Predicates
from tests.oracle.python_answers import aggregated, ordered, plain_rows
from tests.oracle.query import Query
from tests.oracle.settings import SPARK
from tests.oracle.tables import Tables

FILTERS, FILTERS_BETWEEN, DAMAGED = 45, 3, 8
"""Of a whole history, after each step, and of a table with a damaged file."""
OFF = {
    "tamis.stats.filter": "off",
    "tamis.index.use": "off",
    "tamis.read.lazy": "off",
    "tamis.scan.topk": "off",
    "tamis.scan.limits": "off",
}
ZONES = SPARK["spark.sql.session.timeZone"]


@dataclass
class Trial:
    """One random table, from its first step to its last question."""

    rng: Random
    path: Path
    asked: int = 0
    features: Counter[str] = field(default_factory=Counter)
    """Questions about what is unusual."""
    found: list[tuple[Case, str]] = field(default_factory=list)
    steps: list[h.Step] = field(default_factory=list)
    versions: list[int] = field(default_factory=list)
    mirror: Mirror = field(default_factory=Mirror)
    source: foreign_sources.Contents = field(default_factory=dict)
    """What was found where an adopted table's source lies."""
    damaged: str = ""
    """How a data file was damaged: from then on ``CorruptData`` is right too, and nothing but the rows else."""

    def run(self) -> None:
        """Takes each step here and in memory, and asks on the way; ends at the first thing that is wrong."""
        tables = Tables(self.rng)
        history = tables.history(plain=self.rng.random() < 0.15)
        columns = h.columns_of(history)
        self.focus, self.theme = tables.focus(history), tables.theme
        for at, step in enumerate(history):
            self.steps.append(step)
            before = columns[at - 1] if at else columns[0]
            if not self._step(step, before) or self.found:
                return
            self._ask(columns[at], FILTERS if at == len(history) - 1 else FILTERS_BETWEEN)
        if self.source != foreign_sources.contents(self.path):
            self._wrong("the source of the table was changed")
        if self.source and not self.found and not any(isinstance(step, h.DamageIndex) for step in self.steps):
            problems = tamis.open(str(self.path)).verify().problems.to_pylist()
            if problems:
                self._wrong(f"verify finds {problems[:2]}")
        if not self.found and self.rng.random() < 0.3:
            self.damaged = damage_data(self.path, foreign_sources.source_folder(self.path), self.rng)
            self._ask(columns[-1], DAMAGED)

    @property
    def history(self) -> h.History:
        return tuple(self.steps)

    def _step(self, step: h.Step, columns: h.Columns) -> bool:
        """Whether the history goes on: a step that must fail ends it, and so does one that cannot be said here."""
        refused, error = False, None
        try:
            self.mirror.take(step, columns)
        except tamis.TamisError as failed:
            if failed.code == ONLY_SPARK:
                return False
            refused = True
        except Refused:
            refused = True
        try:
            if isinstance(step, h.Adopt):
                foreign_sources.adopt(step, self.path)
                self.source = foreign_sources.contents(self.path)
            elif isinstance(step, h.Create):
                create(step, self.path)
            else:
                change_embedded(self.path, step, columns, self.versions)
        except tamis.TamisError as failed:
            error = failed
        except Exception as failed:
            self._wrong(f"{step!r:.200} fails: {type(failed).__name__}: {str(failed)[:300]}")
            return False
        if error is not None and error.code in NOT_SAID:  # a filter that only Spark can run ends the history
            return False
        if error is not None or refused:
            if (error is None) == refused:
                self._wrong(f"{step!r:.200}: expected {'an error' if refused else 'none'}, got {error}")
            if self.found or not isinstance(step, h.Merge):
                return False
            self.mirror.states.append(self.mirror.rows)
            self.versions.append(self.versions[-1])
            self._contents(tamis.open(str(self.path)))
            return True
        table = tamis.open(str(self.path))
        self.versions.append(table.version)
        schema = table.snapshot.head.schema
        assert schema is not None
        self.mirror.under(schema)
        self.mirror.states[-1] = self.mirror.rows
        self._contents(table)
        return True

    def _wrong(self, problem: str, **asked: Any) -> None:
        self.found.append((Case((self.history,), **asked), problem))

    def _contents(self, table: Any, version: int | None = None, rows: pa.Table | None = None) -> None:
        """The whole table is what is held in memory."""
        rows = self.mirror.rows if rows is None else rows
        wanted, got = Counter(plain_rows(rows)), Counter(plain_rows(table.scan(version=version).to_arrow()))
        if wanted != got:
            problem = (
                f"the table lost {list(wanted - got)[:2]}, invented {list(got - wanted)[:2]}, of {rows.num_rows} rows"
            )
            self._wrong(f"after {self.steps[-1]!r:.300}: {problem}")

    # --- questions ---

    def _ask(self, columns: h.Columns, count: int) -> None:
        rng, table = self.rng, tamis.open(str(self.path))
        asked = Predicates(
            rng, columns, samples=h.samples_of(self.history), focus=self.focus, rows=h.rows_of(self.history)
        )
        plain = [name for name, kind in columns.items() if kind in PLAIN]
        for _ in range(count):
            self.asked += 1
            self.features.update(h.features_of(self.history))
            ways = (self._rows, self._rows, self._columns, self._aggregates, self._order)
            way = rng.choice((*ways, self._aggregates, self._aggregates) if self.theme == "trimmed" else ways)
            special = {"apart": asked.everything, "trimmed": asked.everything, "indexed": asked.selective}.get(
                self.theme, asked.simple
            )
            predicate = rng.choice(
                (special, special, special, asked.everything, asked.simple, asked.span, asked.predicate)
            )()
            options: dict[str, Any] = {"timezone": "UTC", "ansi": True}
            if rng.random() < 0.2:
                options = {"timezone": rng.choice(ZONES), "ansi": rng.random() < 0.5}
            try:
                rows = self.mirror.rows.filter(
                    pa.array(self.mirror.true(predicate, zone=options["timezone"], ansi=options["ansi"]))
                )
            except (Refused, tamis.InvalidInput):
                continue
            options |= {key: value for key, value in some_options(rng, {}).items() if key.startswith("tamis.")}
            if self.theme == "indexed" and rng.random() < 0.6:
                options["tamis.index.use"] = rng.choice(("lookup", "plan"))
            try:
                way(table, predicate, rows, options, plain)
                self.features.update([f"damaged data, {self.damaged}: right"] * bool(self.damaged))
            except tamis.CorruptData as error:
                self.features[f"damaged data, {self.damaged}: refused"] += 1
                if not self.damaged:
                    self._wrong(f"{predicate} raises {error.code}", predicate=predicate, options=options)
            except tamis.InvalidInput as error:
                if not is_left_to_spark(error):
                    self._wrong(
                        f"{predicate} raises {error.code}: {str(error)[:200]}", predicate=predicate, options=options
                    )
            except Exception as error:
                self._wrong(
                    f"{predicate} raises {type(error).__name__}: {str(error)[:200]}",
                    predicate=predicate,
                    options=options,
                )
            if self.found:
                return

    def _rows(self, table: Any, predicate: str, rows: pa.Table, options: dict[str, Any], plain: list[str]) -> None:
        limit = some_limit(self.rng, rows.num_rows)
        problem = misread(
            table,
            predicate,
            Counter(rows["k"].to_pylist()),
            options,
            limit,
            (self.rng.choice((*WAYS, "limit", "limited count")),),
            (tamis.CorruptData,) if self.damaged else (),
        )
        if problem is not None:
            self._wrong(f"{predicate} with {options}: {problem}", predicate=predicate, options=options, limit=limit)

    def _columns(self, table: Any, predicate: str, rows: pa.Table, options: dict[str, Any], plain: list[str]) -> None:
        names = self.rng.sample(rows.column_names, self.rng.randrange(1, min(4, len(rows.column_names)) + 1))
        got = table.scan(predicate, names, options=options).to_arrow()
        self._judge(f"SELECT {', '.join(names)} FROM oracle_t0 WHERE {predicate}", Counter(plain_rows(got)), Counter(plain_rows(rows.select(names))), options)  # fmt: skip

    def _aggregates(
        self, table: Any, predicate: str, rows: pa.Table, options: dict[str, Any], plain: list[str]
    ) -> None:
        rng = self.rng
        groups = rng.sample(plain, min(len(plain), rng.choice((0, 0, 1, 2))))
        focus = [c for c in self.focus if c in plain]
        x, y = rng.choice(focus if focus and rng.random() < 0.5 else plain), rng.choice(plain)
        measures = rng.sample(
            list(dict.fromkeys(("count(*)", f"count({x})", f"min({x})", f"max({x})", f"max({y})"))),
            rng.choice((1, 2, 3)),
        )
        got = table.scan(predicate, options=options).aggregate(measures, groups)
        text = f"SELECT {', '.join([*groups, *measures])} FROM oracle_t0 WHERE {predicate}"
        self._judge(text + (f" GROUP BY {', '.join(groups)}" if groups else ""), Counter(plain_rows(got)), aggregated(rows, measures, groups), options)  # fmt: skip

    def _order(self, table: Any, predicate: str, rows: pa.Table, options: dict[str, Any], plain: list[str]) -> None:
        rng = self.rng
        focus = [c for c in self.focus if c in plain]
        names = rng.sample(focus if focus and rng.random() < 0.5 else plain, 1)
        names += [] if rng.random() < 0.6 else rng.sample(plain, 1)
        keys = [(name, rng.random() < 0.5, rng.random() < 0.5) for name in dict.fromkeys(names)]
        there = len(rows[names[0]]) - rows[names[0]].null_count
        limit = rng.choice(
            (1, 2, 3, 9, 20, max(there, 1), there + 1, *(rng.randrange(1, rows.num_rows + 3) for _ in range(4)))
        )
        order = ", ".join(
            f"{name} {'DESC' if down else 'ASC'} NULLS {'FIRST' if first else 'LAST'}" for name, down, first in keys
        )
        shown = [name for name, _, _ in keys]
        got = plain_rows(table.scan(predicate, shown, order_by=order, limit=limit, options=options).to_arrow())
        wanted = ordered(rows, keys, limit)
        if got != wanted:
            text = f"SELECT {', '.join(shown)} FROM oracle_t0 WHERE {predicate} ORDER BY {order} LIMIT {limit}"
            at = next(
                (i for i, (a, b) in enumerate(zip(got, wanted, strict=False)) if a != b), min(len(got), len(wanted))
            )
            self._wrong(
                f"{text}: row {at} is {got[at : at + 1]} and should be {wanted[at : at + 1]}, of {len(wanted)}",
                query=Query(text),
            )

    def _judge(self, text: str, got: Counter[Any], wanted: Counter[Any], options: dict[str, Any]) -> None:
        if got != wanted:
            self._wrong(
                f"{text} with {options}: lost {list(wanted - got)[:4]}, invented {list(got - wanted)[:4]}",
                query=Query(text),
            )


def create(step: h.Create, path: Path) -> None:
    schema: Any = pa.schema([(name, embedded_array(kind, []).type) for name, kind in step.columns.items()])
    if step.generated or "char" in step.columns.values():
        schema = ", ".join(definitions(step))
    tamis.create(str(path), schema, cluster_by=step.cluster_by, format=step.format, properties=step.properties)


def wrong_filters(rng: Random, path: Path) -> tuple[Trial, list[tuple[Case, str]]]:
    """One random table that was asked questions, and what was wrong."""
    trial = Trial(rng, path)
    try:
        trial.run()
    finally:
        shutil.rmtree(path, ignore_errors=True)
        foreign_sources.forget(path)
    return trial, [(case, f"without Spark: {problem}") for case, problem in trial.found]


def main(arguments: list[str]) -> int:
    """``python -m tests.oracle.switches SEED NUMBER``: one table again."""
    with tempfile.TemporaryDirectory() as home:
        _, found = wrong_filters(table_rng(int(arguments[0]), int(arguments[1])), Path(home) / "t")
    for _, problem in found:
        print(f"WRONG: {problem[:500]}")
    return int(bool(found))


def table_rng(seed: int, number: int) -> Random:
    """From which all of a table and its questions follows."""
    return Random(f"{seed}/{number}/switches")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
