"""Random whole queries over given tables."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random  # noqa: TID251  # seeded by the caller
from typing import Any

from tests.oracle.joins import JOIN_SHAPES, narrow_join
from tests.oracle.kinds import KINDS, NUMBERS, PLAIN, some_literal
from tests.oracle.predicates import Predicates
from tests.oracle.query import EXACT, ORDERED, SOME, Asked, Query


class Queries:
    """Queries over given tables, one a call."""

    def __init__(self, rng: Random, tables: list[Asked]) -> None:
        self.rng, self.tables = rng, tables
        self.t = self.u = tables[0]
        self.p = Predicates(rng, {})

    def query(self, shapes: Sequence[Callable[[Any], Query]] | None = None) -> Query:
        """A query of any shape, or of one of these."""
        rng = self.rng
        self.t, self.u = rng.choice(self.tables), rng.choice(self.tables)
        self.p = Predicates(rng, self.t.columns, samples=self.t.samples, focus=self.t.focus, rows=self.t.rows)
        make = rng.choice(shapes or _SHAPES)
        made = make(self)
        return made if made.shape else Query(**{**vars(made), "shape": make.__name__.strip("_")})

    # --- pieces ---

    def where(self, prefix: str = "", table: Asked | None = None) -> str:
        """A filter: often one that a scan may own, sometimes any."""
        table = table or self.t
        asked = Predicates(self.rng, table.columns, prefix, table.samples, table.focus, table.rows)
        return self.rng.choice(
            (
                asked.simple,
                asked.simple,
                asked.span,
                asked.selective,
                asked.everything,
                asked.predicate,
                asked.predicate,
            )
        )()

    def maybe(self) -> str:
        return f" WHERE {self.where()}" if self.rng.random() < 0.8 else ""

    def some(self, *kinds: str, most: int = 3) -> list[str]:
        """One to ``most`` columns of the kinds."""
        fit = [c for c, kind in self.t.columns.items() if kind in (kinds or PLAIN)] or ["k"]
        return self.rng.sample(fit, min(len(fit), self.rng.randrange(1, most + 1)))

    def any(self) -> list[str]:
        """Columns of any kind that may be collected and compared."""
        return self.some(*KINDS)

    def items(self) -> list[str]:
        """A select list of columns and expressions."""
        found = self.any()
        if self.rng.random() < 0.4:
            found.append(self.rng.choice((self.p.number(), self.p.text(), self.p.predicate(1))) + " AS e")
        return found

    def order(self, columns: list[str]) -> str:
        return ", ".join(
            f"{c} {self.rng.choice(('', 'ASC', 'DESC'))} {self.rng.choice(('', 'NULLS FIRST', 'NULLS LAST'))}"
            for c in columns
        )

    def measures(self) -> list[str]:
        """Aggregates whose value does not depend on the order of rows."""
        rng, x = self.rng, self.some()[0]
        w, any_column = self.p.whole(), self.any()[0]
        options = ["count(*)", f"count({any_column})", f"min({x})", f"max({x})", f"sum({w})", f"count(DISTINCT {x})", f"min({x}), max({x})", f"count_if({self.where()})",
                   f"avg({w})", f"bool_or({x} IS NULL)", f"count(*) FILTER (WHERE {self.where()})", f"max({x}) FILTER (WHERE {self.where()})", f"sum({w}) FILTER (WHERE {self.where()})",
                   f"sort_array(collect_set({x}))"]  # fmt: skip
        simple = rng.random() < 0.5
        return rng.sample(options[:4] if simple else options, rng.choice((1, 2, 3)))

    def n(self) -> int:
        return self.rng.choice((0, 1, 2, 5, 16, 50, 1000))

    def small_limit(self) -> int:
        """Return a limit that is often as small as one that people type to look at a table."""
        return self.rng.choice((1, 3, 10, 20)) if self.rng.random() < 0.5 else self.n()

    # --- one table ---

    def _project(self) -> Query:
        return Query(f"SELECT {', '.join(self.items())} FROM {self.t.name}{self.maybe()}")

    def _filter_left_out(self) -> Query:
        """The filter's columns are not selected."""
        column = self.any()[0]
        fit = {c: kind for c, kind in self.t.columns.items() if c != column} or self.t.columns
        asked = Predicates(self.rng, fit, samples=self.t.samples)
        return Query(f"SELECT {column} FROM {self.t.name} WHERE {asked.simple()}")

    def _limit(self) -> Query:
        rng, columns, n = self.rng, ", ".join(self.items()), self.n()
        text = f"SELECT {columns} FROM {self.t.name}{self.maybe()}"
        tail = rng.choice(
            (
                f" LIMIT {n}",
                f" LIMIT {n}",
                f" LIMIT {n} OFFSET {rng.choice((1, 3, 20))}",
                f" OFFSET {rng.choice((1, 5, 40))}",
            )
        )
        return Query(text + tail, SOME, unlimited=text)

    def _count_of_limit(self) -> Query:
        return Query(
            f"SELECT count(*) FROM (SELECT {self.some()[0]} FROM {self.t.name}{self.maybe()} LIMIT {self.n()})"
        )

    def _distinct(self) -> Query:
        text = f"SELECT DISTINCT {', '.join(self.some())} FROM {self.t.name}{self.maybe()}"
        if self.rng.random() < 0.3:
            return Query(f"{text} LIMIT {self.n()}", SOME, unlimited=text)
        return Query(text)

    def _top(self) -> Query:
        keys = self.some()
        shown = self.rng.sample(keys, self.rng.randrange(1, len(keys) + 1))
        offset = f" OFFSET {self.rng.choice((1, 4))}" if self.rng.random() < 0.15 else ""
        return Query(
            f"SELECT {', '.join(shown)} FROM {self.t.name}{self.maybe()} "
            f"ORDER BY {self.order(keys)} LIMIT {self.small_limit()}{offset}",
            ORDERED if shown == keys else EXACT,
        )

    def _top_rows(self) -> Query:
        """Ties are told apart by the row's number, which merges may double."""
        keys = [*self.some(), "k"]
        text = f"SELECT {', '.join([*keys, *self.any()])} FROM {self.t.name}{self.maybe()}"
        return Query(f"SELECT {', '.join(keys)} FROM ({text} ORDER BY {self.order(keys)} LIMIT {self.n()})")

    def _sorted(self) -> Query:
        keys = self.some()
        return Query(f"SELECT {', '.join(keys)} FROM {self.t.name}{self.maybe()} ORDER BY {self.order(keys)}", ORDERED)

    def _aggregate(self) -> Query:
        return Query(f"SELECT {', '.join(self.measures())} FROM {self.t.name}{self.maybe()}")

    def _group(self) -> Query:
        keys = self.some(most=2)
        having = f" HAVING count(*) > {self.rng.choice((0, 1, 3))}" if self.rng.random() < 0.2 else ""
        return Query(
            f"SELECT {', '.join([*keys, *self.measures()])} FROM {self.t.name}{self.maybe()} GROUP BY {', '.join(keys)}{having}"
        )

    def _group_by_expression(self) -> Query:
        e = self.rng.choice((self.p.text(), self.p.predicate(1), self.p.number()))
        return Query(
            f"SELECT {e} AS e, count(*), {', '.join(self.measures())} FROM {self.t.name}{self.maybe()} GROUP BY {e}"
        )

    def _rollup(self) -> Query:
        keys = self.some(most=3)
        how = self.rng.choice(("ROLLUP({})", "CUBE({})", "GROUPING SETS (({}), ())")).format(", ".join(keys))
        return Query(
            f"SELECT {', '.join(keys)}, grouping_id(), {', '.join(self.measures())} FROM {self.t.name}{self.maybe()} GROUP BY {how}"
        )

    def _window(self) -> Query:
        part, keys, n = self.some()[0], [*self.some(most=2), "k"], self.rng.choice((1, 2, 5))
        call = self.rng.choice(
            ("row_number()", "rank()", f"lag({keys[0]})", "count(*)", f"max({keys[0]})", "dense_rank()")
        )
        text = f"SELECT {part}, {keys[0]}, {call} OVER (PARTITION BY {part} ORDER BY {self.order(keys)}) AS w FROM {self.t.name}{self.maybe()}"
        if call in {"row_number()", "rank()"} and self.rng.random() < 0.5:
            return Query(f"SELECT * FROM ({text}) WHERE w <= {n}")
        return Query(text)

    def _sample(self) -> Query:
        rng, columns = self.rng, ", ".join(self.some())
        if rng.random() < 0.4:
            return Query(
                f"SELECT {columns} FROM {self.t.name} TABLESAMPLE ({rng.choice((0, 100))} PERCENT){self.maybe()}"
            )
        text = f"SELECT {columns} FROM {self.t.name}"
        return Query(f"{text} TABLESAMPLE ({self.n()} ROWS)", SOME, unlimited=text)

    def _explode(self) -> Query:
        arrays = [c for c, kind in self.t.columns.items() if kind == "array"]
        x = arrays[0] if arrays else "array(a, 1, NULL)"
        return Query(f"SELECT e, count(*) FROM (SELECT explode({x}) AS e FROM {self.t.name}{self.maybe()}) GROUP BY e")

    def _udf(self) -> Query:
        f, (x, _) = self.rng.choice(("oracle_udf", "oracle_pandas", "oracle_unsteady")), self.p.column(NUMBERS)
        value = f"{f}(try_cast({x} AS BIGINT))"
        return Query(self.rng.choice((f"SELECT {value} FROM {self.t.name}{self.maybe()}", f"SELECT k FROM {self.t.name} WHERE {value} > 10 AND {self.where()}",
                                      f"SELECT {value} AS e, count(*) FROM {self.t.name}{self.maybe()} GROUP BY 1")))  # fmt: skip

    def _parameter(self) -> Query:
        """The parameter is a number or a text."""
        if self.rng.random() < 0.5:
            return Query(f"SELECT s FROM {self.t.name} WHERE s >= :p LIMIT 1000" if "s" in self.t.columns else f"SELECT k FROM {self.t.name} WHERE k >= :p", args={"p": "k010" if "s" in self.t.columns else 7})  # fmt: skip
        n = self.rng.choice((0, 3, 30))
        return Query(
            f"SELECT {', '.join(self.any())} FROM {self.t.name} WHERE {self.p.column(NUMBERS)[0]} >= :p", args={"p": n}
        )

    def _variable(self) -> Query:
        kind, x = self.rng.choice((("INT", "5"), ("BIGINT", "30"), ("STRING", "'k02'")))
        column, _ = self.p.column(("string",) if kind == "STRING" else NUMBERS)
        if kind == "STRING" and self.t.columns.get(column) != "string":
            kind, x = "INT", "5"
        return Query(f"SELECT {', '.join(self.any())} FROM {self.t.name} WHERE {column} >= oracle_x AND {self.where()}",
                     before=(f"DECLARE OR REPLACE VARIABLE oracle_x {kind} DEFAULT {x}",), after=("DROP TEMPORARY VARIABLE oracle_x",))  # fmt: skip

    def _view(self) -> Query:
        keys = self.some()
        view = f"CREATE OR REPLACE TEMPORARY VIEW oracle_view AS SELECT * FROM {self.t.name}{self.maybe()}"
        text = self.rng.choice((f"SELECT {', '.join(keys)} FROM oracle_view{self.maybe()}", f"SELECT {keys[0]}, count(*) FROM oracle_view{self.maybe()} GROUP BY 1",
                                f"SELECT count(*) FROM oracle_view a JOIN oracle_view b ON a.{keys[0]} = b.{keys[0]}"))  # fmt: skip
        return Query(text, before=(view,), after=("DROP VIEW oracle_view",))

    def _cached(self) -> Query:
        made = self._view()
        return Query(
            made.text,
            before=(*made.before, "CACHE TABLE oracle_view"),
            after=("UNCACHE TABLE oracle_view", *made.after),
        )

    def _metadata(self) -> Query:
        """What bounds alone may answer."""
        x, y = self.some()[0], self.some()[0]
        return Query(
            f"SELECT min({x}), max({x}), count({y}), count(*) FROM {self.t.name}"
            + (f" WHERE {self.where()}" if self.rng.random() < 0.6 else "")
        )

    def _either(self) -> Query:
        """Alternatives of which a scan can say more and Spark's reader less; every column that is named is selected."""
        columns = {c: self.t.columns[c] for c in self.some(most=3)}
        asked = Predicates(self.rng, columns, samples=self.t.samples)
        sides = [self.rng.choice((asked.simple, asked.comparison))() for _ in range(self.rng.choice((2, 2, 3)))]
        return Query(f"SELECT {', '.join(columns)} FROM {self.t.name} WHERE {' OR '.join(sides)}")

    def _partition_checks(self) -> Query:
        """Ternary logic: what is true, false or NULL of a predicate is everything."""
        column, p = self.any()[0], self.where()
        parts = " UNION ALL ".join(
            f"SELECT {column} FROM {self.t.name} WHERE {q}" for q in (p, f"NOT {p}", f"{p} IS NULL")
        )
        return Query(parts)

    def _norec(self) -> Query:
        p = self.where()
        return Query(
            f"SELECT (SELECT count(*) FROM {self.t.name} WHERE {p}) AS kept, (SELECT count_if({p}) FROM {self.t.name}) AS counted"
        )

    def _risky(self) -> Query:
        """A predicate that fails on some rows, before or behind one that may shield it."""
        risky, other = self.p.risky(), self.where()
        both = self.rng.choice((risky, f"{risky} AND {other}", f"{other} AND {risky}", f"({risky} OR {other})"))
        shown = self.rng.choice(
            (", ".join(self.some()), ", ".join(self.some()), "count(*)", f"min({self.some()[0]}), count(*)")
        )
        return Query(f"SELECT {shown} FROM {self.t.name} WHERE {both}")

    def _session_times(self) -> Query:
        """What depends on the session's zone or its policy of patterns, and intervals that are cut off."""
        rng, t = self.rng, self.t.columns
        op = rng.choice(("=", "<>", "<", ">="))
        asked = [f"try_to_timestamp({c}, 'yyyy-MM-dd') IS NULL" for c, kind in t.items() if kind in {"string", "char"}]
        for c in (c for c, kind in t.items() if kind == "interval"):
            fields = rng.choice(("DAY", "HOUR", "DAY TO MINUTE", "MINUTE TO SECOND"))
            asked += [f"CAST({c} AS INTERVAL {fields}) {op} {some_literal(rng, 'interval')}"] * 2
        for c in (c for c, kind in t.items() if kind == "timestamp"):
            asked += [f"hour({c}) {op} {rng.randrange(24)}", f"date_format({c}, 'yyyy') {op} '{rng.choice((2023, 2024, '0001', 9999))}'",
                      f"CAST({c} AS DATE) {op} {some_literal(rng, 'date')}"]  # fmt: skip
        return Query(f"SELECT {', '.join(self.items())} FROM {self.t.name} WHERE {rng.choice(asked or [self.where()])}")

    def _values(self) -> Query:
        """A literal list that an index or a set of values may serve."""
        rng, (x, kind) = self.rng, self.p.column()
        members = ", ".join(some_literal(rng, kind) for _ in range(rng.choice((1, 2, 5, 40))))
        return Query(f"SELECT {', '.join(self.items())} FROM {self.t.name} WHERE {x} IN ({members})")


