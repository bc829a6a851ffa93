"""Rounds of the oracle: two tables, some settings, queries through Spark and filters embedded, for as long as is wished."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from random import Random  # noqa: TID251  # seeded by the caller
from typing import Any

from tamis.world import world
from tests.oracle import differing, malformed, streams, tour
from tests.oracle import history as h
from tests.oracle.case import Case, contents
from tests.oracle.coverage import MERGED, NARROW, WIDE, Coverage
from tests.oracle.embedded import WAYS, misread, some_limit, some_options, truths
from tests.oracle.judges import Answers, Judge
from tests.oracle.lab import Built, Lab, StepFailed
from tests.oracle.libraries import library_rows, misread_by, pushed_feature, some_library_query
from tests.oracle.predicates import Predicates
from tests.oracle.queries import CORE_SHAPES, RARE_SHAPES, Queries
from tests.oracle.query import Asked, Query
from tests.oracle.settings import ALL_OFF, USUAL, Settings, settled, some_settings
from tests.oracle.tables import Tables
from tests.spark.capabilities import measures_batches, merges_scans

SETTINGS, QUERIES, FILTERS, LIBRARY_QUERIES, MORE_LIBRARY_QUERIES = 8, 12, 20, 12, 60
"""Of a round: draws of settings, queries of each, and embedded filters and other libraries' queries over each table."""
CORE = 0.5
"""Share of queries of the shapes that a scan takes over, or that bring it join keys."""
BOTH_WAYS, RARE = 0.08, 0.02
"""Shares of queries that are asked with every switch off as well, and that call functions in Python."""

Way = tuple[dict[str, Any], int, tuple[str, ...]]
"""The options, the limit and the ways in which a filter is asked."""


@dataclass
class Found:
    case: Case
    problem: str
    where: str


@dataclass
class Progress:
    """What has been done, and what was found."""

    queries: int = 0
    filters: int = 0
    tables: int = 0
    raised: int = 0
    """Queries that plain Spark refuses: few are wanted."""
    found: list[Found] = field(default_factory=list)
    coverage: Coverage = field(default_factory=Coverage)

    seconds: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    """Spent on tables, filters, and queries on either side."""

    @contextmanager
    def timed(self, what: str) -> Iterator[None]:
        began = world().monotonic()
        yield
        self.seconds[what] += world().monotonic() - began

    def __str__(self) -> str:
        spent = ", ".join(f"{what} {seconds:.0f} s" for what, seconds in self.seconds.items())
        return f"{self.tables} tables, {self.queries} queries ({self.raised} of them errors), {self.filters} embedded filters, {len(self.found)} wrong; {spent}"


