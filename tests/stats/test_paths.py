"""JSON paths: what is proved about random documents holds for each of them, by every function, before and after parts are taken together."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tamis
from tamis.core import expr
from tamis.core.pruning import decide
from tamis.core.stats import Collector, TableEvidence
from tamis.core.stats.json_paths import text_paths
from tamis.core.stats.json_paths.packed_paths import PACKED
from tamis.core.stats.json_paths.path_evidence import PathTable
from tamis.core.stats.json_paths.path_rows import (
    INCOMPLETE,
    INVALID,
    LONG,
    MAP,
    ROOT,
    STRANGE,
    PathStatistics,
    table_of,
)
from tamis.core.stats.json_paths.path_union import union_of
from tamis.errors import InvalidInput
from tests.expr.documents import DOCUMENTS, SCHEMA
from tests.stats.document_paths import GETS, PLAIN, TWICE, batch, check, decided, manifest, tree

SCALARS = st.sampled_from(
    [None, True, False, 0, 1, 5, -7, 2**40, 2**63 - 1, 2**63, 12345678901234567890123, 0.5, 1.5, -2.25, 1e300, 0.1, 99.99, "", "a", "b", "5", "1.5", "z" * 80, "2024-01-01", "NaN", "true", "é"]
)  # fmt: skip
KEYS = st.sampled_from(["a", "b", "a.b", "A", "", "c d", "é"])
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3), max_leaves=6
)
OBJECTS = st.dictionaries(KEYS, VALUES, max_size=4).map(json.dumps)
ODD = st.sampled_from(DOCUMENTS)
PARTS = st.lists(st.lists(OBJECTS | OBJECTS | OBJECTS | ODD, min_size=1, max_size=5), min_size=1, max_size=4)
CLEAN = st.lists(st.lists(OBJECTS | st.none(), min_size=1, max_size=5), min_size=1, max_size=4)

TYPES = (
    "int",
    "bigint",
    "tinyint",
    "double",
    "float",
    "decimal(10,2)",
    "boolean",
    "string",
    "date",
    "timestamp",
    "binary",
)
LITERAL = {
    "boolean": "true",
    "string": "'5'",
    "binary": "X'35'",
    "date": "DATE'2024-01-01'",
    "timestamp": "TIMESTAMP'1970-01-01 00:00:01'",
}
PATHS_ = ("a", "a.b", "b", "a[0]", "b[1].a", "A", "[\\'a.b\\']", "[\\'c d\\']", "é")
FILTERS = [
    *(f"{form}(v, '$.{p}'{f}) {op} {LITERAL.get(t, '1')}".replace("$.[", "$[") for form in ("variant_get", "try_variant_get") for t in TYPES for p in PATHS_ for op in ("=", ">", "<=") for f in [f", '{t}'"]),
    *(f"get_json_object(s, '$.{p}') {op}".replace("$.[", "$[") for p in PATHS_ for op in ("= '5'", "> 'a'", "IS NULL", "LIKE 'z%'", "< '1'", "IN ('null', '{}')")),
    *(f"cast(get_json_object(s, '$.{p}') AS {t}) > 1" for p in ("a", "a.b", "b", "a[0]") for t in ("int", "bigint", "double", "decimal(10,2)", "decimal(38,0)", "float")),
    *(f"try_cast(get_json_object(s, '$.{p}') AS {t}) <= 5" for p in ("a", "b") for t in ("int", "double", "decimal(10,2)")),
    *(f"from_json(s, 'a {t}').a {op} {LITERAL.get(t, '1')}" for t in ("int", "bigint", "tinyint", "double", "float", "boolean", "string") for op in ("=", ">", "<")),
    "from_json(s, 'a STRUCT<b: INT>').a.b = 1", "from_json(s, 'b STRING').b IS NULL", "v:a IS NULL", "v:a.b IS NOT NULL", "is_variant_null(v:a)", "NOT is_variant_null(v:b)", "v IS NULL", "is_variant_null(v)",
    "parse_json(s):a::int = 5", "try_parse_json(s):a::string > 'a'", "is_variant_null(try_parse_json(s):a)", "try_parse_json(s) IS NULL", "parse_json(s) IS NOT NULL", "get_json_object(s, '$') > 'n'", "v::string < 'b'",
    *(f"try_variant_get(v, '$.{p}', '{t}') IS NULL" for p in ("a", "b[1]") for t in TYPES), *(f"from_json(s, 'a {t}').a IS NULL" for t in ("int", "double", "boolean", "string")),
    "v:a::bigint + 1 > 3", "coalesce(get_json_object(s, '$.a'), 'q') = 'q'", "get_json_object(s, '$[0]') IS NOT NULL",
]  # fmt: skip


@given(PARTS, st.lists(st.sampled_from(FILTERS), min_size=3, max_size=3))
def test_what_is_proved_holds(parts: list[list[str | None]], filters: list[str]) -> None:
    check(parts, filters)


@given(CLEAN, st.lists(st.sampled_from(FILTERS), min_size=3, max_size=3))
def test_what_is_proved_holds_for_plain_objects(parts: list[list[str | None]], filters: list[str]) -> None:
    check(parts, filters)


ONE_OF_EACH = [None, True, 5, 1.5, 2**70, "5", "x", [1, "a"], {"b": 1}]


@pytest.mark.slow
@pytest.mark.parametrize("first", range(len(ONE_OF_EACH)))
@pytest.mark.push_cases(2)
def test_every_kind_alone_and_in_pairs(first: int) -> None:
    for second in ONE_OF_EACH[first:]:
        pair = [json.dumps({"a": value}) for value in (ONE_OF_EACH[first], second)]
        check([[pair[0]], pair, [*pair, '{"b":null}']], FILTERS[first :: 5 * len(ONE_OF_EACH)])


def test_whether_a_variant_is_null_is_known() -> None:
    """Its NULLs are counted as those of any column."""
    rows = pa.concat_tables([manifest(0, [batch(["1", '{"a": 2}'])]), manifest(1, [batch([None, None])]), manifest(2, [batch([None, "3"])])], promote_options="default")  # fmt: skip
    found, there = decided("v IS NULL", rows), decided("v IS NOT NULL", rows)
    assert (found.none.tolist(), found.all.tolist()) == ([True, False, False], [False, True, False])
    assert (there.none.tolist(), there.all.tolist()) == ([False, True, False], [True, False, False])


@pytest.mark.parametrize("beside", ['"x:y"', '"x\\u003ay"', '"::"', "x:y", "7", '{"a":"x:y"}'])
def test_a_key_that_is_there_twice_is_seen_beside_any_document(beside: str) -> None:
    """Such keys are found by counting colons, which other documents have too."""
    sound = ['{"a":1}', '{"a":"b:c"}', beside]
    assert not text_paths.paths_of(pa.array(sound))[ROOT].kinds & STRANGE
    for twice in ('{"a":77,"a":2}', '{"a":77,"a":2,"a":3}', '{"k":{"a":1,"a":2}}', '[{"a":1,"a":2}]'):
        found = text_paths.paths_of(pa.array([*sound, twice]))
        assert found[ROOT].kinds & INVALID, twice
        assert any(path.kinds & INCOMPLETE for path in found.values()), twice
        assert not any("a" in path and path != "$.a" for path in found), twice
        assert ("$.a" in found) is (not twice.startswith('{"a"')), twice


@pytest.mark.push_cases(7)
@pytest.mark.parametrize("twice", TWICE)
@pytest.mark.parametrize("before", [0, 5, 1500])
def test_a_key_that_is_there_twice_hides_no_row(twice: str, before: int) -> None:
    """Each of Spark's functions takes another of its values, or none; before and after it are blocks without."""
    texts = [json.dumps(PLAIN[i % 30]) for i in range(before)] + [twice] + [json.dumps(one) for one in PLAIN]
    one, row = batch(texts), manifest(0, [batch(some) for some in (texts[:before], texts[before:]) if some])
    columns = {f.id: one.column(i) for i, f in enumerate(SCHEMA.fields)}
    for path in GETS:
        get = f"get_json_object(s, '{path}')"
        for text in (f"{get} = '7'", f"{get} IS NULL", f"{get} IS NOT NULL", f"{get} < '2'", f"cast({get} AS INT) < 9"):
            keep, failed, _ = expr.filter_mask(
                expr.conjuncts_of(expr.parse_predicate(text, SCHEMA)), columns, len(texts)
            )
            decision = decided(text, row)
            assert not (decision.none[0] and (keep | failed).any()), text
            assert not (decision.all[0] and not keep.all()), text
    for text in ("from_json(s, 'a INT').a = 7", "from_json(s, 'a INT').a IS NULL", "from_json(s, 'b INT').b = 4"):
        keep, failed, _ = expr.filter_mask(expr.conjuncts_of(expr.parse_predicate(text, SCHEMA)), columns, len(texts))
        assert not (decided(text, row).none[0] and (keep | failed).any()), text
    assert not decided("parse_json(s) IS NOT NULL", row).all[0], "it fails"
    assert not decided("variant_get(parse_json(s), '$.b', 'int') > 100", row).none[0], "it fails"
    assert not decided("try_variant_get(try_parse_json(s), '$.b', 'int') IS NULL", row).none[0], "it is NULL"


