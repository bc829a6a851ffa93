"""Which indexes a filter uses, and what they leave.

Laws: an index drops a row only where a conjunct about its columns is not true of it, and where no conjunct before that one can fail: an error of the
reference is never hidden. Whatever is wrong with an index (missing, stale, damaged, unreadable) makes its segments unknown to it, and nothing else.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import exp
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tamis.domain import decide
from tamis.domain.decide import may_fail
from tamis.errors import TamisError
from tamis.expr import Call, Expr, Moving, columns, supported
from tamis.index.candidates import Bools, Candidates
from tamis.index.cover import Coverage, coverage
from tamis.index.lookup import Lookup, TooMany
from tamis.index.record import entries
from tamis.read import ReadCounters
from tamis.state import IndexDefinition, Snapshot, Store
from tamis.stats import TableEvidence

CHEAP_BYTES = 512 * 2**10
"""What a look-up may always read: about what a request costs."""
MOST_SHARE = 0.2
"""A filter that keeps more of the rows has hits in every block."""
LEAST_LIMIT = 1_024
HITS_PER_BLOCK = 4
"""Hits for each block of the base from which nearly every block has one, if they lie scattered."""


@dataclass(slots=True)
class Used:
    """An index that answered: for how many segments, and how many of those that were asked about it could not."""

    name: str
    segments: int
    missing: int


@dataclass(slots=True)
class Outcome:
    """What the indexes left of a plan's parts, what that cost, and a sentence."""

    candidates: Candidates
    used: list[Used] = field(default_factory=list)
    reason: str = "there is no index"
    counters: ReadCounters = field(default_factory=ReadCounters)


def choose(
    snapshot: Snapshot,
    store: Store,
    conjuncts: Sequence[Expr],
    parts: pa.Table,
    keep: Bools,
    *,
    use: str = "auto",
    now: tuple[int, int],
) -> Outcome:
    """What the table's indexes say of the parts in ``keep`` (``parts``: whole segments, with the statistics that the filter names). Never raises."""
    nothing = Candidates.nothing(len(parts))
    if not snapshot.head.indexes:
        return Outcome(nothing)
    if use == "off":
        return Outcome(nothing, reason="tamis.index.use is off")
    if not conjuncts:
        return Outcome(nothing, reason="there is no filter")
    if not keep.any():
        return Outcome(nothing, reason="statistics leave nothing to read")
    try:
        return _Choice(snapshot, store, conjuncts, parts, keep, use, now).outcome()
    except Exception as error:  # noqa: BLE001  # an index is advice: no problem with it may fail a query
        return Outcome(nothing, reason=f"the indexes could not be used: {error}")


