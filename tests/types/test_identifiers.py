"""Backquotes are added and removed as Spark does it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamis.core.schema.schema_sequence import fences
from tamis.core.types import LONG, Field, Schema
from tamis.core.types.identifiers import (
    backquote,
    backquote_path,
    dotted_path,
    parse_path,
    remove_backquotes,
    split_path,
)
from tamis.spark.write.spark_index import index_column

NAMES = st.text("ab.`` \n", min_size=1)


@given(st.lists(NAMES, min_size=1))
def test_a_path_is_read_as_it_was_written(names: list[str]) -> None:
    for text in (backquote_path(names), dotted_path(names)):
        assert parse_path(text) == split_path(text) == tuple(names)


@given(NAMES)
def test_a_name_is_read_as_it_was_written(name: str) -> None:
    assert remove_backquotes(backquote(name)) == name


@pytest.mark.parametrize("text", ["", ".", "a.", ".a", "a..b", "``", "a``", "a`b", "`a", "`a`b", "`a``"])
def test_what_is_no_path_is_not_parsed(text: str) -> None:
    assert parse_path(text) is None


def test_plain_parts_stay_bare() -> None:
    assert dotted_path(["a", "b.c", "d`e"]) == "a.`b.c`.`d``e`"


def test_a_fence_names_a_column_with_backquotes_whole() -> None:
    before = Schema((Field("`a`", LONG, id=1), Field("b", LONG, id=2)))
    assert [fence.column for fence in fences([before], (), Schema(before.fields[1:], 1))] == ["`a`"]


def test_create_index_reads_names_with_dots_and_backquotes() -> None:
    schema = Schema((Field("a.b`c", LONG, id=1), Field("a`b", LONG, id=2)))
    assert [schema.resolve_name(index_column([f.name], {}))[0].id for f in schema] == [1, 2]
