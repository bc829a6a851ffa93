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
