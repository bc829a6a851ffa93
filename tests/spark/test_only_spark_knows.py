"""Values that releases of Java and Python see differently are left to Spark, inside of VARIANT and JSON too."""

from __future__ import annotations

import pytest
from tests.spark.conftest import Lake

pytestmark = pytest.mark.spark

TIMES = [
    "12:00 UTC",
    "2026-11-20 12:00:00",
    "2026-11-20 12:00:00 America/New_York",
    "x",
    "2024-01-01",
    "1999-01-01T00:00Z",
]
VARIANT = "try_variant_get(v, '$.a', 'timestamp')"
FILTERS = [
    f"{VARIANT} > TIMESTAMP'2026-01-01'",
    f"{VARIANT} = TIMESTAMP'2026-11-20 17:00:00'",
    f"{VARIANT} IS NOT NULL",
    f"{VARIANT} IS NULL",
    f"hour({VARIANT}) > 0",
    f"coalesce({VARIANT}, TIMESTAMP'2000-01-01') < TIMESTAMP'2001-01-01'",
    "try_cast(v:a AS TIMESTAMP) > TIMESTAMP'2026-01-01'",
]


def test_regions_in_variants(lake: Lake) -> None:
    values = ", ".join(f"({k}, '{text}')" for k, text in enumerate(TIMES))
    lake.spark.sql(
        f"SELECT k, parse_json('{{\"a\": \"' || s || '\"}}') AS v FROM VALUES {values} AS t(k, s)"
    ).createOrReplaceTempView("times_in_variants")
    lake.sql("CREATE TABLE lake.db.t (k INT, v VARIANT)")
    lake.sql("INSERT INTO lake.db.t SELECT k, v FROM times_in_variants")
    for text in FILTERS:
        expected = [
            row[0] for row in lake.spark.sql(f"SELECT k FROM times_in_variants WHERE {text} ORDER BY k").collect()
        ]
        assert [row[0] for row in lake.rows(f"SELECT k FROM lake.db.t WHERE {text} ORDER BY k")] == expected, text
        assert lake.rows(f"SELECT count(*) FROM lake.db.t WHERE {text}") == [(len(expected),)], text


DOCUMENTS = ['{"a":2E23}', '{"a":8.41E21}', '{"a":"k"}', '{"a":7}']
GENERATED = [
    ("STRING", "get_json_object(body, '$.a')", ["'1.9999999999999998E23'", "'2.0E23'", "'k'", "'7'"]),
    ("STRING", "from_json(body, 'a STRING').a", ["'1.9999999999999998E23'", "'2.0E23'", "'k'"]),
    ("INT", "length(get_json_object(body, '$.a'))", ["21", "6", "1"]),
    ("STRING", "substring(get_json_object(body, '$.a'), 1, 4)", ["'1.99'", "'2.0E'", "'k'"]),
    (
        "DECIMAL(38,2)",
        "try_variant_get(try_parse_json(body), '$.a', 'decimal(38,2)')",
        ["199999999999999980000000.00BD", "200000000000000000000000.00BD", "7BD"],
    ),
    ("BIGINT", "try_variant_get(try_parse_json(body), '$.a', 'bigint')", ["7", "8"]),
    ("BIGINT", "try_cast(get_json_object(body, '$.a') AS BIGINT)", ["7", "8"]),
]


@pytest.mark.parametrize(("kind", "expression", "constants"), GENERATED, ids=[text for _, text, _ in GENERATED])
@pytest.mark.push_cases(3)
def test_generated_columns_of_json(lake: Lake, kind: str, expression: str, constants: list[str]) -> None:
    """A filter on the expression finds what Spark computes, whatever the column holds; an index changes nothing."""
    values = ", ".join(f"({k}, '{text}')" for k, text in enumerate(DOCUMENTS))
    lake.spark.sql(f"SELECT * FROM VALUES {values} AS t(k, body)").createOrReplaceTempView("json_documents")
    lake.sql(f"CREATE TABLE lake.db.t (k INT, body STRING, g {kind} GENERATED ALWAYS AS ({expression}))")
    for k in range(len(DOCUMENTS)):
        lake.sql(f"INSERT INTO lake.db.t (k, body) SELECT k, body FROM json_documents WHERE k = {k}")
    for indexed in (False, True):
        if indexed:
            lake.sql("CREATE INDEX by_g ON lake.db.t (g)")
        for constant in constants:
            text = f"{expression} = {constant}"
            expected = [tuple(row) for row in lake.spark.sql(f"SELECT k FROM json_documents WHERE {text}").collect()]
            assert lake.rows(f"SELECT k FROM lake.db.t WHERE {text}") == expected, (text, indexed)
