"""The choice of indexes for a filter, and their combined result.

Invariants: an index drops a row only if a conjunct on its columns is not true of it, and no earlier conjunct
can raise, so that no error of reference semantics is hidden. Any problem of an index (missing, stale,
damaged, unreadable) only makes its segments uncovered.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import inf
from typing import Any

import numpy as np
import pyarrow as pa

from tamis.core.expr import Call, Expr, Moving, column_paths, is_supported
from tamis.core.pruning import decide
from tamis.core.pruning.decide import may_fail
from tamis.core.pruning.implied_conjuncts import implied_conjuncts
from tamis.core.types import Schema
from tamis.engine.part_reader import ReadCounters, evidence_of
from tamis.engine.secondary_index.candidate_rows import Bools, Candidates
from tamis.engine.secondary_index.index_coverage import Coverage, compute_coverage
from tamis.engine.secondary_index.index_lookup import Lookup, TooManyHits
from tamis.engine.secondary_index.index_segments import live_entries
from tamis.engine.secondary_index.index_use import IndexUse
from tamis.engine.secondary_index.indexed_paths import UNSURE, with_index_columns
from tamis.engine.secondary_index.lookup_cost import FEW_HITS, LookupBudget, early_end, exceeds_memory
from tamis.engine.secondary_index.shared_lookup import SharedLookup
from tamis.sizes import SIZES
from tamis.storage.commit_log import IndexDefinition, Snapshot
from tamis.storage.object_store import Store

DRIVER_HITS = SIZES.index_driver_hits
"""Above this number of hits, part readers do the lookup, to bound the driver's memory."""

NO_INDEX = "there is no index"


@dataclass(slots=True)
class UsedIndex:
    """An index that was used: segments it answered for, and segments asked about that it does not cover."""

    name: str
    segments: int
    missing: int


@dataclass(slots=True)
class LookupOutcome:
    """The candidates that indexes leave in a plan's parts, the cost, and a sentence for the report."""

    candidates: Candidates
    used: list[UsedIndex] = field(default_factory=list)
    reason: str = NO_INDEX
    counters: ReadCounters = field(default_factory=ReadCounters)
    shared: tuple[SharedLookup, ...] = ()
    """Lookups deferred to the part readers."""
    complete: bool = True
    """Whether all indexes that were looked up could be read."""


def choose_candidates(
    snapshot: Snapshot,
    store: Store,
    conjuncts: Sequence[Expr],
    selected: Schema,
    parts: pa.Table,
    keep: Bools,
    *,
    use: IndexUse,
    now: tuple[int, int],
) -> LookupOutcome:
    """Consult the table's indexes about the parts in ``keep``. Never raises.

    ``parts`` are those of whole segments, with the statistics that the filter needs.
    """
    nothing = Candidates.unknown(len(parts))
    if not snapshot.head.indexes:
        return LookupOutcome(nothing)
    if use.mode == "off":
        return LookupOutcome(nothing, reason="tamis.index.use is off")
    if not conjuncts:
        return LookupOutcome(nothing, reason="there is no filter")
    if not keep.any():
        return LookupOutcome(nothing, reason="statistics leave nothing to read")
    try:
        return _Choice(snapshot, store, conjuncts, selected, parts, keep, use, now).outcome()
    except Exception as error:  # noqa: BLE001  # an index is optional: no problem with it may fail a query
        return LookupOutcome(nothing, reason=f"the indexes could not be used: {error}", complete=False)


