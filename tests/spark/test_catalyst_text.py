"""No tree, however strange, makes translation raise: what is not understood becomes opaque. Without a JVM."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamis.core.expr import Call, Expr, Opaque, column_paths, to_sql
from tamis.core.types import DOUBLE, LONG, STRING, Field, Schema, Struct
from tamis.spark.jvm_bridge.catalyst import translate_filters

SCHEMA = Schema(
    (
        Field("i", LONG, id=1),
        Field("a b", STRING, id=2),
        Field("st", Struct((Field("x", LONG, id=4),)), id=3),
        Field("d", DOUBLE, id=5),
    )
)
STRUCT = {"type": "struct", "fields": [{"name": "x", "nullable": True, "type": "long"}]}
TYPES: list[Any] = ["boolean", "long", "string", STRUCT, "interval year to month", "hologram", "double"]


def attribute(name: str, kind: int = 1) -> dict[str, Any]:
    return {"c": "AttributeReference", "t": kind, "p": {"name": name}, "k": []}


def literal(value: Any, kind: int = 1) -> dict[str, Any]:
    return {"c": "Literal", "t": kind, "v": value}


def node(name: str, *children: dict[str, Any], kind: int = 0, **settings: Any) -> dict[str, Any]:
    return {"c": name, "t": kind, "p": settings, "k": list(children)}


def read(tree: Any) -> Expr:
    (found,) = translate_filters(
        json.dumps({"trees": [tree], "sql": ["?"], "types": TYPES, "zones": {}}), SCHEMA, str
    ).conjuncts
    return found


def test_a_plain_comparison() -> None:
    found = read(node("GreaterThan", attribute("i"), literal(3)))
    assert isinstance(found, Call)
    assert found.function == "gt"


def test_the_text_of_a_double_is_that_of_the_java_that_runs() -> None:
    """Before Java 19 it is not always the shortest that reads back (JDK-4511638), so only Spark may compute it; it cannot fail."""
    found = read(
        node("EqualTo", node("Cast", attribute("d", kind=6), kind=2, evalMode="ANSI"), literal("2.0E-3", kind=2))
    )
    assert isinstance(found, Call)
    text = found.args[0]
    assert isinstance(text, Opaque)
    assert (text.type, text.total, column_paths(text)) == (STRING, True, ((5,),))


@pytest.mark.parametrize(
    "tree",
    [
        node("GreaterThan", attribute("nowhere"), literal(3)),
        node("GreaterThan", attribute("i", kind=2), literal("3", kind=2)),  # Spark thinks the column has another type
        node("GreaterThan", attribute("i"), literal("three")),
        node("GreaterThan", attribute("i"), literal({"strange": "bytes"})),
        node("GreaterThan", attribute("i"), literal(3, kind=4)),
        node("GreaterThan", attribute("i"), literal(3, kind=99)),
        node("GreaterThan", attribute("i"), literal(3, kind=-1)),
        node("GreaterThan", attribute("i")),
        node("Hologram", attribute("i"), kind=5),
        node("EqualTo", node("GetStructField", attribute("st", kind=3), kind=1, ordinal=7), literal(1)),
        node(
            "EqualTo", node("Add", attribute("i"), literal(1), kind=1), literal(1)
        ),  # nothing says whether it can fail
        node("EqualTo", node("Add", attribute("i"), literal(1), kind=1, evalMode="QUANTUM"), literal(1)),
        node("In", attribute("i"), literal({"strange": "x"}), literal(3)),
        node("InSet", attribute("i"), hset=[1, {"strange": "x"}]),
        node("AtLeastNNonNulls", attribute("i"), attribute("i"), attribute("i"), n=2),
    ],
)
def test_strange_trees_are_opaque(tree: dict[str, Any]) -> None:
    assert any(isinstance(n, Opaque) for n in read(tree).walk())


def test_names_that_need_quotes_are_written_so() -> None:
    found = read(node("EqualTo", attribute("a b", kind=2), literal("x", kind=2)))
    assert "`a b` = 'x'" in to_sql(found)


def test_deep_nesting_is_one_opaque_filter_over_all_columns() -> None:
    text = json.dumps({"trees": [], "sql": ["?"], "types": TYPES, "zones": {}})
    deep = '{"c":"Not","t":0,"p":{},"k":[' * 3_000 + json.dumps(attribute("i")) + "]}" * 3_000
    (found,) = translate_filters(text.replace('"trees": []', f'"trees": [{deep}]'), SCHEMA, str).conjuncts
    assert isinstance(found, Opaque)
    assert len(found.args) == len(SCHEMA)


NAMES = [
    "And",
    "Or",
    "Not",
    "EqualTo",
    "In",
    "InSet",
    "Like",
    "Cast",
    "Add",
    "GetStructField",
    "IsNotNull",
    "AtLeastNNonNulls",
    "Hologram",
    "Alias",
]
VALUES = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.text(max_size=4)
    | st.lists(st.integers(), max_size=3)
    | st.just({"strange": "x"})
)
LEAVES = st.builds(attribute, st.sampled_from(["i", "a b", "st", "nowhere"]), st.integers(-1, 7)) | st.builds(
    literal, VALUES, st.integers(-1, 7)
)
SETTINGS = st.dictionaries(
    st.sampled_from(["evalMode", "n", "ordinal", "hset", "escapeChar", "timeZoneId", "name"]), VALUES, max_size=3
)
TREES = st.recursive(
    LEAVES,
    lambda below: st.builds(
        lambda name, kind, settings, children: {"c": name, "t": kind, "p": settings, "k": children, "v": None},
        st.sampled_from(NAMES),
        st.integers(-1, 7),
        SETTINGS,
        st.lists(below, max_size=4),
    ),
    max_leaves=12,
)


@given(TREES)
def test_no_tree_raises(tree: Any) -> None:
    translate_filters(json.dumps({"trees": [tree], "sql": ["?"], "types": TYPES, "zones": {}}), SCHEMA, str)
