"""Positions of arrays and keys of maps: what is decided by their statistics holds for the rows, and the usual filters skip."""

from __future__ import annotations

from collections.abc import Sequence
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamis.core import expr
from tamis.core.pruning import decide
from tamis.core.stats import Collector, TableEvidence, union_statistics
from tamis.core.stats.columns import map_keys
from tamis.core.types import INTEGER, LONG, STRING, Array, Field, Map, Schema
from tamis.core.types.arrow import to_arrow_schema
from tamis.storage.object_store.metadata_union import stack_tables
from tests.stats.placed_rows import (
    FORMS,
    KINDS,
    Kind,
    evidence_of,
    manifest_row,
    rows_of,
    schema_of,
    some_filter,
    united,
    without_places,
)

KEY = Field("key", STRING, nullable=False)
SCHEMA = Schema((Field("x", Array(Field("element", LONG))), Field("m", Map(KEY, Field("value", LONG))))).assign_ids(0)


def judge(
    schema: Schema, conjuncts: Sequence[expr.Expr], text: str, evidence: TableEvidence, pieces: list[pa.Table]
) -> int:
    """Raise where a decision is contradicted by rows; return how many pieces were decided."""
    decision = decide(conjuncts, evidence, strict=True)
    for number, rows in enumerate(pieces):
        if not (decision.none[number] or decision.all[number]):
            continue
        batch = {f.id: rows.column(i).combine_chunks() for i, f in enumerate(schema.fields)}
        keep, failed, error = expr.filter_mask(conjuncts, batch, rows.num_rows)
        if decision.none[number]:
            assert not keep.any(), f"wrong skip: {text}\n{rows.slice(int(keep.argmax()), 1).to_pylist()}"
            assert not failed.any(), f"hidden error {error}: {text}\n{rows.slice(int(failed.argmax()), 1).to_pylist()}"
        if decision.all[number]:
            assert keep.all(), f"wrong all: {text}\n{rows.slice(int((~keep).argmax()), 1).to_pylist()}"
    return int((decision.none | decision.all).sum())


def check(seed: int, kind: Kind) -> tuple[int, int]:
    """Judge filters on random pieces and segments; return decisions with and without statistics of places."""
    rng = np.random.default_rng(seed)
    schema = schema_of(kind, (FORMS[seed % len(FORMS)],))
    with patch.object(map_keys, "MOST_KEYS", int(rng.choice((2, 4, 32)))):
        pieces = [rows_of(rng, schema, kind, 100 * int(rng.integers(4))) for _ in range(6)]
        whole = [manifest_row(rng, schema, rows) for rows in pieces]
    plain = [without_places(row) for row in whole]
    mixed = [
        manifest_row(rng, schema, rows, int(rng.integers(100, 3000))) if rng.random() < 0.3 else row if rng.random() < 0.8 else old
        for rows, row, old in zip(pieces, whole, plain, strict=True)
    ]  # fmt: skip
    cuts = [(0, 1), (1, 3), (3, 6)]
    segments = [pa.concat_tables(pieces[a:b]) for a, b in cuts]
    parts = [evidence_of(schema, rows) for rows in (whole, plain, mixed)]
    unions = [evidence_of(schema, [united(rows[a:b]) for a, b in cuts]) for rows in (whole, mixed)]
    decided = [0, 0]
    for _ in range(15):
        found, text = some_filter(rng, schema, kind, ansi=bool(rng.random() < 0.4))
        conjuncts = expr.conjuncts_of(found)
        decided[0] += judge(schema, conjuncts, text, parts[0], pieces)
        decided[1] += judge(schema, conjuncts, text, parts[1], pieces)
        judge(schema, conjuncts, text, parts[2], pieces)
        for of_segments in unions:
            judge(schema, conjuncts, text, of_segments, segments)
    return decided[0], decided[1]


@pytest.mark.push_cases(3)
@pytest.mark.parametrize("name", KINDS)
def test_decisions_hold_for_the_rows(name: str) -> None:
    totals = np.sum([check(seed, KINDS[name]) for seed in range(len(FORMS))], axis=0)
    assert totals[0] > totals[1], "places decide nothing: the test could not fail"


@pytest.mark.slow
@given(st.integers(0, 2**63 - 1))
def test_random_decisions_hold(seed: int) -> None:
    check(seed, KINDS[list(KINDS)[seed % len(KINDS)]])


def decided(text: str, rows: list[pa.Table], schema: Schema = SCHEMA) -> tuple[list[bool], list[bool]]:
    """Return which pieces are skipped, and which match wholly."""
    found = decide(expr.conjuncts_of(expr.parse_predicate(text, schema)), evidence_of(schema, rows), strict=True)
    return found.none.tolist(), found.all.tolist()


def piece(x: Sequence[object], m: Sequence[object]) -> pa.Table:
    rows = pa.Table.from_pylist([{"x": a, "m": b} for a, b in zip(x, m, strict=True)], schema=to_arrow_schema(SCHEMA))
    return manifest_row(np.random.default_rng(0), SCHEMA, rows)


