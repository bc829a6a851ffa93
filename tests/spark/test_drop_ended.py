"""DROP and RENAME leave a table alone that ended with an export: its folder is a table of another format by now."""

from __future__ import annotations

import deltalake
import pyarrow as pa
import pytest
from tests.spark.conftest import Lake

import tamis

pytestmark = pytest.mark.spark

STATEMENTS = (
    "DROP TABLE lake.db.t",
    "DROP TABLE lake.db.t PURGE",
    "DROP NAMESPACE lake.db CASCADE",
    "ALTER TABLE lake.db.t RENAME TO lake.db.u",
)


@pytest.mark.parametrize("statement", STATEMENTS)
def test_rows_of_other_writers_stay(lake: Lake, statement: str) -> None:
    for name in ("s", "t"):
        lake.sql(f"CREATE TABLE lake.db.{name} (id BIGINT) USING tamis")
        lake.sql(f"INSERT INTO lake.db.{name} VALUES (1)")
    place = lake.folder / "db" / "t"
    tamis.open(place).export("delta", final=True)
    deltalake.write_deltalake(place, pa.table({"id": [9]}), mode="append")
    lake.refused(statement, "TABLE_ENDED")
    assert sorted(deltalake.DeltaTable(place).to_pyarrow_table()["id"].to_pylist()) == [1, 9]
    assert lake.rows("SELECT id FROM lake.db.s") == [(1,)], "nothing of the namespace was removed"


def test_a_damaged_table_can_be_dropped(lake: Lake) -> None:
    lake.sql("CREATE TABLE lake.db.t (id BIGINT) USING tamis")
    for commit in (lake.folder / "db" / "t" / "_tamis" / "log").iterdir():
        commit.write_bytes(b"{")
    lake.sql("DROP TABLE lake.db.t")
    assert not (lake.folder / "db" / "t").exists()
