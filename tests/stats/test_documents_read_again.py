"""A document in the text of another document's value: statistics of the outer one say what the inner one may hold."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest

import tamis
from tamis.core.types.arrow import to_arrow_schema
from tests.expr.documents import SCHEMA
from tests.stats.document_paths import batch

OFF = {"tamis.stats.filter": "off"}


def a_table(path: Path, *loads: list[str]) -> tamis.Table:
    """A table of documents, as texts ``s`` and as values ``v``; each load is a part."""
    table = tamis.create(path / "t", to_arrow_schema(SCHEMA))
    for documents in loads:
        table.append(pa.Table.from_batches([batch(documents)]))
    return table


def check(table: tamis.Table, text: str, rows: int) -> None:
    """Whether the filter finds so many rows, with statistics and without, and whether DELETE takes just these."""
    assert table.scan(text, options=OFF).to_arrow().num_rows == rows, text
    assert table.scan(text).to_arrow().num_rows == rows, text
    before = table.scan().count()
    table.delete(text)
    assert table.scan().count() == before - rows, text


def kept(table: tamis.Table, text: str) -> int:
    return int(table.scan(text).explain().parts.kept)


NULL_TEXTS = [
    "get_json_object(s, '$.a')",
    "variant_get(v, '$.a', 'string')",
    "variant_get(parse_json(s), '$.a', 'string')",
    "from_json(s, 'a STRING').a",
    "get_json_object(get_json_object(s, '$.a'), '$')",
]
OF_NULL = [
    ("try_parse_json({}) IS NULL", 6),
    ("try_parse_json({}) IS NOT NULL", 0),
    ("NOT is_variant_null(parse_json({}))", 6),
    ("is_variant_null(parse_json({}))", 0),
    ("get_json_object({}, '$') IS NULL", 6),
]


@pytest.mark.parametrize(("form", "rows"), OF_NULL)
@pytest.mark.parametrize("source", NULL_TEXTS)
def test_the_text_of_a_null_is_null_and_no_document(tmp_path: Path, source: str, form: str, rows: int) -> None:
    check(a_table(tmp_path, ['{"a": null}'] * 6), form.format(source), rows)


@pytest.mark.parametrize(
    ("source", "document"),
    [("get_json_object(s, '$.a[0]')", '{"a": [null]}'), ("get_json_object(s, '$')", "null"), ("s", "null")],
)
def test_the_text_null_is_a_document(tmp_path: Path, source: str, document: str) -> None:
    for number, (form, rows) in enumerate(OF_NULL):
        check(a_table(tmp_path / str(number), [document] * 6), form.format(source), 6 - rows)


@pytest.mark.parametrize(
    ("source", "document"),
    [("variant_get(v, '$.a[0]', 'string')", '{"a": [null]}'), ("cast(v AS STRING)", "null")],
)
def test_a_variant_shows_no_null(tmp_path: Path, source: str, document: str) -> None:
    for number, (form, rows) in enumerate(OF_NULL):
        check(a_table(tmp_path / str(number), [document] * 6), form.format(source), rows)


@pytest.mark.parametrize("source", NULL_TEXTS)
def test_what_is_read_again_still_skips(tmp_path: Path, source: str) -> None:
    nulls, objects = ['{"a": null}'] * 6, [json.dumps({"a": {"b": n}}) for n in range(6)]
    table = a_table(tmp_path, nulls, objects)
    for text, parts in (
        (f"try_parse_json({source}) IS NULL", 1),
        (f"try_parse_json({source}) IS NOT NULL", 1),
        (f"is_variant_null(parse_json({source}))", 0),
        (f"try_variant_get(try_parse_json({source}), '$.b', 'int') = 5", 1),
        (f"try_variant_get(try_parse_json({source}), '$.b', 'int') = 6", 0),
        (f"try_variant_get(try_parse_json({source}), '$.b', 'int') IS NULL", 1),
    ):
        assert kept(table, text) == parts, text


WHOLE_TEXTS = [
    "cast(v AS STRING)",
    "variant_get(parse_json(s), '$', 'string')",
    "get_json_object(cast(v AS STRING), '$')",
]
WHOLE = [
    "from_json({}, 'n INT').n = 5",
    "from_json({}, 'n BIGINT').n IS NOT NULL",
    "try_cast(get_json_object({}, '$.n') AS INT) = 5",
    "get_json_object({}, '$.n') = '5'",
    "try_variant_get(try_parse_json({}), '$.n', 'int') = 5",
    "from_json({}, 'n TINYINT').n = 5",
]


@pytest.mark.parametrize("form", WHOLE)
@pytest.mark.parametrize("source", WHOLE_TEXTS)
def test_a_decimal_of_a_variant_may_be_a_whole_number_as_a_text(tmp_path: Path, source: str, form: str) -> None:
    text = form.format(source)
    check(a_table(tmp_path / "decimals", ['{"n": 5.0}', '{"n": 5.00}']), text, 2)
    check(a_table(tmp_path / "both", ['{"n": 5.0}', '{"n": 7.5}']), text, 1)
    check(a_table(tmp_path / "beside", ['{"n": 5.0}', '{"n": "x"}']), text, 1)
    check(a_table(tmp_path / "double", ['{"n": 7.5e0}']), text, 0)


FARTHEST = ["9223372036854775807", "9223372036854775806.0", "-9223372036854775808.0", "9007199254740993.0", "-7.0"]


@pytest.mark.parametrize("number", FARTHEST)
def test_whole_numbers_at_the_ends_of_64_bits(tmp_path: Path, number: str) -> None:
    found = "from_json(cast(v AS STRING), 'n BIGINT').n"
    check(a_table(tmp_path, [f'{{"n": {number}}}'] * 2), f"{found} = {number.removesuffix('.0')}L", 2)


@pytest.mark.parametrize(
    ("form", "parts"),
    [
        ("from_json({}, 'n INT').n = 7", 1),
        ("from_json({}, 'n INT').n = 6", 0),
        ("from_json({}, 'n BIGINT').n > 12", 0),
        ("from_json({}, 'n DOUBLE').n > 12", 0),
        ("try_cast(get_json_object({}, '$.n') AS INT) > 12", 0),
        ("try_variant_get(try_parse_json({}), '$.n', 'int') > 12", 0),
        ("get_json_object({}, '$.n') = '12'", 0),
    ],
)
@pytest.mark.parametrize("source", WHOLE_TEXTS)
def test_numbers_of_a_variant_as_a_text_still_skip(tmp_path: Path, source: str, form: str, parts: int) -> None:
    table = a_table(tmp_path, ['{"n": 5}'] * 3, ['{"n": 7}', '{"n": 9}'])
    assert kept(table, form.format(source)) == parts
    decimals = a_table(tmp_path / "decimals", ['{"n": 5.0}', '{"n": 5.5}'], ['{"n": 6.5}', '{"n": 10.0}'])
    if form.endswith("> 12"):
        assert kept(decimals, form.format(source)) == 0


@pytest.mark.parametrize("test", ["= 7", "IS NULL"])
def test_an_error_of_the_inner_parse_json_is_raised(tmp_path: Path, test: str) -> None:
    """Of a key that is there twice, for which only parse_json has no value."""
    good, twice = '{"a": {"b": 1}}', '{"c": 1, "c": 2, "a": {"b": 1}}'
    form = f"try_variant_get(try_parse_json(variant_get({{}}(s), '$.a', 'string')), '$.b', 'int') {test}"
    table, rows = a_table(tmp_path, [good, good], [good, twice]), 0 if test == "= 7" else 1
    for options in ({}, OFF):
        with pytest.raises(tamis.errors.InvalidInput, match="MALFORMED_RECORD"):
            table.scan(form.format("parse_json"), options=options).count()
    assert kept(table, form.format("parse_json")) == 1
    assert kept(table, form.format("try_parse_json")) == rows
    check(table, form.format("try_parse_json"), rows)


def test_keys_are_sorted_as_java_compares_them(tmp_path: Path) -> None:
    """Spark looks for a key of a large object by halves. 😀 is a pair of surrogates, before U+FF5E."""
    texts = {
        '{"～":1,"😀":2}': '{"😀":2,"～":1}',
        '{"～":1,"~":2,"":3}': '{"":3,"~":2,"～":1}',
        '{"😁":1,"😀":2,"😀a":3}': '{"😀":2,"😀a":3,"😁":1}',
    }
    table = a_table(tmp_path, list(texts))
    for text in texts.values():
        for found in ("cast(parse_json(s) AS STRING)", "cast(v AS STRING)"):
            assert table.scan(f"{found} = '{text}'").count() == 1
