"""What follows from certain generated columns: in each row, the stored column equals its expression.

Two facts narrow what a piece may hold, where its rows were written with the column:

- where a filter calls the expression itself, the result lies within the column's statistics, and does not fail,
  because it was computed for every row;
- the rows that the conjuncts so far accept have, in the column, a value that the expression may take on them. If the
  column's statistics admit none, no row is accepted.

Neither replaces the filter: rows are always tested by the conjuncts themselves.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tamis.core.expr.arrow_values import Mask
from tamis.core.expr.generated_columns import LAST_NUMBER, GeneratedColumn, canonical_expression
from tamis.core.expr.tree import Call, Column, Expr
from tamis.core.pruning.value_spec import NO, Abstract, Spec, Truth, choose_spec, meet_specs, spec_of, truth_of
from tamis.core.types import BOOLEAN

if TYPE_CHECKING:
    from tamis.core.pruning.evidence import Evidence
    from tamis.core.pruning.interpreter import Interpreter


@dataclass
class GeneratedFacts:
    """The generated columns of some pieces, with the pieces for which each holds."""

    columns: Sequence[tuple[GeneratedColumn, Mask]]
    proved_by: list[str] = field(default_factory=list)
    """Names of the columns that ``narrow_columns`` found to exclude pieces; emptied by the caller."""
    _calls: dict[Expr, tuple[GeneratedColumn, Mask]] = field(init=False)
    _names: frozenset[str] = field(init=False)

    def __post_init__(self) -> None:
        calls = [
            (canonical_expression(g.value), (g, mask))
            for g, mask in self.columns
            if isinstance(g.value, Call) and (g.portable or g.portable_but_numbers)
        ]
        self._calls = dict(calls)
        self._names = frozenset(value.function for value in self._calls if isinstance(value, Call))

    @staticmethod
    def of(evidence: Evidence) -> GeneratedFacts:
        """Return the facts of ``evidence``; none if they cannot be read."""
        ask = getattr(evidence, "generated", None)
        try:
            return GeneratedFacts([] if ask is None else [(g, holds) for g, holds in ask() if g.certain])
        except Exception:  # noqa: BLE001  (what cannot be bound is not known)
            return GeneratedFacts([])

    def narrow_call(self, run: Interpreter, call: Call, out: Abstract) -> Abstract:
        """Return ``out``, the possible results of ``call``, narrowed where a generated column stores these results."""
        if call.function not in self._names or (found := self._calls.get(canonical_expression(call))) is None:
            return out
        generated, holds = found
        notes = list(run.notes)
        known = run.column(generated.column)
        run.notes = notes  # statistics that the column lacks are not what the filter asks for
        if not generated.portable:
            holds = holds & _without_numbers(spec_of(known))
        if isinstance(out, Truth):
            return _both(out, truth_of(known), holds)
        return choose_spec(holds, replace(meet_specs(out, known), fail=NO), out)

    def narrow_columns(self, run: Interpreter, conjunct: Expr) -> Mask:
        """Narrow the columns whose expressions read a column of ``conjunct``.

        Returns the pieces in which a column admits none of the values that its expression may have there.
        """
        named = {node.ids for node in conjunct.walk() if isinstance(node, Column)}
        out = NO
        for generated, holds in self.columns:
            if any(source.ids in named for source in generated.sources):
                out = out | self._narrowed(run, generated, holds)
        return out

    def _narrowed(self, run: Interpreter, generated: GeneratedColumn, holds: Mask) -> Mask:
        before = run.column(generated.column)
        possible = spec_of(run(generated.value))
        both = meet_specs(before, possible)
        if generated.column.type != BOOLEAN:
            run.narrowed[generated.column.ids] = choose_spec(holds, replace(both, fail=before.fail), before)
        empty = holds & ~(both.value | both.null | both.nan)
        if empty.any():
            self.proved_by.append(generated.column.name)
        return np.asarray(empty)


def _without_numbers(known: Spec) -> Mask:
    """Return the pieces whose texts are no numbers, by their lower bound."""
    above = pc.fill_null(pc.greater(known.lo, pa.scalar(LAST_NUMBER, pa.string())), False)
    return np.asarray(above.as_py() if isinstance(above, pa.Scalar) else above.to_numpy(zero_copy_only=False), np.bool_)


def _both(a: Truth, b: Truth, holds: Mask) -> Truth:
    true, false, null = a.true & (b.true | ~holds), a.false & (b.false | ~holds), a.null & (b.null | ~holds)
    return Truth(true, false, null, a.fail & ~holds)
