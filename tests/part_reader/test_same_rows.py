"""Lazy, eager and deciding by itself, with any block size: the rows of a plain filter, and no error that it would not have."""

from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamis.core.expr import conjuncts_of, filter_mask, parse_predicate
from tamis.core.types import DOUBLE, INTEGER, LONG, STRING, Array, Field, Map, Schema, Struct
from tamis.core.types.arrow import to_arrow_schema
from tamis.engine.part_reader import ReadCounters, ReadSpec, read_part
from tamis.engine.part_reader.live_rows import POSITION
from tamis.errors import InvalidInput
from tamis.storage.commit_log.deletion_vectors import serialize_vector
from tamis.storage.files import PartRef
from tamis.storage.files.parquet import parquet_part
from tamis.storage.object_store import open_store
from tests.files.parts import write_part

URL = "memory://same-rows"
SCHEMA = Schema(
    (
        Field("n", INTEGER, id=1),
        Field("x", DOUBLE, id=2),
        Field("s", STRING, id=3),
        Field(
            "st",
            Struct(
                (Field("a", LONG, id=5), Field("b", STRING, id=6), Field("in", Struct((Field("c", LONG, id=8),)), id=7))
            ),
            id=4,
        ),
        Field("l", Array(Field("element", LONG, id=10)), id=9),
        Field("m", Map(Field("key", STRING, nullable=False, id=12), Field("value", LONG, id=13)), id=11),
    )
)
FILTERS = [
    *(
        "n = 1",
        "n > 0 AND x < 1",
        "n IS NULL",
        "s LIKE 'a%'",
        "s IN ('a', 'b') OR n = 2",
        "st.a = 1",
        "st.b = 'b' AND st.in.c > 0",
        "st IS NULL",
    ),
    *(
        "NOT (n = 1)",
        "x > 0",
        "x = 'NaN'",
        "n = 1 AND 10 / n > 1",
        "n > -3",
        "n > 100",
        "false",
        "n + 1 = 2 OR st.in.c IS NULL",
        "x <= 0 AND s >= ''",
    ),
]
FILTERS += ["10 / n > 1", "x < 1 AND 10 / n >= 5", "10 / n >= 5 AND s = 'a'"]  # each fails where n is 0
SELECTIONS: list[tuple[str, ...]] = [("n", "x", "s", "st", "l", "m"), ("s",), (), ("st",), ("m", "n"), ("x", "n")]


def rows() -> st.SearchStrategy[list[dict[str, Any]]]:
    small = st.none() | st.integers(-2, 2)
    text = st.none() | st.sampled_from(["", "a", "ab", "b"])
    double = st.none() | st.sampled_from([0.0, -0.0, 1.0, -1.0, float("nan"), float("inf")])
    inner = st.none() | st.builds(lambda c: {"c": c}, small)
    struct = st.none() | st.builds(lambda a, b, c: {"a": a, "b": b, "in": c}, small, text, inner)
    row = st.builds(
        lambda n, x, s, t, ls, m: {"n": n, "x": x, "s": s, "st": t, "l": ls, "m": m},
        small, double, text, struct, st.none() | st.lists(small, max_size=2), st.none() | st.just([("k", 1)]),
    )  # fmt: skip
    return st.lists(row, max_size=24)


def stored(
    data: list[dict[str, Any]], cuts: list[int], schema: Schema = SCHEMA, form: str = "parquet"
) -> tuple[PartRef, pa.RecordBatch]:
    """A part with blocks that end at ``cuts``."""
    whole = pa.RecordBatch.from_pylist(data, schema=to_arrow_schema(schema))
    ends = sorted({*(min(c, len(data)) for c in cuts), len(data)} - {0})
    blocks = [whole.slice(a, b - a) for a, b in zip([0, *ends], ends, strict=False)]
    return write_part(open_store(URL), schema, blocks, form=form), whole


def plain(whole: pa.RecordBatch, spec: ReadSpec, keep_failed: bool) -> pa.RecordBatch:
    """The simplest way: every column of every row, then the filter."""
    columns = {f.id: whole.column(at) for at, f in enumerate(SCHEMA)}
    keep, failed, _ = filter_mask(spec.conjuncts, columns, len(whole))
    if failed.any() and not keep_failed:
        raise InvalidInput("a row fails")
    kept = whole.filter(pa.array(keep | failed))
    return kept.select([*(f.name for f in spec.schema), *(["_position"] if spec.positions else [])])


