"""What may be true of a table that no statement says: statistics wider than the data, files in several formats, and files that were damaged."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from decimal import Decimal, localcontext
from pathlib import Path
from random import Random  # noqa: TID251  # seeded by the caller
from typing import Any

import pyarrow as pa

from tamis.core.stats.statistics_columns import VALUES, parse_name
from tamis.engine.operations.layout.index_commits import commit_indexed
from tamis.engine.operations.rows.append import write_rows
from tamis.engine.operations.schema.evolve import commit_schema
from tamis.engine.part_writer import conform_batches
from tamis.engine.scan import Options
from tamis.storage.commit_log import Operation, Proposal
from tamis.world import new_id


def append_loosely(table: Any, data: pa.Table, seed: int) -> None:
    """Appends rows as a writer does that keeps coarser statistics: bounds wider than the values and not exact, sets and counts left out."""
    snapshot, store, rng = table.snapshot, table.store, Random(seed)
    head = snapshot.head
    options = Options.resolve(None, None, head.properties)
    parts = [loosened(part, rng) for part in write_rows(store, head, conform_batches(data, head.schema), options)]
    proposal = Proposal(
        operation=Operation("append"),
        table_id=head.table_id,
        read_version=snapshot.version,
        blind_append=True,
        add=parts,
        operation_id=new_id(),
    )
    if parts:
        commit_indexed(store, head, proposal, options.index_build)


def loosened(part: pa.Table, rng: Random) -> pa.Table:
    """A part's manifest row whose statistics still hold, but say less."""
    for at, name in enumerate(part.column_names):
        found = parse_name(name)
        if found is None:
            continue
        old = part.column(at)
        value: Any = None
        if found.kind in {"lo", "hi"} and rng.random() < 0.8:
            value = _outside(old[0].as_py(), upper=found.kind == "hi", by=rng.choice((0, 1, 4)))
        elif found.kind == "exact":
            value = 0
        elif found.kind in {VALUES, "nulls", "nans", "count"} and rng.random() < 0.6:
            continue
        with suppress(pa.ArrowException, OverflowError):  # beyond what the type holds: the bound stays
            part = part.set_column(at, name, pa.array([value], old.type))
    return part


def _outside(value: Any, *, upper: bool, by: int) -> Any:
    """A bound that is wider than ``value``."""
    sign = by if upper else -by
    match value:
        case bool():
            return upper if by else value
        case str():
            return value + value[:by] if upper else value[: len(value) // 2]
        case bytes():
            return value + value[:by] if upper else value[: len(value) // 2]
        case int():
            return value + sign
        case Decimal():
            with localcontext(prec=60):  # as many digits as the sum has
                return value + sign
        case float():
            return value + sign / 2
        case dt.datetime():
            return value + dt.timedelta(hours=sign)
        case dt.date() | dt.timedelta():
            return value + dt.timedelta(days=sign)
    return None


def write_as(table: Any, data_format: str) -> None:
    """From now on, files are written in another format; those that are there stay."""
    commit_schema(table.store, table.snapshot, lambda head: replace(head, format=data_format), operation_id=new_id())


def damage_data(table: Path, source: Path, rng: Random) -> str:
    """Damages one data file; returns how. Every file has checksums of all its bytes, or is of ``source`` and changes its time.

    No file takes another's place: a process that remembers the footer of the first does not notice.
    """
    files = sorted(path for path in (table / "data").rglob("*") if path.is_file())
    files += sorted(source.rglob("*.parquet"))
    if not files:
        return "nothing to damage"
    how, path = rng.choice(("cut", "gone", "bit", "bit", "bit")), rng.choice(files)
    HARM[how](path, path.read_bytes(), rng)
    return how


def _bit(path: Path, data: bytes, rng: Random) -> None:
    at = rng.randrange(len(data))
    path.write_bytes(data[:at] + bytes([data[at] ^ (1 << rng.randrange(8))]) + data[at + 1 :])


HARM: dict[str, Callable[[Path, bytes, Random], object]] = {
    "cut": lambda path, data, rng: path.write_bytes(data[: rng.randrange(len(data))]),
    "gone": lambda path, data, rng: path.unlink(),
    "bit": _bit,
}
