"""Elements of lists by position: each of the first eight has statistics of its own, and all have some together."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tamis
from tamis.core.expr.json_codec import variant_columns
from tamis.core.expr.json_codec.json_path import ELEMENT, placed_steps, stored_path
from tamis.core.pruning import decide
from tamis.core.stats import Collector, TableEvidence
from tamis.core.stats.json_paths import document_template, path_rows, path_selection, similar_documents, text_paths
from tamis.core.stats.json_paths.path_evidence import PathTable
from tamis.core.stats.json_paths.path_rows import (
    INCOMPLETE,
    Paths,
    combine_paths,
    list_of_position,
    parent_of,
    table_of,
)
from tamis.core.stats.statistics_budget import Priorities, trim_statistics
from tests.expr.documents import SCHEMA
from tests.stats.document_paths import batch, check, decided, manifest, outcome, tree

MUST_SKIP = """
get_json_object(s, '$.p[0]') = 'a'
cast(get_json_object(s, '$.p[0]') AS INT) > 99
get_json_object(s, '$.p[1]') < 'a'
get_json_object(s, '$.p[1]') IS NULL
get_json_object(s, '$.p[2]') IS NOT NULL
get_json_object(s, '$.p[7]') = 'x'
get_json_object(s, '$.p[8]') = '1000'
get_json_object(s, '$.items[0].sku') > 'a~'
get_json_object(s, '$.items[1].sku') < 'b'
get_json_object(s, '$.items[1].price') IS NOT NULL
get_json_object(s, '$.m[0][1]') = '7'
cast(get_json_object(s, '$.m[1][1]') AS INT) < 200
variant_get(v, '$.p[0]', 'int') > 99
variant_get(v, '$.p[0]', 'string') = 'a'
v:p[0]::int = 1000
v:p[0] IS NULL
v:p[3] IS NOT NULL
try_variant_get(v, '$.items[0].sku', 'string') > 'a~'
v:items[1].sku::string < 'b'
v:items[2].sku::string = 'b1'
v:m[0][1]::int = 7
v:m[1][1]::int < 200
is_variant_null(v:p[1])
""".strip().splitlines()
"""Each of these excludes the parts of ``ROWS``. The list may only grow."""
ROWS = [
    {
        "p": [i, "a" + str(i)],
        "items": [{"sku": f"a{i}", "price": i}, {"sku": f"b{i}"}],
        "m": [["c", 100 + i], ["d", 200 + i]],
    }
    for i in range(40)
]
FORMS = ("one by one", "by templates", "spaced")


@pytest.mark.push_cases(23)
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("text", MUST_SKIP)
def test_it_must_skip(text: str, form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(similar_documents, "ENOUGH", 10**9 if form == "one by one" else similar_documents.FEW)
    separators = (", ", ": ") if form == "spaced" else (",", ":")
    texts = [json.dumps(row, separators=separators) for row in ROWS]
    assert decided(text, manifest(0, [batch(list(texts))])).none[0]
    parts = pa.concat_tables([manifest(i, [batch(list(texts[i::2]))]) for i in range(2)])
    assert decided(text, parts).none.all()


def test_documents_with_lists_are_read_by_templates(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else the cases above would not show what templates say."""
    parsed: list[int] = []
    real = text_paths.parsed_documents
    monkeypatch.setattr(similar_documents, "ENOUGH", similar_documents.FEW)

    def counted(texts: list[str], *decoder: json.JSONDecoder) -> list[Any]:
        parsed.append(len(texts))
        return real(texts, *decoder)

    monkeypatch.setattr(text_paths, "parsed_documents", counted)
    similar_documents.Documents().paths_of(pa.array([json.dumps(row) for row in ROWS]))
    assert parsed == [1]


