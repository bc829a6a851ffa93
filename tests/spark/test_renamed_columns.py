"""Columns keep their values when they are given names that other columns had."""

from __future__ import annotations

from typing import Any

import pytest

pytestmark = pytest.mark.spark


@pytest.mark.parametrize("kinds", [("BIGINT", "FLOAT"), ("DATE", "TIMESTAMP_NTZ"), ("INT", "STRUCT<q: INT>")])
@pytest.mark.parametrize(
    "place",
    ["", pytest.param("s.", marks=pytest.mark.xfail(reason="Spark's reader still reads swapped fields of a struct"))],
)
def test_columns_that_swap_their_names_keep_their_values(lake: Any, kinds: tuple[str, str], place: str) -> None:
    fields = ", ".join(f"{name}{':' if place else ''} {kind}" for name, kind in zip("ab", kinds, strict=True))
    lake.sql(f"CREATE TABLE lake.db.t ({f's STRUCT<{fields}>' if place else fields}) USING tamis")
    constants = {
        "BIGINT": "5L",
        "FLOAT": "2.5F",
        "INT": "7",
        "STRUCT<q: INT>": "named_struct('q', 1)",
        "DATE": "DATE'2024-01-02'",
        "TIMESTAMP_NTZ": "TIMESTAMP_NTZ'2024-01-03 01:00:00'",
    }
    a, b = (constants[kind] for kind in kinds)
    made = f"named_struct('a', {a}, 'b', {b})" if place else f"{a}, {b}"
    lake.sql(f"INSERT INTO lake.db.t SELECT {made}")
    before = lake.rows(f"SELECT {place}a, {place}b FROM lake.db.t")
    for old, new in (("a", "c"), ("b", "a"), ("c", "b")):
        lake.sql(f"ALTER TABLE lake.db.t RENAME COLUMN {place}{old} TO {new}")
    assert lake.rows(f"SELECT {place}b, {place}a FROM lake.db.t") == before
