"""Laws of compaction: the rows are the same, nobody is disturbed, and what is done was worth it."""

from __future__ import annotations

import itertools
from typing import Any

import pyarrow as pa
import pytest

import tamis
from tamis.engine import operations
from tamis.engine.operations import PartChoice
from tamis.engine.operations.layout.compact import Compacted, Work, Workers, rewrite_locally
from tamis.engine.operations.layout.compaction_candidates import Group
from tamis.engine.operations.rows.append import discard_parts
from tamis.engine.scan import Options
from tamis.errors import StoreUnavailable
from tamis.storage.commit_log import Operation, Proposal, commit, load
from tests.operations.making import delete_rows, filled, held, parts, rows, table


def test_many_become_one_and_the_rows_are_the_same() -> None:
    of = filled(20, ("user",))
    before = held(of)
    done = of.compact()
    assert (done.parts_removed, done.parts_added, done.commits, done.later) == (20, 1, 1, 0)
    assert held(of) == before
    assert [p["ordered"] for p in parts(of)] == [True]
    assert held(of, version=20) == before  # and time travel sees the old parts
    assert of.compact().commits == 0, "a compacted table has nothing to do"


def test_the_plan_says_what_will_be_done() -> None:
    of = filled(6)
    plan = of.compact(dry_run=True)
    version = of.refresh().version
    assert [len(g.parts) for g in plan.groups] == [6]
    assert plan.groups[0].reasons == ("small parts",)
    assert plan.as_dict()["bytes"] == sum(p["bytes"] for p in parts(of))
    assert of.refresh().version == version
    done = of.compact()
    assert [g.as_dict() for g in done.groups] == [g.as_dict() for g in plan.groups]


def test_history_tells_of_it() -> None:
    of = filled(4)
    of.compact()
    last = of.history(1).to_pylist()[0]
    assert (last["operation"], last["data_change"], last["blind_append"]) == ("compact", False, False)
    assert dict(last["metrics"])["parts_removed"] == 4
    assert "small parts" in last["parameters"]


def test_young_rows_stay_in_small_parts() -> None:
    of = table()
    of.append(rows(0, 20_000))
    of.compact()
    large = parts(of)[0]["part_id"]
    for i in range(3):
        of.append(rows(20_000 + 10 * i, 10))
    of.compact()
    found = {p["part_id"]: p["rows"] for p in parts(of)}
    assert found.pop(large) == 20_000, "a large part was rewritten for a few rows"
    assert list(found.values()) == [30]


@pytest.mark.slow
def test_a_row_is_rewritten_rarely() -> None:
    of = table()
    written = 0
    for i in range(64):
        of.append(rows(i * 500, 500))
        written += sum(g.rows for g in of.compact().groups)
    assert written <= 64 * 500 * 7, "size-tiered: a row moves when what it lies in doubles"
    assert len(parts(of)) <= 8


def test_segments_keep_to_stretches_of_time() -> None:
    """A filter on time skips compacted segments as it skipped those that they are made of."""
    of = filled(40, write__part_bytes="20k")
    of.compact()
    segments = of.metadata("segments").to_pylist()
    assert 3 <= len(segments) < 40
    spans = sorted((s["statistics"]["ts"]["lo"], s["statistics"]["ts"]["hi"]) for s in segments)
    assert all(before[1] < after[0] for before, after in itertools.pairwise(spans))
    report = of.explain("ts >= 1990")
    assert report.parts.kept == 1


def test_old_rows_stay_old() -> None:
    """What compaction wrote is as old as its rows, whatever the age of its segment: it is merged with its neighbours in time."""
    of = filled(4)
    first = of.snapshot.segments["timestamp_micros"][0].as_py()
    of.append(rows(10_000, 50))
    of.compact("ts < 200")
    young = of.refresh().snapshot.segments["timestamp_micros"].to_pylist()
    assert min(young) > first, "by their commits, both are young"
    for i in range(8):
        of.append(rows(20_000 + 50 * i, 50))
    (group,) = of.compact(dry_run=True).groups
    assert group.since_micros == first
    assert group.parts.table["rows"].to_pylist()[0] == 200, "the oldest rows come first"
    assert group.parts.table["since_micros"].to_pylist() == sorted(group.parts.table["since_micros"].to_pylist())