def test_the_other_keys_keep_their_statistics() -> None:
    texts = [TWICE[4], *(json.dumps(one) for one in PLAIN)]
    row = manifest(0, [batch(texts)])
    for text in ("$.a", "$.b", "$.c.d"):
        assert decided(f"cast(get_json_object(s, '{text}') AS INT) > 50", row).none[0], text
    assert decided("get_json_object(s, '$.nothing') = 'x'", row).none[0]
    for text in ("$.c.a", "$.c.nothing"):
        assert not decided(f"cast(get_json_object(s, '{text}') AS INT) > 50", row).none[0], text


@pytest.mark.parametrize(
    "strange",
    ['{"a": "\\ud800", "a": 1}', '{"a": "\\udfff", "a": 1}', '{"a": "\\uDC00", "a": 1}', '{"a": 1e999, "a": 1}', '{"a": 1' + "0" * 309 + ', "a": 1}', '{"a": ' + "[" * 65 + "]" * 65 + ', "a": 1}'],
)  # fmt: skip
def test_what_a_key_that_is_there_twice_hides_may_be_strange(strange: str) -> None:
    assert text_paths.paths_of(pa.array(['{"b": 1}', strange]))[ROOT].kinds & STRANGE


@pytest.mark.merge
def test_what_is_not_known_may_be_anything() -> None:
    """Every second document has no statistics, for lack of room; every filter that is true of it still finds it."""
    texts = [*DOCUMENTS, *(json.dumps({"a": value}) for value in ONE_OF_EACH)]
    rows = pa.concat_tables([manifest(i, [batch([text])]) for i, text in enumerate(texts)], promote_options="default")
    packed = [None if i % 2 else value for i, value in enumerate(rows[PACKED].to_pylist())]
    rows = rows.set_column(
        rows.schema.get_field_index(PACKED), PACKED, pa.array(packed, rows.schema.field(PACKED).type)
    )
    one = batch(texts)
    columns = {f.id: one.column(i) for i, f in enumerate(SCHEMA.fields)}
    wrong = []
    for text in [*FILTERS[::12], *(text for text in FILTERS if text.endswith("IS NULL"))]:
        keep, failed, _ = expr.filter_mask(tree(text), columns, len(one))
        decision = decided(text, rows)
        wrong += [
            (text, texts[i])
            for i in np.flatnonzero((decision.none & (keep | failed)) | (decision.all & ~keep)).tolist()
        ]
    assert wrong == []


