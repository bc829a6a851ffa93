"""Partition values of a Delta table are constants of their columns' types."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest

import tamis
from tamis.bridges.sources.delta_source import DeltaOptions, read_delta
from tests.bridges import delta_logs as logs
from tests.bridges.foreign_tables import check_claims, live_rows, sorted_rows


def test_partition_values_are_constants_of_their_types(tmp_path: Path) -> None:
    kinds = {
        "b": ("byte", "-5", -5),
        "l": ("long", "9007199254740993", 9007199254740993),
        "f": ("double", "NaN", "nan"),
        "g": ("float", "-Infinity", "-inf"),
        "d": ("decimal(10,2)", "1.5", "1.50"),
        "day": ("date", "1969-12-31", -1),
        "t": ("timestamp", "1970-01-01T00:00:00.000001Z", 1),
        "n": ("timestamp_ntz", "1970-01-01 00:00:01", 1_000_000),
        "o": ("boolean", "true", True),
        "e": ("string", "", None),
        "m": ("string", None, None),
    }
    fields = [logs.field("v", "long"), *(logs.field(name, kind) for name, (kind, _, _) in kinds.items())]
    texts = {name: text for name, (_, text, _) in kinds.items()}
    add = logs.add(tmp_path, "a.parquet", pa.table({"v": [1, 2]}), {}, partitionValues=texts)
    metadata_action = {"metaData": logs.metadata(fields, list(kinds))}
    logs.commit(tmp_path, 0, [{"protocol": logs.protocol("timestampNtz")}, metadata_action, add])
    source = read_delta(str(tmp_path))
    found = json.loads(source.files["constants"][0].as_py())
    by_name = {f.name: found[str(f.id)] for f in source.schema.fields if f.name != "v"}
    assert by_name == {name: value for name, (_, _, value) in kinds.items()}
    assert check_claims(source) >= 20
    identifier = source.schema.find("m")[0].id
    assert source.files[f"{identifier}|nulls"].to_pylist() == [2]


def test_partition_timestamps_without_a_zone_need_one(tmp_path: Path) -> None:
    fields = [logs.field("v", "long"), logs.field("t", "timestamp")]
    add = logs.add(tmp_path, "a.parquet", pa.table({"v": [1]}), {}, partitionValues={"t": "2020-07-01 00:00:00"})
    logs.commit(tmp_path, 0, [{"protocol": logs.PROTOCOL}, {"metaData": logs.metadata(fields, ["t"])}, add])
    with pytest.raises(tamis.errors.InvalidInput, match="PARTITION_ZONE"):
        read_delta(str(tmp_path))
    source = read_delta(str(tmp_path), DeltaOptions(zone="Europe/Berlin"))
    assert live_rows(source)["t"].to_pylist() == [datetime(2020, 6, 30, 22, tzinfo=UTC)]


def test_a_partition_value_of_another_type_is_an_error(tmp_path: Path) -> None:
    add = logs.add(tmp_path, "a.parquet", pa.table({"v": [1]}), {}, partitionValues={"p": "x"})
    fields = [logs.field("v", "long"), logs.field("p", "long")]
    logs.commit(tmp_path, 0, [{"protocol": logs.PROTOCOL}, {"metaData": logs.metadata(fields, ["p"])}, add])
    with pytest.raises(tamis.errors.CorruptData, match="'p' has a value that is no bigint"):
        read_delta(str(tmp_path))


def test_names_of_partition_columns_may_differ_in_case(tmp_path: Path) -> None:
    files = [
        logs.add(tmp_path, f"{at}.parquet", pa.table({"v": [at]}), {}, partitionValues=values)
        for at, values in enumerate([{"P": "3"}, {"p": "4", "P": "5"}, {}])
    ]
    fields = [logs.field("v", "long"), logs.field("p", "long")]
    logs.commit(tmp_path, 0, [{"protocol": logs.PROTOCOL}, {"metaData": logs.metadata(fields, ["p"])}, *files])
    found = live_rows(read_delta(str(tmp_path)))
    assert sorted_rows(found) == sorted_rows(pa.table({"v": [0, 1, 2], "p": [3, 4, None]}))
