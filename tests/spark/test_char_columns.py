"""Embedded filters over CHAR columns give Spark's rows, or are refused by name where it is not known what Spark pads."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from tests.spark.conftest import Lake

import tamis
from tamis.errors import InvalidInput

ANSWERED = [
    "c = 'a'",
    "c = d",
    "c > 'a'",
    "c IN (d)",
    "c IN (d, 'a')",
    "c IN (NULL, 'a')",
    "c IN ('a', CAST(NULL AS STRING))",
    "c IN (CAST('a' AS STRING), 'b')",
    "c IN (lower('A'))",
    "c <=> CAST(NULL AS STRING)",
    "c IS DISTINCT FROM 'a'",
    "c IS NOT DISTINCT FROM d",
    "equal_null(c, d)",
    "equal_null(c, 'a')",
    "c = lower('A')",
    "c = coalesce('a', 'b')",
    "c = if(true, 'a', 'b')",
    "c = trim(' a')",
    "c = concat('a', '')",
    "c = 'a' || ''",
    "c = CASE WHEN true THEN 'a' END",
    "c = substr('abc', 1, 1)",
    "c = reverse('a')",
    "c = greatest('a', 'a')",
    "c BETWEEN 'a' AND 'b'",
    "CASE c WHEN 'a' THEN true END",
    "nullif(c, 'a') IS NULL",
]
REFUSED = [
    "c IN (CAST(NULL AS STRING), 'a')",
    "c IN ('b', CAST(NULL AS STRING), 'a')",
    "c IN (nullif('a', 'b'), 'b')",
    "c = nullif('a', 'b')",
    "c = ifnull('a', 'b')",
    "nvl('a', 'b') = c",
    "c = nvl2('a', 'a', 'b')",
    "c <=> left('abc', 1)",
    "c = right('ba', 1)",
    "c = btrim(' a ')",
    "c = split_part('a,b', ',', 1)",
    "c IS DISTINCT FROM nullif('a', 'b')",
    "CASE c WHEN nullif('a', 'b') THEN true END",
]


def matches_of(lake: Lake, table: str, texts: Sequence[str]) -> dict[str, list[int]]:
    """The rows that each filter keeps, all asked in one query: a query of its own would take longer to plan than to run."""
    each = (f"SELECT {at}, i FROM {table} WHERE {text}" for at, text in enumerate(texts))
    found: dict[str, list[int]] = {text: [] for text in texts}
    for at, i in sorted(tuple(row) for row in lake.spark.sql(" UNION ALL ".join(each)).collect()):
        found[texts[at]].append(i)
    return found


def test_filters_over_char_columns_give_sparks_rows_or_are_refused(lake: Lake) -> None:
    """Plain Spark over Parquet is the model; Spark over Tamis is asked, too."""
    plain = f"plain_{lake.name}"
    for name, using in ((plain, "parquet"), (f"{lake.name}.db.chars", "tamis")):
        lake.spark.sql(f"CREATE TABLE {name} (i INT, c CHAR(3), d CHAR(5)) USING {using}")
        lake.spark.sql(f"INSERT INTO {name} VALUES (0, 'a', 'a'), (1, 'ab', 'ab'), (2, 'b', 'c'), (3, NULL, 'd')")
    table = tamis.open(lake.folder / "db" / "chars")
    try:
        texts = (*ANSWERED, *REFUSED)
        models, through_spark = (matches_of(lake, name, texts) for name in (plain, f"{lake.name}.db.chars"))
        assert through_spark == models
        for text, model in models.items():
            if text in ANSWERED:
                assert sorted(table.scan(text).to_arrow()["i"].to_pylist()) == model, text
                continue
            with pytest.raises(InvalidInput) as refused:
                table.scan(text).to_arrow()
            assert refused.value.code == "UNKNOWN_FUNCTION", text
    finally:
        lake.spark.sql(f"DROP TABLE {plain}")
