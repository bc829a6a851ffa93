"""Dates, times and numbers in documents: the ways in which people filter events skip, and lose no row."""

from __future__ import annotations

import contextlib
import itertools
import json
import struct
from collections.abc import Sequence
from datetime import datetime
from decimal import Context, Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tamis
from tamis.core.expr.json_codec.iso_times import (
    DATE_TEXT,
    INSTANT_TEXT,
    LOCAL_TEXT,
    NO_TIME,
    form_of_pattern,
    times_of_texts,
)
from tamis.core.types import VARIANT
from tamis.core.types.arrow import to_arrow_schema, to_arrow_type
from tests.expr.documents import SCHEMA
from tests.stats.document_paths import batch, check

DAYS = [f"2026-03-{day:02d}" for day in range(1, 29)]
COLUMNS: dict[str, list[Any]] = {
    "date": DAYS,
    "space": [f"{day} 10:20:30" for day in DAYS],
    "t": [f"{day}T10:20:30" for day in DAYS],
    "z": [f"{day}T10:20:30Z" for day in DAYS],
    "millis": [f"{day}T10:20:30.125Z" for day in DAYS],
    "mixed": [f"{day}T10:20:30{'.5' if i % 2 else ''}{'Z' if i % 3 else '+02:00'}" for i, day in enumerate(DAYS)],
    "id": list(range(1000, 1028)),
    "either": [i if i % 2 else f"x{i}" for i in range(28)],
}
BODIES = [json.dumps({name: values[i] for name, values in COLUMNS.items()}) for i in range(28)]
MUST_SKIP = [
    "get_json_object(s, '$.date')::date > DATE'2026-04-01'", "get_json_object(s, '$.date')::timestamp < TIMESTAMP'2026-02-01 00:00:00'", "to_date(get_json_object(s, '$.date')) = DATE'2026-05-01'",
    "get_json_object(s, '$.space')::timestamp > TIMESTAMP'2026-04-01 00:00:00'", "get_json_object(s, '$.t')::timestamp_ntz > TIMESTAMP_NTZ'2026-04-01 00:00:00'", "get_json_object(s, '$.z')::timestamp > TIMESTAMP'2026-04-01 00:00:00'",
    "try_cast(get_json_object(s, '$.millis') AS TIMESTAMP) < TIMESTAMP'2026-02-01 00:00:00'", "to_timestamp(get_json_object(s, '$.mixed')) > TIMESTAMP'2026-04-01 00:00:00'", "get_json_object(s, '$.mixed')::date > DATE'2026-04-02'",
    "to_timestamp(get_json_object(s, '$.space'), 'yyyy-MM-dd HH:mm:ss') > TIMESTAMP'2026-04-01 00:00:00'", "to_date(get_json_object(s, '$.date'), 'yyyy-MM-dd') > DATE'2026-04-01'",
    "to_timestamp(get_json_object(s, '$.t'), \"yyyy-MM-dd'T'HH:mm:ss\") > TIMESTAMP'2026-04-01 00:00:00'",
    "variant_get(v, '$.z', 'timestamp') > TIMESTAMP'2026-04-01 00:00:00'", "v:date::date < DATE'2026-02-01'", "v:t::timestamp_ntz > TIMESTAMP_NTZ'2026-04-01 00:00:00'", "try_variant_get(v, '$.space', 'timestamp') > TIMESTAMP'2026-04-01 00:00:00'",
    "get_json_object(s, '$.id') = '7'", "get_json_object(s, '$.id') IN ('7', '2000', 'abc')", "get_json_object(s, '$.id') LIKE '2%'", "startswith(get_json_object(s, '$.id'), '11')", "variant_get(v, '$.id', 'string') = '999'", "get_json_object(s, '$.id') <=> '7'",
    "try_cast(get_json_object(s, '$.either') AS INT) > 100", "try_variant_get(v, '$.either', 'int') > 100",
]  # fmt: skip
MUST_KEEP = [
    "get_json_object(s, '$.id') = '1007'", "get_json_object(s, '$.id') LIKE '10%'", "get_json_object(s, '$.id') IN ('1', '1001')", "get_json_object(s, '$.z')::timestamp >= TIMESTAMP'2026-03-28 10:20:30'", "get_json_object(s, '$.date')::date = DATE'2026-03-01'", "get_json_object(s, '$.id') <> '7'", "get_json_object(s, '$.id') NOT IN ('7')",
]  # fmt: skip


