"""A table that follows a source: each version of it becomes a commit, with the same rows."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tamis
from tamis.bridges.adoption.source_sync import Synchronization
from tamis.storage.object_store.store import Store
from tests.bridges import delta_logs as logs
from tests.bridges import iceberg_tables as ice
from tests.bridges.foreign_tables import contents, sorted_rows
from tests.bridges.source_histories import DELTA, ICEBERG, followed_delta, rows


def delta_rows(folder: Path, version: int | None = None) -> list[str]:
    return sorted_rows(deltalake.DeltaTable(folder, version=version).to_pyarrow_table())


@given(st.lists(st.lists(st.sampled_from(sorted(DELTA)), min_size=1, max_size=3), min_size=1, max_size=3))
@pytest.mark.merge
def test_a_delta_table_is_followed_through_any_history(
    tmp_path_factory: pytest.TempPathFactory, steps: list[list[str]]
) -> None:
    folder = tmp_path_factory.mktemp("delta")
    source = folder / "source"
    for start in (0, 10):
        deltalake.write_deltalake(source, rows(start), mode="append", partition_by=["p"])
    table = tamis.adopt(source, folder / "t", follow=True)
    assert isinstance(table, tamis.Table)
    first = 1
    for names in steps:
        for name in names:
            DELTA[name](source)
        before = contents(source)
        done = table.sync()
        assert contents(source) == before
        newest = deltalake.DeltaTable(source).version()
        assert (done.source_version, done.version) == (str(newest), newest - first)
        table.refresh()
        assert sorted_rows(table.scan().to_arrow()) == delta_rows(source)
        assert sorted_rows(table.scan("k > 8 AND p <> 'p2'").to_arrow()) == sorted_rows(
            deltalake.DeltaTable(source).to_pyarrow_table(filters=[("k", ">", 8), ("p", "!=", "p2")])
        )
    assert table.verify().ok
    for version in range(first, deltalake.DeltaTable(source).version() + 1):
        own = tamis.open(folder / "t", version=table.version_of_source(version))
        with contextlib.suppress(FileNotFoundError):
            assert sorted_rows(own.scan().to_arrow()) == delta_rows(source, version)


WRITES: Mapping[str, Callable[[tamis.Table], object]] = {
    "append": lambda table: table.append(rows(0)),
    "append of another schema": lambda table: table.append(pa.table({"new": [1]}), merge_schema=True),
    "overwrite": lambda table: table.overwrite(rows(0)),
    "overwrite some": lambda table: table.overwrite(rows(0, 1), "k = 0"),
    "delete": lambda table: table.delete("k = 1"),
    "delete all": lambda table: table.delete("true"),
    "update": lambda table: table.update({"s": "'x'"}, "k = 1"),
    "upsert": lambda table: table.upsert(rows(0), on=["k"]),
    "merge": lambda table: table.merge(rows(0), "target.k = source.k").when_matched_delete().execute(),
    "compact": lambda table: table.compact(),
    "restore": lambda table: table.restore(0),
    "add a column": lambda table: table.alter().add_column("z", "INT").commit(),
    "rename": lambda table: table.alter().rename_column("s", "t").commit(),
    "constraint": lambda table: table.alter().add_check("c", "k >= 0").commit(),
}


@pytest.mark.push_cases(5)
@pytest.mark.parametrize("name", WRITES)
def test_only_a_synchronization_changes_the_rows(tmp_path: Path, name: str) -> None:
    source, table = followed_delta(tmp_path)
    DELTA["append"](source)
    table.sync()
    before = contents(tmp_path)
    with pytest.raises(tamis.errors.InvalidInput, match=r"FOLLOWING_TABLE|has no version 0"):
        WRITES[name](tamis.open(tmp_path / "t"))
    assert sorted_rows(tamis.open(tmp_path / "t").scan().to_arrow()) == delta_rows(source)
    assert {k: v for k, v in contents(tmp_path).items() if "_log" in k} == {
        k: v for k, v in before.items() if "_log" in k
    }


def test_upkeep_is_allowed(tmp_path: Path) -> None:
    source, table = followed_delta(tmp_path)
    table.create_index("by_k", ["k"])
    DELTA["delete"](source)
    table.sync()
    table.repair_index("by_k")
    table.alter().set_properties({"owner": "me"}).commit()
    table.vacuum(dry_run=False)
    DELTA["append"](source)
    table.sync()
    assert sorted_rows(table.scan().to_arrow()) == delta_rows(source)
    assert table.scan("k = 105").to_arrow()["s"].to_pylist() == ["é105"]
    assert table.verify().ok


def test_a_table_that_follows_nothing(tmp_path: Path) -> None:
    deltalake.write_deltalake(tmp_path / "source", rows(0))
    table = tamis.adopt(tmp_path / "source", tmp_path / "t")
    assert isinstance(table, tamis.Table)
    with pytest.raises(tamis.errors.InvalidInput, match="NOT_FOLLOWING"):
        table.sync()
    table.append(rows(30))
    table.delete("k = 31")
    assert len(table.scan().to_arrow()) == 19


def vectored(folder: Path, *steps: Mapping[str, Any] | None) -> Callable[[int], None]:
    """Create a table of one file; each call of the result commits the file with that step's vector."""
    data = pa.table({"v": list(range(30))})
    metadata_action = {"metaData": logs.metadata([logs.field("v", "long")])}
    stats = {"minValues": {"v": 0}, "maxValues": {"v": 29}, "nullCount": {"v": 0}, "tightBounds": False}

    def added(step: int) -> dict[str, Any]:
        vector = steps[step]
        return logs.add(folder, "a.parquet", data, stats, **({} if vector is None else {"deletionVector": vector}))

    os.utime(
        logs.commit(folder, 0, [{"protocol": logs.protocol("deletionVectors")}, metadata_action, added(0)]), ns=(1, 1)
    )
    stamp = (folder / "a.parquet").stat()

    def take(step: int) -> None:
        before = steps[step - 1]
        gone = logs.remove("a.parquet", **({} if before is None else {"deletionVector": before}))
        os.utime(logs.commit(folder, step, [added(step), gone]), ns=(1, 1))  # by its time, the file could be a new one
        os.utime(folder / "a.parquet", ns=(stamp.st_mtime_ns, stamp.st_mtime_ns))

    return take


