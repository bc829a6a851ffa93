"""Who does what to the table. An actor is an entry of ``ACTORS``: a name, how many there are, what it does once, and which verb of ``Table`` it needs.

An operation sets its ``intent`` before it begins, and reports its outcome to the model at the end; errors that a store
or another actor may cause are fine, any other is a defect.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from datetime import timedelta
from typing import NamedTuple

import pyarrow as pa

import tamis
from tamis.engine.operations import Result
from tamis.errors import Conflict, CorruptData, NotFound, SchemaFenced, SchemaMismatch, StoreUnavailable, TamisError
from tamis.storage.commit_log import load
from tamis.storage.commit_log.commit_objects import read_commits
from tamis.world import world
from tests.simulation import model
from tests.simulation.machine import Actor, Simulation
from tests.simulation.model import Row

RETENTION = timedelta(hours=1)
SCHEMA = pa.schema([(name, pa.int64()) for name in Row._fields])
KEYS = 40


def table(sim: Simulation) -> tamis.Table:
    store = sim.store
    return tamis.Table(store, load(store))


def data(batch: list[Row]) -> pa.Table:
    return pa.table([list(c) for c in zip(*batch, strict=True)] or [[] for _ in Row._fields], schema=SCHEMA)


def fresh(sim: Simulation, number: int) -> list[Row]:
    return [Row(number * 100 + i, sim.dice.randrange(KEYS), number, 0) for i in range(sim.dice.randint(1, 12))]


def attempt(sim: Simulation, actor: Actor, intent: model.Intent, run: Callable[[tamis.Table], object]) -> None:
    """Runs one operation that should land once or not at all."""
    actor.intent = intent
    sim.model.done[intent.number] = None
    held = None
    try:
        held = table(sim)
        done = run(held)
        if not isinstance(done, Result) or done.rows_inserted or done.rows_updated or done.rows_deleted:
            sim.model.done[intent.number] = True  # what matched nothing need not be committed
    except StoreUnavailable as error:
        sim.model.done[intent.number] = None if held is not None and error.code == "COMMIT_UNKNOWN" else False
    except (Conflict, SchemaMismatch, SchemaFenced):
        sim.model.done[intent.number] = False
    except (CorruptData, NotFound) as error:
        sim.model.done[intent.number] = False
        must_be_late(sim, actor, error)


def must_be_late(sim: Simulation, actor: Actor, error: TamisError) -> None:
    """What an actor held may be gone only where it has been at it for longer than the retention."""
    if world().now_micros() - sim.began[actor.name] <= RETENTION.total_seconds() * 1e6:
        raise error


def write(sim: Simulation, actor: Actor) -> None:
    number = sim.number()
    batch = fresh(sim, number)
    attempt(sim, actor, model.adds(number, batch), lambda t: t.append(data(batch)))


def replace(sim: Simulation, actor: Actor) -> None:
    number, batch = sim.number(), []
    if sim.dice.random() < 0.7:
        batch = fresh(sim, number)
    modulus, rest = sim.dice.choice([(5, 1), (7, 3), (40, 11)])
    intent = model.replaces(number, lambda r: r.key % modulus == rest, batch)
    attempt(sim, actor, intent, lambda t: t.overwrite(data(batch), f"key % {modulus} = {rest}", allow_outside=True))


def delete(sim: Simulation, actor: Actor) -> None:
    number, low = sim.number(), sim.dice.randrange(KEYS)
    intent = model.replaces(number, lambda r: low <= r.key < low + 4, [])
    attempt(sim, actor, intent, lambda t: t.delete(f"key >= {low} and key < {low + 4}"))


def update(sim: Simulation, actor: Actor) -> None:
    number, key = sim.number(), sim.dice.randrange(KEYS)
    intent = model.updates(number, lambda r: r.key == key, lambda r: r._replace(value=r.value + 1))
    attempt(sim, actor, intent, lambda t: t.update({"value": "value + 1"}, f"key = {key}"))


def upsert(sim: Simulation, actor: Actor) -> None:
    """By key: rows of these keys give way to the new ones."""
    number = sim.number()
    keys = sim.dice.sample(range(KEYS), 3)
    batch = [Row(number * 100 + i, key, number, 7) for i, key in enumerate(keys)]

    def apply(rows: model.Rows, history: list[model.Rows]) -> model.Rows:
        out: model.Rows = Counter()
        met = set()
        for row, count in rows.items():
            new = next((b for b in batch if b.key == row.key), None)
            met |= {row.key} if new else set()
            out[new or row] += count
        return out + Counter(b for b in batch if b.key not in met)

    attempt(sim, actor, model.Intent("upsert", apply, number), lambda t: t.upsert(data(batch), on=["key"]))


def merge(sim: Simulation, actor: Actor) -> None:
    """Every kind of clause at once: some matches go, some change, the rest comes, and what has no match goes where its key is high."""
    number = sim.number()
    batch = [Row(number * 100 + i, key, number, 3) for i, key in enumerate(sim.dice.sample(range(KEYS), 6))]
    keys = {row.key for row in batch}

    def apply(rows: model.Rows, history: list[model.Rows]) -> model.Rows:
        out: model.Rows = Counter()
        for row, count in rows.items():
            if row.key in keys and row.key % 3:
                out[row._replace(value=row.value + 10)] += count
            elif row.key not in keys and row.key <= KEYS - 3:
                out[row] += count
        met = {row.key for row in rows}
        return out + Counter(row for row in batch if row.key not in met)

    def run(t: tamis.Table) -> object:
        values = {name: f"source.{name}" for name in Row._fields}
        found = t.merge(data(batch), on="target.key = source.key").when_matched_delete(condition="target.key % 3 = 0")
        found = found.when_matched_update({"value": "target.value + 10"}).when_not_matched_insert(values)
        return found.when_not_matched_by_source_delete(condition=f"target.key > {KEYS - 3}").execute()

    attempt(sim, actor, model.Intent("merge", apply, number), run)


def restore(sim: Simulation, actor: Actor) -> None:
    actor.intent = None
    try:
        held = table(sim)
        version = sim.dice.randint(max(0, held.version - 6), held.version)
        actor.intent = model.restores(version)
        held.restore(version, allow_dropped_columns=True)
    except (StoreUnavailable, Conflict, NotFound):
        return
    except CorruptData as error:
        must_be_late(sim, actor, error)


def migrate(sim: Simulation, actor: Actor) -> None:
    """A column comes, changes its name, or goes, sometimes one under the name of another that went; the model's rows do not know of them."""
    actor.intent = model.unchanged("migrate")
    try:
        held = table(sim)
        extra = [name for name in held.schema.names if name not in Row._fields]
        change = held.alter()
        if not extra or (len(extra) < 4 and sim.dice.random() < 0.5):
            name = next(name for name in (f"extra{i}" for i in range(9)) if name not in extra)
            change.add_column(name, "bigint", default=sim.dice.choice([None, 7]))
        elif sim.dice.random() < 0.4:
            change.rename_column(sim.dice.choice(extra), f"extra{sim.number() + 9}")
        else:
            change.drop_column(sim.dice.choice(extra))
        change.commit()
    except (StoreUnavailable, Conflict, SchemaMismatch, NotFound):
        return


