"""Laws of vacuum: what can be needed stays, what cannot goes, and whoever asks for what is gone is told."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import tamis
from tamis.engine.operations.layout import index_operations as index_verbs
from tamis.engine.operations.streaming.stream_source import Follower
from tamis.engine.secondary_index.index_upkeep import build_entry
from tamis.errors import Conflict, InvalidInput, NotFound, StoreUnavailable
from tamis.storage.commit_log import Operation, Proposal, commit, load, manifests, transaction
from tamis.storage.object_store import Store
from tamis.storage.object_store.metadata_files import store_rows
from tamis.storage.object_store.store import Entry
from tamis.world import SeededWorld, new_id, use, world
from tests.operations.making import filled, held, rows

WEEK, DAY, HOUR = timedelta(days=7), timedelta(days=1), timedelta(hours=1)


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> object:
    """A clock that the tests move, which is also the store's."""
    listing = Store.list
    made: dict[tuple[str, str], int] = {}

    def listed(self: Store, *args: object, **named: object) -> list[Entry]:
        return [
            Entry(e.path, e.size, made.setdefault((self.url, e.path), world().now_micros()))
            for e in listing(self, *args, **named)  # type: ignore[arg-type]
        ]

    monkeypatch.setattr(Store, "list", listed)
    with use(SeededWorld(1)) as found:
        yield found


def paths(of: tamis.Table) -> set[str]:
    return {e.path for e in of.store.list("data")}


def test_what_compaction_left_goes_when_it_is_old() -> None:
    of = filled(5)
    first = paths(of)
    of.compact()
    before = held(of)
    assert len(of.vacuum(WEEK, dry_run=False).objects) == 0, "everything is younger than the retention"
    world().sleep(WEEK.total_seconds() + 1)
    planned = of.vacuum(WEEK)
    assert set(planned.objects["path"].to_pylist()) == first
    assert set(planned.objects["reason"].to_pylist()) == {"removed by a version before those retained"}
    assert paths(of) >= first, "a dry run removes nothing"
    done = of.vacuum(WEEK, dry_run=False)
    assert done.objects.equals(planned.objects.set_column(3, "age_seconds", done.objects["age_seconds"]))
    assert paths(of).isdisjoint(first)
    assert held(of) == before
    assert len(of.vacuum(WEEK, dry_run=False).objects) == 0
    assert of.history(1)["operation"][0].as_py() == "vacuum"


def test_nothing_to_remove_makes_no_version_and_lets_none_go() -> None:
    of = filled(2)
    of.overwrite(rows(900, 5))
    world().sleep(DAY.total_seconds())
    before = of.refresh().version
    done = of.vacuum(WEEK, dry_run=False)
    assert (done.version, done.oldest_version, len(done.objects), done.dry_run) == (before, 0, 0, False)
    assert of.refresh().version == before
    assert of.scan(version=1).count() == 50


def test_a_version_that_was_current_within_the_retention_is_kept() -> None:
    of = filled(3)
    world().sleep(2 * WEEK.total_seconds())
    before = held(of)
    version = of.refresh().version
    of.compact()
    assert len(of.vacuum(WEEK, dry_run=False).objects) == 0, "the parts are old, but they were live a moment ago"
    assert held(of, version=version) == before


def test_versions_that_are_gone_say_so() -> None:
    of = filled(4)
    of.compact()
    of.store.list()
    world().sleep(DAY.total_seconds() + 1)
    done = of.vacuum(DAY, dry_run=False, below_retention=True)
    assert done.oldest_version == 5
    for ask in (lambda: tamis.open(of.path, version=2), lambda: of.scan(version=2).to_arrow(), lambda: of.restore(2)):
        with pytest.raises(NotFound, match="vacuum") as caught:
            ask()
        assert caught.value.code == "VERSION_NOT_FOUND"
    with pytest.raises(NotFound, match=r"Its versions are 5 to \d+\."):
        tamis.open(of.path, version=99)
    assert tamis.open(of.path, version=5).scan().count() == 200
    with pytest.raises(NotFound, match="vacuum"):
        tamis.open(of.path, timestamp=of.history()["timestamp"].to_pylist()[-2])


