"""JSON through Spark, end to end: the rows of plain Spark, and the parts that must be skipped."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql.functions import from_json
from tests.spark.capabilities import needs_syntax
from tests.spark.conftest import Lake

import tamis
from tamis.errors import InvalidInput

pytestmark = pytest.mark.spark

DOCUMENTS = [
    [{"id": part * 100 + n, "user": {"name": f"u{part}{n:02d}", "tags": [part, "x"]}, "price": part + n / 8, **({"rare": True} if part == 2 else {}), "mixed": n if part % 2 else str(n)} for n in range(20)]
    for part in range(4)
]  # fmt: skip
CASES = [
    ("v:id::int = 105", 1), ("v:id::bigint BETWEEN 50 AND 150", 1), ("v:user.name::string LIKE 'u2%'", 1), ("v:price::double > 5.3", 1), ("v:price::decimal(10,2) >= 3.0", 3), ("try_variant_get(v, '$.rare', 'boolean')", 1),
    ("v:rare IS NOT NULL", 1), ("is_variant_null(v:id)", 0), ("try_variant_get(v, '$.mixed', 'int') > 100", 2), ("v:user.tags[0]::int = 3", 1), ("get_json_object(s, '$.user.name') = 'u305'", 1),
    ("cast(get_json_object(s, '$.id') AS INT) < 50", 1), ("from_json(s, 'id INT, price DOUBLE').price > 4.9", 1), ("from_json(s, 'id INT, user STRUCT<name: STRING>').user.name = 'u305'", 1), ("from_json(s, 'id INT, nowhere STRING').id = 105", 1), ("parse_json(s):id::int = 5", 1), ("get_json_object(s, '$.nowhere') = '1'", 0), ("a = 1 AND b = 'k05'", 1),
]  # fmt: skip


APART = "v:id, v:user.name, v:mixed, v:user.tags[0], s:user.name"
"""Paths that filters ask for, and that are kept apart; others are not."""


@pytest.fixture(scope="module")
def table(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Any]:
    tamis.attach(spark, "documents", tmp_path_factory.mktemp("documents"))
    spark.sql("CREATE NAMESPACE IF NOT EXISTS documents.db")
    spark.sql(
        f"CREATE TABLE documents.db.t (a INT, b STRING, s STRING, v VARIANT) USING tamis TBLPROPERTIES ('tamis.write.shred' = '{APART}')"
    )
    frames = []
    for part, rows in enumerate(DOCUMENTS):
        data = [(part, f"k{n:02d}", json.dumps(row)) for n, row in enumerate(rows)]
        frame = spark.createDataFrame(data, "a int, b string, s string").selectExpr("*", "parse_json(s) v").coalesce(1)
        frame.writeTo("documents.db.t").append()
        frames.append(frame)
    whole = frames[0].unionAll(frames[1]).unionAll(frames[2]).unionAll(frames[3])
    return "documents.db.t", whole.cache()


def test_a_document_as_a_struct_is_tested_by_spark(spark: Any, table: tuple[str, Any]) -> None:
    """Only its fields are computed by Tamis."""
    name, plain = table
    for text, rows in (("j IS NOT NULL", 80), ("j IS NULL", 0), ("j.id = 105", 1), ("j = named_struct('id', 105)", 1)):
        found = [
            frame.withColumn("j", from_json("s", "id INT")).where(text).select("a", "b").collect()
            for frame in (spark.table(name), plain)
        ]
        assert sorted(map(tuple, found[0])) == sorted(map(tuple, found[1])), text
        assert len(found[0]) == rows, text
    assert tamis.reports()[0].parts["kept"] == 4


def test_rows_and_parts(spark: Any, table: tuple[str, Any]) -> None:
    needs_syntax(spark, "SELECT v:a::int")
    name, plain = table
    for text, kept in CASES:
        found = sorted((r.a, r.b) for r in spark.table(name).where(text).select("a", "b").collect())
        assert found == sorted((r.a, r.b) for r in plain.where(text).select("a", "b").collect()), text
        assert tamis.reports()[0].parts["kept"] == kept, (text, tamis.reports()[0].not_skipped_because)


def test_spark_keeps_paths_apart(spark: Any, table: tuple[str, Any]) -> None:
    name, _ = table
    place = spark.sql(f"DESCRIBE EXTENDED {name}").where("col_name = 'Location'").collect()[0].data_type
    for file in (Path(place.removeprefix("file:")) / "data").iterdir():
        assert len([c for c in pq.read_schema(file).names if c.startswith("_tamis_leaf_")]) == 5
    assert spark.table(name).columns == ["a", "b", "s", "v"]


def test_texts_of_numbers_are_those_of_the_java_that_runs(spark: Any, tmp_path: Path) -> None:
    """From 2^53 on, releases of Java print doubles differently: neither a path kept apart nor an index may lose the rows."""
    needs_syntax(spark, "SELECT v:a::int")
    tamis.attach(spark, "numbers", tmp_path)
    spark.sql("CREATE NAMESPACE numbers.db")
    spark.sql(
        "CREATE TABLE numbers.db.t (id INT, s STRING, v VARIANT) USING tamis TBLPROPERTIES ('tamis.write.shred' = 's:a, v:a')"
    )
    rows = [(0, '{"a": 2E23}'), (1, '{"a": 7.9248121131225648E16}'), (2, '{"a": 5}')]
    plain = spark.createDataFrame(rows, "id int, s string").selectExpr("*", "parse_json(s) v").coalesce(1)
    plain.writeTo("numbers.db.t").append()
    table = tamis.open(tmp_path / "db" / "t")
    table.create_index("by_text", "s:a")
    table.create_index("by_variant", "v:a::string")
    asked = ("get_json_object(s, '$.a')", "v:a::string")
    for id_, *texts in plain.selectExpr("id", *asked).collect():
        for path, text in zip(asked, texts, strict=True):
            for use in ("off", "lookup"):
                found = spark.sql(
                    f"SELECT id FROM numbers.db.t WITH ('tamis.index.use' = '{use}') WHERE {path} = '{text}'"
                ).collect()
                assert [row.id for row in found] == [id_], (path, text, use)


AWKWARD = [
    ('{"a": "INF"}', "timestamp'1970-01-01 00:00:05'"), ('{"a": -INF}', "X'05'"), ('{"a": 1}', "date'1970-01-06'"), ('{"a": "x"}', "5"), ("{", "timestamp'1970-01-01 00:00:07'"),
    ('{"a": 1, "_corrupt_record": "k", "bad": "k"}', "'5'"), ('{"a": {"b": 1, "c": "x"}}', "true"),
]  # fmt: skip
AWKWARD_FILTERS = [
    *(f"try_variant_get(v, '$.a', '{kind}') = 5" for kind in ("tinyint", "smallint", "int", "float", "double", "decimal(10,2)")),
    *(f"try_variant_get(v, '$.a', '{kind}') IS NULL" for kind in ("tinyint", "int", "float", "boolean", "date", "string")),
    """get_json_object(s, '$["a"]') = '1'""", """get_json_object(s, '$["a"]') IS NULL""", "get_json_object(s, '$.a') = '1'",
    "from_json(s, 'a DOUBLE').a > 1e300", "from_json(s, 'a DOUBLE').a IS NULL", "from_json(s, 'a FLOAT').a < -1e30", "from_json(s, 'a STRUCT<b: INT, c: INT>').a.b IS NULL",
    *(f"from_json(s, 'a INT, {name} STRING').{name} {test}" for name in ("_corrupt_record", "bad") for test in ("IS NULL", "IS NOT NULL", "= 'k'")),
]  # fmt: skip
ONLY_SPARK = ("tinyint", "smallint", "float'", "decimal", "'string'", '$["', "_corrupt_record")


@pytest.mark.merge
@pytest.mark.parametrize("corrupt", ["_corrupt_record", "bad"])
def test_awkward_values_have_the_rows_of_spark(spark: Any, tmp_path: Path, corrupt: str) -> None:
    """Each in a part of its own, so that neither statistics nor rows may lose one; an embedded scan may refuse."""
    tamis.attach(spark, f"awkward_{corrupt}", tmp_path)
    spark.sql(f"CREATE NAMESPACE awkward_{corrupt}.db")
    name = f"awkward_{corrupt}.db.t"
    spark.sql(f"CREATE TABLE {name} (id INT, s STRING, v VARIANT) USING tamis")
    selects = [
        f"SELECT {n} id, '{text}' s, to_variant_object(named_struct('a', {value})) v"
        for n, (text, value) in enumerate(AWKWARD)
    ]
    for one in selects:
        spark.sql(f"INSERT INTO {name} {one}")
    plain = spark.sql(" UNION ALL ".join(selects)).coalesce(1).cache()
    spark.conf.set("spark.sql.columnNameOfCorruptRecord", corrupt)
    try:
        for text in AWKWARD_FILTERS:
            if corrupt == "bad" and " STRING')" not in text:
                continue
            rows = sorted(r.id for r in plain.where(text).select("id").collect())
            assert sorted(r.id for r in spark.table(name).where(text).select("id").collect()) == rows, text
            if corrupt == "_corrupt_record":  # embedded scans know the default alone
                check_embedded(embedded(tmp_path / "db" / "t", text), rows, text)
    finally:
        spark.conf.unset("spark.sql.columnNameOfCorruptRecord")
        plain.unpersist()


def embedded(path: Path, text: str) -> list[int] | str:
    """The rows of an embedded scan, or the error of one that leaves the filter or a row to Spark."""
    try:
        found: list[int] = tamis.open(path).scan(text, ("id",)).to_arrow()["id"].to_pylist()
    except InvalidInput as error:
        return str(error) if error.code == "FILTER_FAILED" else str(error.code)
    return sorted(found)


def check_embedded(found: list[int] | str, rows: list[int], text: str) -> None:
    if not isinstance(found, str):
        assert found == rows, text
        return
    assert any(word in text for word in ONLY_SPARK), (text, found)
    assert "[LEFT_TO_SPARK]" in found or found in {"UNKNOWN_FUNCTION", "BAD_ARGUMENTS"}, (text, found)


def test_half_a_character_is_as_in_plain_spark(lake: Lake) -> None:
    """Releases of Spark differ, and the reader is no other Spark than the session's."""
    documents = ['{"a": "\\ud800", "b": 5}', '{"\\udc00": 1, "b": 5}', '{"a": "x", "b": 5}', '{"a": "x", "b": 6}']
    tamis.create(lake.folder / "db" / "t", "s STRING").append(pa.table({"s": documents * 3}))
    lake.spark.createDataFrame([(text,) for text in documents * 3], "s STRING").createOrReplaceTempView("plain_half")
    for condition in ("try_variant_get(try_parse_json(s), '$.b', 'int') = 5", "try_parse_json(s) IS NULL"):
        found = lake.rows(f"SELECT s FROM lake.db.t WHERE {condition} ORDER BY s")
        assert found == lake.rows(f"SELECT s FROM plain_half WHERE {condition} ORDER BY s"), condition
        assert lake.rows(f"SELECT count(*) FROM lake.db.t WHERE {condition}") == [(len(found),)]


