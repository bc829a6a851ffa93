"""Nothing that a terminal obeys leaves by the command line, a representation or a page."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tamis
from tamis.core.types.printable import printable, printable_json

EVIL = "\x1b]0;owned\x07\x1b[2J\x9b31m\r\x7f\u202egnp"
OBEYED = {*map(chr, range(32)), *map(chr, range(127, 160)), "\u202e", "\u2028", "\u2066"}


@given(st.text())
def test_text_without_such_characters_stays(text: str) -> None:
    shown = printable(text)
    assert not OBEYED & set(shown)
    if not OBEYED & set(text) and text.isprintable():
        assert shown == text


def test_what_is_kept_is_kept() -> None:
    assert printable("a\nb\x1b", keep="\n") == "a\nb\\x1b"
    assert printable("a\nb\tc\u202e") == "a\\nb\\tc\\u202e"
    assert printable("Zoë 👩\u200d🚀 naïve") == "Zoë 👩\u200d🚀 naïve"


@given(st.dictionaries(st.text(), st.text()))
def test_json_says_the_same(value: dict[str, str]) -> None:
    printed = printable_json(json.dumps(value, indent=2, ensure_ascii=False))
    assert json.loads(printed) == value
    assert not (OBEYED - {"\n"}) & set(printed)


@pytest.mark.parametrize("what", ["table", "scan", "plan", "report"])
def test_representations(tmp_path: object, what: str) -> None:
    table = tamis.create(f"{tmp_path}/t", pa.schema([(EVIL, pa.string()), ("a", pa.int64())]))
    table.append(pa.table({EVIL: [EVIL], "a": [1]}))
    scan = table.scan(f"`{EVIL}` <> '{EVIL}x' AND a > 0")
    shown: Any = {"table": table, "scan": scan, "plan": scan.plan(), "report": scan.plan().report}[what]
    assert not (OBEYED - {"\n"}) & set(repr(shown))
    assert not (OBEYED - {"\n"}) & set(shown._repr_html_())
    assert "owned" in shown._repr_html_()