def test_a_stream_begins_at_a_time_between_the_versions_that_went_and_those_kept() -> None:
    """The version before the first that it reads may be gone, since nothing of it is read."""
    of = filled(2)
    of.overwrite(rows(900, 5))
    of.store.list()
    world().sleep(2 * DAY.total_seconds())
    of.append(rows(1000, 5))
    world().sleep(2 * DAY.total_seconds())
    of.append(rows(2000, 5))
    assert of.vacuum(DAY, dry_run=False, below_retention=True).oldest_version == 4
    follower = Follower(of.store)
    times = {commit["version"]: int(commit["timestamp"].timestamp() * 1e6) for commit in of.history().to_pylist()}
    for begin in (times[3] + 1, times[4] - 1, times[4]):
        start = follower.begin(timestamp_micros=begin)
        assert (start.version, start) == (4, follower.begin(4))
        paths = [ref.path for ref in follower.parts(start, follower.advance(start))]
        assert paths == of.refresh().snapshot.parts()["path"].to_pylist()[1:]
    for begin in (times[0] - 1, times[2], times[3]):
        with pytest.raises(NotFound, match="vacuum") as caught:
            follower.begin(timestamp_micros=begin)
        assert caught.value.code == "VERSION_NOT_FOUND"


def test_orphans_of_failed_writes_go_and_running_ones_stay() -> None:
    of = filled(1)
    old = [
        f"data/{new_id()}.parquet",
        f"_tamis/manifest/{new_id()}.parquet",
        f"_tamis/rollup/1-{0:020}-{new_id()}.parts.parquet",
    ]
    strangers = ["data/readme.txt", "other/thing.parquet", "_tamis/manifest/notes.parquet", "data/_delta.parquet"]
    for path in (*old, *strangers):
        of.store.put(path, b"x")
    of.store.list()
    world().sleep(DAY.total_seconds() + 1)
    young = f"data/{new_id()}.parquet"
    of.store.put(young, b"x")
    done = of.vacuum(DAY, dry_run=False, below_retention=True)
    assert sorted(done.objects["path"].to_pylist()) == sorted(old)
    assert set(done.objects["reason"].to_pylist()) == {"of no version: a write that failed or was given up"}
    there = {e.path for e in of.store.list()}
    assert there >= {young, *strangers}
    assert there.isdisjoint(old)


def test_a_write_that_outlives_the_retention_gives_way_instead_of_losing_rows() -> None:
    """Its files may be gone: better no commit than one that names them."""
    of = filled(1)
    other = tamis.open(of.path)
    read_version = other.version
    manifest = of.snapshot.parts(None).drop_columns(["segment", "part"])
    late = manifest.set_column(0, "part_id", pa.array([new_id()]))
    of.store.put(f"data/{new_id()}.parquet", b"x")
    of.store.list()
    world().sleep(2 * HOUR.total_seconds())
    of.vacuum(HOUR, dry_run=False, below_retention=True)
    with pytest.raises(Conflict) as caught:
        commit(
            other.store,
            Proposal(Operation("append"), read_version, blind_append=True, add=[late], operation_id=new_id()),
        )
    assert caught.value.code == "CONFLICT_VACUUMED"
    assert of.append(rows(1_000, 3)).rows_inserted == 3, "a new write is fine"


