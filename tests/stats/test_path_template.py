"""Documents that are read together by their bytes have the statistics of paths that parsing each of them gives."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tamis.core.expr.json_codec.iso_times import LOCAL_TEXT, NO_TIMES, Times
from tamis.core.stats.json_paths import similar_documents, text_paths, variant_paths
from tamis.core.stats.json_paths.path_rows import (
    HI_EXACT,
    INCOMPLETE,
    LO_EXACT,
    LONG,
    REAL,
    STRANGE,
    STRING,
    Paths,
    PathStatistics,
    ancestors_of,
    join_documents,
)
from tamis.core.stats.json_paths.similar_documents import Documents
from tests.expr.documents import DOCUMENTS
from tests.spark.oracle_cases import SOUND, repeated
from tests.stats.document_paths import variants

NUMBERS = ["0", "-0", "7", "-7", "10", "12345678", "123456789", "999999999999999999", "-999999999999999999", "9223372036854775807", "9223372036854775808", "0.5", "-0.25", "99.99", "1.50", "0.1", "12345678.1234567", "123456789012345.5", "1e5", "1.5E-3", "true", "false", "null"]  # fmt: skip
NO_NUMBERS = ["01", "-01", "00", "1.", ".5", "-", "", "+1", "1 2", "0x10", "tru", "nul", "truee", "NaN", "Infinity", "1.2.3", "--1", "1-1", "00.5", "1/2", "1:2", "{}", "[]", "1,2", "1}", "é", "\x7f"]  # fmt: skip
STRINGS = [
    "",
    "a",
    "é",
    "x" * 300,
    "a:b",
    "{",
    "}",
    ",",
    "null",
    "\\n",
    "\\u0041",
    "\\ud800",
    "\\",
    "\x01",
    "\t",
    "\x7f",
    "😀",
    'a","k":"b',
    'a":1,"z":"b',
]


@pytest.fixture(autouse=True)
def _templates_for_few_documents(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(similar_documents, "ENOUGH", similar_documents.FEW)


SHAPES = ['{{"a":{n},"s":"{t}"}}', '{{"a": {n}, "s": "{t}", "u": {{"id": {m}}}}}', '{{"s":"{t}","u":{{"v":[{{"x":{n}}},{{"x":{m}}}]}},"e":[]}}', '{{"{t}":{n},"b":{m}}}', '{{"a":[{n},{m}],"s":"{t}"}}', '{{"s":"{t}","a":{n},"' + "long" * 30 + '":[{{"' + "key" * 30 + '":{m}}}]}}', '{{"a":{n},"a":"{t}"}}']  # fmt: skip


def without_kinds(paths: Paths, forget: int) -> dict[str, object]:
    return {path: (s.kinds & ~forget, s.present, s.nulls, s.long, s.real, s.string) for path, s in paths.items()}


def check(texts: list[str]) -> None:
    array = pa.array(texts, pa.string())
    forget = (
        LO_EXACT | HI_EXACT if text_paths._long_numbers(array) else 0
    )  # with one long number, parsing takes no bound of the array for exact
    for whole in (array, pa.concat_arrays([pa.array(["ab"]), array]).slice(1)):
        fast, slow = Documents().paths_of(whole), text_paths.paths_of(whole)
        found, expected = without_kinds(fast, forget), without_kinds(slow, forget)
        # Read apart, documents with a key twice do not say which other keys they lack.
        unknown = {path for path in expected.keys() - found.keys() if _is_incomplete(path, slow)}
        assert found == {path: row for path, row in expected.items() if path not in unknown}, texts


def _is_incomplete(path: str, paths: Paths) -> bool:
    """Whether a row above ``path`` does not list all keys."""
    return any(paths[above].kinds & INCOMPLETE for above in ancestors_of(path) if above in paths)


def filled(shape: str, n: str, m: str = "3", t: str = "q") -> str:
    return shape.format(n=n, m=m, t=t)


@pytest.mark.push_cases(3)
@pytest.mark.parametrize("shape", SHAPES)
def test_one_awkward_scalar_among_many(shape: str) -> None:
    plain = [
        filled(shape, str(i), str(-i), f"t{i}") if '{{"{t}' not in shape else filled(shape, str(i), str(-i))
        for i in range(40)
    ]
    for scalar in NUMBERS + NO_NUMBERS:
        check([*plain, filled(shape, scalar)])
    for text in STRINGS:
        check([*plain, filled(shape, "5", "6", text)])


MIXED = st.builds(
    filled,
    st.sampled_from(SHAPES[:6]),
    st.sampled_from(NUMBERS),
    st.sampled_from(NUMBERS),
    st.sampled_from(STRINGS[:10]),
)
ANY = (
    MIXED
    | st.sampled_from(DOCUMENTS).filter(lambda d: d is not None)
    | st.builds(filled, st.sampled_from(SHAPES), st.sampled_from(NO_NUMBERS))
)


def test_a_key_that_is_there_twice_hides_others_at_most() -> None:
    check(['{"a":0,"s":""}'] * 600 + ['{"a":1,"a":2}'])
    check(['{"a":1,"a":2}'] + ['{"a":0,"s":""}'] * 600)


@settings(max_examples=60)
@given(st.lists(MIXED, min_size=1, max_size=8), st.lists(ANY, max_size=2), st.integers(4, 12))
def test_random_documents(texts: list[str], more: list[str], times: int) -> None:
    check(texts * times)
    check(texts * times + more)


def watch_parsing(parsed: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Collects the texts that are parsed one by one from here on."""
    slow = text_paths.parsed_documents

    def watched(texts: list[str], *decoder: Any) -> Any:
        parsed.extend(texts)
        return slow(texts, *decoder)

    monkeypatch.setattr(text_paths, "parsed_documents", watched)


