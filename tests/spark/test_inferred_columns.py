"""Columns that a table takes from a DataFrame may be NULL: that Spark finds no NULL in its first rows says nothing of the next."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from tests.spark.conftest import Lake

import tamis

pytestmark = pytest.mark.spark

FIRST = "SELECT id, 'x' AS k, struct(1 AS a) AS st, array(1, 2) AS l, map('a', 1) AS m FROM range(3)"
NEXT = """SELECT CAST(NULL AS BIGINT) AS id, CAST(NULL AS STRING) AS k, named_struct('a', CAST(NULL AS INT)) AS st,
          array(1, NULL) AS l, map('a', CAST(NULL AS INT)) AS m"""

WRITES: dict[str, Callable[[Any, str], Any]] = {
    "save": lambda df, path: df.write.format("tamis").save(path),
    "overwriteSchema": lambda df, path: (
        tamis.create(path, "id BIGINT NOT NULL, other INT"),
        df.write.format("tamis").mode("overwrite").option("overwriteSchema", "true").save(path),
    ),
    "append": lambda df, path: tamis.create(path).append(df),
}


@pytest.mark.parametrize("write", WRITES)
def test_the_next_rows_may_have_null_anywhere(lake: Lake, write: str) -> None:
    path = str(lake.folder / "db" / "t")
    WRITES[write](lake.spark.sql(FIRST), path)
    lake.spark.sql(NEXT).write.format("tamis").mode("append").save(path)
    table = tamis.open(path)
    assert (table.scan().count(), table.scan("id IS NULL AND k IS NULL AND st.a IS NULL").count()) == (4, 1)
    schema = table.snapshot.schema
    assert schema is not None
    assert all(field.nullable for _, field in schema.walk() if field.name != "key")