@given(
    rows(),
    st.lists(st.integers(0, 24), max_size=4),
    st.sampled_from(FILTERS),
    st.sampled_from(SELECTIONS),
    st.sampled_from(["raise", "keep"]),
    st.sets(st.integers(0, 23)) | st.just(set()),
    st.booleans(),
)
def test_lazy_is_eager_is_plain(
    data: list[dict[str, Any]],
    cuts: list[int],
    text: str,
    selected: tuple[str, ...],
    errors: str,
    gone: set[int],
    positions: bool,
) -> None:
    gone = {row for row in gone if row < len(data)}
    filters = conjuncts_of(parse_predicate(text, SCHEMA))
    spec = ReadSpec(
        URL, SCHEMA.select(selected), {0: SCHEMA}, conjuncts=filters, errors=errors, batch_rows=5, positions=positions
    )
    for form in ("parquet", "vortex", "orc"):
        ref, whole = stored(data, cuts, form=form)
        ref = replace(ref, deletion=serialize_vector(np.array(sorted(gone), dtype=np.int64)) if gone else None)
        whole = whole.append_column("_position", pa.array(range(len(whole)), pa.int64()))
        whole = whole.filter(pa.array([at not in gone for at in range(len(data))], pa.bool_()))
        try:
            expected = plain(whole, spec, errors == "keep")
        except InvalidInput:
            expected = None
        for lazy in ("on", "off", "auto"):
            check(ref, replace(spec, lazy=lazy), expected)


def check(ref: PartRef, spec: ReadSpec, expected: pa.RecordBatch | None) -> None:
    """The rows are ``expected``; None: the filter fails."""
    counters = ReadCounters()
    batches = read_part(ref, spec, counters)
    if expected is None:
        with pytest.raises(InvalidInput, match="FILTER_FAILED"):
            list(batches)
        return
    arrow = to_arrow_schema(spec.schema)
    got = list(batches)
    assert all(0 < len(b) <= 5 for b in got)
    assert all(b.schema.equals(arrow.append(POSITION) if spec.positions else arrow, check_metadata=True) for b in got)
    assert sum(len(b) for b in got) == len(expected) == counters.rows_matched
    assert str([r for b in got for r in b.to_pylist()]) == str(expected.to_pylist())
    done = counters.blocks_skipped_stats + counters.blocks_skipped_filter + counters.blocks_read
    assert counters.blocks_total == len(ref.blocks) == done


def test_all_match_is_believed() -> None:
    ref, whole = stored([{"n": i, **dict.fromkeys(SCHEMA.names[1:])} for i in range(10)], [5])
    spec = ReadSpec(URL, SCHEMA.select(("n",)), {0: SCHEMA}, conjuncts=conjuncts_of(parse_predicate("n < 100", SCHEMA)))
    counters = ReadCounters()
    assert [
        n for b in read_part(replace(ref, all_match=True), spec, counters) for n in b.column(0).to_pylist()
    ] == whole.column(0).to_pylist()
    assert (counters.rows_leader, counters.bytes_leader) == (0, 0)


def test_a_count_does_not_open_the_part() -> None:
    ref = PartRef("gone", "data/gone.parquet", "parquet", 0, 150_000, 1)
    spec = ReadSpec(URL, SCHEMA.select(()), {0: SCHEMA}, batch_rows=100_000)
    counters = ReadCounters()
    assert [len(b) for b in read_part(ref, spec, counters)] == [100_000, 50_000]
    assert (counters.rows_matched, counters.requests) == (150_000, 0)


def test_rows_of_many_blocks_and_batches_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parquet_part, "PIECE_BYTES", 100_000)  # followers come in several pieces
    n = np.arange(200_000)
    schema = Schema(SCHEMA.fields[:2])
    arrow = to_arrow_schema(schema)
    blocks = [
        pa.record_batch([n[i : i + 9_000].astype("i4"), n[i : i + 9_000] / 2], schema=arrow)
        for i in range(0, len(n), 9_000)
    ]
    ref = write_part(open_store(URL), schema, blocks, "many")
    spec = ReadSpec(URL, schema, {0: schema}, conjuncts=conjuncts_of(parse_predicate("n % 3 = 0", schema)))
    for lazy in ("on", "off", "auto"):
        table = pa.Table.from_batches(list(read_part(ref, replace(spec, lazy=lazy), ReadCounters())))
        assert table["n"].to_pylist() == n[::3].tolist()
        assert table["x"].to_pylist() == (n[::3] / 2).tolist()
    everything = replace(spec, conjuncts=(), positions=True)
    assert (
        pa.Table.from_batches(list(read_part(ref, everything, ReadCounters())))["_position"].to_pylist() == n.tolist()
    )
