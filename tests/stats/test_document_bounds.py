"""Statistics of documents, and cutting and decoding them, never prove too much. Each test fails when the bug named in its docstring is planted."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamis.core import expr
from tamis.core.expr.json_codec.json_path import stored_path
from tamis.core.pruning import decide
from tamis.core.stats import TableEvidence
from tamis.core.stats.json_paths.packed_paths import PATHS, unpack_paths
from tamis.core.stats.json_paths.path_evidence import PathTable
from tamis.core.stats.json_paths.path_rows import INCOMPLETE, MAP, PathStatistics, combine_paths
from tests.expr.documents import SCHEMA
from tests.stats.document_paths import batch, check, decided, manifest, united


def one_part(*documents: Any) -> pa.Table:
    return manifest(0, [batch([d if isinstance(d, str) else json.dumps(d) for d in documents])])


def test_a_key_that_some_documents_lack_is_not_bounded() -> None:
    """Planted: ``combined`` keeps a path that the other side may hide."""
    mine = {"$": PathStatistics(MAP | INCOMPLETE, 1, 0)}
    theirs = {"$": PathStatistics(MAP, 1, 0), "$.a": PathStatistics(4, 1, 0, long=(1, 1))}
    assert "$.a" not in combine_paths(mine, theirs)
    assert "$.a" not in combine_paths(theirs, mine)
    assert "$.a" in combine_paths({"$": PathStatistics(MAP, 1, 0)}, theirs)


@pytest.mark.push_cases(2)
@pytest.mark.parametrize(
    "number",
    [
        "9007199254740993",
        "0.1000000000000000055511151231257827",
        "99999999999999999999999999999999999999",
        "1e-7",
        "4.999999999999999999999",
    ],
)
def test_numbers_beyond_doubles_keep_sound_bounds(number: str) -> None:
    """Planted: bounds of other numbers are taken for exact."""
    for form in (
        "variant_get(v, '$.a', 'decimal(38,18)')",
        "variant_get(v, '$.a', 'double')",
        "variant_get(v, '$.a', 'bigint')",
        "try_cast(get_json_object(s, '$.a') AS DECIMAL(38,0))",
    ):
        for text in (
            f"{form} = {number if 'e' not in number else '0.0000001'}",
            f"{form} < 5",
            f"{form} >= 5",
            f"{form} <= 9007199254740992",
            f"{form} > 0.1",
        ):
            if len(number) < 38 or "get_json" in form:
                check([[f'{{"a":{number}}}']], [text])


@pytest.mark.parametrize("number", ["1.00000005960464477539062500001", "1.0000000596046448", "16777217.0000000001"])
def test_a_float_is_not_rounded_from_the_nearest_double(number: str) -> None:
    """Planted: a FLOAT's bounds are cast from the nearest doubles."""
    for form in (
        "try_variant_get(v, '$.a', 'float')",
        "try_cast(get_json_object(s, '$.a') AS FLOAT)",
        "from_json(s, 'a FLOAT').a",
    ):
        rows, near = one_part(f'{{"a":{number}}}'), "1" if number < "1.1" else "16777216"
        assert not decided(f"{form} > {near}", rows).none[0]
        assert not decided(f"{form} = {near}", rows).all[0]
        assert decided(f"{form} > 2e7", rows).none[0]


def test_texts_read_as_binary_have_bounds() -> None:
    rows = one_part({"a": "m1"}, {"a": "m7"})
    for value, never in (("m0", True), ("m4", False), ("m8", True)):
        assert decided(f"variant_get(v, '$.a', 'binary') = X'{value.encode().hex()}'", rows).none[0] == never


def test_empty_objects_and_lists_are_seen() -> None:
    """Planted: objects without keys leave no kind."""
    rows = one_part({"a": {}}, {"a": 5})
    assert not decided("v:a::int > 7", rows).none[0]  # casting {} fails
    assert decided("try_variant_get(v, '$.a', 'int') > 7", rows).none[0]
    assert not decided("variant_get(v, '$.a', 'int') > 7", one_part({"a": []})).none[0]
    assert not decided("cast(get_json_object(s, '$.a') AS INT) > 7", rows).none[0]
    assert decided("try_variant_get(v, '$.a', 'binary') = X'35'", rows).none[0]
    assert not decided("variant_get(v, '$.a', 'binary') = X'35'", rows).none[0]
    assert not decided("get_json_object(s, '$.a') = '{}'", rows).none[0]


