"""Python's functions read the documents of small blocks, and find the same paths as for large blocks."""

from __future__ import annotations

import json
from functools import partial
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamis.core.stats.collection_limits import CollectionLimits
from tamis.core.stats.json_paths import document_samples, path_collector, text_paths
from tamis.core.stats.json_paths.path_collector import PathCollector
from tamis.core.stats.json_paths.path_rows import HI_EXACT, LO_EXACT, REAL, Paths, table_of
from tamis.core.types import STRING
from tests.expr.documents import DOCUMENTS

SCALARS = st.sampled_from([None, True, 7, -(2**70), 1.5, 0.1234567890123456789, 12345678901234567.5, "x", "a:b", "é", "2026-01-02"])  # fmt: skip
OBJECTS = st.dictionaries(st.sampled_from(["a", "b", "a:b", "é"]), st.recursive(SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["x", "y:"]), inner, max_size=2)), max_size=3)  # fmt: skip
ODDS = [
    *(document for document in DOCUMENTS if document is not None),
    '{"a": 1, "a": 2}',
    '{"a": 1, "a": "b:c"}',
    '{"a": 1, "\\u0061": 2, "b": "\\u003a"}',
    '{"a": 1, "a": 2, "b": "\\u003A"}',
    "null",
    "5",
    "[1]",
    " \t\r\n{}",
    "\f{}",
    "{}}",
    '{"a": 1}, {"a": 2}',
    '{"a": "' + "x" * 1_000 + '"}',
    '{"a": "' + "é" * 400 + '"}',
    '{"a": ' + "1" * 1_001 + "}",
    '{"a": 0.' + "0" * 1_001 + "1}",
    '{"a": ' + "[" * 70 + "]" * 70 + "}",
]
TEXTS = st.lists(
    st.none() | OBJECTS.map(json.dumps) | OBJECTS.map(json.dumps) | st.sampled_from(ODDS), min_size=1, max_size=12
)


def collected_paths(batches: list[pa.Array], limit: int) -> tuple[bool | None, Paths]:
    """Return what a collector finds that takes up to ``limit`` documents for few."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(text_paths, "FEW", limit)
        patch.setattr(path_collector, "FEW", limit)
        collector = PathCollector(STRING)
        for batch in batches:
            collector.update(batch)
        return collector._wanted, collector.finish()


@given(st.lists(TEXTS, min_size=1, max_size=3))
def test_few_documents_are_told_as_many_are(batches: list[list[str | None]]) -> None:
    arrays = [pa.array(texts, pa.string()) for texts in batches]
    assert collected_paths(arrays, 256) == collected_paths(arrays, 0)


@pytest.mark.parametrize("plains", [0, 3, 9, 60])
@pytest.mark.push_cases(2)
def test_odd_documents_among_objects(plains: int) -> None:
    plain = ['{"a": 1, "b:": "x"}'] * plains
    for odd in ODDS:
        for texts in ([odd, *plain], [*plain, odd], [*plain, odd, odd, odd]):
            array = pa.array(texts)
            assert collected_paths([array], 256) == collected_paths([array], 0), texts


@pytest.mark.parametrize("limit", [0, 256])
def test_nulls_and_scalars_beside_objects_are_no_objects(limit: int) -> None:
    for odd in ("null", "5", "[1]", "abc"):
        for plains, wanted in ((3, False), (9, True)):
            for texts in ([odd, *['{"a": 1}'] * plains], [*['{"a": 1}'] * plains, odd]):
                assert collected_paths([pa.array(texts)], limit)[0] is wanted, (odd, plains)


def test_long_texts_are_cut_outward() -> None:
    collector = PathCollector(STRING)
    collector.update(pa.array(['{"a": "' + "z" * 80 + '"}']))
    assert collector.finish()["$.a"].string == ("z" * 64, "z" * 63 + "{")


def test_documents_of_few_rows_are_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    parsed: list[int] = []
    decode = text_paths.parsed_documents

    def watched(texts: list[str], *decoder: json.JSONDecoder) -> list[Any]:
        parsed.append(len(texts))
        return decode(texts, *decoder)

    monkeypatch.setattr(text_paths, "parsed_documents", watched)
    collector = PathCollector(STRING)
    collector.update(pa.array([f'{{"a": {i}}}' for i in range(100)]))
    assert parsed == [100]
    assert collector.finish()["$.a"].long == (0, 99)


def test_no_text_is_judged_once_all_columns_are_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    limits = CollectionLimits(frozenset([1, 2, 3]), frozenset([3]), 1, 0)
    collectors = []
    for identifier in (1, 2, 3):
        collector = PathCollector(STRING)
        collector.limit_admission(
            partial(limits.may_admit_documents, identifier), partial(limits.admits_documents, identifier)
        )
        collectors.append(collector)
    texts = pa.array(['{"a": 1}'] * 3)
    collectors[0].update(texts)
    with monkeypatch.context() as patch:
        patch.setattr(document_samples, "may_look_like_objects", lambda _: pytest.fail("judged"))
        collectors[1].update(texts)
    collectors[2].update(texts)
    assert [len(collector.finish()) for collector in collectors] == [2, 0, 2]


def test_rows_of_columns_with_unequal_numbers_of_paths() -> None:
    found: dict[int, Paths] = {}
    for identifier, texts in {4: ['{"a": 1}'], 5: [], 6: ['{"a": "x", "b": [1.5], "c": {"d": null}}']}.items():
        collector = PathCollector(STRING)
        collector.update(pa.array(texts, pa.string()))
        found[identifier] = collector.finish()
    rows = table_of(found)
    assert rows is not None
    assert {name.partition("|")[0] for name in rows.column_names} == {"4", "6"}
    assert rows["4|path"].to_pylist() == ["$", "$.a", *[None] * (len(rows) - 2)]
    assert rows["6|path"].to_pylist() == sorted(found[6])
    for identifier in (4, 6):
        alone = table_of({identifier: found[identifier]})
        assert alone is not None
        assert rows.select(alone.column_names).slice(0, len(alone)).to_pydict() == alone.to_pydict()


@pytest.mark.parametrize("limit", [0, 256], ids=["many", "few"])
def test_bounds_are_exact_unless_some_number_of_the_documents_has_many_digits(limit: int) -> None:
    """The shortest text of the double nearest to such a number may be another number."""
    for text, exact in {'{"a": 1.5}': LO_EXACT | HI_EXACT, '{"a": 12345678901234567.5}': 0}.items():
        _, found = collected_paths([pa.array([text] * 3)], limit)
        assert found["$.a"].kinds == REAL | exact, text
