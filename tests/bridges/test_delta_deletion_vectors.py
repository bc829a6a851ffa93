"""Rows that a deletion vector of a Delta table names are gone, and a damaged vector is an error."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import tamis
from tamis.bridges.sources.delta_source import read_delta
from tests.bridges import delta_logs as logs
from tests.bridges.foreign_tables import check_claims, duckdb_rows, live_rows


def vectors(folder: Path) -> list[dict[str, Any]]:
    stored = logs.stored_vectors(folder, [0, 2], [1], prefix="ab")
    return [
        logs.inline_vector([3, 4, 7, 11, 18, 29]),
        *stored,
        *logs.stored_vectors(folder, [9], absolute=True),
        *logs.stored_vectors(folder, range(5, 25)),
    ]


def deleted(folder: Path) -> None:
    """Write a table with a deletion vector of every kind, and one file without any."""
    metadata = logs.metadata([logs.field("v", "long")])
    adds = []
    for at, vector in enumerate([*vectors(folder), None]):
        data = pa.table({"v": [at * 100 + n for n in range(30)]})
        wide = {"minValues": {"v": at * 100}, "maxValues": {"v": at * 100 + 29}, "nullCount": {"v": 0}}
        more = {} if vector is None else {"deletionVector": vector}
        adds.append(logs.add(folder, f"{at}.parquet", data, {**wide, "tightBounds": vector is None}, **more))
    logs.commit(folder, 0, [{"protocol": logs.protocol("deletionVectors")}, {"metaData": metadata}, *adds])


GONE = [{3, 4, 7, 11, 18, 29}, {0, 2}, {1}, {9}, set(range(5, 25)), set()]


def test_deletion_vectors_are_decoded(tmp_path: Path) -> None:
    deleted(tmp_path)
    source = read_delta(str(tmp_path))
    expected = [at * 100 + n for at, gone in enumerate(GONE) for n in range(30) if n not in gone]
    assert sorted(live_rows(source)["v"].to_pylist()) == expected
    assert check_claims(source) == 18


def test_the_vector_of_the_protocol_is_decoded(tmp_path: Path) -> None:
    vector = {
        "storageType": "i",
        "pathOrInlineDv": "wi5b=000010000siXQKl0rr91000f55c8Xg0@@D72lkbi5=-{L",
        "sizeInBytes": 40,
        "cardinality": 6,
    }
    add = logs.add(tmp_path, "a.parquet", pa.table({"v": list(range(30))}), {}, deletionVector=vector)
    metadata_action = {"metaData": logs.metadata([logs.field("v", "long")])}
    logs.commit(tmp_path, 0, [{"protocol": logs.protocol("deletionVectors")}, metadata_action, add])
    assert sorted(live_rows(read_delta(str(tmp_path)))["v"].to_pylist()) == sorted(set(range(30)) - GONE[0])


def test_duckdb_sees_the_same_rows(tmp_path: Path) -> None:
    deleted(tmp_path)
    theirs = duckdb_rows(["delta"], f"SELECT v FROM delta_scan('{tmp_path}') ORDER BY v")
    assert [v for (v,) in theirs] == sorted(live_rows(read_delta(str(tmp_path)))["v"].to_pylist())


@pytest.mark.parametrize("harm", ["checksum", "size", "cardinality", "version", "magic", "beyond", "gone", "kind"])
def test_a_damaged_vector_is_an_error(tmp_path: Path, harm: str) -> None:
    (vector,) = logs.stored_vectors(tmp_path, [1, 40] if harm == "beyond" else [1, 2])
    file = next(tmp_path.glob("*.bin"))
    data = bytearray(file.read_bytes())
    at = {"checksum": len(data) - 6, "size": 4, "version": 0, "magic": 5}.get(harm)
    if at is not None:
        data[at] ^= 1
        file.write_bytes(data)
    if harm == "gone":
        file.unlink()
    more = {"cardinality": 3} if harm == "cardinality" else {"storageType": "x"} if harm == "kind" else {}
    add = logs.add(tmp_path, "a.parquet", pa.table({"v": list(range(30))}), {}, deletionVector={**vector, **more})
    metadata_action = {"metaData": logs.metadata([logs.field("v", "long")])}
    logs.commit(tmp_path, 0, [{"protocol": logs.protocol("deletionVectors")}, metadata_action, add])
    wanted = tamis.errors.NotFound if harm == "gone" else tamis.errors.CorruptData
    with pytest.raises(wanted):
        read_delta(str(tmp_path))


def test_counts_of_rows_that_are_deleted_meanwhile_say_nothing(tmp_path: Path) -> None:
    """With wide bounds, a count of NULLs is kept only where no row or every row has one."""
    adds = [
        logs.add(
            tmp_path,
            f"{nulls}.parquet",
            pa.table({"v": [None] * nulls + [1] * (4 - nulls)}, pa.schema([("v", pa.int64())])),
            {"nullCount": {"v": nulls}, "tightBounds": False},
            deletionVector=logs.inline_vector([3]),
        )
        for nulls in (0, 2, 4)
    ]
    metadata_action = {"metaData": logs.metadata([logs.field("v", "long")])}
    logs.commit(tmp_path, 0, [{"protocol": logs.protocol("deletionVectors")}, metadata_action, *adds])
    assert read_delta(str(tmp_path)).files["1|nulls"].to_pylist() == [0, None, 4]


def test_one_file_under_two_vectors_is_an_error(tmp_path: Path) -> None:
    one = logs.add(tmp_path, "a.parquet", pa.table({"v": [1, 2]}), {}, deletionVector=logs.inline_vector([0]))
    two = logs.add(tmp_path, "a.parquet", pa.table({"v": [1, 2]}), {}, deletionVector=logs.inline_vector([1]))
    metadata_action = {"metaData": logs.metadata([logs.field("v", "long")])}
    logs.commit(tmp_path, 0, [{"protocol": logs.protocol("deletionVectors")}, metadata_action, one, two])
    with pytest.raises(tamis.errors.CorruptData, match="DELTA_FILE_TWICE"):
        read_delta(str(tmp_path))
