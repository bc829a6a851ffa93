"""What test processes run. Started by a fork server that has imported everything and done nothing, so that starting one is cheap."""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Callable
from typing import Any, TypeVar

from tamis.errors import StoreUnavailable
from tamis.storage.commit_log import Operation, Proposal, commit, create, load
from tamis.storage.object_store import Store, open_store
from tests.storage.making import HEAD, manifest

T = TypeVar("T")

CONTEXT = multiprocessing.get_context("forkserver")
CONTEXT.set_forkserver_preload(["tests.storage.worker", "tamis.table", "tamis.engine.operations", "pyarrow.parquet"])


class DeadlyStore(Store):
    """Kills its process at its write number ``at``, before it is made or after. (Dying at a read is dying after the write before it.)"""

    def __init__(self, inner: Store, at: int, after: bool) -> None:
        super().__init__(inner.location, inner.options)
        self.deadly = [at]
        self.after = after

    def _run(self, action: str, path: str, call: Callable[[Any, str], T], *, create: bool = False) -> T:
        self.deadly[0] -= action == "write"
        mine = self.deadly[0] < 0 and action == "write"
        if mine and not self.after:
            os.kill(os.getpid(), signal.SIGKILL)
        result = super()._run(action, path, call, create=create)
        if mine:
            os.kill(os.getpid(), signal.SIGKILL)
        return result


def change(version: int, what: str) -> Proposal:
    """The change ``what`` to the table that the killing tests make."""
    operation = Operation(what)
    match what:
        case "append":
            return Proposal(operation, version, blind_append=True, add=[manifest(1, ids=["new"])], operation_id="mine")
        case "large append":
            return Proposal(
                operation,
                version,
                blind_append=True,
                add=[manifest(1_500, ids=[f"new{i}" for i in range(1_500)])],
                operation_id="mine",
            )
        case _:
            return Proposal(
                operation, version, add=[manifest(1, ids=["new"])], remove_parts=["p0", "p1"], operation_id="mine"
            )


def die_changing(path: str, at: int, after: bool, what: str) -> None:
    """Makes the change through a store that kills the process; a process that outlives it exits with 0."""
    store = open_store(path)
    version = load(store).version
    commit(DeadlyStore(store, at, after), change(version, what))


def die_creating(path: str, at: int, after: bool) -> None:
    create(
        DeadlyStore(open_store(path), at, after),
        HEAD,
        Operation("create"),
        add=[manifest(1, ids=["new"])],
        operation_id="mine",
    )


def die_writing(path: str, name: str, size: int) -> None:
    """Writes objects until somebody kills the process."""
    store = open_store(path)
    number = 0
    while True:
        store.put_if_absent(f"{name}/{number}", bytes([number % 251]) * size)
        with store.writer(f"{name}/w{number}") as out:
            out.write(bytes([number % 251]) * size)
        number += 1


def append_many(path: str, writer: int, commits: int) -> None:
    """Appends that many parts, one commit each, from a snapshot that soon is old."""
    store = open_store(path)
    version = load(store).version
    for number in range(commits):
        add = [manifest(1, ids=[f"w{writer}c{number}"])]
        proposal = Proposal(
            Operation("append"), version, blind_append=True, add=add, operation_id=f"w{writer}c{number}"
        )
        try:
            version = commit(store, proposal).version
        except StoreUnavailable:
            version = commit(store, proposal).version


def run(target: Callable[..., None], *arguments: object) -> int:
    """The exit code of a process that calls ``target``; negative: the signal that killed it."""
    process = CONTEXT.Process(target=target, args=arguments)
    process.start()
    process.join()
    assert process.exitcode is not None
    return process.exitcode
