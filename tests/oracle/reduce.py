"""Cuts a failure down: settings, parts of the query, steps, columns and rows go as long as something is still wrong."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import sqlglot
from sqlglot import exp

from tamis.world import world
from tests.oracle import history as h
from tests.oracle.case import Case
from tests.oracle.lab import Built, Lab
from tests.oracle.libraries import smaller_library_queries
from tests.oracle.query import EXACT, ORDERED, SOME, Query

Fails = Callable[[Case], str | None]


def reduced(lab: Lab, case: Case, problem: str, seconds: float) -> tuple[Case, str]:
    """The smallest case found in about so many seconds, and what is wrong with it."""
    end = world().monotonic() + seconds
    case, problem = _with_tables(lab, case, problem, end)
    last = end + seconds / 2
    for candidates in (_fewer_tables, _shorter, _fewer_columns, _fewer_rows, _shorter):
        case, problem = _descend(case, problem, candidates, lambda c: c.replay(lab), last)
    return _with_tables(lab, case, problem, last)


def _with_tables(lab: Lab, case: Case, problem: str, end: float) -> tuple[Case, str]:
    """Reduces what is asked, over tables that are made once."""
    tables: list[Built] = []
    try:
        tables += [lab.build(history) for history in case.histories]
    except Exception:
        return case, problem
    try:
        for candidates in (_fewer_settings, _smaller_question):
            case, problem = _descend(case, problem, candidates, lambda c: _checked(lab, c, tables), end)
    finally:
        for built in tables:
            lab.forget(built)
    return case, problem


def _checked(lab: Lab, case: Case, tables: list[Built]) -> str | None:
    try:
        return case.check(lab, tables)
    except Exception:
        return None


def _descend(
    case: Case, problem: str, candidates: Callable[[Case], Iterator[Case]], fails: Fails, end: float
) -> tuple[Case, str]:
    """Takes the first smaller case that still fails, again and again."""
    while world().monotonic() < end:
        for smaller in candidates(case):
            seen = None if world().monotonic() >= end else fails(smaller)
            if seen is not None and _alike(problem, seen):
                case, problem = smaller, seen
                break
        else:
            break
    return case, problem


def _alike(before: str, now: str) -> bool:
    """Whether both speak of wrong rows, or both of errors: a smaller query may fail for a reason of its own."""
    return ("raises" in before) == ("raises" in now) and ("Step " in before) == ("Step " in now)


def _fewer_settings(case: Case) -> Iterator[Case]:
    if case.settings:
        yield replace(case, settings={})
    for key in case.settings:
        yield replace(case, settings={k: v for k, v in case.settings.items() if k != key})
    for key in case.options:
        yield replace(case, options={k: v for k, v in case.options.items() if k != key})


# --- the query ---


def _smaller_question(case: Case) -> Iterator[Case]:
    if case.predicate is not None:
        for text in _smaller_sql(f"SELECT k FROM oracle_t0 WHERE {case.predicate}"):
            tree = sqlglot.parse_one(text, read="databricks").find(exp.Where)
            if tree is not None:
                yield replace(case, predicate=tree.this.sql("databricks"))
    if case.library is not None:
        yield from (replace(case, library=smaller) for smaller in smaller_library_queries(case.library))
    if case.query is not None:
        for position, statement in enumerate(case.query.before):
            head, mark, select = statement.partition(" AS SELECT ")
            for text in _smaller_sql("SELECT " + select) if mark else ():
                before = (*case.query.before[:position], head + " AS " + text, *case.query.before[position + 1 :])
                yield replace(case, query=replace(case.query, before=before))
        for text in _smaller_sql(case.query.text):
            yield replace(case, query=_limited(replace(case.query, text=text)))


def _limited(query: Query) -> Query:
    """The query with its unlimited form, judged as one that may have lost its order or its limit."""
    if query.judge not in {SOME, ORDERED}:
        return query
    tree = sqlglot.parse_one(query.text, read="databricks")
    if query.judge == ORDERED:
        return query if tree.args.get("order") else replace(query, judge=EXACT)
    if not (tree.args.get("limit") or tree.args.get("offset") or "TABLESAMPLE" in query.text):
        return replace(query, judge=EXACT, unlimited=None)
    tree.set("limit", None)
    tree.set("offset", None)
    for table in tree.find_all(exp.Table):
        table.set("sample", None)
    return replace(query, unlimited=tree.sql("databricks"))


def _smaller_sql(text: str) -> list[str]:
    """Queries with one piece less, the shortest first."""
    try:
        tree = sqlglot.parse_one(text, read="databricks")
    except sqlglot.errors.SqlglotError:
        return []
    found: set[str] = set()
    for number, node in enumerate(tree.walk()):
        for change in _changes(node):
            copy = tree.copy()
            target = next(n for i, n in enumerate(copy.walk()) if i == number)
            try:
                change(target)
                found.add(copy.sql("databricks"))
            except (AttributeError, ValueError, sqlglot.errors.SqlglotError):
                continue
    return sorted((smaller for smaller in found if len(smaller) < len(text) + 8 and smaller != text), key=len)


def _one_less(node: Any) -> list[Callable[[Any], Any]]:
    """Ways to leave out one of a node's expressions."""
    return [partial(_without_one, at=at) for at in range(len(node.expressions))]


