"""What a filter costs over rows at hand (the seed's appendix): long lists, deep trees, whole vectors against row by row.

CPU seconds, least of some rounds; every figure is a ratio of two of them from the same run. One batch has as many rows as a reader filters at once (65,536). "Row by row" is a Python
function of a row's values, compiled once, that stops as soon as the row is decided: what a filter of rows is in this language.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from bench.report import Figure, quick, record, rounds
from tamis.core.expr import Expr, conjuncts_of, filter_mask, parse_predicate
from tamis.core.types import LONG, STRING, Field, Schema
from tamis.engine.part_reader.filter_order import ordered_conjunction

ROWS = 65_536
NAMES = tuple(f"f{i}" for i in range(18))
TEXT, DOCUMENT = 100, 101
SCHEMA = Schema(
    (
        *(Field(name, LONG, id=i) for i, name in enumerate(NAMES, 1)),
        Field("s", STRING, id=TEXT),
        Field("j", STRING, id=DOCUMENT),
    )
)
DOMAIN = 1_000_000
IN_SIZES = (4, 8, 16, 32, 256, 1000)
GOALS = {4: 1 / 2, 8: 1 / 1.5, 16: 1 / 1.5, 32: 1 / 1.3, 256: 1 / 1.2}
"""Vector against row by row, by values of a list: the published ratios turned over, less is better."""


def in_list(column: str, count: int, seed: int) -> tuple[str, frozenset[int]]:
    values = np.random.default_rng(seed).integers(0, DOMAIN, count)
    return f"{column} IN ({', '.join(map(str, values))})", frozenset(values.tolist())


def cpu(work: dict[str, Callable[[], Any]]) -> dict[str, float]:
    """Least CPU seconds of each, in turn."""
    least: dict[str, float] = {}
    for turn in range(rounds() * 5 + 1):
        for name, run in work.items():
            start = time.process_time()
            run()
            if turn:
                least[name] = min(least.get(name, float("inf")), time.process_time() - start)
    return least


def masks(tree: Expr, batch: dict[int, pa.Array]) -> Callable[[], Any]:
    wanted = conjuncts_of(tree)
    return lambda: filter_mask(wanted, batch, ROWS)


def lists(batch: dict[int, pa.Array]) -> tuple[list[Figure], dict[str, float]]:
    """Two lists joined by OR, over whole vectors and row by row."""
    work: dict[str, Callable[[], Any]] = {}
    plain = [batch[i].to_pylist() for i in (1, 2)]
    for count in IN_SIZES:
        (first, a), (second, b) = in_list("f0", count, 1), in_list("f1", count, 2)
        work[f"vector {count}"] = masks(parse_predicate(f"{first} OR {second}", SCHEMA), batch)
        test: Callable[[Any, Any], bool] = eval(
            "lambda x, y: x is not None and x in a or y is not None and y in b", {"a": a, "b": b}
        )  # a row filter, compiled once
        work[f"row {count}"] = lambda test=test: [test(x, y) for x, y in zip(*plain, strict=True)]
    taken = cpu(work)
    figures = [
        Figure(f"two lists of {n}: vector / row by row", taken[f"vector {n}"] / taken[f"row {n}"], "×", GOALS.get(n))
        for n in IN_SIZES
    ]
    figures.append(Figure("list of 1,000 / list of 4, vector", taken["vector 1000"] / taken["vector 4"], "×", 2.0))
    figures.append(Figure("list of 256 / list of 4, vector", taken["vector 256"] / taken["vector 4"], "×", 1.5))
    return figures, taken


def trees(batch: dict[int, pa.Array]) -> tuple[list[Figure], dict[str, float]]:
    """An OR of n ANDs of two lists, and one more list: as written, and as a conjunctive normal form would have it (2ⁿ clauses of n lists)."""
    work: dict[str, Callable[[], Any]] = {}
    for n in (2, 4, 8):
        legs = [(in_list(f"f{2 * i}", 32, 2 * i)[0], in_list(f"f{2 * i + 1}", 32, 2 * i + 1)[0]) for i in range(n)]
        last = in_list("f16", 32, 99)[0]
        work[f"as written {n}"] = masks(
            parse_predicate(f"({' OR '.join(f'({a} AND {b})' for a, b in legs)}) OR {last}", SCHEMA), batch
        )
        clauses = (" OR ".join([*(legs[i][choice >> i & 1] for i in range(n)), last]) for choice in range(2**n))
        work[f"normal form {n}"] = masks(parse_predicate(" AND ".join(f"({c})" for c in clauses), SCHEMA), batch)
    taken = cpu(work)
    return [
        Figure("OR of 4 ANDs: as written / normal form", taken["as written 4"] / taken["normal form 4"], "×", 1 / 2),
        Figure("OR of 8 ANDs: as written / normal form", taken["as written 8"] / taken["normal form 8"], "×", 1 / 30),
        Figure("OR of 8 ANDs / OR of 2 ANDs, as written", taken["as written 8"] / taken["as written 2"], "×", 4.0),
    ], taken


def orders(batch: dict[int, pa.Array]) -> tuple[list[Figure], dict[str, float]]:
    """A costly conjunct that keeps all before a cheap one that keeps a row in a thousand: as written, and in the order that was seen to be cheapest."""
    wanted = conjuncts_of(
        parse_predicate(f"{in_list('f0', 1000, 5)[0].replace(' IN ', ' NOT IN ')} AND f1 < 1000", SCHEMA)
    )
    learned = ordered_conjunction(wanted, None)
    taken = cpu({"as written": lambda: filter_mask(wanted, batch, ROWS), "learned": lambda: learned.mask(batch, ROWS)})
    return [
        Figure("costly before selective: learned order / as written", taken["learned"] / taken["as written"], "×", 1.0)
    ], taken


def undecided(batch: dict[int, pa.Array]) -> tuple[list[Figure], dict[str, float]]:
    """A cheap leg that decides nine rows of ten, beside a costly one: with the costly leg on all rows, and as the reader does it."""
    texts = {
        "text OR number": "s LIKE '%beta-77%' OR f0 < 900000",
        "text AND number": "s LIKE '%beta-77%' AND f0 < 100000",
        "document OR number": "get_json_object(j, '$.user.age') = '7' OR f0 < 900000",
        "numbers": "f0 > 500000 AND f1 < 300000 AND f2 < 700000",
    }
    work: dict[str, Callable[[], Any]] = {}
    for name, text in texts.items():
        wanted = conjuncts_of(parse_predicate(text, SCHEMA))
        work[f"all rows, {name}"] = lambda wanted=wanted: filter_mask(wanted, batch, ROWS)
        work[name] = partial(ordered_conjunction(wanted, None).mask, batch, ROWS)
    taken = cpu(work)
    return [
        Figure(f"{name}: undecided rows / all rows", taken[name] / taken[f"all rows, {name}"], "×", goal)
        for name, goal in zip(texts, (0.3, 0.3, 0.2, 1.1), strict=True)
    ], taken


def main() -> None:
    random = np.random.default_rng(3)
    batch = {i: pa.array(random.integers(0, DOMAIN, ROWS)) for i in range(1, len(NAMES) + 1)}
    numbers = random.integers(0, 5_000, ROWS).tolist()
    batch[TEXT] = pa.array([f"alpha-{n}-beta-{7 * n}" for n in numbers])
    batch[DOCUMENT] = pa.array([f'{{"id": {n}, "user": {{"name": "u{n}", "age": {n % 90}}}}}' for n in numbers])
    figures: list[Figure] = []
    detail: dict[str, Any] = {"rows": ROWS, "quick_rounds": quick()}
    for name, part in (("lists", lists), ("trees", trees), ("orders", orders), ("undecided", undecided)):
        found, detail[name] = part(batch)
        figures += found
    record("filters", figures, detail)


if __name__ == "__main__":
    main()
