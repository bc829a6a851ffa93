"""Statistics of paths into documents, and what is decided by them: of parts, of their segment, and row by row."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import pyarrow as pa

from tamis.core import expr
from tamis.core.expr import conjuncts_of
from tamis.core.expr.json_codec.jackson_reader import Malformed
from tamis.core.expr.json_codec.variant_encoding import encode_variant
from tamis.core.pruning import Decision, decide
from tamis.core.stats import Collector, TableEvidence
from tamis.core.stats.json_paths.packed_paths import PACKED, PATHS, UNION, pack_paths, unpack_paths
from tamis.core.stats.json_paths.path_evidence import PathTable
from tamis.core.types import VARIANT
from tamis.core.types.arrow import to_arrow_schema, to_arrow_type
from tests.expr.documents import SCHEMA

TWICE = [
    '{"a": 7, "a": 1, "b": 2}',
    '{"a": null, "a": 7, "b": 2}',
    '{"a": 7, "a": null}',
    '{"a": {"x": 7}, "a": {"y": 1}, "b": 3}',
    '{"c": {"a": 7, "a": 8, "d": 1}, "a": 1, "b": 2}',
    '{"c": [{"a": 7, "a": 1}, {"a": 2}], "b": 4}',
    '{"a": 1, "c": [{"a": 2}, {"a": 7, "a": 1}]}',
]
PLAIN = [{"a": i, "b": i, "c": {"a": i, "d": i}} for i in range(10, 40)]
GETS = ["$.a", "$.b", "$.a.x", "$.c.a", "$.c.d", "$.c[0].a", "$.c[1].a", "$.c", "$.nothing", "$.c.nothing"]


def variants(texts: Sequence[str | None]) -> pa.Array:
    pairs: list[tuple[bytes, bytes] | None] = []
    for text in texts:
        try:
            pairs.append(None if text is None else encode_variant(text))
        except Malformed:
            pairs.append(None)
    parts = [pa.array([b"" if p is None else p[k] for p in pairs], pa.binary()) for k in (0, 1)]
    return pa.StructArray.from_arrays(
        parts, fields=list(to_arrow_type(VARIANT)), mask=pa.array([p is None for p in pairs])
    )


def batch(texts: Sequence[str | None]) -> pa.RecordBatch:
    return pa.record_batch(
        [variants(texts), pa.array(texts, pa.string()), pa.array(range(len(texts)), pa.int64())],
        schema=to_arrow_schema(SCHEMA),
    )


def manifest(part: int, batches: list[pa.RecordBatch]) -> pa.Table:
    collector = Collector(SCHEMA)
    for one in batches:
        collector.update(one)
    found, stats = collector.paths(), collector.finish()
    row = {"part_id": pa.array([str(part)]), "segment": pa.array([0], pa.int32()), "part": pa.array([part], pa.int32()), "rows": pa.array([sum(map(len, batches))], pa.int64())}  # fmt: skip
    row |= dict(zip(stats.column_names, stats.columns, strict=True)) | (
        {} if found is None else {PACKED: pa.array([pack_paths(found)])}
    )
    return pa.table(row)


@cache
def tree(text: str) -> tuple[expr.Expr, ...]:
    return conjuncts_of(expr.parse_predicate(text, SCHEMA))


def decided(text: str, rows: pa.Table) -> Decision:
    """As the funnel decides about parts."""
    table, tables = unpack_paths(rows)
    found = tables.get(PATHS)
    paths = (
        None
        if found is None
        else PathTable.of_parts(found.append_column("segment", pa.array([0] * len(found), pa.int32())), table)
    )
    return decide(tree(text), TableEvidence(table, SCHEMA, paths), strict=True)


def united(text: str, rows: pa.Table) -> Decision | None:
    """As the funnel decides about their segment."""
    table, tables = unpack_paths(rows)
    if UNION not in tables:
        return None
    whole = pa.table({"rows": pa.array([sum(table["rows"].to_pylist())], pa.int64())})
    found = tables[UNION].append_column("segment", pa.array([0] * len(tables[UNION]), pa.int32()))
    return decide(tree(text), TableEvidence(whole, SCHEMA, PathTable.of_segments(found, 1)), strict=True)


def outcome(text: str, one: pa.RecordBatch) -> tuple[bool, bool, bool]:
    """Whether some row passes, some fails, all pass."""
    columns = {f.id: one.column(i) for i, f in enumerate(SCHEMA.fields)}
    keep, failed, _ = expr.filter_mask(tree(text), columns, len(one))
    return bool(keep.any()), bool(failed.any()), bool(keep.all())


def check(parts: Sequence[Sequence[str | None]], texts: list[str]) -> None:
    """Statistics are collected once for all filters: that is what takes the time."""
    batches = [batch(rows) for rows in parts]
    rows = pa.concat_tables([manifest(i, [one]) for i, one in enumerate(batches)], promote_options="default")
    whole = manifest(0, batches)  # the same documents as blocks of one part
    for text in texts:
        outcomes = [outcome(text, one) for one in batches]
        decision = decided(text, rows)
        for (some, fails, every), none, all_ in zip(
            outcomes, decision.none.tolist(), decision.all.tolist(), strict=True
        ):
            assert not (none and (some or fails)), text
            assert not (all_ and not every), text
        for joint in (united(text, rows), decided(text, whole)):
            if joint is not None:
                assert not (joint.none[0] and any(some or fails for some, fails, _ in outcomes)), text
                assert not (joint.all[0] and not all(every for *_, every in outcomes)), text