PIECES = [
    piece([[1, 90], [2, 95, None]], [[("k", 1), ("z", 90)], [("z", 95), ("k", 2)]]),
    piece([[50, 60], [51, 61]], [[("k", 50)], [("k", 51), ("z", None)]]),
    piece([[], None, [7]], [[], None, [("z", 7)]]),
]
SKIPPED = {
    "x[0] = 2": [False, True, False],
    "get(x, 0) = 90": [True, True, True],
    "get(x, 1) = 50": [True, True, True],
    "try_element_at(x, 1) > 40": [True, False, True],
    "element_at(x, 2) = 60": [True, False, False],
    "get(x, 2) IS NOT NULL": [True, True, True],
    "get(x, 0) IS NULL": [True, True, False],
    "get(x, 7) = 1": [True, True, True],
    "get(x, 8) = 1": [True, True, True],
    "try_element_at(x, -1) = 1": [False, True, True],
    "m['k'] = 2": [False, True, True],
    "m.k > 40": [True, False, True],
    "element_at(m, 'z') < 50": [True, True, False],
    "try_element_at(m, 'z') IS NULL": [True, False, False],
    "m['none'] = 5": [True, True, True],
    "m['k'] IS NULL": [True, True, False],
    "m['z'] IS NOT NULL": [False, True, False],
}
"""Filters, and which of the pieces they skip. This list may only grow."""


@pytest.mark.parametrize("text", SKIPPED)
def test_usual_filters_skip(text: str) -> None:
    assert decided(text, PIECES)[0] == SKIPPED[text]


def test_whole_pieces_match() -> None:
    assert decided("get(x, 0) >= 50", PIECES)[1] == [False, True, False]
    assert decided("m['k'] >= 50", PIECES)[1] == [False, True, False]
    assert decided("m['z'] IS NOT NULL", PIECES)[1] == [True, False, False]


def test_parts_without_them_beside_parts_with() -> None:
    older = [PIECES[0], without_places(PIECES[1]), PIECES[2]]
    assert decided("m['k'] = 2", older)[0] == [False, True, True]
    assert decided("get(x, 0) = 60", older)[0] == [True, False, True]
    assert decided("get(x, 2) IS NOT NULL", older)[0] == [True, False, True]
    assert decided("get(x, 1) IS NULL", older)[0] == [True, True, False]


def test_a_segment_has_what_all_its_parts_have() -> None:
    assert decided("get(x, 0) BETWEEN 3 AND 6", [united(PIECES)])[0] == [False]
    assert decided("get(x, 0) > 51", [united(PIECES)])[0] == [True]
    assert decided("get(x, 0) > 61", [united([PIECES[0], without_places(PIECES[1])])])[0] == [False]
    assert decided("m['none'] = 7", [united(PIECES)])[0] == [True]
    assert decided("m['k'] > 51", [united(PIECES)])[0] == [True]
    assert decided("m['k'] > 51", [united([PIECES[0], without_places(PIECES[1])])])[0] == [False]


def test_many_parts_with_other_keys_make_a_small_union() -> None:
    row = united([piece([[]], [[(f"k{i}", i), ("all", i)]]) for i in range(60)])
    (places,) = row["5|places"].to_pylist()
    assert len(places) == map_keys.MOST_KEYS
    assert "all" in places
    assert not row["5|listed"][0].as_py()
    assert decided("m['all'] > 59", [row])[0] == [True]
    assert decided("m['none'] = 3", [row])[0] == [True]  # beyond the bounds of all keys
    assert decided("m['k59'] = 3", [row])[0] == [False]


