"""Rollups: the compacted log.

A rollup of level k is the delta of 16^k versions starting at a multiple of 16^k. Any snapshot is the sum of
few of them: the versions [0, V] are cut like the digits of V + 1 in base 16. Rollups are optional: one that
is missing, damaged, or of another table or history is replaced by the sixteen below it, and in the end by the
commits. A commit that completes a range writes its rollup from the sixteen below, so each commit is rewritten
once per level: O(log n) amortized.

A rollup names its last commit and the one before its first, and a commit the one before it. So a rollup that stayed
when the log was restored from a backup is detected without another request.
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
from tamis.storage.commit_log.commit_objects import ROOT, mixed_history_error, read_commits
from tamis.storage.commit_log.commit_record import Commit
from tamis.storage.commit_log.version_changes import DamagedLayer, Delta, commit_delta, live_parts
from tamis.storage.object_store.checked_json import parse_errors, seal_json, unseal_json
from tamis.storage.object_store.metadata_files import Columns, columns_from_json, store_rows
from tamis.storage.object_store.metadata_union import cast_to_schema, common_schema
from tamis.storage.object_store.object_cache import CACHE
from tamis.storage.object_store.parallel_requests import gather_requests
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


def covering_tiles(count: int) -> list[Tile]:
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


def load_deltas(
    store: Store, table_id: str, cover: Iterable[Tile], last: str | None, avoid: Collection[Tile] = ()
) -> list[Delta]:
    """Load the deltas of the tiles in ``cover``, each from its rollup or else from the tiles below it.

    ``last`` is the ``operation_id`` of the last commit, or None if unknown. Rollups in ``avoid`` are not used, nor
    those of a history that was lost when the log was restored from a backup. Raises ``CorruptData``
    (``MIXED_HISTORY``) if a commit is not the one that the next commit names.
    """
    found = _load(store, table_id, cover, avoid)
    while (wrong := _outside_history(found, last)) is not None:
        tile, expected = wrong
        stored = _stored(store, table_id, tile)
        if stored is not None and stored.operation_id == expected:  # only this process's cache was of a lost history
            found[tile] = stored
        elif tile.level:
            del found[tile]
            found |= _load(store, table_id, tile.children, avoid)
        else:
            raise mixed_history_error(store, tile.first, expected)
    return [found[tile] for tile in sorted(found)]


def _load(store: Store, table_id: str, cover: Iterable[Tile], avoid: Collection[Tile]) -> dict[Tile, Delta]:
    """Return the deltas that cover the tiles in ``cover``, from the cache or the store, whatever their history."""
    found: dict[Tile, Delta] = {}
    looking = sorted(cover)
    while looking:
        commits = [tile for tile in looking if tile.level == 0]
        rollups = [tile for tile in looking if tile.level > 0]
        for tile, commit in zip(commits, read_commits(store, [t.first for t in commits], table_id), strict=True):
            found[tile] = commit_delta(store, commit)
        looking = []
        for tile, delta in zip(
            rollups,
            gather_requests(store, lambda t: None if t in avoid else read(store, table_id, t), rollups),
            strict=True,
        ):
            if delta is None:
                looking += tile.children
            else:
                found[tile] = delta
    return found


def _outside_history(found: Mapping[Tile, Delta], last: str | None) -> tuple[Tile, str] | None:
    """Return the newest tile that does not end with the commit that the next tile names, and the operation it names."""
    expected = last
    for tile in sorted(found, reverse=True):
        if expected is not None and found[tile].operation_id != expected:
            return tile, expected
        expected = found[tile].parent
    return None


def _stored(store: Store, table_id: str, tile: Tile) -> Delta | None:
    """Load a tile past the cache; None for a rollup that is unusable."""
    if tile.level:
        return read(store, table_id, tile, cached=False)
    return commit_delta(store, read_commits(store, [tile.first], None)[0])


def retry_damaged(avoid: set[Tile], call: Callable[[], T]) -> T:
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


def read(store: Store, table_id: str, tile: Tile, *, cached: bool = True) -> Delta | None:
    """Load a rollup, past the cache if not ``cached``; None if there is no usable one.

    A rollup that does not name its last commit (of a writer before the first release) is not usable: it may be of a
    history that was lost.
    """
    key = (store.url, table_id, tile)
    known: Delta | None = CACHE.get(key)
    if cached and known is not None:
        return known
    try:
        data = store.get(tile.path)
        body = unseal_json("rollup", data, store.name(tile.path))
        with parse_errors("rollup", store.name(tile.path)):
            if (body["table_id"], body["level"], body["first"]) != (table_id, tile.level, tile.first):
                return None
            tables = {name: columns_from_json(value) for name, value in body["tables"].items()}
            changes = columns_from_json(body["changes"])
            delta = Delta(body["reset"], changes, tables, body["operation_id"], body.get("parent"), tile)
    except TamisError:
        return None
    if known is not None and known.operation_id != delta.operation_id:  # the folder is now that of a backup
        CACHE.forget(store.url)
    CACHE.put(key, delta, 4 * len(data))
    return delta


def complete_rollups(store: Store, commit: Commit) -> None:
    """Write the missing rollups up to ``commit``, and those of another history.

    This is best effort and cannot affect the commit. An error that does not come from the store is a defect
    and raises a warning.
    """
    if (commit.version + 1) % FAN_OUT:
        return
    last: str | None = commit.operation_id
    for tile in reversed(covering_tiles(commit.version + 1)):
        try:
            last = _ensure(store, commit.table_id, tile, last)
        except TamisError:  # a failing store or older damage, which is not this commit's concern
            return
        except Exception as error:  # noqa: BLE001  # must not affect the commit
            message = (
                f"The rollup {tile.path} of {store.url} could not be written, "
                f"opening is slower: {type(error).__name__}: {error}"
            )
            warnings.warn(message, RuntimeWarning, stacklevel=2)
            return


def _ensure(store: Store, table_id: str, tile: Tile, last: str | None) -> str | None:
    """Write the rollup of ``tile`` unless a usable one ends with the operation ``last``; return its parent."""
    known = read(store, table_id, tile)
    if known is None or last not in (None, known.operation_id):
        return write(store, table_id, tile, last)
    return known.parent


def write(store: Store, table_id: str, tile: Tile, last: str | None) -> str | None:
    """Build and write the rollup of ``tile`` from those below it, its tables first; return its parent.

    ``last``: as for ``load_deltas``.
    """
    avoid: set[Tile] = set()
    layers: list[Delta] = []

    def build() -> dict[str, Any] | None:
        layers[:] = load_deltas(store, table_id, tile.children, last, avoid)
        return _build(store, tile, layers)

    body = retry_damaged(avoid, build)
    parent, operation_id = layers[0].parent, layers[-1].operation_id
    if body is None:
        return parent
    history = {"operation_id": operation_id, **({"parent": parent} if parent is not None else {})}
    data = seal_json("rollup", {"table_id": table_id, "level": tile.level, "first": tile.first, **history, **body})
    if not store.put_if_absent(tile.path, data):
        present = read(store, table_id, tile, cached=False)
        if present is None or present.operation_id != operation_id:
            store.put(tile.path, data)  # the existing object is damaged, or of another table or history
            CACHE.forget(store.url, table_id, tile)
    return parent


def _build(store: Store, tile: Tile, layers: Sequence[Delta]) -> dict[str, Any] | None:
    """Build a rollup's body and write its tables; None if it would be too large.

    Layers are read one after the other, so that memory holds one.
    """
    if sum(layer.nbytes for layer in layers) > LARGEST:
        return None
    state = live_parts(store, layers)
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
    schema = common_schema(layers[at].schema(store, columns) for at, columns in sources.items())
    pieces = (choose(at, layers[at].read(store, columns, list, remember=False)) for at, columns in sources.items())
    return store_rows(store, (cast_to_schema(piece, schema) for piece in pieces), schema, path, limit=INLINE_BYTES)
