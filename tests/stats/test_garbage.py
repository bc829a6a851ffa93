"""Whatever a manifest holds, evidence answers: what cannot be true is unknown, never an exception, never 'empty'."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamis.core import expr
from tamis.core.pruning import decide
from tamis.core.stats import TableEvidence, union_statistics
from tamis.core.stats.json_paths.packed_paths import PATHS, pack_paths, unpack_paths
from tamis.core.stats.json_paths.path_evidence import PathTable
from tamis.core.stats.json_paths.path_rows import LONG as LONGS
from tamis.core.stats.json_paths.path_rows import MAP, ROOT, PathStatistics, table_of
from tamis.core.stats.statistics_decoding import reads_as
from tamis.core.types import DOUBLE, LONG, STRING, DataType, Field, Schema
from tests.values import ATOMIC, column, kind_of

NAN = float("nan")


def evidence(data_type: DataType, columns: dict[str, object]) -> TableEvidence:
    return TableEvidence(pa.table({"rows": [10], **columns}), Schema((Field("c", data_type, id=7),)))


BAD: dict[str, tuple[DataType, dict[str, object]]] = {
    "wrong type": (LONG, {"7|long|lo": ["a"], "7|long|hi": [True], "7|nulls": ["x"]}),
    "another type's bounds": (LONG, {"7|string|lo": ["a"], "7|string|hi": ["b"]}),
    "inverted": (LONG, {"7|long|lo": [5], "7|long|hi": [4]}),
    "not a number": (DOUBLE, {"7|double|lo": [NAN], "7|double|hi": [NAN]}),
    "half a number": (DOUBLE, {"7|double|lo": [1.0], "7|double|hi": [NAN]}),
    "no text": (STRING, {"7|string|lo": pa.array([b"\xff\xfe"]).view(pa.string()), "7|string|hi": ["z"]}),
    "said twice": (LONG, {"7|long|lo": [1], "7|long|hi": [2], "7|integer|lo": pa.array([5], pa.int32())}),
    "bounds of nothing": (LONG, {"7|long|lo": [1], "7|long|hi": [2], "7|nulls": [10]}),
    "more nulls than rows": (LONG, {"7|long|lo": [1], "7|long|hi": [2], "7|nulls": [11]}),
    "negative counts": (LONG, {"7|nulls": [-1]}),
    "counts that overflow": (DOUBLE, {"7|nulls": [2**62], "7|nans": [2**62]}),
    "unknown kind": (LONG, {"7|histogram": [1]}),
}


@pytest.mark.parametrize("case", BAD)
def test_what_cannot_be_is_unknown(case: str) -> None:
    data_type, columns = BAD[case]
    found = evidence(data_type, columns).column((7,))
    assert found is not None
    assert found.nulls.to_pylist() == [None]
    if case != "no text":
        assert (found.lo.to_pylist(), found.hi.to_pylist()) == ([None], [None])
    assert found.lo.to_pylist() == [None]


def test_missing_rows_are_unknown() -> None:
    table = pa.table({"7|nulls": [1], "rows": ["many"]})
    found = TableEvidence(table, Schema((Field("c", LONG, id=7),)))
    assert (len(found), found.rows().to_pylist()) == (1, [None])


def test_a_column_of_that_name_twice_is_unknown() -> None:
    table = pa.table([[10], [1], [9]], names=["rows", "7|long|lo", "7|long|lo"])
    found = TableEvidence(table, Schema((Field("c", LONG, id=7),))).column((7,))
    assert found is not None
    assert found.lo.to_pylist() == [None]


@pytest.mark.push_cases(17)
@pytest.mark.parametrize("data_type", ATOMIC, ids=kind_of)
@pytest.mark.parametrize("seed", range(3))
def test_random_bytes(data_type: DataType, seed: int) -> None:
    noise = np.random.default_rng(seed).bytes(4096)
    random = pa.py_buffer(noise)
    for stored in ATOMIC:
        from tamis.core.types.arrow import to_arrow_type

        arrow = to_arrow_type(stored)
        try:
            buffers = [None, random, random] if arrow in (pa.string(), pa.binary()) else [None, random]
            array = pa.Array.from_buffers(arrow, 4, buffers)
        except pa.ArrowException:
            continue
        table = pa.table(
            {
                "rows": [1, 2, 3, 4],
                f"7|{stored.to_json()}|lo": array,
                f"7|{stored.to_json()}|hi": array,
                "7|exact": pa.array([255] * 4, pa.uint8()),
            }
        )
        schema = Schema((Field("c", data_type, id=7),))
        found = TableEvidence(table, schema).column((7,))
        assert found is not None
        believed = reads_as(stored, data_type) and valid(array)
        assert believed or found.lo.null_count == found.hi.null_count == 4
        union_statistics(table)
        asked = [
            expr.parse_predicate(text, schema)
            for text in ("c IS NULL", "c IS NOT NULL", *(() if believed else COMPARED.get(kind_of(data_type), ())))
        ]
        for tree in asked:
            decision = decide([tree], TableEvidence(table, schema), strict=True)
            assert not (decision.none | decision.all).any(), f"{stored} as {data_type}: {expr.to_sql(tree)}"


COMPARED = {
    "boolean": ("c", "NOT c"),
    **dict.fromkeys(("byte", "short", "integer", "long", "float", "double"), ("c = 1", "c < 0", "c > 0")),
    "string": ("c = 'a'", "c < 'a'", "c LIKE 'b%'"),
    "date": ("c = DATE'2024-01-01'", "year(c) = 2024"),
    "timestamp": ("c < TIMESTAMP'2024-01-01 00:00:00'", "CAST(c AS DATE) > DATE'2024-01-01'"),
}


def valid(array: pa.Array) -> bool:
    try:
        array.validate(full=True)
    except pa.ArrowException:
        return False
    return True


@pytest.mark.parametrize("seed", range(20))
def test_paths_that_were_packed_by_nobody(seed: int) -> None:
    """Bytes in the place of packed paths, or a piece of good ones, or good ones with bytes changed, or another table: the other parts keep theirs, and nothing is skipped by these."""
    rng = np.random.default_rng(seed)
    good = pack_paths(table_of({7: {ROOT: PathStatistics(MAP, 10), "$.a": PathStatistics(LONGS, 10, 0, (1, 5))}}))
    other = {7: {ROOT: PathStatistics(MAP, 10), "$.a": PathStatistics(LONGS, 10, 0, (1, 5))}}
    changed = bytearray(good)
    changed[int(rng.integers(8, 400))] ^= 1 << int(rng.integers(8))  # in what says how the values are laid out
    wrong = {
        "noise": rng.bytes(int(rng.integers(0, 4096))),
        "cut short": good[: int(rng.integers(len(good) - 200))],
        "other columns": pack_paths(pa.table({"x": [seed]})),
        "the columns that say which part": pack_paths(pa.table({"part": ["none"], "part_id": [1]})),
        "other types": pack_paths(pa.table({"7|path": ["$"], "7|kinds": ["many"]})),
        "half of them": pack_paths(table_of(other).drop_columns(["7|kinds"])),
        "column of no number": pack_paths(pa.table({"x|path": ["$"]})),
    }
    schema = Schema((Field("s", STRING, id=7),))
    text = expr.parse_predicate("try_cast(get_json_object(s, '$.a') AS INT) > 100", schema)
    for kind, content in {**wrong, "changed": bytes(changed)}.items():
        row = {
            "part_id": ["a", "b"],
            "segment": pa.array([0, 0], pa.int32()),
            "part": pa.array([0, 1], pa.int32()),
            "rows": [10, 10],
        }
        manifest, tables = unpack_paths(pa.table({**row, "packed_paths": pa.array([content, good], pa.binary())}))
        assert "packed_paths" not in manifest.column_names
        assert len(tables[PATHS]) >= 2, kind
        found = tables[PATHS].append_column("segment", pa.array(np.zeros(len(tables[PATHS])), pa.int32()))
        none = decide(
            [text], TableEvidence(manifest, schema, PathTable.of_parts(found, manifest)), strict=True
        ).none.tolist()
        assert none[1], f"{kind}: the good part keeps what it said"
        assert kind == "changed" or not none[0], kind


@given(st.data())
def test_bounds_of_any_type_offered_to_any_other(data: st.DataObject) -> None:
    stored, asked = data.draw(st.sampled_from(ATOMIC)), data.draw(st.sampled_from(ATOMIC))
    bounds = data.draw(column(stored).filter(len))
    name = data.draw(st.sampled_from([stored, asked])).to_json()
    table = pa.table({f"7|{name}|lo": bounds, f"7|{name}|hi": bounds, "rows": [1] * len(bounds)})
    found = TableEvidence(table, Schema((Field("c", asked, id=7),))).column((7,))
    assert found is not None
    assert len(found.lo) == len(bounds)
    union_statistics(table)
