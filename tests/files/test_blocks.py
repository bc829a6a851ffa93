"""Blocks and rows: chosen ones come, in order, and nothing else is fetched."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamis.core.pruning.evidence import ColumnEvidence
from tamis.core.stats import TableEvidence
from tamis.core.types import DOUBLE, LONG, STRING, DataType, Field, Schema
from tamis.core.types.arrow import to_arrow_schema
from tamis.errors import InvalidInput
from tamis.storage.files import PartRef, create_part, open_part
from tamis.storage.files.parquet.row_group_statistics import NANS
from tamis.storage.object_store.store import open_store
from tests.files.parts import write_part
from tests.values import ATOMIC, column, kind_of

STORE = open_store("memory://blocks")
SCHEMA = Schema((Field("n", LONG, id=1), Field("s", STRING, id=2)))
SIZES = (5, 1, 7, 3)


def part_of(sizes: tuple[int, ...] = SIZES, form: str = "parquet") -> PartRef:
    batches, start = [], 0
    for size in sizes:
        numbers = list(range(start, start + size))
        batches.append(pa.record_batch([numbers, [str(n) for n in numbers]], schema=to_arrow_schema(SCHEMA)))
        start += size
    return write_part(STORE, SCHEMA, batches, f"blocks-{form}", form=form)


FORMATS = ["parquet", "vortex", "orc"]
REFS = {form: part_of(form=form) for form in FORMATS}
REF = REFS["parquet"]


@pytest.mark.parametrize("form", FORMATS)
@given(st.sets(st.integers(0, len(SIZES) - 1)), st.none() | st.sets(st.integers(0, sum(SIZES) - 1)))
def test_chosen_blocks_and_rows(form: str, blocks: set[int], rows: set[int] | None) -> None:
    part = open_part(STORE, REFS[form], SCHEMA)
    sizes = REFS[form].blocks
    blocks = {b for b in blocks if b < len(sizes)}
    starts = np.concatenate([[0], np.cumsum(sizes)])
    expected = [n for b in sorted(blocks) for n in range(starts[b], starts[b + 1]) if rows is None or n in rows]
    ordinals = None if rows is None else np.array(sorted(rows), dtype=np.int64)
    pieces = list(part.read([1, 2], sorted(blocks), ordinals))
    assert [n for p in pieces for n in p.positions.tolist()] == expected
    assert [n for p in pieces for n in p.batch.column("1").to_pylist()] == expected
    assert [s for p in pieces for s in p.batch.column("2").to_pylist()] == [str(n) for n in expected]


@pytest.mark.parametrize("form", FORMATS)
def test_no_columns_still_have_rows(form: str) -> None:
    pieces = list(open_part(STORE, REFS[form], SCHEMA).read([], range(len(REFS[form].blocks))))
    assert [(p.batch.num_columns, p.batch.num_rows) for p in pieces] == [(0, 16)]


@pytest.mark.parametrize("form", FORMATS)
def test_a_column_that_the_file_lacks_is_left_out(form: str) -> None:
    (piece,) = open_part(STORE, REFS[form], SCHEMA).read([99, 1], [0])
    assert piece.batch.schema.names == ["1"]


def test_only_what_is_asked_for_is_fetched() -> None:
    wide = part_of((50_000,) * 10)  # its first block does not come with the footer
    part = open_part(STORE, wide, SCHEMA)
    before = part.io.bytes
    list(part.read([1], [0]))
    assert part.io.bytes - before == part.cost([1], [0]) < wide.bytes * 0.7


def test_many_small_blocks_come_in_few_pieces() -> None:
    ref = part_of((100,) * 40)
    part = open_part(STORE, ref, SCHEMA)
    before = part.io.requests
    pieces = list(part.read([1, 2], range(40)))
    assert len(pieces) == 1
    assert part.io.requests - before <= 1  # none if all of it came with the footer


def test_unknown_format_is_named() -> None:
    with pytest.raises(InvalidInput, match="arrowhead"):
        create_part(STORE, "data/x", "arrowhead", to_arrow_schema(SCHEMA))


def evidence(
    data_type: DataType, blocks: list[pa.Array], notes: dict[str, str], form: str = "parquet"
) -> ColumnEvidence:
    schema = Schema((Field("c", data_type, id=7),))
    ref = write_part(
        STORE, schema, [pa.record_batch([b], schema=to_arrow_schema(schema)) for b in blocks], notes=notes, form=form
    )
    found = TableEvidence(open_part(STORE, ref, schema).statistics({7}), schema).column((7,))
    assert found is not None
    return found


@pytest.mark.parametrize("form", ["parquet", "vortex"])
@pytest.mark.parametrize("data_type", ATOMIC, ids=kind_of)
@given(st.data())
@pytest.mark.push_cases(12)
def test_statistics_of_blocks_admit_the_data(data_type: DataType, form: str, data: st.DataObject) -> None:
    blocks = data.draw(st.lists(column(data_type).filter(len), min_size=1, max_size=3))
    found = evidence(data_type, blocks, {}, form)
    raw = pa.binary() if data_type == STRING else pa.int64() if pa.types.is_duration(blocks[0].type) else None
    for at, block in enumerate(blocks):
        values = [v for v in block.cast(raw or block.type) if v.is_valid and v.as_py() == v.as_py()]
        low, high = (end.cast(raw or block.type)[at] for end in (found.lo, found.hi))
        assert found.nulls[at].as_py() in (None, block.null_count)
        assert not low.is_valid or all(low.as_py() <= v.as_py() for v in values)
        assert not high.is_valid or all(high.as_py() >= v.as_py() for v in values)


def test_blocks_have_bounds_and_know_of_no_nans_when_the_file_says_so() -> None:
    blocks = [pa.array([1.0, 2.0]), pa.array([3.0, None])]
    assert evidence(DOUBLE, blocks, {}).nans.to_pylist() == [None, None]
    block_evidence = evidence(DOUBLE, blocks, {NANS: '{"7": 0}'})
    assert (block_evidence.lo.to_pylist(), block_evidence.hi.to_pylist(), block_evidence.nans.to_pylist()) == (
        [1.0, 3.0],
        [2.0, 3.0],
        [0, 0],
    )
    assert evidence(DOUBLE, blocks, {NANS: "no json"}).nans.to_pylist() == [None, None]
