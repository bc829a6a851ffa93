"""Filters on documents find in a table what they find without its statistics; each case lost rows, or took others, once."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest

import tamis
from tamis.core.expr.json_codec.jackson_reader import get_json_text, has_long_name

OFF = {"tamis.stats.filter": "off"}
KEYS = 500
"""Keys of an object from which it is folded."""


def a_table(path: Path, *loads: list[str], keep: str | None = None) -> tamis.Table:
    properties = {} if keep is None else {"tamis.stats.keep": keep}
    table = tamis.create(path / "t", pa.schema([("body", pa.string())]), properties=properties)
    for documents in loads:
        table.append(pa.table({"body": documents}))
    return table


def check(table: tamis.Table, text: str, rows: int) -> None:
    """Whether the filter finds so many rows, with statistics and without, and a count of them, too."""
    found = table.scan(text)
    assert found.to_arrow().num_rows == rows, text
    assert found.count() == rows, text
    assert table.scan(text, options=OFF).to_arrow().num_rows == rows, text


def parts_kept(table: tamis.Table, text: str) -> int:
    return int(table.scan(text).explain().parts.kept)


WITHIN = [
    ("get_json_object(get_json_object(body, '$.a'), '$.b') = '7'", 1),
    ("get_json_object(get_json_object(body, '$.a'), '$.b') IS NULL", 0),
    ("try_variant_get(try_parse_json(get_json_object(body, '$.a')), '$.b', 'int') = 7", 1),
    ("try_variant_get(try_parse_json(get_json_object(body, '$.a')), '$.b', 'int') IS NULL", 0),
    ("from_json(get_json_object(body, '$.a'), 'b INT').b = 7", 1),
    ("get_json_object(from_json(body, 'a STRING').a, '$.b') = '7'", 1),
    ("get_json_object(variant_get(try_parse_json(body), '$.a', 'string'), '$.b') = '7'", 1),
    ("try_cast(get_json_object(get_json_object(body, '$.a'), '$.b') AS INT) = 7", 1),
]


@pytest.mark.parametrize(("text", "rows"), WITHIN, ids=[text for text, _ in WITHIN])
def test_a_document_in_a_text_is_no_path_of_the_document_around_it(tmp_path: Path, text: str, rows: int) -> None:
    documents = [json.dumps({"a": json.dumps({"b": n}), "c": n}) for n in range(50)]
    table = a_table(tmp_path, documents)
    check(table, text, rows)
    table.delete(text)
    assert table.scan().count() == 50 - rows


@pytest.mark.parametrize(("text", "rows"), WITHIN, ids=[text for text, _ in WITHIN])
def test_an_object_that_is_made_a_text_still_skips(tmp_path: Path, text: str, rows: int) -> None:
    documents = [json.dumps({"a": {"b": n}, "c": n}) for n in range(50)]
    table = a_table(tmp_path, documents, [document.replace('"b": ', '"b": 9') for document in documents])
    check(table, text, rows)
    assert parts_kept(table, text) == rows


LISTS = [json.dumps({"p": [1, 2], "k0": 1, **{f"k{i}": 1 for i in range(KEYS - 1)}})] * 1_100
LONGER = ['{"p":[1,2,3,99]}'] * 1_100


@pytest.mark.parametrize("keep", ["body.p[3]", None])
def test_a_position_that_is_asked_for_is_collected_though_no_list_was_so_long(tmp_path: Path, keep: str | None) -> None:
    text = "get_json_object(body, '$.p[3]') = '99'"
    table = a_table(tmp_path, keep=keep)
    check(table, text, 0)  # a filter's paths are collected by later writes
    table.append(pa.table({"body": LISTS + LONGER}))
    check(table, text, 1_100)
    assert parts_kept(table, "get_json_object(body, '$.p[3]') = '98'") == 0


@pytest.mark.parametrize("keep", ["body.id", None])
def test_a_key_twice_in_a_folded_object_is_unknown(tmp_path: Path, keep: str | None) -> None:
    documents = [f'{{"id":{n},"k{n}":1}}' for n in range(2 * KEYS)]
    table = a_table(tmp_path, [*documents, '{"id":9999,"id":9998}'], keep=keep)
    check(table, "get_json_object(body, '$.id') = '9999'", 1)
    check(table, "get_json_object(body, '$.id') = '77'", 1)
    other = a_table(tmp_path / "other", documents, keep=keep)
    assert parts_kept(other, "get_json_object(body, '$.id') = '9999'") == 0


DEEP = '{"id":1,"d":' + '{"x":' * 13 + '{"x":1,"x":2}' + "}" * 14
UNLISTED = [*(f'{{"id":1,"k{n}":1}}' for n in range(2 * KEYS)), '{"id":1,"k":{"x":1,"x":2}}']
LONG_KEY = f'{{"id":1,"{"k" * 1_001}":{{"x":1,"x":2}}}}'


@pytest.mark.parametrize("documents", [[DEEP], [LONG_KEY], UNLISTED], ids=["deep", "long key", "unlisted"])
def test_a_key_twice_in_what_is_not_walked_makes_the_document_invalid(tmp_path: Path, documents: list[str]) -> None:
    good = ['{"id":1,"d":1}'] * 5
    table = a_table(tmp_path, [*documents, *good])
    valid = len(documents) - 1 + len(good)
    check(table, "try_variant_get(try_parse_json(body), '$.id', 'int') = 1", valid)
    check(table, "try_variant_get(try_parse_json(body), '$.id', 'int') IS NULL", 1)
    assert parts_kept(a_table(tmp_path / "good", good), "try_parse_json(body) IS NULL") == 0


@pytest.mark.parametrize("document", ['{"\\ud800": 1}', '{"a": {"\\udfff": [1]}}', '[{"\\ud83d": 1}]'])
def test_a_key_with_half_a_character_is_stored(tmp_path: Path, document: str) -> None:
    table = a_table(tmp_path, ['{"a": 1}', document])
    assert table.scan().to_arrow()["body"].to_pylist() == ['{"a": 1}', document]
    check(table, "get_json_object(body, '$.a') = '1'", 1)


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("try_cast(get_json_object(body, '$') AS BIGINT) = 7", 1),
        ("try_cast(get_json_object(body, '$') AS BIGINT) IS NULL", 50),
        ("try_variant_get(try_parse_json(body), '$', 'int') = 7", 1),
        ("try_parse_json(body) IS NULL", 0),
        ("get_json_object(body, '$') IS NULL", 0),
        ("try_cast(get_json_object(body, '$') AS DATE) = DATE'0007-01-01'", 0),
    ],
)
def test_a_number_before_other_text_is_the_root(tmp_path: Path, text: str, rows: int) -> None:
    table = a_table(tmp_path, [*(f'{{"a":{n}}}' for n in range(50)), "7 abc"])
    check(table, text, rows)


def test_long_texts_with_quotes_are_passed_over_once(tmp_path: Path) -> None:
    """Each escaped quote began a search to the end of the text: 20 seconds for a document of 150 KB."""
    document = json.dumps({"id": 1, "page": '"' * 500_000, ":b": [1] * 30_000, ":c": 1})
    assert not has_long_name(document)
    assert has_long_name(document.replace("page", "p" * 50_001))
    assert get_json_text(document, ("id",)) == "1"
    check(a_table(tmp_path, [document] * 3), "get_json_object(body, '$.id') = '1'", 3)


def test_documents_that_jackson_refuses(tmp_path: Path) -> None:
    """Digits of other scripts are none, and a key has at most 50,000 UTF-16 units."""
    longest = {units: json.dumps({"a": 1, "k" * units: 2}) for units in (50_000, 50_001)}
    emoji = {
        units: json.dumps({"a": 1, "\U0001f600" * (units // 2): 2}, ensure_ascii=False) for units in (50_000, 50_002)
    }
    right, wrong = [longest[50_000], emoji[50_000]], ['{"a":1\u0661}', longest[50_001], emoji[50_002]]
    assert [get_json_text(text, ("a",)) for text in right] == ["1", "1"]
    assert [get_json_text(text, ("a",)) for text in wrong] == [None] * 3
    assert get_json_text(longest[50_001].replace('"', "'"), ("a",)) is None
    for document in wrong:
        table = a_table(tmp_path / str(len(document)), [document, '{"a":1}'])
        check(table, "get_json_object(body, '$.a') IS NULL", 1)
        check(table, "get_json_object(body, '$.a') = '1'", 1)


NULL_LISTED = [
    ("{} NOT IN ('7', NULL)", 0, 0),
    ("NOT coalesce({} IN ('7', NULL), false)", 11, 1),
    ("coalesce({} IN ('7', NULL), true)", 11, 1),
    ("({} IN ('7', NULL)) IS NULL", 11, 1),
    ("({} NOT IN (NULL, 'x')) IS NULL", 11, 1),
    ("{} IN ('12', NULL)", 1, 1),
    ("{} IN ('7', NULL)", 0, 0),
    ("({} IN ('7', '8')) IS NULL", 0, 0),
    ("coalesce({} IN ('7', '8'), true)", 0, 0),
]


@pytest.mark.parametrize(("form", "rows", "kept"), NULL_LISTED, ids=[form for form, _, _ in NULL_LISTED])
@pytest.mark.parametrize(
    "number", ["get_json_object(body, '$.n')", "variant_get(try_parse_json(body), '$.n', 'string')"]
)
@pytest.mark.parametrize("point", ["", ".5"])
def test_a_null_in_a_list_of_texts_is_no_miss_of_a_number(
    tmp_path: Path, number: str, form: str, rows: int, kept: int, point: str
) -> None:
    if point:
        form = form.replace("'12'", "'12.5'")
    table = a_table(tmp_path, [f'{{"n":{n}{point}}}' for n in range(10, 21)])
    check(table, form.format(number), rows)
    if not point:  # of other numbers it is not known which texts they have
        assert parts_kept(table, form.format(number)) == kept
    table.delete(form.format(number))
    assert table.scan().count() == 11 - rows
