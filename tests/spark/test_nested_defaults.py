"""Defaults of nested columns, which only Spark SQL gives, while something within the columns changes."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest

pytestmark = pytest.mark.spark

TIME = dt.datetime(2020, 1, 1)


def test_older_rows_keep_a_nested_default(lake: Any) -> None:
    lake.sql("CREATE TABLE lake.db.t (k INT) USING tamis")
    lake.sql("INSERT INTO lake.db.t VALUES (1), (2)")
    lake.sql("ALTER TABLE lake.db.t ADD COLUMN s STRUCT<a: INT, b: INT> DEFAULT named_struct('a', 1, 'b', 2)")
    lake.sql("ALTER TABLE lake.db.t ADD COLUMN l ARRAY<DATE> DEFAULT array(DATE'2020-01-01')")
    assert lake.rows("SELECT s.a, s.b, l[0] FROM lake.db.t WHERE k = 1") == [(1, 2, TIME.date())]
    lake.sql("ALTER TABLE lake.db.t RENAME COLUMN s.a TO c")
    lake.sql("ALTER TABLE lake.db.t ALTER COLUMN l.element TYPE TIMESTAMP_NTZ")
    lake.sql("INSERT INTO lake.db.t (k) VALUES (3)")
    assert lake.rows("SELECT k, s.c, s.b, l[0] FROM lake.db.t ORDER BY k") == [(k, 1, 2, TIME) for k in (1, 2, 3)]
    lake.sql("DELETE FROM lake.db.t WHERE s.c IS NULL OR l[0] < TIMESTAMP_NTZ'2020-01-01'")
    lake.sql("UPDATE lake.db.t SET k = 20 WHERE k = 2")
    with pytest.raises(Exception, match="BAD_DEFAULT"):
        lake.sql("ALTER TABLE lake.db.t DROP COLUMN s.b")
    lake.sql("ALTER TABLE lake.db.t ALTER COLUMN s DROP DEFAULT")
    lake.sql("ALTER TABLE lake.db.t DROP COLUMN s.b")
    lake.sql("ALTER TABLE lake.db.t ADD COLUMN s.b STRING")
    assert lake.rows("SELECT k, s.c, s.b, l[0] FROM lake.db.t ORDER BY k") == [(k, 1, None, TIME) for k in (1, 3, 20)]
    assert lake.rows("SELECT count(*) FROM lake.db.t WHERE s.b IS NULL") == [(3,)]


def test_older_rows_have_the_document_of_a_default(lake: Any) -> None:
    lake.sql("CREATE TABLE lake.db.v (k INT) USING tamis")
    lake.sql("INSERT INTO lake.db.v VALUES (1)")
    lake.sql("""ALTER TABLE lake.db.v ADD COLUMN v VARIANT DEFAULT parse_json('{"a": 1}')""")
    lake.sql("INSERT INTO lake.db.v (k) VALUES (2)")
    assert lake.rows("SELECT k, to_json(v) FROM lake.db.v ORDER BY k") == [(1, '{"a":1}'), (2, '{"a":1}')]
