"""The Delta log of an export: foreign readers see the table's rows after every change, at the cost of the change."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tamis
from tamis.bridges.export.delta_export import export_delta
from tamis.bridges.export.delta_vectors import INLINE, bitmap64, framed_bitmap, vector_descriptor
from tamis.errors import Conflict, InvalidInput, TamisError
from tamis.storage.commit_log import load
from tamis.storage.commit_log.deletion_vectors import serialize_vector
from tamis.storage.object_store import open_store
from tests.bridges.exported_tables import CHANGES, RENAMES, expected, made, rows, widen
from tests.bridges.foreign_readers import delta_by_deltalake, delta_by_polars
from tests.storage.faults import FAULTS, FaultyStore, Plan

SMALL = pa.schema([("id", pa.int64()), ("s", pa.string())])


def log_of(path: str, version: int) -> list[dict[str, Any]]:
    text = Path(path, "_delta_log", f"{version:020}.json").read_text()
    return [json.loads(line) for line in text.splitlines()]


def actions(path: str, version: int, kind: str) -> list[dict[str, Any]]:
    return [line[kind] for line in log_of(path, version) if kind in line]


@pytest.mark.push_cases(5)
@pytest.mark.parametrize("change", CHANGES)
def test_readers_see_the_rows_after_each_change(tmp_path: Path, change: str) -> None:
    table = made(tmp_path / "t")
    table.export("delta")
    assert delta_by_deltalake(table.path) == expected(table)
    CHANGES[change](table)
    done = table.export("delta")
    assert done.written
    assert delta_by_deltalake(table.path) == expected(table)
    assert delta_by_polars(table.path) == expected(table)


@pytest.mark.slow
@given(st.lists(st.tuples(st.sampled_from(sorted(CHANGES)), st.booleans()), max_size=6))
def test_random_histories_read_the_same(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, bool]]
) -> None:
    table = made(tmp_path_factory.mktemp("random") / "t")
    for change, exported in steps:
        try:
            CHANGES[change](table)
        except TamisError:
            continue  # such as a second column of one name
        table.refresh()
        if exported:
            table.export("delta")
    done = table.export("delta")
    assert delta_by_deltalake(table.path) == expected(table)
    live = deltalake.DeltaTable(table.path).get_add_actions()
    assert sorted(pa.table(live)["path"].to_pylist()) == sorted(table.refresh().metadata("parts")["path"].to_pylist())
    assert done.version == table.version


def test_an_export_costs_the_change(tmp_path: Path) -> None:
    table = made(tmp_path / "t")
    first = table.export("delta")
    assert (first.exported_version, first.files_added, first.files_removed) == (0, 2, 0)
    table.append(rows(50))
    assert (table.export("delta").files_added, len(actions(table.path, 1, "add"))) == (1, 1)
    assert not table.export("delta").written
    table.delete("id = 0")
    table.export("delta")
    (removed,), (added,) = actions(table.path, 2, "remove"), actions(table.path, 2, "add")
    assert removed["path"] == added["path"]
    assert "deletionVector" not in removed
    assert added["deletionVector"]["cardinality"] == 1
    assert not actions(table.path, 1, "metaData")


def test_no_data_file_is_copied_or_changed(tmp_path: Path) -> None:
    table = made(tmp_path / "t")
    before = {path: path.read_bytes() for path in (tmp_path / "t" / "data").iterdir()}
    table.export("delta")
    assert {path: path.read_bytes() for path in (tmp_path / "t" / "data").iterdir()} == before


def test_deletion_vectors_of_every_size_are_read(tmp_path: Path) -> None:
    table = tamis.create(tmp_path / "t", SMALL)
    ids = list(range(20_000))
    table.append(pa.table([ids, [f"s{i}" for i in ids]], schema=SMALL))
    table.delete("id = 7")
    table.export("delta")
    assert actions(table.path, 0, "add")[0]["deletionVector"]["storageType"] == "i"
    assert delta_by_deltalake(table.path) == delta_by_polars(table.path) == expected(table)
    table.delete("id % 3 = 1")
    table.export("delta")
    assert actions(table.path, 1, "add")[0]["deletionVector"]["storageType"] == "u"
    assert delta_by_deltalake(table.path) == delta_by_polars(table.path) == expected(table)
    table.delete("id BETWEEN 100 AND 9000")
    table.export("delta")
    assert delta_by_deltalake(table.path) == delta_by_polars(table.path) == expected(table)


def test_a_vector_has_deltas_form() -> None:
    """The bytes follow the protocol: magic, number of buckets, key and bitmap, between their length and CRC-32."""
    serialized = serialize_vector(pa.array([3, 4, 7]).to_numpy())
    data = bitmap64(serialized)
    assert data[:16].hex() == "d1d33964" + "0100000000000000" + "00000000"
    assert framed_bitmap(serialized)[:4] == len(data).to_bytes(4, "big")
    assert len(serialized) <= INLINE
    assert vector_descriptor("data/x.parquet", serialized, 3)["sizeInBytes"] == len(data)


@pytest.mark.parametrize("change", RENAMES)
def test_columns_under_older_names_need_mapping_by_id(tmp_path: Path, change: str) -> None:
    table = made(tmp_path / "t")
    table.export("delta")
    RENAMES[change](table)
    table.refresh()
    table.append(pa.table([[100]], names=["id"]))
    with pytest.raises(InvalidInput) as error:
        table.export("delta")
    assert error.value.code == "EXPORT_RENAMED"
    done = table.export("delta", by_id=True)
    (metadata,), (protocol,) = actions(table.path, 1, "metaData"), actions(table.path, 1, "protocol")
    assert metadata["configuration"]["delta.columnMapping.mode"] == "id"
    assert protocol["readerFeatures"] == ["columnMapping"]
    fields = {f["name"]: f["metadata"] for f in json.loads(metadata["schemaString"])["fields"]}
    assert {n: f["delta.columnMapping.id"] for n, f in fields.items()} == {
        f.name: int(f.metadata[b"PARQUET:field_id"]) for f in table.schema
    }
    names = [f["delta.columnMapping.physicalName"] for f in fields.values()]
    assert len(set(names)) == len(names)
    if change == "rename":
        assert fields["text"]["delta.columnMapping.physicalName"] == "s"  # the name that statistics have had so far
    if change == "replace a column":  # by name it would be the column that was dropped
        assert fields["s"]["delta.columnMapping.physicalName"].startswith("col-")
    assert done.notes
    table.append(pa.table([[101]], names=["id"]))
    assert table.export("delta").written  # what was allowed stays so


@pytest.mark.parametrize("change", RENAMES)
def test_columns_are_found_by_name_once_older_files_are_rewritten(tmp_path: Path, change: str) -> None:
    table = made(tmp_path / "t")
    table.export("delta")
    RENAMES[change](table)
    table.refresh().compact(cluster_by=["id", "day"])
    table.export("delta")
    assert delta_by_deltalake(table.path) == delta_by_polars(table.path) == expected(table)


def test_names_that_delta_forbids_are_mapped(tmp_path: Path) -> None:
    table = tamis.create(tmp_path / "t", pa.schema([("a b", pa.int64())]))
    table.append(pa.table({"a b": [1, 2]}))
    assert table.export("delta").notes == ()
    assert delta_by_deltalake(table.path) == expected(table)


def test_widened_columns_say_so(tmp_path: Path) -> None:
    table = made(tmp_path / "t")
    widen(table)
    table.export("delta")
    (metadata,) = actions(table.path, 0, "metaData")
    n = next(f for f in json.loads(metadata["schemaString"])["fields"] if f["name"] == "n")
    assert n["metadata"]["delta.typeChanges"] == [{"fromType": "integer", "toType": "long"}]
    assert actions(table.path, 0, "protocol")[0]["readerFeatures"] == ["typeWidening"]


def test_columns_that_are_not_null_are_a_feature_of_delta(tmp_path: Path) -> None:
    """Its own reader refuses a table with such a column and a list of features without it."""
    table = tamis.create(tmp_path / "t", "id BIGINT NOT NULL, s STRING")
    table.append(pa.table({"id": [1, 2], "s": ["a", "b"]}))
    table.export("delta")
    assert actions(table.path, 0, "protocol") == [{"minReaderVersion": 1, "minWriterVersion": 2}]
    table.delete("id = 2")
    table.export("delta")
    (protocol,) = actions(table.path, 1, "protocol")
    assert protocol["readerFeatures"] == ["deletionVectors"]
    assert protocol["writerFeatures"] == ["deletionVectors", "invariants"]
    assert delta_by_deltalake(table.path) == delta_by_polars(table.path) == expected(table)


REFUSED = {
    "TIME": ("EXPORT_TYPE", "x TIME"),
    "INTERVAL": ("EXPORT_TYPE", "x INTERVAL DAY TO SECOND"),
    "VARIANT": ("EXPORT_TYPE", "x VARIANT"),
    "nested": ("EXPORT_TYPE", "x STRUCT<a: ARRAY<VARIANT>>"),
}


@pytest.mark.parametrize("kind", REFUSED)
def test_types_that_delta_lacks_are_refused_by_name(tmp_path: Path, kind: str) -> None:
    code, column = REFUSED[kind]
    table = tamis.create(tmp_path / "t", f"id BIGINT, {column}")
    with pytest.raises(InvalidInput, match=r"'x") as error:
        table.export("delta")
    assert error.value.code == code
    assert not (tmp_path / "t" / "_delta_log").exists()


def test_defaults_of_older_files_are_refused_until_they_are_rewritten(tmp_path: Path) -> None:
    table = made(tmp_path / "t")
    table.alter().add_column("more", "BIGINT", default="7").commit()
    with pytest.raises(InvalidInput, match="'more'") as error:
        table.export("delta")
    assert error.value.code == "EXPORT_DEFAULT"
    table.refresh().compact(cluster_by=["id", "n"])
    table.export("delta")
    assert delta_by_deltalake(table.path) == expected(table)


@pytest.mark.parametrize("kind", ["orc", "vortex"])
def test_files_that_only_tamis_reads_are_refused_by_name(tmp_path: Path, kind: str) -> None:
    pytest.importorskip("vortex") if kind == "vortex" else None
    table = tamis.create(tmp_path / "t", SMALL, format=kind)
    table.append(pa.table([[1], ["a"]], schema=SMALL))
    with pytest.raises(InvalidInput) as error:
        table.export("delta")
    assert error.value.code == "EXPORT_FORMAT"
    assert error.value.name == table.metadata("parts")["part_id"][0].as_py()
    if kind == "orc":  # the seal hides the end that ORC's own readers look for
        with pytest.raises(OSError, match="postscript"):
            pa.orc.read_table(tmp_path / "t" / table.metadata("parts")["path"][0].as_py())


def test_a_table_without_columns_and_an_unknown_format_are_refused(tmp_path: Path) -> None:
    table = tamis.create(tmp_path / "t")
    with pytest.raises(InvalidInput) as error:
        table.export("delta")
    assert error.value.code == "EXPORT_NO_SCHEMA"
    with pytest.raises(InvalidInput) as error:
        table.export("hudi")
    assert error.value.code == "EXPORT_UNKNOWN_FORMAT"


def test_a_foreign_commit_ends_the_export(tmp_path: Path) -> None:
    table = made(tmp_path / "t")
    table.export("delta")
    deltalake.write_deltalake(table.path, rows(100), mode="append")
    table.append(rows(50))
    before = {p: p.read_bytes() for p in (tmp_path / "t" / "_delta_log").iterdir()}
    with pytest.raises(Conflict) as error:
        table.export("delta")
    assert error.value.code == "EXPORT_FOREIGN_COMMIT"
    assert {p: p.read_bytes() for p in (tmp_path / "t" / "_delta_log").iterdir()} == before


def test_a_foreign_table_in_the_folder_is_not_touched(tmp_path: Path) -> None:
    table = made(tmp_path / "t")
    deltalake.write_deltalake(tmp_path / "t", rows(1))
    with pytest.raises(Conflict) as error:
        table.export("delta")
    assert error.value.code == "EXPORT_FOREIGN_COMMIT"


def test_two_exporters_at_once(tmp_path: Path) -> None:
    """One of them loses the race for each version of the log, and finds its work done."""
    table = made(tmp_path / "t")
    store = open_store(table.path)
    snapshot = load(store)
    other = FaultyStore(open_store(table.path), Plan.none())
    put = other.put_if_absent

    def late(path: str, data: bytes) -> bool:
        if path.startswith("_delta_log"):
            export_delta(store, snapshot)
        return put(path, data)

    other.put_if_absent = late  # type: ignore[method-assign]
    assert not export_delta(other, snapshot).written
    assert delta_by_deltalake(table.path) == expected(table)
    assert len(list((tmp_path / "t" / "_delta_log").iterdir())) == 1


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.push_cases(2)
def test_a_fault_at_any_request_leaves_an_export_that_heals(
    tmp_path: Path, fault: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tamis.bridges.export.delta_vectors.INLINE", 0)
    table = made(tmp_path / "t")
    table.export("delta")
    table.delete("id % 3 = 1")
    counting = Plan.none()
    for index in range(100):
        plan = Plan.at(index, fault)
        table.update({"n": "n + 1"}, "id % 4 = 2")
        snapshot = load(open_store(table.path))
        done = False
        try:
            export_delta(FaultyStore(open_store(table.path), plan), snapshot)
            done = True
        except TamisError:
            pass
        plan.settle()
        if not done:
            table.export("delta")
        assert delta_by_deltalake(table.path) == expected(table)
        counting = plan
        if plan.calls <= index:
            break
    assert counting.calls < 100


def test_checkpoints_stand_for_the_log(tmp_path: Path) -> None:
    table = made(tmp_path / "t")
    table.delete("id = 3")
    for i in range(12):
        table.append(rows(100 + i))
        table.export("delta")
    log = tmp_path / "t" / "_delta_log"
    version = json.loads((log / "_last_checkpoint").read_text())["version"]
    assert version == 10
    for old in range(version):
        (log / f"{old:020}.json").unlink()
    assert delta_by_deltalake(table.path) == delta_by_polars(table.path) == expected(table)
    table.append(rows(200))
    if (log / f"{0:020}.json").exists():
        raise AssertionError
    with pytest.raises(TamisError) as error:  # the metadata stood in a commit that is gone
        table.export("delta")
    assert error.value.code == "EXPORT_DAMAGED"


def test_an_export_that_vacuum_has_overtaken_heals_by_its_log(tmp_path: Path) -> None:
    table = made(tmp_path / "t")
    table.delete("id % 3 = 1")
    table.export("delta")
    table.compact(cluster_by=["id", "n"])
    table.append(rows(70))
    store = open_store(table.path)
    tamis.engine.operations.vacuum(store, timedelta(0), dry_run=False, below_retention=True)
    done = table.export("delta")
    assert (done.files_added, done.files_removed) == (2, 2)
    assert delta_by_deltalake(table.path) == expected(table)


def test_dates_beyond_any_timestamp_have_no_bounds(tmp_path: Path) -> None:
    """A sentinel for "never" must not end the export, and vacuum with it."""
    days = pa.array([0, 2**31 - 5], pa.int32()).cast(pa.date32())
    table = tamis.create(tmp_path / "t", pa.schema([("day", pa.date32())]))
    table.append(pa.table({"day": days}))
    table.export("delta")
    stats = json.loads(next(iter(actions(table.path, 0, "add")))["stats"])
    assert stats["minValues"] == {"day": "1970-01-01"}
    assert "day" not in stats["maxValues"]


def test_bounds_hold_for_every_value(tmp_path: Path) -> None:
    table = made(tmp_path / "t")
    table.export("delta")
    for add in actions(table.path, 0, "add"):
        stats = json.loads(add["stats"])
        data = pq.read_table(tmp_path / "t" / add["path"]).to_pylist()
        assert stats["numRecords"] == len(data)
        assert "f" not in stats["maxValues"]  # there are NaN in it
        for name, low in stats["minValues"].items():
            found = sorted(_as_told(name, row[name]) for row in data if row[name] is not None)
            assert _padded(low) <= found[0]
            assert _padded(stats["maxValues"][name]) >= found[-1]
            assert stats["nullCount"][name] == sum(row[name] is None for row in data)


def _as_told(name: str, value: Any) -> Any:
    """A value as statistics tell it."""
    if name == "ts":
        return value.isoformat(timespec="microseconds")
    return str(value) if name == "day" else float(value) if name == "amount" else value


def _padded(bound: Any) -> Any:
    return bound.replace("Z", "000+00:00") if isinstance(bound, str) else bound
