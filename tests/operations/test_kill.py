"""Every verb killed at every write that it makes, before the write is made or after: its rows are those of before or of after, the next call makes them those of after,
and what the dead one left goes with the next vacuum."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from datetime import timedelta

import pyarrow as pa
import pytest

import tamis
from tamis.storage.commit_log import load
from tamis.storage.object_store import Store
from tamis.storage.object_store.store import open_store
from tests.operations.killed_writers import Killed, dying
from tests.storage.making import copy, forget

SCHEMA = pa.schema([("id", pa.int64()), ("n", pa.int32()), ("s", pa.string())])


def rows(*ids: int, n: int = 0) -> pa.Table:
    return pa.table([list(ids), [n] * len(ids), [f"s{i}" for i in ids]], schema=SCHEMA)


def merged(of: tamis.Table) -> object:
    found = of.merge(rows(1, 12, 13, 40, 41, n=9), "target.id = source.id").when_matched_delete(
        condition="target.id = 12"
    )
    return (
        found.when_matched_update({"n": "source.n"})
        .when_not_matched_insert()
        .when_not_matched_by_source_delete(condition="target.id = 25")
        .execute()
    )


VERBS: dict[str, Callable[[tamis.Table], object]] = {
    "append": lambda of: of.append(rows(50, 51)),
    "overwrite": lambda of: of.overwrite(rows(60), "id BETWEEN 5 AND 14", allow_outside=True),
    "delete": lambda of: of.delete("id % 3 = 1"),
    "delete whole parts": lambda of: of.delete("id < 10"),
    "update": lambda of: of.update({"n": "n + 1"}, "id % 4 = 2"),
    "upsert": lambda of: of.upsert(rows(2, 3, 70, n=5), on=["id"]),
    "merge": merged,
    "compact": lambda of: of.compact(),
    "restore": lambda of: of.restore(2),
    "migrate": lambda of: of.alter().add_column("more", "BIGINT", default="7").drop_column("s").commit(),
    "constrain": lambda of: of.alter().drop_constraint("c", missing_ok=True).add_check("c", "n < 1000").commit(),
    "create index": lambda of: (
        of.create_index("by_n", ["n"]) if not any(i.name == "by_n" for i in of.indexes()) else of.repair_index("by_n")
    ),
    "vacuum": lambda of: of.vacuum(timedelta(0), dry_run=False, below_retention=True),
}


@pytest.fixture(scope="module")
def grown() -> Store:
    """Three segments, deleted rows, an index, and what a compaction of older ones left behind; so many versions that the next ones complete a rollup."""
    of = tamis.create("memory://kill-model", SCHEMA, cluster_by=["id"])
    for first in (0, 10, 20):
        of.append(rows(*range(first, first + 10)))
    of.create_index("by_id", ["id"])
    of.delete("id IN (3, 17)")
    for _ in range(2):
        of.append(rows(80))
        of.append(rows(80))
        of.compact("id = 80")
        of.delete("id = 80")
    assert of.version == 14
    return of.store


def seen(of: tamis.Table) -> list[str]:
    names = [name for name in ("id", "n", "s", "more") if name in of.schema.names]
    return sorted(map(repr, of.scan(None, names).to_arrow().to_pylist()))


SOME = ("delete", "update", "upsert", "merge")
"""Those that every run kills; the others the long one."""


@pytest.mark.slow
@pytest.mark.parametrize(
    "verb", [verb if verb in SOME else pytest.param(verb, marks=pytest.mark.nightly) for verb in VERBS]
)
def test_killed_at_every_write(verb: str, grown: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    run, before = VERBS[verb], seen(tamis.open(grown.url))
    fine = tamis.open(copy(grown).url)
    run(fine)
    done = seen(tamis.open(fine.path))
    assert (done == before) == (verb in {"compact", "constrain", "create index", "vacuum"})
    landed: list[bool] = []
    outlived = False
    while not outlived:
        of, count, at = tamis.open(copy(grown).url), [0], len(landed)
        with monkeypatch.context() as patched:
            patched.setattr(Store, "_run", dying(at, count))
            with contextlib.suppress(Killed):
                run(of)
                outlived = True
        forget()
        of = tamis.open(of.path)
        found = seen(of)
        assert found in (before, done), f"killed before write {at}"
        landed.append(found == done)
        if found != done or done == before:
            run(of)
            assert seen(tamis.open(of.path)) == done, f"again after write {at}"
        if not outlived and at % 3:
            continue
        assert of.verify().ok, of.verify().problems.to_pylist()
        of.vacuum(timedelta(0), dry_run=False, below_retention=True)
        left = set(load(open_store(of.path)).parts(None)["path"].to_pylist())
        assert {e.path for e in of.store.list("data")} == left, "an orphan outlived a vacuum, or a live part did not"
    assert len(landed) > 2  # more than the commit and its hint
    assert landed == sorted(landed)  # one moment at which it lands


def test_an_analysis_killed_at_every_write(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its rows are always the same, and the next call learns the rest."""
    made = tamis.create("memory://kill-analysis", SCHEMA, properties={"tamis.stats.collect": "off"})
    for first in (0, 10):
        made.append(rows(*range(first, first + 10)))
    made.delete("id = 3")
    made.create_index("by_id", ["id"])
    before, outlived, at = seen(made), False, 0
    while not outlived:
        of = tamis.open(copy(made.store).url)
        with monkeypatch.context() as patched:
            patched.setattr(Store, "_run", dying(at, [0]))
            with contextlib.suppress(Killed):
                of.analyze()
                outlived = True
        forget()
        of, at = tamis.open(of.path), at + 1
        assert seen(of) == before
        of.analyze()
        of.refresh()
        assert of.analyze().parts == 0
        assert of.explain("id = 1000").parts.kept == 0
        assert [index.missing for index in of.indexes()] == [{}]
        of.vacuum(timedelta(0), dry_run=False, below_retention=True)
        assert seen(of) == before
        assert of.verify().ok
    assert at > 2


