"""A part that is gone or cut short is named, with a remedy, whichever reader was to read it."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

import tamis
from tamis.errors import CorruptData
from tamis.storage.object_store.checked_json import seal_json, unseal_json
from tamis.storage.object_store.metadata_files import columns_from_json, inline_table
from tamis.storage.object_store.object_cache import CACHE
from tamis.storage.object_store.store import open_store

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


@pytest.mark.push_cases(2)
@pytest.mark.parametrize("how", ["PART_MISSING", "TRUNCATED"])
@pytest.mark.parametrize("lazy", ["auto", "on"])
def test_a_damaged_part_is_named(lake: Any, lazy: str, how: str) -> None:
    lake.sql("CREATE TABLE lake.db.t (x BIGINT) USING tamis")
    lake.spark.range(100).selectExpr("id AS x").coalesce(1).writeTo(f"{lake.name}.db.t").append()
    path = damage(lake.folder / "db" / "t", how)
    with pytest.raises(PySparkException) as caught:
        lake.sql(f"SELECT sum(x) FROM lake.db.t WITH ('tamis.read.lazy' = '{lazy}')").collect()
    for text in (f"[{how}] Part", path, "Restore the file from a backup"):
        assert text in str(caught.value)
    assert ("Read the newest version" in str(caught.value)) == (how == "PART_MISSING")


def test_no_flipped_bit_gives_other_rows(lake: Any) -> None:
    lake.sql("CREATE TABLE lake.db.t (x BIGINT, s STRING) USING tamis")
    lake.spark.range(2_000).selectExpr("id * 7919 % 100003 AS x", "md5(string(id)) AS s").coalesce(1).writeTo(
        f"{lake.name}.db.t"
    ).append()
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
    assert all("verify" in message or "FAILED_READ_FILE" in message for message in refused)


@pytest.mark.merge
def test_no_flipped_bit_behind_the_pages_gives_other_rows(lake: Any) -> None:
    """A flipped bit of a page index or the footer gives the right rows, or an error with the part's name.

    tests/files/test_faults.py flips bits of every byte.
    """
    lake.sql("CREATE TABLE lake.db.t (x BIGINT, s STRING) USING tamis TBLPROPERTIES ('tamis.read.lazy' = 'native')")
    lake.spark.range(9_000).selectExpr("id AS x", "md5(string(id)) AS s").coalesce(1).writeTo(
        f"{lake.name}.db.t"
    ).append()
    (part,) = (lake.folder / "db" / "t" / "data").iterdir()
    asked = [
        "SELECT sum(x), sum(crc32(s)), count(*) FROM lake.db.t",
        "SELECT count(s), max(s) FROM lake.db.t WHERE x < 3000",
    ]
    right, whole, group = [lake.rows(q) for q in asked], part.read_bytes(), pq.read_metadata(part).row_group(0)
    index = max(group.column(i).data_page_offset + group.column(i).total_compressed_size for i in range(2))
    footer = len(whole) - 8 - int.from_bytes(whole[-8:-4], "little")
    refused: list[str] = []
    for at in [*range(index, footer, 23), *range(footer, len(whole), 23)]:
        part.write_bytes(whole[:at] + bytes([whole[at] ^ 1 << at % 8]) + whole[at + 1 :])
        for question, answer in zip(asked, right, strict=True):
            try:
                assert lake.rows(question) == answer, at
                assert at < footer, at
            except PySparkException as error:
                refused.append(str(error))
    assert len(refused) == 2 * len(range(footer, len(whole), 23))
    assert all("[CHECKSUM] Part" in message or "[PART_" in message for message in refused)


@pytest.mark.merge
def test_no_flipped_bit_in_the_page_header_of_an_array_gives_other_rows(lake: Any) -> None:
    """Page headers have no checksum: skipping pages by one with a wrong number of values gave the arrays of other rows."""
    lake.sql(
        "CREATE TABLE lake.db.t (x BIGINT, l ARRAY<BIGINT>) USING tamis TBLPROPERTIES ('tamis.read.lazy' = 'native')"
    )
    arrays = "IF(id % 4 = 0, array(), array(id, id + 1)) AS l"
    lake.spark.range(9_000).selectExpr("id AS x", arrays).coalesce(1).writeTo(f"{lake.name}.db.t").append()
    (part,) = (lake.folder / "db" / "t" / "data").iterdir()
    asked = "SELECT sum(x), bit_xor(xxhash64(l)), count(*) FROM lake.db.t WHERE x BETWEEN 100 AND 200"
    right, whole = lake.rows(asked), part.read_bytes()
    start = pq.read_metadata(part).row_group(0).column(1).data_page_offset
    refused = 0
    for at in range(start, start + 32):
        part.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
        try:
            assert lake.rows(asked) == right, at - start
        except (PySparkException, Py4JJavaError):
            refused += 1
    assert refused


@pytest.mark.push_cases(2)
@pytest.mark.parametrize("path", ["../other/data/{}", "data/../../other/data/{}", "data/%2e%2e/../../other/data/{}"])
@pytest.mark.parametrize("lazy", ["native", "on"])
def test_no_part_lies_outside_of_its_table(lake: Any, lazy: str, path: str) -> None:
    for name, low in (("t", 0), ("other", 100)):
        lake.sql(f"CREATE TABLE lake.db.{name} (x BIGINT) USING tamis")
        lake.spark.range(low, low + 100).selectExpr("id AS x").coalesce(1).writeTo(f"{lake.name}.db.{name}").append()
    (stranger,) = (lake.folder / "db" / "other" / "data").iterdir()
    climb(lake.folder / "db" / "t", path.format(stranger.name))
    with pytest.raises(PySparkException, match=r"\[PATH_OUTSIDE\] Part .* lies outside of its table's folder"):
        lake.sql(f"SELECT sum(x) FROM lake.db.t WITH ('tamis.read.lazy' = '{lazy}')").collect()
    with pytest.raises(CorruptData, match="PATH_OUTSIDE"):
        tamis.open(lake.folder / "db" / "t").scan().to_arrow()


def climb(folder: Path, path: str) -> None:
    """Makes the table's last commit name ``path`` as its part's file, with what is known of that file."""
    own, other = (sorted((f / "_tamis" / "log").iterdir())[-1] for f in (folder, folder.parent / "other"))
    body, theirs = (unseal_json("commit", log.read_bytes(), log.name) for log in (own, other))
    parts = columns_from_json(theirs["add"][0]["tables"]["parts"]).read(open_store(folder), list)
    at = parts.column_names.index("path")
    body["add"][0]["tables"]["parts"] = inline_table(parts.set_column(at, "path", pa.array([path]))).to_json()
    own.write_bytes(seal_json("commit", body))
    CACHE.clear()


@pytest.mark.parametrize("lazy", ["native", "on"])
def test_a_file_replaced_after_a_first_read_is_named(lake: Any, lazy: str) -> None:
    """Another part's valid file, laid out alike, so that no page ends elsewhere."""
    lake.sql("CREATE TABLE lake.db.t (x DOUBLE, y DOUBLE) USING tamis")
    for seed in range(6):
        rows = lake.spark.range(1_000).selectExpr(f"rand({seed}) AS x", f"rand({seed + 10}) AS y").coalesce(1)
        rows.writeTo(f"{lake.name}.db.t").append()
    asked = f"SELECT sum(y) FROM lake.db.t WITH ('tamis.read.lazy' = '{lazy}') WHERE x < 0.5"
    assert lake.rows(asked) == lake.rows(asked)
    files = sorted((lake.folder / "db" / "t" / "data").iterdir(), key=lambda file: file.stat().st_size)
    first, second = min(pairwise(files), key=lambda two: two[1].stat().st_size - two[0].stat().st_size)
    second.write_bytes(first.read_bytes())
    with pytest.raises((CorruptData, PySparkException), match=second.stem):
        lake.rows(asked)
