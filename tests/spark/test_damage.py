"""A part that is gone or cut short is named, with a remedy, whichever reader was to read it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from py4j.protocol import Py4JJavaError
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


def test_no_flipped_bit_gives_other_rows(lake: Any) -> None:
    lake.sql("CREATE TABLE lake.db.t (x BIGINT, s STRING) USING tamis")
    lake.spark.range(2_000).selectExpr("id * 7919 % 100003 AS x", "md5(string(id)) AS s").coalesce(1).writeTo(f"{lake.name}.db.t").append()
    (part,) = (lake.folder / "db" / "t" / "data").iterdir()
    asked = "SELECT sum(x), sum(crc32(s)), count(*) FROM lake.db.t WITH ('tamis.read.lazy' = 'native')"
    right, whole = lake.rows(asked), part.read_bytes()
    refused: list[str] = []
    for at in range(500, len(whole) // 2, len(whole) // 16):
        part.write_bytes(whole[:at] + bytes([whole[at] ^ 4]) + whole[at + 1 :])
        try:
            assert lake.rows(asked) == right
        except (PySparkException, Py4JJavaError) as error:
            refused.append(str(error))
    assert refused
    assert all("verify" in said or "FAILED_READ_FILE" in said for said in refused)
