"""HEX, ASCII and TRANSLATE, which keep something of the order of texts; SUBSTRING_INDEX up to the first separator."""

from __future__ import annotations

import pyarrow as pa

from tamis.core.expr.arrow_values import Datum, Evaluated, full_length
from tamis.core.expr.calls import make_call
from tamis.core.expr.coerce import implicit_cast
from tamis.core.expr.functions.text.text_kernels import constant_text
from tamis.core.expr.functions.text.text_order import as_text
from tamis.core.expr.registry import Claim, Function, Signature, declare_function, declare_sugar
from tamis.core.expr.tree import Call, Expr, Literal, Mode
from tamis.core.types import BINARY, INTEGER, INTEGRAL, LONG, STRING


def _hex_resolve(args: tuple[Expr, ...], mode: Mode, zone: str | None) -> Signature | None:
    """Resolve HEX of bytes or text, or of an integer as BIGINT."""
    if len(args) != 1:
        return None
    if args[0].type in INTEGRAL:
        return Signature((implicit_cast(args[0], LONG, mode, zone),), STRING)
    text = args[0] if args[0].type in (BINARY, STRING) else None
    return Signature((text,), STRING) if text is not None else None


def _hex(call_: Call, args: list[Datum]) -> Evaluated:
    """Compute digits: two for a byte, and those of an integer in two's complement without leading zeros."""
    if call_.args[0].type == LONG:
        made = [None if v is None else format(v % 2**64, "X") for v in full_length(args[0], 1).to_pylist()]
    else:
        made = [None if v is None else v.hex().upper() for v in full_length(args[0], 1).cast(pa.binary()).to_pylist()]
    return Evaluated(pa.array(made, pa.string()))


declare_function(
    Function(
        "hex",
        _hex_resolve,
        _hex,
        sql=("hex",),
        catalyst=("Hex",),
        claims=lambda c: (Claim.FIXED if c.args[0].type == LONG else Claim.UP,),
        note="of texts and bytes; of integers single values",
    )
)


def _one_text(args: tuple[Expr, ...], mode: Mode, zone: str | None) -> Signature | None:
    text = as_text(args[0], mode, zone) if len(args) == 1 and args[0].type != BINARY else None
    return Signature((text,), INTEGER) if text is not None else None


def _ascii(_call: Call, args: list[Datum]) -> Evaluated:
    """Return the code of the first character; 0 for an empty text."""
    made = [None if v is None else ord(v[0]) if v else 0 for v in full_length(args[0], 1).to_pylist()]
    return Evaluated(pa.array(made, pa.int32()))


declare_function(
    Function(
        "ascii",
        _one_text,
        _ascii,
        sql=("ascii",),
        catalyst=("Ascii",),
        claims=lambda _: (Claim.UP,),
        note="the order of texts is that of their characters' codes",
    )
)


def _translate_resolve(args: tuple[Expr, ...], mode: Mode, zone: str | None) -> Signature | None:
    """Resolve TRANSLATE with constant characters, none of them NUL, which Spark treats apart."""
    if len(args) != 3 or args[0].type == BINARY:
        return None
    taken, given = (constant_text(a) for a in args[1:])
    if taken is None or given is None or "\0" in taken + given:
        return None
    text = as_text(args[0], mode, zone)
    return Signature((text, *args[1:]), STRING) if text is not None else None


def _translate(call_: Call, args: list[Datum]) -> Evaluated:
    """Replace characters one by one; those without a counterpart vanish, and of a double one the first counts."""
    taken, given = (constant_text(a) or "" for a in call_.args[1:])
    table: dict[int, str | None] = {}
    for at, character in enumerate(taken):
        table.setdefault(ord(character), given[at] if at < len(given) else None)
    made = [None if v is None else v.translate(table) for v in full_length(args[0], 1).to_pylist()]
    return Evaluated(pa.array(made, pa.string()))


declare_function(
    Function(
        "translate",
        _translate_resolve,
        _translate,
        sql=("translate",),
        catalyst=("StringTranslate",),
        rule="text",
        note="by the beginning that all texts of the part share",
    )
)


@declare_sugar("substring_index", catalyst=("SubstringIndex",))
def _substring_index(args: tuple[Expr, ...], mode: Mode, zone: str | None) -> Expr | None:
    """Build the text before the first separator, which SPLIT_PART gives too."""
    if len(args) != 3 or not isinstance(args[2], Literal) or args[2].value != 1 or not constant_text(args[1]):
        return None
    return make_call("split_part", args[0], args[1], Literal(INTEGER, 1), mode=mode, zone=zone)