class _Choice:
    """One filter over one plan."""

    def __init__(
        self,
        snapshot: Snapshot,
        store: Store,
        conjuncts: Sequence[Expr],
        parts: pa.Table,
        keep: Bools,
        use: str,
        now: tuple[int, int],
    ) -> None:
        self._snapshot, self._store, self._conjuncts, self._parts = snapshot, store, tuple(conjuncts), parts
        self._keep, self._now, self._use = keep, now, use.lower()
        named = self._use not in {"auto", "lookup", "plan"}
        self._forced = self._use != "auto"
        self._indexes = [i for i in snapshot.head.indexes if not named or i.name.lower() == self._use]
        self._known = entries(snapshot)
        self._covered: dict[str, Coverage] = {}
        self._used: dict[str, Used] = {}
        self._why: list[str] = []
        self._counters = ReadCounters()

    def outcome(self) -> Outcome:
        found = Candidates.nothing(len(self._parts))
        if not self._indexes:
            return Outcome(found, reason=f"there is no index {self._use!r}")
        fails = self._failing()
        for index in self._ranked(fails):
            mine = tuple(self._conjuncts[at] for at in self._usable(index, fails))
            found = self._and(found, index, mine)
        for at, conjunct in enumerate(self._conjuncts):
            if any(fails[: at + 1]) or not self._splits(conjunct):
                continue
            found = found & self._any_leg(conjunct)
        reason = "; ".join(dict.fromkeys(self._why))
        if self._used:
            reason = "; ".join(filter(None, ["used " + ", ".join(self._used), reason]))
        return Outcome(found, list(self._used.values()), reason or "the filter is about no indexed column", self._counters)

    # --- which conjuncts ---

    def _failing(self) -> list[bool]:
        """For each conjunct: whether it may fail on a row of the parts in question that reaches it."""
        try:
            schemas = {schema.schema_id: schema for schema in self._snapshot.head.schemas}
            masks = may_fail(self._conjuncts, TableEvidence(self._parts, schemas), now=self._now)
            return [bool((mask & self._keep).any()) for mask in masks]
        except Exception:  # noqa: BLE001  # what is not known may fail
            return [True] * len(self._conjuncts)

    def _on(self, index: IndexDefinition, expr: Expr) -> bool:
        """Whether an expression can be run on the index's entries."""
        paths = columns(expr)
        fixed = self._now[0] == self._now[1] or not any(isinstance(node, Moving) for node in expr.walk())
        return bool(paths) and set(paths) <= set(index.columns) and supported(expr) and fixed

    def _usable(self, index: IndexDefinition, fails: Sequence[bool]) -> list[int]:
        """The conjuncts that the index may drop rows by, in order: up to the first of the others that can fail."""
        out = []
        for at, conjunct in enumerate(self._conjuncts):
            if self._on(index, conjunct):
                out.append(at)
            elif fails[at]:
                break
        return out

    def _ranked(self, fails: Sequence[bool]) -> list[IndexDefinition]:
        """Indexes that the filter is about, the best fit first: the most conjuncts, then the fewest columns, then the leading column."""
        about = [(index, self._usable(index, fails)) for index in self._indexes]
        scored = []
        for index, mine in about:
            if not mine:
                continue
            named = {path for at in mine for path in columns(self._conjuncts[at])}
            scored.append((-len(named), len(index.columns), index.columns[0] not in named, index.name, index))
        return [entry[-1] for entry in sorted(scored, key=lambda entry: entry[:-1])]

    # --- AND ---

    def _and(self, found: Candidates, index: IndexDefinition, mine: tuple[Expr, ...]) -> Candidates:
        """``found`` and what this index says, where that is worth asking: of segments not answered for yet, and of all where much is left."""
        open_parts = self._keep & ~found.known
        if found.hits > LEAST_LIMIT or self._use == index.name.lower():
            open_parts = self._keep & ~found.empty
        more = self._ask(index, mine, open_parts)
        return found if more is None else found & more

    # --- OR ---

    def _splits(self, conjunct: Expr) -> bool:
        """An OR that no single index answers."""
        return isinstance(conjunct, Call) and conjunct.function == "or" and not any(self._on(index, conjunct) for index in self._indexes)

    def _any_leg(self, conjunct: Expr) -> Candidates:
        """What indexes and statistics say of each leg, united."""
        assert isinstance(conjunct, Call)
        legs = {leg: (self._excluded(leg), self._pieces(leg)) for leg in _legs(conjunct, "or")}
        if any(not excluded.any() and not pieces for excluded, pieces in legs.values()):
            self._why.append("an OR has a leg that neither an index nor statistics narrow")
            return Candidates.nothing(len(self._parts))
        united: Candidates | None = None
        for excluded, pieces in legs.values():
            found = self._leg(excluded, pieces)
            if not found.known.any():
                return found
            united = found if united is None else united | found
        assert united is not None
        return united

    def _pieces(self, leg: Expr) -> list[tuple[IndexDefinition, Expr]]:
        """What of a leg indexes can answer."""
        fitting = ((next((i for i in self._by_fit() if self._on(i, piece)), None), piece) for piece in _legs(leg, "and"))
        return [(index, piece) for index, piece in fitting if index is not None]

    def _leg(self, empty: Bools, pieces: Sequence[tuple[IndexDefinition, Expr]]) -> Candidates:
        found = Candidates(empty)
        for index, piece in pieces:
            more = self._ask(index, (piece,), self._keep & ~empty)
            if more is not None:
                found = found & more
        return found

    def _by_fit(self) -> list[IndexDefinition]:
        return sorted(self._indexes, key=lambda index: len(index.columns))

    def _excluded(self, leg: Expr) -> Bools:
        """The parts that statistics exclude for this leg alone."""
        schemas = {schema.schema_id: schema for schema in self._snapshot.head.schemas}
        none: Bools = decide([leg], TableEvidence(self._parts, schemas), now=self._now).none
        return none & self._keep

    # --- one look-up ---

    def _ask(self, index: IndexDefinition, mine: tuple[Expr, ...], wanted: Bools) -> Candidates | None:
        """The candidates of the covered parts in ``wanted``; None where the index cannot help, or would not pay."""
        covered = self._coverage(index)
        lookup = Lookup(self._snapshot, self._store, covered, mine, wanted, self._now, self._counters)
        if not lookup.asked.any():
            if wanted.any():
                self._why.append(f"{index.name} covers none of the segments")
            return None
        try:
            limit = None
            if not self._forced:
                if (why := self._unpaying(lookup, mine)) is not None:
                    self._why.append(f"{index.name} would not pay: {why}")
                    return None
                limit = self._limit(lookup.asked)
            found = lookup.run(limit)
        except TooMany:
            self._why.append(f"{index.name} would not pay: it found more than {limit:,} rows")
            return None
        except TamisError as error:
            self._why.append(f"{index.name} cannot be read: {error.message}")
            return None
        segments = self._parts["segment"].to_numpy()
        answered = len(np.unique(segments[lookup.asked]))
        left = len(np.unique(segments[wanted])) - answered
        before = self._used.get(index.name)
        self._used[index.name] = Used(
            index.name, max(answered, before.segments if before else 0), max(left, before.missing if before else 0)
        )
        return found

    def _coverage(self, index: IndexDefinition) -> Coverage:
        if index.index_id not in self._covered:
            found = self._covered[index.index_id] = coverage(self._snapshot, index, self._parts, self._known)
            if found.problem:
                self._why.append(f"{index.name} cannot be read in part: {found.problem}")
        return self._covered[index.index_id]

    def _limit(self, asked: Bools) -> int:
        return max(LEAST_LIMIT, HITS_PER_BLOCK * self._blocks(asked))

    def _blocks(self, asked: Bools) -> int:
        return int(pc.sum(pc.list_value_length(self._parts["blocks"].filter(pa.array(asked)))).as_py() or 0)

    def _unpaying(self, lookup: Lookup, mine: tuple[Expr, ...]) -> str | None:
        """Why the look-up would cost more than it saves, as far as can be told before; None where it should pay."""
        estimate = lookup.estimate()
        rows, size = self._sum("rows", lookup.asked), self._sum("bytes", lookup.asked)
        if estimate.hits > max(MOST_SHARE * rows, LEAST_LIMIT):
            return f"the filter keeps about {min(100 * estimate.hits / max(rows, 1), 100):.0f} % of the rows"
        if estimate.hits > self._limit(lookup.asked):
            return f"about {estimate.hits:,} rows lie in nearly every block"
        if estimate.bytes <= CHEAP_BYTES:
            return None
        fields = self._snapshot.head.schema.fields if self._snapshot.head.schema else ()
        leading = {path[0] for conjunct in mine for path in columns(conjunct)}
        leaders = size * len(leading) / max(len(fields), 1)
        saved = leaders * exp(-estimate.hits / max(self._blocks(lookup.asked), 1))
        return None if estimate.bytes < saved else f"it would read {estimate.bytes:,} bytes to save about {int(saved):,}"

    def _sum(self, name: str, asked: Bools) -> int:
        return int(pc.sum(self._parts[name].filter(pa.array(asked))).as_py() or 0)


def _legs(expr: Expr, function: str) -> list[Any]:
    """The operands of a tree of ANDs or ORs."""
    if isinstance(expr, Call) and expr.function == function:
        return [leg for arg in expr.args for leg in _legs(arg, function)]
    return [expr]
