"""Judges: the same query here and in plain Spark, or two ways of asking here, must give the same rows or the same error."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

from tests.oracle.lab import Lab
from tests.oracle.query import ORDERED, SOME, Query, named
from tests.oracle.settings import COMPILED, settled

Rows = list[tuple[Any, ...]]
CONDITION = re.compile(r"\[([A-Z][A-Z_]+(?:\.[A-Z_]+)?)\]")
LARGEST = "spark.sql.files.maxPartitionBytes"
UNJUDGED = ("FAILED_READ_FILE", "INTERNAL_ERROR")
"""Conditions with which plain Spark fails on a defect of its own."""

ONE_ROW, MOST_ROWS = "oracle_one_row", 300
"""The view of one row of a table, and of how many rows of it each is asked about alone."""


@dataclass(frozen=True)
class Answer:
    """Rows and the types of their columns, or the condition of an error."""

    rows: Rows | None
    types: tuple[str, ...] = ()
    error: str = ""
    detail: str = ""
    merged: bool = False
    """Whether Spark merged subqueries of the query."""

    def __str__(self) -> str:
        if self.rows is None:
            return f"raises {self.error} ({self.detail[:160]})"
        shown = ", ".join(str(row) for row in self.rows[:4])
        return f"{len(self.rows)} rows: {shown}{' …' if len(self.rows) > 4 else ''}"


class TwoSided(Protocol):
    """A table here and in plain Spark."""

    def ours(self, step: int | None = None) -> str:
        """What names the table in SQL, as it was after ``step``."""

    def plain(self, step: int | None = None) -> str:
        """What names its rows in plain Parquet."""


Answers = tuple[Answer, Answer | None]
"""Of a query, and of it without its limit."""


def plain_value(value: Any) -> Any:
    """A value that is equal, and hashes alike, where Spark takes two values for one: one NaN, one zero."""
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else value + 0.0
    if isinstance(value, dict):
        return tuple(sorted((str(k), plain_value(v)) for k, v in value.items()))
    if isinstance(value, list | tuple):
        return tuple(plain_value(v) for v in value)
    if isinstance(value, bytearray):
        return bytes(value)
    return value if isinstance(value, str | int | bytes | type(None)) else str(value)


REPEATED = 3
"""Of so many queries one is asked twice: its second answer comes from remembered plans."""


def condition(error: BaseException) -> tuple[str, str]:
    """What an error is known by, and its text."""
    found = getattr(error, "getCondition", lambda: None)()
    text = str(error)
    if not found and (named_in := CONDITION.search(text)):
        found = named_in[1]
    return found or type(error).__name__, text


def ask(spark: Any, text: str, args: dict[str, Any]) -> Answer:
    try:
        frame = spark.sql(text, args=args) if args else spark.sql(text)
        rows = [plain_value(tuple(row)) for row in frame.collect()]
        return Answer(rows, tuple(kind for _, kind in frame.dtypes), merged=has_merged_subqueries(frame, text))
    except Exception as error:
        return Answer(None, error=(known := condition(error))[0], detail=known[1])


def has_merged_subqueries(frame: Any, text: str) -> bool:
    """Whether the plan of ``frame`` computes several subqueries of ``text`` in one."""
    return text.count("(SELECT") > 1 and "mergedValue" in frame._jdf.queryExecution().optimizedPlan().toString()


class Judge:
    """Asks queries about tables; ``asked`` counts them."""

    def __init__(self, lab: Lab) -> None:
        self.lab, self.asked = lab, 0

    def answers(self, query: Query, tables: Sequence[TwoSided], *, ours: bool) -> Answers:
        """The answer, and that of the query without its limit where the judge needs it."""
        spark = self.lab.spark

        def here(text: str) -> str:
            return named(text, lambda n, step: tables[n].ours(step) if ours else tables[n].plain(step))

        spark.conf.set("spark.sql.parquet.filterPushdown", str(ours).lower())
        largest = spark.conf.get(LARGEST)
        if not ours:
            spark.conf.set(LARGEST, "1g")  # Spark would read Parquet with a task per range of bytes
        try:
            for statement in query.before:
                spark.sql(here(statement)).collect()
            unlimited = None if query.unlimited is None or ours else ask(spark, here(query.unlimited), query.args)
            return ask(spark, here(query.text), query.args), unlimited
        except Exception as error:
            return Answer(None, error=(known := condition(error))[0], detail=known[1]), None
        finally:
            spark.conf.set(LARGEST, largest)
            for statement in query.after:
                with suppress(Exception):  # what failed before was never made
                    spark.sql(here(statement)).collect()

    def differs(self, query: Query, tables: Sequence[TwoSided]) -> str | None:
        """What is wrong with the answer here; None where nothing is."""
        self.asked += 1
        plain, unlimited = self.answers(query, tables, ours=False)
        ours, _ = self.answers(query, tables, ours=True)
        problem = self.judged(query, tables, ours, plain, unlimited)
        if problem is not None or self.asked % REPEATED:
            return problem
        again, _ = self.answers(query, tables, ours=True)
        problem = self.judged(query, tables, again, plain, unlimited)
        return problem and f"asked again: {problem}"

    def judged(
        self, query: Query, tables: Sequence[TwoSided], ours: Answer, plain: Answer, unlimited: Answer | None
    ) -> str | None:
        """What is wrong with ``ours``. Where plain Spark alone fails, it is asked once more with compiled filters.

        Where both fail, but of two rows, which of them comes first is nobody's promise.
        Of ``a AND b`` with NULL for ``a``, Spark's interpreter evaluates ``b``, which may fail; its compiled filters do not.
        """
        problem = compare(query, ours, plain, unlimited)
        if problem is None or plain.rows is not None:
            return problem
        if ours.rows is None:
            return None if self.some_row_raises(ours.error, query, tables) else problem
        with settled(self.lab.spark, COMPILED):
            plain, unlimited = self.answers(query, tables, ours=False)
        return compare(query, ours, plain, unlimited)

    def some_row_raises(self, error: str, query: Query, tables: Sequence[TwoSided]) -> bool:
        """Whether plain Spark raises ``error`` for the query of one row of a table alone."""
        if query.before:
            return False
        spark = self.lab.spark
        for number, table in enumerate(tables):
            text = named(query.text, partial(_one_row_of, number, tables))
            keys = spark.sql(f"SELECT DISTINCT k FROM {table.plain()} WHERE k IS NOT NULL").collect()
            for (key,) in keys[:MOST_ROWS]:
                spark.sql(f"SELECT * FROM {table.plain()} WHERE k = {key}").createOrReplaceTempView(ONE_ROW)
                if ask(spark, text, query.args).error == error:
                    return True
        return False


def _one_row_of(number: int, tables: Sequence[TwoSided], asked: int, step: int | None) -> str:
    """What stands for a table in a query, if the current state of one has the rows of one key only."""
    return ONE_ROW if asked == number and step is None else tables[asked].plain(step)


def compare(query: Query, ours: Answer, plain: Answer, unlimited: Answer | None) -> str | None:
    """Describe what is wrong with ``ours``; None where nothing is."""
    both_answers = f"tamis {ours}; plain Spark {plain}"
    if plain.error.startswith(UNJUDGED):
        return None
    if ours.rows is None or plain.rows is None:
        same = ours.rows is None and plain.rows is None and ours.error == plain.error
        if query.judge == SOME and unlimited is not None and unlimited.rows is None:
            same = True  # nobody promises how far a limit reads before it meets the failing row
        return None if same else both_answers
    if ours.types != plain.types:
        return f"types: {ours.types} and {plain.types}"
    if query.judge == SOME:
        if len(ours.rows) != len(plain.rows):
            return both_answers
        if unlimited is not None and unlimited.rows is not None and Counter(ours.rows) - Counter(unlimited.rows):
            lacking = list(Counter(ours.rows) - Counter(unlimited.rows))
            return f"rows that the query without limit lacks: {lacking[:4]}; {both_answers}"
        return None
    if query.judge == ORDERED:
        return None if ours.rows == plain.rows else _first_difference(ours.rows, plain.rows, both_answers)
    lost, invented = Counter(plain.rows) - Counter(ours.rows), Counter(ours.rows) - Counter(plain.rows)
    return f"lost {list(lost)[:4]}, invented {list(invented)[:4]}; {both_answers}" if lost or invented else None


def _first_difference(ours: Rows, plain: Rows, both_answers: str) -> str:
    at = next((i for i, (a, b) in enumerate(zip(ours, plain, strict=False)) if a != b), min(len(ours), len(plain)))
    return f"row {at} is {ours[at : at + 1]} and should be {plain[at : at + 1]}; {both_answers}"
