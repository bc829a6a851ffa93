"""Rollups: the log, told shorter. A rollup of level k is the delta of 16^k versions that begin at a multiple of 16^k.

Any snapshot is the sum of few of them: the versions [0, V] are cut like the digits of V + 1 in base 16. They are advice: one that is
missing, damaged or of another table gives way to the sixteen below it, and in the end to the commits. A commit that completes a
range writes its rollup from the sixteen below, so each commit is rewritten once per level: O(log n) amortised.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from tamis.errors import TamisError
from tamis.state.cache import CACHE
from tamis.state.delta import DamagedLayer, Delta, live, of_commit
from tamis.state.envelope import readable, seal, unseal
from tamis.state.log import ROOT, read_commits
from tamis.state.merge import stack
from tamis.state.parallel import gather
from tamis.state.record import Commit
from tamis.state.store import Store
from tamis.state.stored import columns_from_json, keep
from tamis.world import new_id

T = TypeVar("T")

FAN_OUT = 16
INLINE_BYTES = 64 * 2**10
LARGEST = 256 * 2**20
"""Bytes at rest beyond which a rollup is not built: its readers take the sixteen below."""


@dataclass(frozen=True, slots=True, order=True)
class Tile:
    """The versions [first, first + 16^level); level 0 is one commit."""

    first: int
    level: int

    @property
    def path(self) -> str:
        return f"{ROOT}/rollup/{self.level}-{self.first:020}.json"

    @property
    def children(self) -> list[Tile]:
        size = FAN_OUT ** (self.level - 1)
        return [Tile(self.first + at * size, self.level - 1) for at in range(FAN_OUT)]


def tiles(count: int) -> list[Tile]:
    """The fewest tiles that cover the versions [0, count), in order."""
    out: list[Tile] = []
    first, level = 0, 0
    while FAN_OUT ** (level + 1) <= count:
        level += 1
    for at in range(level, -1, -1):
        size = FAN_OUT**at
        while first + size <= count:
            out.append(Tile(first, at))
            first += size
    return out


def deltas(store: Store, table_id: str, cover: Iterable[Tile], avoid: Collection[Tile] = ()) -> list[Delta]:
    """The deltas of the tiles in ``cover``, each from its rollup or else from what is below it; never from one in ``avoid``."""
    found: dict[Tile, Delta] = {}
    looking = sorted(cover)
    while looking:
        commits = [tile for tile in looking if tile.level == 0]
        rollups = [tile for tile in looking if tile.level > 0]
        for tile, commit in zip(commits, read_commits(store, [t.first for t in commits], table_id), strict=True):
            found[tile] = of_commit(commit)
        looking = []
        for tile, delta in zip(rollups, gather(store, lambda t: None if t in avoid else read(store, table_id, t), rollups), strict=True):
            if delta is None:
                looking += tile.children
            else:
                found[tile] = delta
    return [found[tile] for tile in sorted(found)]


def trusting(avoid: set[Tile], call: Callable[[], T]) -> T:
    """``call``, again for as long as a rollup turns out damaged; the damaged ones are added to ``avoid``, which ``call`` heeds."""
    while True:
        try:
            return call()
        except DamagedLayer as damaged:
            if not isinstance(damaged.source, Tile) or damaged.source in avoid:
                raise
            avoid.add(damaged.source)


def read(store: Store, table_id: str, tile: Tile) -> Delta | None:
    """What the rollup says; None where there is none that can be used."""
    key = (store.url, table_id, tile)
    known: Delta | None = CACHE.get(key)
    if known is not None:
        return known
    try:
        data = store.get(tile.path)
        body = unseal("rollup", data, store.name(tile.path))
        with readable("rollup", store.name(tile.path)):
            if (body["table_id"], body["level"], body["first"]) != (table_id, tile.level, tile.first):
                return None
            tables = {name: columns_from_json(value) for name, value in body["tables"].items()}
            delta = Delta(body["reset"], columns_from_json(body["changes"]), tables, tile)
    except TamisError:
        return None
    CACHE.put(key, delta, 4 * len(data))
    return delta


def complete(store: Store, commit: Commit) -> None:
    """Sees to it, after ``commit``, that the rollups up to it exist. Best effort: the commit stands whatever happens here."""
    if (commit.version + 1) % FAN_OUT:
        return
    for tile in tiles(commit.version + 1):
        try:
            if tile.level and read(store, commit.table_id, tile) is None:
                write(store, commit.table_id, tile)
        except (TamisError, pa.ArrowException, ValueError):
            continue


def write(store: Store, table_id: str, tile: Tile) -> None:
    """Builds and writes the rollup of ``tile`` from those below it. Tables first, then what names them."""
    avoid: set[Tile] = set()
    content = trusting(avoid, lambda: _content(store, deltas(store, table_id, tile.children, avoid)))
    if content is None:
        return
    reset, changes, tables = content
    stem = f"{ROOT}/rollup/{tile.level}-{tile.first:020}-{new_id()}"
    body: dict[str, Any] = {
        "table_id": table_id,
        "level": tile.level,
        "first": tile.first,
        "reset": reset,
        "changes": keep(store, changes, f"{stem}.changes.parquet", limit=INLINE_BYTES).to_json(),
        "tables": {name: keep(store, rows, f"{stem}.{name}.parquet", limit=INLINE_BYTES).to_json() for name, rows in tables.items()},
    }
    data = seal("rollup", body)
    if not store.put_if_absent(tile.path, data) and read(store, table_id, tile) is None:
        store.put(tile.path, data)  # what is there is damaged, or another table's


def _content(store: Store, layers: Sequence[Delta]) -> tuple[bool, pa.Table, dict[str, pa.Table]] | None:
    """Of the whole range: whether it resets, its changes with their statistics, the rows of its living segments' inline tables. None: too large."""
    if sum(layer.changes.nbytes + sum(t.nbytes for t in layer.tables.values()) for layer in layers) > LARGEST:
        return None
    state = live(store, layers)
    changes = stack([layer.read_changes(store, list) for layer in state.layers]).take(pa.array(state.kept))
    segments = state.changes["segment_id"].take(pa.array(state.segments)).combine_chunks()
    tables: dict[str, pa.Table] = {}
    for name in sorted({name for layer in state.layers for name in layer.tables}):
        found = [rows for layer in state.layers if (rows := layer.read_table(store, name, list)) is not None]
        rows = stack([table.filter(pc.is_in(table["segment_id"], value_set=segments)) for table in found])
        if len(rows):
            tables[name] = rows
    return state.reset, changes, tables
