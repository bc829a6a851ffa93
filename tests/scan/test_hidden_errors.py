"""Where nothing is known of a document, its casts may fail: no later conjunct skips the part, in any mode."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import tamis

_DOCUMENTS = ['{"a": []}', '{"a": 1, "a": 2}', *['{"b": 1}'] * 20]
"""A key twice: nothing is said of any path, ``parse_json`` fails, ``try_parse_json`` is NULL; and a list, which is no number."""


@pytest.mark.parametrize("ansi", [True, False])
@pytest.mark.parametrize(
    "fails",
    [
        "variant_get(try_parse_json(js), '$.a', 'int') < 0",
        "variant_get(try_parse_json(js), '$.a', 'boolean')",
        "variant_get(parse_json(js), '$.b', 'int') < 0",
        "try_variant_get(parse_json(js), '$.b', 'boolean') IS NULL",
        "parse_json(js) IS NULL",
    ],
)
def test_a_cast_within_an_unknown_document_may_fail(tmp_path: Path, fails: str, ansi: bool) -> None:
    table = tamis.create(tmp_path / "t", pa.schema([("js", pa.string()), ("s", pa.string())]))
    table.append(pa.table({"js": _DOCUMENTS, "s": ["a"] * len(_DOCUMENTS)}))
    for text in (fails, f"{fails} AND s = 'k'"):
        with pytest.raises(tamis.InvalidInput, match="FILTER_FAILED"):
            table.scan(text, options={"ansi": ansi}).to_arrow()


@pytest.mark.parametrize("ansi", [True, False])
@pytest.mark.parametrize(
    "fails",
    [
        "CAST(get_json_object(variant_get(parse_json(js), '$.a', 'string'), '$.n') AS INT) = 7",
        "try_cast(get_json_object(variant_get(parse_json(js), '$.a', 'string'), '$.n') AS INT) = 7",
        "try_cast(get_json_object(CAST(parse_json(js) AS STRING), '$.a.n') AS DOUBLE) = 7",
        "try_cast(get_json_object(variant_get(parse_json(js), '$.a', 'string'), '$.t') AS TIMESTAMP) > '2030-01-01'",
        "try_cast(get_json_object(variant_get(parse_json(js), '$.a', 'string'), '$.t') AS DATE) > '2030-01-01'",
        "to_timestamp(get_json_object(variant_get(parse_json(js), '$.a', 'string'), '$.t'), 'yyyy-MM-dd HH:mm:ss') > '2030-01-01'",
    ],
)
def test_an_error_below_the_cast_of_a_text_is_raised(tmp_path: Path, fails: str, ansi: bool) -> None:
    """``parse_json`` fails on a key that is twice; what is cast lies at another path, of which all is known."""
    document = '{"a": {"n": 5, "t": "2024-01-01 00:00:00"}, "x": 1, "x": 2}'
    table = tamis.create(tmp_path / "t", pa.schema([("js", pa.string()), ("s", pa.string())]))
    table.append(pa.table({"js": [document] * 20, "s": ["a"] * 20}))
    for text in (fails, f"{fails} AND s = 'k'"):
        with pytest.raises(tamis.InvalidInput, match="FILTER_FAILED"):
            table.scan(text, options={"ansi": ansi}).to_arrow()
    healthy = tamis.create(tmp_path / "h", table.schema)
    healthy.append(pa.table({"js": [document.replace(', "x": 2', "")] * 20, "s": ["a"] * 20}))
    scan = healthy.scan(fails, options={"ansi": ansi})
    assert (scan.to_arrow().num_rows, scan.report.parts.kept) == (0, 0), "it still skips"
