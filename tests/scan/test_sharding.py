"""Logical sharding: many small collections in one table clustered by collection; reading one touches its parts alone, about as a table of its own would."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import tamis
from tamis.engine.part_writer.write_part import WIDE_ROWS

COLLECTIONS, ROWS = 6, WIDE_ROWS
WIDE = [f"{i:x}" * 520 for i in range(1, 9)]
"""Texts that make a block of one collection's rows."""


def made(path: Any, collections: range) -> tamis.Table:
    """Rows of these collections as they come in, shuffled together; a part ends with every block."""
    number = np.tile(np.array(collections), ROWS)
    table = tamis.create(path, cluster_by=["collection"], properties={"tamis.write.part_bytes": 1})
    texts = pa.DictionaryArray.from_arrays(pa.array(np.arange(len(number)) % len(WIDE), pa.int32()), WIDE).cast(
        pa.string()
    )
    table.append(
        pa.table(
            {"collection": [f"c{c:04}" for c in number], "n": number * 100_000 + np.arange(len(number)), "text": texts}
        )
    )
    return table


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> tuple[tamis.Table, tamis.Table]:
    """Many collections, and one of them alone."""
    root = tmp_path_factory.mktemp("sharding")
    return made(root / "many", range(COLLECTIONS)), made(root / "one", range(3, 4))


def test_one_of_many_collections_costs_about_as_much_as_one_alone(tables: tuple[tamis.Table, tamis.Table]) -> None:
    scans = [table.scan("collection = 'c0003'", ["collection", "text"]) for table in tables]
    found = [scan.to_arrow() for scan in scans]
    assert [table.num_rows for table in found] == [ROWS, ROWS]
    assert found[0]["collection"].unique().to_pylist() == ["c0003"]
    many, one = (scan.report for scan in scans)
    assert many.parts.total >= COLLECTIONS
    assert many.parts.kept <= one.parts.kept + 2  # the parts at its edges hold rows of its neighbours
    assert many.bytes.leader + many.bytes.follower <= 2 * (one.bytes.leader + one.bytes.follower)
    assert tables[0].scan("collection = 'c9999'").plan().report.parts.kept == 0


def test_each_collection_is_counted_from_metadata_but_for_its_edges(tables: tuple[tamis.Table, tamis.Table]) -> None:
    scan = tables[0].scan()
    counts = scan.aggregate("count(*)", "collection")
    assert counts["count(*)"].to_pylist() == [ROWS] * COLLECTIONS
    assert scan.report.parts.answered > 0
    assert scan.report.parts.kept < COLLECTIONS
