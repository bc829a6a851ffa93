"""A part's file that was replaced by a valid file of another part, after this process has read and remembered it."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import tamis
from tamis.errors import CorruptData

ROWS = 2_000


def rows(start: int) -> pa.Table:
    random = np.random.default_rng(start)
    return pa.table({name: random.random(ROWS) for name in "kvw"})  # one page each: files of one layout


def alike(folder: Path) -> tuple[Path, Path]:
    """Return two parts of the same size, if there are: no page of one begins elsewhere than in the other."""
    files = sorted((folder / "data").iterdir(), key=lambda file: file.stat().st_size)
    return min(pairwise(files), key=lambda two: two[1].stat().st_size - two[0].stat().st_size)


@pytest.mark.push_cases(4)
@pytest.mark.parametrize("form", ["parquet", "vortex", "orc"])
@pytest.mark.parametrize(
    ("text", "lazy"), [(None, "auto"), ("k < 0.01D", "on"), ("k < 0.1D", "off"), ("k > v", "auto")]
)
def test_a_file_replaced_after_it_was_read_is_corrupt(tmp_path: Path, form: str, text: str | None, lazy: str) -> None:
    table = tamis.create(tmp_path, rows(0).schema, format=form)
    for start in range(8):
        table.append(rows(start))
    options = {"tamis.read.lazy": lazy}
    before = table.scan(text, options=options).to_arrow()
    again = table.scan(text, options=options).to_arrow()
    assert again.equals(before)
    first, second = alike(tmp_path)
    second.write_bytes(first.read_bytes())
    with pytest.raises(CorruptData) as caught:
        table.scan(text, options=options).to_arrow()
    assert caught.value.code in {"PART_REPLACED", "CHECKSUM", "PART_CORRUPT", "TRUNCATED"}
    assert second.stem in caught.value.message


def test_recognizing_a_file_costs_a_few_bytes_and_one_request(tmp_path: Path) -> None:
    data = pa.concat_tables([rows(start) for start in range(100)])
    table = tamis.create(tmp_path, data.schema)
    table.append(data)
    reports = []
    for _ in range(3):
        scan = table.scan("k < 0.01D", ("v",), options={"tamis.read.lazy": "off"})
        scan.to_arrow()
        reports.append(scan.report)
    cold, warm, again = (r.bytes["leader"] + r.bytes["follower"] for r in reports)
    assert warm == again < cold
    assert reports[2].requests <= reports[0].requests