def test_a_manifest_that_may_be_gone_is_not_committed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The clock of the executors, which named the parts, is a day ahead of that of the driver, which names the segment."""
    of = filled(1)
    ahead = f"{world().now_micros() // 1_000 + int(DAY.total_seconds()) * 1_000:012x}{'0' * 20}"
    manifest = of.snapshot.parts(None).drop_columns(["segment", "part"])
    added = manifests.add_segment
    made: list[Any] = []

    def slow(*arguments: Any) -> Any:
        segment = added(*arguments)
        if not made:
            made.append(segment)
            of.store.put(f"data/{new_id()}.parquet", b"x")
            of.store.list()
            world().sleep(2 * HOUR.total_seconds())
            tamis.open(of.path).vacuum(HOUR, dry_run=False, below_retention=True)
        return segment

    monkeypatch.setattr(transaction, "add_segment", slow)
    with pytest.raises(Conflict) as caught:
        commit(
            of.store,
            Proposal(
                Operation("append"),
                of.version,
                blind_append=True,
                add=[manifest.set_column(0, "part_id", pa.array([ahead]))],
                operation_id=new_id(),
            ),
        )
    assert (caught.value.code, len(made)) == ("CONFLICT_VACUUMED", 1)


@pytest.mark.parametrize("folder", ["data", "_tamis", "_tamis/manifest"])
def test_nothing_is_removed_through_a_link(tmp_path: Path, folder: str) -> None:
    """Two tables whose folders are linked to one place would take each other's files for failed writes."""
    tables = [tamis.create(tmp_path / name, "id BIGINT") for name in ("a", "b")]
    for table in tables:
        table.append(pa.table({"id": range(3)}))
    (tmp_path / "a" / folder).mkdir(parents=True, exist_ok=True)
    (tmp_path / "a" / folder).rename(tmp_path / "elsewhere")
    (tmp_path / "a" / folder).symlink_to(tmp_path / "elsewhere", target_is_directory=True)
    assert tables[0].scan().count() == 3
    for dry in (True, False):
        with pytest.raises(InvalidInput) as caught:
            tables[0].vacuum("0s", dry_run=dry, below_retention=True)
        assert caught.value.code == "LINKED_FOLDER"
        assert caught.value.name.startswith(folder)
    (tmp_path / "link").symlink_to(tmp_path / "b", target_is_directory=True)
    tamis.open(tmp_path / "link").vacuum("0s", dry_run=False, below_retention=True)
    assert tables[1].scan().count() == 3


def test_an_index_build_that_outlives_the_retention_gives_way(monkeypatch: pytest.MonkeyPatch) -> None:
    """What it built may be gone."""
    of = filled(3)
    of.create_index("by_user", ["user"], build="deferred")
    true = build_entry

    def slow(*arguments: Any) -> Any:
        made = true(*arguments)
        of.store.list()
        world().sleep(2 * HOUR.total_seconds())
        tamis.open(of.path).vacuum(HOUR, dry_run=False, below_retention=True)
        return made

    with monkeypatch.context() as patched:
        patched.setattr(index_verbs, "build_entry", slow)
        with pytest.raises(Conflict) as caught:
            of.repair_index()
    assert caught.value.code == "CONFLICT_VACUUMED"
    assert of.verify().ok
    of.repair_index()
    assert not of.indexes()[0].missing
    assert of.verify().ok


def test_deletion_vectors_are_there_however_long_their_delete_took(monkeypatch: pytest.MonkeyPatch) -> None:
    """A file of them is written before the commit that names it, and a vacuum may come in between."""
    of = filled(6)
    waited: list[str] = []

    def slow(store: Store, tables: Any, schema: pa.Schema, path: str) -> Any:
        kept = store_rows(store, tables, schema, path, limit=0)
        if not waited:
            waited.append(path)
            assert path in {e.path for e in store.list()}
            world().sleep(2 * HOUR.total_seconds())
            assert (
                path
                in tamis.open(of.path).vacuum(HOUR, dry_run=False, below_retention=True).objects["path"].to_pylist()
            )
        return kept

    monkeypatch.setattr(transaction, "store_rows", slow)
    assert of.delete("ts % 5 = 2").rows_deleted
    assert waited
    assert of.verify().ok, of.verify().problems.to_pylist()


def test_restore_gives_way_to_a_vacuum() -> None:
    of = filled(2)
    of.overwrite(rows(900, 5))
    base = load(of.store)
    of.store.list()
    world().sleep(2 * HOUR.total_seconds())
    of.vacuum(HOUR, dry_run=False, below_retention=True)
    with pytest.raises(Conflict) as caught:
        commit(of.store, Proposal(Operation("restore"), base.version, restores=2, operation_id="x" * 32))
    assert caught.value.code == "CONFLICT_VACUUMED"


def test_restore_believes_the_log() -> None:
    """A vacuum that has committed and not yet written its marker is at work: what it lets go cannot be taken up again."""
    of = filled(3)
    of.overwrite(rows(900, 5))
    of.store.list()
    world().sleep(2 * HOUR.total_seconds())
    of.vacuum(HOUR, dry_run=False, below_retention=True)
    of.store.delete("_tamis/vacuumed")
    with pytest.raises(NotFound, match="vacuum"):
        of.restore(2)


def test_a_marker_that_cannot_be_read_is_not_one_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    of = filled(1)
    getting = Store.get

    def get(self: Store, path: str) -> bytes:
        if path == "_tamis/vacuumed":
            raise StoreUnavailable("planned")
        return getting(self, path)

    monkeypatch.setattr(Store, "get", get)
    for ask in (lambda: of.vacuum(HOUR, below_retention=True), lambda: tamis.open(of.path, version=0)):
        with pytest.raises(StoreUnavailable, match="planned"):
            ask()