SCALARS = st.sampled_from([None, True, 0, 1, 5, -7, 2.5, "a", "b", "5", "2024-01-01"])
ITEMS = SCALARS | st.dictionaries(st.sampled_from(["x", "[0]", "a[0]", "it's"]), SCALARS, max_size=2)
LISTS = st.lists(ITEMS | st.lists(ITEMS, max_size=3), max_size=10)
OBJECTS = st.dictionaries(st.sampled_from(["p", "p[0]"]), LISTS | LISTS | SCALARS, max_size=2).map(json.dumps)
PARTS = st.lists(st.lists(OBJECTS | st.none(), min_size=1, max_size=5), min_size=1, max_size=3)
PLACES = [
    *(f"$.p[{position}]" for position in (0, 1, 2, 7, 8, 9)),
    "$.p[0].x", "$.p[1][0]", "$.p[0][1].x", "$.p[9].x", "$.p[\\'[0]\\']", "$.p[0][\\'a[0]\\']", "$[\\'p[0]\\'][1]", "$.p",
]  # fmt: skip
FILTERS = [
    form.format(place)
    for place in PLACES
    for form in (
        "get_json_object(s, '{0}') = '5'",
        "get_json_object(s, '{0}') > 'a'",
        "get_json_object(s, '{0}') IS NULL",
        "get_json_object(s, '{0}') IS NOT NULL",
        "try_cast(get_json_object(s, '{0}') AS INT) < 1",
        "try_variant_get(v, '{0}', 'int') >= 5",
        "variant_get(v, '{0}', 'string') = 'b'",
        "variant_get(v, '{0}') IS NULL",
    )
]
SOME = st.lists(st.sampled_from(FILTERS), min_size=4, max_size=4)


@given(PARTS, SOME)
def test_what_is_proved_of_positions_holds(parts: list[list[str | None]], filters: list[str]) -> None:
    check(parts, filters)


