"""Rules of functions that step into JSON documents: each kind of value is treated separately, then joined.

A path may hold several kinds of values in one piece. Each kind is cast by the rule of its own type. A missing
value and JSON's null are NULL; objects and lists become text or no value at all.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tamis.core.expr import registry
from tamis.core.expr.arrow_values import Datum, Mask
from tamis.core.expr.calls import call
from tamis.core.expr.functions.json.json_text import known_steps
from tamis.core.expr.json_codec.json_path import Steps
from tamis.core.expr.tree import Call, Column, Expr, Mode, Opaque
from tamis.core.pruning.cast_rules import cast_rule
from tamis.core.pruning.evidence import DocumentEvidence
from tamis.core.pruning.value_spec import (
    NO,
    UNKNOWN_TRUTH,
    YES,
    Abstract,
    Spec,
    Truth,
    at_most,
    join,
    no_bound,
    reached,
    spec_of,
    truth_of,
    unknown,
    where,
)
from tamis.core.types import BOOLEAN, DOUBLE, FLOAT, INTEGRAL, LONG, STRING, TIMESTAMP, VARIANT, DataType, Decimal

_FUNCTIONS = frozenset({"get_json_object", "from_json", "variant_get", "is_variant_null", "parse_json"})


def document_columns(conjuncts: Sequence[Expr]) -> frozenset[int]:
    """Return the ids of the columns whose documents the filter steps into."""
    calls = (node for c in conjuncts for node in c.walk() if isinstance(node, Call) and node.function in _FUNCTIONS)
    return frozenset(arg.ids[-1] for call in calls for arg in call.args if isinstance(arg, Column))


def document_places(conjuncts: Sequence[Expr]) -> list[tuple[int, Steps]]:
    """Return the column ids and document paths that the filter uses."""
    calls = (node for c in conjuncts for node in c.walk() if isinstance(node, Call) and node.function in _FUNCTIONS)
    return [(place[0].ids[-1], place[1]) for call in calls if (place := _place(call)) is not None]


def transfer(run: Any, call: Call) -> Abstract:
    """Return the possible results of ``call``."""
    found = _found(run, call)
    if found is None:
        return _anything(run, call)
    evidence, fails = found
    known = evidence.known
    if _may_fail(call):
        fails = fails | ~known  # an unknown value may have no cast
    out = _of(call, evidence)
    if call.function == "is_variant_null" and isinstance(out, Truth):  # never NULL itself
        return Truth(out.true | ~known, out.false | ~known, NO, out.fail | fails)
    return _with_unknown(out, known, fails)


def _may_fail(call: Call) -> bool:
    """Return whether ``call`` itself can fail, whatever its argument."""
    return registry.function(call.function).partial(call) is not registry.Partial.NEVER


def _found(run: Any, call: Call) -> tuple[DocumentEvidence, Mask] | None:
    """Return the evidence of the path that ``call`` reads and where reaching it may fail, or None."""
    place = _place(call)
    if place is None:
        return None
    column, steps, parsed = place
    evidence = run.document(column, steps)
    if evidence is None:
        return None
    if parsed is not None or call.function in {"get_json_object", "from_json"}:
        evidence = replace(evidence, known=evidence.known & ~evidence.other)  # text holds no such values
    if parsed is None:
        return evidence, NO
    strange = ~evidence.known | evidence.invalid
    return evidence, NO if parsed is Mode.TRY else strange  # parse_json fails in every other mode


def _place(call: Expr) -> tuple[Column, Steps, Mode | None] | None:
    """Return the column, the steps and, if text is parsed first, the parser's mode."""
    if isinstance(call, Column):
        return call, (), None
    if not isinstance(call, Call) or call.function not in _FUNCTIONS:
        return None
    if call.function in {"is_variant_null", "parse_json"}:
        inner = _place(call.args[0])
        return inner if inner is None or call.function != "parse_json" else (inner[0], inner[1], call.mode)
    inner = _place(call.args[0])
    return None if inner is None else (inner[0], (*inner[1], *known_steps(call)), inner[2])


def _anything(run: Any, call: Call) -> Abstract:
    """Return what the function can give at all, for a path without evidence."""
    below = [run(arg) for arg in call.args[:1]]
    fails = below[0].fail if below else YES
    if call.function == "is_variant_null":
        return replace(UNKNOWN_TRUTH, null=NO, fail=fails)
    spec = replace(unknown(call.type), fail=YES if _may_fail(call) else fails)
    return truth_of(spec) if call.type == BOOLEAN else spec


def _with_unknown(out: Abstract, known: Mask, fails: Mask) -> Abstract:
    """Return ``out`` where the path is known, and unknown elsewhere."""
    spec = spec_of(out)
    nothing = no_bound(spec.type)
    floating = spec.type in (FLOAT, DOUBLE)
    bounded = spec.type != VARIANT
    spec = Spec(
        spec.type,
        where(known, spec.lo, nothing) if bounded else nothing,
        where(known, spec.hi, nothing) if bounded else nothing,
        spec.value | ~known,
        spec.null | ~known,
        spec.fail | fails,
        spec.nan | (~known if floating else NO),
    )
    return truth_of(spec) if spec.type == BOOLEAN else spec


