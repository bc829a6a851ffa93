"""What a change of schema costs, and what reading across schemas costs.

A migration of a table of 100,000 parts (metadata only: no data files), the check of one more schema of 1,000 fields behind 1,000 others, and a scan of parts that carry
50 schemas beside one of parts that carry one.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import pyarrow as pa

import tamis
from bench.report import Figure, quick, record
from bench.state import SCHEMA, manifest
from tamis.core.schema.schema_sequence import check_next
from tamis.core.types import LONG, Field, Schema
from tamis.engine.operations.schema.alter import Alteration
from tamis.storage.commit_log import Head, Operation, Proposal, commit, create, load, next_schema
from tamis.storage.object_store import Store, open_store

LOG = {
    f"{action} {path}"
    for action in ("read", "write", "list")
    for path in ("_tamis/log", "_tamis/latest", "_tamis/vacuumed", "_tamis/rollup")
}
"""What a change of the log alone asks the store for: its commits, and what it makes of them in order to be read quickly."""


def migration(folder: Path, parts: int, rounds: int = 5) -> tuple[float, set[str]]:
    """Seconds of ALTER TABLE ADD / DROP COLUMN on so many parts, and the objects that it read, by the kind of their folder."""
    store = open_store(str(folder / "large"))
    snapshot = create(store, Head("", schemas=(SCHEMA,), highest_column_id=len(SCHEMA)), Operation("create"))
    for at in range(10):
        snapshot = commit(
            store, Proposal(Operation("append"), snapshot.version, blind_append=True, add=[manifest(parts // 10, at)])
        )
    seconds, read = [], set[str]()
    for at in range(rounds):
        fresh = Watched(store, read)
        start = time.perf_counter()
        change = Alteration(fresh, load(fresh, afresh=True))
        change.add((f"new{at}",), Field("new", LONG))
        if at:
            change.drop((f"new{at - 1}",))
        change.commit()
        seconds.append(time.perf_counter() - start)
    return statistics.median(seconds), read


class Watched(Store):
    """The store through which a change does all that it does, and what it is asked for."""

    def __init__(self, inner: Store, asked: set[str]) -> None:
        super().__init__(inner.location, inner.options)
        self._connection, self.asked = inner._connection, asked

    def _run(self, action: str, path: str, call: Any, *, create: bool = False) -> Any:
        kept = "/".join(path.split("/")[:2]) if path.startswith("_tamis/") else path.split("/", maxsplit=1)[0]
        self.asked.add(f"{action} {kept}")
        return super()._run(action, path, call, create=create)


def check(schemas: int, fields: int) -> tuple[float, float]:
    """Seconds of the check of one more schema behind ``schemas`` others, and of building that history."""
    start = time.perf_counter()
    head = Head("t")
    columns = tuple(Field(f"c{i}", LONG, True, i) for i in range(1, fields + 1))
    for at in range(schemas):
        columns = (*columns[1:], Field(f"n{at}", LONG, True, fields + at + 1))
        head = next_schema(head, Schema(columns))
    built = time.perf_counter() - start
    new = Schema((*columns[1:], Field("last", LONG, True, head.highest_column_id + 1)))
    seconds = []
    for _ in range(5):
        start = time.perf_counter()
        assert head.schema is not None
        check_next(head.schema, head.dropped, new, widen=True, presented=False)
        seconds.append(time.perf_counter() - start)
    return statistics.median(seconds), built


def pure(schemas: int, fields: int) -> tuple[float, float]:
    """The same by the pure check over Arrow schemas: seconds with what the history comes to, and of replaying it."""
    columns = [pa.field(f"c{i}", pa.int64()) for i in range(fields)]
    history = [pa.schema(columns := [*columns[1:], pa.field(f"n{at}", pa.int64())]) for at in range(schemas)]
    start = time.perf_counter()
    known = tamis.schema.MigrationType.of(history)
    replayed = time.perf_counter() - start
    new = pa.schema([*columns[1:], pa.field("last", pa.int64())])
    seconds = []
    for _ in range(5):
        start = time.perf_counter()
        tamis.schema.check_migration(known, new)
        seconds.append(time.perf_counter() - start)
    return statistics.median(seconds), replayed


def reading(folder: Path, schemas: int, parts: int, rows: int) -> tuple[float, float]:
    """Seconds of a filtered scan over parts of one schema, and over parts of ``schemas`` of them; the two take turns."""
    tables = []
    for name in ("one", "many"):
        before = ""
        table = tamis.create(folder / name, pa.schema([("k", pa.int64()), ("v", pa.float64()), ("s", pa.string())]))
        for at in range(parts):
            if name == "many" and at and at % max(1, parts // schemas) == 0:
                change = table.alter().add_column(
                    f"c{at}", "BIGINT", default=str(at)
                )  # one column comes, one goes: files of one width
                (change.drop_column(before) if before else change).commit()
                before = f"c{at}"
            data: dict[str, Any] = {"k": range(at * rows, (at + 1) * rows), "v": [0.5] * rows, "s": ["text"] * rows}
            table.append(pa.table(data))
        tables.append(tamis.open(folder / name))
    seconds: list[list[float]] = [[], []]
    for _ in range(9):
        for table, taken in zip(tables, seconds, strict=True):
            start = time.perf_counter()
            assert table.scan("k % 7 = 3 AND v > 0", ["k", "v", "s"]).to_arrow().num_rows
            taken.append(time.perf_counter() - start)
    return min(seconds[0]), min(seconds[1])


def main() -> None:
    small = quick()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        parts, schemas = (10_000, 100) if small else (100_000, 1_000)
        one, read = migration(folder, parts)
        checked, built = check(schemas, 100 if small else 1_000)
        plain, replayed = pure(schemas, 100 if small else 1_000)
        single, many = reading(folder, 50, 100, 500 if small else 5_000)
    record(
        "schema",
        [
            Figure(f"one change of the schema of a table of {parts:,} parts", one, "s", 0.5),
            Figure("… kinds of objects beside the log that it read or wrote", len(read - LOG), "", 0),
            Figure(f"check of a table's next schema behind {schemas:,} schemas", checked, "s", 0.1),
            Figure(f"check_migration with the migration type of {schemas:,} schemas", plain, "s", 0.1),
            Figure("scan over 50 schemas beside one", many / single, "×", 1.1),
        ],
        {
            "migration_asked": sorted(read),
            "history_seconds": built,
            "replay_seconds": replayed,
            "scan_seconds": [single, many],
        },
    )


if __name__ == "__main__":
    main()
