"""Eight processes, fifty commits each, one directory: all there, once, in one order."""

from __future__ import annotations

from pathlib import Path

import pytest

from tamis.storage.commit_log import history, load
from tamis.storage.object_store import open_store
from tests.storage.making import forget, new_table
from tests.storage.worker import CONTEXT, append_many

WRITERS, COMMITS = 8, 50


@pytest.mark.slow
def test_eight_writers(tmp_path: Path) -> None:
    store = open_store(tmp_path / "table")
    new_table(store)
    writers = [CONTEXT.Process(target=append_many, args=(str(tmp_path / "table"), n, COMMITS)) for n in range(WRITERS)]
    for writer in writers:
        writer.start()
    while any(
        writer.is_alive() for writer in writers
    ):  # a reader among them: what it sees only grows, and each writer's commits are in order
        forget()
        before = load(store).parts()["part_id"].to_pylist()
        forget()
        after = load(store).parts()["part_id"].to_pylist()
        assert after[: len(before)] == before
        assert_in_order(after)
        writers[0].join(0.3)
    assert [writer.exitcode for writer in writers] == [0] * WRITERS
    forget()
    found = load(store).parts()["part_id"].to_pylist()
    assert sorted(found) == sorted(f"w{w}c{c}" for w in range(WRITERS) for c in range(COMMITS))
    assert_in_order(found)
    log = history(store)
    assert log["version"].to_pylist() == list(range(WRITERS * COMMITS, -1, -1))
    times = log["timestamp"].to_pylist()
    assert times == sorted(set(times), reverse=True)


def assert_in_order(parts: list[str]) -> None:
    for writer in range(WRITERS):
        mine = [int(name.split("c")[1]) for name in parts if name.startswith(f"w{writer}c")]
        assert mine == list(range(len(mine)))