def compact(sim: Simulation, actor: Actor) -> None:
    upkeep(sim, actor, lambda t: t.compact(max_bytes=sim.dice.choice([None, 4_000, 40_000])))


def index(sim: Simulation, actor: Actor) -> None:
    def run(t: tamis.Table) -> object:
        if not len(t.indexes()):
            return t.create_index("by_key", ["key"], build=sim.dice.choice(["with_write", "deferred"]))
        return t.drop_index("by_key") if sim.dice.random() < 0.15 else t.repair_index()

    upkeep(sim, actor, run)


def vacuum(sim: Simulation, actor: Actor) -> None:
    upkeep(sim, actor, lambda t: t.vacuum(RETENTION, dry_run=False, below_retention=True))


def upkeep(sim: Simulation, actor: Actor, run: Callable[[tamis.Table], object]) -> None:
    actor.intent = model.unchanged(actor.name)
    try:
        run(table(sim))
    except (StoreUnavailable, Conflict):
        return
    except TamisError as error:
        if error.code in {"INDEX_EXISTS", "INDEX_NOT_FOUND"}:
            return  # another indexer was first
        if not isinstance(error, CorruptData | NotFound):
            raise
        must_be_late(sim, actor, error)


def read(sim: Simulation, actor: Actor) -> None:
    """Some version of late, whole or filtered, while the others go on: as the model has it, or an error of the store."""
    try:
        held = table(sim)
        version = sim.dice.randint(max(0, held.version - 3), held.version)
        key = sim.dice.randrange(KEYS)
        row_filter = sim.dice.choice([None, f"key = {key}", f"key < {key} and value >= 0"])
        kept = {None: lambda r: True, f"key = {key}": lambda r: r.key == key}.get(row_filter, lambda r: r.key < key)
        options = {"tamis.index.use": sim.dice.choice(["auto", "lookup", "plan", "off"])}
        found = held.scan(row_filter, Row._fields, version=version, options=options).to_arrow()
    except StoreUnavailable:
        return
    except (CorruptData, NotFound) as error:
        if not let_go(sim, version):
            must_be_late(sim, actor, error)
        return
    seen = Counter(Row(*row) for row in zip(*(c.to_pylist() for c in found.columns), strict=True))
    expected = Counter({row: n for row, n in audited(sim, version).items() if kept(row)})
    assert seen == expected, (
        f"version {version} under {row_filter}: {+(seen - expected)} too much, {+(expected - seen)} lost"
    )