def part_ids(table: tamis.Table) -> list[str]:
    found: list[str] = table.metadata("parts")["part_id"].to_pylist()
    return found


def test_deletion_vectors_move_along(tmp_path: Path) -> None:
    gone = [None, [3], [3, 5], [5], list(range(30))]
    (tmp_path / "source").mkdir()
    (stored,) = logs.stored_vectors(tmp_path / "source", [3, 5])
    vectors = [None, logs.inline_vector([3]), stored, logs.inline_vector([5]), logs.inline_vector(range(30))]
    take = vectored(tmp_path / "source", *vectors)
    table = tamis.adopt(tmp_path / "source", tmp_path / "t", follow=True)
    assert isinstance(table, tamis.Table)
    ids = [part_ids(table)]
    for step in range(1, 5):
        take(step)
        table.sync()
        found = sorted(table.scan().to_arrow()["v"].to_pylist())
        assert found == sorted(set(range(30)) - set(gone[step] or ())), step
        ids.append(part_ids(table))
    assert ids[0] == ids[1] == ids[2]  # rows that go are deleted from the part
    assert ids[3] != ids[2]  # rows that come back make it another part
    assert ids[4] == []


@pytest.mark.parametrize("flag", [True, False])
def test_a_file_that_is_named_again_is_no_other_file(tmp_path: Path, flag: bool) -> None:
    """Writers may add a file anew, to change its statistics."""
    source, table = followed_delta(tmp_path)
    action = next(
        line for line in (source / "_delta_log" / f"{1:020}.json").read_text().splitlines() if line.startswith('{"add"')
    )
    again = action.replace('"dataChange":true', f'"dataChange":{str(flag).lower()}')
    assert again.count("dataChange") == 1
    (source / "_delta_log" / f"{2:020}.json").write_text(again + "\n")
    table.sync()
    assert sorted_rows(table.scan().to_arrow()) == sorted_rows(pa.concat_tables([rows(0), rows(10)]))