class _Choice:
    """The choice for one filter over one plan."""

    def __init__(
        self,
        snapshot: Snapshot,
        store: Store,
        conjuncts: Sequence[Expr],
        selected: Schema,
        parts: pa.Table,
        keep: Bools,
        use: IndexUse,
        now: tuple[int, int],
    ) -> None:
        self._selected = selected
        self._shared: list[SharedLookup] = []
        self._left = np.zeros(len(parts), dtype=np.bool_)
        """The parts covered by a shared lookup."""
        self._snapshot, self._store, self._parts = snapshot, store, parts
        self._conjuncts, self._given = _with_implied(conjuncts, snapshot.head.schema, now)
        self._keep, self._now, self._use, self._given_use = keep, now, use.mode.lower(), use
        named = self._use not in {"auto", "lookup", "plan"}
        self._forced = self._use != "auto"
        self._indexes = [i for i in snapshot.head.indexes if not named or i.name.lower() == self._use]
        self._known = live_entries(snapshot)
        self._covered: dict[str, Coverage] = {}
        self._first: dict[str, Lookup] = {}
        """Lookups created to compare indexes; reused if needed unchanged."""
        self._used: dict[str, UsedIndex] = {}
        self._why: list[str] = []
        self._counters = ReadCounters()

    def outcome(self) -> LookupOutcome:
        found = Candidates.unknown(len(self._parts))
        if not self._indexes:
            return LookupOutcome(found, reason=f"there is no index {self._use!r}")
        for index in self._ranked():
            found = self._intersect(found, index, self._usable(index))
        for at, conjunct in enumerate(self._conjuncts):
            if self._splits(conjunct) and not any(self._fails[: at + 1]):
                found = found & self._unite_legs(conjunct)
        self._why += [said for covered in self._covered.values() if (said := covered.unread_reason)]
        reason = "; ".join(dict.fromkeys(self._why))
        if self._used:
            reason = "; ".join(filter(None, ["used " + ", ".join(self._used), self._describe_shared(), reason]))
        reason = reason or "the filter is about no indexed column"
        whole = not any(covered.unread or covered.problem for covered in self._covered.values())
        return LookupOutcome(found, list(self._used.values()), reason, self._counters, tuple(self._shared), whole)

    def _describe_shared(self) -> str:
        """Describe how shared lookups find rows."""
        return "; ".join(
            f"each task asks {shared.name} about its own parts"
            if shared.columns is None
            else f"rows come from {shared.name} alone: it holds every column"
            for shared in self._shared
        )

    # --- conjuncts ---

    @cached_property
    def _fails(self) -> list[bool]:
        """Whether each conjunct may raise on a row of the relevant parts that reaches it."""
        try:
            masks = may_fail(self._conjuncts, evidence_of(self._parts, self._schemas), now=self._now)
            return [bool((mask & self._keep).any()) for mask in masks]
        except Exception:  # noqa: BLE001  # if unknown, it may raise
            return [True] * len(self._conjuncts)

    @cached_property
    def _schemas(self) -> dict[int, Schema]:
        return {schema.schema_id: schema for schema in self._snapshot.head.schemas}

    def _runs_on(self, index: IndexDefinition, expr: Expr) -> bool:
        """Whether an expression can run on the index's entries."""
        paths = set(column_paths(self._rewrite_for(index, expr))) - {(UNSURE,)}
        fixed = self._now[0] == self._now[1] or not any(isinstance(node, Moving) for node in expr.walk())
        return bool(paths) and paths <= set(index.columns) and is_supported(expr) and fixed

    def _rewrite_for(self, index: IndexDefinition, expr: Expr) -> Expr:
        """Rewrite for the index's entries, where paths into documents are columns."""
        schema = self._snapshot.head.schema
        return expr if schema is None else with_index_columns(expr, index, schema)

    def _usable(self, index: IndexDefinition) -> list[int]:
        """Return the conjuncts by which the index may drop rows: those before any other that can raise.

        A path into documents that raises is unsure in the index, and no error: no later conjunct may drop its row.
        """
        out = []
        for at, conjunct in enumerate(self._conjuncts):
            if runs := self._runs_on(index, conjunct):
                out.append(at)
            unsure = (UNSURE,) in column_paths(self._rewrite_for(index, conjunct))
            if self._fails[at] and (unsure or not runs):
                break
        return out

    def _ranked(self) -> list[IndexDefinition]:
        """Return the indexes relevant to the filter, cheapest first; ties prefer fewer columns."""
        about = [(index, mine) for index in self._indexes if (mine := self._usable(index))]
        costs = [self._cost(index, mine) for index, mine in about] if len(about) > 1 else [0.0] * len(about)
        scored = [(cost, len(index.columns), index.name, index) for cost, (index, _) in zip(costs, about, strict=True)]
        return [entry[-1] for entry in sorted(scored, key=lambda entry: entry[:-1])]

    def _cost(self, index: IndexDefinition, usable: Sequence[int]) -> float:
        """Estimate the bytes that a lookup reads, and leaves to read, per part it covers.

        Each further column of the filter divides the cost, because page statistics say little about the joint
        selectivity of several columns.
        """
        mine = tuple(self._rewrite_for(index, self._conjuncts[at]) for at in usable)
        lookup = self._first[index.index_id] = self._lookup(self._coverage(index), mine, self._keep)
        if not lookup.load_manifest():
            return inf
        answered = int(lookup.covered_parts.sum())
        named = {path for conjunct in mine for path in column_paths(conjunct)} - {(UNSURE,)}
        return self._budget(lookup, self._conjuncts).cost(lookup.estimate) / answered / len(named)

    def _lookup(self, covered: Coverage, mine: tuple[Expr, ...], wanted: Bools) -> Lookup:
        facts = (self._now, self._counters, self._given_use.by_statistics, self._given_use.errors)
        return Lookup(self._snapshot, self._store, covered, mine, wanted, *facts)

    # --- AND ---

    def _intersect(self, found: Candidates, index: IndexDefinition, usable: Sequence[int]) -> Candidates:
        """Intersect ``found`` with this index's candidates, if that is worthwhile.

        Asks about segments not covered yet, and about all if many candidates are left.
        """
        open_parts = self._keep & ~found.known & ~self._left
        if found.hits > FEW_HITS or self._use == index.name.lower():
            open_parts = self._keep & ~found.empty & ~self._left
        more = self._look_up(
            index, tuple(self._conjuncts[at] for at in usable), open_parts, alone=self._given <= set(usable)
        )
        return found if more is None else found & more

    # --- OR ---

    def _splits(self, conjunct: Expr) -> bool:
        """Whether ``conjunct`` is an OR that no single index answers."""
        return (
            isinstance(conjunct, Call)
            and conjunct.function == "or"
            and not any(self._runs_on(index, conjunct) for index in self._indexes)
        )

    def _unite_legs(self, conjunct: Expr) -> Candidates:
        """Return the union of what indexes and statistics say about each operand of an OR."""
        assert isinstance(conjunct, Call)
        legs = {leg: (self._excluded(leg), self._pieces(leg)) for leg in _legs(conjunct, "or")}
        if any(not excluded.any() and not pieces for excluded, pieces in legs.values()):
            self._why.append("an OR has a leg that neither an index nor statistics narrow")
            return Candidates.unknown(len(self._parts))
        united: Candidates | None = None
        for excluded, pieces in legs.values():
            found = self._leg(excluded, pieces)
            if not found.known.any():
                return found
            united = found if united is None else united | found
        assert united is not None
        return united

    def _pieces(self, leg: Expr) -> list[tuple[IndexDefinition, Expr]]:
        """Return the conjuncts of an operand that indexes can answer, each with its index."""
        fitting = (
            (next((i for i in self._by_fit() if self._runs_on(i, piece)), None), piece) for piece in _legs(leg, "and")
        )
        return [(index, piece) for index, piece in fitting if index is not None]

    def _leg(self, empty: Bools, pieces: Sequence[tuple[IndexDefinition, Expr]]) -> Candidates:
        found = Candidates(empty)
        for index, piece in pieces:
            more = self._look_up(index, (piece,), self._keep & ~empty)
            if more is not None:
                found = found & more
        return found

    def _by_fit(self) -> list[IndexDefinition]:
        return sorted(self._indexes, key=lambda index: len(index.columns))

    def _excluded(self, leg: Expr) -> Bools:
        """Return the parts that statistics exclude for this operand alone."""
        none: Bools = decide([leg], evidence_of(self._parts, self._schemas), now=self._now, reasons=False).none
        return none & self._keep

    # --- single lookup ---

    def _look_up(
        self, index: IndexDefinition, mine: tuple[Expr, ...], wanted: Bools, *, alone: bool | None = None
    ) -> Candidates | None:
        """Return the candidates in the covered parts of ``wanted``.

        None if the index cannot help, would not pay, or is looked up by the part readers. ``alone``: whether
        ``mine`` are all conjuncts; None if the candidates are needed now.
        """
        covered = self._coverage(index)
        mine = tuple(self._rewrite_for(index, conjunct) for conjunct in mine)
        lookup = self._first.pop(index.index_id, None)
        if lookup is None or lookup.conjuncts != mine or not np.array_equal(lookup.wanted, wanted):
            lookup = self._lookup(covered, mine, wanted)
        if not lookup.load_manifest():
            if wanted.any() and not covered.unread:
                self._why.append(f"{index.name} covers none of the segments")
            return None
        asked_here, columns, shared, found = alone is None, None, None, None
        if alone and (held := self._covering(index, lookup)) is not None and not any(self._fails):
            columns = held
        budget = self._budget(lookup, mine)
        try:
            limit = None
            if not self._forced:
                if (why := budget.refusal(lookup.estimate, covering=columns is not None)) is not None:
                    self._why.append(f"{index.name} would not pay: {why}")
                    return None
                limit = budget.most_hits(lookup.estimate.bytes)
            large = self._large(lookup, budget, covering=columns is not None)
            if large and alone and not self._forced and (why := early_end(lookup.estimate, self._given_use.limit)):
                self._why.append(f"{index.name} would not pay: {why}")
                return None
            if not asked_here and (columns is not None or large):
                shared = lookup.to_shared_lookup(columns)
            if shared is None:
                found = lookup.run(limit)
            elif not large:
                found, shared = lookup.run_shared(shared, limit)
        except TooManyHits:
            self._why.append(f"{index.name} would not pay: it found more than {limit:,} rows")
            return None
        if not lookup.covered_parts.any():  # nothing of it can be read
            return None
        if shared is not None:
            self._shared.append(shared)
            self._left |= lookup.covered_parts
        self._record_use(index, lookup.covered_parts, wanted)
        return found

    def _record_use(self, index: IndexDefinition, asked: Bools, wanted: Bools) -> None:
        """Record that the index was used for the segments of the parts ``asked``, out of those ``wanted``."""
        segments = self._parts["segment"].to_numpy()
        answered = len(np.unique(segments[asked]))
        left = len(np.unique(segments[wanted])) - answered
        before = self._used.get(index.name)
        self._used[index.name] = UsedIndex(
            index.name, max(answered, before.segments if before else 0), max(left, before.missing if before else 0)
        )

    def _large(self, lookup: Lookup, budget: LookupBudget, *, covering: bool) -> bool:
        """Whether the part readers should do the lookup: for a large result, or if ``plan`` forces it.

        The threshold is lower for a covering lookup, because it reads values and prunes nothing.
        """
        if self._use == "plan" or self._forced:
            return self._use == "plan"
        return lookup.estimate.hits > (budget.most_hits(lookup.estimate.bytes) if covering else DRIVER_HITS)

    def _budget(self, lookup: Lookup, mine: tuple[Expr, ...]) -> LookupBudget:
        """Return the rows, and bytes of the filter's columns, in the parts that the lookup covers."""
        head, asked = self._snapshot.head, lookup.covered_parts
        leading = {path[0] for conjunct in mine for path in column_paths(conjunct)} - {UNSURE}
        share = len(leading) / max(len(head.schema.fields) if head.schema else 0, 1)
        return LookupBudget.from_parts(self._parts.select(("rows", "bytes", "blocks")).filter(pa.array(asked)), share)

    def _covering(self, index: IndexDefinition, lookup: Lookup) -> Schema | None:
        """Return the selected columns if the index has all of them in the requested types, else None."""
        held = lookup.schemas[max(lookup.schemas)].by_id if lookup.schemas else {}
        if not (lookup.has_exact_hits and self._given_use.covering):
            return None
        if exceeds_memory(lookup.estimate, len(self._selected)):
            return None
        tops = {path[0] for path in index.columns if len(path) == 1}
        if not all(f.id in tops and f.id in held and held[f.id].type == f.type for f in self._selected):
            return None
        return self._selected

    def _coverage(self, index: IndexDefinition) -> Coverage:
        if index.index_id not in self._covered:
            found = self._covered[index.index_id] = compute_coverage(self._snapshot, index, self._parts, self._known)
            if found.problem:
                self._why.append(f"{index.name} cannot be read in part: {found.problem}")
        return self._covered[index.index_id]


def _with_implied(
    conjuncts: Sequence[Expr], schema: Schema | None, now: tuple[int, int]
) -> tuple[tuple[Expr, ...], frozenset[int]]:
    """Return the conjuncts, each followed by those it implies, and the positions of the given ones."""
    implied = implied_conjuncts(conjuncts, schema, now)
    out: list[Expr] = []
    given: list[int] = []
    for at, conjunct in enumerate(conjuncts):
        given.append(len(out))
        out += [conjunct, *(one.conjunct for one in implied if one.origin == at)]
    return tuple(out), frozenset(given)


def _legs(expr: Expr, function: str) -> list[Any]:
    """Return the operands of a tree of ANDs or ORs."""
    if isinstance(expr, Call) and expr.function == function:
        return [leg for arg in expr.args for leg in _legs(arg, function)]
    return [expr]
