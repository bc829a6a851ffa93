"""A process that writes through a table, killed at every write it makes: parts, manifest, commit, hint, rollup. Readers see the rows of before or of after."""

from __future__ import annotations

import os
import shutil
import signal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import tamis
from tamis.storage.object_store import Store
from tests.storage.worker import CONTEXT, run

KILLED = -signal.SIGKILL
OLD = list(range(30))
NEW = list(range(100, 130))


def rows(ids: list[int]) -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64()), "body": [f"{i:0200}" for i in ids]})


def die_writing_table(path: str, verb: str, at: int, after: bool) -> None:
    """Writes ``NEW``; dies at write number ``at`` of any store, before it is made or after. Outlives it only where there are fewer writes."""
    left, plain = [at], Store._run

    def run_or_die(self: Store, action: str, name: str, call: Any, *, create: bool = False) -> Any:
        left[0] -= action == "write"
        deadly = action == "write" and left[0] < 0
        if deadly and not after:
            os.kill(os.getpid(), signal.SIGKILL)
        result = plain(self, action, name, call, create=create)
        if deadly:
            os.kill(os.getpid(), signal.SIGKILL)
        return result

    Store._run = run_or_die  # type: ignore[method-assign, assignment]
    write(tamis.open(path), verb)


def write(table: tamis.Table, verb: str) -> None:
    if verb == "overwrite":
        table.overwrite(rows(NEW), "id < 10", allow_outside=True)
    else:
        table.append(rows(NEW))


@pytest.mark.slow
@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("verb", ["append", "overwrite", "first append"])
@pytest.mark.push_cases(1)
def test_killed_at_every_write(verb: str, after: bool, tmp_path: Path) -> None:
    model = tmp_path / "model"
    table = tamis.create(model, properties={"tamis.write.part_bytes": "4KB"})
    if verb != "first append":
        table.append(rows(OLD[:15]))
        table.append(rows(OLD[15:]))
    before = [] if verb == "first append" else OLD
    done = (before[10:] if verb == "overwrite" else before) + NEW
    landed: list[bool] = []
    code, step = KILLED, 0
    while code == KILLED:
        path = tmp_path / str(step)
        shutil.copytree(model, path)
        code = run(die_writing_table, str(path), verb, step, after)
        opened = tamis.open(path)
        found = sorted(
            opened.scan(selected_fields=["id"] if opened.schema else ["*"]).to_arrow().to_pydict().get("id", [])
        )
        assert found in (sorted(before), sorted(done))
        landed.append(found == sorted(done))
        version = opened.version
        opened.append(rows([7_000]))  # nobody is kept from going on
        assert opened.version == version + 1
        assert opened.scan("id = 7000").count() == 1
        step += 1
    assert code == 0
    assert step > 3  # a part or more, the commit, the hint
    assert landed == sorted(landed)  # one moment at which it lands
    assert landed[-1]
    assert not landed[0]


def test_the_killing_process_dies_by_the_signal(tmp_path: Path) -> None:
    tamis.create(tmp_path / "t")
    process = CONTEXT.Process(target=die_writing_table, args=(str(tmp_path / "t"), "append", 0, False))
    process.start()
    process.join()
    assert process.exitcode == KILLED