@pytest.fixture(scope="module")
def table() -> Any:
    made = tamis.create("memory://document-times", to_arrow_schema(SCHEMA))
    made.append(_rows(BODIES))
    return made


@pytest.mark.push_cases(48)
@pytest.mark.parametrize("zone", ["UTC", "America/Sao_Paulo", "Asia/Kolkata"])
@pytest.mark.parametrize("ansi", [True, False])
@pytest.mark.parametrize("text", MUST_SKIP)
def test_filters_of_events_skip(table: Any, text: str, ansi: bool, zone: str) -> None:
    options = {"timezone": zone, "ansi": ansi}
    assert table.explain(text, options=options).parts["kept"] == 0, table.explain(text, options=options)
    assert table.scan(text, options={**options, "tamis.stats.filter": "off"}).count() == 0


@pytest.mark.parametrize("text", MUST_KEEP)
def test_filters_that_match_are_kept(table: Any, text: str) -> None:
    off = table.scan(text, options={"tamis.stats.filter": "off"}).count()
    assert table.scan(text).count() == off > 0


_NUMBERS = itertools.count()
TEXTS = st.one_of(
    st.datetimes().map(lambda t: t.isoformat(sep=" ")),
    st.datetimes().map(lambda t: t.replace(microsecond=0).isoformat()),
    st.datetimes().map(lambda t: t.isoformat() + "Z"),
    st.tuples(st.datetimes(), st.sampled_from(["+02:00", "-11:30", "+14:00"])).map(lambda pair: pair[0].isoformat() + pair[1]),
    st.dates().map(lambda day: day.isoformat()),
    st.sampled_from(["2026-02-29", "2026-01-01T24:00:00", "2026-01-01T00:00:00+01", "12026-01-01", "0000-01-01", " 2026-01-01", "2026-01-01T00:00:00.1234567Z", "abc", "7", "2026"]),
)  # fmt: skip
VALUES = (
    TEXTS
    | st.integers(-300, 300)
    | st.sampled_from(
        [None, True, 1.5, -0.0, [1], {"k": 1}, "", "-", "00", "1e2", "\x7f12", "NaN", 2**63, -(2**63), 10**18]
    )
)
LITERALS = ["'7'", "'-7'", "'007'", "'1.5'", "''", "'2026-01-01'", "'9223372036854775807'", "'9223372036854775808'", "'-'", "'true'"]  # fmt: skip


EACH: list[Any] = [
    "2026-03-01", "2026-03-02", "2026-03-01 23:30:00", "2026-03-02T00:30:00", "2026-03-01T23:30:00Z", "2026-03-02T00:30:00.25Z", "2026-03-01T23:30:00+02:00", "2026-03-02T00:30:00-11:30", "2026-03-01T00:10:00+14:00",
    "abc", "7", "12", "-7", "1.5", "", "2026", "\x7f12", 7, 12, 100, -7, 1.5, 2.5, 2**63, 2**64, -(2**63), None, True, [7], {"k": 7},
]  # fmt: skip
TIMES_NEAR = ["2026-02-28 10:00:00", "2026-02-28 23:59:00", "2026-03-01 00:00:00", "2026-03-01 21:30:00", "2026-03-01 23:30:00", "2026-03-02 00:00:00", "2026-03-02 00:30:00", "2026-03-02 12:00:00"]  # fmt: skip
NUMBERS_NEAR = ["7", "-7", "-9", "-922", "12", "1.5", "100", "10", "1", "-", "9223372036854775808", "007", "abc", ""]


