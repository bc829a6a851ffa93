"""Texts that are not UTF-8, such as Latin-1 lines that Spark reads without a check: queries find the rows that plain Parquet gives."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.spark.conftest import Lake

import tamis
from tamis.core.expr import Call, evaluate, parse_predicate
from tamis.core.expr.malformed_texts import malformed_rows
from tamis.core.types import STRING, Field, Schema
from tamis.core.types.utf8_texts import is_malformed, malformed_flags
from tamis.errors import InvalidInput, SchemaMismatch

MIXED = ["636166E9", "63616665", "E9", "FF0010", "C3A9", "6361FF66", "F09F98", "C3", "41C328", "7B2261223A22E9227D",
         "7B2261223A317D", "", "EDA080", "C080", "20E920", "32303234E9", "31E9", "31", "E961"]  # fmt: skip
PARTS: dict[str, list[str | None]] = {
    "one value": ["636166E9"] * 5,
    "one value and NULL": ["E9"] * 3 + [None],
    "a common beginning": ["636166E961", "636166E962", "636166E9E9", "6361666A"],
    "between others": ["636166", "636166E978", "636166EEA880"],
    "mixed": [*MIXED],
    "longer than bounds": ["61" * 60 + "E9" * 7 + text for text in MIXED],
    "few values": ["E9", "61", "C3"] * 4,
    "well formed": ["63616665", "61"],
}
FILTERS = [
    "length({}) = 1", "length({}) = 2", "length({}) = 3", "length({}) = 4", "char_length({}) > 3", "{} LIKE 'caf_'", "{} LIKE 'caf%'",
    "{} LIKE '_'", "{} ILIKE 'CAF%'", "{} RLIKE '^caf.$'", "{} RLIKE '^caf[^e]'", "upper({}) LIKE 'CAF%'", "lower({}) >= 'caf'",
    "instr({}, 'f') = 3", "substring({}, 4, 1) <> 'e'", "substring({}, 1, 2) = 'ca'", "left({}, 4) = 'cafe'", "right({}, 1) = 'e'",
    "reverse({}) LIKE 'e%'", "lpad({}, 6, 'x') LIKE 'x%'", "rpad({}, 6, 'x') LIKE '%xx'", "trim({}) = 'a'", "translate({}, 'a', 'b') LIKE 'cb%'",
    "replace({}, 'a', 'b') LIKE 'cb%'", "regexp_replace({}, 'a', 'b') LIKE 'cb%'", "regexp_extract({}, '(.)f', 1) = 'a'", "split({}, 'a')[0] = 'c'",
    "split_part({}, 'f', 1) = 'ca'", "ascii({}) = 99", "hex({}) LIKE '63%'", "md5({}) > 'a'", "{} = CAST(X'636166E9' AS STRING)", "{} < 'd'",
    "{} IN ('cafe', CAST(X'E9' AS STRING))", "startswith({}, 'caf')", "contains({}, 'a')", "endswith({}, 'e')", "{} || 'x' = 'cafex'",
    "octet_length({}) = 4", "try_cast({} AS INT) = 1", "try_cast({} AS DOUBLE) IS NULL", "get_json_object({}, '$.a') IS NOT NULL",
    "from_json({}, 'a STRING').a IS NOT NULL", "coalesce({}, 'q') LIKE 'caf_'", "CASE WHEN k % 2 = 0 THEN length({}) ELSE 4 END = 4",
    "length({}) = 4 OR k = 3", "k > 5 AND length({}) <> 4", "NOT (length({}) = 4)", "(length({}) = 4) IS NULL", "repeat({}, 2) LIKE 'cafe%'",
    "{} LIKE '%f%' AND length({}) > 0", "{} LIKE 'caf\ufffd_'", "NOT ({} LIKE 'caf\ufffd_')", "{} LIKE 'caf\ufffd%'", "{} RLIKE '^caf\ufffd'", "{} RLIKE '\ufffd'",
    "contains({}, '\ufffd')", "startswith({}, '\ufffd')", "upper({}) = 'CAF\ufffd'",
]  # fmt: skip
NESTED = ["length(st.x) = 4", "upper(ar[0]) LIKE 'CAF%'", "m['a'] LIKE 'caf_'", "exists(ar, e -> length(e) = 4)", "array_contains(ar, CAST(X'E9' AS STRING))"]  # fmt: skip


def written(number: int, text: str | None) -> str:
    return f"SELECT {number} AS k, " + (
        "CAST(NULL AS STRING) AS s" if text is None else f"CAST(X'{text}' AS STRING) AS s"
    )


@pytest.fixture
def texts(lake: Lake, tmp_path: Path) -> Iterator[tuple[Lake, Any]]:
    """A table of a part for each case, and its rows as plain Parquet, which is read without filters."""
    lake.sql("CREATE TABLE lake.db.t (k INT, s STRING, st STRUCT<x: STRING>, ar ARRAY<STRING>, m MAP<STRING, STRING>)")
    number = 0
    for found in PARTS.values():
        rows = " UNION ALL ".join(written(number + at, text) for at, text in enumerate(found))
        number += len(found)
        more = "named_struct('x', s) AS st, array(s, 'z') AS ar, map('a', s) AS m"
        frame = lake.spark.sql(f"SELECT k, s, {more} FROM ({rows})").coalesce(1)
        frame.writeTo(f"{lake.name}.db.t").append()
        frame.write.mode("append").parquet(str(tmp_path / "plain"))
    plain = lake.spark.read.parquet(str(tmp_path / "plain")).cache()  # Spark's own pushdown loses such rows
    yield lake, plain
    plain.unpersist()


@pytest.mark.parametrize("lazy", ["on", "off", "native"])
def test_filters_give_the_rows_of_plain_parquet(texts: tuple[Lake, Any], lazy: str) -> None:
    lake, plain = texts
    lake.spark.conf.set("tamis.read.lazy", lazy)
    try:
        wrong = []
        for text in [*(f.format("s", "s") for f in FILTERS), *NESTED]:
            ours, theirs = (
                sorted(row[0] for row in frame.where(text).select("k").collect())
                for frame in (lake.spark.table(f"{lake.name}.db.t"), plain)
            )
            if ours != theirs:
                wrong.append((text, ours, theirs))
        assert wrong == []
    finally:
        lake.spark.conf.unset("tamis.read.lazy")


@pytest.mark.parametrize("text", ["length(s) = 4", "s LIKE 'caf_'", "upper(s) LIKE 'CAF%'"])
def test_rows_are_changed_as_plain_parquet_gives_them(texts: tuple[Lake, Any], text: str) -> None:
    lake, plain = texts
    left = plain.count() - plain.where(text).count()
    lake.sql(f"DELETE FROM lake.db.t WHERE {text}")
    assert lake.rows("SELECT count(*) FROM lake.db.t") == [(left,)]


def test_embedded_filters_say_that_they_cannot_tell(texts: tuple[Lake, Any]) -> None:
    lake, plain = texts
    table = tamis.open(lake.folder / "db" / "t")
    with pytest.raises(InvalidInput, match="MALFORMED_TEXT"):
        table.scan("length(s) = 4").to_arrow()
    for text in ("s = 'cafe'", "startswith(s, 'caf')", "hex(s) LIKE '63%'", "s < 'd'"):
        assert table.scan(text).count() == plain.where(text).count(), text
    assert table.scan("k = 1000 AND length(s) = 4").count() == 0, "rows that it does not reach do not count"
    well_formed = min(row[0] for row in plain.where("s = 'a' AND k > 60").select("k").collect())
    assert table.scan(f"k = {well_formed} AND length(s) = 1").count() == 1


def texts_of(*found: bytes | None) -> pa.Array:
    """An array of texts that Arrow did not check."""
    return pa.array(found, pa.binary()).cast(pa.string(), safe=False)


def test_malformed_rows_are_found_among_others() -> None:
    array = texts_of(b"a", b"caf\xe9", None, "é".encode(), b"\xff", b"", b"b")
    assert is_malformed(array)
    assert not is_malformed(texts_of(b"a", None, "é".encode()))
    comparison = parse_predicate("upper(s) = 'A'", Schema((Field("s", STRING, True, 1),)))
    assert isinstance(comparison, Call)
    call = comparison.args[0]
    assert isinstance(call, Call)
    rows = malformed_rows(call, [array])
    assert rows is not None
    assert rows.tolist() == [False, True, False, False, True, False, False]
    out = evaluate(call, {1: array}, len(array))
    assert out.values.to_pylist() == ["A", None, None, "É", None, "", "B"]
    assert out.failed is not None
    assert out.failed.tolist() == rows.tolist()


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.string_view()])
def test_one_malformed_byte_is_seen_wherever_it_is(kind: pa.DataType) -> None:
    for length in (1, 7, 8, 9, 64):
        for at in range(length):
            text = b"a" * at + b"\xe9" + b"a" * (length - at - 1)
            array = texts_of(b"\xe9", text, b"\xe9").cast(kind, safe=False)
            assert is_malformed(array.slice(1, 1))
            assert not is_malformed(texts_of(b"\xe9", b"a" * length, b"\xe9").cast(kind, safe=False).slice(1, 1))
    assert not is_malformed(pa.array([], kind))
    assert not is_malformed(pa.nulls(3, kind))


PIECES = [b"a", b"\xc3\xa9", b"\xe2\x82\xac", b"\xf0\x9f\x98\x80", b"\xe9", b"\xc3", b"\xe2\x82", b"\xf0\x9f\x98", b"\x80", b"\xbf",
          b"\xc0\x80", b"\xed\xa0\x80", b"\xe0\x80\x80", b"\xf0\x80\x80\x80", b"\xf4\x90\x80\x80", b"\xf5", b"\xff", b""]  # fmt: skip


@given(
    st.lists(st.none() | st.lists(st.sampled_from(PIECES), max_size=5).map(b"".join), min_size=1, max_size=12),
    st.integers(0, 3),
)
def test_malformed_rows_are_those_that_python_does_not_decode(texts: list[bytes | None], start: int) -> None:
    array = texts_of(*texts)
    found = [text is not None and text != text.decode(errors="ignore").encode() for text in texts]
    for kind in (pa.string(), pa.large_string(), pa.string_view()):
        piece, expected = array.cast(kind, safe=False).slice(start), found[start:]
        assert is_malformed(piece) == any(expected)
        if any(expected):
            assert malformed_flags(piece).tolist() == expected


def test_a_check_says_which_text_fails(tmp_path: Path) -> None:
    table = tamis.create(tmp_path / "t", pa.schema([("s", pa.string())]))
    table.alter().add_check("short", "length(s) < 10").commit()
    with pytest.raises(SchemaMismatch, match="MALFORMED_TEXT"):
        table.append(pa.table({"s": texts_of(b"a", b"caf\xe9")}))


def test_an_index_over_such_texts_is_verified(tmp_path: Path) -> None:
    table = tamis.create(tmp_path / "t", pa.schema([("s", pa.string())]), cluster_by=["s"])
    table.append(pa.table({"s": texts_of(b"\xe9", b"a", None, b"\xe9a")}))
    table.create_index("by_s", "s")
    assert not len(table.verify().problems)
    assert table.scan("s = 'a'").count() == 1
    assert table.compact().conflicts == 0


@pytest.mark.parametrize("indexed", [False, True])
def test_an_audit_says_nothing_of_rows_that_only_spark_can_test(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, *, indexed: bool
) -> None:
    """A part is skipped by the bounds of such texts, or read for some of its blocks, and the audit cannot check it."""
    monkeypatch.setenv("TAMIS_AUDIT", "raise")
    table = tamis.create(tmp_path / "t", pa.schema([("s", pa.string())]))
    table.append(pa.table({"s": texts_of(b"caf\xe9", b"caf\xe9k01")}))
    table.append(pa.table({"s": texts_of(b"d%", b"d%k01")}))
    if indexed:
        table.create_index("by_s", "s")
    scan = table.scan(r"s LIKE 'd\%%'", options={"tamis.audit.percent": 100})
    assert sorted(scan.to_arrow()["s"].to_pylist()) == ["d%", "d%k01"]
    assert not scan.report.violations
    assert "could not be checked" in caplog.text


CHARS = ["80", "C080", "41E942", "E96162", "E9616263", "E9E9", "616263", "61", "", "C3A9", "20E920"]


def test_char_values_are_stored_and_found_as_by_spark(lake: Lake, tmp_path: Path) -> None:
    rows = " UNION ALL ".join(f"SELECT {k} AS k, CAST(X'{text}' AS STRING) AS s" for k, text in enumerate(CHARS))
    lake.sql("CREATE TABLE lake.db.c (k INT, c CHAR(4), v VARCHAR(4)) USING tamis")
    lake.sql(f"INSERT INTO lake.db.c SELECT k, s, s FROM ({rows})")
    lake.sql(f"CREATE TABLE plain_chars (k INT, c CHAR(4), v VARCHAR(4)) USING parquet LOCATION '{tmp_path}/plain'")
    lake.spark.conf.set("spark.sql.parquet.filterPushdown", "false")  # it loses such rows
    try:
        lake.sql(f"INSERT INTO plain_chars SELECT k, s, s FROM ({rows})")
        ours, plain = lake.spark.table(f"{lake.name}.db.c"), lake.spark.table("plain_chars")
        shown = "k", "hex(c)", "hex(v)", "length(c)", "length(v)"
        assert sorted(ours.selectExpr(*shown).collect()) == sorted(plain.selectExpr(*shown).collect())
        for text in CHARS:
            for where in (f"c = CAST(X'{text}' AS STRING)", f"v = CAST(X'{text}' AS STRING)"):
                found = [sorted(row.k for row in frame.where(where).collect()) for frame in (ours, plain)]
                assert found[0] == found[1], where
    finally:
        lake.spark.conf.unset("spark.sql.parquet.filterPushdown")
        lake.sql("DROP TABLE plain_chars")


def test_a_merge_prunes_by_keys_that_are_not_utf8(texts: tuple[Lake, Any]) -> None:
    lake, plain = texts
    keys = "SELECT CAST(X'E9' AS STRING) AS key UNION ALL SELECT 'cafe'"
    left = plain.where("s IS NULL OR (s <> CAST(X'E9' AS STRING) AND s <> 'cafe')").count()
    lake.sql(f"MERGE INTO lake.db.t t USING ({keys}) u ON t.s = u.key WHEN MATCHED THEN DELETE")
    assert lake.rows("SELECT count(*) FROM lake.db.t") == [(left,)]


def test_a_default_that_is_not_utf8_is_refused_by_name(lake: Lake) -> None:
    lake.sql("CREATE TABLE lake.db.d (k INT) USING tamis")
    lake.refused("ALTER TABLE lake.db.d ADD COLUMN q STRING DEFAULT cast(X'E9' AS STRING)", "BAD_DEFAULT")
