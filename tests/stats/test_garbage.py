"""Whatever a manifest holds, evidence answers: what cannot be true is unknown, never an exception, never 'empty'."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamis.stats import TableEvidence, union
from tamis.types import DOUBLE, LONG, STRING, DataType, Field, Schema
from tests.values import ATOMIC, column, kind_of

NAN = float("nan")


def evidence(data_type: DataType, columns: dict[str, object]) -> TableEvidence:
    return TableEvidence(pa.table({"rows": [10], **columns}), Schema((Field("c", data_type, id=7),)))


BAD = {
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


@pytest.mark.parametrize("data_type", ATOMIC, ids=kind_of)
@pytest.mark.parametrize("seed", range(3))
def test_random_bytes(data_type: DataType, seed: int) -> None:
    noise = np.random.default_rng(seed).bytes(4096)
    random = pa.py_buffer(noise)
    for stored in ATOMIC:
        from tamis.types.arrow import to_arrow_type

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
        TableEvidence(table, Schema((Field("c", data_type, id=7),))).column((7,))
        union(table)


@given(st.data())
def test_bounds_of_any_type_offered_to_any_other(data: st.DataObject) -> None:
    stored, asked = data.draw(st.sampled_from(ATOMIC)), data.draw(st.sampled_from(ATOMIC))
    bounds = data.draw(column(stored).filter(len))
    name = data.draw(st.sampled_from([stored, asked])).to_json()
    table = pa.table({f"7|{name}|lo": bounds, f"7|{name}|hi": bounds, "rows": [1] * len(bounds)})
    found = TableEvidence(table, Schema((Field("c", asked, id=7),))).column((7,))
    assert found is not None
    assert len(found.lo) == len(bounds)
    union(table)
