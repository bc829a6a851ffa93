"""Queries of DuckDB, Polars and pyarrow over a table, against the same library over the model's rows in memory.

The library decides what a comparison means, including one with NaN or NULL: it evaluates both sides.
"""

from __future__ import annotations

import importlib
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from random import Random  # noqa: TID251  # seeded by the caller
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

import tamis
from tamis.table.arrow_dataset import TamisDataset
from tamis.table.duckdb_source import DuckDbDataset
from tamis.table.polars_source import lazy_frame
from tests.oracle import history as h
from tests.oracle.embedded import OPTIONS
from tests.oracle.judges import plain_value
from tests.oracle.kinds import KINDS, SPAN
from tests.oracle.lab import Built, Lab
from tests.table.foreign_filters import ORDERED, built

ASKED_KINDS = (
    "int", "bigint", "tinyint", "smallint", "double", "float", "decimal", "decimal38", "boolean", "string", "char",
    "binary", "date", "timestamp", "ntz",
)  # fmt: skip
"""Kinds of columns that all three libraries compare."""
VERBS = {
    "duckdb": ("rows", "rows", "count", "groups", "limit", "top", "join", "distinct"),
    "polars": ("rows", "rows", "count", "groups", "limit", "top", "distinct"),
    "pyarrow": ("rows", "rows", "count", "limit"),
}
LIBRARY_FEATURES = tuple(f"{what} of {library}" for library in VERBS for what in ("queries", "pushed filters"))
LIMIT = 7

Rows = list[tuple[Any, ...]]
Types = tuple[tuple[str, str], ...]
"""Names and types of columns."""


@dataclass(frozen=True)
class LibraryQuery:
    """``condition``: a form of ``foreign_filters``, or None. ``keys``: values of the first column for a join. ``options``: of the scan below."""

    library: str
    verb: str
    columns: tuple[str, ...]
    condition: Any = None
    keys: tuple[Any, ...] = ()
    options: tuple[tuple[str, Any], ...] = ()

    def scan(self, table: Any) -> Any:
        """The scan that the library narrows."""
        return table.scan(options=dict(self.options))


def some_library_query(rng: Random, table: Built) -> LibraryQuery | None:
    """A query over the columns that libraries compare; None if the table has only one."""
    kinds = {name: kind for name, kind in table.columns.items() if kind in ASKED_KINDS}
    if len(kinds) < 2:
        return None
    values = {name: _values(rng, name, kind, h.samples_of(table.history)) for name, kind in kinds.items()}
    library = rng.choice(tuple(VERBS))
    columns = tuple(rng.sample(sorted(kinds), rng.randrange(1, len(kinds) + 1)))
    condition = _condition(rng, kinds, values) if rng.random() < 0.85 else None
    options = tuple((key, rng.choice(values)) for key, values in OPTIONS.items() if rng.random() < 0.25)
    return LibraryQuery(library, rng.choice(VERBS[library]), columns, condition, tuple(values[columns[0]]), options)


def _values(rng: Random, name: str, kind: str, samples: Mapping[str, list[Any]]) -> list[Any]:
    known = samples.get(name) or [KINDS[kind].value(rng.randrange(SPAN))]
    made = [rng.choice(known), rng.choice(known), KINDS[kind].value(rng.randrange(SPAN)), rng.choice(KINDS[kind].pool)]
    there = [v for v in made if v is not None]
    return [v.ljust(5) for v in there] if kind == "char" and rng.random() < 0.8 else there


def _condition(rng: Random, kinds: Mapping[str, str], values: Mapping[str, list[Any]], depth: int = 0) -> Any:
    draw = rng.random()
    if depth < 2 and draw < 0.4:
        word = rng.choice(("and", "and", "or"))
        return (word, _condition(rng, kinds, values, depth + 1), _condition(rng, kinds, values, depth + 1))
    if depth < 2 and draw < 0.5:
        return ("not", _condition(rng, kinds, values, depth + 1))
    doubles = [name for name, kind in kinds.items() if kind == "double"]  # libraries differ about NaN
    name = rng.choice(doubles if doubles and rng.random() < 0.3 else sorted(kinds))
    if draw > 0.9 or not values[name]:
        return ("null", name, rng.random() < 0.5)
    if draw > 0.75:
        return ("in", name, values[name])
    signs = ORDERED[:2] if kinds[name] == "boolean" else ORDERED
    return ("compare", name, rng.choice(signs), rng.choice(values[name]), rng.random() < 0.3)


