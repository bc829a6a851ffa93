"""First and last clustering tuples: what they skip holds no match, and a filter on a prefix of the clustering columns does skip."""

from __future__ import annotations

from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamis.core import expr
from tamis.core.expr import conjuncts_of
from tamis.core.pruning import Decision, decide
from tamis.core.stats import Collector, TableEvidence
from tamis.core.stats.columns.clustering_tuples import end_statistics
from tamis.core.stats.statistics_budget import trim_statistics
from tamis.core.types import DOUBLE, LONG, STRING, Field, Schema
from tamis.core.types.arrow import to_arrow_schema
from tamis.engine.part_writer.clustering_order import ClusteringOrder

SCHEMA = Schema((Field("a", LONG, True, 1), Field("b", STRING, True, 2), Field("x", DOUBLE, True, 3)))
CLUSTER = ((1,), (2,), (3,))
LONG_TEXT = "z" * 100
ROW = st.tuples(
    st.sampled_from([None, 1, 2, 3]),
    st.sampled_from([None, "", "k", "p", LONG_TEXT + "a", LONG_TEXT + "c"]),
    st.sampled_from([None, -0.0, 0.0, 1.5, float("nan"), float("-inf")]),
)
FILTERS = [
    "a = 2 AND b = 'k'", "b = 'k' AND a = 2", "a = 2 AND b = 'p' AND x = 0.0", "a <= 2 AND b < 'k'", "a >= 2 AND b > 'k'", "a = 1 AND b IS NULL",
    f"a = 3 AND b = '{LONG_TEXT}b'", "a = 2 AND x > 1.0", "a IN (1, 3) AND b >= 'k' AND x <= 0.0", "a IS NOT NULL AND b = ''", "a = 2 AND b = 'p' AND isnan(x)",
    "a IS NULL AND b = 'k'", "a = 2 AND b = 'k' AND x IS NULL", "a > 1 AND b = 'p' AND x = 1.5",
]  # fmt: skip


def part(
    rows: list[tuple[Any, ...]],
    with_ends: bool = True,
    cluster: tuple[tuple[int, ...], ...] = CLUSTER,
    room: int = 10**6,
) -> tuple[pa.RecordBatch, pa.Table]:
    """The rows in clustering order, and their manifest row with statistics of at most ``room`` bytes."""
    columns = [
        pa.array(list(values), f.type)
        for values, f in zip(zip(*rows, strict=True), to_arrow_schema(SCHEMA), strict=True)
    ]
    batch = pa.record_batch(columns, schema=to_arrow_schema(SCHEMA))
    batch = batch.take(ClusteringOrder(SCHEMA, cluster).sort(batch))
    collector = Collector(SCHEMA)
    collector.update(batch)
    figures = end_statistics(SCHEMA, cluster, batch.slice(0, 1), batch.slice(len(batch) - 1)) if with_ends else ()
    left = trim_statistics(chain(collector.figures(), figures), {}, room)
    assert left.size <= room
    return batch, pa.table({"rows": pa.array([len(batch)], pa.int64())} | left.statistics)


def decided(text: str, manifest: pa.Table) -> Decision:
    tree = expr.parse_predicate(text, SCHEMA)
    return decide(conjuncts_of(tree), TableEvidence(manifest, SCHEMA), strict=True)


@given(
    st.lists(st.lists(ROW, min_size=1, max_size=6), min_size=1, max_size=4),
    st.sampled_from(FILTERS),
    st.permutations(CLUSTER),
    st.sampled_from([10**6, 400, 300, 250, 200, 150, 100, 50, 0]),
)
def test_no_part_with_a_match_is_skipped(
    parts: list[list[tuple[Any, ...]]], text: str, cluster: Any, room: int
) -> None:
    made = [part(rows, cluster=tuple(cluster), room=room) for rows in parts]
    decision = decided(text, pa.concat_tables([m for _, m in made], promote_options="default"))
    for (batch, _), none, all_ in zip(made, decision.none, decision.all, strict=True):
        columns = {f.id: batch.column(i) for i, f in enumerate(SCHEMA.fields)}
        keep, failed, _ = expr.filter_mask(conjuncts_of(expr.parse_predicate(text, SCHEMA)), columns, len(batch))
        assert not (none and (keep | failed).any()), text
        assert not (all_ and not keep.all()), text


A_TO_C = [(1, "p", 0.0), (2, "k", None), (3, "k", 1.5)]


@pytest.mark.parametrize(
    ("text", "skips"),
    [
        ("a = 1 AND b = 'k'", True),  # before the first tuple
        ("b = 'k' AND a = 1", True),
        ("a = 3 AND b = 'p'", True),  # behind the last
        ("a = 1 AND b = 'p'", False),
        ("a <= 1 AND b < 'o'", True),
        ("a IN (1) AND b = 'k'", True),
        ("a = 3 AND b = 'k' AND x > 1.6D", True),
        ("a = 3 AND b = 'k' AND x = 1.5D", False),
        ("a = 1 AND b IS NOT NULL AND b = 'k'", True),
        ("a = 2 AND b = 'p'", False),  # nothing but the order of all rows would tell
        ("a = 1 AND 1 / x > 0 AND b = 'k'", False),  # may fail before
    ],
)
def test_a_prefix_prunes(text: str, skips: bool) -> None:
    _, manifest = part(A_TO_C)
    assert decided(text, manifest).none.tolist() == [skips]
    if skips and "1.6" not in text:
        assert decided(text, part(A_TO_C, with_ends=False)[1]).none.tolist() == [False]