class Oracle:
    """``tell`` is called with each finding as it comes. ``libraries``: ask nothing but what other libraries ask, and more of that."""

    def __init__(
        self, lab: Lab, seed: int, tell: Callable[[Found], None], progress: Progress, *, libraries: bool = False
    ) -> None:
        self.lab, self.seed, self.tell, self.progress = lab, seed, tell, progress
        self.libraries = libraries
        self.judge = Judge(lab)
        progress.coverage.wanted += [malformed.FEATURE, *([MERGED] if merges_scans(lab.spark) else [])]
        progress.coverage.wanted += [NARROW, WIDE] if measures_batches(lab.spark) else []
        self._end = self._last = 0.0

    def run(
        self,
        seconds: float,
        first: int = 0,
        stop: Callable[[Progress], bool] = lambda _: False,
        gap_seconds: float = 0.0,
    ) -> Progress:
        """Rounds from number ``first`` until the time is up or ``stop`` says so.

        While the coverage has gaps, the run goes on for at most ``gap_seconds`` more.
        """
        self._end = world().monotonic() + seconds
        self._last = self._end + gap_seconds
        number = first
        if not self.libraries:
            self.tour(stop)
        while self._time() and not stop(self.progress):
            self.round(number)
            number += 1
        return self.progress

    def _time(self) -> bool:
        now = world().monotonic()
        return now < self._end or (now < self._last and bool(self.progress.coverage.gaps()))

    def tour(self, stop: Callable[[Progress], bool]) -> None:
        """The fixed walk past every reader, and past every source of adopted tables."""
        self._walk(tour.HISTORY, tour.steps(), stop)
        self._walk(tour.PLACED, tour.over_placed(), stop)
        for history in tour.ADOPTED:
            self._walk(history, tour.over_adopted(), stop, tour.FEW)
        if (built := self._table_of(streams.HISTORY, "tour")) is not None:
            for at, asked in enumerate(streams.walk(Random(self.seed))):
                if stop(self.progress):
                    break
                self._stream(built, asked, USUAL | {"tamis.read.lazy": ("on", "off")[at % 4 in (1, 2)]}, "tour")
            self.lab.forget(built)
        self._malformed(Random(self.seed), "tour", 3)

    def _walk(
        self,
        history: h.History,
        steps: Iterator[tuple[Settings, Query]],
        stop: Callable[[Progress], bool],
        embedded: Sequence[str] = (),
    ) -> None:
        """Ask the queries of ``steps`` through Spark, and the predicates of ``embedded`` without it."""
        try:
            built = self.lab.build(history)
        except StepFailed as failed:
            self._found(Case((history,)), str(failed), "tour")
            return
        known: dict[Query, Answers] = {}
        for settings, query in steps:
            if stop(self.progress):
                break
            with settled(self.lab.spark, settings):
                self._ask(query, [built], settings, "tour", known)
        if embedded:
            self._embedded(built, embedded, dict(USUAL), "tour", lambda _: (tour.LAZILY, 1, ("whole",)))
        self.lab.forget(built)

    def round(self, number: int) -> None:
        """Everything of a round follows from the seed and its number."""
        rng, where = Random(f"{self.seed}/{number}"), f"seed {self.seed}, round {number}"
        tables = [built for i in range(2) if (built := self._table(rng, number * 2 + i, where)) is not None]
        try:
            for at, built in enumerate(tables):
                if not self.libraries:
                    self._filters(rng, built, where)
                self._libraries(Random(f"{self.seed}/{number}/{at}"), built, where)
            if self.libraries:
                return
            for _ in range(SETTINGS if tables else 0):
                if not self._time():
                    break
                self._queries(rng, tables, some_settings(rng), where)
            for built in tables:
                if self._time():
                    self._stream(built, streams.some_stream(rng, built), some_settings(rng), where)
            if number % 2 and self._time():
                self._differing(rng, tables, where)
            if number % 3 == 0 and self._time():
                self._malformed(rng, where)
        finally:
            for built in tables:
                self.lab.forget(built)

    def _found(self, case: Case, problem: str, where: str) -> None:
        found = Found(case, problem, where)
        self.progress.found.append(found)
        self.tell(found)

    def _table(self, rng: Random, number: int, where: str) -> Built | None:
        return self._table_of(Tables(rng).history(plain=number % 2 == 0, merged=number % 2 == 1), where)

    def _table_of(self, history: h.History, where: str) -> Built | None:
        self.progress.tables += 1
        with settled(self.lab.spark, USUAL), self.progress.timed("tables"):
            try:
                built = self.lab.build(history)
            except StepFailed as failed:
                self._found(Case((history,)), str(failed), where)
                return None
            problem = contents(self.lab, built)
        self.progress.coverage.take("whole table", {built.format}, built.features)
        if problem is not None:
            self._found(Case((history,)), problem, where)
            self.lab.forget(built)
            return None
        return built

    def _stream(self, built: Built, asked: streams.Asked, settings: Settings, where: str) -> None:
        with settled(self.lab.spark, settings), self.progress.timed("streams"):
            problem = streams.wrong_stream(self.lab, built, asked)
        self.progress.coverage.take("stream", {built.format}, built.features | asked.features)
        if problem is not None:
            self._found(Case((built.history,), settings), problem, where)

    def _differing(self, rng: Random, tables: list[Built], where: str) -> None:
        """Last, because the model cannot know what became of the table."""
        for built in [built for built in tables if differing.fits(built)][:1]:
            with settled(self.lab.spark, USUAL), self.progress.timed("differing merge"):
                try:
                    problem = differing.wrong_merge(self.lab, built, rng)
                except Exception as error:
                    problem = f"{differing.FEATURE} raises {type(error).__name__}: {str(error)[:300]}"
            self.progress.coverage.features[differing.FEATURE] += 1
            if problem is not None:
                self._found(Case((built.history,)), problem, where)

    def _malformed(self, rng: Random, where: str, count: int = QUERIES) -> None:
        """Ask ``count`` queries of a table with texts that are not UTF-8."""
        settings = some_settings(rng)
        with settled(self.lab.spark, settings), malformed.some_texts(self.lab, rng) as texts:
            queries = Queries(rng, [malformed.asked_texts("oracle_t0")])
            for _ in range(count):
                query = malformed.with_malformed_literals(rng, queries.query(CORE_SHAPES))
                with self.progress.timed("texts"):
                    problem = self.judge.differs(query, [texts])
                self.progress.queries += 1
                self.progress.coverage.take(query.shape, {texts.format}, {malformed.FEATURE})
                if problem is not None:
                    self._found(Case((), settings, query), f"{malformed.FEATURE}: {query.text}: {problem}", where)

    def _filters(self, rng: Random, built: Built, where: str) -> None:
        asked = Predicates(rng, built.columns, samples=h.samples_of(built.history))
        predicates = [asked.simple() if rng.random() < 0.5 else asked.predicate() for _ in range(FILTERS)]
        settings = {
            key: value for key, value in some_settings(rng).items() if "ansi" in key or "timeZone" in key
        } | USUAL
        self._embedded(
            built,
            predicates,
            settings,
            where,
            lambda true: (some_options(rng, settings), some_limit(rng, true.total()), (rng.choice(WAYS),)),
        )

    def _embedded(
        self,
        built: Built,
        predicates: Sequence[str],
        settings: Settings,
        where: str,
        ask: Callable[[Counter[Any]], Way],
    ) -> None:
        """Ask the embedded scan, each predicate with the options, the limit and in the ways that ``ask`` gives."""
        with settled(self.lab.spark, settings):
            wanted = truths(self.lab.spark, built, predicates)
        table = built.open()
        for predicate, true in zip(predicates, wanted or (), strict=False):
            options, limit, ways = ask(true)
            self.progress.filters += 1
            with self.progress.timed("filters"):
                problem = misread(table, predicate, true, options, limit, ways)
            if problem is not None:
                self._found(
                    Case((built.history,), settings, predicate=predicate, options=options, limit=limit), problem, where
                )
        self.progress.coverage.take("embedded", {built.format}, built.features)

    def _libraries(self, rng: Random, built: Built, where: str) -> None:
        """What DuckDB, Polars and pyarrow find in the table."""
        with settled(self.lab.spark, USUAL), self.progress.timed("libraries"):
            plain = library_rows(self.lab, built)
        for _ in range(MORE_LIBRARY_QUERIES if self.libraries else LIBRARY_QUERIES):
            query = some_library_query(rng, built)
            if query is None or not self._time():
                return
            with self.progress.timed("libraries"):
                problem = misread_by(built, query, plain)
            met = {*built.features, f"queries of {query.library}", *pushed_feature(query)}
            self.progress.coverage.take("library", {built.format}, met)
            if problem is not None:
                self._found(Case((built.history,), dict(USUAL), library=query), problem, where)

    def _queries(self, rng: Random, tables: list[Built], settings: Settings, where: str) -> None:
        asked = [asked_of(f"oracle_t{i}", built) for i, built in enumerate(tables)]
        queries = Queries(rng, asked)
        with settled(self.lab.spark, settings):
            for _ in range(QUERIES):
                if not self._time():
                    return
                draw = rng.random()
                query = queries.query(RARE_SHAPES if draw < RARE else CORE_SHAPES if draw < CORE else None)
                self._ask(query, tables, settings, where)
                if rng.random() < BOTH_WAYS:
                    with settled(self.lab.spark, ALL_OFF):
                        self._ask(query, tables, settings | ALL_OFF, where)

    def _ask(
        self,
        query: Query,
        tables: list[Built],
        settings: Settings,
        where: str,
        known: dict[Query, Answers] | None = None,
    ) -> None:
        """``known``: plain answers that no setting changes."""
        with self.progress.timed("plain Spark"):
            plain, unlimited = (
                known[query] if known and query in known else self.judge.answers(query, tables, ours=False)
            )
        if known is not None:
            known[query] = plain, unlimited
        with self.progress.timed("tamis"):
            ours, _ = self.judge.answers(query, tables, ours=True)
        problem = self.judge.judged(query, tables, ours, plain, unlimited)
        self.progress.queries += 1
        self.progress.raised += plain.rows is None
        with self.progress.timed("reports"):
            met = [built for i, built in enumerate(tables) if f"oracle_t{i}" in query.text]
            features = set[str]().union(*(built.features for built in met))
            features |= {MERGED} if ours.merged else set()
            adopted = {built.name for built in met if built.adopted}
            self.progress.coverage.take(query.shape, {built.format for built in met}, features, adopted)
        if problem is not None:
            histories = tuple(built.history for built in tables)
            self._found(Case(histories, settings, query), f"{query.text}: {problem}", where)


def asked_of(name: str, built: Built) -> Asked:
    history = built.history
    focus = tuple(c for step in history if isinstance(step, h.Index) for c in step.columns)
    return Asked(name, dict(built.columns), travelled(history), h.samples_of(history), focus, tuple(h.rows_of(history)))


def travelled(history: h.History) -> tuple[int, ...]:
    """Steps to which queries may travel: those from which on the number column is there, which is all of them."""
    return tuple(range(len(history)))
