"""Spark SQL against a store that misbehaves, beside embedded writers: ``python -m tests.simulation.spark_soak [minutes] [seed]``.

The driver's calls of the store are refused, lost, done late, or answered twice; now and then the driver is cut off in the middle of a statement and does no more. Executors write to the
same folder undisturbed. Threads and Spark keep their own time, so a seed chooses what is asked and how often things go wrong, not how it ends; every finding comes with the calls before it.
The model of ``tests.simulation`` replays the log and says what each version must hold.
"""

from __future__ import annotations

import json
import sys
import tempfile
import threading
import traceback
from collections import Counter, deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from random import Random  # noqa: TID251  # seeded: it asks the machine nothing
from typing import Any
from unittest import mock

import pyarrow as pa

import tamis
from tamis.errors import StoreUnavailable, TamisError
from tamis.storage.commit_log import load
from tamis.storage.commit_log.commit_objects import read_commits
from tamis.storage.commit_log.vacuum_marker import oldest_readable
from tamis.storage.object_store import Store
from tamis.world import world
from tests.simulation import model
from tests.simulation.model import Row
from tests.storage.faults import FAULTS, LATER, LOSE, TAKEN, TAKEN_DONE
from tests.storage.making import forget

KEYS = 40
RETENTION = "2m"
"""Longer than any statement here; one that takes longer is refused when it commits, which is fine."""
FINE = ("planned: ", "[CONFLICT", "[COMMIT_UNKNOWN]", "[VERSION_NOT_FOUND]", "[MERGE_CARDINALITY_VIOLATION]")
"""What an error may say that a store or another writer caused."""


class Story:
    """One table, its model, and what goes wrong."""

    def __init__(self, seed: int, folder: Path, fault: float = 0.01, cut: float = 0.002) -> None:
        self.dice = Random(seed)
        self.model = model.Model()
        self.path, self.catalog = str(folder / "db" / "t"), f"lake_{seed}"
        self.fault_share, self.cut_share = fault, cut
        self.calm = True
        self.trace: deque[str] = deque(maxlen=60)
        self.asked: Counter[str] = Counter()
        self.calls = 0
        self.auditing = threading.local()
        self._lock = threading.RLock()
        self._numbers = 0
        self._late: list[tuple[int, Callable[[], object]]] = []
        self._intents: dict[str, model.Intent | None] = {}
        self._cut: set[str] = set()

    def number(self) -> int:
        with self._lock:
            self._numbers += 1
            return self._numbers

    def begins(self, actor: str, intent: model.Intent | None) -> None:
        with self._lock:
            self._intents[actor] = intent
            self._cut.discard(actor)
            self.asked[f"{actor}: {intent.name if intent else 'read'}"] += 1

    def mishap(self, actor: str, action: str, path: str) -> str | None:
        """What happens at this call: nothing, a fault, or the end of all calls of the operation at hand."""
        with self._lock:
            self.calls += 1
            due = [late for late in self._late if late[0] <= self.calls]
            self._late = [late for late in self._late if late[0] > self.calls]
            chance = self.dice.random()
            fault = None
            if actor in self._cut:
                fault = "refuse"
            elif chance < self.cut_share:
                self._cut.add(actor)
                fault = self.dice.choice(FAULTS)
            elif chance < self.cut_share + self.fault_share:
                fault = self.dice.choice(FAULTS)
            self.trace.append(f"{self.calls} {actor} {action} {path}: {fault or 'fine'}")
        for _, write in due:
            write()
        return fault

    def later(self, write: Callable[[], object]) -> None:
        with self._lock:
            self._late.append((self.calls + self.dice.randint(1, 20), write))

    def settle(self) -> None:
        """The store is well again, and all that was under way arrives."""
        self.calm = True
        for _, write in self._late:
            write()
        self._late.clear()
        forget()

    def proposed(self, actor: str, data: bytes) -> None:
        with self._lock:
            self.model.intents[json.loads(data)["commit"]["operation_id"]] = self._intents.get(
                actor
            ) or model.unchanged("upkeep")

    def at(self, version: int) -> model.Rows:
        """What the model says of a version; it reads the log past the store's moods."""
        with self._lock:
            self.auditing.on = True
            try:
                log = tamis.open(self.path).store
                self.model.extend(read_commits(log, range(len(self.model.versions), version + 1), None))
            finally:
                self.auditing.on = False
            return self.model.versions[version]


def actor() -> str:
    """Who calls the store from this thread: threads that are not ours are Spark's."""
    name = threading.current_thread().name
    return name if name.startswith("embedded") else "spark"