def test_the_last_columns_of_a_tuple_go_first() -> None:
    """A prefix of the tuple is left, and prunes; no budget leaves a column without all that it needs."""
    kinds = ("rank", "edge", "first", "last")
    ranks = []
    for room in range(400, -1, -4):
        names = part(A_TO_C, room=room)[1].column_names
        left = {name.partition("|")[0] for name in names if name.endswith("|rank")}
        for identifier in ("1", "2", "3"):
            held = [kind for kind in kinds if any(n[:2] == f"{identifier}|" and n.endswith(f"|{kind}") for n in names)]
            assert held == (list(kinds) if identifier in left else [])
        ranks.append(len(left))
        assert left == set(["1", "2", "3"][: len(left)])
    assert ranks == sorted(ranks, reverse=True)
    assert set(ranks) == {3, 2, 1, 0}
    _, manifest = part(A_TO_C, room=next(400 - 4 * at for at, left in enumerate(ranks) if left == 2))
    assert decided("a = 1 AND b = 'k'", manifest).none.tolist() == [True]


def test_shortened_text_is_no_tie() -> None:
    """What the budget shortens is no longer exact: ``b`` may begin with it, and go on."""
    text = "q" * 30
    rows = [(1, text + "c", 5.0), (1, text + "d", 7.0), (1, text + "d", 8.0)]
    room = next(room for room in range(10**3, 0, -1) if _first(part(rows, room=room)[1]) not in (None, text + "c"))
    _, manifest = part(rows, room=room)
    assert text.startswith(str(_first(manifest)))
    assert decided(f"a = 1 AND b = '{text}c' AND x = 5.0D", manifest).none.tolist() == [False]
    assert decided(f"b = '{_first(manifest)}' AND a = 1", manifest).none.tolist() == [True]
    assert decided(f"a = 1 AND b = '{text}d' AND x = 8.0D", manifest).none.tolist() == [False]


def _first(manifest: pa.Table) -> Any:
    name = next((name for name in manifest.column_names if name.startswith("2|") and name.endswith("|first")), None)
    return None if name is None else manifest[name][0].as_py()


def test_who_skipped_is_named() -> None:
    decision = decided("a = 1 AND b = 'k'", part(A_TO_C)[1])
    assert decision.skipped_by.tolist() == [1]
    assert decision.statistics[1] == ["b", "order by a, b"]


def test_nulls_come_first() -> None:
    rows = [(None, "p", 0.0), (None, "q", 0.0), (5, "a", 0.0)]
    _, manifest = part(rows)
    manifest = manifest.drop_columns(
        [name for name in manifest.column_names if name.endswith("|set")]
    )  # which know better
    assert decided("a IS NULL AND b = 'k'", manifest).none.tolist() == [False]
    assert decided("a = 5 AND b = 'b'", manifest).none.tolist() == [True]
    _, manifest = part([(1, None, 0.0), (1, None, 1.5), (2, "k", 0.0)])
    assert decided("a = 1 AND b = 'k'", manifest).none.tolist() == [False]
    assert decided("a = 2 AND b = 'p'", manifest).none.tolist() == [True]


def test_cut_text_is_no_tie() -> None:
    """The tuple keeps a prefix: equal to it is not equal to the value, and what lies behind in the order may still be there."""
    _, manifest = part([(1, LONG_TEXT + "c", 0.0), (1, LONG_TEXT + "d", 7.0), (1, LONG_TEXT + "d", 8.0)])
    assert decided(f"b = '{LONG_TEXT[:64]}' AND a = 1", manifest).none.tolist() == [True]
    assert decided(f"a = 1 AND b = '{LONG_TEXT}c' AND x = 0.0D", manifest).none.tolist() == [False]


@given(st.integers(0, 2**32 - 1))
def test_garbage_is_unknown(seed: int) -> None:
    rng = np.random.default_rng(seed)
    _, manifest = part(A_TO_C)
    for at, f in enumerate(manifest.schema):
        if f.name.partition("|")[2].split("|")[-1] in {"rank", "edge", "first", "last"} and rng.integers(2):
            junk: list[Any] = [
                pa.array([None], f.type),
                pa.array([None]),
                pa.array([rng.bytes(3)]),
                pa.array([int(rng.integers(-128, 127))], pa.int8()),
            ]
            manifest = manifest.set_column(at, f.name, junk[rng.integers(len(junk))])
    assert decided("a = 2 AND b = 'k'", manifest).none.tolist() == [False]
