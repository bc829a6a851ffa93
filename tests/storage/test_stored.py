"""Tables at rest: any columns come back as they were, only their bytes are read, and no damage goes unseen."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamis.errors import CorruptData, StoreUnavailable
from tamis.storage.object_store import Store, metadata_files, open_store
from tamis.storage.object_store.checked_parquet import GROUP_ROWS
from tamis.storage.object_store.metadata_files import Columns, Inline, Stored, columns_from_json, store_rows
from tests.storage.making import forget, manifest, memory

TABLE = pa.table(
    {
        "part_id": ["a", "b", None],
        "blocks": pa.array([[1, 2], None, []], pa.list_(pa.int32())),
        "deep": pa.array(
            [{"x": 1, "y": [{"z": 2}]}, None, {"x": None, "y": None}],
            pa.struct([("x", pa.int8()), ("y", pa.list_(pa.struct([("z", pa.int64())])))]),
        ),
        "map": pa.array([[("k", 1)], [], None], pa.map_(pa.string(), pa.int64())),
        "1|long|lo": pa.array([1, None, -(2**63)], pa.int64()),
        "2|decimal(38,9)|lo": pa.array([Decimal("1.5"), None, Decimal("-0.000000001")], pa.decimal128(38, 9)),
        "3|timestamp|lo": pa.array([dt.datetime(1500, 1, 1, tzinfo=dt.UTC), None, None], pa.timestamp("us", tz="UTC")),
        "4|double|hi": pa.array([-0.0, float("inf"), None], pa.float64()),
        "5|binary|hi": pa.array([b"\xff", b"", None], pa.binary()),
        "6|void|lo": pa.nulls(3),
        "7|exact": pa.array([0, 3, None], pa.uint8()),
    }
)


@pytest.fixture(params=["inline", "file"])
def limit(request: pytest.FixtureRequest) -> int:
    return 2**15 if request.param == "inline" else 0


def at_rest(store: Store, table: pa.Table, limit: int = 0) -> Columns:
    """``table`` written, and found again through what a commit would say of it."""
    return columns_from_json(store_rows(store, [table], table.schema, "t.parquet", limit=limit).to_json())


def all_of(names: Sequence[str]) -> Sequence[str]:
    return names


@given(st.lists(st.sampled_from(TABLE.column_names), min_size=1, unique=True))
def test_any_columns_in_any_order(names: list[str]) -> None:
    for limit in (0, 2**15):
        store = memory()
        columns = at_rest(store, TABLE, limit)
        assert isinstance(columns, Inline if limit else Stored)
        assert columns.rows == 3
        found = columns.read(store, lambda _: names)
        assert found.equals(TABLE.select(names))
        assert columns.schema(store).equals(TABLE.schema)


def test_rows_of_every_count(limit: int) -> None:
    for rows in (0, 1, 2):
        store = memory()
        table = TABLE.slice(0, rows)
        assert at_rest(store, table, limit).read(store, all_of).equals(table)


def test_any_parquet_reader_reads_the_file(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    at_rest(store, TABLE.drop_columns(["6|void|lo"]))
    assert pq.read_table(tmp_path / "t.parquet").equals(TABLE.drop_columns(["6|void|lo"]))


def test_only_wanted_columns_are_read() -> None:
    store = memory()
    wide = pa.table({f"{i}|long|lo": np.random.default_rng(i).integers(0, 2**62, 10_000) for i in range(30)})
    columns = at_rest(store, wide)
    view = store.with_new_counters()
    columns.read(view, lambda _: ["3|long|lo", "27|long|lo"])
    assert view.io.requests == 3  # the end, and two ranges
    assert view.io.bytes < columns.nbytes / 8
    columns.read(view, lambda _: ["3|long|lo"])
    assert view.io.requests == 3  # remembered


def test_many_pieces_are_one_table() -> None:
    store = memory()
    rows = GROUP_ROWS // 3 + 1
    pieces = [pa.table({"n": np.arange(i * rows, (i + 1) * rows), "s": [f"{i}" * 9] * rows}) for i in range(8)]
    columns = store_rows(store, iter(pieces), pieces[0].schema, "t.parquet")
    assert columns.rows == 8 * rows
    assert columns.read(store, all_of).equals(pa.concat_tables(pieces))
    assert columns.read(store, lambda _: ["s"], remember=False)["s"].to_pylist()[-1] == "7" * 9


def one_row_of(columns: int) -> pa.Table:
    values = np.random.default_rng(columns).integers(0, 2**62, columns)
    return pa.table({f"{i}|long|lo": values[i : i + 1] for i in range(columns)})


@pytest.mark.push_cases(2)
@pytest.mark.parametrize(("columns", "limit", "is_inline"), [(100, 600, False), (4_000, 600, False), (100, 2**15, True), (4_000, 2**15, True)])  # fmt: skip
def test_the_limit_of_inline_tables_grows_with_their_columns(columns: int, limit: int, *, is_inline: bool) -> None:
    store, table = memory(), one_row_of(columns)
    found = at_rest(store, table, limit)
    assert isinstance(found, Inline if is_inline else Stored)
    assert found.read(store, all_of).equals(table)
    assert columns < 4_000 or found.nbytes > 2**15


def test_many_rows_of_a_wide_table_are_a_file() -> None:
    store, row = memory(), one_row_of(500)
    two_rows = pa.concat_tables([row] * 2)
    dice = np.random.default_rng(1)
    many = pa.table({name: dice.integers(0, 2**62, 1_000) for name in row.column_names})
    assert isinstance(store_rows(store, [two_rows], two_rows.schema, "few.parquet"), Inline)
    assert isinstance(store_rows(store, [many], many.schema, "many.parquet"), Stored)


@pytest.mark.parametrize(("name", "value"), [("MOST_INLINE", 2**15), ("MOST_UNPACKED", 2**18)])
def test_no_inline_table_is_larger_than_readers_allow(name: str, value: int, monkeypatch: pytest.MonkeyPatch) -> None:
    store, table = memory(), one_row_of(4_000)
    packed = at_rest(store, table, 2**15)
    assert isinstance(packed, Inline)
    assert packed.nbytes > 2**15
    assert packed.size > 2**18
    monkeypatch.setattr(metadata_files, name, value)
    assert isinstance(at_rest(store, table, 2**15), Stored)


def damaged(data: bytes) -> list[bytes]:
    """Every kind of damage at every region: cuts, and a changed byte at each of many places."""
    places = sorted({*range(0, len(data), max(1, len(data) // 97)), *range(len(data) - 9, len(data))})
    cuts = [data[:at] for at in places]
    changes = [data[:at] + bytes([data[at] ^ 0x41]) + data[at + 1 :] for at in places]
    return [*cuts, *changes, data[::-1], bytes(len(data))]


def test_no_damage_goes_unseen() -> None:
    store = memory()
    columns = at_rest(store, TABLE)
    data = store.get("t.parquet")
    names, errors = set(), 0
    for bad in damaged(data):
        store.put("t.parquet", bad)
        forget()
        try:
            found = columns.read(store, lambda _: ["part_id", "1|long|lo"])
        except CorruptData as error:
            names.add(error.name)
            errors += 1
        else:  # the damage was in a column that was not asked for
            assert found.equals(TABLE.select(["part_id", "1|long|lo"]))
    assert names == {store.name("t.parquet")}
    assert 0 < errors < len(damaged(data))
    for bad in damaged(data):
        if bad[4:] == data[4:]:
            continue  # the leading magic is never read; every other byte belongs to some column or to the end
        store.put("t.parquet", bad)
        forget()
        with pytest.raises(CorruptData):
            columns.read(store, all_of)


def test_a_vanished_file_is_corrupt_data_by_name() -> None:
    store = memory()
    columns = at_rest(store, TABLE)
    store.delete("t.parquet")
    with pytest.raises(CorruptData) as caught:
        columns.read(store, all_of)
    assert (caught.value.code, caught.value.name) == ("MISSING_OBJECT", store.name("t.parquet"))


def test_a_store_that_does_not_answer_is_not_corrupt_data() -> None:
    class Down(Store):
        def get_ranges(self, path: str, ranges: Sequence[tuple[int, int]]) -> list[bytes]:
            raise StoreUnavailable("down")

    store = memory()
    columns = at_rest(store, TABLE)
    with pytest.raises(StoreUnavailable):
        columns.read(Down(store.location, {}), all_of)


@pytest.mark.parametrize("change", [{"rows": 4}, {"size": 1}, {"size": 10**6}, {"zstd": "AAAA"}])
def test_an_inline_table_that_lies_is_corrupt_data(change: dict[str, Any]) -> None:
    store = memory()
    value = store_rows(store, [TABLE], TABLE.schema, "t.parquet").to_json() | change
    with pytest.raises(CorruptData):
        columns_from_json(value).read(store, all_of)


def test_a_small_manifest_stands_inline_and_a_large_one_does_not() -> None:
    store = memory()
    assert isinstance(at_rest(store, manifest(10), 2**15), Inline)
    assert isinstance(at_rest(store, manifest(2_000), 2**15), Stored)


@pytest.mark.parametrize("path", ["../t.parquet", "/t.parquet", "a/../../t.parquet"])
def test_a_table_at_rest_lies_below_the_root(path: str) -> None:
    stored = Stored(rows=1, path=path, nbytes=100, footer=10, crc32=0)
    with pytest.raises(CorruptData) as caught:
        stored.read(memory(), all_of)
    assert (caught.value.code, caught.value.name) == ("PATH_OUTSIDE", path)


def test_of_columns_with_one_name_the_last_counts(limit: int) -> None:
    """Such tables were written once; they can be read."""
    table = pa.table([pa.array([1, 2]), pa.array(["a", "b"]), pa.array([None, 3])], names=["n", "s", "n"])
    store = memory()
    columns = at_rest(store, table, limit)
    found = columns.read(store, lambda names: names)
    assert sorted(found.column_names) == ["n", "s"]
    assert found.select(["n", "s"]).to_pydict() == {"n": [None, 3], "s": ["a", "b"]}