def test_a_file_that_is_named_again_in_another_partition_moves(tmp_path: Path) -> None:
    folder = tmp_path / "source"

    def added(value: str) -> dict[str, Any]:
        return logs.add(folder, "a.parquet", pa.table({"v": [1, 2]}), {}, partitionValues={"p": value})

    metadata = logs.metadata([logs.field("v", "long"), logs.field("p", "long")], ["p"])
    logs.commit(folder, 0, [{"protocol": logs.PROTOCOL}, {"metaData": metadata}, first := added("1")])
    table = tamis.adopt(folder, tmp_path / "t", follow=True)
    assert isinstance(table, tamis.Table)
    logs.commit(folder, 1, [first])
    table.sync()
    before = part_ids(table)
    logs.commit(folder, 2, [{"add": {**first["add"], "partitionValues": {"p": "7"}}}])
    table.sync()
    assert table.scan("p = 7").to_arrow().to_pylist() == [{"v": 1, "p": 7}, {"v": 2, "p": 7}]
    assert len(table.scan().to_arrow()) == 2
    assert part_ids(table) != before
    assert len(before) == 1


def test_renames_follow(tmp_path: Path) -> None:
    def mapped(name: str, identifier: int) -> dict[str, Any]:
        ids = {"delta.columnMapping.id": identifier, "delta.columnMapping.physicalName": f"col-{identifier}"}
        return logs.field(name, "long", **ids)

    folder, mode = tmp_path / "source", {"delta.columnMapping.mode": "name"}
    first = logs.add(folder, "a.parquet", pa.table({"col-1": [1, 2], "col-2": [3, 4]}), {})
    metadata = logs.metadata([mapped("a", 1), mapped("b", 2)], **mode)
    logs.commit(folder, 0, [{"protocol": logs.protocol("columnMapping")}, {"metaData": metadata}, first])
    table = tamis.adopt(folder, tmp_path / "t", follow=True)
    assert isinstance(table, tamis.Table)
    second = logs.add(folder, "b.parquet", pa.table({"col-1": [5], "col-3": [6]}), {"minValues": {"col-1": 5}})
    renamed = logs.metadata([mapped("b", 1), mapped("c", 3)], **mode)  # b is dropped, and a takes its name
    logs.commit(folder, 1, [{"metaData": renamed}, second])
    table.sync()
    table.refresh()
    found = sorted(table.scan().to_arrow().to_pylist(), key=lambda r: int(r["b"]))
    assert found == [{"b": 1, "c": None}, {"b": 2, "c": None}, {"b": 5, "c": 6}]
    assert table.scan("b = 2").to_arrow().to_pylist() == [{"b": 2, "c": None}]
    old = tamis.open(tmp_path / "t", version=table.version_of_source(0)).scan().to_arrow()
    assert old.to_pylist() == [{"a": 1, "b": 3}, {"a": 2, "b": 4}]
    unmapped = logs.metadata([logs.field("b", "long"), logs.field("c", "long")])
    logs.commit(folder, 2, [{"metaData": unmapped}])
    with pytest.raises(tamis.errors.InvalidInput, match=r"SOURCE_LAYOUT.*column mapping"):
        table.sync()


def test_a_column_that_came_with_an_overwrite_is_another_one(tmp_path: Path) -> None:
    source, table = followed_delta(tmp_path)
    for data in (
        pa.table({"k": ["text"], "extra": [1]}),
        pa.table({"k": ["text"]}),
        pa.table({"k": ["text"], "other": [2]}),
    ):
        deltalake.write_deltalake(source, data, mode="overwrite", schema_mode="overwrite")
    table.sync()
    table.refresh()
    assert sorted_rows(table.scan("k = 'text'").to_arrow()) == delta_rows(source)
    ids = [f["id"] for s in table.metadata("schemas").to_pylist() for f in _fields(s)]
    assert len(set(ids)) == 6  # k, p, s; k, extra; other


