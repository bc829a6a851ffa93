"""Appends to tables of many columns: their statistics stand in the log, and every one of them skips."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import tamis

WIDTH = 400
MADE = {
    "text": lambda part, at: pa.array([f"{part} of {at}", f"{part} of {at} too"]),
    "double": lambda part, at: pa.array([part * 10.0 + at / 1000, part * 10.0 + 1]),
    "struct": lambda part, at: pa.array([{"a": part * 10, "b": f"{part}"}, {"a": part * 10 + 1, "b": f"{part}{at}"}]),
    "JSON": lambda part, at: pa.array([f'{{"a": {part * 10}, "b": "{at}"}}', f'{{"a": {part * 10 + 1}}}']),
}
ASKED = {
    "text": "c{at} >= '1' AND c{at} < '2'",
    "double": "c{at} >= 10 AND c{at} < 20",
    "struct": "c{at}.a BETWEEN 10 AND 19",
    "JSON": "cast(get_json_object(c{at}, '$.a') AS int) BETWEEN 10 AND 19",
}


def rows(kind: str, part: int, width: int = WIDTH) -> pa.Table:
    return pa.table({f"c{at}": MADE[kind](part, at) for at in range(width)})


@pytest.mark.slow
@pytest.mark.parametrize("kind", MADE)
@pytest.mark.push_cases(2)
def test_statistics_of_few_rows_stand_in_the_log(tmp_path: Path, kind: str) -> None:
    width = 200 if kind == "JSON" else WIDTH
    table = tamis.create(tmp_path / "t", rows(kind, 0, width).schema)
    for part in range(3):
        table.append(rows(kind, part, width))
    assert not list((tmp_path / "t/_tamis").rglob("*.parquet"))
    for at in (0, 1, width // 2, width - 1):
        found = tamis.open(tmp_path / "t").scan(ASKED[kind].format(at=at))
        assert [part.rows for part in found.plan().parts] == [2], at
        assert found.count() == 2


@pytest.mark.merge
def test_rollups_of_wide_tables_hold_every_statistic(tmp_path: Path) -> None:
    table = tamis.create(tmp_path / "t", rows("double", 0).schema)
    for part in range(16):
        table.append(rows("double", part))
    assert list((tmp_path / "t/_tamis/rollup").iterdir())
    for version, parts in ((16, 16), (15, 15), (14, 14)):
        for at in (0, WIDTH - 1):
            found = tamis.open(tmp_path / "t", version=version).scan(f"c{at} >= 130").plan()
            assert len(found.parts) == max(0, parts - 13)
