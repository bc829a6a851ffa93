"""A merge looks its keys up in a large source, and finds the pairs that a join with the whole source finds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tamis
from tamis.core.types import DOUBLE, LONG, STRING, DataType, Field, Schema
from tamis.core.types.arrow import to_arrow_schema
from tamis.engine.operations.rows import key_lookup, merge_keys
from tamis.engine.operations.rows import merge as merge_module
from tamis.engine.operations.rows.merge_keys import SourceKeys, equality_bits
from tamis.engine.operations.rows.merge_plan import MergePlan, merge_plan
from tamis.engine.scan import Options
from tests.values import ATOMIC, FLOATS, array, column


def planned(kinds: list[DataType]) -> tuple[MergePlan, pa.Schema]:
    schema = Schema(tuple(Field(f"k{i}", kind, True, i + 1) for i, kind in enumerate(kinds)))
    given, on = to_arrow_schema(schema), " AND ".join(f"target.{name} = source.{name}" for name in schema.names)
    return merge_plan(schema, given, on, [], len(kinds), Options()), given


def joined_whole(keys: SourceKeys, arrays: dict[int, pa.Array]) -> list[tuple[int, int]]:
    """The pairs that Arrow's join with all rows of the source gives."""
    names = keys.compared.column_names
    group = pa.table([equality_bits(pa.chunked_array([a])) for a in arrays.values()], names=names)
    group = group.append_column("t", pa.array(np.arange(len(group))))
    source = keys.compared.append_column("s", pa.array(np.arange(len(keys.compared))))
    joined = group.join(source, keys=names, join_type="inner", use_threads=False)
    return sorted(zip(joined["t"].to_pylist(), joined["s"].to_pylist(), strict=True))


def compared(source: pa.Table, kinds: list[DataType], groups: list[list[pa.Array]]) -> int:
    """Compare the pairs of each group after the first, which is joined with the whole source; return their number."""
    plan, _ = planned(kinds)
    keys, number = SourceKeys(plan, source, None), 0
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(merge_keys, "LOOKUP_RATIO", 0)
        patch.setattr(key_lookup, "_PIECE_BYTES", 64)
        for group in [groups[0], *groups]:
            arrays = {i + 1: a for i, a in enumerate(group)}
            t, s = keys.pairs(arrays, len(group[0]))
            assert list(zip(t.tolist(), s.tolist(), strict=True)) == joined_whole(keys, arrays)
            number += len(t)
    assert len(source) == 0 or keys._lookup is not None
    return number


@given(data=st.data(), kinds=st.lists(st.sampled_from(ATOMIC), min_size=1, max_size=3))
@settings(deadline=None)
def test_a_lookup_finds_what_a_join_finds(data: st.DataObject, kinds: list[DataType]) -> None:
    """Values of a few rows are repeated: NULLs, NaNs of other bits, both zeros, empty and long texts."""
    pools = [data.draw(column(kind)) for kind in kinds]
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))

    def drawn(length: int) -> list[pa.Array]:
        """Slices that begin anywhere in their arrays."""
        start = int(rng.integers(0, 10))
        indices = [
            pa.array(rng.integers(0, len(p), length + start) if len(p) else [None] * (length + start), pa.int64())
            for p in pools
        ]
        return [p.take(i).slice(start) for p, i in zip(pools, indices, strict=True)]

    _, schema = planned(kinds)
    pieces = [pa.table(drawn(length), schema=schema) for length in data.draw(st.lists(st.integers(0, 40), max_size=3))]
    compared(pa.concat_tables([schema.empty_table(), *pieces]), kinds, [drawn(n) for n in (0, 1, 20)])


SPECIAL: dict[str, tuple[list[DataType], list[list[Any]]]] = {
    "floats": ([DOUBLE], [[*FLOATS, None] * 2]),
    "texts that differ in one byte": ([STRING], [["x" * at + "y" + "x" * (n - at) for n in (7, 8, 9, 63, 64, 65, 127, 130, 200) for at in range(n)]]),
    "many of one key": ([LONG, STRING], [[1, 1, 1, 2, None, None] * 5, ["a", "b", "b", "a", None, "a"] * 5]),
}  # fmt: skip


@pytest.mark.parametrize("case", SPECIAL)
def test_awkward_keys_are_found(case: str) -> None:
    kinds, items = SPECIAL[case]
    arrays = [array(one, kind) for one, kind in zip(items, kinds, strict=True)]
    _, schema = planned(kinds)
    assert compared(pa.table(arrays, schema=schema), kinds, [arrays, [a.slice(1, 9) for a in arrays]]) > 10


def test_keys_are_told_apart() -> None:
    """Else all rows would be candidates. Texts differ where they are hashed: at their ends."""
    count = 20_000
    numbers = pa.array(np.arange(count))
    for keys in (
        [numbers],
        [numbers.cast(pa.float64())],
        [numbers.cast(pa.decimal128(38, 10))],
        [numbers.cast(pa.string())],
        [pa.array([f"https://a.com/{'b' * 300}/{i}" for i in range(count)])],
        [pa.array([f"{i} {'b' * 300}" for i in range(count)]).cast(pa.binary())],
        [pa.array(np.arange(count) % 2), pa.array(np.arange(count) // 2)],
    ):
        names = [f"k{i}" for i in range(len(keys))]
        table = pa.table(keys, names=names)
        found = key_lookup.KeyLookup(table, names).candidates(table.slice(100, 50))
        assert found is not None
        assert found.to_pydict() == table.slice(100, 50).to_pydict()


def test_keys_with_null_are_never_candidates() -> None:
    """What lies below a NULL is usually 0 or an empty text, as some keys are."""
    keys = pa.table({"a": pa.array([None, 0, None, 1]), "b": ["x", "", None, None]})
    found = key_lookup.KeyLookup(keys, ["a", "b"]).candidates(keys)
    assert found is not None
    assert found.to_pylist() == [{"a": 0, "b": ""}]


def test_the_groups_of_a_merge_join_the_source_once_between_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each join made a hash table of the whole source: of 2,000 rows for 60."""
    joined: list[int] = []
    real = SourceKeys._candidates

    def noted(keys: SourceKeys, group: pa.Table) -> pa.Table:
        found = real(keys, group)
        joined.append(len(found))
        return found

    table = tamis.create(tmp_path / "t", "id BIGINT, v STRING")
    table.append(pa.table({"id": range(0, 4_000, 2), "v": ["old"] * 2_000}))
    monkeypatch.setattr(merge_module, "GROUP_BYTES", 1_000)
    monkeypatch.setattr(SourceKeys, "_candidates", noted)
    result = table.upsert(pa.table({"id": range(2_000), "v": ["new"] * 2_000}), "id")
    assert (result.rows_updated, result.rows_inserted) == (1_000, 1_000)
    assert len(joined) > 10
    assert sum(joined) < 2_000 + 1_000
    assert table.scan("v = 'new'").count() == 2_000
