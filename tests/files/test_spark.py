"""Spark's own Parquet reader sees the same values in our files: it reads them under our scan where nothing has to be filtered."""

import datetime as dt
from decimal import Context
from decimal import Decimal as PyDecimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tamis.core.types import (
    BINARY,
    BOOLEAN,
    BYTE,
    DATE,
    DOUBLE,
    FLOAT,
    INTEGER,
    LONG,
    SHORT,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    VARIANT,
    Array,
    DayTimeInterval,
    Decimal,
    Field,
    Map,
    Schema,
    String,
    Struct,
    Time,
)
from tamis.core.types.arrow import to_arrow_schema
from tamis.storage.files import PartRef
from tamis.storage.object_store import open_store
from tests.files.parts import write_part
from tests.spark.capabilities import has_time_type

pytestmark = pytest.mark.spark

SCHEMA = Schema(
    (
        Field("bo", BOOLEAN),
        Field("by", BYTE),
        Field("sh", SHORT),
        Field("i", INTEGER),
        Field("lo", LONG),
        Field("f", FLOAT),
        Field("d", DOUBLE),
        Field("d9", Decimal(9, 2)),
        Field("d18", Decimal(18, 3)),
        Field("d38", Decimal(38, 10)),
        Field("s", STRING),
        Field("c", String("char", 4)),
        Field("bi", BINARY),
        Field("da", DATE),
        Field("ts", TIMESTAMP),
        Field("tn", TIMESTAMP_NTZ),
        Field("ti", Time(6)),
        Field("iv", DayTimeInterval()),
        Field("st", Struct((Field("x", LONG), Field("y", Struct((Field("z", STRING),)))))),
        Field("ar", Array(Field("element", Decimal(9, 2)))),
        Field("ma", Map(Field("key", STRING, nullable=False), Field("value", TIMESTAMP_NTZ))),
        Field("va", VARIANT),
    )
).assign_ids(0)
DDL = (
    "bo boolean, by tinyint, sh smallint, i int, lo bigint, f float, d double, d9 decimal(9,2), d18 decimal(18,3), d38 decimal(38,10), s string, c string, "
    "bi binary, da date, ts timestamp, tn timestamp_ntz, ti time(6), iv interval day to second, st struct<x: bigint, y: struct<z: string>>, "
    "ar array<decimal(9,2)>, ma map<string, timestamp_ntz>, va variant"
)
OLD, ODD = dt.datetime(1500, 2, 28, 23, 59, 59, 999999), dt.datetime(2024, 3, 31, 2, 30, 0, 1)
NAN = float("nan")
ROWS: list[dict[str, Any]] = [
    {
        "bo": True, "by": -128, "sh": 32767, "i": -(2**31), "lo": 2**63 - 1, "f": NAN, "d": NAN, "d9": PyDecimal("-9999999.99"), "d18": PyDecimal("1.001"),
        "d38": PyDecimal("1234567890123456789012345678.0123456789"), "s": "", "c": "ab  ", "bi": b"", "da": dt.date(1500, 2, 28), "ts": OLD.replace(tzinfo=dt.UTC),
        "tn": OLD, "ti": dt.time(23, 59, 59, 999999), "iv": dt.timedelta(days=-3, microseconds=1), "st": {"x": 1, "y": {"z": "é"}},
        "ar": [PyDecimal("1.50"), None], "ma": [("k", OLD), ("", None)], "va": {"value": b"\x0c\x07", "metadata": b"\x01\x00\x00"},
    },
    {
        "bo": False, "by": 127, "sh": -1, "i": 0, "lo": -(2**63), "f": -0.0, "d": float("-inf"), "d9": PyDecimal("0.01"), "d18": PyDecimal("-999999999999999.999"),
        "d38": PyDecimal("-0.0000000001"), "s": "\u0000\U0010ffff", "c": "    ", "bi": b"\x00\xff", "da": dt.date(9999, 12, 31), "ts": ODD.replace(tzinfo=dt.UTC),
        "tn": ODD, "ti": dt.time(0), "iv": dt.timedelta(days=100_000), "st": {"x": None, "y": None}, "ar": [], "ma": [],
        "va": {"value": b"\x05a", "metadata": b"\x01\x00\x00"},
    },
    dict.fromkeys(SCHEMA.names),
]  # fmt: skip


def write(folder: Path) -> PartRef:
    return write_part(open_store(folder), SCHEMA, [pa.RecordBatch.from_pylist(ROWS, schema=to_arrow_schema(SCHEMA))])


def test_spark_reads_every_type(spark: Any, tmp_path: Path) -> None:
    ref = write(tmp_path)
    expected = {f.name: [plain(row[f.name]) for row in ROWS] for f in SCHEMA if f.name != "va"}
    ddl = DDL if has_time_type(spark) else DDL.replace("ti time(6), ", "")
    if not has_time_type(spark):
        del expected["ti"]
    for vectorized in ("true", "false"):
        session = spark.newSession()
        session.conf.set("spark.sql.parquet.enableVectorizedReader", vectorized)
        session.conf.set("spark.sql.timeType.enabled", "true")
        frame = session.read.schema(ddl).parquet(str(tmp_path / ref.path))
        rows = frame.selectExpr("* except (va)", "to_json(va) as va").collect()
        for name, values in expected.items():
            assert str([plain(row[name]) for row in rows]) == str(values), (name, vectorized)
        assert [row["va"] for row in rows] == ["7", '"a"', None]


def test_spark_finds_columns_by_their_ids(spark: Any, tmp_path: Path) -> None:
    from pyspark.sql.types import LongType, StructField, StructType

    ref = write(tmp_path)
    session = spark.newSession()
    session.conf.set("spark.sql.parquet.fieldId.read.enabled", "true")
    schema = StructType([StructField("another_name", LongType(), True, {"parquet.field.id": SCHEMA.find("lo")[0].id})])
    assert [row[0] for row in session.read.schema(schema).parquet(str(tmp_path / ref.path)).collect()] == [
        2**63 - 1,
        -(2**63),
        None,
    ]


def test_spark_infers_the_schema_from_the_footer(spark: Any, tmp_path: Path) -> None:
    ref = write_part(
        open_store(tmp_path),
        Schema(SCHEMA.fields[:3]),
        [
            pa.record_batch(
                [[True], pa.array([1], pa.int8()), pa.array([2], pa.int16())],
                schema=to_arrow_schema(Schema(SCHEMA.fields[:3])),
            )
        ],
    )
    assert (
        spark.read.parquet(str(tmp_path / ref.path)).schema.simpleString()
        == "struct<bo:boolean,by:tinyint,sh:smallint>"
    )


def plain(value: Any) -> Any:
    """What PySpark and we write differently, written one way."""
    if hasattr(value, "asDict"):
        return plain(value.asDict())
    if isinstance(value, dict):
        return {k: plain(value[k]) for k in sorted(value)}
    if isinstance(value, list):
        return plain(dict(value)) if value and isinstance(value[0], tuple) else [plain(v) for v in value] or {}
    if isinstance(value, PyDecimal):
        return value.normalize(Context(prec=50))
    if isinstance(value, bytearray):
        return bytes(value)
    return value.replace(tzinfo=None) if isinstance(value, dt.datetime) else value
