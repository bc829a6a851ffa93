"""The abstract interpreter: evaluates a filter once over the statistics of all pieces."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from tamis.core.expr.arrow_values import Mask, literal_scalar
from tamis.core.expr.evaluate import query_instant
from tamis.core.expr.functions.datetime.clock_columns import now_range
from tamis.core.expr.json_codec.json_path import Steps, stored_path
from tamis.core.expr.to_sql import short_sql
from tamis.core.expr.tree import Call, Column, Element, Expr, Literal, Literals, Moving, Opaque
from tamis.core.pruning.column_specs import column_spec, element_spec, place_spec, size_spec
from tamis.core.pruning.evidence import DocumentEvidence, Evidence
from tamis.core.pruning.generated_facts import GeneratedFacts
from tamis.core.pruning.logic_rules import transfer_logic
from tamis.core.pruning.value_spec import (
    NO,
    UNKNOWN_TRUTH,
    YES,
    Abstract,
    Spec,
    Truth,
    constant_spec,
    piece_union,
    truth_of,
    unknown_spec,
)
from tamis.core.types import BOOLEAN, DataType


@dataclass
class Interpreter:
    """One filter over one set of pieces.

    ``notes`` records where precision was lost, ``used`` the columns whose statistics were read.
    """

    evidence: Evidence
    now: tuple[int, int] | None = None
    narrowed: dict[tuple[int, ...], Spec] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    used: list[str] = field(default_factory=list)
    facts: GeneratedFacts = field(init=False)
    _columns: dict[tuple[tuple[int, ...], DataType], tuple[Spec, bool]] = field(default_factory=dict)
    _seen: dict[int, Abstract] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.facts = GeneratedFacts.of(self.evidence)

    def __call__(self, expr: Expr) -> Abstract:
        """Return the possible results of ``expr`` in each piece."""
        match expr:
            case Literal(data_type, value):
                return _as(constant_spec(data_type, literal_scalar(value, data_type)))
            case Column():
                return _as(self.column(expr))
            case Call():
                return self._call(expr)
            case Moving():
                return self._moving(expr)
            case Element():
                return _as(self.inside(expr.type, expr.ids, expr.name))
            case Opaque():
                return self._opaque(expr)
            case Literals():
                self.notes.append("list: may be anything")
        return UNKNOWN_TRUTH if expr.type == BOOLEAN else unknown_spec(expr.type)

    def column(self, column: Column) -> Spec:
        """Return the column's spec from its statistics, narrowed by earlier conjuncts."""
        key = column.ids, column.type  # the expression of a dropped column may know another type
        if key not in self._columns:
            self._columns[key] = column_spec(column, self.evidence)
        spec, found = self._columns[key]
        if not found:
            self.notes.append(f"no statistics for {column.name}")
        elif column.name not in self.used:
            self.used.append(column.name)
        if column.ids in self.narrowed:
            narrowed = self.narrowed[column.ids]  # made of the spec, so it admits no more
            return narrowed if narrowed.type == spec.type else spec
        return spec

    def document(self, column: Column, steps: Steps) -> DocumentEvidence | None:
        """Return the evidence of a path in the column's documents, or None."""
        name = column.name + stored_path(steps)[1:]
        try:
            found: DocumentEvidence | None = getattr(self.evidence, "document", lambda *_: None)(column.ids, steps)
        except Exception:  # noqa: BLE001  (statistics that cannot be read are unknown)
            found = None
        if found is None or not found.known.all():
            trimmed = found is not None and bool(found.trimmed.any())
            self.notes.append(f"no statistics for {name}" + (": trimmed" if trimmed else ""))
        if found is not None and found.known.any() and name not in self.used:
            self.used.append(name)
        return found

    def trimmed(self, column: Column) -> Mask:
        """Return where the column's bounds were dropped for lack of space."""
        try:
            ask = getattr(self.evidence, "trimmed", None)
            return NO if ask is None else np.asarray(ask(column.ids))
        except Exception:  # noqa: BLE001  (statistics that cannot be read are unknown)
            return NO

    def inside(self, data_type: DataType, ids: tuple[int, ...], name: str) -> Spec:
        """Return the spec of the contents of an array or a map."""
        spec, found = element_spec(data_type, ids, self.evidence)
        if not found:
            self.notes.append(f"no statistics for the elements of {name}")
        return spec

    def place(self, column: Column, ids: tuple[int, ...], place: str, rest: Spec) -> Spec:
        """Return the spec of the elements at a position or of the values under a key; ``rest`` where unknown."""
        spec, found = place_spec(rest.type, ids, place, rest, self.evidence)
        if found and column.name not in self.used:
            self.used.append(column.name)
        return spec

    def size(self, column: Column) -> Spec:
        """Return the spec of the size of an array or a map."""
        spec, found = size_spec(column, self.evidence)
        if not found:
            self.notes.append(f"no statistics for the size of {column.name}")
        elif column.name not in self.used:
            self.used.append(column.name)
        return spec

    def _opaque(self, expr: Opaque) -> Abstract:
        """Return unknown; an expression that is total fails only if an argument does."""
        out: Abstract = UNKNOWN_TRUTH if expr.type == BOOLEAN else unknown_spec(expr.type)
        if expr.total:
            out = replace(out, fail=piece_union([self(a).fail for a in expr.args]))
        self.notes.append(f"{expr.text}: may be anything")
        return out

    def begin_conjunct(self) -> None:
        """Begin the next conjunct and drop cached results, since columns may be narrower now."""
        self.notes, self.used, self._seen = [], [], {}

    def _call(self, call: Call) -> Abstract:
        if id(call) in self._seen:
            return self._seen[id(call)]
        out = self._seen[id(call)] = self.facts.narrow_call(self, call, transfer_logic(self, call))
        if out.fail.any() and not any(note.endswith("may fail") for note in self.notes):
            self.notes.append(f"{short_sql(call)} may fail")
        return out

    def _moving(self, expr: Moving) -> Spec:
        """Return the range of instants that the query may see."""
        if self.now is None:
            self.notes.append(f"{expr.name}() is not known")
            return replace(unknown_spec(expr.type), null=NO, fail=NO)
        lo, hi = now_range(expr, *self.now) if expr.zone is not None else (query_instant(expr, m) for m in self.now)
        return Spec(expr.type, lo, hi, YES, NO, NO, NO)


def _as(spec: Spec) -> Abstract:
    return truth_of(spec) if spec.type == BOOLEAN else spec


def broadcast_truth(truth: Truth, length: int) -> Truth:
    """Expand the truth to one entry per piece."""
    return Truth(*(np.broadcast_to(m, (length,)) for m in (truth.true, truth.false, truth.null, truth.fail)))