def test_manifests_of_dead_segments_go_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tamis.storage.object_store.metadata_files.INLINE_BYTES", 0)
    monkeypatch.setattr("tamis.storage.object_store.metadata_files.store_rows.__kwdefaults__", {"limit": 0})
    of = filled(3)
    assert of.store.list("_tamis/manifest")
    of.compact()
    of.store.list()
    before = held(of)
    world().sleep(WEEK.total_seconds() + 1)
    done = of.vacuum(WEEK, dry_run=False)
    assert {"data file", "table of the log"} <= set(done.objects["kind"].to_pylist())
    assert held(tamis.open(of.path)) == before
    assert tamis.open(of.path).verify().ok


def test_rollups_keep_their_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tamis.storage.commit_log.rollups.INLINE_BYTES", 0)
    of = filled(40, size=2)
    before = held(of)
    assert [e for e in of.store.list("_tamis/rollup") if e.path.endswith(".parquet")]
    world().sleep(WEEK.total_seconds() + 1)
    of.vacuum(WEEK, dry_run=False)
    assert held(tamis.open(of.path)) == before
    assert tamis.open(of.path).verify(data=False).ok


def test_parts_of_indexes_stay() -> None:
    of = filled(3)
    of.create_index("by_user", ["user"])
    there = {e.path for e in of.store.list("index")}
    assert there
    world().sleep(WEEK.total_seconds() + 1)
    assert not len(of.vacuum(WEEK, dry_run=False).objects)
    assert {e.path for e in of.store.list("index")} == there
    of.drop_index("by_user")
    world().sleep(WEEK.total_seconds() + 1)
    assert set(of.vacuum(WEEK, dry_run=False).objects["path"].to_pylist()) == there


@pytest.mark.parametrize(
    ("text", "length"),
    [
        ("90m", timedelta(minutes=90)),
        (" 1.5 D ", timedelta(hours=36)),
        ("0s", timedelta(0)),
        ("2w", timedelta(days=14)),
    ],
)
def test_a_retention_may_be_text(text: str, length: timedelta) -> None:
    assert filled(1).vacuum(text, below_retention=True).retention == length


@pytest.mark.parametrize("dry_run", [True, False])
def test_a_short_retention_must_be_asked_for(dry_run: bool) -> None:
    """The dry run too: it shows what the same call would do."""
    of = filled(3)
    of.delete(all_rows=True)
    world().sleep(60)
    before = {e.path for e in of.store.list("")}
    for short in ("0s", WEEK - timedelta(microseconds=1)):
        with pytest.raises(InvalidInput) as caught:
            of.vacuum(short, dry_run=dry_run)
        assert (caught.value.code, caught.value.name) == ("BELOW_RETENTION", "retention")
    assert {e.path for e in of.store.list("")} == before
    assert of.vacuum("7d", dry_run=dry_run).objects.num_rows == 0
    assert of.vacuum("0s", dry_run=dry_run, below_retention=True).objects.num_rows > 0


@pytest.mark.parametrize("retention", [timedelta(seconds=-1), 7, None, "7", "a week", "-3d", "9" * 400 + "d"])
def test_a_retention_is_a_length_of_time(retention: object) -> None:
    of = filled(1)
    with pytest.raises(InvalidInput) as caught:
        of.vacuum(retention)  # type: ignore[arg-type]
    assert caught.value.code == "BAD_RETENTION"


def test_changes_of_versions_that_went_are_refused() -> None:
    of = filled(5)
    of.delete("ts = 3")
    of.compact()
    of.vacuum(WEEK)  # the store's clock begins with its first listing
    world().sleep(WEEK.total_seconds() + 1)
    of.append(rows(900, 5))
    done = of.vacuum(WEEK, dry_run=False)
    assert len(done.objects)
    for asked in ({}, {"keys": ["ts"]}, {"net": True}):
        with pytest.raises(NotFound, match="removed by vacuum") as error:
            of.changes(1, **asked).to_arrow()
        assert error.value.code == "VERSION_NOT_FOUND"
    assert of.changes(done.oldest_version).to_arrow().num_rows == 5
