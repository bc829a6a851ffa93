"""Texts of doubles that releases of Java print differently are left to Spark, where Spark is asked after us; and nothing is concluded from them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from tamis.core import expr
from tamis.core.expr.java_doubles import has_stable_text, spark_decides
from tamis.core.expr.parse_filter import parse_value
from tamis.core.pruning import decide
from tamis.core.types import DOUBLE, Field, Schema
from tests.expr.documents import SCHEMA as DOCUMENTS
from tests.pruning.evidence_of import RowsEvidence
from tests.stats.document_paths import batch

TEXTS = [
    '{"a": 2E23}',
    '{"a": 0.5}',
    '{"a": 7.9248121131225648E16}',
    '{"a": {"b": 1e-30}}',
    '{"a": 3}',
    '{"a": "2E23"}',
]
LEFT = [True, False, True, True, False, False]
DOUBLES = Schema((Field("x", DOUBLE, True, 1),))


@pytest.mark.parametrize("text", ["get_json_object(s, '$.a') = '2.0E23'", "from_json(s, 'a STRING').a = '2.0E23'", "v:a::string = '2.0E23'", "try_variant_get(v, '$.a', 'string') = '2.0E23'"])  # fmt: skip
def test_rows_are_left_to_spark(text: str) -> None:
    one = batch(TEXTS)
    columns = {f.id: one.column(i) for i, f in enumerate(DOCUMENTS.fields)}
    keep, failed, _ = expr.filter_mask(expr.conjuncts_of(expr.parse_predicate(text, DOCUMENTS)), columns, len(TEXTS))
    assert (keep.tolist(), bool(failed.any())) == ([True, *[False] * 5], False), (
        "nobody is asked after us: the shortest text"
    )
    with spark_decides():
        keep, failed, _ = expr.filter_mask(
            expr.conjuncts_of(expr.parse_predicate(text, DOCUMENTS)), columns, len(TEXTS)
        )
    assert (bool(keep.any()), failed.tolist()) == (False, LEFT)


def test_half_a_character_is_left_to_spark() -> None:
    """Spark 4.3 rejects the document, and Spark 4.1 reads a question mark; both answers are some Spark's."""
    texts = ['{"a": "\\ud800", "b": 5}', '{"\\udc00": 1, "b": 5}', '{"a": "\\ud83d\\ude00", "b": 5}']
    columns = {2: pa.array(texts)}
    tree = expr.parse_predicate("try_variant_get(try_parse_json(s), '$.b', 'int') = 5", DOCUMENTS)
    keep, failed, _ = expr.filter_mask([tree], columns, len(texts))
    assert (keep.tolist(), bool(failed.any())) == ([False, False, True], False)
    with spark_decides():
        keep, failed, _ = expr.filter_mask([tree], columns, len(texts))
    assert (keep.tolist(), failed.tolist()) == ([False, False, True], [True, True, False])


@pytest.mark.parametrize("how", ["cast", "try_cast"])
def test_decimals_are_read_from_that_text(how: str) -> None:
    values = [2e23, 0.5, 79248121131225650.0, 5e-324, 3.0, 123456789012345.6, 0.0, None]
    tree = expr.parse_predicate(f"{how}(x AS DECIMAL(38, 8)) > 0", DOUBLES)
    with spark_decides():
        _, failed, _ = expr.filter_mask([tree], {1: pa.array(values)}, len(values))
    assert failed.tolist() == [True, False, True, False, False, False, False, False]


@pytest.mark.parametrize(("value", "wanted", "expected"), [(2e23, "199999999999999980000000", "some"), (2e23, "7", "some"), (1024.5, "7", "none"), (1e-12, "7", "none")])  # fmt: skip
def test_nothing_is_concluded_from_them(value: float, wanted: str, expected: str) -> None:
    """Java 17 reads 2E23 as 199999999999999980000000."""
    piece: Any = pa.table({"x": [value]})
    found = decide(
        [expr.parse_predicate(f"cast(x AS DECIMAL(38, 8)) = {wanted}", DOUBLES)],
        RowsEvidence(DOUBLES, [piece]),
        strict=True,
    )
    assert found.none[0] == (expected == "none")


def test_where_all_releases_agree() -> None:
    assert has_stable_text([0.0, 1e-9, 1.5, 9e14, np.inf, np.nan]).all()
    assert not has_stable_text([1e15, 5e-324, -2e23]).any()


def parsed(text: str) -> tuple[str, bool]:
    """``try_parse_json(text)`` as text, in its first 40 characters, and whether the row is left to Spark."""
    columns = {DOCUMENTS.find("s")[0].id: pa.array([text])}
    out = expr.evaluate(parse_value("cast(try_parse_json(s) AS STRING)", DOCUMENTS), columns, 1)
    return str(out.values[0])[:40], out.failed is not None and bool(out.failed[0])


def test_documents_that_python_cannot_nest_are_left_to_spark() -> None:
    assert parsed("[" * 600 + "]" * 600)[1]
    assert parsed("[" * 100 + "]" * 100) == ("[" * 40, False)


def test_limits_of_the_parser_count_depth_and_numbers_only() -> None:
    """Wide documents and digits in strings are no deep nesting and no long number."""
    assert parsed("[" + "{}," * 1200 + "{}]") == (("[" + "{}," * 20)[:40], False)
    assert parsed('{"a":"' + "1" * 1200 + '"}') == ('{"a":"' + "1" * 34, False)
    assert parsed("[1." + "0" * 999 + "]") == ("[1.0]", False)
    assert parsed("[" + "1" * 400 + ",-" + "1" * 400 + "]") == ('["Infinity","-Infinity"]', False)
    assert parsed("[1." + "0" * 1000 + "]") == ("None", False)
