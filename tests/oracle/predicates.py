"""Random predicates and expressions of Spark SQL over given columns. None of them fails on any row, unless ``risky`` is asked for: a leg that could fail stands behind one that keeps such rows from it."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping, Sequence
from random import Random  # noqa: TID251  # seeded by the caller
from typing import Any

from tests.oracle.kinds import KINDS, NUMBERS, PLAIN, SPAN, WHOLE, rank, some_literal
from tests.oracle.nested_predicates import NESTED_PREDICATES
from tests.oracle.typed_variants import typed_predicate

COMPARE = ("=", "<>", "<", "<=", ">", ">=", "<=>")
LIKES = ("k0%", "k00%", "%1", "_", "k_1%", "%", "", "a\\\\%%", "a%")
UNITS = ("DAY", "WEEK", "MONTH", "HOUR", "YEAR")
Samples = Mapping[str, list[Any]]
"""Values of columns."""
LARGEST = {"tinyint": 127, "smallint": 32_767, "int": 2**31 - 1, "bigint": 2**63 - 1}
PATHS = (
    "$.a",
    "$.a.b",
    "$.k",
    "$.a[1]",
    "$.a.c[0]",
    "$",
    "$.nowhere",
    "$.p[0]",
    "$.p[1]",
    "$.p[2].x",
    "$.p[3][0]",
    "$.p[9]",
    '$["a"]',
    "$[\\'a\\']",
)


class Predicates:
    """Over ``columns`` (name → kind), each name written behind ``prefix``; those of ``focus`` are named more often. ``rows``: some that are there."""

    def __init__(
        self,
        rng: Random,
        columns: Mapping[str, str],
        prefix: str = "",
        samples: Samples | None = None,
        focus: Sequence[str] = (),
        rows: Sequence[Mapping[str, Any]] = (),
    ) -> None:
        self.rng, self.columns, self.prefix, self.samples = rng, dict(columns), prefix, samples or {}
        self._extremes: dict[str, tuple[Any, Any]] = {}
        self.focus, self.rows = [name for name in focus if name in self.columns], list(rows)

    def named(self, *kinds: str) -> str | None:
        found = [name for name, kind in self.columns.items() if kind in kinds]
        if self.focus and self.rng.random() < 0.5:
            found = [name for name in self.focus if self.columns[name] in kinds] or found
        return self.rng.choice(found) if found else None

    def sql(self, name: str) -> str:
        return f"{self.prefix}{name}"

    def column(self, kinds: tuple[str, ...] = PLAIN) -> tuple[str, str]:
        """A column of one of the kinds, as SQL, and its kind; the row's key where there is none."""
        name = self.named(*kinds) or "k"
        return self.sql(name), self.columns.get(name, "bigint")

    def literal(self, x: str, kind: str) -> str:
        """A literal for a comparison with the column ``x``: often one of its values, or its least or greatest."""
        name, draw = x[len(self.prefix) :], self.rng.random()
        known = self.samples.get(name)
        if not known or draw < 0.5:
            return some_literal(self.rng, kind)
        return KINDS[kind].literal(self.rng.choice(known if draw < 0.85 else self._ends(name, known)))

    def _ends(self, name: str, known: Sequence[Any]) -> tuple[Any, Any]:
        if name not in self._extremes:
            self._extremes[name] = min(known, key=rank), max(known, key=rank)
        return self._extremes[name]

    def predicate(self, depth: int = 0) -> str:
        draw = self.rng.random()
        if depth < 2 and draw < 0.4:
            word = self.rng.choice((" AND ", " AND ", " OR "))
            return "(" + word.join(self.predicate(depth + 1) for _ in range(self.rng.choice((2, 2, 3)))) + ")"
        if depth < 2 and draw < 0.5:
            return self.rng.choice(("(NOT {})", "(({}) IS NOT TRUE)", "(({}) IS NULL)", "(({}) <=> true)")).format(
                self.predicate(depth + 1)
            )
        return "(" + self.comparison() + ")"

    def simple(self) -> str:
        """A conjunction of what a scan may own: comparisons of columns with literals, and logic."""
        parts = [self._plain() for _ in range(self.rng.choice((1, 1, 2, 2, 3)))]
        text = self.rng.choice((" AND ", " AND ", " OR ")).join(parts)
        return f"(NOT ({text}))" if self.rng.random() < 0.12 else f"({text})"

    def everything(self) -> str:
        """What is likely to hold on every row, of the table or of many parts."""
        return "true" if self.rng.random() < 0.4 else self._wide(*self.column())

    def selective(self) -> str:
        """Of few rows: the values of a row that is there, or of several, of one column or more."""
        rng, found, named = self.rng, list[str](), self.focus or list(self.columns)
        word = rng.choice((" AND ", " OR "))
        rows = [rng.choice(self.rows) for _ in range(3)] if self.rows else []
        for _ in range(rng.choice((1, 2, 2, 3)) if rows else 0):
            name, at = rng.choice(named), rng.choice((0, 0, 1))
            texts = [KINDS[self.columns[name]].literal(row[name]) for row in rows[at:] if row.get(name) is not None]
            if not texts or self.columns[name] not in PLAIN:
                continue
            x = self.sql(name)
            found.append(
                rng.choice(
                    (
                        f"({x} = {texts[0]})",
                        f"({x} <=> {texts[0]})",
                        f"({x} IN ({', '.join(texts)}))",
                        f"({x} >= {texts[0]})",
                    )
                )
            )
        return f"({word.join(found)})" if found else self.simple()

    def _plain(self) -> str:
        rng, (x, kind) = self.rng, self.column()
        draw = rng.random()
        if draw < 0.2:
            return self._wide(x, kind)
        if draw < 0.26:
            return f"({x} IS {rng.choice(('', 'NOT '))}NULL)"
        if draw < 0.4:
            members = self._run(x, kind) or [self.literal(x, kind) for _ in range(rng.choice((1, 2, 3, 5, 12)))]
            return f"({x} {rng.choice(('', '', 'NOT '))}IN ({', '.join(members + ['NULL'] * (rng.random() < 0.15))}))"
        if draw < 0.5 and (s := self.named("string", "char")):
            return f"({self.sql(s)} {rng.choice(('', 'NOT '))}LIKE '{rng.choice(LIKES)}')"
        if draw < 0.56:
            return f"({x} BETWEEN {self.literal(x, kind)} AND {self.literal(x, kind)})"
        if draw < 0.62 and kind == "boolean":
            return f"({rng.choice(('', 'NOT '))}{x})"
        if draw > 0.96 and (two := self._two()):
            return f"({two})"
        sides = [x, "NULL" if rng.random() < 0.04 else self.literal(x, kind)]
        if draw > 0.88:
            sides.reverse()
        return f"({sides[0]} {rng.choice(COMPARE)} {sides[1]})"

    def span(self) -> str:
        """A range of row numbers or of another column, from within one part to within another, as of a time axis."""
        rng = self.rng
        name = "k" if "k" in self.columns and rng.random() < 0.7 else (self.named(*PLAIN) or "k")
        ends = [row[name] for row in (rng.sample(self.rows, min(len(self.rows), 2))) if row.get(name) is not None]
        known, x = KINDS[self.columns.get(name, "bigint")], self.sql(name)
        if len(ends) < 2:
            return self.simple()
        texts = [known.literal(v) for v in sorted(ends, key=rank)]
        return rng.choice(
            (
                f"({x} BETWEEN {texts[0]} AND {texts[1]})",
                f"({x} >= {texts[0]} AND {x} < {texts[1]})",
                f"({x} >= {texts[0]})",
                f"({x} < {texts[1]})",
            )
        )

    def _run(self, x: str, kind: str) -> list[str]:
        """Neighbouring values, most often with a gap or two; none for kinds whose values have no neighbours."""
        rng, known = self.rng, self.samples.get(x[len(self.prefix) :])
        if kind not in {*WHOLE, "date"} or not known or rng.random() < 0.5:
            return []
        step, middle = dt.timedelta(days=1) if kind == "date" else 1, rng.choice(known)
        run = list(range(-rng.choice((0, 1, 2, 4)), rng.choice((2, 3, 5, 8))))
        gaps = {rng.choice(run) for _ in range(rng.choice((0, 1, 1, 2)))}
        values = [middle + n * step for n in run if n not in gaps]
        return [KINDS[kind].literal(v) for v in values if kind == "date" or abs(v) <= LARGEST[kind]]

    def _wide(self, x: str, kind: str) -> str:
        """What is likely to hold on every row of many parts: such filters are answered without being tested."""
        known, rng = KINDS[kind], self.rng
        low, high = (
            known.literal(known.value(rng.choice((-2, 0, 1)))),
            known.literal(known.value(rng.choice((SPAN, SPAN * 3)))),
        )
        return rng.choice(
            (
                f"({x} >= {low})",
                f"({x} > {low})",
                f"({x} <= {high})",
                f"({x} IS NOT NULL)",
                f"({x} BETWEEN {low} AND {high})",
                f"({x} <> {high})",
            )
        )

    def comparison(self) -> str:
        makers: list[Callable[[], str | None]] = (
            [self._plain] * 4
            + [self._numbers] * 2
            + [self._instants] * 2
            + [self._texts, self._nested, self._two, self._guarded]
        )
        if self.named("array", "map", "orders", "keyed") is not None:
            makers += [self._nested] * 2
        return self.rng.choice(makers)() or self._plain()

    def number(self) -> str:
        rng, (x, kind) = self.rng, self.column(NUMBERS)
        y, _ = self.column(NUMBERS)
        return rng.choice((x, f"try_add({x}, {some_literal(rng, kind)})", f"try_multiply({x}, 2)", f"coalesce({x}, {some_literal(rng, kind)})",
                           f"greatest({x}, {y})", f"CASE WHEN {self._plain()} THEN {x} ELSE {some_literal(rng, kind)} END", f"try_mod({x}, 7)",
                           f"try_cast({x} AS {rng.choice(('INT', 'BIGINT', 'DOUBLE', 'DECIMAL(12,3)'))})", f"try_divide({x}, {y})", f"abs(try_cast({x} AS DOUBLE))", f"abs({x})", f"-{x}",
                           f"exp(try_mod({x}, 5))", f"CAST({x} AS FLOAT)", f"try_cast({x} AS DECIMAL(38,12))", f"nullif({x}, {some_literal(rng, kind)})", f"if({self._plain()}, {x}, NULL)"))  # fmt: skip

    def whole(self) -> str:
        """A number whose sums do not depend on their order, and stay small."""
        x, _ = self.column(WHOLE)
        return f"try_mod(CAST({x} AS BIGINT), 1009)"

    def text(self) -> str:
        s = self.named("string", "char")
        if s is None:
            x, _ = self.column(("int", "date", "boolean", "decimal"))
            return f"CAST({x} AS STRING)"
        x = self.sql(s)
        return self.rng.choice(
            (
                x,
                f"upper({x})",
                f"substring({x}, 1, 2)",
                f"concat('a', {x})",
                f"trim({x})",
                f"reverse({x})",
                f"soundex({x})",
                f"left({x}, 3)",
            )
        )

    def _numbers(self) -> str:
        rng = self.rng
        constant = rng.choice(
            (
                str(rng.randrange(SPAN)),
                "1.5",
                "0",
                "-1",
                "1e0",
                f"'{rng.randrange(SPAN)}'",
                "CAST(7 AS INT)",
                "CAST(7 AS BIGINT)",
                some_literal(rng, rng.choice(("int", "double", "decimal"))),
            )
        )
        return f"{self.number()} {rng.choice(COMPARE)} {constant}"

    def _instants(self) -> str | None:
        rng = self.rng
        name = self.named("timestamp", "date", "ntz")
        if name is None:
            return None
        x, kind = self.sql(name), self.columns[name]
        text, other = rng.choice(((f"date_trunc('{rng.choice(UNITS)}', {x})", "ntz" if kind == "ntz" else "timestamp"), (f"CAST({x} AS DATE)", "date"), (x, "timestamp"), (x, "date"),
                                  (f"({x} + INTERVAL '{rng.choice((1, -1, 13))}' DAY)", kind), (f"last_day({x})", "date"), (f"add_months({x}, 1)", "date"),
                                  (f"({x} + INTERVAL '1' MONTH)", kind)))  # fmt: skip
        if rng.random() < 0.25:
            return f"{rng.choice(('year', 'month', 'dayofweek', 'day', 'weekofyear'))}({x}) {rng.choice(COMPARE)} {rng.choice((1, 2, 2023, 2024, 7, 31))}"
        return f"{text} {rng.choice(COMPARE)} {some_literal(rng, other)}"

    def _texts(self) -> str | None:
        rng = self.rng
        if rng.random() < 0.3:
            return f"{self.text()} {rng.choice(('', 'NOT '))}LIKE '{rng.choice(LIKES)}'"
        if rng.random() < 0.2:
            return f"length({self.text()}) {rng.choice(COMPARE)} {rng.choice((0, 1, 3, 4))}"
        return f"{self.text()} {rng.choice(COMPARE)} {some_literal(rng, 'string')}"

    def _nested(self) -> str | None:
        rng, name = self.rng, self.named(*NESTED_PREDICATES, "json", "variant", "typed")
        if name is None:
            return None
        x, path, op, n = self.sql(name), rng.choice(PATHS), rng.choice(COMPARE), rng.randrange(SPAN)
        if self.columns[name] in NESTED_PREDICATES:
            return rng.choice(NESTED_PREDICATES[self.columns[name]](rng, x, op, n))
        match self.columns[name]:
            case "typed":
                return typed_predicate(rng, x, op, lambda kind: some_literal(rng, kind))
            case "json" if rng.random() < 0.2:
                return self._parsed(x, op, n)
            case "json" if rng.random() < 0.35:
                return self._document_within(f"get_json_object({x}, '$.q')", op, n)
            case "json" if rng.random() < 0.4:
                source = f"get_json_object({x}, '$.ts')"
                negated, other = rng.choice(("", "NOT ")), rng.choice(("'x0'", "NULL"))
                return rng.choice((self._time_in(f"try_cast({source} AS {{0}})"), self._time_in(f"CAST({source} AS {{0}})"),
                                   f"try_to_timestamp({source}, \"yyyy-MM-dd'T'HH:mm:ss'Z'\") {op} {some_literal(rng, 'timestamp')}",
                                   f"get_json_object({x}, '{path}') {negated}IN ('{n}', '{n + 7}', {other})", f"get_json_object({x}, '{path}') LIKE '{n}%'"))  # fmt: skip
            case "variant" if rng.random() < 0.1:
                return f"coalesce(try_variant_get({x}, '{path}', 'string') IN ('{n}', NULL), true)"
            case "variant" if rng.random() < 0.15:
                return self._document_within(f"CAST({x} AS STRING)", op, n)
            case "variant" if rng.random() < 0.3:
                return self._time_in(f"try_variant_get({x}, '$.ts', '{{0}}')")
            case "json":
                return rng.choice((f"get_json_object({x}, '{path}') {op} '{n}'", f"try_cast(get_json_object({x}, '{path}') AS INT) {op} {n}",
                                   f"get_json_object({x}, '{path}') IS NULL", f"try_variant_get(try_parse_json({x}), '{path}', 'int') {op} {n}"))  # fmt: skip
        kind = rng.choice(("int", "double", "string", "bigint"))
        value = f"'{n}'" if kind == "string" else str(n)
        return rng.choice(
            (
                f"try_variant_get({x}, '{path}', '{kind}') {op} {value}",
                f"{x} IS NULL",
                f"try_variant_get({x}, '{path}', '{kind}') IS NULL",
            )
        )

    def _document_within(self, source: str, op: str, n: int) -> str:
        """Of a document in ``source``, which is an object or a text of another document."""
        return self.rng.choice(
            (
                f"get_json_object({source}, '$.a') {op} '{n}'",
                f"get_json_object({source}, '$.a') IS NULL",
                f"from_json({source}, 'a INT').a {op} {n}",
                f"try_variant_get(try_parse_json({source}), '$.a', 'int') {op} {n}",
                f"try_parse_json({source}) IS NULL",
            )
        )

    def _parsed(self, x: str, op: str, n: int) -> str:
        """Of a document that ``from_json`` parses, with the column for corrupt records at times."""
        field, kind = self.rng.choice((("a", "INT"), ("a", "STRING"), ("k", "INT"), ("k", "DOUBLE"), ("ts", "STRING")))
        schema = f"{field} {kind}" + self.rng.choice(("", "", ", _corrupt_record STRING"))
        value = f"'{n}'" if kind == "STRING" else str(n)
        return self.rng.choice(
            (
                f"from_json({x}, '{schema}').{field} {op} {value}",
                f"from_json({x}, '{schema}').{field} IS NULL",
                f"from_json({x}, '{field} {kind}, _corrupt_record STRING')._corrupt_record IS NOT NULL",
            )
        )

    def _time_in(self, source: str) -> str:
        """Of a date or time in a document, cast to one of the three types."""
        kind = self.rng.choice(("date", "timestamp", "ntz"))
        return f"{source.format(KINDS[kind].sql)} {self.rng.choice(COMPARE)} {some_literal(self.rng, kind)}"

    def _two(self) -> str | None:
        """Of two columns of one kind."""
        kinds = list({kind for kind in self.columns.values() if KINDS[kind].ordered})
        kind = self.rng.choice(kinds) if kinds else "bigint"
        (x, a), (y, b) = self.column((kind,)), self.column((kind,))
        return f"{x} {self.rng.choice(COMPARE)} {y}" if a == b else None

    def _guarded(self) -> str:
        """A predicate whose second leg would fail on rows that its first leg keeps from it."""
        rng, (x, _), op, n = self.rng, self.column(NUMBERS), self.rng.choice(COMPARE), self.rng.randrange(SPAN)
        return rng.choice(
            (
                f"({x} <> 0 AND 100 / {x} {op} {n})",
                f"({x} = 0 OR 100 / {x} {op} {n})",
                f"({x} BETWEEN -100 AND 100 AND CAST({x} AS TINYINT) {op} {n})",
                f"({x} < -100 OR {x} > 100 OR CAST({x} AS TINYINT) {op} {n})",
            )
        )

    def risky(self) -> str:
        """A predicate that may fail in ANSI mode on some rows."""
        rng, (x, kind) = self.rng, self.column(NUMBERS)
        s = self.named("string")
        options = [f"(100 / {x} > 3)", f"(CAST({x} AS TINYINT) > 5)", f"({x} * {x} >= {some_literal(rng, kind)})"]
        if s is not None:
            options += [f"(CAST({self.sql(s)} AS INT) = 10)", f"(CAST({self.sql(s)} AS DATE) > DATE'2024-01-05')"]
        return rng.choice(options)
