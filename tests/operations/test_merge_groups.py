"""A merge joins rows in groups whose bytes are bounded, and the groups make no difference to what it does."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import tamis
from tamis.core.types.numbered_rows import NumberedRows
from tamis.engine.operations.rows import merge as merge_module

SCHEMA = pa.schema({"id": pa.int64(), "k": pa.int64(), "t": pa.string(), "s": pa.struct({"l": pa.list_(pa.string())})})
LIMIT = 4_000
ROWS = 400

Clauses = Callable[[Any], Any]


def wide(ids: range, mark: str) -> pa.Table:
    """Rows of most different widths: up to a tenth of the limit."""
    texts = [mark * (350 if i % 9 == 0 else i % 5) for i in ids]
    values = {"id": list(ids), "k": [i // 50 for i in ids], "t": texts, "s": [{"l": [t, None]} for t in texts]}
    return pa.table(values, schema=SCHEMA)


def upserted(merge: Any) -> Any:
    return merge.when_matched_update().when_not_matched_insert()


CASES: dict[str, tuple[str, Clauses]] = {
    "update, insert": ("target.id = source.id", upserted),
    "a check": ("target.id = source.id AND length(target.t) <= length(source.t)", upserted),
    "delete by the source": (
        "target.id = source.id",
        lambda merge: merge.when_matched_delete(condition="source.k = 5").when_not_matched_by_source_delete(
            condition="target.id % 2 = 0"
        ),
    ),
    "delete of rows that match many": (
        "target.k = source.k AND length(target.t) + length(source.t) >= 0",
        lambda merge: merge.when_matched_delete(),
    ),
}


@pytest.fixture
def joined(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Small groups; returns the bytes of each that was made, of the target's rows and of the source's."""
    monkeypatch.setattr(merge_module, "GROUP_BYTES", LIMIT)
    sizes: list[int] = []

    def noted(make: Callable[..., pa.RecordBatch]) -> Callable[..., pa.RecordBatch]:
        def made(*given: Any) -> pa.RecordBatch:
            batch = make(*given)
            sizes.append(batch.nbytes)
            return batch

        return made

    monkeypatch.setattr(merge_module._Group, "joined", noted(merge_module._Group.joined))
    monkeypatch.setattr(NumberedRows, "take", noted(NumberedRows.take))
    return sizes


def rows_of(table: tamis.Table) -> list[str]:
    return sorted(map(repr, table.scan().to_arrow().to_pylist()))


def target(path: Path) -> tamis.Table:
    made = tamis.create(path, SCHEMA)
    for start in range(0, ROWS, 100):
        made.append(wide(range(start, start + 100), "é"))
    return made


@pytest.mark.parametrize(("on", "clauses"), CASES.values(), ids=CASES)
def test_groups_of_few_bytes_give_the_same_rows(on: str, clauses: Clauses, tmp_path: Path, joined: list[int]) -> None:
    source = wide(range(200, ROWS + 150), "x")
    table = target(tmp_path / "small")
    result = clauses(table.merge(source, on)).execute()
    assert len(joined) > 9
    assert max(joined) <= LIMIT * 1.1  # sizes leave out what bitmaps take
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(merge_module, "GROUP_BYTES", 2**30)
        twin = target(tmp_path / "large")
        expected = clauses(twin.merge(source, on)).execute()
    assert rows_of(table) == rows_of(twin)
    counted = ("rows_updated", "rows_inserted", "rows_deleted")
    assert [getattr(result, name) for name in counted] == [getattr(expected, name) for name in counted]
    assert sum(getattr(expected, name) for name in counted) > 100


def test_one_wide_row_of_the_source_may_match_many(tmp_path: Path, joined: list[int]) -> None:
    """Together the new values are much larger than both sides."""
    table = target(tmp_path / "t")
    source = pa.table({"k": [3], "t": ["y" * (LIMIT // 3)]}, schema=pa.schema({"k": pa.int64(), "t": pa.string()}))
    result = table.merge(source, "target.k = source.k").when_matched_update({"t": "source.t"}).execute()
    assert result.rows_updated == 50
    assert max(joined) <= LIMIT * 1.1
    found = table.scan("k = 3").to_arrow()["t"].to_pylist()
    assert found == ["y" * (LIMIT // 3)] * 50


def test_a_row_beyond_the_limit_is_a_group(tmp_path: Path, joined: list[int]) -> None:
    table = tamis.create(tmp_path / "t", SCHEMA)
    table.append(wide(range(10), "z" * 20))
    table.upsert(wide(range(5, 15), "w" * 20), "id")
    assert max(joined) > LIMIT
    found = table.scan("length(t) > 1000").to_arrow().sort_by("id")
    assert [(row["id"], row["t"][0]) for row in found.to_pylist()] == [(0, "z"), (9, "w")]