def _without_one(node: Any, at: int) -> None:
    node.set("expressions", [e for i, e in enumerate(node.expressions) if i != at])


def _without(node: Any, part: str) -> None:
    node.set(part, None)


def _changes(node: Any) -> list[Callable[[Any], Any]]:
    """Ways to make a node smaller."""
    match node:
        case exp.And() | exp.Or():
            return [lambda n: n.replace(n.left.copy()), lambda n: n.replace(n.right.copy())]
        case exp.Not() | exp.Paren() if not isinstance(node.this, exp.Query):
            return [lambda n: n.replace(n.this.copy())]
        case exp.In() if len(node.expressions) > 1:
            return _one_less(node)
        case exp.Select():
            parts = [
                k for k in ("where", "having", "distinct", "order", "limit", "offset", "joins") if node.args.get(k)
            ]
            made: list[Callable[[Any], Any]] = [partial(_without, part=part) for part in parts]
            if len(node.expressions) > 1:
                made += _one_less(node)
            return made
        case exp.Group() | exp.Order() if len(node.expressions) > 1:
            return _one_less(node)
        case exp.SetOperation():
            return [lambda n: n.replace(n.left.copy()), lambda n: n.replace(n.right.copy())]
        case exp.Subquery() if isinstance(node.this, exp.Select) and node.this.args.get("from_"):
            return [
                lambda n: n.replace(
                    exp.alias_(n.this.args["from_"].this.copy(), n.alias, table=True)
                    if n.alias
                    else n.this.args["from_"].this.copy()
                )
            ]
    return []


# --- the tables ---


def _fewer_tables(case: Case) -> Iterator[Case]:
    """Only those that the query names."""
    if case.query is None or len(case.histories) < 2:
        return
    text = " ".join((*case.query.before, case.query.text))
    used = sorted({int(n) for n in re.findall(r"oracle_t(\d+)", text)})
    if used == [0]:
        yield replace(case, histories=case.histories[:1])
    elif used == [1]:
        query = replace(
            case.query, **{k: _renumbered(getattr(case.query, k)) for k in ("text", "unlimited", "before", "after")}
        )
        yield replace(case, histories=case.histories[1:], query=query)


def _renumbered(text: Any) -> Any:
    return tuple(map(_renumbered, text)) if isinstance(text, tuple) else text and text.replace("oracle_t1", "oracle_t0")


def _shorter(case: Case) -> Iterator[Case]:
    """One step less, the last first."""
    for at, history in enumerate(case.histories):
        for drop in range(len(history) - 1, 0, -1):
            yield _with(case, at, (*history[:drop], *history[drop + 1 :]))
        first = history[0]
        if isinstance(first, h.Create):
            for plain in (
                replace(first, properties={}),
                replace(first, cluster_by=()),
                replace(first, format="parquet"),
            ):
                if plain != first:
                    yield _with(case, at, (plain, *history[1:]))
        if isinstance(first, h.Adopt):
            for simpler in (
                replace(first, deleted=()),
                replace(first, files=1),
                replace(first, options={}),
                replace(first, partition=None, source="folder"),
            ):
                if simpler != first:
                    yield _with(case, at, (simpler, *history[1:]))


def _with(case: Case, at: int, history: h.History) -> Case:
    return replace(case, histories=(*case.histories[:at], history, *case.histories[at + 1 :]))


def _fewer_columns(case: Case) -> Iterator[Case]:
    for at, history in enumerate(case.histories):
        first = history[0]
        for name in first.columns if isinstance(first, h.Create) else ():
            if name not in ("k", getattr(first, "partition", None)) and not any(
                getattr(step, "name", None) == name for step in history
            ):
                yield _with(case, at, tuple(_column_gone(step, name) for step in history))


def _column_gone(step: h.Step, name: str) -> h.Step:
    if isinstance(step, h.Adopt):
        step = replace(step, values={c: v for c, v in step.values.items() if c != name})
    if isinstance(step, h.Create):
        return replace(
            step,
            columns={c: k for c, k in step.columns.items() if c != name},
            cluster_by=tuple(c for c in step.cluster_by if c != name),
        )
    if isinstance(step, h.Append | h.Overwrite | h.Merge):
        return replace(step, values={c: v for c, v in step.values.items() if c != name})
    return step


def _fewer_rows(case: Case) -> Iterator[Case]:
    for at, history in enumerate(case.histories):
        for number, step in enumerate(history):
            if not isinstance(step, h.Adopt | h.Append | h.Overwrite | h.Merge):
                continue
            rows = len(next(iter(step.values.values()), []))
            size = rows // 2
            while size:
                for start in range(0, rows, size):
                    kept = [i for i in range(rows) if not start <= i < start + size]
                    values = {c: [v[i] for i in kept] for c, v in step.values.items()}
                    yield _with(case, at, (*history[:number], replace(step, values=values), *history[number + 1 :]))
                size //= 2
