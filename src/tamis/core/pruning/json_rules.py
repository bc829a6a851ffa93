"""Rules of functions that step into JSON documents: each kind of value is treated separately, then joined.

A path may hold several kinds of values in one piece. Each kind is cast by the rule of its own type. A missing
value and JSON's null are NULL; objects and lists become text or no value at all.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from tamis.core.expr import registry
from tamis.core.expr.arrow_values import Mask
from tamis.core.expr.functions.json.json_text import known_steps
from tamis.core.expr.json_codec.iso_times import INSTANT_TEXT, LOCAL_TEXT, form_of_pattern
from tamis.core.expr.json_codec.json_path import Steps
from tamis.core.expr.tree import Call, Column, Expr, Literal, Mode
from tamis.core.pruning.cast_rules import cast_rule
from tamis.core.pruning.evidence import DocumentEvidence
from tamis.core.pruning.json_kinds import (
    boolean_kind,
    cast_kind,
    instant_kind,
    joined_kinds,
    kind_spec,
    long_kind,
    nested_text,
    no_value,
    number_text,
    real_kind,
    with_whole_reals,
    without_digits,
    word_text,
)
from tamis.core.pruning.json_times import TIME_TYPES, text_times, typed_times
from tamis.core.pruning.time_zone_rules import time_of_text
from tamis.core.pruning.value_spec import (
    NO,
    UNKNOWN_TRUTH,
    YES,
    Abstract,
    Spec,
    Truth,
    choose_spec,
    choose_where,
    no_bound,
    restrict_pieces,
    spec_of,
    truth_of,
    unknown_spec,
)
from tamis.core.types import (
    BINARY,
    BOOLEAN,
    BYTE,
    DOUBLE,
    FLOAT,
    INTEGRAL,
    STRING,
    TIMESTAMP,
    VARIANT,
    DataType,
    Decimal,
    Struct,
)

_FUNCTIONS = frozenset({"get_json_object", "from_json", "variant_get", "is_variant_null", "parse_json"})

_TEXT_READERS = frozenset({"get_json_object", "from_json", "parse_json"})


def document_columns(conjuncts: Sequence[Expr]) -> frozenset[int]:
    """Return the ids of the columns whose documents the filter steps into."""
    calls = (node for c in conjuncts for node in c.walk() if isinstance(node, Call) and node.function in _FUNCTIONS)
    return frozenset(arg.ids[-1] for call in calls for arg in call.args if isinstance(arg, Column))


def document_places(conjuncts: Sequence[Expr]) -> list[tuple[int, Steps]]:
    """Return the column ids and document paths that the filter uses."""
    calls = (node for c in conjuncts for node in c.walk() if isinstance(node, Call) and node.function in _FUNCTIONS)
    return [(place.column.ids[-1], place.steps) for call in calls if (place := _place(call)) is not None]


def transfer_json(run: Any, call: Call) -> Abstract:
    """Return the possible results of ``call``."""
    found = evidence_at(run, call)
    if found is None:
        return _anything(run, call)
    evidence, fails = found
    if call.function == "is_variant_null":  # never NULL itself
        out = _of(call, evidence)
        assert isinstance(out, Truth)
        unknown_ = ~evidence.known
        return Truth(out.true | unknown_, out.false | unknown_, NO, out.fail | _failing(call, evidence, fails))
    return _or_unknown(_of(call, evidence), evidence.known, _failing(call, evidence, fails))


def text_at(call: Call, evidence: DocumentEvidence, fails: Mask) -> Spec:
    """Return the spec of a call that gives a text, from this evidence of its path."""
    return spec_of(_or_unknown(_of(call, evidence), evidence.known, _failing(call, evidence, fails)))


def _failing(call: Call, evidence: DocumentEvidence, fails: Mask) -> Mask:
    """Return where the call may fail; an unknown value may have no cast."""
    return fails | ~evidence.known if _may_fail(call) else fails


def _may_fail(call: Call) -> bool:
    """Return whether ``call`` itself can fail, whatever its argument."""
    return registry.function_entry(call.function).partial(call) is not registry.Partial.NEVER


def evidence_at(run: Any, call: Call) -> tuple[DocumentEvidence, Mask] | None:
    """Return the evidence of the path that ``call`` reads and where reaching it may fail, or None."""
    place = _place(call)
    if place is None:
        return None
    column, steps, parsed, reparsed = place
    evidence = run.document(column, steps)
    if evidence is None:
        return None
    known = evidence.known
    if parsed is not None or call.function in {"get_json_object", "from_json"}:
        known = known & ~evidence.other  # text holds no such values
    if not steps:
        known = known & ~evidence.invalid  # of "7 abc", the root is 7
    for above, text in reparsed:
        found = run.document(column, above)
        if found is None:
            return None
        known = known & found.known & ~found.string & ~found.other  # what a text holds is at no path of the column
        if above == steps and not _shows_null(text):
            evidence = replace(evidence, missing=evidence.missing | evidence.null, null=evidence.null & NO)
        if text.function == "variant_get":
            evidence = with_whole_reals(evidence)
    evidence = replace(evidence, known=known)
    if parsed is None:
        return evidence, NO
    strange = ~known | evidence.invalid
    return evidence, NO if parsed is Mode.TRY else strange  # parse_json fails in every other mode


class _Place(NamedTuple):
    """The path of a column's documents that a call reads."""

    column: Column
    steps: Steps
    parsed: Mode | None = None
    """The mode of ``parse_json``, if there is one; of several, one that fails."""
    reparsed: tuple[tuple[Steps, Call], ...] = ()
    """Paths above whose values become texts and are parsed again, and the calls that give these texts.

    Only a text among the values gives another document.
    """