def _of(call: Call, e: DocumentEvidence) -> Abstract:
    steps = known_steps(call) if len(call.args) > 1 else ()
    match call.function:
        case "is_variant_null":
            something = e.missing | e.false | e.true | e.long | e.real | e.string | e.list | e.map | e.other | e.invalid
            return Truth(e.null, something, NO, NO)
        case "parse_json":
            return _documents_of(e)
        case "get_json_object":
            return _text(e, steps)
        case "from_json":
            return _from_json(e, call.type)
    if call.type == VARIANT:
        return _documents_of(e)
    return _variant(e, call)


def _documents_of(e: DocumentEvidence) -> Spec:
    """A VARIANT spec, in which JSON's null is a value."""
    return replace(_value(VARIANT, _any(e) | e.null), null=e.missing | e.invalid)


def _any(e: DocumentEvidence) -> Mask:
    return e.false | e.true | e.long | e.real | e.string | e.list | e.map | e.other


def _value(data_type: DataType, mask: Mask, lo: Datum | None = None, hi: Datum | None = None) -> Spec:
    """A spec of values within bounds, where the mask holds."""
    nothing = no_bound(data_type)
    return Spec(data_type, nothing if lo is None else lo, nothing if hi is None else hi, mask, NO, NO, NO)


def _joined(data_type: DataType, specs: Sequence[Spec], null: Mask) -> Abstract:
    out = Spec(data_type, no_bound(data_type), no_bound(data_type), NO, null, NO, NO)
    for spec in specs:
        out = join(out, spec)
    return truth_of(out) if data_type == BOOLEAN else out


def _cast(spec: Spec, mask: Mask, target: DataType, mode: Mode, zone: str | None) -> Spec:
    """Cast one kind of value by the rule of the cast, where the mask holds."""
    if spec.type == target:
        return spec
    tree = call("cast", Column(spec.type, (0,), "value"), mode=mode, zone=zone, type=target)
    if isinstance(tree, Opaque) or not isinstance(tree, Call):
        out = replace(unknown(target), fail=NO if mode is Mode.TRY else YES)
    else:
        out = spec_of(cast_rule(tree, [spec]))
    return _spec(reached(out, mask))


def _spec(abstract: Abstract) -> Spec:
    return spec_of(abstract)


def _no_value(mask: Mask, target: DataType, mode: Mode) -> Spec:
    """The spec of a cast that has no result: NULL, or a failure in ANSI mode."""
    nothing = no_bound(target)
    trying = mode is not Mode.ANSI
    return Spec(target, nothing, nothing, NO, mask if trying else NO, NO if trying else mask, NO)


def _booleans(e: DocumentEvidence) -> Spec:
    return spec_of(Truth(e.true, e.false, NO, NO))


def _longs(e: DocumentEvidence) -> Spec:
    return _value(LONG, e.long, e.long_lo, e.long_hi)


def _reals(e: DocumentEvidence, exactly: bool) -> Spec:
    """All other numbers as doubles.

    With ``exactly``, the bounds contain the exact number, not only the double nearest to it.
    """
    lo, hi = e.real_lo, e.real_hi
    if exactly:
        lo, hi = _beyond(lo, e.real_exact, -np.inf), _beyond(hi, e.real_exact, np.inf)
    return _value(DOUBLE, e.real, lo, hi)


def _beyond(bound: pa.Array, exact: Mask, towards: float) -> pa.Array:
    """Move a bound to the next double outward where it is not exact."""
    values = np.asarray(pc.fill_null(bound, 0.0))
    moved = pa.array(np.nextafter(values, towards), mask=np.asarray(bound.is_null()))
    return where(exact, bound, moved)


def _number_text(mask: Mask) -> Spec:
    return _value(STRING, mask, pa.scalar("-"), pa.scalar(":"))


def _nested_text(e: DocumentEvidence) -> Iterator[Spec]:
    yield _value(STRING, e.list, pa.scalar("["), pa.scalar("\\"))
    yield _value(STRING, e.map, pa.scalar("{"), pa.scalar("|"))


def _words(e: DocumentEvidence) -> Iterator[Spec]:
    yield _value(STRING, e.false, pa.scalar("false"), pa.scalar("false"))
    yield _value(STRING, e.true, pa.scalar("true"), pa.scalar("true"))