def layouts_beyond_the_limit(rare: int) -> list[str | None]:
    """100 objects of one layout, and one with ``rare`` keys beside ``zz``: together more paths than are collected."""
    return [
        *(json.dumps({"zz": i % 10}) for i in range(100)),
        json.dumps({f"k{i:04}": i for i in range(rare)} | {"zz": 999}),
    ]


@pytest.mark.parametrize("rare", [3, 400, 498, 499, 500, 600])
def test_a_path_is_told_from_all_layouts_of_its_objects(rare: int) -> None:
    """The walk may end at its limit between two layouts: no path may keep the bounds of the first one alone."""
    rows = manifest(0, [batch(layouts_beyond_the_limit(rare))])
    assert not decided("v:zz::int > 500", rows).none.any()
    assert not decided("v:zz::int < 9", rows).all.any()


def test_nested_layouts_beyond_the_limit_are_not_half_told() -> None:
    texts = [json.dumps({"o": json.loads(text)}) for text in layouts_beyond_the_limit(600) if text]
    for order in (texts, texts[::-1]):
        assert not decided("v:o.zz::int > 500", manifest(0, [batch(list(order))])).none.any()


def test_rows_below_an_incomplete_object_of_an_earlier_writer_are_unknown() -> None:
    """Earlier writers stored bounds from some layouts only. Their rows have no ``walk``, in parts and in unions."""
    complete = [json.dumps({"zz": i % 10}) for i in range(100)]
    for texts, prunes in ((layouts_beyond_the_limit(600), False), (complete, True)):
        collector = Collector(SCHEMA)
        collector.update(batch(list(texts)))
        identifier = SCHEMA.find(("v",))[-1].id
        paths = collector.documents()[identifier]
        paths["$.zz"] = PathStatistics(LONG, 100, 0, (0, 9))
        table = table_of({identifier: paths})
        assert table is not None
        sizes = {"rows": pa.array([101], pa.int64())}
        for drop in (False, True):
            old = table.drop_columns([f"{identifier}|walk"]) if drop else table
            place = old.append_column("segment", pa.array([0] * len(old), pa.int32())).append_column(
                "part", pa.array([0] * len(old), pa.int32())
            )
            for found in (
                PathTable.of_segments(place, 1),
                *([] if not drop else [PathTable.of_segments(_united_alone(old), 1)]),
            ):
                decision = decide(tree("v:zz::int > 500"), TableEvidence(pa.table(sizes), SCHEMA, found), strict=True)
                assert decision.none.all() == (prunes or not drop)


