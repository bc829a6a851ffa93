"""A checkpoint of a Delta table stands for the commits before it, in each form that it may have."""

from __future__ import annotations

import json
from pathlib import Path

import deltalake
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tamis
from tamis.bridges.sources.delta_source import read_delta
from tests.bridges import delta_logs as logs
from tests.bridges.foreign_tables import check_claims, live_rows, sorted_rows
from tests.bridges.source_histories import table_of_commits


def test_a_damaged_checkpoint_is_passed_over(tmp_path: Path) -> None:
    table_of_commits(tmp_path, 3)
    deltalake.DeltaTable(tmp_path).create_checkpoint()
    table_of_commits(tmp_path, 2)
    whole = live_rows(read_delta(str(tmp_path)))
    checkpoint = next((tmp_path / "_delta_log").glob("*.checkpoint.parquet"))
    data = checkpoint.read_bytes()
    for broken in (data[: len(data) // 2], b"", data[:-9] + b"123456789"):
        checkpoint.write_bytes(broken)
        assert sorted_rows(live_rows(read_delta(str(tmp_path)))) == sorted_rows(whole)
    (tmp_path / "_delta_log" / f"{1:020}.json").unlink()
    with pytest.raises(tamis.errors.NotFound, match="neither commit 1 nor a checkpoint"):
        read_delta(str(tmp_path))


def test_a_checkpoint_stands_for_commits_that_are_gone(tmp_path: Path) -> None:
    table_of_commits(tmp_path, 3)
    deltalake.DeltaTable(tmp_path).create_checkpoint()
    table_of_commits(tmp_path, 1)
    for at in range(3):
        (tmp_path / "_delta_log" / f"{at:020}.json").unlink()
    source = read_delta(str(tmp_path))
    assert len(source.files) == 4
    assert check_claims(source) >= 20
    with pytest.raises(tamis.errors.NotFound, match="neither commit 0 nor a checkpoint"):
        read_delta(str(tmp_path), version=1)


def test_a_checkpoint_in_parts_counts_when_all_are_there(tmp_path: Path) -> None:
    table_of_commits(tmp_path, 4)
    deltalake.DeltaTable(tmp_path).create_checkpoint()
    log = tmp_path / "_delta_log"
    whole = next(log.glob("*.checkpoint.parquet"))
    table = pq.read_table(whole)
    for n, part in enumerate((table.slice(0, 3), table.slice(3)), 1):
        pq.write_table(part, log / f"{3:020}.checkpoint.{n:010}.{2:010}.parquet")
    whole.unlink()
    (log / f"{0:020}.json").unlink()
    assert len(read_delta(str(tmp_path)).files) == 4
    for gone in (1, 2):
        part = log / f"{3:020}.checkpoint.{gone:010}.{2:010}.parquet"
        data = part.read_bytes()
        part.unlink()
        with pytest.raises(tamis.errors.NotFound, match="neither commit 0"):
            read_delta(str(tmp_path))
        part.write_bytes(data)


@pytest.mark.parametrize("form", ["json", "parquet"])
def test_a_checkpoint_with_sidecars(tmp_path: Path, form: str) -> None:
    table_of_commits(tmp_path, 4)
    deltalake.DeltaTable(tmp_path).create_checkpoint()
    log = tmp_path / "_delta_log"
    whole = next(log.glob("*.checkpoint.parquet"))
    table = pq.read_table(whole)
    (log / "_sidecars").mkdir()
    for n, part in enumerate((table.select(["add"]).slice(0, 4), table.select(["add"]).slice(4))):
        pq.write_table(part, log / "_sidecars" / f"{n}.parquet")
    sidecars = [{"path": f"{n}.parquet", "sizeInBytes": 1, "modificationTime": 1} for n in (0, 1)]
    metadata = json.loads((log / f"{0:020}.json").read_text().splitlines()[2])["metaData"]
    name = f"{3:020}.checkpoint.80a083e8-7026-4e79-81be-64bd76c43a11.{form}"
    top = [{"checkpointMetadata": {"version": 3}}, {"protocol": logs.PROTOCOL}, {"metaData": metadata}]
    if form == "json":
        (log / name).write_text("\n".join(json.dumps(a) for a in [*top, *({"sidecar": s} for s in sidecars)]))
    else:
        del metadata["format"], metadata["configuration"]
        rows = [{"protocol": logs.PROTOCOL}, {"metaData": metadata}, *({"sidecar": s} for s in sidecars)]
        pq.write_table(pa.Table.from_pylist([{**dict.fromkeys(KEYS), **r} for r in rows]), log / name)
    whole.unlink()
    (log / f"{0:020}.json").unlink()
    source = read_delta(str(tmp_path))
    assert len(source.files) == 4
    assert check_claims(source) >= 20
    (log / "_sidecars" / "1.parquet").unlink()
    with pytest.raises(tamis.errors.NotFound, match="neither commit 0"):
        read_delta(str(tmp_path))


KEYS = ("protocol", "metaData", "sidecar")


def test_statistics_that_a_checkpoint_has_as_columns(tmp_path: Path) -> None:
    """``delta.checkpoint.writeStatsAsJson`` is false: there is no text."""
    table_of_commits(tmp_path, 2)
    deltalake.DeltaTable(tmp_path).create_checkpoint()
    table_of_commits(tmp_path, 1)
    whole = next((tmp_path / "_delta_log").glob("*.checkpoint.parquet"))
    rows = pq.read_table(whole).to_pylist(maps_as_pydicts="strict")
    for row in rows:
        if row["add"]:
            row["add"]["stats_parsed"] = json.loads(row["add"].pop("stats"))
            row["add"]["partitionValues"] = []
    schema = pq.read_table(whole).schema
    bounds = pa.struct([("v", pa.int64()), ("s", pa.string())])
    counts = pa.struct([("v", pa.int64()), ("s", pa.int64())])
    parsed = pa.struct(
        [("numRecords", pa.int64()), ("minValues", bounds), ("maxValues", bounds), ("nullCount", counts)]
    )
    added = pa.struct(
        [
            ("path", pa.string()),
            ("partitionValues", pa.map_(pa.string(), pa.string())),
            ("size", pa.int64()),
            ("dataChange", pa.bool_()),
            ("stats_parsed", parsed),
        ]
    )
    kept = pa.schema([("add", added), schema.field("protocol"), schema.field("metaData")])
    for row in rows:
        for key, value in (row["metaData"] or {}).items():
            row["metaData"][key] = list(value.items()) if isinstance(value, dict) and key == "configuration" else value
    pq.write_table(pa.Table.from_pylist(rows, kept), whole)
    for at in range(2):
        (tmp_path / "_delta_log" / f"{at:020}.json").unlink()
    source = read_delta(str(tmp_path))
    assert sorted(source.files["1|long|lo"].to_pylist()) == [0, 0, 1]
    assert check_claims(source) == 18


def test_files_of_a_checkpoint_may_spell_a_partition_column_in_different_case(tmp_path: Path) -> None:
    data = pa.table({"v": [1]})
    adds = [logs.add(tmp_path, f"{key}.parquet", data, None, partitionValues={key: key}) for key in ("Part", "part")]
    metadata = {"metaData": logs.metadata([logs.field("v", "long"), logs.field("Part", "string")], ["Part"])}
    logs.commit(tmp_path, 0, [{"protocol": logs.PROTOCOL}, metadata, *adds])
    by_commit = sorted_rows(live_rows(read_delta(str(tmp_path))))
    kind = pa.struct(
        [
            ("path", pa.string()),
            ("partitionValues", pa.map_(pa.string(), pa.string())),
            ("size", pa.int64()),
            ("dataChange", pa.bool_()),
        ]
    )
    rows = [{**one["add"], "partitionValues": list(one["add"]["partitionValues"].items())} for one in adds]
    rows.append({**rows[0], "path": "null.parquet", "partitionValues": [("Part", None)]})
    logs.add(tmp_path, "null.parquet", data)
    empty = [None] * 2
    checkpoint = pa.table(
        {
            "add": pa.array([*empty, *({name: row[name] for name in kind.names} for row in rows)], kind),
            "protocol": pa.array([logs.PROTOCOL, *[None] * 4]),
            "metaData": pa.array([None, metadata_row(metadata["metaData"]), *[None] * 3]),
        }
    )
    pq.write_table(checkpoint, tmp_path / "_delta_log" / f"{0:020}.checkpoint.parquet")
    (tmp_path / "_delta_log" / f"{0:020}.json").unlink()
    found = live_rows(read_delta(str(tmp_path)))
    assert set(found["Part"].to_pylist()) == {"Part", "part", None}
    assert sorted_rows(found.filter(found["Part"].is_valid())) == by_commit


def metadata_row(metadata: dict[str, object]) -> dict[str, object]:
    """The metadata as a checkpoint has them; an empty map of properties."""
    return {name: value for name, value in metadata.items() if name not in {"configuration", "format"}}
