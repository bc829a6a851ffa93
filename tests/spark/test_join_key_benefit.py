"""Join keys are asked for only where they may skip parts or save much: judged from bounds, without running anything."""

from __future__ import annotations

import shutil
from decimal import Decimal
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.values import ATOMIC, column, kind_of

import tamis
from tamis.core.types import DataType, Field, Schema
from tamis.core.types.arrow import to_arrow_schema
from tamis.engine.scan import Plan
from tamis.spark.scan.join_key_benefit import beneficial_columns, key_spread, saves_enough_bytes
from tamis.storage.commit_log import Snapshot

LOADS, ROWS = 6, 40
MUCH = {"tamis.read.native_bytes": "1TB"}
"""Then reading late saves nothing worth while, and only what parts hold decides."""


def _load(at: int) -> pa.Table:
    n = np.arange(at * ROWS, (at + 1) * ROWS)
    scattered = np.arange(ROWS) * 7 + at
    columns: dict[str, Any] = {
        "rising": n,
        "day": pa.array(n.astype(np.int32)).cast(pa.date32()),
        "word": [f"{i:05}" for i in n],
        "price": pa.array([Decimal(int(i)) for i in n], pa.decimal128(12, 2)),
        "scattered": scattered,
        "scattered_word": [f"{i:05}" for i in scattered],
        "nothing": pa.nulls(ROWS, pa.int64()),
        "some": pa.array([int(i) if at == 0 else None for i in n], pa.int64()),
    }
    return pa.table(columns)


def _planned(table: tamis.Table, filter_: str | None = None) -> tuple[Plan, Snapshot, Schema]:
    plan = table.scan(filter_, options=MUCH).plan()
    schema = table._snapshot.head.schema
    assert schema is not None
    return plan, table._snapshot, schema


@pytest.fixture
def table(tmp_path: Path) -> tamis.Table:
    made = tamis.create(tmp_path / "t", _load(0).schema)
    for at in range(LOADS):
        made.append(_load(at))
    return made


def _beneficial(table: tamis.Table, *, native: bool = True, size: int = 2**30) -> list[str]:
    plan, snapshot, schema = _planned(table)
    return [f.name for f in beneficial_columns(plan, snapshot, schema, size=size, native=native)]


def test_spark_s_reader_asks_for_keys_of_columns_that_parts_hold_apart(table: tamis.Table) -> None:
    assert _beneficial(table) == ["rising", "day", "word", "price", "nothing", "some"]


def test_our_reader_drops_rows_by_any_key(table: tamis.Table) -> None:
    assert _beneficial(table, native=False) == _load(0).schema.names


def test_a_small_part_waits_for_no_keys(tmp_path: Path) -> None:
    made = tamis.create(tmp_path / "one", _load(0).schema)
    made.append(_load(0))
    assert [_beneficial(made, native=False, size=size) != [] for size in (10, 2**30)] == [False, True]


def test_the_switch_turns_keys_off(table: tamis.Table) -> None:
    plan, snapshot, schema = _planned(table)
    off = table.scan(options={**MUCH, "tamis.scan.join_keys": "off"}).plan()
    assert beneficial_columns(plan, snapshot, schema, size=2**30, native=True).fields
    assert not beneficial_columns(off, snapshot, schema, size=2**30, native=True).fields


def test_statistics_that_are_off_decide_nothing(table: tamis.Table) -> None:
    off = table.scan(options={**MUCH, "tamis.stats.filter": "off"}).plan()
    schema = table._snapshot.head.schema
    assert schema is not None
    assert beneficial_columns(off, table._snapshot, schema, size=2**30, native=True) == schema


def test_the_share_of_an_average_part(table: tamis.Table) -> None:
    plan, snapshot, schema = _planned(table)
    spread = {f.name: round(key_spread(plan, snapshot, f), 2) for f in schema}
    assert spread["rising"] == spread["day"] == spread["word"] == 0.17
    assert spread["scattered_word"] == 1.0
    assert spread["scattered"] > 0.95
    assert spread["some"] == 0.17, "a part of NULLs alone holds no key"


def test_a_new_version_is_judged_anew(table: tamis.Table) -> None:
    """The judgement is kept by version: rows of a later commit that scatter a column end its keys."""
    before = _beneficial(table)
    wild = _load(0).set_column(0, "rising", pa.array(np.linspace(0, LOADS * ROWS, ROWS).astype(np.int64)))
    for _ in range(6 * LOADS):
        table.append(wild)
    assert "rising" in before
    assert "rising" not in _beneficial(table.refresh())


def test_a_table_made_again_at_the_same_place_is_judged_anew(tmp_path: Path) -> None:
    for scattered in (False, True):
        made = tamis.create(tmp_path / "again", pa.schema([("k", pa.int64())]))
        for at in range(4):
            made.append(pa.table({"k": np.arange(40) * 4 + at if scattered else np.arange(40) + 40 * at}))
        assert _beneficial(made) == ([] if scattered else ["k"])
        shutil.rmtree(tmp_path / "again")


@pytest.mark.slow
@pytest.mark.parametrize("data_type", ATOMIC, ids=kind_of)
@given(st.data())
@pytest.mark.push_cases(6)
def test_columns_of_every_type_are_judged(data_type: DataType, data: st.DataObject) -> None:
    """An error here would fail the query, for a judgement that only saves time."""
    values = st.lists(column(data_type), min_size=1, max_size=3)
    with TemporaryDirectory() as folder:
        schema = to_arrow_schema(Schema((Field("c", data_type, id=1),)))
        table = tamis.create(folder, schema)
        for load in data.draw(values):
            table.append(pa.table([load], schema=schema))
        plan, snapshot, planned = _planned(table)
        assert 0 <= key_spread(plan, snapshot, planned.fields[0]) <= 1


def test_reading_late_pays_for_what_no_key_and_no_filter_names(table: tamis.Table) -> None:
    plan, snapshot, schema = _planned(table, "scattered_word <> ''")
    small = table.scan("scattered_word <> ''", options={"tamis.read.native_bytes": "1"}).plan()
    key = schema.find("scattered")[0]
    both = Schema((key, schema.find("scattered_word")[0]))
    assert not saves_enough_bytes(small, snapshot, both, key), "the filter reads the other column whole"
    assert saves_enough_bytes(small, snapshot, schema, key)
    assert not saves_enough_bytes(plan, snapshot, schema, key), "less than tamis.read.native_bytes"


def test_an_index_saves_the_reading_of_its_own_column(table: tamis.Table) -> None:
    key = table._snapshot.head.schema.find("scattered")[0]
    options = {"tamis.read.native_bytes": "1"}
    assert not saves_enough_bytes(table.scan(options=options).plan(), table._snapshot, Schema((key,)), key)
    table.create_index("by_scattered", ["scattered"])
    table = table.refresh()
    assert saves_enough_bytes(table.scan(options=options).plan(), table._snapshot, Schema((key,)), key)
    off = table.scan(options={**options, "tamis.index.use": "off"}).plan()
    assert not saves_enough_bytes(off, table._snapshot, Schema((key,)), key)
