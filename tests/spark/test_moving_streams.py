"""Streams read the fields that they mean, however names move while they run, are stopped or have not started."""

from __future__ import annotations

from collections.abc import Iterable
from copy import deepcopy
from pathlib import Path
from random import Random  # noqa: TID251  # seeded
from typing import Any

import pytest
from pyspark.errors import StreamingQueryException
from tests.spark.conftest import Lake
from tests.spark.moving_names import Held, MovingTable, Node, paths
from tests.spark.moving_names import Path as FieldPath

pytestmark = pytest.mark.spark


class Followed:
    """A stream of two fields of a table, with or without a filter, made now and started later."""

    def __init__(self, table: MovingTable, checkpoint: Path, rng: Random) -> None:
        lake = table.lake
        self.held = Held(lake.spark.readStream.table(f"{lake.name}.db.t"), deepcopy(table.fields), table)
        self.chosen = rng.sample(list(paths(self.held.fields)), 2)
        self.tested = rng.choice([None, *(p for p in paths(self.held.fields) if not p.array)])
        self._checkpoint = checkpoint
        self._query: Any = None
        self._done = 0
        self.over = False
        self.seen: list[tuple[Any, ...]] = []
        self.expected: list[tuple[Any, ...]] = []
        frame = self.held.frame
        if self.tested:
            frame = frame.where(f"{self.tested.text} IS NOT NULL")
        self._frame = frame.selectExpr(*(p.text for p in self.chosen))

    def follow(self) -> str | None:
        """Read what has come. Return what was read wrongly; the stream is ``over`` if it was fenced."""
        fenced = self._read()
        if fenced is not None and not ("FENCED_" in fenced and self._may_be_fenced()):
            return f"{self}: {fenced}, not to be fenced"
        came = range(self._done, len(self.held.table.rows))
        if fenced is None:
            if self._must_be_fenced():
                return f"{self}: not fenced"
            self.expected += self._rows(came)
        else:  # the query ran on by itself until the change
            earlier = self._rows([row for row in came if self._is_earlier(row)])
            self.expected += earlier[: max(0, len(self.seen) - len(self.expected))]
        self._done = len(self.held.table.rows)
        self.over = fenced is not None
        right = sorted(self.seen, key=str) == sorted(self.expected, key=str)
        return None if right else f"{self}: {self.seen}, not {self.expected}"

    def _is_earlier(self, row: int) -> bool:
        """Whether ``row`` was written when all fields of the stream's columns were as the stream knows them."""
        written = self.held.table.rows[row]
        return all(written.get(number) == kind for number, kind in MovingTable.kinds(self._columns()).items())

    def stop(self) -> None:
        """Stop the query; ``follow`` starts it again from its checkpoint, with the same DataFrame."""
        if self._query is not None:
            self._query.stop()
            self._query = None

    def _read(self) -> str | None:
        """The message of the error that ended the query, or None."""
        try:
            if self._query is None:
                writer = self._frame.writeStream.foreachBatch(self._take)
                self._query = writer.option("checkpointLocation", str(self._checkpoint)).start()
            self._query.processAllAvailable()
        except StreamingQueryException as error:
            return str(error)[:1000]
        return None

    def _take(self, df: Any, _: int) -> None:
        self.seen += [tuple(row) for row in df.collect()]

    def _all(self) -> list[FieldPath]:
        return [*self.chosen, *([self.tested] if self.tested else [])]

    def _must_be_fenced(self) -> bool:
        came = self._done < len(self.held.table.rows)
        gone = not all(set(p.numbers) <= self.held.table.live() for p in self._all())
        return came and (gone or self.held.table.changed_types(self._columns()))

    def _may_be_fenced(self) -> bool:
        """Whether any field of its columns is gone or has another type, since a stream reads whole columns."""
        gone = not set(MovingTable.kinds(self._columns())) <= self.held.table.live()
        return gone or self.held.table.changed_types(self._columns())

    def _columns(self) -> list[Node]:
        read = {p.numbers[0] for p in self._all()}
        return [f for f in self.held.fields if f.number in read]

    def _rows(self, rows: Iterable[int]) -> list[tuple[Any, ...]]:
        kept = [row for row in rows if not self.tested or self.held.values(self.tested)[row] is not None]
        columns = [self.held.values(p) for p in self.chosen]
        return [tuple(column[row] for column in columns) for row in kept]

    def __repr__(self) -> str:
        return f"stream of {[p.text for p in self.chosen]} where {self.tested and self.tested.text} is there"


def differences(lake: Lake, folder: Path, seed: int, steps: int) -> Any:
    """Yield what streams read wrongly while a table changes at random."""
    rng = Random(seed)
    table = MovingTable(lake, rng)
    streams = [Followed(table, folder / "0", rng)]
    try:
        for step in range(steps):
            table.change()
            if rng.random() < 0.6:
                table.insert()
            if rng.random() < 0.5:
                streams.append(Followed(table, folder / str(step + 1), rng))
            for stream in rng.sample(streams, len(streams) // 2 + 1):
                if (found := stream.follow()) is not None:
                    yield step, found
                if rng.random() < 0.3:
                    stream.stop()
            streams = [s for s in streams if not s.over] or [Followed(table, folder / f"again-{step}", rng)]
    finally:
        for stream in streams:
            stream.stop()


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.merge) for seed in range(1, 6))])
def test_names_move_and_streams_read_what_they_meant(lake: Lake, tmp_path: Path, seed: int) -> None:
    wrong = list(differences(lake, tmp_path, seed, 8))
    assert not wrong, wrong[:3]
