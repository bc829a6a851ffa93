"""One story from beginning to end, and what must hold when it is over."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta

import tamis
from tamis.storage.commit_log import load
from tamis.storage.commit_log.vacuum_marker import oldest_readable
from tamis.world import world
from tests.simulation.actors import SCHEMA, audited, cast
from tests.simulation.machine import Mishaps, Simulation, simulated
from tests.simulation.model import Row
from tests.storage.making import forget


def tell(seed: int, steps: int, mishaps: Mishaps | None = None) -> Simulation:
    """Plays the story of ``seed``; what goes against a law is raised, with the last calls of the store."""
    with simulated(seed, steps, mishaps) as sim:
        tamis.create(sim.inner.url, SCHEMA, cluster_by=["key"], properties={"tamis.write.part_bytes": "20k"})
        sim.actors = cast()
        try:
            sim.run()
            finish(sim)
        except BaseException as error:
            error.add_note(f"seed {seed}, {steps} steps; the last calls:\n" + "\n".join(sim.trace[-25:]))
            raise
        return sim


def finish(sim: Simulation) -> None:
    """The store is well again: every version that can be read is as the model has it, nothing is lost or doubled, and no orphan outlives a vacuum."""
    forget()
    latest = load(sim.inner)
    audited(sim, latest.version)
    sim.model.check()
    of = tamis.Table(sim.store, load(sim.store))
    for version in range(oldest_readable(sim.inner, latest.head.table_id), latest.version + 1):
        same(of, version, sim)
    found = of.verify()
    assert found.ok, found.problems.to_pylist()
    world().sleep(3_600)
    of.vacuum(timedelta(seconds=1), dry_run=False, below_retention=True)
    of.refresh()
    there = {entry.path for entry in sim.inner.list("data")}
    assert there == set(of.snapshot.parts(None)["path"].to_pylist()), (
        "an orphan outlived a vacuum, or a live part did not"
    )
    same(of, of.version, sim)
    assert of.verify().ok


def same(of: tamis.Table, version: int, sim: Simulation) -> None:
    found = of.scan(None, Row._fields, version=version).to_arrow()
    seen = Counter(Row(*row) for row in zip(*(c.to_pylist() for c in found.columns), strict=True))
    expected = audited(sim, version)
    assert seen == expected, f"version {version}: {+(seen - expected)} too much, {+(expected - seen)} lost"