def test_keys_are_the_same_ones_in_every_part(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(map_keys, "MOST_KEYS", 2)
    entries = [[("b", 1), ("a", 1), ("c", 1)], [("a", 2), ("c", 3)], [("a", 4), ("b", 5), ("c", 6), ("d", 1)]]
    for start in range(3):
        rows = [{"x": [], "m": entries[(start + i) % 3]} for i in range(3)]
        collector = Collector(SCHEMA)
        collector.update(pa.RecordBatch.from_pylist(rows, schema=to_arrow_schema(SCHEMA)))
        row = collector.finish().to_pylist()[0]
        assert (row["5|places"], row["5|listed"]) == (["a", "c"], False)


def test_keys_that_are_ids_are_given_up() -> None:
    rows = [{"x": [], "m": [(f"id-{i}-{j}", j) for j in range(3)]} for i in range(50)]
    collector = Collector(SCHEMA)
    collector.update(pa.RecordBatch.from_pylist(rows, schema=to_arrow_schema(SCHEMA)))
    assert not [name for name, _, _ in collector.figures() if name.startswith("5|place")]


@pytest.mark.parametrize("twice", [[("k", 5), ("k", None)], [("k", None), ("k", 5)], [("k", 5), ("k", 6)]])
def test_a_key_that_is_there_twice_is_unknown(twice: list[object]) -> None:
    for rows in ([twice, []], [twice, [("z", 1)]], [twice, twice]):
        collector = Collector(SCHEMA)  # one block, however many rows are alike
        batch = [{"x": [], "m": entries} for entries in rows]
        collector.update(pa.RecordBatch.from_pylist(batch, schema=to_arrow_schema(SCHEMA)))
        row = collector.finish().append_column("rows", pa.array([2]))
        assert decided("m['k'] IS NULL", [row])[0] == [False]
        assert decided("m['k'] IS NOT NULL", [row])[1] == [False]


def test_later_blocks_add_keys_while_all_are_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(map_keys, "MOST_KEYS", 2)
    collector = Collector(SCHEMA)
    for entries in ([("a", 1)], [("b", 2)], [("c", 3), ("b", 9)], [("d", 4)]):
        collector.update(pa.RecordBatch.from_pylist([{"x": [], "m": entries}], schema=to_arrow_schema(SCHEMA)))
    row = collector.finish().to_pylist()[0]
    assert (row["5|places"], row["5|listed"], row["5|placed_count"]) == (["a", "b"], False, [1, 2])
    assert row["5|long|placed_hi"] == [1, 9]


def test_a_key_that_was_passed_over_is_not_taken_up_later() -> None:
    """Its values in earlier blocks have not been counted."""
    collector = Collector(SCHEMA)
    for rows in ([[("k" * 70, 1)]], [[("q", 5)], [("p", 1), ("r", 2)]], [[("q", 9)], [("q", 9)]]):
        batch = [{"x": [], "m": entries} for entries in rows]
        collector.update(pa.RecordBatch.from_pylist(batch, schema=to_arrow_schema(SCHEMA)))
    row = collector.finish().to_pylist()[0]
    assert (row["5|places"], row["5|listed"]) == ([], False)


def test_null_rows_and_slices_have_no_places() -> None:
    """A NULL array may have values behind it, and a slice has others around it."""
    hidden = pa.ListArray.from_arrays(
        pa.array([0, 2, 4, 6], pa.int32()), pa.array([1, 2, 100, 200, 3, 4]), mask=pa.array([False, True, False])
    )
    collector = Collector(Schema(SCHEMA.fields[:1]))
    collector.update(pa.record_batch([hidden], names=["x"]).slice(1, 2))
    row = collector.finish().to_pylist()[0]
    assert (row["2|places"], row["2|long|placed_lo"], row["2|placed_count"]) == (["0", "1"], [3, 4], [1, 1])


def test_a_widened_element_keeps_its_places() -> None:
    narrow = Schema((Field("x", Array(Field("element", INTEGER, id=2)), id=1),), schema_id=0)
    wide = Schema((Field("x", Array(Field("element", LONG, id=2)), id=1),), schema_id=1)
    rows = []
    for schema, value in ((narrow, 5), (wide, 2**40)):
        collector = Collector(schema)
        collector.update(pa.RecordBatch.from_pylist([{"x": [value, 7]}], schema=to_arrow_schema(schema)))
        facts = {"rows": pa.array([1]), "schema_id": pa.array([schema.schema_id], pa.int32())}
        rows.append(pa.table({**{n: collector.finish()[n] for n in collector.finish().column_names}, **facts}))
    found = expr.conjuncts_of(expr.parse_predicate("get(x, 0) > 5", wide))
    assert decide(found, TableEvidence(stack_tables(rows), {0: narrow, 1: wide}), strict=True).none.tolist() == [
        True,
        False,
    ]
    assert decide(
        found,
        TableEvidence(stack_tables([union_statistics(stack_tables(rows)).append_column("rows", pa.array([2]))]), wide),
    ).none.tolist() == [False]


NONSENSE: dict[str, dict[str, object]] = {
    "no list": {"2|places": ["0"]},
    "another length": {"2|places": [["0", "1", "2", "3"]]},
    "twice": {"2|places": [["0", "0"]]},
    "bounds outside of all bounds": {"2|long|placed_lo": [[-1000, 0]], "2|long|placed_hi": [[-900, 0]]},
    "negative counts": {"2|placed_count": [[-1, -1]]},
    "more NULLs than elements": {"2|placed_nulls": [[9, 9]]},
    "inverted": {"2|long|placed_lo": [[80, 80]], "2|long|placed_hi": [[70, 70]]},
    "no lists of counts": {"2|placed_count": [None]},
    "texts": {"2|placed_count": [["a", "b"]]},
}


@pytest.mark.parametrize("case", NONSENSE)
def test_nonsense_is_unknown(case: str) -> None:
    row = piece([[50, 60], [51, 61]], [[], []])
    for name, value in NONSENSE[case].items():
        kind = row.schema.field(name).type
        try:
            array = pa.array(value, kind)
        except (pa.ArrowException, TypeError):
            array = pa.array(value)
        row = row.set_column(row.schema.get_field_index(name), name, array)
    for found in (row, united([row, row])):
        for text in ("get(x, 0) = 50", "get(x, 1) = 61", "get(x, 0) IS NOT NULL"):
            assert decided(text, [found])[0] == [False], text
            assert not any(decided(f"NOT ({text})", [found])[1]), text
