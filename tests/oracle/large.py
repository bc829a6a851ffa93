"""The large scale: ``python -m tests.oracle.large MINUTES SEED ROUND …``. Parts of a million rows whose columns change their character inside them, at the usual sizes.

Filters are counted by plain Spark, many in one pass, and by the embedded scan; a few whole queries go through Spark on both sides.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from random import Random  # noqa: TID251  # seeded
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import tamis
from tamis.world import world
from tests.oracle import large_sources
from tests.oracle.coverage import ADOPTED, Coverage, watch
from tests.oracle.judges import ask, compare
from tests.oracle.kinds import DAY0
from tests.oracle.lab import CATALOG, Lab
from tests.oracle.query import EXACT, SOME, Query
from tests.oracle.settings import Settings, settled, some_settings
from tests.oracle.small import quiet

ROWS = 1_000_000
Numbers = np.ndarray[Any, np.dtype[np.int64]]
CHARACTERS: dict[str, Callable[[Numbers, np.random.Generator], Any]] = {
    "few_then_many": lambda i, r: np.where(i < len(i) * 0.6, i % 5, i),
    "many_then_few": lambda i, r: np.where(i < len(i) // 2, r.integers(0, 10**6, len(i)), i % 3),
    "step": lambda i, r: i // 5000,
    "constant_but_end": lambda i, r: np.where(i > len(i) - 5, i, 42),
    "sorted_but_one": lambda i, r: np.where(i == r.integers(len(i)), 17, i),
    "few_by_block": lambda i, r: i // 8192 * 10 + i % 2,
    "random": lambda i, r: r.integers(-500, 500, len(i)),
}
NULLS: dict[str, Callable[[Numbers, np.random.Generator], Any]] = {
    "never": lambda i, r: np.zeros(len(i), dtype=bool),
    "first": lambda i, r: i < len(i) * 0.7,
    "last": lambda i, r: i > len(i) - 3,
    "some": lambda i, r: r.random(len(i)) < 0.05,
}
SHAPES = ("SELECT {y}, count(*) FROM oracle_t0 WHERE {p} GROUP BY {y} ORDER BY 2 DESC, 1 LIMIT 50", "SELECT count(*), min({x}), max({y}), count({y}) FROM oracle_t0 WHERE {p}",
          "SELECT {x} FROM oracle_t0 WHERE {p} ORDER BY {x} DESC LIMIT 20", "SELECT count(*) FROM (SELECT DISTINCT {y} FROM oracle_t0 WHERE {p})",
          "SELECT count(*), sum(length(CAST({y} AS STRING))) FROM oracle_t0 WHERE {p}", "SELECT sum(hash({x}, {y})) FROM oracle_t0 WHERE {p}",
          "SELECT (SELECT sum(hash({x})) FROM oracle_t0 WHERE {p}) AS a, (SELECT sum(hash({y})) FROM oracle_t0 WHERE {p}) AS b",
          "SELECT {y} FROM oracle_t0 WHERE {p} LIMIT 30", "SELECT count(*) FROM oracle_t0 l JOIN (SELECT DISTINCT {x} AS key FROM oracle_t0 WHERE {p} LIMIT 100) r ON l.{x} = r.key")  # fmt: skip


def column(name: str, kind: str, rng: Random, numbers: np.random.Generator, rows: int) -> pa.Array:
    """A column of one character and one way to hold NULLs, of the type that ``kind`` says."""
    i = np.arange(rows)
    values, missing = CHARACTERS[name](i, numbers), NULLS[rng.choice(list(NULLS))](i, numbers)
    array = pa.array(values, pa.int64(), mask=missing)
    match kind:
        case "double":
            floats = values / 4.0
            floats[-1 if rng.random() < 0.5 else rows // 3] = np.nan
            return pa.array(floats, pa.float64(), mask=missing)
        case "string":
            return array.cast(pa.string())
        case "date":
            return pa.array((values % 20_000).astype("int32"), pa.int32(), mask=missing).cast(pa.date32())
        case "timestamp":
            return array.cast(pa.timestamp("s")).cast(pa.timestamp("us", "UTC"))
        case "int":
            return array.cast(pa.int32())
    return array


def literal(array: pa.Array, rng: Random) -> str:
    """A value of the column, or one near it."""
    at = rng.choice((0, len(array) - 1, len(array) - 3, rng.randrange(len(array)), len(array) // 2))
    value = array[at].as_py()
    if value is None:
        value = {pa.string(): "5", pa.date32(): DAY0}.get(array.type)
        if value is None:
            return "NULL" if not pa.types.is_integer(array.type) else "7"
    if isinstance(value, str):
        return f"'{value}'"
    if pa.types.is_timestamp(array.type):
        return f"TIMESTAMP'{value:%Y-%m-%d %H:%M:%S}+00:00'"
    if pa.types.is_date(array.type):
        return f"DATE'{value}'"
    return f"double('{value}')" if isinstance(value, float) else str(value + rng.choice((0, 0, 1, -1)))


def predicate(table: pa.Table, rng: Random, depth: int = 0) -> str:
    if depth < 1 and rng.random() < 0.35:
        return f"({predicate(table, rng, 1)} {rng.choice(('AND', 'OR'))} {predicate(table, rng, 1)})"
    name = rng.choice(table.column_names)
    array = table[name].chunk(0)
    if rng.random() < 0.1:
        return f"({name} IS {rng.choice(('', 'NOT '))}NULL)"
    if rng.random() < 0.25:
        return f"({name} {rng.choice(('', 'NOT '))}IN ({', '.join(literal(array, rng) for _ in range(rng.choice((1, 2, 6, 40))))}))"
    return f"({name} {rng.choice(('=', '=', '<', '<=', '>', '>=', '<>', '<=>'))} {literal(array, rng)})"


def adopted_feature(text: str) -> list[str]:
    """The feature of an adopted table that a text names, for the coverage."""
    return [f"adopted {source}" for source in ADOPTED if f"adopted {source}" in text]


class Large:
    """Rounds of one table each."""

    def __init__(self, lab: Lab, seed: int, end: float) -> None:
        self.lab, self.seed, self.end = lab, seed, end
        self.coverage, self.wrong = Coverage(), list[str]()
        self.filters = self.queries = self.tables = 0

    def left(self) -> bool:
        return world().monotonic() < self.end

    def found(self, where: str, problem: str) -> None:
        self.wrong.append(f"{where}: {problem}")
        print(f"WRONG ({where}): {problem[:600]}", flush=True)

    def round(self, number: int) -> None:
        rng, numbers = Random(f"{self.seed}/{number}/large"), np.random.default_rng([self.seed, number])
        chosen = rng.sample(list(CHARACTERS), 4)
        kinds = [rng.choice(("bigint", "int", "double", "string", "date", "timestamp")) for _ in chosen]
        parts = [
            pa.table({f"{c}_{k}": column(c, k, rng, numbers, ROWS) for c, k in zip(chosen, kinds, strict=True)})
            for _ in range(rng.choice((1, 1, 2)))
        ]
        data_format, name, where = (
            rng.choice(("parquet", "parquet", "orc", "vortex")),
            f"large{number}",
            f"seed {self.seed}, large round {number}",
        )
        path, plain = self.lab.lake / "db" / name, self.lab.folder / name
        plain.mkdir()
        source = large_sources.some_source(rng, number)
        if source is not None:
            data_format = f"adopted {source}"
            table, parts = large_sources.adopted(rng, numbers, source, parts, path, self.lab.spark)
        else:
            table = tamis.create(str(path), parts[0].schema, format=data_format)
        for at, part in enumerate(parts):
            if source is None:
                table.append(part)
            pq.write_table(part, plain / f"{at}.parquet")
        view = f"plain_{name}"
        self.lab.spark.read.parquet(str(plain)).createOrReplaceTempView(view)
        self.tables += 1
        self.embedded(table, parts[0], rng, view, f"{where} ({data_format})")
        while self.left() and self.queries < 12 * self.tables:
            self.whole(f"{CATALOG}.db.{name}", view, parts[0], rng, where, data_format)

    def embedded(self, table: Any, part: pa.Table, rng: Random, view: str, where: str) -> None:
        predicates = [predicate(part, rng) for _ in range(40)]
        listed = ", ".join(f"count_if({p})" for p in predicates)
        wanted = self.lab.spark.sql(f"SELECT {listed} FROM {view}").first()
        for text, true in zip(predicates, wanted, strict=True):
            if not self.left():
                return
            self.filters += 1
            count = table.scan(text).count()
            rows = table.scan(text, [part.column_names[0]]).to_arrow().num_rows
            if (count, rows) != (true, true):
                self.found(where, f"{text}: count() {count}, rows {rows}, plain Spark {true}")
        self.coverage.take("embedded", {"large"}, adopted_feature(where))

    def whole(self, ours: str, view: str, part: pa.Table, rng: Random, where: str, data_format: str) -> None:
        x, y = rng.sample(part.column_names, 2)
        text = rng.choice(SHAPES).format(x=x, y=y, p=predicate(part, rng))
        unlimited = "LIMIT 30" in text or "LIMIT 100" in text
        if "LIMIT 100" in text:  # which keys a limit leaves is nobody's promise
            text = text.replace(" LIMIT 100", "")
        query = Query(text, SOME if unlimited and "LIMIT 30" in text else EXACT)
        settings: Settings = {k: v for k, v in some_settings(rng).items() if k.startswith("tamis.") and "lazy" not in k}
        with settled(self.lab.spark, settings):
            # Parquet's own pushdown loses rows with NaN: bounds in footers leave NaN out.
            self.lab.spark.conf.set("spark.sql.parquet.filterPushdown", "false")
            plain = ask(self.lab.spark, text.replace("oracle_t0", view), {})
            self.lab.spark.conf.set("spark.sql.parquet.filterPushdown", "true")
            here = ask(self.lab.spark, text.replace("oracle_t0", ours), {})
        self.queries += 1
        problem = compare(query, here, plain, None)
        names = {ours.rpartition(".")[2]} if data_format.startswith("adopted") else ()
        self.coverage.take("large", {data_format}, adopted_feature(data_format), names)
        if problem is not None:
            self.found(where, f"{settings} {text}: {problem}")


def main(arguments: list[str]) -> int:
    numbers = [a for a in arguments if not a.startswith("--")]
    minutes, seed, number = float(numbers[0]), int(numbers[1]), int(numbers[2])
    path = next((a.partition("=")[2] for a in arguments if a.startswith("--json=")), None)
    quiet()
    watch()
    with tempfile.TemporaryDirectory(prefix="tamis-oracle-") as home:
        lab = Lab(Path(home))
        large = Large(lab, seed, world().monotonic() + 60 * minutes)
        while large.left() and not ("--stop" in arguments and large.wrong):
            large.round(number)
            number += 1
        print(
            f"large, seed {seed}: {large.tables} tables, {large.filters} filters, {large.queries} queries, {len(large.wrong)} wrong"
        )
        print(large.coverage.table(), flush=True)
        lab.spark.stop()
    if path:
        found = {
            "seed": seed,
            "minutes": minutes,
            "tables": large.tables,
            "filters": large.filters,
            "queries": large.queries,
            "wrong": large.wrong,
        }
        Path(path).with_suffix(".large.json").write_text(
            json.dumps(found | {"coverage": large.coverage.as_dict()}, indent=1) + "\n"
        )
    return int(bool(large.wrong))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
