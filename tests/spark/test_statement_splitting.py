"""Texts of several statements are split as Spark splits them."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tamis.spark.jvm_bridge.adapter import bridge_of
from tamis.spark.sql.sql_script import _COMPOUND
from tamis.spark.sql.statement_splitting import split_at_semicolons

PIECES = ["a", " ", "\n", ";", "'", '"', "`", "\\", "--", "/*", "*/", "-", "/", "*", "SELECT 1"]
STRINGS = "org.apache.spark.sql.catalyst.util.StringUtils"
NAMES = ("splitSemiColon", "splitSemiColonWithIndex")
"""The name of one function in Spark 4.3 and in releases before it; 4.0 has it in another class."""


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        ("", []),
        (" \n -- only a comment\n;; /* and ; /* another */ */ ;", []),
        ("SELECT 1", ["SELECT 1"]),
        ("SELECT 1; SELECT 2;\n", ["SELECT 1", " SELECT 2"]),
        ("SELECT ';', \"; it's\", `a;b`; b", ["SELECT ';', \"; it's\", `a;b`", " b"]),
        (r"SELECT 'it\'s;'; b", [r"SELECT 'it\'s;'", " b"]),
        ("-- a; comment\nSELECT 1; b", ["-- a; comment\nSELECT 1", " b"]),
        ("SELECT /* ; /* ; */ ; */ 1; b", ["SELECT /* ; /* ; */ ; */ 1", " b"]),
        ("a; SELECT 'no end; b", ["a", " SELECT 'no end; b"]),
        ("a; /* no end; /* b */", ["a", " /* no end; /* b */"]),
        ("a; ''", ["a", " ''"]),
    ],
)
def test_a_text_is_split_outside_of_quotes_and_comments(text: str, pieces: list[str]) -> None:
    assert split_at_semicolons(text) == pieces


@pytest.mark.parametrize(
    ("text", "compound"),
    [
        ("/* a * b */ -- c\n BEGIN", True),
        ("/**/begin", True),
        ("/* BEGIN */ SELECT", False),
        ("/* a */ b */ BEGIN", False),
        ("/* banner */\n" * 200 + "SELECT 1", False),
        ("/* banner */\n" * 200 + "BEGIN", True),
    ],
)
def test_a_compound_statement_begins_behind_comments(text: str, compound: bool) -> None:
    """In a time that does not double with each comment."""
    assert (_COMPOUND.match(text) is not None) == compound


@pytest.mark.spark
def test_texts_are_split_as_spark_splits_them(spark: Any) -> None:
    java = bridge_of(spark)
    name = next((name for name in NAMES if java.has_method(STRINGS, name, 2)), None)
    if name is None:
        pytest.skip(f"Spark {spark.version} has no such function in StringUtils")
    split = getattr(java.cls(STRINGS), name)
    to_java = java.cls("scala.jdk.javaapi.CollectionConverters").asJava

    @settings(max_examples=2_000)
    @given(st.lists(st.sampled_from(PIECES), max_size=12).map("".join))
    def compared(text: str) -> None:
        assume(not ("`" in text and "\\" in text))  # Spark's function takes it for an escape, its grammar does not
        assert split_at_semicolons(text) == list(java.texts(to_java(split(text, True)))), text

    compared()