@pytest.mark.slow
def test_limits_bound_a_call_and_the_next_goes_on() -> None:
    of = filled(40, write__part_bytes="20k")
    before, total = held(of), sum(p["bytes"] for p in parts(of))
    done = of.compact(max_bytes=total // 4)
    assert isinstance(done, Compacted)
    assert 0 < done.bytes_read <= total // 4
    assert done.later > 0
    steps = 1
    while of.compact(max_bytes=total // 4).commits:
        steps += 1
    assert 3 <= steps <= 8
    assert held(of) == before
    assert filled(40, write__part_bytes="20k").compact(max_seconds=0).commits == 1, (
        "one group at least, or nothing would ever be done"
    )


def test_a_filter_leaves_the_others_alone() -> None:
    of = filled(10)
    kept = {p["part_id"] for p in parts(of)[5:]}
    of.compact("ts < 250")
    assert kept < {p["part_id"] for p in parts(of)}
    assert len(parts(of)) == 6


def test_runs_that_overlap_are_merged(small_blocks: None) -> None:
    """Parts of the full size, each over the whole range of the clustering column: depth is what speaks for them."""
    of = filled(6, ("user",), size=4_000, write__part_bytes="20k")
    plan = of.compact(dry_run=True)
    assert {g.reasons for g in plan.groups} == {("overlapping ranges",)}
    before = held(of)
    of.compact()
    assert held(of) == before
    spans = sorted((p["statistics"]["user"]["lo"], p["statistics"]["user"]["hi"]) for p in parts(of))
    assert len(spans) > 3
    assert all(a[1] <= b[0] for a, b in itertools.pairwise(spans))
    assert of.compact(dry_run=True).groups == ()


def test_what_is_out_of_order_is_put_in_order() -> None:
    of = filled(1, ("user",))
    manifest = of.snapshot.parts(None, set(range(9))).drop_columns(["segment", "part"])
    wrong = manifest.set_column(manifest.schema.get_field_index("ordered"), "ordered", pa.array([False]))
    commit(of.store, Proposal(Operation("plant"), of.version, add=[wrong], replace_all=True))
    assert not parts(of)[0]["ordered"]
    assert of.compact().groups[0].reasons == ("out of order",)
    assert parts(of)[0]["ordered"]


def test_the_newest_schema_is_written_even_by_an_old_handle() -> None:
    """De-evolving compaction: a handle opened before a migration writes under the schema after it."""
    of = filled(3)
    old = tamis.open(of.path)
    schema = pa.schema([*of.schema, pa.field("extra", pa.int64())])
    assert of.compare_and_evolve_schema(0, schema) == 1
    old.compact()
    assert {p["schema_id"] for p in parts(tamis.open(of.path))} == {1}
    assert tamis.open(of.path).scan("extra is null").count() == 150


@pytest.mark.slow
def test_compaction_gives_way_to_row_changes_and_goes_on() -> None:
    of = filled(20, write__part_bytes="20k")
    other = tamis.open(of.path)
    expected = sorted([r for r in held(of) if r[0] >= 50], key=repr)
    calls = 0

    def meddle(work: Work, group: Group) -> list[pa.Table]:
        nonlocal calls
        calls += 1
        found = rewrite_locally(work, group)
        if calls == 1:
            victim = group.parts.table["part_id"][0].as_py()
            commit(other.store, Proposal(Operation("delete"), other.refresh().version, remove_parts=[victim]))
            nonlocal expected
            expected = list(held(of))
        return found

    _, done = operations.compact(of.store, of.refresh().snapshot, PartChoice(), options(of), workers=Workers(meddle))
    assert done.conflicts == 1
    assert done.commits >= 1
    assert held(of) == expected
    known = {p["path"] for p in parts(of)} | {
        p for v in range(of.version) for p in load(of.store, v).parts()["path"].to_pylist()
    }
    assert {e.path for e in of.store.list("data")} <= known, "what gave way was cleared away"


def test_appends_never_notice() -> None:
    of = filled(10)

    def meddle(work: Work, group: Group) -> list[pa.Table]:
        tamis.open(of.path).append(rows(10_000, 5))
        return rewrite_locally(work, group)

    _, done = operations.compact(of.store, of.refresh().snapshot, PartChoice(), options(of), workers=Workers(meddle))
    assert (done.conflicts, done.commits) == (0, 1)
    assert of.refresh().scan().count() == 505


def test_a_failure_leaves_nothing() -> None:
    of = filled(8)
    before = {e.path for e in of.store.list("data")}, held(of)

    def fail(work: Work, group: Group) -> list[pa.Table]:
        discard_parts(work.store, rewrite_locally(work, group))
        raise StoreUnavailable("planned")

    with pytest.raises(StoreUnavailable, match="planned"):
        operations.compact(of.store, of.snapshot, PartChoice(), options(of), workers=Workers(fail))
    assert ({e.path for e in of.store.list("data")}, held(of)) == before


def test_deleted_rows_are_gone_from_the_files() -> None:
    of = table()
    of.append(rows(0, 20_000))
    assert of.compact(dry_run=True).groups == ()
    gone = delete_rows(of, 5)
    before = held(of)
    plan = of.compact(dry_run=True)
    assert [(g.reasons, g.deleted) for g in plan.groups] == [(("deleted rows",), gone)]
    done = of.compact()
    assert (done.rows_dropped, done.rows_deleted, done.parts_rewritten) == (gone, 0, 1)
    assert held(of) == before
    assert [p["rows"] for p in parts(of)] == [20_000 - gone]
    delete_rows(of, 100)
    assert of.compact(dry_run=True).groups == (), "a few deleted rows are not worth it"


def test_rows_deleted_meanwhile_stay_deleted() -> None:
    """Compaction gives way to a deletion vector that lands on one of its parts."""
    of = filled(4)
    calls: list[int] = []

    def meddle(work: Work, group: Group) -> list[pa.Table]:
        found = rewrite_locally(work, group)
        if not calls:
            calls.append(delete_rows(tamis.open(of.path), 10))
        return found

    _, done = operations.compact(of.store, of.refresh().snapshot, PartChoice(), options(of), workers=Workers(meddle))
    assert (done.conflicts, done.rows_dropped) == (1, calls[0])
    assert of.refresh().scan().count() == 200 - calls[0]


def test_lost_rows_are_never_committed() -> None:
    of = filled(4)
    with pytest.raises(tamis.errors.CorruptData) as caught:
        operations.compact(of.store, of.snapshot, PartChoice(), options(of), workers=Workers(lambda work, group: []))
    assert caught.value.code == "ROWS_DIFFER"
    assert of.refresh().version == 4


@pytest.mark.parametrize("curve", ["hilbert", "zorder"])
def test_along_a_curve(curve: str, small_blocks: None) -> None:
    of = filled(10, (), size=10_000, write__part_bytes="20k")
    before = held(of)
    done = of.compact(cluster_by=["ts", "user"], curve=curve)
    assert held(of) == before
    assert done.commits >= 1
    assert of.compact(cluster_by=["ts", "user"], curve=curve).commits == 0
    whole = len(parts(of))
    for row_filter in ("ts < 2000", "user < 50"):
        assert of.explain(row_filter).parts.kept <= whole * 0.6, row_filter
    figures = {c["column"]: c for c in of.refresh().detail()["clustering"][0].as_py()}
    assert list(figures) == ["ts", "user"]
    for column, found in figures.items():
        assert 1 <= found["average_depth"] <= whole * 0.7, column
        assert found["max_depth"] < whole, column
        assert found["average_overlap"] < whole - 1, column
        assert set("▁▂▃▄▅▆▇█") >= set(found["picture"]) > {"█"}, column


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ({"cluster_by": ["ts", "user"], "curve": "peano"}, "BAD_CLUSTERING"),
        ({"cluster_by": ["ts"]}, "BAD_CLUSTERING"),
        ({"cluster_by": ["ts", "nobody"]}, "COLUMN_NOT_FOUND"),
        ({"row_filter": "nobody = 1"}, "COLUMN_NOT_FOUND"),
    ],
)
def test_what_cannot_be_is_refused_by_name(arguments: dict[str, Any], code: str) -> None:
    of = filled(2)
    with pytest.raises(tamis.errors.TamisError) as caught:
        of.compact(**arguments)
    assert caught.value.code == code
    assert of.refresh().version == 2


def options(of: tamis.Table) -> Options:
    return Options.resolve(None, None, of.properties)
