"""No way of reading reads more bytes than eager reading: formats × share of rows × columns × lazy or decided.

The process remembers footers and seals. The first run pays for them, so eager reading runs twice.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import tamis
from tests.scan.wide_tables import data_bytes, run

ROWS = 120_000
SHARES = (0.0, 0.0001, 0.01, 0.1, 0.3, 0.9, 1.0)
COLUMNS = (("pick", "a0"), ("a0", "a5", "a9", "t1"), ("t0",), ("*",))
FILTERS = ("pick < {}D", "pick < {}D AND a3 >= 0", "length(t0) + a0 >= 0 AND pick < {}D")
"""The leaders: one column, two that lie apart, and most of the bytes."""


@pytest.fixture(scope="module", params=["parquet", "vortex", "orc"])
def grid(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Any:
    random = np.random.default_rng(5)
    words = np.array([f"word-{n}" for n in range(3_000)])
    columns: dict[str, Any] = {f"a{n}": random.integers(0, 10 ** (n + 2), ROWS) for n in range(10)}
    columns |= {"pick": random.random(ROWS), "clustered": np.arange(ROWS) / ROWS}
    columns |= {f"d{n}": random.random(ROWS) for n in range(6)}
    columns |= {"t0": words[random.integers(0, 3_000, ROWS)], "t1": [f"{n * 7919:x}" for n in range(ROWS)]}
    columns |= {"l": pa.array([[n % 7] * (n % 3) for n in range(ROWS)])}
    table = tamis.create(tmp_path_factory.mktemp("grid"), pa.table(columns).schema, format=request.param)
    table.append(pa.table(columns))
    return table


@pytest.mark.parametrize("fields", COLUMNS)
@pytest.mark.parametrize("text", [*FILTERS, "clustered < {}D"])
@pytest.mark.push_cases(6)
def test_no_mode_reads_more_bytes_than_eager_reading(grid: Any, text: str, fields: tuple[str, ...]) -> None:
    for share in SHARES:
        asked = text.format(share)
        run(grid, asked, fields, "off")
        rows, eager = run(grid, asked, fields, "off")
        for lazy in ("on", "auto"):
            found, report = run(grid, asked, fields, lazy)
            assert found.num_rows == rows.num_rows
            assert data_bytes(report) <= data_bytes(eager), (asked, lazy, data_bytes(report) / data_bytes(eager))


def test_a_hit_costs_a_small_piece(grid: Any) -> None:
    """One row that no bounds find, of all columns: the leader, and a block of the others at most."""
    hit = f"t1 = '{60_000 * 7919:x}'"
    rows, eager = run(grid, hit, lazy="off")
    found, report = run(grid, hit)
    assert rows.num_rows == found.num_rows == 1
    assert data_bytes(report) < 0.4 * data_bytes(eager)