def misread_by(table: Built, query: LibraryQuery, plain: pa.Table) -> str | None:
    """What is wrong with the answer over the table, or with the reference, which must not fail; None where nothing is."""
    try:
        types, wanted = _answer(query, plain, ours=False)
        every = _answer(replace(query, verb="rows"), plain, ours=False)[1] if query.verb == "limit" else wanted
        found_types, found = _answer(query, table.open(), ours=True)
    except _NoAnswer as failed:
        return f"{query}: {failed}"
    if found_types != types:
        return f"{query}: types {found_types} and not {types}"
    return library_difference(query, found, wanted, every)


def pushed_feature(query: LibraryQuery) -> set[str]:
    """The coverage feature for a filter that a library pushed down; empty if the last scan had no filter."""
    return {f"pushed filters of {query.library}"} if any(report.filter for report in tamis.reports(1)) else set()


class _NoAnswer(Exception):
    """A library failed; the text says on which side."""


def _answer(query: LibraryQuery, source: Any, *, ours: bool) -> tuple[Types, Rows]:
    """Columns and rows. Raises ``_NoAnswer`` for every error, also for a panic of Polars, which is no ``Exception``."""
    try:
        return _ANSWERS[query.library](source, query, ours=ours)
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:
        side = "the table" if ours else "the reference"
        raise _NoAnswer(f"{side} raises {type(error).__name__}: {str(error)[:300]}") from error


def library_difference(query: LibraryQuery, found: Rows, wanted: Rows, every: Rows) -> str | None:
    """What is wrong with ``found``; ``every``: the rows without the limit."""
    if query.verb == "top":
        return None if found == wanted else f"{query}: {found} and not {wanted}"
    if query.verb == "limit":
        invented = Counter(found) - Counter(every)
        sound = len(found) == len(wanted) and not invented
        return None if sound else f"{query}: {len(found)} rows and not {len(wanted)}, invented {list(invented)[:4]}"
    lost, invented = Counter(wanted) - Counter(found), Counter(found) - Counter(wanted)
    return f"{query}: lost {list(lost)[:4]}, invented {list(invented)[:4]}" if lost or invented else None


def library_rows(lab: Lab, table: Built) -> pa.Table:
    """The model's rows, in the types of the table."""
    schema = table.open().schema
    names = [name for name, kind in table.columns.items() if kind in ASKED_KINDS]
    rows = lab.spark.table(table.plain()).select(*names).toArrow()
    return rows.cast(pa.schema([schema.field(name).remove_metadata().with_nullable(True) for name in names]))


def smaller_library_queries(query: LibraryQuery) -> Iterator[LibraryQuery]:
    """The query with a part of its condition, with one column, or without options."""
    if query.condition is not None:
        parts = query.condition[1:] if query.condition[0] in {"and", "or", "not"} else ()
        yield from (replace(query, condition=part) for part in (None, *parts))
    if len(query.columns) > 1:
        yield from (replace(query, columns=(name,)) for name in query.columns)
    if query.options:
        yield replace(query, options=())


def _answered(rows: pa.Table) -> tuple[Types, Rows]:
    columns = [[plain_value(v) for v in column.to_pylist()] for column in rows.columns]
    return tuple((f.name, str(f.type)) for f in rows.schema), list(zip(*columns, strict=True))