def test_documents_of_one_shape_are_not_parsed_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    parsed: list[str] = []
    watch_parsing(parsed, monkeypatch)
    texts = [json.dumps({"id": i, "name": f"n{i}", "user": {"price": i / 4, "on": i % 2 == 0}}) for i in range(1000)]
    found = Documents().paths_of(pa.array(texts))
    assert len(parsed) == 1
    assert (found["$.id"].long, found["$.user.price"].real) == ((0, 999), (0.0, 249.75))


@pytest.mark.parametrize("seed", range(8))
def test_the_larger_parts_of_the_oracle_are_read_by_templates(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    parsed: list[str] = []
    watch_parsing(parsed, monkeypatch)
    texts = repeated(np.random.default_rng(seed), 300, SOUND)
    assert not Documents().paths_of(pa.array(texts, pa.string()))["$"].kinds & STRANGE
    assert len(parsed) < 0.5 * len(texts)


AWKWARD = [
    "",
    "a",
    "a\0",
    "a\0b",
    "é",
    "\x7f",
    "aaaaaaaa",
    "aaaaaaab",
    "aaaaaaaab",
    "a" * 31,
    "a" * 32,
    "a" * 33,
    "😀",
    "z" * 8,
    "z" * 9,
]


@pytest.mark.parametrize(
    "some", [AWKWARD[:1], AWKWARD[1:3], AWKWARD[6:], [s for s in AWKWARD if s.isascii() and "\0" not in s], AWKWARD]
)
def test_the_ends_of_strings(some: list[str]) -> None:
    """By their words as by their bytes, in either form of documents; a string that ends with a zero byte is not the one without."""
    for order in (some, some[::-1]):
        documents = [json.dumps({"k": i, "s": s}) for i, s in enumerate(order * 20)]
        ordered = sorted(order, key=str.encode)
        for found in (Documents().paths_of(pa.array(documents)), variant_paths.paths_of(variants(documents))):
            assert found["$.s"].string == (ordered[0], ordered[-1])
            assert (found["$.s"].present, found["$.k"].long) == (len(documents), (0, len(documents) - 1))


def test_text_in_a_variant_that_is_no_unicode_says_nothing() -> None:
    good = variants([json.dumps({"s": s}) for s in ("aaaaaa", "bcdefg", "zzzzzz")])
    for spoiled in (b"bc\xffefg", b"bcdef\x80"):
        bad = pa.array(
            [{**row, "value": row["value"].replace(b"bcdefg", spoiled)} for row in good.to_pylist()], good.type
        )
        assert variant_paths.paths_of(bad)["$"].kinds & STRANGE


def test_shapes_that_come_and_go_with_the_blocks() -> None:
    """Templates of earlier blocks are tried first; none of a block's documents need have as many quotes."""
    documents, ends = (
        Documents(),
        ['{"a":1}', '{"a":1,"s":"x"}', '{"t":"y","u":"z","v":"w"}', "{}", "[]", '""', "7", '{"a":1}'],
    )
    for text in ends:
        block = pa.array([text] * 300, pa.string())
        assert without_kinds(documents.paths_of(block), 0) == without_kinds(text_paths.paths_of(block), 0), text


@pytest.mark.parametrize("seed", range(12))
def test_each_document_is_counted_once(seed: int) -> None:
    """A block has more shapes than a template covers; how often a key is there decides what IS NULL skips."""
    chance = np.random.default_rng(seed)
    values = [None, True, 1, -5, 2.5, "x", "y" * 30, "é", "", [], {}, [1, "a"], {"k": 1}]
    documents = Documents()
    for _ in range(3):
        keys = ["abcdefg"[at] for at in chance.integers(7, size=chance.integers(1, 6))]
        block = pa.array([json.dumps({key: values[chance.integers(len(values))] for key in keys}) for _ in range(300)])
        assert without_kinds(documents.paths_of(block), 0) == without_kinds(text_paths.paths_of(block), 0)


OF_ONE_KIND = [
    st.builds(
        lambda kinds, ends, times: PathStatistics(kinds, 3, 0, string=(min(ends), max(ends)), times=times),
        st.just(STRING),
        st.lists(st.sampled_from(["a", "b", "é", "zz"]), min_size=2, max_size=2),
        st.sampled_from([None, NO_TIMES, Times(LOCAL_TEXT, 5, 9)]),
    ),
    st.builds(
        lambda exact, ends: PathStatistics(REAL | exact, 3, 0, real=(min(ends), max(ends))),
        st.sampled_from([LO_EXACT | HI_EXACT, LO_EXACT, 0]),
        st.lists(st.sampled_from([-1.5, -0.0, 0.0, 2.5]), min_size=2, max_size=2),
    ),
    st.builds(
        lambda ends, nulls, walk: PathStatistics(LONG, 3, nulls, long=(min(ends), max(ends)), walk=walk),
        st.lists(st.integers(-5, 5), min_size=2, max_size=2),
        st.sampled_from([0, 0, 1, None]),
        st.sampled_from([1, 2]),
    ),
    st.sampled_from([PathStatistics(LONG, 3, 0, long=(None, 4)), PathStatistics(LONG, 3, 0, long=(2, 4))]),
    st.just(PathStatistics(0, 0, 2)),
]


@pytest.mark.parametrize("kind", [*range(len(OF_ONE_KIND)), None])
@given(data=st.data())
def test_joined_at_once_is_joined_one_by_one(kind: int | None, data: st.DataObject) -> None:
    found = data.draw(st.lists(st.one_of(OF_ONE_KIND) if kind is None else OF_ONE_KIND[kind], min_size=1, max_size=3))
    slowly = replace(found[0])
    for other in found[1:]:
        slowly.add(other)
    at_once = join_documents(found)
    assert replace(at_once, times=at_once.known_times()) == replace(slowly, times=slowly.known_times())
    assert str(at_once.real) == str(slowly.real), "the sign of zero"
