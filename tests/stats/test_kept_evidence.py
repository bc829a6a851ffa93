"""What evidence decodes of a table is kept by column, and is what decoding it again would give."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import tamis
from tamis.core.stats import TableEvidence
from tamis.core.stats.statistics_columns import COUNTS, NO_ROOM, count_name
from tamis.core.types import LONG, Field, Schema
from tamis.engine.part_reader import evidence_of
from tamis.storage.commit_log import load
from tamis.storage.object_store import open_store


def plain(answer: Any) -> Any:
    """An answer as Python values, which ``==`` compares."""
    if answer is None or isinstance(answer, int | bool):
        return answer
    if isinstance(answer, pa.Array | pa.ChunkedArray):
        return answer.to_pylist()
    if isinstance(answer, np.ndarray):
        return answer.tolist()
    return [plain(getattr(answer, name)) for name in ("rank", "first", "last", "first_exact", "last_null")]


def test_answers_are_kept_by_column(tmp_path: Path) -> None:
    schema = pa.schema([("a", pa.int64()), ("b", pa.string()), ("c", pa.int32()), ("d", pa.binary())])
    table = tamis.create(tmp_path / "t", schema, cluster_by=("a", "b"))
    for start in (0, 40, 80):
        rows = {
            "a": range(start, start + 8),
            "b": [f"w{start + i % 3}" for i in range(8)],
            "c": [start, start + 1] * 4,
            "d": [b"k"] * 8,
        }
        table.append(pa.table({name: list(values) for name, values in rows.items()}, schema))
    snapshot = load(open_store(tmp_path / "t"))
    schemas = {s.schema_id: s for s in snapshot.head.schemas}
    assert snapshot.head.schema is not None
    columns = [(f.id,) for f in snapshot.head.schema]
    parts = snapshot.parts(None, frozenset(i for (i,) in columns))
    assert parts.column(0).num_chunks == 1, "few rows in many chunks are put together once"
    assert snapshot.parts(None, frozenset(i for (i,) in columns)) is parts
    kept = evidence_of(parts, schemas)
    assert evidence_of(parts, schemas) is kept
    seen = []
    for ids in [*columns, *reversed(columns)]:
        fresh = TableEvidence(parts, schemas)
        for name in ("edges", "values"):
            assert plain(getattr(kept, name)(ids)) == plain(getattr(fresh, name)(ids)), (name, ids)
        seen.append([plain(kept.edges(ids)), plain(kept.values(ids))])
        assert kept.edges(ids) is kept.edges(ids)
        assert kept.values(ids) is kept.values(ids)
    assert all(one != other for at, one in enumerate(seen[:2]) for other in seen[at + 1 : 4]), "columns differ"


def test_trimmed_bounds_are_kept_by_column() -> None:
    schema = Schema((Field("a", LONG, True, 1), Field("b", LONG, True, 2)))
    flags = {
        count_name(1, "exact"): pa.array([NO_ROOM, 0], COUNTS["exact"]),
        count_name(2, "exact"): pa.array([0, NO_ROOM], COUNTS["exact"]),
    }
    evidence = TableEvidence(pa.table({"rows": pa.array([1, 1], pa.int64()), **flags}), schema)
    for _ in range(2):
        assert evidence.trimmed((1,)).to_pylist() == [True, False]
        assert evidence.trimmed((2,)).to_pylist() == [False, True]
