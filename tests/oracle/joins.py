"""Random queries over two tables, or one table twice: joins, subqueries, set operations, CTEs, time travel."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.oracle.kinds import KINDS, PLAIN
from tests.oracle.predicates import Predicates
from tests.oracle.query import Query


def _pair(q: Any) -> tuple[str, str]:
    """A column of each table; of one kind where there are such."""
    rng = q.rng
    pairs = [
        (x, y)
        for x, a in q.t.columns.items()
        for y, b in q.u.columns.items()
        if a == b and a in PLAIN and a != "boolean"
    ]
    found: tuple[str, str] = rng.choice([("k", "k"), rng.choice(pairs)])
    return found


def join(q: Any) -> Query:
    rng, (x, y) = q.rng, _pair(q)
    how, op = rng.choice(("JOIN", "JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN")), rng.choice(("=", "=", "=", "<=>"))
    more = f" AND {q.where('r.', q.u)}" if rng.random() < 0.3 else ""
    left = f"(SELECT * FROM {q.t.name}{q.maybe()})" if rng.random() < 0.5 else q.t.name
    right = f"(SELECT * FROM {q.u.name} WHERE {q.where('', q.u)})" if rng.random() < 0.7 else q.u.name
    tail = f" WHERE {q.where('l.')}" if rng.random() < 0.3 else ""
    c, e = q.any()[0], y
    shown = rng.choice((f"l.{c}, r.{e}", f"count(*), count(r.{e})", f"l.{x}, r.{y}"))
    return Query(f"SELECT {shown} FROM {left} l {how} {right} r ON l.{x} {op} r.{y}{more}{tail}")


def semi_join(q: Any) -> Query:
    rng, (x, y) = q.rng, _pair(q)
    how = rng.choice(("LEFT SEMI JOIN", "LEFT ANTI JOIN"))
    return Query(
        f"SELECT l.{q.any()[0]} FROM {q.t.name} l {how} (SELECT * FROM {q.u.name} WHERE {q.where('', q.u)}) r ON l.{x} = r.{y}"
    )


def cross_join(q: Any) -> Query:
    rng, (x, y) = q.rng, _pair(q)
    left, right = f"(SELECT {x} FROM {q.t.name}{q.maybe()})", f"(SELECT {y} FROM {q.u.name} WHERE {q.where('', q.u)})"
    return Query(
        f"SELECT count(*), count(l.{x}) FROM {left} l CROSS JOIN {right} r"
        + (f" WHERE l.{x} < r.{y}" if rng.random() < 0.5 else "")
    )


def self_join(q: Any) -> Query:
    x = q.some()[0]
    return Query(
        f"SELECT count(*), count(r.{x}) FROM {q.t.name} l LEFT JOIN {q.t.name} r ON l.{x} = r.{x} AND l.k < r.k WHERE {q.where('l.')}"
    )


def lateral_join(q: Any) -> Query:
    x, y = _pair(q)
    inner = q.rng.choice((f"SELECT max(r.k) AS m, count(*) AS n FROM {q.u.name} r WHERE r.{y} = l.{x}", f"SELECT count(*) AS n, min(r.k) AS m FROM {q.u.name} r WHERE r.{y} = l.{x} AND {q.where('r.', q.u)}"))  # fmt: skip
    return Query(f"SELECT l.{x}, m, n FROM {q.t.name} l, LATERAL ({inner}) WHERE {q.where('l.')}")


def key_join(q: Any) -> Query:
    """Few keys of one side, by which the other may be read."""
    x, y = _pair(q)
    keys = f"(SELECT DISTINCT {y} AS key FROM {q.u.name} WHERE {q.where('', q.u)})"
    return Query(
        f"SELECT l.{q.any()[0]}, key FROM {q.t.name} l JOIN {keys} r ON l.{x} = r.key{q.maybe().replace('WHERE', 'WHERE true AND')}"
    )


def narrow_join(q: Any) -> Query:
    """Join a few rows of one side, chosen by a filter, so that at run time their keys narrow the other side."""
    rng, (x, y) = q.rng, _pair(q)
    there = [KINDS[q.t.columns[x]].literal(row[x]) for row in q.t.rows if row.get(x) is not None]
    asked = Predicates(rng, q.u.columns, samples=q.u.samples)
    members = [
        rng.choice(there) if there and rng.random() < 0.6 else asked.literal(y, q.u.columns[y])
        for _ in range(rng.choice((1, 1, 2, 3)))
    ]
    keys = rng.choice((f"{y} IN ({', '.join(members)})", q.where("", q.u)))
    subquery = f"(SELECT {y} AS key FROM {q.u.name} WHERE {keys})"
    how = rng.choice(("JOIN", "JOIN", "LEFT SEMI JOIN", "RIGHT JOIN"))
    shown = rng.choice((f"l.{q.any()[0]}, l.k", f"l.{x}", "count(*)"))
    more = f" WHERE {q.where('l.')}" if rng.random() < 0.4 and how != "RIGHT JOIN" else ""
    return Query(f"SELECT {shown} FROM {q.t.name} l {how} {subquery} r ON l.{x} = r.key{more}")


def in_subquery(q: Any) -> Query:
    x, y = _pair(q)
    word = q.rng.choice(("IN", "IN", "NOT IN"))
    limited = f"SELECT {y} FROM {q.u.name} WHERE {q.where('', q.u)}"
    more = f" AND {q.where()}" if q.rng.random() < 0.5 else ""
    return Query(f"SELECT {q.rng.choice((q.any()[0], 'count(*)'))} FROM {q.t.name} WHERE {x} {word} ({limited}){more}")


def exists(q: Any) -> Query:
    x, y = _pair(q)
    word = q.rng.choice(("EXISTS", "NOT EXISTS"))
    inner = f"SELECT 1 FROM {q.u.name} r WHERE r.{y} = l.{x} AND {q.where('r.', q.u)}"
    return Query(f"SELECT l.{q.any()[0]} FROM {q.t.name} l WHERE {word} ({inner})")


def scalar_subquery(q: Any) -> Query:
    x, y = _pair(q)
    if q.rng.random() < 0.5:
        return Query(f"SELECT {q.any()[0]} FROM {q.t.name} WHERE {x} > (SELECT min({y}) FROM {q.u.name} WHERE {q.where('', q.u)})" if q.t.columns[x] == q.u.columns[y] else f"SELECT k FROM {q.t.name}")  # fmt: skip
    inner = f"SELECT count(*) FROM {q.u.name} r WHERE r.{y} = l.{x} AND {q.where('r.', q.u)}"
    return Query(f"SELECT l.{x}, ({inner}) AS n FROM {q.t.name} l WHERE {q.where('l.')}")


def merged_subqueries(q: Any) -> Query:
    """Aggregates of one table as scalar subqueries, most of them under one filter: Spark may read the table once."""
    rng = q.rng
    names = [c for c, kind in q.u.columns.items() if kind in PLAIN]
    pushed = ("max({c})", "count({c})", "count(*)")  # Spark merges no scan that answers an aggregate
    measures = (*pushed, "count(DISTINCT {c})", "sum(k) + count({c})", "sum(hash({c}))", "sum(hash({c}, k))")
    filters = [q.where("", q.u)] * 3 + [q.where("", q.u), "true"]
    subqueries = [
        f"(SELECT {rng.choice(measures).format(c=rng.choice(names))} FROM {q.u.name} WHERE {rng.choice(filters)})"
        for _ in range(rng.choice((2, 3, 4)))
    ]
    listed = ", ".join(f"{text} AS m{i}" for i, text in enumerate(subqueries))
    return Query(f"SELECT {listed}" + rng.choice(("", f", k FROM {q.t.name} WHERE {q.where()}")))


def set_operation(q: Any) -> Query:
    x, y = _pair(q)
    word = q.rng.choice(("UNION", "UNION ALL", "INTERSECT", "EXCEPT", "INTERSECT ALL", "EXCEPT ALL"))
    return Query(f"SELECT {x} FROM {q.t.name}{q.maybe()} {word} SELECT {y} FROM {q.u.name} WHERE {q.where('', q.u)}")


def common_table(q: Any) -> Query:
    """Used twice."""
    x = q.some()[0]
    body = f"WITH c AS (SELECT {x}, k FROM {q.t.name} WHERE {q.where()})"
    return Query(body + q.rng.choice((f" SELECT a.{x}, b.k FROM c a JOIN c b ON a.k = b.k", f" SELECT {x} FROM c UNION ALL SELECT max({x}) FROM c",
                                      f" SELECT {x}, count(*) FROM c WHERE {x} >= (SELECT min({x}) FROM c) GROUP BY {x}")))  # fmt: skip


def time_travel(q: Any) -> Query:
    """One side as it was."""
    if not q.t.steps:
        return self_join(q)
    then = f"{q.t.name}_v{q.rng.choice(q.t.steps)}"
    return Query(q.rng.choice((f"SELECT count(*), count(r.k), sum(l.k) FROM {q.t.name} l FULL JOIN {then} r ON l.k = r.k", f"SELECT k FROM {then} EXCEPT SELECT k FROM {q.t.name}",
                               f"SELECT k FROM {then} WHERE k > 3 UNION ALL SELECT k FROM {q.t.name} WHERE {q.where()}", f"SELECT count(*), min(k), max(k) FROM {then} WHERE k IS NOT NULL")))  # fmt: skip


JOIN_SHAPES: list[Callable[[Any], Query]] = [
    join, join, join, semi_join, cross_join, self_join, lateral_join, key_join, key_join, in_subquery, in_subquery, exists, scalar_subquery, merged_subqueries, set_operation, set_operation, common_table, time_travel,
]  # fmt: skip