@contextmanager
def misbehaving(story: Story) -> Iterator[None]:
    plain, put = Store._run, Store.put_if_absent

    def put_if_absent(self: Store, path: str, data: bytes) -> bool:
        if self.url.endswith(story.path) and path.startswith("_tamis/log/"):
            story.proposed(actor(), data)
        return put(self, path, data)

    def run(self: Store, action: str, path: str, call: Any, *, create: bool = False) -> Any:
        if story.calm or getattr(story.auditing, "on", False) or not self.url.endswith(story.path):
            return plain(self, action, path, call, create=create)
        fault = story.mishap(actor(), action, path)
        if fault is None:
            return plain(self, action, path, call, create=create)
        if fault in {LOSE, TAKEN_DONE}:
            plain(self, action, path, call, create=create)
        elif fault == LATER and action in {"write", "delete"}:
            story.later(lambda: plain(self, action, path, call, create=create))
        if fault in {TAKEN, TAKEN_DONE} and call.__name__ == "attempt":
            return False
        raise StoreUnavailable(f"planned: {fault} {path}")

    with mock.patch.object(Store, "_run", run), mock.patch.object(Store, "put_if_absent", put_if_absent):
        yield


def attempt(story: Story, intent: model.Intent, run: Callable[[], object]) -> None:
    """Attempt an operation that should land once or not at all."""
    story.begins(actor(), intent)
    if intent.number >= 0:
        story.model.done[intent.number] = None
    try:
        run()
        if intent.name == "append":  # the only one that always has something to commit
            story.model.done[intent.number] = True
    except Exception as error:
        message = str(error)
        if not any(fine in message for fine in FINE):
            raise
        if intent.number >= 0 and "COMMIT_UNKNOWN" not in message:
            story.model.done[intent.number] = False


def values(rows: list[Row]) -> str:
    return ", ".join(f"({', '.join(map(str, row))})" for row in rows)


