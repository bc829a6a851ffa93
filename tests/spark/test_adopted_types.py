"""Folders that Spark wrote have the types that Spark declares: collated texts are compared as Spark compares them."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.spark.conftest import Lake

import tamis
from tamis.errors import InvalidInput

pytestmark = pytest.mark.spark

QUERIES = [
    "SELECT k FROM {t} WHERE s = 'A'",
    "SELECT k FROM {t} WHERE s IN ('B', 'x')",
    "SELECT k FROM {t} WHERE s < 'B'",
    "SELECT k FROM {t} WHERE l[0] = 'A'",
    "SELECT k FROM {t} WHERE st.x = 'B'",
    "SELECT count(*), min(k) FROM {t} GROUP BY s",
    "SELECT count(DISTINCT s) FROM {t}",
]
COLLATED = """
    SELECT k, c COLLATE UTF8_LCASE AS s, array(c COLLATE UTF8_LCASE) AS l, named_struct('x', c COLLATE UTF8_LCASE) AS st
    FROM VALUES (1, 'a'), (2, 'A'), (3, 'b'), (4, 'C'), (5, NULL) AS v(k, c)
"""


def test_collated_texts_are_found_as_in_the_folder(lake: Lake, tmp_path: Path) -> None:
    lake.spark.sql(COLLATED).repartition(2).write.parquet(str(tmp_path / "source"))
    tamis.adopt(tmp_path / "source", lake.folder / "db" / "t")
    lake.spark.read.parquet(str(tmp_path / "source")).createOrReplaceTempView("collated_source")
    for text in QUERIES:
        expected = lake.spark.sql(text.format(t="collated_source")).collect()
        assert sorted(lake.sql(text.format(t="lake.db.t")).collect(), key=str) == sorted(expected, key=str), text
    lake.sql("DELETE FROM lake.db.t WHERE s = 'A'")
    assert sorted(lake.rows("SELECT k FROM lake.db.t"), key=str) == [(3,), (4,), (5,)]


def test_a_variant_is_refused_without_sparks_schema_too(
    lake: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Other writers leave the annotation of Parquet alone."""
    lake.spark.sql("SELECT 1 AS k, parse_json('{\"a\": 1}') AS v").write.parquet(str(tmp_path / "source"))
    for noted in (True, False):
        if not noted:
            monkeypatch.setattr("tamis.bridges.sources.parquet_schema.ROW_SCHEMA", b"none")
        with pytest.raises(InvalidInput, match="holds VARIANT") as caught:
            tamis.adopt(tmp_path / "source", tmp_path / "t")
        assert caught.value.code == "UNSUPPORTED_TYPE"