def _variant(e: DocumentEvidence, call: Call) -> Abstract:
    target, mode, zone = call.type, call.mode, call.zone
    strings = _cast(_value(STRING, e.string, e.string_lo, e.string_hi), e.string, target, mode, zone)
    other = reached(replace(unknown(target), fail=NO if mode is Mode.TRY else YES), e.other)
    null = e.missing | e.null | e.invalid
    if target == STRING:
        return _joined(
            target, [strings, _number_text(e.long | e.real), *_words(e), *_nested_text(e), spec_of(other)], null
        )
    specs = [
        strings,
        _instants(_longs(e), call) if target == TIMESTAMP else _cast(_longs(e), e.long, target, mode, zone),
        _instants(_reals(e, True), call)
        if target == TIMESTAMP
        else _cast(_reals(e, target not in (FLOAT, DOUBLE)), e.real, target, mode, zone),
        _cast(_booleans(e), e.true | e.false, target, mode, zone),
        _no_value(e.list | e.map, target, mode),
        spec_of(other),
    ]
    return _joined(target, specs, null)


_FAR = 9 * 10**12
"""Seconds from the epoch that are certainly a valid instant."""


def _instants(spec: Spec, call: Call) -> Spec:
    """Cast seconds to instants, strictly: seconds too far from the epoch have no instant."""
    mask, target = spec.value, call.type
    out, limit = (
        _cast(spec, mask, target, call.mode, call.zone),
        pa.scalar(_FAR if spec.type == LONG else float(_FAR), spec.lo.type),
    )
    safe = at_most(pc.negate(limit), spec.lo) & at_most(spec.hi, limit)
    far, trying = mask & ~safe, call.mode is Mode.TRY
    lo, hi = (where(safe, bound, no_bound(target)) for bound in (out.lo, out.hi))
    return Spec(target, lo, hi, out.value, out.null | (far if trying else NO), out.fail | (NO if trying else far), NO)


def _text(e: DocumentEvidence, steps: Steps) -> Abstract:
    """Bound ``get_json_object``.

    JSON's null is NULL under a key, but text as an element or as the whole document.
    """
    strings = _value(STRING, e.string, e.string_lo, e.string_hi)
    specs = [strings, _number_text(e.long | e.real), *_words(e), *_nested_text(e)]
    if not steps or isinstance(steps[-1], int):
        specs.append(_value(STRING, e.null, pa.scalar("null"), pa.scalar("null")))
    out = spec_of(_joined(STRING, specs, e.missing | e.null | e.invalid))
    return (
        out
        if steps
        else replace(
            out,
            lo=where(e.invalid, no_bound(STRING), out.lo),
            hi=where(e.invalid, no_bound(STRING), out.hi),
            value=out.value | e.invalid,
        )
    )


def cast_of_text(run: Any, call: Call, text: Call) -> Abstract:
    """Bound ``cast(get_json_object(…) AS type)``, where numbers are parsed from their own text."""
    found = _found(run, text)
    target, mode = call.type, call.mode
    if found is None or not (target in (*INTEGRAL, FLOAT, DOUBLE) or isinstance(target, Decimal)):
        given = spec_of(transfer(run, text))
        return cast_rule(replace(call, args=(Column(STRING, (0,), "value"),)), [given])
    e, _ = found
    trying = Mode.TRY if mode is not Mode.ANSI else Mode.ANSI  # without ANSI, text that cannot be cast is NULL
    strings = _cast(_value(STRING, e.string, e.string_lo, e.string_hi), e.string, target, mode, call.zone)
    longs = _cast(_longs(e), e.long, target, trying, None)
    if target not in INTEGRAL:
        reals = _cast(
            _reals(e, isinstance(target, Decimal)), e.real, target, trying, None
        )  # long integers keep their digits
    elif mode is Mode.LEGACY:
        reals = spec_of(reached(replace(unknown(target), fail=NO), e.real))
    else:
        reals = _no_value(e.real, target, mode)  # its text has a decimal point
    rest = e.false | e.true | e.list | e.map | e.null
    null = e.missing | e.null | e.invalid
    out = _joined(target, [strings, longs, reals, _no_value(rest, target, trying)], null)
    may_fail = ~e.known if mode is Mode.ANSI else NO
    return _with_unknown(out, e.known, may_fail)


def _from_json(e: DocumentEvidence, target: DataType) -> Abstract:
    """Bound ``from_json``: values of another kind than the field's type are NULL."""
    null = e.missing | e.null | e.invalid
    if target == STRING:
        return spec_of(
            _joined(
                STRING,
                [
                    _value(STRING, e.string, e.string_lo, e.string_hi),
                    _number_text(e.long | e.real),
                    *_words(e),
                    *_nested_text(e),
                ],
                null,
            )
        )
    if target == BOOLEAN:
        return Truth(e.true, e.false, null | e.long | e.real | e.string | e.list | e.map, NO)
    if target in INTEGRAL:
        longs = _cast(_longs(e), e.long, target, Mode.TRY, None)
        return _joined(target, [longs], null | e.false | e.true | e.real | e.string | e.list | e.map)
    numbers = [
        _cast(_longs(e), e.long, target, Mode.TRY, None),
        _cast(_reals(e, exactly=False), e.real, target, Mode.TRY, None),
    ]
    named = replace(_value(target, e.string), nan=e.string)  # the texts NaN and Infinity are numbers
    return _joined(target, [*numbers, named], null | e.false | e.true | e.string | e.list | e.map)
