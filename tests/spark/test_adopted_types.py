"""Folders have the types that Spark declares or reads: collated texts are compared as Spark compares them."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from tests.bridges.foreign_files import write_enums
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


def test_enums_and_fields_beside_maps_are_read_as_in_the_folder(lake: Lake, tmp_path: Path) -> None:
    """An ENUM is a text to Spark, as writers of Avro and Protobuf leave it; a map may be all that shows a NULL struct."""
    counts = pa.map_(pa.string(), pa.int32())
    old, new = pa.struct([("m", counts)]), pa.struct([("m", counts), ("x", pa.int32())])
    for name, k, values, kind in (
        ("old", [1, 2, 3], [{"m": [("a", 1)]}, None, {"m": None}], old),
        ("new", [4, 5, 6], [{"m": [], "x": 1}, None, {"m": [("b", 2)], "x": None}], new),
    ):
        rows = pa.table({"k": k, "e": ["red", None, "é"], "d": pa.array(values, kind)})
        write_enums(tmp_path / "source" / f"{name}.parquet", rows, "e")
    tamis.adopt(tmp_path / "source", lake.folder / "db" / "t")
    folder = lake.spark.read.option("mergeSchema", "true").parquet(str(tmp_path / "source"))
    assert dict(lake.sql("SELECT * FROM lake.db.t").dtypes) == dict(folder.dtypes)
    folder.createOrReplaceTempView("enum_source")
    conditions = ["d.x = 1", "d.x IS NULL", "d IS NULL", "d IS NOT NULL AND d.x IS NULL", "true"]
    conditions += ["e = 'red'", "length(e) = 1", "upper(e) LIKE 'R%'", "e IS NULL", "e > 'red'"]
    for index in (False, True):
        if index:
            tamis.open(lake.folder / "db" / "t").create_index("by_x_and_e", ["d.x", "e"])
        for condition in conditions:
            text = f"SELECT k, e, d.x FROM {{t}} WHERE {condition}"
            expected = lake.spark.sql(text.format(t="enum_source")).collect()
            assert sorted(lake.sql(text.format(t="lake.db.t")).collect(), key=str) == sorted(expected, key=str), text
    lake.sql("DELETE FROM lake.db.t WHERE d.x IS NULL AND e = 'red'")
    assert sorted(lake.rows("SELECT k FROM lake.db.t")) == [(2,), (3,), (4,), (5,), (6,)]