NUMBERING: dict[str, Callable[[tamis.Table], object]] = {
    "append": lambda of: of.append(numbered_rows(50)),
    "overwrite": lambda of: of.overwrite(numbered_rows(1, 50), "x < 2", allow_outside=True),
    "upsert": lambda of: of.upsert(numbered_rows(2, 50), on="x"),
}


def numbered_rows(*values: int) -> pa.Table:
    return pa.table({"x": pa.array(values, pa.int64())})


def numbers(of: tamis.Table) -> dict[int, int]:
    found = of.scan().to_arrow().to_pylist()
    assert all(row["id"] is not None for row in found)
    assert len({row["id"] for row in found}) == len({row["x"] for row in found}) == len(found), (
        "a number, or row, twice"
    )
    return {row["x"]: row["id"] for row in found}


@pytest.mark.parametrize(
    "verb", [verb if verb == "append" else pytest.param(verb, marks=pytest.mark.merge) for verb in NUMBERING]
)
def test_numbers_of_a_killed_writer_are_not_given_again(verb: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Killed before it reserves numbers, between that and its commit, or after: no row is lost, no number repeated."""
    run = NUMBERING[verb]
    made = tamis.create(f"memory://kill-numbers-{verb}", "id BIGINT GENERATED ALWAYS AS IDENTITY, x BIGINT")
    made.append(numbered_rows(1, 2, 3))
    before = numbers(made)
    kept = (2, 3) if verb == "overwrite" else (1, 2, 3)
    reserved, outlived, at = [], False, 0
    while not outlived:
        of = tamis.open(copy(made.store).url)
        with monkeypatch.context() as patched:
            patched.setattr(Store, "_run", dying(at, [0]))
            with contextlib.suppress(Killed):
                run(of)
                outlived = True
        forget()
        of, at = tamis.open(of.path), at + 1
        found = numbers(of)
        landed = 50 in found
        (mark,) = load(of.store).head.numbered.values()
        reserved.append((mark > 4, landed))
        assert set(found) == ({1, 2, 3, 50} if landed else {1, 2, 3})
        assert {x: found[x] for x in kept} == {x: before[x] for x in kept}, "rows keep their numbers"
        if not landed:
            run(of)
            assert numbers(of.refresh())[50] >= mark, "a number that the dead writer had reserved"
        of.append(numbered_rows(60))
        assert numbers(of.refresh())[60] > max(found.values())
        assert of.verify().ok
    assert {(False, False), (True, False), (True, True)} == set(reserved)
