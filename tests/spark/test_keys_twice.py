"""Documents with a key twice: Spark's functions take one of its values, another, or none, and no part with a row is skipped."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest
from tests.spark.conftest import Lake
from tests.stats.document_paths import GETS, PLAIN, TWICE

import tamis


@pytest.fixture
def twice(lake: Lake) -> Lake:
    """A part for each document, which has others without duplicate keys beside it."""
    schema = pa.schema([("id", pa.int64()), ("s", pa.string())])
    table = tamis.create(Path(lake.folder) / "db" / "t", schema)
    for at, document in enumerate(TWICE):
        rows = [document, *(json.dumps(one) for one in PLAIN)]
        table.append(pa.table({"id": [100 * at + i for i in range(len(rows))], "s": rows}, schema))
    return lake


@pytest.mark.merge
def test_no_row_is_lost(twice: Lake) -> None:
    tests = [
        *(f"get_json_object(s, '{path}') {op}" for path in GETS for op in ("= '7'", "= '1'", "IS NULL", "< '2'")),
        *(f"from_json(s, '{field} INT').{field} {op}" for field in "ab" for op in ("= 7", "= 1", "= 2", "IS NULL")),
        *(f"try_variant_get(try_parse_json(s), '$.{field}', 'int') {op}" for field in "ab" for op in ("= 2", "IS NULL")),
        "try_parse_json(s) IS NULL",
    ]  # fmt: skip
    for test in tests:
        plain = "lake.db.t WITH ('tamis.stats.filter' = 'off')"
        query = "SELECT id FROM {t} WHERE " + test + " ORDER BY id"
        assert twice.rows(query.format(t="lake.db.t")) == twice.rows(query.format(t=plain)), test


def test_the_failure_is_not_hidden(twice: Lake) -> None:
    with pytest.raises(Exception, match="DUPLICATE_KEY"):
        twice.rows("SELECT id FROM lake.db.t WHERE variant_get(parse_json(s), '$.b', 'int') > 1000")


VALUES = ("1", '"z"', "null", "1.5", "2147483649", "true", "[1]", "{}", '{"a":1}', '{"a":"z"}', '{"a":1,"a":"z"}')
FIELDS = (
    "a INT", "a BIGINT", "a DOUBLE", "a FLOAT", "a BOOLEAN", "a STRING", "a STRUCT<a: INT>", "a STRUCT<a: STRING>",
)  # fmt: skip


def test_the_last_value_that_fits_is_the_fields(lake: Lake) -> None:
    """As Spark reads the rows from Parquet: a value that does not fit leaves the field as the one before it made it."""
    documents = [f'{{"a":{one},"a":{other}}}' for one in VALUES for other in VALUES]
    rows = pa.table({"id": pa.array(range(len(documents)), pa.int64()), "s": documents})
    table = tamis.create(Path(lake.folder) / "db" / "t", rows.schema)
    table.append(rows)
    plain = f"{lake.folder}/plain"
    lake.sql("SELECT * FROM lake.db.t").write.parquet(plain)
    lake.spark.read.parquet(plain).createOrReplaceTempView("plain_twice")
    for field in FIELDS:
        value = f"from_json(s, '{field}').a" + (".a" if "STRUCT" in field else "")
        if field == "a FLOAT":  # its text is not the same in all releases of Java
            value = f"CAST({value} AS DOUBLE)"
        expected = lake.rows(
            f"SELECT id, CAST({value} AS STRING) FROM plain_twice WHERE {value} IS NOT NULL ORDER BY id"
        )
        for lazy in ("on", "off"):
            own = f"lake.db.t WITH ('tamis.read.lazy' = '{lazy}')"
            found = lake.rows(f"SELECT id FROM {own} WHERE {value} IS NOT NULL ORDER BY id")
            assert [row[0] for row in found] == [row[0] for row in expected], (field, lazy)
        for text in sorted({row[1] for row in expected if row[1] not in {"true", "false"}}):
            condition = f"CAST({value} AS STRING) = '{text}'"
            ids = table.scan(condition, ["id"]).to_arrow()["id"].to_pylist()
            assert ids == [at for at, one in expected if one == text], (field, text)
