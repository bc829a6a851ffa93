"""Decides, for all pieces of data at once, whether a filter is true for none, all or some of their rows.

Invariant: a piece is skipped only if it is *proved* that the filter is true for none of its rows and can
raise an error for none of them. Top-level conjuncts are evaluated in order, and false or NULL stops the later
ones. A piece is therefore *none* if some conjunct cannot be true and neither it nor any conjunct before it
can fail. It is *all* if every conjunct is always true and none can fail.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from tamis.core.expr.arrow_values import Mask
from tamis.core.expr.to_sql import short_sql
from tamis.core.expr.tree import Column, Expr
from tamis.core.pruning.clustered_order import Ends, excluded_by_order, key_columns
from tamis.core.pruning.evidence import Evidence
from tamis.core.pruning.implied_facts import narrow_specs
from tamis.core.pruning.interpreter import Interpreter, broadcast_truth
from tamis.core.pruning.logic_rules import as_truth
from tamis.core.pruning.pruning_reasons import allowed_reason, kept_reason
from tamis.core.pruning.value_cases import divided_cases
from tamis.core.pruning.value_spec import NO, UNKNOWN_TRUTH, Truth

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Decision:
    """What is proved about N pieces."""

    none: Mask
    """No row of the piece passes and none fails: the piece can be skipped."""
    all: Mask
    """Every row passes and none fails: the filter need not be evaluated."""
    skipped_by: np.ndarray[Any, np.dtype[np.int32]]
    """Index of the first conjunct that proved ``none``, or -1."""
    why: list[str | None]
    """For each conjunct, why it did not skip the pieces still left; None if there are none."""
    statistics: list[list[str]]
    """For each conjunct, the columns whose statistics it used."""
    failed: bool = False
    """Whether statistics could not be read, so that the same question may have a better answer later."""


def decide(
    conjuncts: Sequence[Expr],
    evidence: Evidence,
    *,
    now: tuple[int, int] | None = None,
    strict: bool = False,
    reasons: bool = True,
) -> Decision:
    """Decide ``none``, ``all`` or neither for every piece that ``evidence`` describes.

    ``now`` is the inclusive range of instants (microseconds) in which the query may run; None means any.
    Evidence never causes an exception. With ``strict`` (for tests), errors in the rules propagate; otherwise
    they count as unknown. Without ``reasons``, ``why`` is not computed.
    """
    whole = _decided(conjuncts, evidence, now, strict, reasons)
    return _by_cases(whole, conjuncts, evidence, now, strict)


def _by_cases(
    whole: Decision, conjuncts: Sequence[Expr], evidence: Evidence, now: tuple[int, int] | None, strict: bool
) -> Decision:
    """Decide pieces that are neither none nor all once more, by their cases."""
    none, all_, skipped_by = whole.none, whole.all, whole.skipped_by
    for some in divided_cases(conjuncts, evidence, ~none & ~all_):
        found = _decided(conjuncts, some, now, strict, reasons=False)
        starts = np.flatnonzero(np.diff(some.owner, prepend=-1))
        at = some.owner[starts]
        nowhere = np.logical_and.reduceat(found.none, starts)
        none[at] |= nowhere
        all_[at] |= np.logical_and.reduceat(found.all, starts)
        skipped_by[at[nowhere]] = np.maximum.reduceat(found.skipped_by, starts)[
            nowhere
        ]  # the piece is skipped when its last case is: credit that conjunct
    why = list[str | None]([None] * len(whole.why)) if none.all() else whole.why
    return Decision(none, all_, skipped_by, why, whole.statistics)


def _decided(
    conjuncts: Sequence[Expr], evidence: Evidence, now: tuple[int, int] | None, strict: bool, reasons: bool
) -> Decision:
    """Decide each piece as a whole."""
    count = len(evidence)
    run = Interpreter(evidence, now)
    none, all_, blocked = np.zeros(count, bool), np.ones(count, bool), np.zeros(count, bool)
    skipped_by = np.full(count, -1, np.int32)
    keys = key_columns(conjuncts, evidence) if len(conjuncts) > 1 else {}
    why: list[str | None] = []
    statistics: list[list[str]] = []
    for index, conjunct in enumerate(conjuncts):
        run.begin_conjunct()
        truth = broadcast_truth(_interpreted(run, conjunct, strict), count)
        blocked = blocked | truth.fail
        proved = ~truth.true & ~blocked
        skipped_by[proved & ~none] = index
        none = none | proved
        all_ = all_ & ~(truth.false | truth.null | truth.fail)
        why.append(_why(run, conjunct, truth, ~none, strict) if reasons else None)
        statistics.append(run.used)
        if keys or run.facts.columns or index + 1 < len(conjuncts):
            _narrowed(run, conjunct, strict)
        if run.facts.columns:
            proved = _contradicted(run, conjunct, strict) & ~blocked
            statistics[-1] = list(dict.fromkeys([*run.used, *run.facts.proved_by]))
            skipped_by[proved & ~none] = index
            none = none | proved
            why[-1] = None if none.all() else why[-1]
        if keys and index:  # for the first conjunct alone, bounds prune as much
            proved = _excluded_by_order(run, keys, strict) & ~blocked
            if (proved & ~none).any():
                statistics[-1].append(f"order by {', '.join(column.name for column in keys)}")
            skipped_by[proved & ~none] = index
            none = none | proved
            why[-1] = None if none.all() else why[-1]
    return Decision(none, all_, skipped_by, why, statistics)


def may_fail(conjuncts: Sequence[Expr], evidence: Evidence, *, now: tuple[int, int] | None = None) -> list[Mask]:
    """Return, for each conjunct, the pieces that may hold a row on which it fails.

    The row must reach it, which means that all conjuncts before it are true of the row.
    """
    run = Interpreter(evidence, now)
    masks: list[Mask] = []
    for conjunct in conjuncts:
        run.begin_conjunct()
        masks.append(broadcast_truth(_interpreted(run, conjunct, strict=False), len(evidence)).fail)
        _narrowed(run, conjunct, strict=False)
    return masks


def _interpreted(run: Interpreter, conjunct: Expr, strict: bool) -> Truth:
    """Interpret a conjunct; a rule that raises yields unknown.

    Planning must not fail for lack of a proof.
    """
    try:
        return as_truth(run(conjunct))
    except Exception as error:
        if strict:
            raise
        run.notes.append(f"{short_sql(conjunct)}: its rule failed ({type(error).__name__})")
        return UNKNOWN_TRUTH


def _guarded_rule(run: Interpreter, rule: Callable[[], Result], failed: Result, strict: bool) -> Result:
    """Return ``rule()``, or ``failed`` if it raises (not if ``strict``). The notes of the filter stay as they were."""
    notes, used = run.notes, run.used
    run.notes, run.used = list(notes), list(used)
    try:
        return rule()
    except Exception:
        if strict:
            raise
        return failed
    finally:
        run.notes, run.used = notes, used


def _narrowed(run: Interpreter, conjunct: Expr, strict: bool) -> None:
    _guarded_rule(run, lambda: narrow_specs(run, conjunct), None, strict)


def _contradicted(run: Interpreter, conjunct: Expr, strict: bool) -> Mask:
    """Return the pieces in which a generated column excludes every row that the conjuncts so far accept."""
    run.facts.proved_by = []

    def proof() -> Mask:
        run.begin_conjunct()  # columns are narrower now
        return run.facts.narrow_columns(run, conjunct)

    return _guarded_rule(run, proof, NO, strict)


def _excluded_by_order(run: Interpreter, keys: dict[Column, Ends], strict: bool) -> Mask:
    """Return the pieces that the clustering order of the key columns excludes; none if the rule raises."""
    return _guarded_rule(run, lambda: excluded_by_order(run, keys), NO, strict)


def _why(run: Interpreter, conjunct: Expr, truth: Truth, left: Mask, strict: bool) -> str | None:
    try:
        return kept_reason(run, conjunct, truth, left)
    except Exception:
        if strict:
            raise
        return allowed_reason(conjunct)