def _fields(schema: Mapping[str, Any]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(schema["json"])["fields"]
    return found


def test_a_history_with_a_gap_is_recognised(tmp_path: Path) -> None:
    source, table = followed_delta(tmp_path)
    for name in ("append", "delete", "append"):
        DELTA[name](source)
    deltalake.DeltaTable(source).create_checkpoint()
    (source / "_delta_log" / f"{2:020}.json").unlink()
    with pytest.raises(tamis.errors.CorruptData, match=r"SOURCE_HISTORY_GONE.*no commit 2.*skip_history"):
        table.sync()
    for at in (0, 1):
        (source / "_delta_log" / f"{at:020}.json").unlink()
    with pytest.raises(tamis.errors.CorruptData, match="SOURCE_HISTORY_GONE"):
        table.sync()
    done = table.sync(skip_history=True)
    assert (done.commits, done.source_version) == (1, "4")
    assert sorted_rows(table.scan().to_arrow()) == delta_rows(source)
    DELTA["update"](source)
    assert table.sync().commits == 1
    assert sorted_rows(table.scan().to_arrow()) == delta_rows(source)


def test_another_table_in_its_place_is_recognised(tmp_path: Path) -> None:
    source, table = followed_delta(tmp_path)
    shutil.rmtree(source)
    for start in (500, 510, 520):
        deltalake.write_deltalake(source, rows(start), mode="append")
    with pytest.raises(tamis.errors.CorruptData, match="SOURCE_REPLACED"):
        table.sync()
    with pytest.raises(tamis.errors.CorruptData, match="SOURCE_REPLACED"):
        table.sync(skip_history=True)


def test_a_commit_that_was_only_touched_is_the_same(tmp_path: Path) -> None:
    source, table = followed_delta(tmp_path)
    os.utime(source / "_delta_log" / f"{1:020}.json", ns=(1, 1))
    DELTA["append"](source)
    assert table.sync().commits == 1


def test_two_synchronizations_at_once(tmp_path: Path) -> None:
    source, table = followed_delta(tmp_path)
    for name in ("append", "delete", "update", "append"):
        DELTA[name](source)

    def one(_: int) -> Synchronization:
        return tamis.open(tmp_path / "t").sync()

    with ThreadPoolExecutor(4) as pool:
        done = list(pool.map(one, range(4)))
    assert {d.source_version for d in done} == {"5"}
    assert table.refresh().version == 4
    assert sorted_rows(table.scan().to_arrow()) == delta_rows(source)
    syncs = [r for r in table.history().to_pylist() if r["operation"] == "sync"]
    assert len(syncs) == 4


class Killed(BaseException):
    """The process is gone."""


def test_killed_at_any_write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source, _ = followed_delta(tmp_path)
    for name in ("append", "delete", "add a column"):
        DELTA[name](source)
    expected, plain, outlived, at = delta_rows(source), Store._run, False, 0
    while not outlived:
        place = tmp_path / f"t{at}"
        shutil.copytree(tmp_path / "t", place)
        count = [0]

        def run(
            self: Store,
            action: str,
            path: str,
            call: Any,
            *,
            create: bool = False,
            at: int = at,
            count: list[int] = count,
        ) -> Any:
            count[0] += action in {"write", "delete"}
            if count[0] > at:
                raise Killed
            return plain(self, action, path, call, create=create)

        with monkeypatch.context() as patched:
            patched.setattr(Store, "_run", run)
            with contextlib.suppress(Killed):
                tamis.open(place).sync()
                outlived = True
        table = tamis.open(place)
        assert sorted_rows(table.scan().to_arrow()) == delta_rows(source, table.version + 1), at
        table.sync()
        assert sorted_rows(tamis.open(place).scan().to_arrow()) == expected, at
        at += 1
    assert at > 4


def test_a_failed_request_leaves_nothing_half_done(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source, _ = followed_delta(tmp_path)
    for name in ("append", "delete"):
        DELTA[name](source)
    expected, plain, outlived, at = delta_rows(source), Store._run, False, 0
    while not outlived:
        place = tmp_path / f"t{at}"
        shutil.copytree(tmp_path / "t", place)
        count = [0]

        def run(
            self: Store,
            action: str,
            path: str,
            call: Any,
            *,
            create: bool = False,
            at: int = at,
            count: list[int] = count,
        ) -> Any:
            count[0] += 1
            if at < count[0] <= at + 5:  # more often than anything is repeated
                raise tamis.errors.StoreUnavailable("The store is gone.", name=path, remedy="Wait.")
            return plain(self, action, path, call, create=create)

        table = tamis.open(place)
        with monkeypatch.context() as patched:
            patched.setattr(Store, "_run", run)
            try:
                table.sync()
                outlived = count[0] <= at
            except tamis.errors.StoreUnavailable:
                pass
        table = tamis.open(place)
        assert sorted_rows(table.scan().to_arrow()) == delta_rows(source, table.version + 1), at
        table.sync()
        assert sorted_rows(tamis.open(place).scan().to_arrow()) == expected, at
        at += 3
    assert at > 12


def test_a_file_that_is_gone_is_named(tmp_path: Path) -> None:
    source, table = followed_delta(tmp_path)
    version = table.version
    before = set(source.glob("*.parquet"))
    DELTA["append"](source)
    (new,) = set(source.glob("*.parquet")) - before
    data = new.read_bytes()
    new.unlink()
    with pytest.raises(tamis.errors.CorruptData, match=rf"SOURCE_CHANGED.*{new.name}.*is gone"):
        table.sync()
    new.write_bytes(data[:-20] + b"x" * 20)
    with pytest.raises(tamis.errors.TamisError, match=new.name):
        table.sync()
    assert tamis.open(tmp_path / "t").version == version
    new.write_bytes(data)
    assert table.sync().commits == 1
    min(before).unlink()
    with pytest.raises(tamis.errors.CorruptData, match="SOURCE_CHANGED"):
        tamis.adopt(source, tmp_path / "other")
    assert not (tmp_path / "other").exists()


def followed_iceberg(folder: Path) -> tuple[Any, tamis.Table]:
    source = ice.catalog(folder).create_table("n.t", rows(0).schema)
    for start in (0, 10):
        source.append(rows(start))
    return source, adopted(folder)


def adopted(folder: Path) -> tamis.Table:
    options = {"catalog": "local", "catalog.type": "sql", "catalog.uri": f"sqlite:///{folder}/catalog.db"}
    table = tamis.adopt(
        "n.t",
        folder / "t",
        follow=True,
        source_options={**options, "catalog.warehouse": f"file://{folder}/warehouse"},
    )
    assert isinstance(table, tamis.Table)
    return table


def synced(folder: Path, table: tamis.Table, **more: Any) -> Synchronization:
    options = {"catalog.type": "sql", "catalog.uri": f"sqlite:///{folder}/catalog.db"}
    return table.sync(source_options=options, **more)


@pytest.mark.filterwarnings("ignore:Delete operation did not match any records")
@given(st.lists(st.lists(st.sampled_from(sorted(ICEBERG)), min_size=1, max_size=3), min_size=1, max_size=2))
def test_an_iceberg_table_is_followed_through_any_history(
    tmp_path_factory: pytest.TempPathFactory, steps: list[list[str]]
) -> None:
    folder = tmp_path_factory.mktemp("iceberg")
    source, table = followed_iceberg(folder)
    for names in steps:
        for name in names:
            ICEBERG[name](source)
        before = contents(folder / "warehouse")
        done = synced(folder, table)
        assert contents(folder / "warehouse") == before
        table.refresh()
        assert done.source_version == str(source.current_snapshot().snapshot_id)
        assert sorted_rows(table.scan().to_arrow()) == sorted_rows(source.scan().to_arrow())
        assert sorted_rows(table.scan("k > 8").to_arrow()) == sorted_rows(source.scan("k > 8").to_arrow())
    assert table.verify().ok
    for snapshot in source.snapshots()[1:]:
        own = tamis.open(folder / "t", version=table.version_of_source(snapshot.snapshot_id))
        theirs = source.scan(snapshot_id=snapshot.snapshot_id).to_arrow()
        assert sorted(own.scan().to_arrow()["k"].to_pylist()) == sorted(theirs["k"].to_pylist())


def test_a_rolled_back_or_replaced_iceberg_table_is_recognised(tmp_path: Path) -> None:
    source, table = followed_iceberg(tmp_path)
    first = source.snapshots()[0].snapshot_id
    source.manage_snapshots().rollback_to_snapshot(first).commit()
    with pytest.raises(tamis.errors.CorruptData, match="SOURCE_HISTORY_GONE"):
        synced(tmp_path, table)
    assert synced(tmp_path, table, skip_history=True).source_version == str(first)
    assert sorted_rows(table.scan().to_arrow()) == sorted_rows(source.scan().to_arrow())
    found = ice.catalog(tmp_path)
    found.drop_table("n.t")
    found.create_table("n.t", rows(0).schema).append(rows(900))
    for skip in (False, True):
        with pytest.raises(tamis.errors.CorruptData, match="SOURCE_REPLACED"):
            synced(tmp_path, table, skip_history=skip)


def test_a_metadata_file_cannot_be_followed(tmp_path: Path) -> None:
    source, _ = followed_iceberg(tmp_path)
    with pytest.raises(tamis.errors.InvalidInput, match="SOURCE_FIXED"):
        tamis.adopt(ice.metadata_of(source), tmp_path / "other", follow=True)
    table = tamis.adopt(ice.metadata_of(source), tmp_path / "other")
    assert isinstance(table, tamis.Table)
    assert sorted_rows(table.scan().to_arrow()) == sorted_rows(source.scan().to_arrow())


def test_no_secret_of_a_catalog_is_kept(tmp_path: Path) -> None:
    _, table = followed_iceberg(tmp_path)
    commits = "".join(p.read_text() for p in (tmp_path / "t" / "_tamis" / "log").iterdir())
    assert "catalog.db" not in commits
    assert table.version == 0


@pytest.mark.parametrize(
    ("options", "match"),
    [({"version": 0}, "from its newest version"), ({"zoned": "UTC"}, "no option 'zoned'")],
)
def test_options_of_a_source_are_checked(tmp_path: Path, options: dict[str, Any], match: str) -> None:
    deltalake.write_deltalake(tmp_path / "source", rows(0))
    with pytest.raises(tamis.errors.InvalidInput, match=match):
        tamis.adopt(tmp_path / "source", tmp_path / "t", follow=True, source_options=options)
    assert not (tmp_path / "t").exists()


def test_iceberg_rolled_back_and_forward_is_a_restore(tmp_path: Path) -> None:
    source, table = followed_iceberg(tmp_path)
    first = source.current_snapshot().snapshot_id
    source.append(rows(20))
    synced(tmp_path, table)
    source.append(rows(30))
    newest = source.current_snapshot().snapshot_id
    synced(tmp_path, table, skip_history=True)
    source.manage_snapshots().rollback_to_snapshot(first).commit()
    synced(tmp_path, table, skip_history=True)
    source.manage_snapshots().set_current_snapshot(newest).commit()
    synced(tmp_path, table)
    source.append(rows(40))
    synced(tmp_path, table)
    assert sorted_rows(table.scan().to_arrow()) == sorted_rows(source.scan().to_arrow())
    may_restore = [json.loads(text).get("may_restore", False) for text in table.history()["parameters"].to_pylist()[:6]]
    assert may_restore[::-1] == [False, False, False, True, True, False]


def test_an_append_of_a_file_that_is_there_is_refused(tmp_path: Path) -> None:
    """As an adoption refuses it: a row of such a table has no place of its own."""
    source, table = followed_iceberg(tmp_path)
    (path,) = {file["file_path"] for file in source.inspect.files().to_pylist()[:1]}
    mapping = source.schema().name_mapping.model_dump_json()
    source.transaction().set_properties({"schema.name-mapping.default": mapping}).commit_transaction()
    source.add_files([path], check_duplicate_files=False)
    before = table.version
    for skip in (False, True):
        with pytest.raises(tamis.errors.CorruptData, match="listed twice"):
            synced(tmp_path, table, skip_history=skip)
    assert table.refresh().version == before
