"""Sources of a million rows and more that the oracle adopts at the usual sizes."""

from __future__ import annotations

from pathlib import Path
from random import Random  # noqa: TID251  # seeded by the caller
from typing import Any

import deltalake
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import tamis
from tests.bridges.iceberg_tables import catalog, commit_deletes, data_paths, metadata_of, position_file, vector_files
from tests.oracle.coverage import ADOPTED
from tests.oracle.foreign_sources import commit_vectors

FIRST = 3
"""So many rounds have one adopted table at least."""


def some_source(rng: Random, number: int) -> str | None:
    """Where the table of a round comes from; None for one that is made here. A quarter of all, and of the first rounds one."""
    drawn = rng.choice(ADOPTED)
    return drawn if number == FIRST - 2 or rng.random() < 0.25 else None


def adopted(
    rng: Random, numbers: np.random.Generator, source: str, parts: list[pa.Table], path: Path, spark: Any
) -> tuple[tamis.Table, list[pa.Table]]:
    """A table of ``parts`` as files of a source, and the rows that are left of each after deletes of the source's own."""
    folder = path.parent.parent / f"source-{path.name}"
    gone = [np.flatnonzero(numbers.random(len(part)) < rng.choice((0, 0.001, 0.2))) for part in parts]
    if source == "delta":
        place, left = _delta(folder, parts, gone)
    elif source == "iceberg":
        place, left = _iceberg(folder, parts, gone, rng)
    else:
        place, left = _folder(folder, parts, rng, spark if source == "hive" else None), parts
    table = tamis.adopt(place, path)
    assert isinstance(table, tamis.Table)
    return table, left


def _left(parts: list[pa.Table], gone: list[Any]) -> list[pa.Table]:
    return [part.take(np.setdiff1d(np.arange(len(part)), at)) for part, at in zip(parts, gone, strict=True)]


def _folder(folder: Path, parts: list[pa.Table], rng: Random, spark: Any) -> Path:
    """Files of Arrow, or of Spark."""
    folder.mkdir()
    for at, part in enumerate(parts):
        group = rng.choice((5_000, 100_000, 1_000_000))
        pq.write_table(part, folder / f"{at}.parquet", row_group_size=group, write_page_index=rng.random() < 0.5)
    if spark is None:
        return folder
    written = folder.with_name(f"{folder.name}-spark")
    frame = spark.read.parquet(str(folder))
    frame.write.option("parquet.block.size", str(rng.choice((2**18, 2**27)))).parquet(str(written))
    return written


def _delta(folder: Path, parts: list[pa.Table], gone: list[Any]) -> tuple[Path, list[pa.Table]]:
    paths: list[str] = []
    for part in parts:
        deltalake.write_deltalake(folder, part, mode="append", target_file_size=2**30)
        now = deltalake.DeltaTable(folder).get_add_actions()["path"].to_pylist()
        (new,) = set(now) - set(paths)
        paths.append(new)
    places = {path: at.tolist() for path, at in zip(paths, gone, strict=True) if len(at)}
    if places:
        commit_vectors(folder, places, stored=True)
    return folder, _left(parts, gone)


def _iceberg(folder: Path, parts: list[pa.Table], gone: list[Any], rng: Random) -> tuple[Path, list[pa.Table]]:
    folder.mkdir()
    table = catalog(folder).create_table("n.t", parts[0].schema)
    for part in parts:
        table.append(part.cast(table.schema().as_arrow()))
    paths = data_paths(table)
    assert len(paths) == len(parts)
    places = {path: at.tolist() for path, at in zip(paths, gone, strict=True) if len(at)}
    if not places:
        return metadata_of(table), parts
    if rng.random() < 0.5:
        return commit_deletes(metadata_of(table), vector_files(table, places), version=3), _left(parts, gone)
    rows = [(path, at) for path, found in places.items() for at in found]
    return commit_deletes(metadata_of(table), [position_file(table, rows)]), _left(parts, gone)
