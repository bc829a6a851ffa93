"""Fields of one layout read together say what each path says when it is walked by itself."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamis.core.expr.json_codec import variant_bytes, variant_columns
from tamis.core.stats.json_paths import variant_paths
from tamis.core.stats.json_paths.path_rows import Paths
from tests.stats.document_paths import variants

ROWS = 70
EDGES = [sign * 2**bits + step for bits in (0, 7, 15, 31, 62) for sign in (1, -1) for step in (-1, 0, 1)]
WHOLE = st.sampled_from(EDGES) | st.integers(-(2**63), 2**63 - 1)
SMALL = st.integers(-(2**31), 2**31 - 1) | st.integers(-128, 127)
SHORT = st.text("ab\x7f\0é", max_size=8) | st.text("abc", max_size=7)
DECIMALS = [
    *("0.5", "-0.5", "0.1", "99.99", "-99.99", "2147483.647", "2147483.648", "-2147483.648", "-21474.83649"),
    *("1.00000000000001", "123456789012345.5", "1234567890123456789.5", "0.0000000001"),
]
KINDS: list[st.SearchStrategy[str]] = [
    WHOLE.map(str),
    SMALL.map(str),
    SHORT.map(json.dumps),
    st.text("ab", max_size=7).map(json.dumps),
    st.sampled_from(DECIMALS),
    st.sampled_from(DECIMALS[:4]),
    st.sampled_from(["true", "false", "null", "1e300", "1", '"a"', '"2020-01-01"', "{}", '{"a": 1}', "[1]"]),
]


def with_known_times(paths: Paths) -> Paths:
    """Replace undetermined times by those that they stand for."""
    return {path: replace(found, times=found.known_times()) for path, found in paths.items()}


def check(column: pa.StructArray) -> None:
    """Compare with the oracle, for which no field is read together with another."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(variant_paths, "MANY", 2**30)
        alone = with_known_times(variant_paths.paths_of(column))
    assert with_known_times(variant_paths.paths_of(column)) == alone


@st.composite
def documents(draw: st.DrawFn) -> list[str]:
    """Rows of the same keys whose values vary within a column, mostly within its kind."""
    columns = []
    for kind in draw(st.lists(st.sampled_from(KINDS), min_size=1, max_size=6)):
        some = draw(st.lists(kind, min_size=1, max_size=12))
        columns.append([some[(row * 7) % len(some)] for row in range(ROWS)])
    return ["{" + ",".join(f'"k{at}":{value}' for at, value in enumerate(row)) + "}" for row in zip(*columns, strict=True)]  # fmt: skip


@given(documents())
def test_together_as_alone(texts: list[str]) -> None:
    column = variants(texts)
    check(column)
    check(column.slice(3))


@pytest.mark.parametrize(
    "some",
    [
        *(["a", "a\0"], ["a\0", "a\0b"], ["", "\0"], ["", "a"], ["é", "e"], ["aaaaaaa", "aaaaaab"]),
        *(["aaaaaaaa", "aaaaaaab"], ["aaaaaaab", "aaaaaaa"], ["b", "aaaaaaaaa"], ["\x7f", "\x01"]),
    ],
    ids=ascii,
)
def test_short_strings(some: list[str]) -> None:
    texts = [json.dumps({"s": some[at % len(some)], "t": some[0]}) for at in range(ROWS)]
    check(variants(texts))
    found = variant_paths.paths_of(variants(texts))
    assert found["$.s"].string == (min(some, key=str.encode), max(some, key=str.encode))
    assert found["$.t"].string == (some[0], some[0])


@pytest.mark.parametrize("keys", [1, 30, 255, 256, 300])
def test_objects_of_any_size(keys: int) -> None:
    """Ids and offsets have one byte, two, or more, and large objects a longer number of fields."""
    row = {f"key{at}": at * 10**7 for at in range(keys)}
    column = variants([json.dumps(row | {"key0": number, "t": "x" * number}) for number in range(ROWS)])
    check(column)


@pytest.mark.parametrize("wide", [2**5, 2**10, 2**18])
def test_offsets_of_any_width(wide: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(variant_paths, "MANY", 1)
    texts = [json.dumps({"a": letter * (wide + at), "b": [at], "c": at}) for at, letter in enumerate("xyz")]
    check(variants(texts))
    assert variant_paths.paths_of(variants(texts))["$.c"].long == (0, 2)


@given(st.data())
def test_damage_raises_nothing(data: st.DataObject) -> None:
    column = variants(data.draw(documents()))
    rows: list[dict[str, Any]] = column.to_pylist()
    for _ in range(data.draw(st.integers(1, 5))):
        row = data.draw(st.integers(0, ROWS - 1))
        part = data.draw(st.sampled_from(["value", "metadata"]))
        changed = bytearray(rows[row][part])
        if changed:
            changed[data.draw(st.integers(0, len(changed) - 1))] = data.draw(st.integers(0, 255))
        rows[row][part] = bytes(changed[: data.draw(st.integers(0, len(changed)))])
    assert "$" in variant_paths.paths_of(pa.array(rows, column.type))


def test_the_keys_of_rows_whose_metadata_only_look_alike() -> None:
    """Equal lengths, or equal bytes in another division, are not equal metadata."""
    for texts in ([["ab", "c"], ["a", "bc"]], [["ab"], ["ba"]], [["a"], ["a"], ["b"]], [["a"]] * 3):
        documents = [json.dumps(dict.fromkeys(keys, at)) for at, keys in enumerate(texts)]
        column = variants(documents * ROWS)
        expected = {key: at for at, keys in enumerate(texts) for key in keys}
        found = variant_paths.paths_of(column)
        assert {path[2:] for path in found} - {""} == expected.keys()
        assert all(found[f"$.{key}"].long[1] == at for key, at in expected.items())


def test_metadata_of_the_same_bytes_in_another_division() -> None:
    """The first row's metadata, repeated, is that of all rows only where each row has it once."""
    plain = variants(['{"a": 1}'] * 3).to_pylist()
    once = plain[0]["metadata"]
    for division in ([once, once * 2, b""], [once, b"", once * 2], [once[:-1], once[-1:] + once, once]):
        rows = [{**row, "metadata": metadata} for row, metadata in zip(plain, division, strict=True)]
        found = variant_columns.nodes(pa.array(rows, variants(["1"]).type))
        assert [found.names[shape] for shape in found.shape] == [variant_columns.names_of(m) for m in division]


def test_keys_of_a_column_with_nulls() -> None:
    for texts in ([None, '{"a": 1}'], ['{"a": 1}', None], [None, None]):
        assert ("$.a" in variant_paths.paths_of(variants(texts))) == any(texts)
    assert "$.a" not in variant_paths.paths_of(variants(texts).slice(2))


def test_numbers_in_words() -> None:
    """The bytes behind a number do not count."""
    for size, header in ((1, 3 << 2), (2, 4 << 2), (4, 5 << 2)):
        for number in (0, 1, -1, 2 ** (8 * size - 1) - 1, -(2 ** (8 * size - 1))):
            for rest in (b"\0" * 8, b"\xff" * 8):
                word = bytes([header]) + number.to_bytes(size, "little", signed=True) + rest
                words, headers, _ = variant_columns.headers(
                    np.frombuffer(word + b"\0" * 16, np.uint8), np.zeros((1, 1), np.int64)
                )
                found = variant_bytes.longs_in(words, headers)
                assert found is not None
                assert found.tolist() == [[number]]
