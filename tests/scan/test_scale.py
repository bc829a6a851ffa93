"""Planning grows with what may match, not with what there is."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import tamis
from tamis.engine.scan import funnel
from tamis.errors import CorruptData
from tamis.storage.commit_log import manifests
from tamis.storage.object_store.metadata_files import store_rows
from tamis.storage.object_store.object_cache import CACHE

LOADS = 40


def test_planning_opens_the_manifests_of_loads_that_may_match_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other manifests are gone, and nothing reads them; figures of the whole table come from the log."""
    monkeypatch.setattr(manifests, "store_rows", partial(store_rows, limit=0))
    table = tamis.create(tmp_path / "t")
    for load in range(LOADS):
        table.append(pa.table({"ts": range(10 * load, 10 * load + 10)}))
    needed = table.metadata("segments")["segment_id"][17].as_py()
    files = list((tmp_path / "t" / "_tamis" / "manifest").iterdir())
    assert len(files) == LOADS
    for file in files:
        if needed not in file.name:
            file.unlink()
    CACHE.clear()
    report = tamis.open(tmp_path / "t").explain("ts > 172 AND ts < 178")
    assert (report.parts.total, report.parts.kept, report.parts.skipped_segment, report.rows.total) == (
        LOADS,
        1,
        LOADS - 1,
        10 * LOADS,
    )
    with pytest.raises(CorruptData) as caught:
        tamis.open(tmp_path / "t").explain("ts > 172")
    assert caught.value.code == "MISSING_OBJECT"


@pytest.mark.parametrize("filter_", ["n = 17", "n > 250", "n < 0", "even = 3", "n >= 0", "n BETWEEN 95 AND 105"])
def test_few_parts_are_decided_alone_as_segments_and_parts_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, filter_: str
) -> None:
    """One decision over the parts keeps the same parts as one over segments first, and misses no skipped segment."""
    table = tamis.create(tmp_path / "t", cluster_by=["n"], properties={"tamis.write.part_bytes": "4k"})
    for load in range(3):
        n = np.arange(load * 100, (load + 1) * 100)
        halves = [pa.table({"n": half, "even": half // 2 * 2, "pad": ["x" * 99] * 50}) for half in np.split(n, 2)]
        table.append(pa.concat_tables(halves))
    found = []
    for few_parts in (0, 128):
        monkeypatch.setattr(funnel, "FEW_PARTS", few_parts)
        plan = table.scan(filter_).plan()
        report = plan.report
        found.append(
            (plan.parts.table["part_id"].to_pylist(), report.segments["skipped"], report.parts["skipped_stats"])
        )
        kept = set(plan.parts.table["segment"].to_pylist())
        assert report.parts["total"] == report.parts["kept"] + report.parts["skipped_segment"] + found[-1][2]
        assert report.segments["skipped"] <= 3 - len(kept)
    (by_level, *_), (alone, skipped, _) = found
    assert alone == by_level
    assert skipped == 3 - len({plan.parts.table["segment"][at].as_py() for at in range(len(plan.parts))})
