"""Writers of exported tables, killed at every write that they make: foreign readers never miss a file, and the next
call makes everything current."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest

import tamis
from tamis.errors import InvalidInput
from tamis.storage.object_store import Store
from tests.bridges.exported_tables import made, rows, values_of
from tests.bridges.foreign_readers import delta_by_deltalake, iceberg_by_pyiceberg
from tests.operations.killed_writers import Killed, dying
from tests.storage.making import forget

VERBS: dict[str, Callable[[tamis.Table], object]] = {
    "append": lambda table: table.append(rows(50, 51)),
    "delete": lambda table: table.delete("id % 2 = 0"),
    "compact": lambda table: table.compact(cluster_by=["id", "day"]),
    "vacuum": lambda table: table.vacuum(timedelta(0), dry_run=False, below_retention=True),
    "end as Delta": lambda table: table.export("delta", final=True),
    "end as Iceberg": lambda table: table.export("iceberg", final=True),
}


def seen(path: Path) -> list[list[str]]:
    return [delta_by_deltalake(str(path)), iceberg_by_pyiceberg(str(path))]


def newest(path: Path) -> list[str]:
    return values_of(tamis.open(path).scan().to_arrow())


SOME = ("vacuum", "end as Delta", "end as Iceberg")
"""Those that every run kills; the others the long one."""


def is_ended(path: Path) -> bool:
    try:
        newest(path)
    except InvalidInput:
        return True
    return False


@pytest.mark.slow
@pytest.mark.parametrize(
    "verb", [verb if verb in SOME else pytest.param(verb, marks=pytest.mark.nightly) for verb in VERBS]
)
@pytest.mark.parametrize("kept", [True, False])
@pytest.mark.push_cases(4)
def test_killed_at_every_write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, verb: str, kept: bool) -> None:
    """With the property, and with exports that a call brought to an earlier version: vacuum has to bring them on."""
    run, model, path = VERBS[verb], tmp_path / "model", tmp_path / "t"
    table = made(path, properties={"tamis.export": "delta, iceberg"} if kept else {})
    table.delete("id % 5 = 1")
    table.export("delta")
    table.export("iceberg")
    early = newest(path)
    table.compact(cluster_by=["id", "n"])
    table.delete("id < 4")
    before = newest(path)
    path.rename(model)  # each copy is where the table was, and no file is left but those of the copy
    run(tamis.open(_copy(model, path)))
    ended = verb.startswith("end")
    after = before if ended else newest(path)
    at, outlived = 0, False
    while not outlived:
        dead = tamis.open(_copy(model, path))
        with monkeypatch.context() as patched:
            patched.setattr(Store, "_run", dying(at, [0]))
            with contextlib.suppress(Killed):
                run(dead)
                outlived = True
        forget()
        assert all(found in (early, before, after) for found in seen(path)), at
        if ended and is_ended(path):
            assert seen(path)[verb == "end as Iceberg"] == after, at
        else:
            assert newest(path) in (before, after), at
            run(tamis.open(path))
        if ended:
            assert seen(path)[verb == "end as Iceberg"] == after
        else:
            tamis.open(path).append(rows(90))
            if not kept:
                tamis.open(path).export("delta")
                tamis.open(path).export("iceberg")
            assert seen(path) == [newest(path)] * 2
        at += 1
    assert at > 1


def _copy(model: Path, path: Path) -> Path:
    shutil.rmtree(path, ignore_errors=True)
    shutil.copytree(model, path)
    forget()
    return path