def _place(call: Expr) -> _Place | None:
    """Return the path that ``call`` reads, or None."""
    if isinstance(call, Column):
        return _Place(call, ())
    if not isinstance(call, Call) or call.function not in _FUNCTIONS:
        return None
    inner = _place(call.args[0])
    if inner is None or call.function == "is_variant_null":
        return inner
    if call.function in _TEXT_READERS and isinstance(call.args[0], Call):
        inner = inner._replace(reparsed=(*inner.reparsed, (inner.steps, call.args[0])))
    if call.function == "parse_json":
        return inner if inner.parsed not in (None, Mode.TRY) else inner._replace(parsed=call.mode)
    return inner._replace(steps=(*inner.steps, *known_steps(call)))


def _shows_null(call: Call) -> bool:
    """Return whether a call that gives a text shows JSON's null as ``null``; it is NULL to all others.

    ``get_json_object`` does, if it is an element or the whole document and not the value of a key.
    """
    steps = known_steps(call)
    return call.function == "get_json_object" and (not steps or isinstance(steps[-1], int))


def _anything(run: Any, call: Call) -> Abstract:
    """Return what the function can give at all, for a path without evidence."""
    below = [run(arg) for arg in call.args[:1]]
    fails = below[0].fail if below else YES
    if call.function == "is_variant_null":
        return replace(UNKNOWN_TRUTH, null=NO, fail=fails)
    spec = replace(unknown_spec(call.type), fail=YES if _may_fail(call) else fails)
    return truth_of(spec) if call.type == BOOLEAN else spec


def _or_unknown(out: Abstract, known: Mask, fails: Mask) -> Abstract:
    """Return ``out`` where the path is known, and unknown elsewhere."""
    spec = spec_of(out)
    nothing = no_bound(spec.type)
    floating = spec.type in (FLOAT, DOUBLE)
    bounded = spec.type != VARIANT
    spec = Spec(
        spec.type,
        choose_where(known, spec.lo, nothing) if bounded else nothing,
        choose_where(known, spec.hi, nothing) if bounded else nothing,
        spec.value | ~known,
        spec.null | ~known,
        spec.fail | fails,
        spec.nan | (~known if floating else NO),
    )
    return truth_of(spec) if spec.type == BOOLEAN else spec