@pytest.mark.merge
def test_no_row_of_neighbours_is_lost() -> None:
    """Each value in a part of its own, and each with the next: what is proved of parts, their union and blocks holds."""
    bodies = [json.dumps({"p": value}) for value in EACH]
    parts = [part for i, body in enumerate(bodies) for part in ([body], [body, bodies[i - 1]])]
    casts = ["try_cast(get_json_object(s, '$.p') AS {0})", "try_variant_get(v, '$.p', '{0}')"]
    filters = [
        f"{cast.format(kind)} {op} {name}'{moment[:size]}'"
        for cast in casts
        for kind, name, size in (("date", "DATE", 10), ("timestamp", "TIMESTAMP", 19), ("timestamp_ntz", "TIMESTAMP_NTZ", 19))
        for moment in TIMES_NEAR
        for op in ("<", ">=")
    ]  # fmt: skip
    texts = ("get_json_object(s, '$.p')", "variant_get(v, '$.p', 'string')")
    filters += [f"{text} {op} '{number}'" for text in texts for number in NUMBERS_NEAR for op in ("=", "<>", "<=>")]
    filters += [
        f"{text} {op} ('{number}', 'b')" for text in texts for number in NUMBERS_NEAR for op in ("IN", "NOT IN")
    ]
    filters += [f"{text} LIKE '{number}%'" for text in texts for number in NUMBERS_NEAR]
    filters += [f"{cast.format(kind)} = {number}" for cast in casts for kind in ("int", "decimal(5,1)", "double") for number in ("7", "1.5", "12")]  # fmt: skip
    check(parts, filters)


@pytest.mark.slow
@given(data=st.data())
def test_no_row_is_lost(data: st.DataObject) -> None:
    """Over any mixture of values, with pruning and without, in any zone and mode."""
    drawn = _like(data.draw(TEXTS)) if data.draw(st.booleans()) else VALUES
    values = data.draw(st.lists(drawn, min_size=1, max_size=12))
    made = tamis.create(f"memory://times-{next(_NUMBERS)}", to_arrow_schema(SCHEMA))
    step = data.draw(st.integers(1, 6))
    for start in range(0, len(values), step):
        made.append(_rows([json.dumps({"p": value}) for value in values[start : start + step]]))
    moment = data.draw(st.sampled_from([*_moments(values), data.draw(st.datetimes())]))
    kind = data.draw(st.sampled_from(["date", "timestamp", "timestamp_ntz", "int", "decimal(10,2)"]))
    literal = {"date": f"DATE'{moment:%Y-%m-%d}'".replace("'", "'", 1), "timestamp": f"TIMESTAMP'{moment.isoformat(' ')}'", "timestamp_ntz": f"TIMESTAMP_NTZ'{moment.isoformat(' ')}'"}.get(kind, "5")  # fmt: skip
    if moment.year < 1000:
        return
    source = data.draw(st.sampled_from([
        f"try_cast(get_json_object(s, '$.p') AS {kind})", f"cast(get_json_object(s, '$.p') AS {kind})",
        f"variant_get(v, '$.p', '{kind}')", f"try_variant_get(v, '$.p', '{kind}')",
    ]))  # fmt: skip
    text = data.draw(st.sampled_from(LITERALS))
    filters = [
        f"{source} {data.draw(st.sampled_from(['<', '>=', '=', '<>']))} {literal}", f"{source} IS NULL",
        f"get_json_object(s, '$.p') = {text}", f"get_json_object(s, '$.p') <> {text}", f"get_json_object(s, '$.p') IN ({text}, '8')",
        f"get_json_object(s, '$.p') NOT IN ({text}, '8')", f"variant_get(v, '$.p', 'string') = {text}", f"startswith(get_json_object(s, '$.p'), {text})", f"get_json_object(s, '$.p') LIKE '{text[1:-1]}%'",
        "to_date(get_json_object(s, '$.p'), 'yyyy-MM-dd') > DATE'2000-01-01'", "to_timestamp(get_json_object(s, '$.p'), \"yyyy-MM-dd'T'HH:mm:ss'Z'\") IS NULL",
    ]  # fmt: skip
    options = {"timezone": data.draw(st.sampled_from(["UTC", "America/Sao_Paulo"])), "ansi": data.draw(st.booleans())}
    for where in filters:
        assert _answer(made, where, options) == _answer(made, where, {**options, "tamis.stats.filter": "off"}), where


