"""Data whose Arrow schema is the table's own is tested as any other: Arrow compares no value with a schema."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import tamis
from tamis.errors import TamisError

COLUMNS = "id BIGINT NOT NULL, c CHAR(4), v VARCHAR(3), s STRUCT<a: INT NOT NULL, c: CHAR(2)>"
GOOD: Mapping[str, list[Any]] = {"id": [1], "c": ["a"], "v": ["abc   "], "s": [{"a": 1, "c": "q"}]}
BAD: Mapping[str, tuple[str, list[Any]]] = {
    "NULL_IN_REQUIRED": ("id", [None]),
    "TOO_LONG": ("c", ["abcde"]),
    "TOO_LONG in VARCHAR": ("v", ["abcd"]),
    "NULL_IN_REQUIRED in a struct": ("s", [{"a": None, "c": "q"}]),
    "TOO_LONG in a struct": ("s", [{"a": 1, "c": "abc"}]),
}
Write = Callable[[tamis.Table, pa.Table], object]
WRITES: Mapping[str, Write] = {
    "append": lambda table, data: table.append(data),
    "append a reader": lambda table, data: table.append(data.to_reader()),
    "overwrite": lambda table, data: table.overwrite(data),
    "upsert": lambda table, data: table.upsert(data, on=["id"]),
    "merge": lambda table, data: table.merge(data, "target.id = source.id").when_not_matched_insert().execute(),
}


def declared(table: tamis.Table, values: Mapping[str, list[Any]]) -> pa.Table:
    """Data that claims to be of the table's own schema."""
    arrays = []
    for f in table.schema:
        kind = f.type
        if pa.types.is_struct(kind):
            kind = pa.struct([inner.with_nullable(True) for inner in kind])
        made = pa.array(values[f.name], kind)
        arrays.append(pa.StructArray.from_arrays(made.flatten(), fields=list(f.type)) if kind != f.type else made)
    return pa.Table.from_arrays(arrays, schema=table.schema)


@pytest.fixture(params=["parquet", "orc", "vortex"])
def table(request: pytest.FixtureRequest, tmp_path: Path) -> tamis.Table:
    return tamis.create(tmp_path / "t", COLUMNS, format=request.param)


@pytest.mark.parametrize("write", WRITES)
def test_values_are_fitted(table: tamis.Table, write: str) -> None:
    WRITES[write](table, declared(table, GOOD))
    table.refresh()
    assert table.scan().to_arrow().to_pylist() == [{"id": 1, "c": "a   ", "v": "abc", "s": {"a": 1, "c": "q "}}]
    for text in ("c = 'a'", "v = 'abc'", "s.c = 'q '", "length(c) = 4 AND length(v) = 3"):
        assert table.scan(text).count() == 1, text
    assert table.verify().ok


@pytest.mark.parametrize("bad", BAD)
@pytest.mark.parametrize("write", WRITES)
def test_values_that_do_not_fit_are_refused(table: tamis.Table, write: str, bad: str) -> None:
    name, values = BAD[bad]
    with pytest.raises(TamisError) as caught:
        WRITES[write](table, declared(table, {**GOOD, name: values}))
    assert caught.value.code == bad.split(maxsplit=1)[0]
    assert table.refresh().scan().count() == 0


def test_a_check_sees_the_value_that_is_stored(tmp_path: Path) -> None:
    table = tamis.create(tmp_path / "t", "c CHAR(4)")
    table.alter().add_check("k", "length(c) = 4").commit()
    table.refresh().append(pa.table({"c": ["a"]}, schema=table.schema))
    assert table.scan("c = 'a' AND length(c) = 4").count() == 1


def test_keys_of_a_merge_are_padded_as_they_are_declared(tmp_path: Path) -> None:
    table = tamis.create(tmp_path / "t", "c CHAR(4), n INT")
    row = pa.table({"c": ["a"], "n": pa.array([1], pa.int32())})
    table.append(row)
    merge = table.merge(row.cast(table.schema), "target.c = source.c").when_matched_update({"n": "2"})
    merge.when_not_matched_insert().execute()
    assert table.refresh().scan().to_arrow().to_pylist() == [{"c": "a   ", "n": 2}]
