"""Every fault at every call of every operation: nothing lost, nothing doubled, nothing half visible.

After an operation under faults the table holds what it held before or what it should hold after. The outcome of the
call says which: success means after, ``COMMIT_UNKNOWN`` means either, any other error means before. Repeating the same
call then gives "after", once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from tamis.errors import NotFound, StoreUnavailable
from tamis.storage.commit_log import Operation, Proposal, Snapshot, commit, create, history, load
from tamis.storage.object_store import Store
from tamis.world import SeededWorld, use
from tests.storage.faults import FaultyStore, Plan, single_faults
from tests.storage.making import HEAD, append, copy, forget, manifest, memory, new_table

Parts = list[str] | None
Call = Callable[[Store], object]


def grown(length: int) -> Store:
    """A table of that many versions, each with a segment of two parts."""
    store = memory()
    snapshot = new_table(store)
    while snapshot.version < length:
        snapshot = append(
            store, snapshot, manifest(2, low=snapshot.version, ids=[f"v{snapshot.version}p0", f"v{snapshot.version}p1"])
        )
    return store


def proposal(version: int, **values: object) -> Proposal:
    return Proposal(Operation("test"), version, operation_id="the-operation", **values)  # type: ignore[arg-type]


def plain(version: int) -> Proposal:
    return proposal(version, add=[manifest(1, ids=["new"])], blind_append=True)


def large(version: int) -> Proposal:
    return proposal(version, add=[manifest(1_500, ids=[f"new{i}" for i in range(1_500)])])


def overwrite(version: int) -> Proposal:
    return proposal(version, add=[manifest(1, ids=["new"])], replace_all=True)


def delete(version: int) -> Proposal:
    return proposal(version, remove_parts=["v0p0", "v1p0", "v1p1"], add=[manifest(1, ids=["new"])])


def rename(version: int) -> Proposal:
    return proposal(version, head=HEAD_OF_TABLE)


HEAD_OF_TABLE = HEAD


def seen(store: Store) -> Parts:
    """The part ids that a new process sees; None where there is no table."""
    forget()
    try:
        return list(load(store).parts()["part_id"].to_pylist())
    except NotFound:
        return None


def under_faults(store: Store, call: Call, plan: Plan) -> str:
    """Calls through the faulty store: "done", "unknown" or "failed"."""
    forget()
    try:
        call(FaultyStore(store, plan))
    except StoreUnavailable as error:
        return "unknown" if error.code == "COMMIT_UNKNOWN" else "failed"
    return "done"


def check(store: Store, call: Call, plan: Plan, before: Parts, after: Parts) -> str:
    outcome = under_faults(store, call, plan)
    possible = {"done": [after], "failed": [before], "unknown": [before, after]}[outcome]
    assert seen(store) in possible, (outcome, plan.log)
    plan.settle()
    assert seen(store) in possible, (outcome, plan.log)
    forget()
    call(store)
    assert seen(store) == after, (outcome, plan.log)
    versions = history(store)
    assert versions["version"].to_pylist() == list(range(len(versions)))[::-1]
    assert versions["operation_id"].to_pylist().count("the-operation") == 1
    return outcome


OPERATIONS: dict[str, tuple[int, Callable[[int], Proposal]]] = {
    "append": (3, plain),
    "append that completes a rollup": (14, plain),
    "append of a large segment": (3, large),
    "overwrite": (3, overwrite),
    "delete": (3, delete),
    "head": (3, rename),
}


@pytest.mark.push_cases(2)
@pytest.mark.parametrize(("length", "make"), OPERATIONS.values(), ids=OPERATIONS)
def test_every_fault_at_every_call_of_a_commit(
    length: int, make: Callable[[int], Proposal], monkeypatch: pytest.MonkeyPatch
) -> None:
    original = grown(length)
    monkeypatch.setitem(globals(), "HEAD_OF_TABLE", replace(load(original).head, comment="new"))
    change = make(length)

    def call(store: Store) -> object:
        return commit(store, change)

    before = seen(original)
    with use(SeededWorld(5)):
        trial = copy(original)
        counted = Plan.none()
        after = after_of(original, change)
        check(trial, call, counted, before, after)
        outcomes = {
            check(copy(original), call, Plan.at(i, fault), before, after) for i, fault in single_faults(counted)
        }
    assert outcomes >= {"done", "failed"}
    assert counted.calls >= 6


@pytest.mark.slow
@pytest.mark.push_cases(1)
@pytest.mark.parametrize("name", ["append", "append of a large segment", "overwrite"])
def test_a_store_that_goes_away_at_every_call(name: str) -> None:
    """The last answer is lost, and then every call fails; what may have landed is never reported as failed."""
    length, make = OPERATIONS[name]
    original, change = grown(length), make(length)
    before, after = seen(original), after_of(original, change)

    def call(store: Store) -> object:
        return commit(store, change)

    with use(SeededWorld(5)):
        counted = Plan.none()
        check(copy(original), call, counted, before, after)
        plans = [Plan.down_from(i, fault, grace) for i, fault in single_faults(counted) for grace in (0, 1, 2)]
        outcomes = [check(copy(original), call, plan, before, after) for plan in plans]
    assert set(outcomes) == {"failed", "unknown", "done"}


def after_of(original: Store, change: Proposal) -> Parts:
    store = copy(original)
    forget()
    commit(store, change)
    return seen(store)


def test_every_fault_at_every_call_of_a_creation() -> None:
    def call(store: Store) -> object:
        return create(store, HEAD, Operation("create"), add=[manifest(1, ids=["new"])], operation_id="the-operation")

    with use(SeededWorld(5)):
        check(memory(), call, counted := Plan.none(), None, ["new"])
        outcomes = {check(memory(), call, Plan.at(i, fault), None, ["new"]) for i, fault in single_faults(counted)}
    assert outcomes >= {"done", "failed"}


@pytest.mark.push_cases(1)
@pytest.mark.parametrize("length", [3, 18, 37])
def test_every_fault_at_every_call_of_a_load(length: int) -> None:
    """What is read is right, or the error says that the store did not answer."""
    store = grown(length)
    expected = seen(store)
    objects = {e.path: store.get(e.path) for e in store.list()}
    results: list[object] = []

    def call(faulty: Store) -> object:
        results.append(load(faulty).parts(ids={1})["part_id"].to_pylist())
        return results[-1]

    counted = Plan.none()
    assert under_faults(store, call, counted) == "done"
    for index, fault in single_faults(counted):
        under_faults(store, call, Plan.at(index, fault))
    assert len(results) > 1 + length // 16  # the hint and each rollup can be done without
    assert all(result == expected for result in results)
    assert {e.path: store.get(e.path) for e in store.list()} == objects


@pytest.mark.parametrize("seed", range(40))
@pytest.mark.push_cases(5)
def test_many_faults_and_two_writers(seed: int) -> None:
    """A longer story under a share of faults, replayable by its seed. A writer gives up on a call at most three times, then it repeats it without faults."""
    store = memory()
    plan = Plan.seeded(seed, 0.02 * (1 + seed % 10))
    with use(SeededWorld(seed)):
        new_table(store)
        faulty = FaultyStore(store, plan)
        snapshots: list[Snapshot] = [load(store), load(store)]
        for step in range(24):
            writer = step % 2
            change = Proposal(
                Operation("append"),
                snapshots[writer].version,
                blind_append=True,
                add=[manifest(1, ids=[f"s{step}"])],
                operation_id=f"op{step}",
            )
            snapshots[writer] = persistent(faulty, store, change)
    plan.settle()
    forget()
    assert load(store).parts()["part_id"].to_pylist() == [f"s{step}" for step in range(24)]
    assert load(store).version == 24


def persistent(faulty: Store, store: Store, change: Proposal) -> Snapshot:
    for attempt in range(4):
        try:
            return commit(faulty if attempt < 3 else store, change)
        except StoreUnavailable:
            forget()
    raise AssertionError("the last attempt has no faults")


def test_faults_are_replayable() -> None:
    def run() -> list[str]:
        store = memory()
        plan = Plan.seeded(9, 0.1)
        with use(SeededWorld(9)):
            snapshot = new_table(store)
            for step in range(10):
                change = Proposal(
                    Operation("append"),
                    snapshot.version,
                    blind_append=True,
                    add=[manifest(1)],
                    operation_id=f"op{step}",
                )
                snapshot = persistent(FaultyStore(store, plan), store, change)
        return plan.log

    assert run() == run()