@given(PARTS, SOME, st.integers(1, 12))
def test_it_holds_where_positions_were_given_up(parts: list[list[str | None]], filters: list[str], most: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(path_selection, "MOST_PATHS", most)
        patch.setattr(text_paths, "MOST_PATHS", most)
        patch.setattr(text_paths, "AT_ONCE", 2)
        check(parts, filters)


@given(PARTS, SOME)
def test_it_holds_for_documents_read_by_templates(parts: list[list[str | None]], filters: list[str]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(similar_documents, "ENOUGH", 1)
        patch.setattr(similar_documents, "FEW", 1)
        check([part * 3 for part in parts], filters)


def paths_of(texts: list[str | None]) -> dict[int, Paths]:
    collector = Collector(SCHEMA)
    collector.update(batch(texts))
    return collector.documents()


def proved_none(text: str, paths: dict[int, Paths], rows: int, *, joined: bool = False) -> bool:
    table = table_of(paths)
    if table is None:
        return False
    found = table.append_column("segment", pa.array(np.zeros(len(table), np.int32)))
    stored_paths = PathTable(found, np.zeros(len(found), np.int64), 1, joined=joined)
    evidence = TableEvidence(pa.table({"rows": [rows]}), SCHEMA, stored_paths)
    return bool(decide(tree(text), evidence, strict=True).none[0])


@given(PARTS, SOME, st.integers(0, 2_000), st.sampled_from([(), ("$.p[1]",), ("$.p[0].x",), ("$.p[*]",)]))
def test_it_holds_after_trimming(
    parts: list[list[str | None]], filters: list[str], room: int, last: tuple[str, ...]
) -> None:
    texts = list(chain.from_iterable(parts))
    paths = paths_of(texts)
    trim_statistics([], paths, room, Priorities(last=frozenset((i, path) for i in paths for path in last)))
    for text in filters:
        some, fails, _ = outcome(text, batch(texts))
        assert not (proved_none(text, paths, len(texts)) and (some or fails)), text


def earlier(paths: Paths) -> Paths:
    """Rows as writers before positions left them."""
    return {path: replace(one, walk=1) for path, one in paths.items() if list_of_position(path) is None}


@given(PARTS, SOME)
def test_rows_of_earlier_writers_hold_for_every_position(parts: list[list[str | None]], filters: list[str]) -> None:
    """Alone, and joined with newer ones in either order, by this version and as theirs did it, which took positions for keys."""
    texts = list(chain.from_iterable(parts))
    new, old = paths_of(list(parts[0])), paths_of(list(chain.from_iterable(parts[1:])) or [None])
    aged = {i: earlier(paths) for i, paths in old.items()}
    naive = {i: {**combine_paths(earlier(new[i]), aged[i])} for i in new}
    for i, paths in naive.items():
        paths |= {path: one for path, one in new[i].items() if path not in paths and parent_of(path) in paths}
    everything = {
        "alone": {i: combine_paths(earlier(new[i]), aged[i]) for i in new},
        "after": {i: combine_paths(new[i], aged[i]) for i in new},
        "before": {i: combine_paths(aged[i], new[i]) for i in new},
        "by the earlier version": naive,
    }
    rows = batch([*texts, *([None] if len(parts) == 1 else [])])
    for text in filters:
        some, fails, _ = outcome(text, rows)
        for how, joined in everything.items():
            assert not (proved_none(text, joined, len(rows), joined=True) and (some or fails)), (text, how)


def parent_by_keys(path: str) -> str | None:
    """``parent_of`` as writers before positions had it: a position is part of the key before it."""
    if path == path_rows.ROOT:
        return None
    if path.endswith("[*]"):
        return path[:-3]
    if path.endswith("']"):
        return path[: path.rindex("['", 0, -2)]
    return path[: path.rindex(".")] if "." in path else path_rows.ROOT


def test_a_position_that_one_part_gave_up_says_nothing_after_an_earlier_writer() -> None:
    low, high = (paths_of([json.dumps({"p": [n]})]) for n in (1, 1_000))
    for paths in high.values():
        paths.pop("$.p[0]")
        paths["$.p"].kinds |= INCOMPLETE
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(path_rows, "parent_of", parent_by_keys)
        joined = {i: combine_paths(low[i], high[i]) for i in low}
    assert all("$.p[0]" in paths for paths in joined.values())
    for text in ("v:p[0]::int = 1000", "get_json_object(s, '$.p[0]') = '1000'"):
        assert not proved_none(text, joined, 2, joined=True)
    assert proved_none("v:p[0]::int = 1001", joined, 2, joined=True), "all elements together still exclude"


def test_elements_of_earlier_writers_still_exclude() -> None:
    texts: list[str | None] = [json.dumps({"p": [i, i + 1]}) for i in range(9)]
    aged = {i: earlier(found) for i, found in paths_of(texts).items()}
    assert proved_none("v:p[0]::int > 9", aged, 9)
    assert proved_none("get_json_object(s, '$.p[3]') > 'a'", aged, 9)
    assert not proved_none("v:p[3] IS NOT NULL", aged, 9), "absence is not known"


@pytest.mark.parametrize("kept", [(), ("$.p[0]",), ("$.q[*].k3",)])
def test_positions_are_given_up_before_keys(kept: tuple[str, ...]) -> None:
    rows = [json.dumps({"p": [i, "a", [i]], "q": [{f"k{j}": j for j in range(40)}] * 9, "z": i}) for i in range(30)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(path_selection, "MOST_PATHS", 80)
        collector = Collector(SCHEMA, keep=[(2, path) for path in kept])
        for start in range(0, 30, 10):
            collector.update(batch(list(rows[start : start + 10])))
    paths = collector.documents()[2]
    assert {f"$.q[*].k{j}" for j in range(40)} <= paths.keys()
    assert paths["$.p[0]"].long == (0, 29), "the list with fewer rows stays"
    assert not any(path.startswith("$.q[0]") for path in paths)
    assert paths["$.q"].kinds & INCOMPLETE


def test_the_budget_drops_positions_first_and_recent_ones_last() -> None:
    texts: list[str | None] = [json.dumps({"p": [i, 2 * i, 3 * i], "z": {"y": {"x": i}}}) for i in range(9)]
    paths = {2: paths_of(texts)[2]}
    size = trim_statistics([], paths, 10**6).size
    trim_statistics([], paths, size - 80, Priorities(last=frozenset({(2, "$.p[1]")})))
    assert "$.p[1]" in paths[2]
    assert "$.p[0]" not in paths[2]
    assert "$.z.y.x" in paths[2]
    assert paths[2]["$.p"].kinds & INCOMPLETE
    assert proved_none("get_json_object(s, '$.p[1]') IS NULL", paths, 9)


@given(st.lists(st.sampled_from(["a", "[0]", "['", "it's", 0, 1, 7, 8, 30]), max_size=5))
def test_where_statistics_of_a_path_stand(steps: list[str | int]) -> None:
    """At most two positions, each of one digit below eight, and none after a step to any element."""
    placed = placed_steps(tuple(steps))
    whole = [step for step in placed if isinstance(step, int)]
    named = [step for step in whole if step != ELEMENT]
    assert whole[: len(named)] == named
    assert len(named) <= 2
    assert all(0 <= step < 8 for step in named)
    path, at = stored_path(tuple(steps)), list_of_position(stored_path(tuple(steps)))
    last = max((i for i, step in enumerate(placed) if isinstance(step, int) and step != ELEMENT), default=None)
    assert at == (None if last is None else stored_path(placed[:last]))
    assert parent_of(path) == (stored_path(placed[:-1]) if placed else None)


def _shifted_text(patch: pytest.MonkeyPatch) -> None:
    real = text_paths._by_position
    patch.setattr(text_paths, "_by_position", lambda lists, placed: _shifted(real(lists, placed)))


def _shifted(groups: Any) -> Any:
    return ((at if at == ELEMENT else (at + 1) % 8, values) for at, values in groups)


def _shifted_variant(patch: pytest.MonkeyPatch) -> None:
    real = variant_columns.elements

    def broken(nodes: Any) -> Any:
        rows, at, nth = real(nodes)
        return rows, at, nth + 1

    patch.setattr(variant_columns, "elements", broken)


def _shifted_template(patch: pytest.MonkeyPatch) -> None:
    real = document_template._add
    patch.setattr(
        document_template,
        "_add",
        lambda paths, steps, found: real(
            paths, tuple(step + 1 if isinstance(step, int) and step != ELEMENT else step for step in steps), found
        ),
    )


def _first_positions_only(patch: pytest.MonkeyPatch) -> None:
    """The row of all elements lacks those that have a row by position."""
    patch.setattr("tamis.core.stats.json_paths.element_paths.combine_paths", lambda mine, theirs: theirs)


def _positions_of_anyone(patch: pytest.MonkeyPatch) -> None:
    """Rows by position are believed whoever wrote them."""
    patch.setattr(path_rows, "PLACED_ELEMENTS", 1)


DOCUMENT = [json.dumps({"p": [*range(i, i + 10)]}) for i in range(20)]
ALIKE = [json.dumps({"p": [f"a{i}", "b", "c"]}) for i in range(20)]


def _holds(form: str, text: str) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(similar_documents, "ENOUGH", 10**9 if form == "one by one" else 1)
        check([list(DOCUMENT), list(ALIKE)], [text])


def _earlier_holds() -> None:
    paths = {i: earlier(found) for i, found in paths_of(list(DOCUMENT)).items()}
    assert not proved_none("v:p[3]::int = 3", paths, 20)
    aged = {i: found | {"$.p[3]": replace(found["$.p[*]"], long=(90, 99))} for i, found in paths.items()}
    assert not proved_none("v:p[3]::int = 3", aged, 20)


PLANTED: dict[str, tuple[Callable[[], None], Callable[[pytest.MonkeyPatch], None]]] = {
    "text: shifted": (lambda: _holds("one by one", "get_json_object(s, '$.p[0]') = '0'"), _shifted_text),
    "VARIANT: shifted": (lambda: _holds("one by one", "v:p[0]::int = 0"), _shifted_variant),
    "templates: shifted": (lambda: _holds("by templates", "get_json_object(s, '$.p[0]') = 'a0'"), _shifted_template),
    "all elements without the first": (_earlier_holds, _first_positions_only),
    "positions of earlier writers": (_earlier_holds, _positions_of_anyone),
}


@pytest.mark.parametrize("way", PLANTED)
def test_a_planted_bug_would_be_seen(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    holds, plant = PLANTED[way]
    holds()
    plant(monkeypatch)
    with pytest.raises(AssertionError):
        holds()


@pytest.mark.parametrize("kind", ["text", "VARIANT"])
def test_a_table_finds_elements_by_position(kind: str) -> None:
    """Through parts, segments and a compaction."""
    types = [("n", pa.int64()), ("b", batch(["{}"]).column(kind == "text").type)]
    table = tamis.create(f"memory://positions-{kind}", pa.schema(types))
    for day in range(4):
        rows = [{"p": [day * 10 + n, "x"], "items": [{"sku": f"s{day}"}]} for n in range(10)]
        texts: list[str | None] = [json.dumps(row) for row in rows]
        table.append(pa.table({"n": list(range(10)), "b": batch(texts).column(kind == "text")}))
    get = "CAST(get_json_object(b, '{0}') AS {1})" if kind == "text" else "variant_get(b, '{0}', '{1}')"
    wanted = {get.format("$.p[0]", "INT") + " = 25": 1, get.format("$.items[0].sku", "STRING") + " = 's2'": 10}
    for text, count in wanted.items():
        assert (len(table.scan(text).plan().parts), table.scan(text).count()) == (1, count)
    assert len(table.scan(get.format("$.p[2]", "STRING") + " IS NOT NULL").plan().parts) == 0
    table.compact()
    for text, count in wanted.items():
        assert table.scan(text).count() == count
    assert len(table.scan(get.format("$.p[0]", "INT") + " > 39").plan().parts) == 0