class Statements:
    """What Spark is asked: each method one statement, and what it means."""

    def __init__(self, story: Story, spark: Any) -> None:
        self.story, self.spark, self.dice = story, spark, story.dice
        self.all = (
            self.insert,
            self.delete,
            self.update,
            self.merge,
            self.insert_missing,
            self.overwrite,
            self.compact,
            self.vacuum,
            self.restore,
            self.index,
            self.read,
        )
        self.weights = (4, 2, 2, 2, 2, 1, 2, 1, 1, 1, 3)

    def one(self) -> None:
        self.dice.choices(self.all, self.weights)[0]()

    def sql(self, text: str) -> list[Any]:
        found: list[Any] = self.spark.sql(text.replace("lake.", f"{self.story.catalog}.")).collect()
        return found

    def fresh(self, number: int) -> list[Row]:
        return [Row(number * 100 + i, self.dice.randrange(KEYS), number, 0) for i in range(self.dice.randint(1, 12))]

    def insert(self) -> None:
        number = self.story.number()
        rows = self.fresh(number)
        attempt(self.story, model.adds(number, rows), lambda: self.sql(f"INSERT INTO lake.db.t VALUES {values(rows)}"))

    def delete(self) -> None:
        number, low = self.story.number(), self.dice.randrange(KEYS)
        # `+ 0` in every other one: then Spark finds the rows, and not the funnel
        condition = f"key {self.dice.choice(['', '+ 0 '])}BETWEEN {low} AND {low + 3}"
        condition += self.dice.choice(["", " AND id IN (SELECT id FROM lake.db.t)"])
        intent = model.replaces(number, lambda r: low <= r.key < low + 4, [])
        attempt(self.story, intent, lambda: self.sql(f"DELETE FROM lake.db.t WHERE {condition}"))

    def update(self) -> None:
        number, key = self.story.number(), self.dice.randrange(KEYS)
        intent = model.updates(number, lambda r: r.key == key, lambda r: r._replace(value=r.value + 1))
        attempt(self.story, intent, lambda: self.sql(f"UPDATE lake.db.t SET value = value + 1 WHERE key = {key}"))

    def merge(self) -> None:
        number = self.story.number()
        batch = [Row(number * 100 + i, key, number, 3) for i, key in enumerate(self.dice.sample(range(KEYS), 6))]
        keys = {row.key for row in batch}

        def apply(rows: model.Rows, _: list[model.Rows]) -> model.Rows:
            out: model.Rows = Counter()
            for row, count in rows.items():
                if row.key not in keys:
                    out[row] += count
                elif row.key % 3:
                    out[row._replace(value=row.value + 10)] += count
            return out + Counter(row for row in batch if row.key not in {r.key for r in rows})

        text = (
            f"MERGE INTO lake.db.t t USING (SELECT * FROM VALUES {values(batch)} AS s(id, key, batch, value)) s ON t.key = s.key "
            "WHEN MATCHED AND t.key % 3 = 0 THEN DELETE WHEN MATCHED THEN UPDATE SET value = t.value + 10 WHEN NOT MATCHED THEN INSERT *"
        )
        attempt(self.story, model.Intent("merge", apply, number), lambda: self.sql(text))

    def insert_missing(self) -> None:
        """A MERGE that Spark plans as an INSERT of the rows without a match, and that is committed as one."""
        number = self.story.number()
        batch = [Row(number * 100 + i, key, number, 4) for i, key in enumerate(self.dice.sample(range(KEYS), 4))]

        def apply(rows: model.Rows, _: list[model.Rows]) -> model.Rows:
            return rows + Counter(row for row in batch if row.key not in {r.key for r in rows})

        text = (
            f"MERGE INTO lake.db.t t USING (SELECT * FROM VALUES {values(batch)} AS s(id, key, batch, value)) s ON t.key = s.key "
            "WHEN NOT MATCHED THEN INSERT *"
        )
        attempt(self.story, model.Intent("merge", apply, number), lambda: self.sql(text))

    def overwrite(self) -> None:
        number, key = self.story.number(), self.dice.randrange(KEYS)
        rows = [Row(number * 100, key, number, 5)]
        intent = model.replaces(number, lambda r: r.key == key, rows)
        attempt(
            self.story,
            intent,
            lambda: self.sql(f"INSERT INTO lake.db.t REPLACE WHERE key = {key} VALUES {values(rows)}"),
        )

    def compact(self) -> None:
        attempt(self.story, model.unchanged("compact"), lambda: self.sql("CALL lake.system.compact(table => 'db.t')"))

    def vacuum(self) -> None:
        text = f"CALL lake.system.vacuum(table => 'db.t', retention => '{RETENTION}', below_retention => true, dry_run => false)"
        attempt(self.story, model.unchanged("vacuum"), lambda: self.sql(text))

    def restore(self) -> None:
        version = max(0, len(self.story.model.versions) - self.dice.randint(1, 5))
        text = f"CALL lake.system.restore(table => 'db.t', version => {version})"
        attempt(self.story, model.restores(version), lambda: self.sql(text))

    def index(self) -> None:
        verb = self.dice.choice(
            ["create_index(table => 'db.t', index => 'by_key', columns => 'key')", "repair_index(table => 'db.t')"]
        )

        def run() -> None:
            try:
                self.sql(f"CALL lake.system.{verb}")
            except Exception as error:
                if "INDEX_EXISTS" not in str(error) and "INDEX_BUILD_FAILED" not in str(error):
                    raise

        attempt(self.story, model.unchanged("index"), run)

    def read(self) -> None:
        """A version of late, by Spark: as the model has it."""
        self.story.begins("spark", None)
        key = self.dice.randrange(KEYS)
        text, keep = self.dice.choice(
            [
                ("true", lambda r: True),
                (f"key = {key}", lambda r: r.key == key),
                (f"key < {key} AND value >= 0", lambda r: r.key < key),
            ]
        )
        with self.story._lock:
            version = max(0, len(self.story.model.versions) - 1 - self.dice.randint(0, 2))
        try:
            found = self.sql(f"SELECT id, key, batch, value FROM lake.db.t VERSION AS OF {version} WHERE {text}")
        except Exception as error:
            if not any(fine in str(error) for fine in FINE):
                raise
            return
        same(
            Counter(Row(*row) for row in found),
            Counter({r: n for r, n in self.story.at(version).items() if keep(r)}),
            f"{version} where {text}",
        )


def has_key(key: int, row: Row) -> bool:
    return row.key == key