def _moments(values: Sequence[Any]) -> list[datetime]:
    """Return the times of the values as they are written."""
    found = []
    for value in values:
        with contextlib.suppress(ValueError, TypeError):
            found.append(datetime.fromisoformat(value).replace(tzinfo=None))
    return found


def _rows(texts: Sequence[str]) -> pa.Table:
    return pa.Table.from_batches([batch(texts)])


def _like(text: str) -> st.SearchStrategy[str]:
    """Return texts of the same form as ``text``, mostly."""
    zone = "Z" if text.endswith("Z") else text[-6:] if text[-6:-5] in {"+", "-"} and "T" in text else ""
    times = st.datetimes().map(lambda t: t.isoformat(sep="T" if "T" in text else " ") + zone)
    return times if ":" in text else st.dates().map(lambda day: day.isoformat())


def _answer(made: Any, where: str, options: dict[str, Any]) -> Any:
    try:
        return made.scan(where, options=options).to_arrow().num_rows
    except tamis.errors.TamisError as error:
        return type(error).__name__


@given(st.lists(TEXTS, min_size=1, max_size=6))
def test_a_form_is_that_of_every_text(texts: Sequence[str]) -> None:
    """A form is given only if each text has one of the same kind, and the bounds admit each."""
    whole = times_of_texts(pa.array(texts))
    each = [times_of_texts(pa.array([text])) for text in texts]
    if whole.form & NO_TIME:
        assert (
            len({one.form & (DATE_TEXT | LOCAL_TEXT | INSTANT_TEXT | NO_TIME) for one in each}) > 1
            or each[0].form & NO_TIME
        )
        return
    assert whole.form == np.bitwise_or.reduce([one.form for one in each])
    assert whole.lo is not None
    assert whole.hi is not None
    assert all(one.lo is not None and whole.lo <= one.lo <= whole.hi for one in each)


@pytest.mark.parametrize(
    "pattern",
    ["yyyy-MM-dd", "yyyy-MM-dd HH:mm:ss", "yyyy-MM-dd'T'HH:mm:ss", "yyyy-MM-dd'T'HH:mm:ss'Z'", "yyyy-MM-dd'T'HH:mm:ss.SSS'Z'", "yyyy-MM-dd HH:mm:ss.SSSSSS"],
)  # fmt: skip
def test_a_pattern_reads_every_text_of_its_form(pattern: str) -> None:
    example = pattern.replace("'", "").replace("yyyy", "2026").replace("MM", "01").replace("dd", "02").replace("HH", "03").replace("mm", "04").replace("SSSSSS", "123456").replace("SSS", "123").replace("ss", "05")  # fmt: skip
    assert times_of_texts(pa.array([example])).form == form_of_pattern(pattern)


@pytest.mark.parametrize(
    "pattern", ["yyyy-MM-dd HH:mm", "dd.MM.yyyy", "yyyy-MM-dd'T'HH:mm:ssXXX", "yyyy-M-d", "yyyy-MM-dd HH:mm:ss.S'Z"]
)
def test_other_patterns_have_no_form(pattern: str) -> None:
    assert form_of_pattern(pattern) is None