READ_AGAIN = [
    '{"a": null, "n": 12, "t": 1.000001}', '{"a": [null], "n": 5.0, "t": 1.00000199999999999999999999999999}', '{"a": {"b": 1}, "n": "7", "t": -1.000001}', "null", '{"a": "null", "n": 5e0}', '{"n": 100000000000000000000.0, "a": "{"}',
]  # fmt: skip
TEXTS_OF_NULL = [
    "get_json_object(s, '$.a')", "get_json_object(s, '$')", "get_json_object(s, '$.a[0]')", "v:a::string", "cast(v AS STRING)", "v:a[0]::string", "from_json(s, 'a STRING').a",
]  # fmt: skip
READ_AGAIN_FILTERS = [
    *(f"{form.format(text)} IS {word}NULL" for text in TEXTS_OF_NULL for form in ("try_parse_json({})", "get_json_object({}, '$')") for word in ("", "NOT ")),
    *(f"{word}is_variant_null(try_parse_json({text}))" for text in TEXTS_OF_NULL for word in ("", "NOT ")),
    *(f"{form.format(value)}" for value in ("get_json_object(s, '$.n')", "try_variant_get(v, '$.n', 'string')") for form in ("{} NOT IN ('7', NULL)", "({} IN ('7', NULL)) IS NULL", "coalesce({} IN ('7', NULL), true)", "{} IN ('12', NULL)")),
    *(f"from_json({text}, 'n {kind}').n {test}" for text in ("cast(v AS STRING)", "s") for kind in ("INT", "BIGINT", "DOUBLE", "STRING") for test in ("= '5'", "IS NULL")),
    "try_cast(get_json_object(cast(v AS STRING), '$.n') AS INT) = 5", "try_variant_get(try_parse_json(cast(v AS STRING)), '$.n', 'int') = 5",
    *(f"try_variant_get(v, '$.t', 'timestamp') = timestamp_micros({micros})" for micros in (1_000_001, 1_000_002, -1_000_001)),
]  # fmt: skip


def test_what_is_read_again_has_the_rows_of_spark(lake: Lake) -> None:
    """Each document in a part of its own."""
    needs_syntax(lake.spark, "SELECT v:a::int")
    lake.sql("CREATE TABLE lake.db.t (n INT, s STRING, v VARIANT) USING tamis")
    frame = lake.spark.createDataFrame(list(enumerate(READ_AGAIN)), "n int, s string").selectExpr(
        "*", "parse_json(s) v"
    )
    for n in range(len(READ_AGAIN)):
        frame.where(f"n = {n}").coalesce(1).writeTo(f"{lake.name}.db.t").append()
    frame.cache()
    for text in READ_AGAIN_FILTERS:
        found = sorted(row.n for row in lake.sql(f"SELECT n FROM lake.db.t WHERE {text}").collect())
        assert found == sorted(row.n for row in frame.where(text).select("n").collect()), text
    frame.unpersist()
