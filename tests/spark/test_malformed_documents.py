"""``from_json`` of malformed documents: Spark keeps some fields of some of them, and the others are NULL."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from tests.spark.conftest import Lake

import tamis
from tamis.errors import InvalidInput

pytestmark = pytest.mark.spark

KEPT = [
    '{"a":{"b":1,"l":[1,None]}}', '{"a":{"b":1,"d":{"x":tru}}}', '{"a":{"b":1,"l":[1,None],"c":2}}', '{"f":"1","f":[1,None]}', '{"f":"1","f":{"x":tru}}', '{"f":1,"\\u0066":{"x":tru}}', '{"a":{"b":1,"d":{"x":01}}}',
    '{"a":{"b":1,"d":{"x":"\t"}}}', '{"a":{"b":1,"l":[1 2]}}', '{"f":1,"g":{"x":tru}}', '{"f":1,"g":[1,None]}', '{"a":{"b":1,"d":{"x":"\t]}}}', '{"a":{"b":1,"d":{"x":"\\q"}}}', '{"a":{"b":1,"d":{"x":"\\u00}}}}',
    '{"a":{"b":1,"d":{"x":1' + "0" * 1001 + "}}}", '{"a":{"b":{"c":1,"l":[tru]}}}', '{"a":{"b":1},"a":{"b":2,"l":[tru]}}',
]  # fmt: skip
NONE = [
    "", "{", "no json", '[{"a":{"b":1,"l":[1,None]}}]', '{"a":{"b":1,"c":tru}}', '{"a":{"b":1},"c":tru}', '{"f":1,"f":tru}', '{"f":1,"g":tru}', '{"b":1,"l":[1,None]}',
]  # fmt: skip
CUT = [
    whole[:end] for whole in ('{"a":{"b":1,"l":[1,{"x":"y"}],"d":{"x":1}},"f":"1"}',) for end in range(1, len(whole))
]
GOOD = ['{"a":{"b":1,"l":[1],"d":{"x":1}},"f":"1"}', '{"a":{"b":2}}', '{"a":{"b":1}} x', "{}", '{"a":{"b":"z"}}']
FIELDS = [
    "from_json(s, 'a STRUCT<b: INT, l: ARRAY<INT>>').a.b", "from_json(s, 'a STRUCT<b: INT, d: STRUCT<x: INT>>').a.b", "from_json(s, 'a STRUCT<b: STRING, d: STRING, l: STRING>').a.b", "from_json(s, 'a STRUCT<b: INT>').a.b",
    "from_json(s, 'a STRUCT<b: STRUCT<c: INT, l: ARRAY<INT>>>').a.b.c", "from_json(s, 'f INT').f", "from_json(s, 'f STRING').f", "from_json(s, 'f INT, g STRUCT<x: INT>').f", "from_json(s, 'f STRING, g ARRAY<INT>').f", "from_json(s, 'f INT, g STRING').f",
]  # fmt: skip
DOCUMENTS = [*KEPT, *NONE, *CUT, *GOOD]


@pytest.fixture
def tables(lake: Lake) -> tuple[Lake, Any]:
    """The documents in a table, a few in each part, and in plain Parquet."""
    lake.sql("CREATE TABLE lake.db.t (n INT, s STRING) USING tamis")
    frame = lake.spark.createDataFrame(list(enumerate(DOCUMENTS)), "n int, s string")
    frame.repartition(8, "n").writeTo(f"{lake.name}.db.t").append()
    path = str(lake.folder / "plain.parquet")
    frame.coalesce(1).write.parquet(path)
    return lake, lake.spark.read.parquet(path)


@pytest.mark.parametrize("optimized", ["true", "false"])
def test_rows_are_those_of_spark(tables: tuple[Lake, Any], optimized: str) -> None:
    """Whether Spark reads only the fields that are asked for, or all of the schema."""
    lake, plain = tables
    name = "spark.sql.optimizer.enableJsonExpressionOptimization"
    before = lake.spark.conf.get(name)
    lake.spark.conf.set(name, optimized)
    try:
        for field in FIELDS:
            for test in ("= '1'", "IS NULL", "IS NOT NULL"):
                found = sorted(row.n for row in lake.sql(f"SELECT n FROM lake.db.t WHERE {field} {test}").collect())
                assert found == sorted(row.n for row in plain.where(f"{field} {test}").collect()), (field, test)
    finally:
        lake.spark.conf.set(name, before)


def test_an_embedded_scan_has_the_rows_of_spark_or_none(tables: tuple[Lake, Any]) -> None:
    """It fails only for documents of which Spark may keep a field."""
    lake, plain = tables
    values = plain.selectExpr("n", *(f"{field} c{i}" for i, field in enumerate(FIELDS))).sort("n").collect()
    refused = set()
    for n, document in enumerate(DOCUMENTS):
        table = tamis.create(f"memory://malformed-{lake.name}-{n}", pa.schema([("s", pa.string())]))
        table.append(pa.table({"s": [document]}))
        for i, field in enumerate(FIELDS):
            try:
                found = table.scan(f"{field} IS NULL").count()
            except InvalidInput as error:
                if error.code != "UNKNOWN_FUNCTION":  # of arrays in the schema
                    assert "LEFT_TO_SPARK" in str(error)  # noqa: PT017
                    refused.add(document)
            else:
                assert found == (values[n][i + 1] is None), (document, field)
    assert refused <= {*KEPT, *NONE}
    assert {*NONE[:4], *CUT}.isdisjoint(refused)
