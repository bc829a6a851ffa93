"""Rollups: the compacted log.

A rollup of level k is the delta of 16^k versions starting at a multiple of 16^k. Any snapshot is the sum of
few of them: the versions [0, V] are cut like the digits of V + 1 in base 16. Rollups are optional: one that
is missing, damaged or of another table is replaced by the sixteen below it, and in the end by the commits. A
commit that completes a range writes its rollup from the sixteen below, so each commit is rewritten once per
level: O(log n) amortized.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from tamis.errors import TamisError
from tamis.sizes import SIZES
from tamis.storage.commit_log.commit_objects import ROOT, read_commits
from tamis.storage.commit_log.commit_record import Commit
from tamis.storage.commit_log.version_changes import DamagedLayer, Delta, live, of_commit
from tamis.storage.object_store.checked_json import readable, seal, unseal
from tamis.storage.object_store.metadata_files import Columns, columns_from_json, keep
from tamis.storage.object_store.metadata_union import common, under
from tamis.storage.object_store.object_cache import CACHE
from tamis.storage.object_store.parallel_requests import gather
from tamis.storage.object_store.store import Store
from tamis.world import new_id

T = TypeVar("T")

FAN_OUT = 16
INLINE_BYTES = SIZES.rollup_inline_bytes
LARGEST = 64 * 2**20
"""Size in bytes beyond which a rollup is not built; its readers use the sixteen below."""


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
    """Return the fewest tiles that cover the versions [0, count), in order."""
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
    """Load the deltas of the tiles in ``cover``, each from its rollup or else from the tiles below it.

    Rollups in ``avoid`` are not used.
    """
    found: dict[Tile, Delta] = {}
    looking = sorted(cover)
    while looking:
        commits = [tile for tile in looking if tile.level == 0]
        rollups = [tile for tile in looking if tile.level > 0]
        for tile, commit in zip(commits, read_commits(store, [t.first for t in commits], table_id), strict=True):
            found[tile] = of_commit(store, commit)
        looking = []
        for tile, delta in zip(
            rollups, gather(store, lambda t: None if t in avoid else read(store, table_id, t), rollups), strict=True
        ):
            if delta is None:
                looking += tile.children
            else:
                found[tile] = delta
    return [found[tile] for tile in sorted(found)]


def trusting(avoid: set[Tile], call: Callable[[], T]) -> T:
    """Return ``call()``, repeated while a rollup turns out damaged.

    Damaged rollups are added to ``avoid``, which ``call`` must honour.
    """
    while True:
        try:
            return call()
        except DamagedLayer as damaged:
            if not isinstance(damaged.source, Tile) or damaged.source in avoid:
                raise
            avoid.add(damaged.source)


def read(store: Store, table_id: str, tile: Tile) -> Delta | None:
    """Load a rollup; None if there is no usable one."""
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
    """Write the missing rollups up to ``commit``.

    This is best effort and cannot affect the commit. An error that does not come from the store is a defect
    and raises a warning.
    """
    if (commit.version + 1) % FAN_OUT:
        return
    for tile in tiles(commit.version + 1):
        try:
            if tile.level and read(store, commit.table_id, tile) is None:
                write(store, commit.table_id, tile)
        except TamisError:  # a failing store or older damage, which is not this commit's concern
            return
        except Exception as error:  # noqa: BLE001  # must not affect the commit
            message = (
                f"The rollup {tile.path} of {store.url} could not be written, "
                f"opening is slower: {type(error).__name__}: {error}"
            )
            warnings.warn(message, RuntimeWarning, stacklevel=2)


def write(store: Store, table_id: str, tile: Tile) -> None:
    """Build and write the rollup of ``tile`` from those below it, its tables first."""
    avoid: set[Tile] = set()
    body = trusting(avoid, lambda: _build(store, tile, deltas(store, table_id, tile.children, avoid)))
    if body is None:
        return
    data = seal("rollup", {"table_id": table_id, "level": tile.level, "first": tile.first, **body})
    if not store.put_if_absent(tile.path, data) and read(store, table_id, tile) is None:
        store.put(tile.path, data)  # the existing object is damaged or belongs to another table


def _build(store: Store, tile: Tile, layers: Sequence[Delta]) -> dict[str, Any] | None:
    """Build a rollup's body and write its tables; None if it would be too large.

    Layers are read one after the other, so that memory holds one.
    """
    if sum(layer.nbytes for layer in layers) > LARGEST:
        return None
    state = live(store, layers)
    stem = f"{ROOT}/rollup/{tile.level}-{tile.first:020}-{new_id()}"
    segments = state.changes["segment_id"].take(pa.array(state.segments)).combine_chunks()
    kept = state.changes.select(["layer", "row"]).take(pa.array(state.kept))
    layer_of, row_of = kept["layer"].to_numpy(), kept["row"].to_numpy()

    def changes(at: int, rows: pa.Table) -> pa.Table:
        return rows.take(pa.array(row_of[layer_of == at]))

    def living(_: int, rows: pa.Table) -> pa.Table:
        return rows.filter(pc.is_in(rows["segment_id"], value_set=segments))

    tables = {}
    for name in sorted({name for layer in state.layers for name in layer.tables}):
        sources = {at: layer.tables[name] for at, layer in enumerate(state.layers) if name in layer.tables}
        tables[name] = _gathered(store, state.layers, sources, living, f"{stem}.{name}.parquet")
    everything = _gathered(
        store,
        state.layers,
        {at: layer.changes for at, layer in enumerate(state.layers)},
        changes,
        f"{stem}.changes.parquet",
    )
    return {
        "reset": state.reset,
        "changes": everything.to_json(),
        "tables": {name: table.to_json() for name, table in tables.items() if table.rows},
    }


def _gathered(
    store: Store,
    layers: Sequence[Delta],
    sources: Mapping[int, Columns],
    choose: Callable[[int, pa.Table], pa.Table],
    path: str,
) -> Columns:
    """Store the chosen rows of one table of each layer as one table."""
    schema = common(layers[at].schema(store, columns) for at, columns in sources.items())
    pieces = (choose(at, layers[at].read(store, columns, list, remember=False)) for at, columns in sources.items())
    return keep(store, (under(piece, schema) for piece in pieces), schema, path, limit=INLINE_BYTES)
