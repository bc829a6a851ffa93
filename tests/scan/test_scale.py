"""Planning grows with what may match, not with what there is."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pyarrow as pa
import pytest

import tamis
from tamis.errors import CorruptData
from tamis.storage.commit_log import manifests
from tamis.storage.object_store.metadata_files import keep
from tamis.storage.object_store.object_cache import CACHE

LOADS = 40


def test_planning_opens_the_manifests_of_loads_that_may_match_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All the others are gone here, and nobody notices; what is told of the whole table comes from the log."""
    monkeypatch.setattr(manifests, "keep", partial(keep, limit=0))
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
