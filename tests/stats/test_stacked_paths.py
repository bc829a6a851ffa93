"""JSON paths on their way from a part's writer to its committer: one column below the other, then side by side."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from tamis.core.stats.json_paths import path_rows
from tamis.core.stats.json_paths.packed_paths import PACKED, PATHS, pack_paths, unpack_paths
from tamis.core.stats.json_paths.path_rows import LONG, MAP, PathStatistics, side_by_side, stacked_paths, table_of


def test_rows_one_below_the_other_are_the_rows_side_by_side() -> None:
    """A writer sends them in one form, restoring a snapshot in the other; a part with either has the same paths."""
    one = {"$": PathStatistics(MAP, 3, 0), "$.a": PathStatistics(LONG, 3, 0, (1, 2)), "$.b": PathStatistics(LONG, 3, 0, (5, 9))}  # fmt: skip
    documents = {9: {"$": PathStatistics(MAP, 3, 0)}, 2: one, 5: {}, 4: dict(one)}
    rows, stacked = table_of(documents), stacked_paths(documents)
    assert rows is not None
    assert stacked is not None
    assert stacked["column_id"].to_pylist() == [9, 2, 2, 2, 4, 4, 4]
    manifest = pa.table({"part_id": ["a", "b"], PACKED: pa.array([pack_paths(stacked), pack_paths(rows)], pa.binary())})
    _, tables = unpack_paths(manifest)
    found = tables[PATHS]
    first, second = (found.filter(pc.equal(found["part_id"], part)).drop_columns(["part", "part_id"]) for part in "ab")
    assert first.equals(second)
    assert first["2|path"].to_pylist() == ["$", "$.a", "$.b"]
    assert first["9|path"].to_pylist() == ["$", None, None]
    assert first["4|long.hi"].to_pylist() == [None, 2, 9]


@pytest.mark.parametrize(
    "ids", [[1, 2, 1], [None, 1, 1], [-1, 2, 2], []], ids=["apart", "no column", "negative", "none"]
)
def test_rows_one_below_the_other_that_nobody_wrote_are_unknown(ids: list[int | None]) -> None:
    good = stacked_paths({7: {"$": PathStatistics(MAP, 3, 0), "$.a": PathStatistics(LONG, 3, 0, (1, 2))}})
    wrong = stacked_paths({7: {path: PathStatistics(LONG, 3, 0, (1, 2)) for path in ("$", "$.a", "$.b")}})
    assert good is not None
    assert wrong is not None
    wrong = wrong.slice(0, len(ids)).set_column(0, wrong.schema.field(0), pa.array(ids, pa.int32()))
    rows = pa.array([pack_paths(wrong), pack_paths(good)], pa.binary())
    _, tables = unpack_paths(pa.table({"part_id": ["a", "b"], PACKED: rows}))
    assert set(tables[PATHS]["part_id"].to_pylist()) == {"b"}


def test_paths_of_too_many_columns_to_stand_side_by_side_are_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    """A few rows may name as many columns: what they would take is told before it is taken."""
    rows = stacked_paths({i: {"$": PathStatistics(MAP, 3, 0), "$.a": PathStatistics(LONG, 3, 0)} for i in range(3)})
    assert rows is not None
    monkeypatch.setattr(path_rows, "MOST_CELLS", 6)
    assert len(side_by_side(rows)) == 2
    monkeypatch.setattr(path_rows, "MOST_CELLS", 5)
    with pytest.raises(ValueError, match="too many"):
        side_by_side(rows)