def test_typed_values_inside_of_variants_are_left_to_spark() -> None:
    """Spark has a text for a date in an object, so no row of one may be dropped here."""
    array_of_a_date = b"\x03\x01\x00\x05\x2c" + struct.pack("<i", 18262)
    column = pa.StructArray.from_arrays(
        [pa.array([one], pa.binary()) for one in (array_of_a_date, b"\x01\x00\x00")],
        fields=list(to_arrow_type(VARIANT)),
    )
    one = pa.record_batch([column, pa.array(["{}"]), pa.array([1])], schema=to_arrow_schema(SCHEMA))
    made = tamis.create("memory://typed-inside", to_arrow_schema(SCHEMA))
    made.append(pa.Table.from_batches([one]))
    with pytest.raises(tamis.errors.InvalidInput, match="FILTER_FAILED"):
        made.scan("try_variant_get(v, '$', 'string') LIKE '[%'").count()


@pytest.mark.parametrize("days", [200_000_000, -200_000_000])
def test_dates_beyond_microseconds_are_appended(days: int) -> None:
    column = pa.StructArray.from_arrays(
        [pa.array([one], pa.binary()) for one in (b"\x2c" + struct.pack("<i", days), b"\x01\x00\x00")],
        fields=list(to_arrow_type(VARIANT)),
    )
    one = pa.record_batch([column, pa.array(["{}"]), pa.array([1])], schema=to_arrow_schema(SCHEMA))
    made = tamis.create(f"memory://far-{days}", to_arrow_schema(SCHEMA))
    made.append(pa.Table.from_batches([one]))
    assert made.scan("v IS NOT NULL").count() == 1


def test_a_fraction_may_have_fewer_digits_than_its_pattern() -> None:
    """Spark reads them, and then a text does not sort like its time where something follows the fraction."""
    texts = ["2024-02-28 22:38:48.59Z", "2024-02-28 22:38:48.5Z"]
    made = tamis.create("memory://fractions", pa.schema([("s", pa.string())]))
    made.append(pa.table({"s": texts}))
    found = "try_to_timestamp(s, \"yyyy-MM-dd HH:mm:ss.SSS'Z'\")"
    for options in ({}, {"tamis.stats.filter": "off"}):
        at = {**options, "timezone": "UTC"}
        assert made.scan(f"{found} IS NOT NULL", options=at).count() == 2
        assert made.scan(f"{found} = TIMESTAMP'2024-02-28 22:38:48.5'", options=at).count() == 1
        assert made.scan(f"{found} > TIMESTAMP'2024-02-28 22:38:48.55'", options=at).count() == 1


SECONDS = [
    "1.000001", "-1.000001", "0.000001", "1.1", "4102444800.000001", "4102444800.999999", "253402300799.999999", "2553600000.123457", "8999999999999.123456", "-8999999999999.123457", "8999999999998.999999",
    "1.000001999999999999999999999999999999", "-1.000001999999999999999999999999999999", "0.99999999999999999999999999999999999999", "8999999999999.9999999999999999999999999",
]  # fmt: skip
"""Decimals of a VARIANT, in seconds; Spark cuts them to microseconds, and knows every digit."""


@pytest.mark.parametrize("seconds", SECONDS)
def test_a_decimal_is_cut_to_microseconds_from_all_its_digits(seconds: str) -> None:
    micros = int(Decimal(seconds).scaleb(6, Context(prec=80)))
    made = tamis.create(f"memory://seconds-{next(_NUMBERS)}", to_arrow_schema(SCHEMA))
    for column in ("v", "parse_json(s)"):
        made.append(pa.Table.from_batches([batch([f'{{"t": {seconds}}}'] * 2)]))
        found = f"variant_get({column}, '$.t', 'timestamp')"
        for off in ({}, {"tamis.stats.filter": "off"}):
            at = {"timezone": "UTC", **off}
            rows = made.scan().count()
            assert made.scan(f"{found} = timestamp_micros({micros}L)", options=at).count() == rows
            assert made.scan(f"{found} <> timestamp_micros({micros}L)", options=at).count() == 0
        if abs(micros) < 2**50:
            for far in (f"> timestamp_micros({micros + 1}L)", f"< timestamp_micros({micros - 2}L)"):
                assert made.explain(f"{found} {far}", options={"timezone": "UTC"}).parts["kept"] == 0
