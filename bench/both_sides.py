"""Tables that two sides read: a Tamis table, and plain Parquet files of the same rows in the same order."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

import tamis
from bench.report import Figure, in_turn, ratios, rounds

NEAR, MORE = 0.95, 3
"""The share of a limit from which a query gets how many times the rounds."""


def keep_sorted(folder: Path, namespace: str, name: str, data: pa.Table, key: str | None, loads: int) -> tamis.Table:
    """Keep ``data``, without views and dictionaries, in ``loads`` loads if there is a key to sort it by, else in one."""
    data = _plain(data)
    if key is None:
        return keep_pieces(folder, namespace, name, data.schema, [data], cluster_by=())
    # Piece by piece: two copies of the largest table of TPC-DS at scale 10 do not fit 16 GB.
    order = pc.sort_indices(data, sort_keys=[(key, "ascending")])
    each = max(-(-len(data) // loads), 1)
    pieces = (data.take(order.slice(start, each)) for start in range(0, max(len(data), 1), each))
    return keep_pieces(folder, namespace, name, data.schema, pieces, cluster_by=(key,))


def keep_pieces(
    folder: Path, namespace: str, name: str, schema: pa.Schema, pieces: Iterable[pa.Table], cluster_by: tuple[str, ...]
) -> tamis.Table:
    """Keep each piece as a load of ``lake/<namespace>/<name>``, and as a file of ``plain/<name>``."""
    table = tamis.create(folder / "lake" / namespace / name, schema, cluster_by=cluster_by)
    (folder / "plain" / name).mkdir(parents=True)
    for at, rows in enumerate(pieces):
        table.append(rows)
        write_plain(rows, folder / "plain" / name / f"{at}.parquet")
    return table


def write_plain(rows: pa.Table, path: Path, *, page_index: bool = True) -> None:
    """Write a Parquet file for Spark to read, with the page indexes that Spark's own files have unless ``page_index`` is false."""
    pq.write_table(rows, path, compression="zstd", write_page_index=page_index)


def ratio_of(seconds: Mapping[str, Mapping[str, Any]]) -> float:
    return float(seconds["tamis"]["median"] / seconds["spark"]["median"])


def rounds_near(limit: float, work: Mapping[str, Callable[[int], Any]]) -> dict[str, dict[str, Any]]:
    """The sides in turn; three times the rounds if tamis is slower than ``limit``, or nearly so.

    A busy moment decides in few rounds, either way, and the slowest query is a figure.
    """
    seconds = in_turn(rounds(), **work)
    return seconds if ratio_of(seconds) <= NEAR * limit else in_turn(MORE * rounds(), **work)


def sums(queries: Mapping[str, Any]) -> list[Figure]:
    """The ratio of the sums of both sides' medians over all queries, and that of their CPU seconds."""
    both = [[one["seconds"][side] for one in queries.values()] for side in ("tamis", "spark")]
    mine, peer = ({key: sum(one[key] for one in side) for key in ("median", "cpu")} for side in both)
    return ratios("sum of times: tamis / Spark Parquet", mine, peer)


def _plain(table: pa.Table) -> pa.Table:
    kinds = {pa.string_view(): pa.string(), pa.large_string(): pa.string()}
    return table.cast(pa.schema([pa.field(f.name, kinds.get(f.type, f.type)) for f in table.schema]))