def test_texts_between_bounds_may_parse() -> None:
    """Planted: a cast of text by its bounds alone. ``5`` lies between ``!`` and ``x``, neither of which is a number."""
    rows = one_part({"a": "!"}, {"a": "5"}, {"a": "x"})
    assert not decided("try_variant_get(v, '$.a', 'int') = 5", rows).none[0]


def test_nulls_of_both_kinds_and_missing_are_told_apart() -> None:
    """Planted: JSON's null counts as present."""
    cases: list[tuple[list[Any], str, bool]] = [
        ([{"a": None}], "v:a IS NULL", True),
        ([{"a": None}], "is_variant_null(v:a)", False),
        ([{}], "v:a IS NOT NULL", True),
        ([{}], "is_variant_null(v:a)", True),
        ([{"a": 1}], "get_json_object(s, '$.a') IS NULL", True),
        ([{"a": 1}, {"a": None}], "get_json_object(s, '$.a') IS NULL", False),
        ([{"a": 1}, {}], "try_variant_get(v, '$.a', 'int') IS NULL", False),
    ]
    for some, text, none in cases:
        assert decided(text, one_part(*some)).none[0] == none, (some, text)


def test_one_strange_document_is_enough() -> None:
    """Planted: a document that does not parse is passed over."""
    fine = [{"a": 1}] * 30
    for document in (
        '{"a":7,"a":1}',
        '{"a":1,"a":7}',
        "{'a':7}",
        '{"a":7}x',
        '{"a":7, "b":"\\ud800"}',
        '{"a":7,"b":1e999}',
    ):
        rows = one_part(*fine, document)
        for text in ("cast(get_json_object(s, '$.a') AS INT) = 7", "from_json(s, 'a INT').a = 7"):
            assert not decided(text, rows).none[0], document
    assert decided("from_json(s, 'a INT').a = 7", one_part(*fine, "hello")).none[0]


def test_documents_that_would_close_each_other() -> None:
    """Texts that are no JSON alone but would be in a row. Planted: documents joined by commas only."""
    fine = [{"a": 1}] * 60
    rows = one_part(*fine, '{"a":[{}', "{}]}", '{"a":2},{"a":9}')
    assert not decided("get_json_object(s, '$.a') = '9'", rows).none[0]
    assert not decided("get_json_object(s, '$.a') IS NULL", rows).none[0]


def test_keys_are_not_paths() -> None:
    """Planted: keys joined by dots."""
    assert (
        len(
            {
                stored_path(("a", "b")),
                stored_path(("a.b",)),
                stored_path(("a['b']",)),
                stored_path(("a", 0)),
                stored_path(("a", "[*]")),
                stored_path(("A", "b")),
            }
        )
        == 6
    )
    rows = one_part({"a.b": 7, "a": {"b": 1}})
    assert not decided("get_json_object(s, '$[\\'a.b\\']') = '7'", rows).none[0]
    assert decided("from_json(s, 'a STRUCT<b: INT>').a.b = 7", rows).none[0]
    assert decided("get_json_object(s, '$.A.b') = '1'", rows).none[0]


def test_the_union_admits_what_any_part_admits() -> None:
    rows = pa.concat_tables(
        [manifest(0, [batch(['{"a":1}'])]), manifest(1, [batch(['{"a":"x","b":2}'])])], promote_options="default"
    )
    for text, none in [
        ("get_json_object(s, '$.a') = 'x'", False),
        ("from_json(s, 'b INT').b = 2", False),
        ("from_json(s, 'b INT').b = 3", True),
        ("get_json_object(s, '$.c') = '1'", True),
    ]:
        found = united(text, rows)
        assert found is not None
        assert found.none[0] == none, text


JUNK = st.sampled_from(["null", "negative", "huge", "type", "inverted", "twice", "bits", "gone"])


