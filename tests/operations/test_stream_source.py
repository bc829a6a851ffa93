"""Laws of following: no part is left out or returned twice, however the steps are cut; other changes are errors."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tamis
from tamis.engine.operations.streaming import stream_source
from tamis.engine.operations.streaming.stream_source import Follower, Position
from tamis.errors import InvalidInput, NotFound, SchemaFenced, TamisError
from tamis.storage.object_store.object_cache import CACHE
from tests.bridges import delta_logs as logs
from tests.operations.making import filled, rows


def ids(of: tamis.Table) -> list[str]:
    return of.refresh().snapshot.parts(None)["path"].to_pylist()


def paths_between(follower: Follower, start: Position, end: Position) -> list[str]:
    return [ref.path for ref in follower.parts(start, end)]


@pytest.fixture(scope="module")
def grown() -> tamis.Table:
    """Seven appends, of which the last comes after the others have been followed."""
    return filled(7, size=3)


@given(steps=st.lists(st.integers(1, 5), min_size=1, max_size=12), version=st.sampled_from([None, 0, 3]))
def test_any_steps_tell_everything_once(grown: tamis.Table, steps: list[int], version: int | None) -> None:
    follower, late = Follower(grown.store), Position(grown.snapshot.head.table_id, 7)
    at = replace(late, version=6, whole=True) if version is None else follower.begin(version)
    expected = ids(grown) if version is None else ids(grown)[max(version - 1, 0) :]
    seen: list[str] = []
    for step in steps:
        after = follower.advance(at, max_parts=step, until=late)
        fresh = Follower(grown.store)  # another process, after a restart
        found = paths_between(fresh, at, Position.from_json(after.to_json()))
        assert len(found) <= step
        seen += found
        at = after
    end = follower.advance(at)
    seen += paths_between(follower, at, end)
    assert seen == expected
    assert follower.advance(end) == end


def test_bytes_limit_a_step_but_one_part_always_comes() -> None:
    of = filled(4)
    follower = Follower(of.store)
    at = follower.begin(0)
    assert len(paths_between(follower, at, follower.advance(at, max_bytes=1))) == 1
    size = sum(p["bytes"] for p in of.metadata("parts").to_pylist()[:2])
    assert len(paths_between(follower, at, follower.advance(at, max_bytes=size))) == 2


def test_upkeep_is_not_told_and_does_not_disturb() -> None:
    of = filled(5)
    follower = Follower(of.store)
    at = follower.begin()
    middle = follower.advance(at, max_parts=2)
    of.compact()
    of.append(rows(900, 2))
    rest = paths_between(follower, middle, follower.advance(middle))
    assert len(rest) == 4
    assert follower.begin(6).version == 6
    assert paths_between(follower, follower.begin(6), follower.end()) == ids(of)[-1:]


def test_rows_that_go_are_an_error_or_skipped() -> None:
    of = filled(3)
    of.overwrite(rows(900, 2), "ts < 60", allow_outside=True)
    of.append(rows(950, 2))
    start = Follower(of.store).begin(0)
    with pytest.raises(InvalidInput, match="Version 4") as caught:
        Follower(of.store).advance(start)
    assert caught.value.code == "CHANGED_SOURCE"
    patient = Follower(of.store, skip_changes=True)
    assert len(paths_between(patient, start, patient.advance(start))) == 4


@pytest.mark.parametrize("options", [{}, {"skip_deletes": True}])
def test_a_restore_repeats_no_rows(options: dict[str, Any]) -> None:
    of = filled(3)
    of.delete("ts < 100")
    of.restore(3)
    added = of.refresh().snapshot.commit
    assert added.segment is not None
    assert (added.remove_parts, added.remove_segments) == ((), ()), "the restore only adds parts"
    of.append(rows(950, 2))
    follower = Follower(of.store, **options)
    with pytest.raises(InvalidInput, match=r"Version 5 \(restore\)"):
        follower.advance(follower.begin(5))
    patient = Follower(of.store, skip_changes=True)
    assert len(paths_between(patient, patient.begin(0), patient.end())) == 4


def test_a_time_is_the_first_commit_not_before_it() -> None:
    of = filled(3)
    when = [int(t.timestamp() * 1e6) for t in reversed(of.history()["timestamp"].to_pylist())]
    exact = list(of.snapshot.segments["timestamp_micros"].to_pylist())
    assert Follower(of.store).begin(timestamp_micros=exact[1]).version == 2
    assert Follower(of.store).begin(timestamp_micros=exact[1] + 1).version == 3
    assert Follower(of.store).begin(timestamp_micros=when[0] - 5_000_000).version == 0
    assert Follower(of.store).begin(timestamp_micros=exact[2] + 1).version == 4


def test_what_cannot_be() -> None:
    of = filled(1)
    follower = Follower(of.store)
    with pytest.raises(NotFound):
        follower.begin(9)
    with pytest.raises(InvalidInput) as caught:
        Position.from_json('{"x": 1}')
    assert caught.value.code == "BAD_OFFSET"
    with pytest.raises(TamisError) as gone:
        paths_between(follower, Position("f" * 32, 1), Position("f" * 32, 2))
    assert gone.value.code == "TABLE_REPLACED"


@pytest.mark.parametrize("fresh", [False, True], ids=["this process", "another"])
@pytest.mark.parametrize("regrown", range(5))
@pytest.mark.parametrize(("limit", "run"), [(None, 64), (3, 64), (6, 64), (3, 1), (6, 2)])
@pytest.mark.push_cases(12)
def test_a_log_that_is_put_back_from_a_backup(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: int | None, run: int, regrown: int, fresh: bool
) -> None:
    """A position after lost versions is refused, however many versions there are again; one before them goes on."""
    monkeypatch.setattr(stream_source, "RUN_VERSIONS", run)
    of = tamis.create(tmp_path / "t", rows(0, 1).schema, properties={"tamis.write.part_bytes": "20k"})
    of.append(rows(0, 2))
    shutil.copytree(of.path, tmp_path / "backup")
    follower = Follower(of.store)
    start = follower.begin(0)
    before = follower.advance(start)
    for i in range(3):
        of.append(rows(10_000 * i, 140_000))
    after = follower.advance(start, max_parts=limit)
    assert bool(after.index) == (limit is not None)
    regrowing = tamis.open(tmp_path / "backup")
    for i in range(regrown):
        regrowing.append(rows(1000 * i, 2))
    shutil.rmtree(of.path)
    shutil.copytree(tmp_path / "backup", of.path)
    if fresh:  # else the cache holds lost commits
        CACHE.clear()
    assert len(paths_between(follower, before, follower.advance(before))) == regrown
    for attempt in (lambda: follower.advance(after), lambda: follower.ranges(start, after)):
        with pytest.raises(SchemaFenced) as caught:
            attempt()
        assert caught.value.code == "TABLE_REPLACED"


def test_positions_of_older_checkpoints_name_no_commit() -> None:
    of = filled(3)
    follower = Follower(of.store)
    held = {"index": 0, "table_id": of.snapshot.head.table_id, "version": 2, "whole": False}
    start = Position.from_json(json.dumps(held))
    assert start.after is None
    assert start.to_json() == json.dumps(held, sort_keys=True), "Spark takes another text for new rows"
    assert len(paths_between(follower, start, follower.advance(start))) == 2
    with pytest.raises(SchemaFenced, match="TABLE_REPLACED"):
        follower.advance(replace(start, version=5))
    idle = replace(follower.end(), after=None)
    assert follower.advance(idle).to_json() == idle.to_json(), "an idle stream makes no micro-batch"


@pytest.mark.parametrize("start", ["begin", "end"])
def test_a_commit_between_the_limit_and_the_start_of_a_stream(start: str) -> None:
    """Spark fixes what is available now before it asks for the start: nothing is lost, and the rows come later."""
    of = filled(2)
    follower = Follower(of.store)
    until = follower.end()
    of.append(rows(900, 2))
    at = follower.begin() if start == "begin" else follower.end()
    assert follower.advance(at, until=until) == at
    of.append(rows(950, 2))
    assert len(paths_between(follower, at, follower.advance(at))) == (4 if start == "begin" else 1)


def test_a_table_that_was_made_anew_is_not_followed(tmp_path: Path) -> None:
    """Its columns have the ids of the columns that a DataFrame of the table before means."""
    of = tamis.create(tmp_path / "t", rows(0, 1).schema)
    follower = Follower(of.store, of.snapshot.head.table_id)
    shutil.rmtree(of.path)
    tamis.create(tmp_path / "t", rows(0, 1).schema).append(rows(0, 2))
    for attempt in (follower.begin, follower.end, lambda: follower.begin(0)):
        with pytest.raises(SchemaFenced) as caught:
            attempt()
        assert caught.value.code == "TABLE_REPLACED"


def test_positions_of_a_later_release_may_have_more_fields() -> None:
    at = Position("a", 3)
    assert Position.from_json(json.dumps({**json.loads(at.to_json()), "later": 1})) == at


@pytest.mark.parametrize("options", [{}, {"skip_changes": True}, {"skip_deletes": True}])
def test_parts_that_come_with_deletions_of_their_source_are_told(tmp_path: Path, options: dict[str, Any]) -> None:
    """The deletions are of rows that the commit adds: no row that was there before is gone."""
    data = pa.table({"v": [1, 2, 3]})
    vectors = [logs.inline_vector([0]), logs.inline_vector([1])]
    source = tmp_path / "d"
    adds = [logs.add(source, f"{n}.parquet", data, {}, deletionVector=vectors[n]) for n in (0, 1)]
    protocol = {"protocol": logs.protocol("deletionVectors")}
    logs.commit(source, 0, [protocol, {"metaData": logs.metadata([logs.field("v", "long")])}, adds[0]])
    of = tamis.adopt(source, tmp_path / "t", follow=True)
    assert isinstance(of, tamis.Table)
    logs.commit(source, 1, [adds[1]])
    of.sync()
    follower = Follower(of.store, **options)
    start = follower.begin(0)
    told = list(follower.parts(start, follower.advance(start)))
    assert [Path(ref.path).name for ref in told] == ["0.parquet", "1.parquet"]
    assert all(ref.deletion for ref in told)
    of.refresh()
    logs.commit(source, 2, [logs.remove("0.parquet", deletionVector=vectors[0])])
    of.sync()
    if not options:
        with pytest.raises(InvalidInput, match="CHANGED_SOURCE"):
            Follower(of.store).advance(follower.begin(2))