def _of(call: Call, e: DocumentEvidence) -> Abstract:
    match call.function:
        case "is_variant_null":
            something = e.missing | e.false | e.true | e.long | e.real | e.string | e.list | e.map | e.other | e.invalid
            return Truth(e.null, something, NO, NO)
        case "parse_json":
            return _documents_of(e)
        case "get_json_object":
            return _text(e, call)
        case "from_json":
            return _from_json(e, call.type)
    if call.type == VARIANT:
        return _documents_of(e)
    return _variant(e, call)


def _documents_of(e: DocumentEvidence) -> Spec:
    """A VARIANT spec, in which JSON's null is a value."""
    return replace(kind_spec(VARIANT, _any(e) | e.null), null=e.missing | e.invalid)


def _any(e: DocumentEvidence) -> Mask:
    return e.false | e.true | e.long | e.real | e.string | e.list | e.map | e.other


def _variant(e: DocumentEvidence, call: Call) -> Abstract:
    target, mode, zone = call.type, call.mode, call.zone
    strings = cast_kind(kind_spec(STRING, e.string, e.string_lo, e.string_hi), e.string, target, mode, zone)
    strings = choose_spec(without_digits(e, target), no_value(e.string, target, mode), strings)
    other = spec_of(restrict_pieces(replace(unknown_spec(target), fail=NO if mode is Mode.TRY else YES), e.other))
    if target in TIME_TYPES:
        strings, other = text_times(e, call, strings), typed_times(e, call, other)
    null = e.missing | e.null | e.invalid
    if target == STRING:
        return joined_kinds(
            target, [strings, number_text(e.long | e.real), *word_text(e), *nested_text(e), other], null
        )
    if target == BINARY:  # of the kinds that JSON has, only texts
        rest = e.long | e.real | e.true | e.false | e.list | e.map
        return joined_kinds(target, [strings, no_value(rest, target, mode), other], null)
    specs = [
        strings,
        instant_kind(long_kind(e), call)
        if target == TIMESTAMP
        else cast_kind(long_kind(e), e.long, target, mode, zone),
        instant_kind(real_kind(e, target), call)
        if target == TIMESTAMP
        else cast_kind(real_kind(e, target), e.real, target, mode, zone),
        cast_kind(boolean_kind(e), e.true | e.false, target, mode, zone),
        no_value(e.list | e.map, target, mode),
        other,
    ]
    return joined_kinds(target, specs, null)


def _text(e: DocumentEvidence, call: Call) -> Abstract:
    """Bound ``get_json_object``."""
    strings = kind_spec(STRING, e.string, e.string_lo, e.string_hi)
    specs = [strings, number_text(e.long | e.real), *word_text(e), *nested_text(e)]
    if _shows_null(call):
        specs.append(kind_spec(STRING, e.null, pa.scalar("null"), pa.scalar("null")))
    return joined_kinds(STRING, specs, e.missing | e.null | e.invalid)


def cast_of_text(run: Any, call: Call, text: Call) -> Abstract:
    """Bound ``cast(get_json_object(…) AS type)``, where numbers are parsed from their own text."""
    found = evidence_at(run, text)
    target, mode = call.type, call.mode
    if found is not None and target in TIME_TYPES:
        return _time_of_text(*found, call)
    if found is None or not (target in (*INTEGRAL, FLOAT, DOUBLE) or isinstance(target, Decimal)):
        given = spec_of(transfer_json(run, text))
        return cast_rule(replace(call, args=(Column(STRING, (0,), "value"),)), [given])
    e, fails = found
    trying = Mode.TRY if mode is not Mode.ANSI else Mode.ANSI  # without ANSI, text that cannot be cast is NULL
    strings = cast_kind(kind_spec(STRING, e.string, e.string_lo, e.string_hi), e.string, target, mode, call.zone)
    strings = choose_spec(without_digits(e, target), no_value(e.string, target, trying), strings)
    longs = cast_kind(long_kind(e), e.long, target, trying, None)
    if target not in INTEGRAL:
        reals = cast_kind(real_kind(e, target), e.real, target, trying, None)  # long integers keep their digits
    elif mode is Mode.LEGACY:
        reals = spec_of(restrict_pieces(replace(unknown_spec(target), fail=NO), e.real))
    else:
        reals = no_value(e.real, target, mode)  # its text has a decimal point
    rest = e.false | e.true | e.list | e.map | e.null
    null = e.missing | e.null | e.invalid
    out = joined_kinds(target, [strings, longs, reals, no_value(rest, target, trying)], null)
    return _or_unknown(out, e.known, fails | ~e.known if mode is Mode.ANSI else fails)


