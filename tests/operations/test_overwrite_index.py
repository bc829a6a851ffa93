"""An overwrite by a filter that an index answers keeps the rows that the index left out: they are the ones that stay."""

from __future__ import annotations

import pytest

from tests.operations.making import filled, held, rows


@pytest.mark.push_cases(1)
@pytest.mark.parametrize("row_filter", ["user = 3", "user % 5 = 1", "user in (1, 2, 3) and ts > 20"])
def test_rows_beside_the_candidates_stay(row_filter: str) -> None:
    plain, indexed = filled(5, size=400), filled(5, size=400)
    indexed.create_index("by_user", ["user"])
    for of in (plain, indexed):
        of.overwrite(rows(90_000, 3), row_filter, allow_outside=True)
    assert held(indexed) == held(plain)
    assert len(held(indexed)) > 1_000
