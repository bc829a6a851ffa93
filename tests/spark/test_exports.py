"""Exports from Spark: after each commit of a driver, and by CALL."""

from __future__ import annotations

from typing import Any

from tests.bridges.exported_tables import expected
from tests.bridges.foreign_readers import delta_by_deltalake, iceberg_by_pyiceberg

import tamis


def test_exports_follow_the_commits_of_a_driver(lake: Any) -> None:
    lake.sql("CREATE TABLE lake.db.t (a INT, b STRING) USING tamis TBLPROPERTIES ('tamis.export' = 'iceberg, delta')")
    lake.sql("INSERT INTO lake.db.t VALUES (3, 'x'), (1, 'y'), (2, NULL)")
    path = f"{lake.folder}/db/t"
    assert delta_by_deltalake(path) == iceberg_by_pyiceberg(path) == expected(tamis.open(path))
    lake.sql("DELETE FROM lake.db.t WHERE a = 3")
    assert delta_by_deltalake(path) == iceberg_by_pyiceberg(path) == expected(tamis.open(path))


def test_a_table_is_exported_by_call(lake: Any) -> None:
    lake.sql("CREATE TABLE lake.db.t (a INT, b STRING) USING tamis")
    lake.sql("INSERT INTO lake.db.t VALUES (3, 'x'), (1, 'y')")
    lake.sql("CALL lake.system.export(table => 'db.t', format => 'delta')")
    lake.sql("CALL lake.system.export(table => 'db.t', format => 'iceberg', format_version => 3)")
    path = f"{lake.folder}/db/t"
    assert delta_by_deltalake(path) == iceberg_by_pyiceberg(path) == expected(tamis.open(path))
