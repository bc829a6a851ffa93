"""A part that is gone or cut short is named, with a remedy, whichever reader was to read it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException

pytestmark = pytest.mark.spark


def damage(folder: Path, how: str) -> str:
    """Spoils the only part of the table; its path in the table."""
    (part,) = (folder / "data").iterdir()
    if how == "PART_MISSING":
        part.unlink()
    else:
        whole = part.read_bytes()
        part.write_bytes(whole[: len(whole) // 2])
    return f"data/{part.name}"


@pytest.mark.parametrize("how", ["PART_MISSING", "TRUNCATED"])
@pytest.mark.parametrize("lazy", ["auto", "on"])
def test_a_damaged_part_is_named(lake: Any, lazy: str, how: str) -> None:
    lake.sql("CREATE TABLE lake.db.t (x BIGINT) USING tamis")
    lake.spark.range(100).selectExpr("id AS x").coalesce(1).writeTo(f"{lake.name}.db.t").append()
    path = damage(lake.folder / "db" / "t", how)
    with pytest.raises(PySparkException) as caught:
        lake.sql(f"SELECT sum(x) FROM lake.db.t WITH ('tamis.read.lazy' = '{lazy}')").collect()
    for said in (f"[{how}] Part", path, "Restore the file from a backup"):
        assert said in str(caught.value)
