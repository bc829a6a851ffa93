"""Every action of a Delta log counts, and one that we cannot understand is an error that names it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import tamis
from tamis.bridges.sources.delta_source import read_delta
from tests.bridges import delta_logs as logs
from tests.bridges.foreign_tables import live_rows, sorted_rows
from tests.bridges.source_histories import table_of_commits


@pytest.mark.parametrize(
    ("protocol", "name"),
    [
        (logs.protocol("deletionVectors", "catalogManaged"), "catalogManaged"),
        (logs.protocol("somethingNew"), "somethingNew"),
        (logs.protocol("variantShredding"), "variantShredding"),
        ({"minReaderVersion": 4, "minWriterVersion": 9}, "reader version 4"),
    ],
)
def test_an_unknown_feature_is_refused_by_name(tmp_path: Path, protocol: dict[str, Any], name: str) -> None:
    logs.commit(tmp_path, 0, [{"protocol": protocol}, {"metaData": logs.metadata([logs.field("v", "long")])}])
    with pytest.raises(tamis.errors.InvalidInput, match=f"DELTA_FEATURE.*{name}"):
        read_delta(str(tmp_path))


def test_keys_that_are_null_may_stand_before_an_action(tmp_path: Path) -> None:
    """An action after ``"add": null`` counts, too: a schema that is passed over would give the rows of the old one."""
    first = logs.add(tmp_path, "a.parquet", pa.table({"v": [1]}), {})
    logs.create(tmp_path, [logs.field("v", "long")], [first])
    second = logs.add(tmp_path, "b.parquet", pa.table({"v": [2], "w": [3]}), {})
    changed = logs.metadata([logs.field("v", "long"), logs.field("w", "long")])
    logs.commit(tmp_path, 1, [{"add": None, "remove": None, "metaData": changed}, second])
    found = live_rows(read_delta(str(tmp_path)))
    assert sorted_rows(found) == sorted_rows(pa.table({"v": [1, 2], "w": [None, 3]}))


@pytest.mark.parametrize("line", ['{"add":{"path":null}}', '{"add":', '{"add":{"path":"a"}}', "[]", '{"add":5}'])
def test_a_damaged_commit_is_an_error_that_names_it(tmp_path: Path, line: str) -> None:
    table_of_commits(tmp_path, 1)
    (tmp_path / "_delta_log" / f"{1:020}.json").write_text(line + "\n")
    with pytest.raises(tamis.errors.CorruptData, match=r"DELTA_LOG_DAMAGED.*00001\.json"):
        read_delta(str(tmp_path))


def test_the_last_word_about_a_file_counts(tmp_path: Path) -> None:
    data = pa.table({"v": [1, 2, 3]})
    plain = logs.add(tmp_path, "a.parquet", data, {})
    first, second = logs.inline_vector([0]), logs.inline_vector([0, 1])
    metadata_action = {"metaData": logs.metadata([logs.field("v", "long")])}
    again = logs.add(tmp_path, "a.parquet", data, {"nullCount": {"v": 0}})
    logs.commit(tmp_path, 0, [{"protocol": logs.protocol("deletionVectors")}, metadata_action, plain])
    logs.commit(tmp_path, 1, [again])
    logs.commit(
        tmp_path, 2, [logs.remove("a.parquet"), logs.add(tmp_path, "a.parquet", data, {}, deletionVector=first)]
    )
    with_second = logs.add(tmp_path, "a.parquet", data, {}, deletionVector=second)
    logs.commit(tmp_path, 3, [with_second, logs.remove("a.parquet", deletionVector=first)])
    logs.commit(tmp_path, 4, [logs.remove("a.parquet", deletionVector=second)])
    found = [live_rows(read_delta(str(tmp_path), version=v)) for v in range(4)]
    assert [rows["v"].to_pylist() for rows in found] == [[1, 2, 3], [1, 2, 3], [2, 3], [3]]
    assert read_delta(str(tmp_path), version=1).files["1|nulls"].to_pylist() == [0]
    assert len(read_delta(str(tmp_path)).files) == 0