@given(st.integers(0, 2**32 - 1), st.lists(JUNK, min_size=1, max_size=3))
def test_garbage_never_raises_and_never_proves(seed: int, kinds: list[str]) -> None:
    """Whatever the rows hold, no error is raised; and what contradicts itself proves nothing."""
    rng = np.random.default_rng(seed)
    table, tables = unpack_paths(one_part({"a": 5}, {"a": 6}))
    rows = tables[PATHS].append_column("segment", pa.array([0] * len(tables[PATHS]), pa.int32()))
    for kind in kinds:
        rows = _spoiled(rows, kind, rng)
    evidence = TableEvidence(table, SCHEMA, PathTable.of_parts(rows, table))
    for text in (
        "get_json_object(s, '$.a') = '5'",
        "try_variant_get(v, '$.a', 'int') = 6",
        "from_json(s, 'a INT').a = 5",
    ):
        decide(expr.conjuncts_of(expr.parse_predicate(text, SCHEMA)), evidence, strict=True)
    if "bits" in kinds or "gone" in kinds or "type" in kinds or "huge" in kinds:
        assert not decide(
            expr.conjuncts_of(expr.parse_predicate("from_json(s, 'a INT').a = 9", SCHEMA)), evidence, strict=True
        ).none[0]


def _spoiled(rows: pa.Table, kind: str, rng: np.random.Generator) -> pa.Table:
    names = [n for n in rows.column_names if n[0].isdigit() and not n.endswith("|path")]
    name = str(names[rng.integers(len(names))])
    at, length = rows.schema.get_field_index(name), len(rows)
    column = rows.column(name)
    if kind == "twice":
        return pa.concat_tables([rows, rows])
    if kind == "bits":
        for n in (n for n in rows.column_names if n.endswith("|kinds") and pa.types.is_integer(rows[n].type)):
            rows = rows.set_column(
                rows.schema.get_field_index(n), n, pc.bit_wise_or(rows[n], pa.scalar(1 << 20, pa.int32()))
            )
        return rows
    if kind == "huge":
        for n in ("1|present", "2|present"):
            rows = rows.set_column(rows.schema.get_field_index(n), n, pa.array([2**60] * length, pa.int64()))
        return rows
    if kind == "gone":
        return rows.drop_columns([n for n in rows.column_names if n.endswith("|kinds")])
    if kind == "type":
        for n in ("1|kinds", "2|kinds"):
            if n in rows.column_names:
                rows = rows.set_column(rows.schema.get_field_index(n), n, pa.array(["x"] * length))
        return rows
    if kind == "negative" and pa.types.is_integer(column.type):
        return rows.set_column(at, name, pa.array([-1] * length, column.type))
    if kind == "inverted" and name.endswith(".lo") and pa.types.is_integer(column.type):
        return rows.set_column(at, name, pa.array([2**60] * length, column.type))
    return rows.set_column(at, name, pa.nulls(length, column.type))


def test_a_union_forgets_no_part(monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted: a part whose bounds (or set of values) are not known has no say in the segment's."""
    from tamis.core.stats import union_statistics as module
    from tamis.core.stats.columns import value_sets
    from tamis.core.types import LONG, Field, Schema

    schema = Schema((Field("c", LONG, id=7),))
    part = pa.table(
        {
            "rows": [5, 5],
            "7|long|lo": [1, None],
            "7|long|hi": [2, None],
            "7|long|set": [[1, 2], None],
            "7|nulls": [0, 0],
        }
    )

    def skips() -> bool:
        whole = module(part).append_column("rows", pa.array([10]))
        return bool(
            decide(
                expr.conjuncts_of(expr.parse_predicate("c = 7", schema)), TableEvidence(whole, schema), strict=True
            ).none[0]
        )

    assert not skips()
    real = value_sets.union
    monkeypatch.setattr(value_sets, "union", lambda sets, _empty: real(sets, pa.repeat(pa.scalar(True), len(sets))))
    assert skips()
    monkeypatch.undo()
    import sys

    inner = sys.modules["tamis.core.stats.statistics_union"]
    outermost = inner._outermost
    monkeypatch.setattr(
        inner,
        "_outermost",
        lambda bound, exact, empty, which: outermost(bound, exact, pa.repeat(pa.scalar(True), len(empty)), which),
    )
    assert skips()
