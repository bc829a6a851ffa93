"""Tables whose texts are not UTF-8, as Spark casts them from binary values: whole queries against plain Parquet, and a DELETE.

They have no ``History``, since the model of embedded filters cannot compute what Spark finds in them. Spark's own filters of Parquet lose some of these
rows, so the judge turns them off where it asks plain Spark.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from random import Random  # noqa: TID251  # seeded by the caller

from tests.oracle.lab import CATALOG, Lab
from tests.oracle.predicates import Predicates
from tests.oracle.query import Asked, Query

FEATURE = "texts that are not UTF-8"
COLUMNS = {"k": "bigint", "a": "string", "b": "string"}
PIECES = (b"k0", b"1", b"5", b"caf", b" ", b"\xe9", b"\xff", b"\xc3", b"\xc3\xa9", b"\xf0\x9f\x98", b"\x00", b"{\"x\":1}", b"%", b"\xed\xa0\x80")  # fmt: skip
FORMATS = ("parquet", "parquet", "orc", "vortex")
WELL_FORMED = re.compile(r"'k\d\d\d'")
"""Literals of texts in queries."""


@dataclass(frozen=True)
class Texts:
    """A table and the view of its rows in plain Parquet."""

    name: str
    view: str
    format: str

    def ours(self, step: int | None = None) -> str:
        return f"{CATALOG}.db.{self.name}"

    def plain(self, step: int | None = None) -> str:
        return self.view


@contextmanager
def some_texts(lab: Lab, rng: Random) -> Iterator[Texts]:
    """A table of some parts, perhaps with an index, and perhaps after a DELETE."""
    number = rng.randrange(10**9)
    made = Texts(f"texts{number}", f"plain_texts{number}", rng.choice(FORMATS))
    folder, spark = lab.folder / made.view, lab.spark
    spark.sql(
        f"CREATE TABLE {made.ours()} (k BIGINT, a STRING, b STRING) TBLPROPERTIES ('tamis.format' = '{made.format}')"
    )
    try:
        for part in range(rng.choice((1, 3, 5))):
            frame = spark.sql(_part(rng, part * 100, rng.choice((1, 5, 40)))).coalesce(1)
            frame.writeTo(made.ours()).append()
            frame.write.mode("append").parquet(str(folder))
        spark.read.parquet(str(folder)).createOrReplaceTempView(made.view)
        if rng.random() < 0.3:
            spark.sql(f"CREATE INDEX by_text ON {made.ours()} (a)").collect()
        if rng.random() < 0.5:
            gone = Predicates(rng, COLUMNS).simple()
            spark.read.parquet(str(folder)).where(f"NOT coalesce({gone}, false)").createOrReplaceTempView(made.view)
            spark.sql(f"DELETE FROM {made.ours()} WHERE {gone}").collect()
        yield made
    finally:
        spark.sql(f"DROP TABLE {made.ours()}").collect()
        spark.catalog.dropTempView(made.view)
        shutil.rmtree(folder, ignore_errors=True)


def asked_texts(name: str) -> Asked:
    """What queries may ask of such a table, called ``name`` in them."""
    return Asked(name, dict(COLUMNS))


def with_malformed_literals(rng: Random, query: Query) -> Query:
    """The query with some of its literals, the same everywhere, replaced by texts of the kind that the tables hold."""
    found = {text: _literal(rng, [_text(rng, b"")]) for text in WELL_FORMED.findall(query.text) if rng.random() < 0.5}

    def changed(text: str) -> str:
        return WELL_FORMED.sub(lambda match: found.get(match[0], match[0]), text)

    return replace(query, text=changed(query.text), unlimited=query.unlimited and changed(query.unlimited))


def _part(rng: Random, first: int, rows: int) -> str:
    """A query for the rows of a part: few values or many, with a common beginning or none."""
    start = rng.choice((b"", b"", b"caf\xe9", b"k" * 66))
    pool = [_text(rng, start) for _ in range(rng.choice((1, 3, rows)))]
    values = (f"({first + i}, {_literal(rng, pool)}, {_literal(rng, pool)})" for i in range(rows))
    return f"SELECT CAST(k AS BIGINT) AS k, a, b FROM VALUES {', '.join(values)} AS t(k, a, b)"


def _text(rng: Random, start: bytes) -> bytes:
    return start + b"".join(rng.choices(PIECES, k=rng.choice((0, 1, 2, 3, 40))))


def _literal(rng: Random, pool: list[bytes]) -> str:
    return "CAST(NULL AS STRING)" if rng.random() < 0.1 else f"CAST(X'{rng.choice(pool).hex()}' AS STRING)"