def _united_alone(rows: pa.Table) -> pa.Table:
    """The union of one part's rows, as a segment has it."""
    found = union_of(rows.append_column("part", pa.array([0] * len(rows), pa.int32())), 1)
    assert found is not None
    return found.append_column("segment", pa.array([0] * len(found), pa.int32()))


@pytest.mark.parametrize(
    "text", ['{"a":' + "9" * 400 + "}", '{"a":[-' + "9" * 330 + "]}", '{"a":' * 350 + "1" + "}" * 350]
)
@pytest.mark.parametrize("before", [0, 40])
def test_documents_that_cannot_be_judged_are_appended_and_not_pruned(text: str, before: int) -> None:
    """Integers beyond double, and documents nested deeper than Python's stack: statistics give up, the append does not fail."""
    table = tamis.create(f"memory://unjudged-{hash(text)}-{before}", pa.schema([("j", pa.string())]))
    table.append(pa.table({"j": ['{"a": 1}'] * before + [text]}))
    assert len(table.scan("get_json_object(j, '$.a') = 'x'").plan().parts) == 1


def test_a_document_nested_too_deeply_for_python_is_left_to_spark() -> None:
    table = tamis.create("memory://deep", pa.schema([("j", pa.string())]))
    table.append(pa.table({"j": ['{"a":' * 900 + "1" + "}" * 900]}))
    with pytest.raises(InvalidInput):
        table.scan("get_json_object(j, '$.a') IS NULL").count()


def test_rows_of_many_columns_stand_side_by_side() -> None:
    """Statistics of many columns, one below the other, would have the square of the values."""
    one = {"$": PathStatistics(MAP, 3, 0), "$.a": PathStatistics(LONG, 3, 0, (1, 2))}
    narrow, wide = (table_of({i: dict(one) for i in range(count)}) for count in (10, 100))
    assert narrow is not None
    assert wide is not None
    assert len(narrow) == len(wide) == 2
    uneven = table_of({1: dict(one), 2: {"$": PathStatistics(MAP, 3, 0)}, 3: {}})
    assert uneven is not None
    assert uneven["2|path"].to_pylist() == ["$", None]
    assert "3|path" not in uneven.column_names
    joined = union_of(uneven.append_column("part", pa.array([0, 0], pa.int32())), 1)
    assert joined is not None
    assert joined.sort_by("1|path").equals(uneven)