def embedded(story: Story, seed: int, over: threading.Event, failures: list[BaseException]) -> None:
    """A writer without Spark: appends, upserts, deletes, compacts, one after another."""
    dice = Random(seed)
    schema = pa.schema([(name, pa.int64()) for name in Row._fields])
    try:
        while not over.wait(3 * dice.random()):
            number, key = story.number(), dice.randrange(KEYS)
            rows = [Row(number * 100 + i, dice.randrange(KEYS), number, 1) for i in range(4)]
            data = pa.table([list(c) for c in zip(*rows, strict=True)], schema=schema)
            verb = dice.choice(["append", "append", "append", "delete", "update", "compact"])
            intent = {
                "append": model.adds(number, rows),
                "delete": model.replaces(number, partial(has_key, key), []),
                "update": model.updates(number, partial(has_key, key), lambda r: r._replace(value=r.value + 1)),
                "compact": model.unchanged("compact"),
            }[verb]
            run: dict[str, Callable[[tamis.Table], object]] = {
                "append": lambda t, data=data: t.append(data),  # type: ignore[misc]
                "delete": lambda t, key=key: t.delete(f"key = {key}"),  # type: ignore[misc]
                "update": lambda t, key=key: t.update({"value": "value + 1"}, f"key = {key}"),  # type: ignore[misc]
                "compact": lambda t: t.compact(max_bytes=20_000),
            }
            attempt(story, intent, lambda verb=verb, run=run: run[verb](tamis.open(story.path)))  # type: ignore[misc]
    except BaseException as error:
        failures.append(error)


def same(seen: Counter[Row], expected: model.Rows, what: str) -> None:
    assert seen == +expected, f"version {what}: {+(seen - expected)} too much, {+(expected - seen)} lost"


def finish(story: Story) -> int:
    """Check every readable version against the model; return how many there are.

    Each operation landed once, or never where its actor saw it fail; nothing outlives a vacuum.
    """
    story.settle()
    of = tamis.open(story.path)
    story.at(of.version)
    story.model.check()
    first = oldest_readable(of.store, of.snapshot.head.table_id)
    for version in range(first, of.version + 1):
        found = of.scan(None, Row._fields, version=version).to_arrow()
        same(
            Counter(Row(*row) for row in zip(*(c.to_pylist() for c in found.columns), strict=True)),
            story.at(version),
            str(version),
        )
    checked = of.verify()
    assert checked.ok, checked.problems.to_pylist()
    of.vacuum("0s", dry_run=False, below_retention=True)
    there = {entry.path for entry in of.store.list("data")}
    live = set(load(of.store, afresh=True).parts(None)["path"].to_pylist())
    assert there == live, f"orphans outlived a vacuum, or live parts did not: {sorted(there ^ live)[:5]}"
    return of.version + 1 - first


def tell(seed: int, minutes: float, spark: Any, statements: int | None = None) -> Story:
    """A story of so many minutes, or statements."""
    with tempfile.TemporaryDirectory(prefix="tamis-spark-soak-") as home:
        story = Story(seed, Path(home))
        tamis.attach(spark, story.catalog, home)
        asks = Statements(story, spark)
        asks.sql("CREATE NAMESPACE lake.db")
        with misbehaving(story):
            asks.sql(
                "CREATE TABLE lake.db.t (id BIGINT, key BIGINT, batch BIGINT, value BIGINT) USING tamis CLUSTER BY (key) "
                "TBLPROPERTIES ('tamis.write.part_bytes' = '20k')"
            )
            failures: list[BaseException] = []
            over = threading.Event()
            others = [
                threading.Thread(
                    target=embedded, args=(story, seed + i, over, failures), name=f"embedded {i}", daemon=True
                )
                for i in range(2)
            ]
            end, done = world().monotonic() + 60 * minutes, 0
            story.calm = False
            try:
                for thread in others:
                    thread.start()
                while not failures and (world().monotonic() < end if statements is None else done < statements):
                    asks.one()
                    done += 1
                over.set()
                for thread in others:
                    thread.join()
                if failures:
                    raise failures[0]
                read = finish(story)
            except BaseException as error:
                over.set()
                story.calm = True
                error.add_note(f"seed {seed}; the last calls:\n" + "\n".join(story.trace))
                raise
        print(
            f"seed {seed}: {done} statements, {story.calls} calls, {len(story.model.versions)} versions, {read} read again",
            flush=True,
        )
        return story


def main() -> int:
    minutes = float(sys.argv[1]) if len(sys.argv) > 1 else 15
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else 0
    from tamis.cli.session import spark_session

    asked: Counter[str] = Counter()
    conf = {"spark.sql.shuffle.partitions": "2", "spark.default.parallelism": "2"}
    end = world().monotonic() + 60 * minutes
    with spark_session(conf) as spark:
        while not asked or world().monotonic() < end:
            try:
                asked += tell(seed, min(5.0, minutes), spark).asked
            except (Exception, TamisError):
                traceback.print_exc()
                print(f"FAILED in seed {seed}")
                return 1
            seed += 1
    print(dict(sorted(asked.items())))
    print("nothing lost, nothing doubled.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
