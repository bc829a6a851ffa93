"""Random texts of Spark's expression grammar, and texts that are nearly of it; without ``IDENTIFIER('…')``, which is read as a call only."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

import numpy as np

T = TypeVar("T")

NAMES = ["a", "b", "c", "`d e`", "`f``g`", "p.q", "x1", "_y", "1z"]
FUNCTIONS = ["f", "coalesce", "x.g", "left", "if", "filter", "`h`"]
WORDS = [
    "add",
    "all",
    "alter",
    "and",
    "any",
    "array",
    "as",
    "asc",
    "at",
    "between",
    "both",
    "by",
    "case",
    "cast",
    "check",
    "collate",
    "column",
    "comment",
    "create",
    "cross",
    "cube",
    "current",
    "current_date",
    "current_time",
    "current_timestamp",
    "current_user",
    "data",
    "date",
    "date_add",
    "datediff",
    "day",
    "days",
    "delete",
    "desc",
    "distinct",
    "div",
    "drop",
    "else",
    "end",
    "escape",
    "except",
    "exists",
    "extract",
    "false",
    "fetch",
    "filter",
    "first",
    "float",
    "following",
    "for",
    "from",
    "full",
    "function",
    "grant",
    "group",
    "having",
    "hour",
    "if",
    "ignore",
    "ilike",
    "in",
    "inner",
    "int",
    "intersect",
    "interval",
    "into",
    "is",
    "join",
    "last",
    "lateral",
    "leading",
    "left",
    "like",
    "limit",
    "local",
    "localtimestamp",
    "lock",
    "map",
    "merge",
    "minus",
    "minute",
    "month",
    "natural",
    "no",
    "not",
    "null",
    "nulls",
    "of",
    "offset",
    "on",
    "only",
    "or",
    "order",
    "outer",
    "over",
    "overlay",
    "partition",
    "percent",
    "position",
    "primary",
    "range",
    "real",
    "regexp",
    "replace",
    "right",
    "rlike",
    "row",
    "rows",
    "second",
    "select",
    "semi",
    "session_user",
    "set",
    "show",
    "some",
    "start",
    "string",
    "struct",
    "substr",
    "substring",
    "table",
    "temp",
    "then",
    "time",
    "timestamp",
    "timestamp_ntz",
    "timestampadd",
    "timestampdiff",
    "to",
    "trailing",
    "trim",
    "true",
    "try_cast",
    "type",
    "union",
    "unique",
    "unknown",
    "update",
    "use",
    "user",
    "using",
    "value",
    "values",
    "variant",
    "week",
    "when",
    "where",
    "window",
    "with",
    "within",
    "without",
    "x",
    "year",
    "zone",
    "r",
    "n",
]
LITERALS = [
    *("1", "-2", "007", "3L", "4S", "5Y", "6.5", ".5", "7.", "8e2", "1.5E-3", "9BD", "1.25BD", "2F", "3.5D", "128Y", "99999999999", "1e400", "12345678901234567890"),
    *("'t'", '"u"', "'v' 'w'", "r'\\d'", "'it''s'", "'\\n\\t\\\\'", "'\\u0041\\101\\%'", "''", "'%'"),
    *("NULL", "TRUE", "false", "DATE '2020-01-02'", "timestamp'2020-01-02 03:04:05'", "TIMESTAMP_NTZ '2020-01-02'", "X'0aF'", "x'zz'", "DATE 'no'", "foo 'x'"),
    *("INTERVAL 1 DAY", "interval '1' month", "INTERVAL 1 DAY 2 HOURS", "INTERVAL '1-2' YEAR TO MONTH", "INTERVAL '1 2' DAY TO HOUR", "INTERVAL 1 MONTH 2 DAYS"),
    *("INTERVAL '1 day'", "INTERVAL -1 WEEK", "INTERVAL 1.5 SECONDS", "INTERVAL 1.5 DAYS", "INTERVAL -'2' YEARS", "interval '1 year 2 months'"),
    *("?", ":n", "TIME'12:30:00'", "interval '1:2:3' hour to second", "interval 3 milliseconds"),
]  # fmt: skip
BINARY = [
    "=",
    "==",
    "<>",
    "!=",
    "<",
    "<=",
    ">",
    ">=",
    "!<",
    "!>",
    "<=>",
    "+",
    "-",
    "*",
    "/",
    "%",
    "DIV",
    "||",
    "&",
    "|",
    "^",
    "<<",
    ">>",
    ">>>",
]
TYPES = [
    *("int", "BIGINT", "string", "decimal(10,2)", "decimal(5)", "dec", "date", "timestamp", "timestamp_ntz", "boolean", "double", "real", "binary", "tinyint"),
    *("array<int>", "map<string, array<date>>", "struct<a int, b: string>", "struct<>", "array<array<int>>", "timestamp without time zone", "foo", "int(3)"),
    *("decimal(50,2)", "char", "interval day to second", "array", "numeric(3,1)", "long", "short", "timestamp_ltz", "variant", "interval year"),
]  # fmt: skip
SOUP = [
    *BINARY,
    "AND",
    "OR",
    "NOT",
    "!",
    "(",
    ")",
    ",",
    ".",
    "[",
    "]",
    ":",
    "::",
    "->",
    "=>",
    "~",
    "*",
    "IS",
    "IN",
    "LIKE",
    "BETWEEN",
]


STEPS = ["", " [ 0 ]", " . k", " [ 'k' ] . j"]


class Texts:
    """A source of texts; the same seed gives the same ones."""

    def __init__(self, seed: int) -> None:
        self.random = np.random.default_rng(seed)

    def text(self) -> str:
        """A text of the grammar; or one with a token lost, doubled or changed; or tokens at random."""
        kind = self.random.random()
        if kind < 0.15:
            return " ".join(self._token() for _ in range(self._number(1, 6)))
        words = self.boolean(self._number(0, 3)).split(" ")
        if kind < 0.5:
            at = self._number(0, len(words) - 1)
            words[at : at + 1] = self._one([[], [words[at]] * 2, [self._token()], [words[at], self._token()]])
        return " ".join(words)

    def _token(self) -> str:
        return self._one([self._one(SOUP), self._one(WORDS), self._one(LITERALS), self._one(NAMES)])

    def _one(self, options: Sequence[T]) -> T:
        return options[self._number(0, len(options) - 1)]

    def _number(self, least: int, most: int) -> int:
        return int(self.random.integers(least, most + 1))

    def name(self) -> str:
        return self._one(WORDS) if self.random.random() < 0.3 else self._one(NAMES)

    def boolean(self, depth: int) -> str:
        """A boolean expression of about this depth."""
        if depth <= 0:
            return self.predicate(0)
        inner = lambda: self.boolean(depth - 1 - self._number(0, 1))  # noqa: E731
        return self._pick(
            lambda: f"{inner()} AND {inner()}",
            lambda: f"{inner()} OR {inner()}",
            lambda: f"{self._one(['NOT', '!'])} {inner()}",
            lambda: f"( {inner()} )",
            lambda: self.predicate(depth),
            lambda: self.predicate(depth),
            lambda: "EXISTS(SELECT\ta\tFROM\tt)",
        )

    def predicate(self, depth: int) -> str:
        left, right = self.value(depth), lambda: self.value(depth - 1)
        no = self._one(["", "", "NOT ", "! "])
        some = lambda: " , ".join(right() for _ in range(self._number(1, 3)))  # noqa: E731
        return self._pick(
            lambda: left,
            lambda: left,
            lambda: f"{left} {no}BETWEEN {right()} AND {right()}",
            lambda: f"{left} {no}IN ( {some()} )",
            lambda: f"{left} {no}IN\t(select\t1)",
            lambda: f"{left} {no}{self._one(['LIKE', 'ILIKE', 'RLIKE', 'REGEXP'])} {right()}",
            lambda: f"{left} {no}LIKE {right()} ESCAPE {self._one(['!', '!!', ''])!r}",
            lambda: (
                f"{left} {no}{self._one(['LIKE', 'ILIKE'])} {self._one(['ANY', 'SOME', 'ALL'])} ( {self.value(0)} , {self.value(0)} )"
            ),
            lambda: f"{left} IS {no}{self._one(['NULL', 'TRUE', 'FALSE', 'UNKNOWN'])}",
            lambda: f"{left} IS {no}DISTINCT FROM {right()}",
        )

    def value(self, depth: int) -> str:
        if depth <= 0:
            return self._one(LITERALS) if self.random.random() < 0.4 else self.name()
        inner = lambda: self.value(depth - 1 - self._number(0, 1))  # noqa: E731
        return self._pick(
            *[lambda: f"{inner()} {self._one(BINARY)} {inner()}"] * 4,
            lambda: f"{self._one(['-', '+', '~'])} {inner()}",
            lambda: f"( {self.boolean(depth - 1)} )",
            lambda: self.suffixed(inner()),
            lambda: self.form(depth - 1),
            lambda: self.call(depth - 1),
        )

    def suffixed(self, value: str) -> str:
        return value + self._pick(
            lambda: f" :: {self._one(TYPES)}",
            lambda: f" [ {self.value(0)} ]",
            lambda: f" . {self.name()}",
            lambda: f" : {self.name()}{self._one(STEPS)}",
            lambda: " COLLATE UTF8_LCASE",
        )

    def call(self, depth: int) -> str:
        name = self._one(WORDS) if self.random.random() < 0.3 else self._one(FUNCTIONS)
        args = [self.argument(depth) for _ in range(self._number(0, 3))]
        quantifier = self._one(["", "", "", "DISTINCT ", "ALL "])
        after = self._one(
            ["", "", "", "", " OVER w", " FILTER ( WHERE a )", " OVER\t(PARTITION\tBY\ta)", " IGNORE NULLS OVER w"]
        )
        return f"{name} ( {quantifier}{' , '.join(args)} ){after}"

    def argument(self, depth: int) -> str:
        return self._pick(
            lambda: self.boolean(depth),
            lambda: self.boolean(depth),
            lambda: self.value(depth),
            lambda: "*",
            lambda: f"{self.name()} => {self.value(depth)}",
            lambda: f"{self._one(['a', 'b', 'x'])} -> {self.boolean(depth)}",
            lambda: f"( a , y ) -> {self.boolean(depth)}",
        )

    def form(self, depth: int) -> str:
        v, e = (lambda: self.value(depth)), (lambda: self.boolean(depth))
        return self._pick(
            lambda: f"CASE WHEN {e()} THEN {e()} END",
            lambda: f"CASE {e()} WHEN {e()} THEN {e()} WHEN {e()} THEN {e()} ELSE {e()} END",
            lambda: f"{self._one(['CAST', 'TRY_CAST'])} ( {e()} AS {self._one(TYPES)} )",
            lambda: f"EXTRACT ( {self._one(['year', 'day', 'foo'])} FROM {v()} )",
            lambda: f"TRIM ( {self._one(['', 'BOTH ', 'LEADING ', 'TRAILING '])}{self._one(['', 'a '])}FROM {v()} )",
            lambda: f"{self._one(['SUBSTRING', 'SUBSTR'])} ( {v()} FROM {v()}{self._one(['', ' FOR 2'])} )",
            lambda: f"POSITION ( {v()} IN {v()} )",
            lambda: f"OVERLAY ( {v()} PLACING {v()} FROM {v()}{self._one(['', ' FOR 2'])} )",
            lambda: (
                f"{self._one(['DATE_ADD', 'timestampdiff', 'datediff', 'timestampadd'])} ( {self._one(['DAY', 'month', 'a', repr('day')])} , {v()} , {v()} )"
            ),
            lambda: f"STRUCT ( {e()} AS s , {e()} )",
            lambda: f"( {e()} , {e()} )",
            lambda: f"{self._one(['FIRST', 'last', 'any_value'])} ( {e()}{self._one(['', ' IGNORE NULLS'])} )",
            lambda: "(select\t1)",
        )

    def _pick(self, *options: Callable[[], str]) -> str:
        return self._one(options)()
