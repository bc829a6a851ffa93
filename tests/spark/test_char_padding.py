"""CHAR columns whose stored values need not be padded: defaults, and files of other writers. The oracle is Spark over Parquet."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.spark.conftest import Lake

import tamis

pytestmark = pytest.mark.spark

COLUMNS = "id INT, c CHAR(5), v VARCHAR(9), s STRUCT<c: CHAR(3)>, p CHAR(4)"
DECLARED = {"c": "char(5)", "v": "varchar(9)", "s": "struct<c:char(3)>", "p": "char(4)"}
VALUES = ["ab", "abc", "ab   ", None, "ab\x01", "abcde", ""]
ROWS = [
    {"id": n, "c": value, "v": None if value is None else f"{value} "[:9], "s": {"c": "q"}, "p": "kl"[n % 2]}
    for n, value in enumerate(VALUES)
]
QUERIES = [
    "SELECT * FROM {t}",
    "SELECT id FROM {t} WHERE c = 'ab'",
    "SELECT id, v FROM {t} WHERE c IN ('ab', 'abc', 'x')",
    "SELECT id FROM {t} WHERE c = 'ab   ' AND p = 'k'",
    "SELECT id FROM {t} WHERE c > 'ab' OR c IS NULL",
    "SELECT id FROM {t} WHERE c LIKE 'ab  %' OR length(c) <> 5",
    "SELECT id FROM {t} WHERE c = v",
    "SELECT s.c FROM {t} WHERE s.c = 'q  '",
    "SELECT id FROM {t} WHERE p = 'k' AND upper(c) LIKE 'AB   %'",
]
BATCH_QUERIES = [
    "SELECT count(*), min(c), max(c) FROM {t} WHERE c = 'ab'",
    "SELECT min(c), max(c), max(p) FROM {t}",
    "SELECT c, p, count(*) FROM {t} GROUP BY ALL",
    "SELECT DISTINCT c FROM {t} WHERE c <= 'abc'",
    "SELECT a.id, b.id FROM {t} a JOIN {t} b ON a.c = b.c AND a.p = b.p",
    "SELECT a.id FROM {t} a JOIN (SELECT 'ab' c) b ON a.c = b.c",
    "SELECT id FROM {t} WHERE c IN (SELECT c FROM {t} WHERE id = 0)",
    "SELECT c FROM {t} ORDER BY c DESC NULLS LAST LIMIT 2",
]


def delta(folder: Path, pieces: list[list[dict[str, Any]]]) -> None:
    kinds = {"id": pa.int32(), "s": pa.struct([("c", pa.string())])}
    fields = [
        pa.field(
            n, kinds.get(n, pa.string()), metadata={"__CHAR_VARCHAR_TYPE_STRING": DECLARED[n]} if n != "id" else {}
        )
        for n in ("id", *DECLARED)
    ]
    for piece in pieces:
        rows = pa.Table.from_pylist(piece, pa.schema(fields))
        deltalake.write_deltalake(folder, rows, mode="append", partition_by=["p"])


@pytest.fixture(params=["one file", "many files"])
def unpadded(request: pytest.FixtureRequest, lake: Lake, tmp_path: Path) -> Iterator[Lake]:
    """``lake.db.t``, adopted from Delta, and the same values in ``plain_chars``, which Spark pads when it reads them."""
    pieces = [ROWS] if request.param == "one file" else [[row] for row in ROWS]
    delta(tmp_path / "delta", pieces)
    tamis.adopt(tmp_path / "delta", lake.folder / "db" / "t")
    plain = tmp_path / "plain"
    plain.mkdir()
    for at, piece in enumerate(pieces):
        kinds = {"id": pa.int32(), "s": pa.struct([("c", pa.string())])}
        schema = pa.schema([(n, kinds.get(n, pa.string())) for n in ("id", *DECLARED)])
        pq.write_table(pa.Table.from_pylist(piece, schema), plain / f"{at}.parquet")
    lake.spark.sql(f"CREATE TABLE plain_chars ({COLUMNS}) USING parquet LOCATION '{plain}'")
    try:
        yield lake
    finally:
        lake.spark.sql("DROP TABLE plain_chars")


def answer(lake: Lake, query: str, table: str) -> list[str]:
    return sorted(str(tuple(row)) for row in lake.spark.sql(query.format(t=table)).collect())


def streamed(lake: Lake, query: str, checkpoint: Path) -> list[str]:
    found: list[str] = []

    def take(batch: Any, epoch: int) -> None:
        found.extend(str(tuple(row)) for row in batch.collect())

    lake.spark.readStream.table(f"{lake.name}.db.t").createOrReplaceTempView("streamed_chars")
    df = lake.spark.sql(query.format(t="streamed_chars"))
    writer = df.writeStream.foreachBatch(take).option("checkpointLocation", str(checkpoint))
    writer.trigger(availableNow=True).start().awaitTermination()
    return sorted(found)


def check(lake: Lake) -> None:
    for query in [*QUERIES, *BATCH_QUERIES]:
        assert answer(lake, query, f"{lake.name}.db.t") == answer(lake, query, "plain_chars"), query


def test_adopted_values_are_padded_in_every_query(unpadded: Lake) -> None:
    check(unpadded)
    table = tamis.open(unpadded.folder / "db" / "t")
    table.create_index("by_c", ["c"])
    table.analyze()
    check(unpadded)
    table.compact(adopted=True)
    check(unpadded)


@pytest.mark.parametrize("unpadded", ["many files"], indirect=True)
def test_adopted_values_are_padded_in_streams(unpadded: Lake, tmp_path: Path) -> None:
    for at, query in enumerate(QUERIES):
        wanted = answer(unpadded, query, "plain_chars")
        assert streamed(unpadded, query, tmp_path / f"c{at}") == wanted, query


def test_statements_find_padded_values(lake: Lake, tmp_path: Path) -> None:
    delta(tmp_path / "delta", [ROWS])
    for name in ("t", "u", "w"):
        tamis.adopt(tmp_path / "delta", lake.folder / "db" / name)
    lake.sql("DELETE FROM lake.db.t WHERE c = 'ab'")
    assert lake.rows("SELECT id FROM lake.db.t ORDER BY id") == [(1,), (3,), (4,), (5,), (6,)]
    lake.sql("UPDATE lake.db.u SET id = -id, s = named_struct('c', 'w') WHERE c = 'abc'")
    assert lake.rows("SELECT id, s.c FROM lake.db.u WHERE c = 'abc' AND s.c = 'w  '") == [(-1, "w  ")]
    lake.sql("CREATE TABLE lake.db.k (c CHAR(5), n INT) USING tamis")
    lake.sql("INSERT INTO lake.db.k VALUES ('ab', 100), ('new', 200)")
    lake.sql(
        "MERGE INTO lake.db.w t USING lake.db.k k ON t.c = k.c WHEN MATCHED THEN UPDATE SET id = t.id + k.n"
        " WHEN NOT MATCHED THEN INSERT (id, c) VALUES (k.n, k.c)"
    )
    assert sorted(lake.rows("SELECT id FROM lake.db.w")) == [(1,), (3,), (4,), (5,), (6,), (100,), (102,), (200,)]


def test_defaults_are_padded(lake: Lake, tmp_path: Path) -> None:
    """In rows that are older than the column, and in rows that are given without it."""
    tables = {"lake.db.t": "tamis", "plain_chars": "parquet"}
    try:
        for name, using in tables.items():
            lake.sql(f"CREATE TABLE {name} (id INT) USING {using}")
            lake.sql(f"INSERT INTO {name} VALUES (1)")
            lake.sql(f"ALTER TABLE {name} ADD COLUMN c CHAR(5) DEFAULT 'ab'")
            lake.sql(f"ALTER TABLE {name} ADD COLUMN s STRUCT<c: CHAR(3)> DEFAULT named_struct('c', 'q')")
            lake.sql(f"INSERT INTO {name} (id) VALUES (2)")
        held = tamis.open(lake.folder / "db" / "t")
        held.append(pa.table({"id": pa.array([3], pa.int32()), "s": [{"c": "q"}]}))
        lake.sql("INSERT INTO plain_chars (id) VALUES (3)")
        queries = ["SELECT * FROM {t}", "SELECT id FROM {t} WHERE c = 'ab'", "SELECT id FROM {t} WHERE s.c = 'q  '"]
        for at, query in enumerate([*queries, "SELECT count(*), min(c) FROM {t} WHERE c = 'ab   '"]):
            wanted = answer(lake, query, "plain_chars")
            assert answer(lake, query, f"{lake.name}.db.t") == wanted
            if query in queries:
                assert streamed(lake, query, tmp_path / f"d{at}") == wanted
        assert tamis.open(lake.folder / "db" / "t").scan("c = 'ab'").count() == 3
        lake.sql("DELETE FROM lake.db.t WHERE c = 'ab'")
        assert lake.rows("SELECT * FROM lake.db.t") == []
    finally:
        lake.sql("DROP TABLE IF EXISTS plain_chars")