def _time_of_text(e: DocumentEvidence, fails: Mask, call: Call) -> Abstract:
    """Bound ``cast(get_json_object(…) AS type)`` for a date or time; ``fails``: where the text may fail."""
    target, mode = call.type, call.mode
    trying = Mode.TRY if mode is not Mode.ANSI else Mode.ANSI
    text = cast_kind(kind_spec(STRING, e.string, e.string_lo, e.string_hi), e.string, target, mode, call.zone)
    # The text of a number may be a year.
    numbers = spec_of(
        restrict_pieces(replace(unknown_spec(target), fail=NO if trying is Mode.TRY else YES), e.long | e.real)
    )
    rest = no_value(e.false | e.true | e.list | e.map | e.null, target, trying)
    null = e.missing | e.null | e.invalid
    out = joined_kinds(target, [text_times(e, call, text), numbers, rest], null)
    return _or_unknown(out, e.known, fails | ~e.known if mode is Mode.ANSI else fails)


def timestamp_of_text(run: Any, call: Call) -> Spec:
    """Bound a conversion by a pattern; no text fails where all texts of a path are exactly what it reads."""
    otherwise = time_of_text(call, [spec_of(run(arg)) for arg in call.args])
    text, pattern = call.args
    if not isinstance(text, Call) or text.function != "get_json_object" or not isinstance(pattern, Literal):
        return otherwise
    form, found = form_of_pattern(pattern.value), evidence_at(run, text)
    if form is None or found is None:
        return otherwise
    e, fails = found
    fits = np.asarray(e.time_form == form) & e.known & ~(e.false | e.true | e.long | e.real | e.list | e.map | e.null)
    if not fits.any():
        return otherwise
    if form & INSTANT_TEXT:  # a pattern with a literal Z reads the local time as written
        e = replace(e, time_form=np.where(fits, LOCAL_TEXT, 0))
    spec = replace(text_times(e, call, unknown_spec(TIMESTAMP)), null=e.missing | e.invalid)
    spec = replace(spec, fail=spec.fail | fails)
    return choose_spec(fits, spec, otherwise)


def _from_json(e: DocumentEvidence, target: DataType) -> Abstract:
    """Bound ``from_json``: values of another kind than the field's type are NULL."""
    null = e.missing | e.null | e.invalid
    if isinstance(target, Struct):  # only its fields are bounded
        return replace(unknown_spec(target), fail=NO)
    if target == STRING:
        return spec_of(
            joined_kinds(
                STRING,
                [
                    kind_spec(STRING, e.string, e.string_lo, e.string_hi),
                    number_text(e.long | e.real),
                    *word_text(e),
                    *nested_text(e),
                ],
                null,
            )
        )
    if target == BOOLEAN:
        return Truth(e.true, e.false, null | e.long | e.real | e.string | e.list | e.map, NO)
    if target == BYTE:  # numbers up to 255 become negative ones
        longs = spec_of(restrict_pieces(replace(unknown_spec(target), fail=NO), e.long))
        return joined_kinds(target, [longs], null | e.false | e.true | e.long | e.real | e.string | e.list | e.map)
    if target in INTEGRAL:
        longs = cast_kind(long_kind(e), e.long, target, Mode.TRY, None)
        return joined_kinds(target, [longs], null | e.false | e.true | e.real | e.string | e.list | e.map)
    numbers = [
        cast_kind(long_kind(e), e.long, target, Mode.TRY, None),
        cast_kind(real_kind(e, target), e.real, target, Mode.TRY, None),
    ]
    named = replace(kind_spec(target, e.string), nan=e.string)  # the texts NaN and Infinity are numbers
    return joined_kinds(target, [*numbers, named], null | e.false | e.true | e.string | e.list | e.map)
