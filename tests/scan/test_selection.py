"""Which columns a scan gives, and in which order."""

from typing import Any

import pytest

from tamis.core.types import LONG, STRING, Array, Field, Schema, Struct
from tamis.core.types.identifiers import split_path
from tamis.engine.scan.column_selection import select_columns
from tamis.errors import InvalidInput, NotFound

SCHEMA = Schema(
    (
        Field("a", LONG, id=1),
        Field(
            "s",
            Struct(
                (Field("x", LONG, id=3), Field("y", Struct((Field("z", LONG, id=5), Field("w", LONG, id=6))), id=4))
            ),
            id=2,
        ),
        Field("dotted.name", STRING, id=7),
        Field("list", Array(Field("element", LONG, id=9)), id=8),
    ),
    schema_id=3,
)


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (
            ("*",),
            "a: bigint | s: struct<x:bigint,y:struct<z:bigint,w:bigint>> | dotted.name: string | list: array<bigint>",
        ),
        (("list", "a"), "list: array<bigint> | a: bigint"),
        (("A",), "a: bigint"),
        ("a", "a: bigint"),
        (("s.x",), "s: struct<x:bigint>"),
        (("s.y.w", "a", "s.x"), "s: struct<y:struct<w:bigint>,x:bigint> | a: bigint"),
        (("s.y.w", "s.y"), "s: struct<y:struct<z:bigint,w:bigint>>"),
        (("s.y", "s.y.w"), "s: struct<y:struct<z:bigint,w:bigint>>"),
        (("s.x", "s"), "s: struct<x:bigint,y:struct<z:bigint,w:bigint>>"),
        (("dotted.name",), "dotted.name: string"),
        (("`dotted.name`",), "dotted.name: string"),
        (("a", "a"), "a: bigint"),
        (
            ("a", "*"),
            "a: bigint | s: struct<x:bigint,y:struct<z:bigint,w:bigint>> | dotted.name: string | list: array<bigint>",
        ),
    ],
)
def test_select(names: tuple[str, ...], expected: str) -> None:
    chosen = select_columns(SCHEMA, names)
    assert " | ".join(str(f) for f in chosen) == expected
    assert chosen.schema_id == 3


@pytest.mark.parametrize("name", ["b", "s.q", "a.x", "list.element", "s.x.y", "", "s."])
def test_an_unknown_column_is_named(name: str) -> None:
    with pytest.raises(NotFound) as caught:
        select_columns(SCHEMA, [name])
    assert caught.value.code == "COLUMN_NOT_FOUND"
    assert caught.value.remedy


@pytest.mark.parametrize("names", [(), (3,), (None,)])
def test_nothing_or_no_name_is_refused(names: tuple[Any, ...]) -> None:
    with pytest.raises(InvalidInput):
        select_columns(SCHEMA, names)


def test_split() -> None:
    assert split_path("a.`b.c`.d") == ("a", "b.c", "d")
    assert split_path("`a``.b`.c") == ("a`.b", "c")


TWO = Schema(
    (Field("a", Struct((Field("b", LONG, id=2),)), id=1), Field("a.b", STRING, id=3), Field("x`y", LONG, id=4))
)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("`a`.`b`", "a: struct<b:bigint>"),
        ("a.`b`", "a: struct<b:bigint>"),
        ("`a.b`", "a.b: string"),
        ("x`y", "x`y: bigint"),
        ("`x``y`", "x`y: bigint"),
    ],
)
def test_a_name_with_a_dot_and_a_field_are_told_apart(name: str, expected: str) -> None:
    assert " | ".join(str(f) for f in select_columns(TWO, [name])) == expected


def test_what_could_be_either_is_refused() -> None:
    with pytest.raises(InvalidInput) as caught:
        select_columns(TWO, ["A.b"])
    assert caught.value.code == "AMBIGUOUS_COLUMN"
    assert "`A`.`b` for the field, `A.b` in backquotes" in caught.value.remedy