_SHAPES: list[Callable[[Any], Query]] = [
    Queries._project, Queries._filter_left_out, Queries._filter_left_out, Queries._limit, Queries._limit, Queries._count_of_limit, Queries._distinct, Queries._distinct,
    Queries._top, Queries._top, Queries._top, Queries._top_rows, Queries._sorted, Queries._aggregate, Queries._aggregate, Queries._group, Queries._group, Queries._group_by_expression,
    Queries._rollup, Queries._window, Queries._sample, Queries._explode, Queries._parameter, Queries._variable, Queries._view, Queries._cached, Queries._metadata,
    Queries._partition_checks, Queries._norec, Queries._values, Queries._values, Queries._session_times, Queries._risky, *JOIN_SHAPES,
]  # fmt: skip
CORE_SHAPES: list[Callable[[Any], Query]] = [
    Queries._project, Queries._project, Queries._filter_left_out, Queries._limit, Queries._count_of_limit, Queries._top, Queries._top, Queries._top_rows, Queries._aggregate, Queries._aggregate,
    Queries._metadata, Queries._metadata, Queries._group, Queries._values, Queries._session_times, Queries._risky, Queries._risky, Queries._either, Queries._either, narrow_join, narrow_join, narrow_join,
]  # fmt: skip
"""The shapes that scans take over, or that give scans filters or keys."""
RARE_SHAPES = [Queries._udf]
