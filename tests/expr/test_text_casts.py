"""Text is read as Spark reads it, oddities of Java included: a single value decides whether a part is skipped."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from tamis.core import expr
from tamis.core import types as t
from tamis.core.expr import Column, Mode
from tamis.core.expr.time_zones import DAY

NUMBERS = """0x1p3|0X1.8P1|-0x.8p1d|0x10|0x1p99999|+NaN|-NaN|+nan|nan|NAN|NaNd|INF|+Inf|-infinity|Infinityd|1.f|1f|1.5D|1L|5.|.5|.|+.|-|+|1e|e1|1e3|1e309|1e-400
1e39|3.4028236e38|9223372036854775808|-9223372036854775809|127.9|128|1_0|1,0|--1|1 2|１|٣|9999999.995|99999999.995|0.005|-0.005|1e8|1e1000|1e2147483648|1e-2147483649
1e99999999999|0e99999999999|true|TRUE|tr|Y|on|1|0|01""".replace("\n", "|").split("|")
PADDED = [
    f"{left}{middle}{right}"
    for middle in ("1", "2024-03-10", "true")
    for left, right in (("\t", "\n"), ("\x7f", ""), ("\xa0", ""), ("", "\xa0"), ("\x00", "\x0b"))
]
DATES = """2024-3-1|2024|2024-03|2024-|24-03-10|2024-02-30|2024-13-01|02024-03-10|0002024-03-10|12345-01-01|300001-01-01|1234567-01-01|5881580-07-11|5881580-07-12|-2024-03-10
+2024-3|0000-01-01|2024-03-10T|2024-03-10 junk|2024-03-10Tjunk|2024-03-10x|2024 Z|2024-03-10 UTC|2024-03-10Z|2024-03-10 10|2024-03-10 10:|2024-03-10 2:3|2024-03-10 02 UTC
2024-03-10 02:30 UTC|2024-03-10 02:30.5|2024-03-10 02:30:00.|2024-03-10 02:30:00.1234567891|2024-03-10 02:30:60|2024-03-10 24:00:00|2024-03-10  02:30:00|2024-03-10t02:30:00
2024-03-10 02:30:00+|2024-03-10 02:30:00 a|2024-03-10T02:30:00 Z|2024-03-10 02:30:00z|294247-01-10|294247-01-10 04:00:54.775807|294247-01-10 04:00:54.775808|-290308-12-22
1883-11-18 12:00:00 America/New_York|1582-10-10 00:00:00""".replace("\n", "|").split("|")
ZONES = """CST|BST|IST|AST|EST|MST|HST|PST|EST5EDT|GMT|UT|UTC+2|UTC+2:3|UTC+02|GMT+5:30|UT-3|UTC-0330|+5|+053|+0530|+05:30:15|+053015|-18:00|+18:01|+19|+05:3|+5:3|+1:2:3|Zulu|utc
europe/berlin|Europe/Berlin|GMT0|Etc/GMT+5|Factory|ROC|posixrules|-0|+05:60""".replace("\n", "|").split("|")
TEXTS = sorted({*NUMBERS, *PADDED, *DATES, *(f"2024-03-10 02:30:00 {z}" for z in ZONES)})
TARGETS = [
    t.BYTE,
    t.INTEGER,
    t.LONG,
    t.FLOAT,
    t.DOUBLE,
    t.BOOLEAN,
    t.Decimal(10, 2),
    t.Decimal(38, 18),
    t.DATE,
    t.TIMESTAMP,
    t.TIMESTAMP_NTZ,
]


def cast(target: t.DataType, mode: Mode, zone: str, texts: list[str]) -> pa.Array:
    tree = expr.make_call("cast", Column(t.STRING, (1,), "s"), mode=mode, zone=zone, type=target)
    return expr.evaluate(tree, {1: pa.array(texts)}, len(texts)).values


def plain(array: pa.Array) -> list[Any]:
    if pa.types.is_temporal(array.type):
        array = array.cast(pa.int32() if pa.types.is_date32(array.type) else pa.int64())
    return ["NaN" if v != v else v for v in array.to_pylist()]


@pytest.mark.spark
@pytest.mark.parametrize(("mode", "zone"), [(Mode.TRY, "America/New_York"), (Mode.LEGACY, "Pacific/Apia")])
def test_text_reads_as_in_spark(spark: Any, mode: Mode, zone: str) -> None:
    session = spark.newSession()
    session.conf.set("spark.sql.session.timeZone", zone)
    session.conf.set("spark.sql.ansi.enabled", "false")
    session.createDataFrame(pa.table({"s": TEXTS})).createOrReplaceTempView("texts")
    name = "try_cast" if mode is Mode.TRY else "cast"
    casts = ", ".join(f"{name}(s AS {target}) AS c{i}" for i, target in enumerate(TARGETS))
    expected = session.sql(f"SELECT s, {casts} FROM texts").toArrow().combine_chunks()
    texts = expected["s"].to_pylist()
    wrong = [
        f"{target} of {text!r}: Spark {a}, here {b}"
        for i, target in enumerate(TARGETS)
        for text, a, b in zip(
            texts, plain(expected[f"c{i}"].combine_chunks()), plain(cast(target, mode, zone, texts)), strict=True
        )
        if a != b
    ]
    assert "\n".join(wrong) == ""


def test_a_time_alone_is_todays() -> None:
    values = plain(
        cast(t.TIMESTAMP, Mode.TRY, "UTC", ["12:30:00", "T12:30", "12:30:00.5 UTC", "12:", "T", "12:30 UTC"])
    )
    noon = 45_000_000_000
    assert [v if v is None else v % DAY - noon for v in values] == [0, 0, 500_000, None, None, None]


CASED = [
    "ß",
    "ss",
    "İ",
    "İstanbul",
    "ŉ",
    "ΑΣ",
    "ας",
    "ﬁ",
    "ǅ",
    "é",
    "e\u0301",
    "ſ",
    "ẞ",
    "ı",
    "𐐀",
    "ა",
    "a\u0345",
    "ᾳ",
    "abc",
    "",
]


@pytest.mark.spark
def test_case_changes_as_in_spark(spark: Any) -> None:
    spark.createDataFrame(pa.table({"s": CASED})).createOrReplaceTempView("cased")
    expected = spark.sql("SELECT s, upper(s) AS upper, lower(s) AS lower FROM cased").toArrow().combine_chunks()
    for name in ("upper", "lower"):
        tree = expr.make_call(name, Column(t.STRING, (1,), "s"))
        assert (
            expr.evaluate(tree, {1: expected["s"].combine_chunks()}, len(CASED)).values.to_pylist()
            == expected[name].to_pylist()
        )


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (5e-324, "4.9E-324"),
        (1e-323, "9.9E-324"),
        (2e-323, "2.0E-323"),
        (1e22, "1.0E22"),
        (-1e-5, "-1.0E-5"),
        (1e6, "1000000.0"),
        (20240105.0, "2.0240105E7"),
        (-1.0625e-4, "-1.0625E-4"),
        (1.05e7, "1.05E7"),
    ],
)
def test_a_double_has_two_digits_at_least(value: float, text: str) -> None:
    """Java rounds the smallest ones to two digits, although one would read back."""
    made = expr.make_call("cast", Column(t.DOUBLE, (1,), "d"), type=t.STRING)
    assert expr.evaluate(made, {1: pa.array([value])}, 1).values.to_pylist() == [text]


@pytest.mark.spark
def test_numbers_are_written_as_in_spark(spark: Any) -> None:
    """Of few digits and in all sizes in which the releases of Java agree."""
    rng = np.random.default_rng(0)
    digits, power = rng.integers(1, 10**6, 4_000), rng.integers(-8, 9, 4_000)
    values = [float(f"{d}e{e}") for d, e in zip(digits // 10 ** (digits % 6), power, strict=True)]
    values += [float(f"{d % 9 + 1}.0{d}e{e}") for d, e in zip(digits, power, strict=True)]
    spark.createDataFrame(pa.table({"d": values})).createOrReplaceTempView("numbers")
    found = spark.sql("SELECT d, CAST(d AS STRING) AS text FROM numbers").toArrow()
    made = expr.make_call("cast", Column(t.DOUBLE, (1,), "d"), type=t.STRING)
    texts = expr.evaluate(made, {1: found["d"].combine_chunks()}, len(found)).values.to_pylist()
    wanted = found["text"].to_pylist()
    assert [pair for pair in zip(texts, wanted, strict=True) if pair[0] != pair[1]] == []


def test_written_floats_read_back() -> None:
    """Before Java 19, Java does not write the shortest text of all floats; both texts are of one number."""
    values = (np.random.default_rng(0).integers(1, 10**6, 4_000) * 10.0 ** np.arange(-20, 20).repeat(100)).astype("f4")
    made = expr.make_call("cast", Column(t.FLOAT, (1,), "f"), type=t.STRING)
    texts = expr.evaluate(made, {1: pa.array(values)}, len(values)).values.to_pylist()
    assert [np.float32(text) for text in texts] == values.tolist()