def _by_pyarrow(table: Any, query: LibraryQuery, *, ours: bool) -> tuple[Types, Rows]:
    dataset = TamisDataset(query.scan(table)) if ours else ds.dataset(table)
    condition = None if query.condition is None else built(query.condition, pc.field, pc.scalar, dataset.schema)
    columns = list(query.columns)
    match query.verb:
        case "count":
            return (), [(dataset.count_rows(filter=condition),)]
        case "limit":
            return _answered(dataset.head(LIMIT, columns=columns, filter=condition))
    return _answered(dataset.to_table(columns=columns, filter=condition))


def _by_polars(table: Any, query: LibraryQuery, *, ours: bool) -> tuple[Types, Rows]:
    pl = importlib.import_module("polars")
    frame = lazy_frame(query.scan(table)) if ours else pl.from_arrow(table).lazy()
    if query.condition is not None:
        frame = frame.filter(built(query.condition, pl.col, pl.lit))
    first = query.columns[0]
    match query.verb:
        case "count":
            frame = frame.select(pl.len())
        case "groups":
            frame = frame.group_by(first).agg(pl.len(), *(pl.col(c).count().alias(f"n_{c}") for c in query.columns[1:]))
        case "limit":
            frame = frame.select(query.columns).head(LIMIT)
        case "top":
            frame = frame.select(first).sort(first, nulls_last=True).head(LIMIT)
        case "distinct":
            frame = frame.select(query.columns).unique()
        case _:
            frame = frame.select(query.columns)
    found = frame.collect()
    types = tuple((name, str(kind)) for name, kind in found.schema.items())
    return types, [tuple(plain_value(v) for v in row) for row in found.rows()]


def _by_duckdb(table: Any, query: LibraryQuery, *, ours: bool) -> tuple[Types, Rows]:
    connection = importlib.import_module("duckdb").connect(config={"threads": 2})
    source = DuckDbDataset(query.scan(table)) if ours else table
    connection.from_arrow(source).create_view("asked")
    given: list[Any] = []
    where = "" if query.condition is None else f" WHERE {_duckdb_text(query.condition, given)}"
    listed, first = ", ".join(f'"{name}"' for name in query.columns), f'"{query.columns[0]}"'
    counts = ", ".join(["count(*)", *(f'count("{name}")' for name in query.columns[1:])])
    text = {
        "rows": f"SELECT {listed} FROM asked{where}",
        "count": f"SELECT count(*) FROM asked{where}",
        "groups": f"SELECT {first}, {counts} FROM asked{where} GROUP BY 1",
        "limit": f"SELECT {listed} FROM asked{where} LIMIT {LIMIT}",
        "top": f"SELECT {first} FROM asked{where} ORDER BY 1 DESC NULLS LAST LIMIT {LIMIT}",
        "distinct": f"SELECT DISTINCT {listed} FROM asked{where}",
        "join": f"SELECT {listed} FROM (SELECT * FROM asked{where}) SEMI JOIN (SELECT unnest(?) AS found) ON {first} = found",
    }[query.verb]
    if query.verb == "join":
        given.append(list(query.keys))
    return _answered(connection.sql(text, params=given).to_arrow_table())


def _duckdb_text(form: Any, given: list[Any]) -> str:
    """The condition as SQL; its values are appended to ``given``."""
    match form:
        case ("compare", name, sign, value, flipped):
            given.append(value)
            sides = ("?", f'"{name}"') if flipped else (f'"{name}"', "?")
            return f"{sides[0]} {'=' if sign == '==' else sign} {sides[1]}"
        case ("null", name, absent):
            return f'"{name}" IS {"" if absent else "NOT "}NULL'
        case ("in", name, values):
            given.extend(values)
            return f'"{name}" IN ({", ".join("?" * len(values))})'
        case ("not", inner):
            return f"NOT ({_duckdb_text(inner, given)})"
        case (word, left, right):
            return f"({_duckdb_text(left, given)} {word.upper()} {_duckdb_text(right, given)})"
    raise AssertionError(form)


_ANSWERS = {"duckdb": _by_duckdb, "polars": _by_polars, "pyarrow": _by_pyarrow}
