"""Under ``tamis.stats.filter=off`` the statistics of indexes decide nothing: look-ups read all entries, however wrong bounds are."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import tamis
from tamis.core.stats.columns.page_statistics import PageStatistics
from tamis.core.stats.statistics_budget import Trimmed, trim_statistics
from tamis.core.stats.statistics_columns import COUNTS, parse_name
from tamis.engine.part_writer import trimmed_statistics
from tamis.engine.secondary_index import index_lookup, shared_lookup

ROWS = 6_000
FAR = 10**9


def wrong(name: str, array: pa.Array) -> pa.Array:
    """Return far bounds and sets, and counts that claim that nothing is NULL."""
    kind = parse_name(name)
    if kind is None:
        return array
    if kind.kind in COUNTS:
        return pa.array([0] * len(array), array.type)
    listed = pa.types.is_list(array.type)
    text = pa.types.is_string(array.type.value_type if listed else array.type)
    value: Any = "zzzz" if text else FAR
    if pa.types.is_boolean(array.type):
        value = True
    return pa.array([[value] if listed else value] * len(array), array.type)


def lying(trimmed: Callable[..., Trimmed]) -> Callable[..., Trimmed]:
    def trim(*arguments: Any) -> Trimmed:
        left = trimmed(*arguments)
        return replace(left, statistics={name: wrong(name, array) for name, array in left.statistics.items()})

    return trim


@pytest.fixture(params=["manifests", "pages"])
def table(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tamis.Table:
    """A table with an index whose statistics are all wrong: those of its parts, or those of their pages."""
    monkeypatch.setenv("TAMIS_AUDIT", "off")
    for module in (index_lookup, shared_lookup):
        monkeypatch.setattr(module, "WHOLE_ROWS", 0)
    # written in scattered order, so that each load spans all keys
    data = pa.table({"k": [i * 7919 % ROWS for i in range(ROWS)], "w": list(range(ROWS))})
    made = tamis.create(tmp_path / "t", data.schema)
    made.append(data)
    if request.param == "manifests":
        monkeypatch.setattr(trimmed_statistics, "trim_statistics", lying(trim_statistics))
    else:
        honest = PageStatistics.note

        def note(pages: PageStatistics) -> str:
            pages._figures = {
                name: [pa.concat_arrays([wrong(name, values) for values in pieces]).cast(pieces[0].type)]
                for name, pieces in pages._figures.items()
            }
            return honest(pages)

        monkeypatch.setattr(PageStatistics, "note", note)
    made.create_index("ik", "k")
    made.alter().set_properties({"tamis.audit.percent": "0"}).commit()
    return made.refresh()


@pytest.mark.push_cases(8)
@pytest.mark.parametrize("use", ["ik", "lookup", "plan"])
@pytest.mark.parametrize("text", ["k = 4711", "k IN (17, 4711)", "k = 17 OR k = 4711", "k < 2 AND w >= 0"])
def test_statistics_of_an_index_decide_nothing(table: tamis.Table, use: str, text: str) -> None:
    options = {"tamis.index.use": use}
    expected = table.scan(text, options={"tamis.index.use": "off"}).to_arrow().to_pylist()
    assert expected
    scan = table.scan(text, options=options | {"tamis.stats.filter": "off"})
    assert scan.to_arrow().to_pylist() == expected
    assert scan.count() == len(expected)
    assert "used ik" in str(scan.report.index_reason)
    believed = table.scan(text, options=options).to_arrow().to_pylist()
    assert believed != expected, "the planted statistics would not be seen"