def hold(sim: Simulation, actor: Actor) -> None:
    """A table that is held while others migrate it: it reads on, or is fenced, and fenced just where a column that it reads has gone."""
    try:
        held = table(sim)
        own = {f.metadata[b"PARQUET:field_id"] for f in held.schema}
        for _ in range(3):
            sim.pause()
            why = None
            try:
                held.scan().to_arrow()
            except SchemaFenced as error:
                why = error.code
            now = {str(f.id).encode() for f in held.snapshot.schema or ()}
            expected = "FENCED_READD_DELETED" if own - now else None
            assert why == expected, f"held {own}, version {held.version} has {now}: {why}"
    except StoreUnavailable:
        return
    except (CorruptData, NotFound) as error:
        must_be_late(sim, actor, error)


def compare(sim: Simulation, actor: Actor) -> None:
    """Compare the changes between two versions with the difference between them in the model."""
    try:
        held = table(sim)
        last = sim.dice.randint(max(0, held.version - 3), held.version)
        first = sim.dice.randint(max(0, last - 3), last)
        changes = held.changes(first, last).to_arrow()
    except StoreUnavailable:
        return
    except (CorruptData, NotFound) as error:
        if not let_go(sim, first):
            must_be_late(sim, actor, error)
        return
    net: Counter[Row] = Counter(audited(sim, first))
    for kind, *row in zip(
        changes["_change_type"].to_pylist(), *(changes[name].to_pylist() for name in Row._fields), strict=True
    ):
        net[Row(*row)] += 1 if kind == "insert" else -1
    expected = audited(sim, last)
    assert {r: n for r, n in net.items() if n} == dict(+expected), f"changes from {first} to {last}"


def let_go(sim: Simulation, version: int) -> bool:
    """Whether the version was replaced longer ago than the retention."""
    if version >= load(sim.inner).version:
        return False
    after = read_commits(sim.inner, [version + 1], None)[0]
    return after.timestamp_micros <= world().now_micros() - RETENTION.total_seconds() * 1e6


def pass_time(sim: Simulation, actor: Actor) -> None:
    """Minutes, and now and then a jump over the retention, as an actor that was suspended sees it."""
    if sim.dice.random() < 0.05:
        world().sleep(2 * RETENTION.total_seconds())
    else:
        world().sleep(sim.dice.random() * 300)
    sim.pause()
    sim.calls += 1


def audited(sim: Simulation, version: int) -> model.Rows:
    """What the model says of a version; it reads the log past the store's moods."""
    known = len(sim.model.versions)
    sim.model.extend(read_commits(sim.inner, range(known, version + 1), None))
    return sim.model.versions[version]


class Role(NamedTuple):
    act: Callable[[Simulation, Actor], None]
    copies: int = 1
    needs: str = "append"
    """The verb of ``Table`` that must be there."""


ACTORS: dict[str, Role] = {
    "writer": Role(write, 3),
    "replacer": Role(replace),
    "deleter": Role(delete, 2, "delete"),
    "updater": Role(update, 1, "update"),
    "upserter": Role(upsert, 1, "upsert"),
    "merger": Role(merge, 1, "merge"),
    "restorer": Role(restore, 1, "restore"),
    "migrator": Role(migrate, 1, "alter"),
    "compactor": Role(compact, 2, "compact"),
    "indexer": Role(index, 1, "create_index"),
    "vacuum": Role(vacuum, 1, "vacuum"),
    "reader": Role(read, 3),
    "holder": Role(hold, 1, "alter"),
    "auditor": Role(compare, 1, "changes"),
    "clock": Role(pass_time),
}


def cast() -> list[Actor]:
    """The actors whose verbs are there."""
    return [
        Actor(f"{name} {i}", dated(role.act))
        for name, role in ACTORS.items()
        if hasattr(tamis.Table, role.needs)
        for i in range(role.copies)
    ]


def dated(act: Callable[[Simulation, Actor], None]) -> Callable[[Simulation, Actor], None]:
    """``act``, and when it began."""

    def run(sim: Simulation, actor: Actor) -> None:
        sim.began[actor.name] = world().now_micros()
        act(sim, actor)

    return run
