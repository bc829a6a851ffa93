"""Random rows of arrays and maps, their statistics as parts have them, and filters on positions and keys."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal as Number
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from tamis.core import expr
from tamis.core.expr import Expr
from tamis.core.stats import Collector, TableEvidence, union_statistics
from tamis.core.stats.statistics_budget import trim_statistics
from tamis.core.types import (
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INTEGER,
    LONG,
    STRING,
    Array,
    DataType,
    Decimal,
    Field,
    Map,
    Schema,
    Struct,
)
from tamis.core.types.arrow import to_arrow_schema
from tamis.storage.object_store.metadata_union import stack_tables

NAN = float("nan")
KEYS = ("a", "b", "c", "d", "", "k" * 70, "é")
LONG_TEXT = "x" * 64


@dataclass(frozen=True)
class Kind:
    """A type of elements: the value near a number, and a literal of it."""

    type: DataType
    value: Callable[[int], Any]
    literal: Callable[[int], str]
    odd: tuple[Any, ...] = ()


KINDS = {
    "long": Kind(LONG, lambda i: i, str, (2**63 - 1, -(2**63))),
    "double": Kind(DOUBLE, float, lambda i: f"double('{i}')", (NAN, NAN, -0.0, 0.0, float("inf"))),
    "float": Kind(FLOAT, float, lambda i: f"float('{i}')", (NAN, -0.0)),
    "string": Kind(STRING, lambda i: f"{i:03}", lambda i: f"'{i:03}'", ("", LONG_TEXT + "y", LONG_TEXT + "a", "\U0010ffff" * 66)),
    "boolean": Kind(BOOLEAN, lambda i: i % 2 == 0, lambda i: "true" if i % 2 == 0 else "false"),
    "date": Kind(DATE, lambda i: dt.date(2024, 1, 1) + dt.timedelta(i), lambda i: f"DATE'{dt.date(2024, 1, 1) + dt.timedelta(i)}'"),
    "decimal": Kind(Decimal(10, 2), Number, lambda i: f"{i}.00", (Number("0.01"),)),
    "binary": Kind(BINARY, lambda i: bytes([i % 256]) * 3, lambda i: f"X'{bytes([i % 256]).hex() * 3}'", (b"\xff" * 70, b"")),
}  # fmt: skip


FORMS = ("x", "m", "xs", "ms", "st")
"""An array and a map of a kind, of structs, and both in a struct."""


def schema_of(kind: Kind, names: tuple[str, ...] = FORMS) -> Schema:
    """Return columns of these nested forms with elements of the kind."""
    inner = Struct((Field("v", kind.type), Field("n", INTEGER)))
    key = Field("key", STRING, nullable=False)
    fields = (
        Field("x", Array(Field("element", kind.type))),
        Field("m", Map(key, Field("value", kind.type))),
        Field("xs", Array(Field("element", inner))),
        Field("ms", Map(key, Field("value", inner))),
        Field("st", Struct((Field("x", Array(Field("element", kind.type))), Field("m", Map(key, Field("value", kind.type)))))),
    )  # fmt: skip
    return Schema(tuple(f for f in fields if f.name in names)).assign_ids(0)


def rows_of(rng: np.random.Generator, schema: Schema, kind: Kind, near: int) -> pa.Table:
    """Return a few rows whose values lie near a number; in some pieces nothing is missing."""
    gaps = float(rng.choice((0.0, 0.0, 0.15, 0.5)))
    odd = float(rng.choice((0.0, 0.0, 0.1)))
    longest = int(rng.choice((1, 3, 10)))
    least = int(rng.integers(0, longest + 1))
    keys = [KEYS[i] for i in rng.permutation(len(KEYS))[: int(rng.integers(1, len(KEYS)))]]
    same = rng.random() < 0.4

    def gap() -> bool:
        return bool(rng.random() < gaps)

    def value(offset: int) -> Any:
        if gap():
            return None
        if kind.odd and rng.random() < odd:
            return kind.odd[rng.integers(len(kind.odd))]
        return kind.value(near + 10 * offset + int(rng.integers(4)))

    def struct(offset: int) -> Any:
        return None if gap() else {"v": value(offset), "n": None if gap() else near + offset}

    def array(one: Callable[[int], Any]) -> Any:
        return None if gap() else [one(i) for i in range(int(rng.integers(least, longest + 1)))]

    def mapping(one: Callable[[int], Any]) -> Any:
        if gap():
            return None
        chosen = keys if same else [key for key in keys if rng.random() < 0.7]
        return [(key, one(KEYS.index(key))) for key in chosen]

    made = []
    for _ in range(int(rng.integers(1, 12))):
        row = {"x": array(value), "m": mapping(value), "xs": array(struct), "ms": mapping(struct)}
        row |= {"st": None if gap() else {"x": array(value), "m": mapping(value)}}
        made.append({f.name: row[f.name] for f in schema.fields})
    return pa.Table.from_pylist(made, schema=to_arrow_schema(schema))


def manifest_row(rng: np.random.Generator, schema: Schema, rows: pa.Table, room: int = 10**9) -> pa.Table:
    """Return the statistics of a part that was written in several blocks, in at most ``room`` bytes."""
    collector = Collector(schema)
    cuts = sorted({0, len(rows), *rng.integers(0, len(rows) + 1, 2).tolist()})
    for start, end in pairwise(cuts):
        collector.update(rows.slice(start, end - start).combine_chunks().to_batches()[0])
    left = trim_statistics(collector.figures(), {}, room).statistics
    return pa.table(left | {"rows": pa.array([len(rows)]), "schema_id": pa.array([0], pa.int32())})


def without_places(row: pa.Table) -> pa.Table:
    """Return the row as earlier releases wrote it."""
    return row.select(
        [n for n in row.column_names if "placed_" not in n and n.rpartition("|")[2] not in ("places", "listed")]
    )


def evidence_of(schema: Schema, rows: list[pa.Table]) -> TableEvidence:
    return TableEvidence(stack_tables(rows), schema)


def united(rows: list[pa.Table]) -> pa.Table:
    """Return the statistics of a segment of these parts."""
    whole = stack_tables(rows)
    total = pa.array([pa.compute.sum(whole["rows"]).as_py()], pa.int64())
    return union_statistics(whole).append_column("rows", total).append_column("schema_id", pa.array([0], pa.int32()))


def some_filter(rng: np.random.Generator, schema: Schema, kind: Kind, *, ansi: bool) -> tuple[Expr, str]:
    """Return a predicate on one position or key, parsed, and its text."""
    sources = [
        x for x in ("x", "m", "xs", "ms", "st.x", "st.m", "xs.v") if any(f.name == x.split(".")[0] for f in schema)
    ]
    source = str(rng.choice(sources))
    near = int(rng.integers(0, 4)) * 100 + int(rng.integers(0, 80))
    literal, key = kind.literal(near + int(rng.integers(-2, 4))), KEYS[rng.integers(len(KEYS))]
    if "m" in source:
        access = str(
            rng.choice((f"{source}['{key}']", f"element_at({source}, '{key}')", f"try_element_at({source}, '{key}')"))
        )
    else:
        at = int(rng.integers(0, 11))
        access = str(rng.choice((f"{source}[{at}]", f"get({source}, {at})", f"element_at({source}, {at})", f"try_element_at({source}, {at + 1})", f"try_element_at({source}, {-at - 1})")))  # fmt: skip
    if source.endswith("s"):
        access, literal = (f"{access}.n", str(near)) if rng.random() < 0.3 else (f"{access}.v", literal)
    form = str(rng.choice(("{} = {}", "{} <> {}", "{} < {}", "{} >= {}", "{} IS NULL", "{} IS NOT NULL", "NOT ({} = {})", "{} <=> {}", "{} IN ({}, {})", "coalesce({} = {}, true)")))  # fmt: skip
    text = form.replace("{}", access, 1).replace("{}", literal)
    return expr.parse_predicate(text, schema, ansi=ansi), text
