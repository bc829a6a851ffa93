"""Random tables of other formats that are adopted, as the first steps of histories."""

from __future__ import annotations

from collections.abc import Callable
from random import Random  # noqa: TID251  # seeded by the caller
from typing import Any

from tests.oracle import history as h
from tests.oracle.kinds import KINDS

SHARE = 0.25
"""Of all tables."""
SOURCES = ("folder", "folder", "hive", "hive", "delta", "delta", "iceberg")
UNFIT = {
    **{source: {"variant", "typed", "interval", "char"} for source in ("folder", "hive")},
    "delta": {"variant", "typed", "interval"},
    "iceberg": {"variant", "typed", "interval", "char", "tinyint", "smallint", "orders", "keyed"},
}
"""Kinds that a source cannot hold. PyIceberg writes a missing array of structs as an empty one."""
DELETES = {"delta": ("vectors", "vectors", "rewrite"), "iceberg": ("positions", "vectors", "equality", "rewrite")}
"""How a source's own writers delete rows."""
PARTITIONED = ("int", "string", "date", "bigint")
"""Kinds of columns by which files are partitioned."""


def some_source(rng: Random) -> str | None:
    """The kind of source that a table comes from; None for one that is made here."""
    return rng.choice(SOURCES) if rng.random() < SHARE else None


def adopted(
    rng: Random, made: h.Create, source: str, values_of: Callable[[h.Columns, int], dict[str, list[Any]]]
) -> h.Adopt:
    """``made`` as an adopted table, with rows that are there before it is adopted."""
    columns, partition = dict(made.columns), None
    if source == "hive" or (source != "folder" and rng.random() < 0.3):
        partition = rng.choice([c for c, kind in columns.items() if kind in PARTITIONED and c != "k"])
        columns[partition] = columns.pop(partition)  # columns of folders come last
    values = values_of(columns, rng.choice((17, 40, 40, 90, 200)))
    if partition is not None:
        partition_values = [KINDS[columns[partition]].value(rng.randrange(60)) for _ in range(3)]
        values[partition] = [rng.choice((*partition_values, None)) for _ in values[partition]]
    options = {
        "int96": "" if "ntz" in columns.values() else rng.choice(("", "true")),
        "legacy": rng.choice(("true", "false")),
        "dictionary": rng.choice(("true", "false")),
        "statistics": rng.choice(("true", "true", "true", "false")),
        "page_index": rng.choice(("", "true", "true")),
        "page_rows": rng.choice(("", "3", "4", "4")),
        "page_bytes": rng.choice(("", "", "64", "100")),
        "checkpoint": rng.choice(("", "true")),
        "stored": rng.choice(("", "true")),
        "layout": rng.choice(("", "", "dictionary", "large")),
        "deletes": rng.choice(DELETES.get(source, ("",))),
    }
    deleted: tuple[int, ...] = ()
    if source in DELETES and rng.random() < 0.7:
        share = rng.choice((0.05, 0.3, 0.8))
        deleted = tuple(k for k in values["k"] if rng.random() < share)
    return h.Adopt(
        columns,
        made.format,
        made.cluster_by,
        made.properties,
        source=source,
        values=values,
        files=rng.choice((1, 2, 3, 5)),
        row_group=rng.choice((4, 16, 16, 1000)),
        partition=partition,
        deleted=deleted,
        options={name: value for name, value in options.items() if value},
    )
