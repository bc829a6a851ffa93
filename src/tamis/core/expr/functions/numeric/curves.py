"""Functions of doubles that rise or fall: inverse trigonometry, hyperbolic functions, CBRT, RINT; and NANVL.

As with powers, the last digits depend on the implementation, so bounds move outward and rows are left to Spark.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow.compute as pc

from tamis.core.expr.arrow_values import (
    Datum,
    Evaluated,
    Mask,
    Numbers,
    build_array,
    is_true,
    literal_scalar,
    mode_outcome,
    null_mask,
    stored_numbers,
)
from tamis.core.expr.calls import make_call
from tamis.core.expr.coerce import implicit_cast, is_numeric
from tamis.core.expr.registry import Bounds, Claim, Function, NaN, Partial, Signature, declare_function, declare_sugar
from tamis.core.expr.tree import Call, Expr, Mode
from tamis.core.types import DOUBLE, FLOAT
from tamis.core.types.arrow import to_arrow_type


def _one_double(args: tuple[Expr, ...], mode: Mode, zone: str | None) -> Signature | None:
    if len(args) != 1 or not is_numeric(args[0].type):
        return None
    return Signature((implicit_cast(args[0], DOUBLE, mode, zone),), DOUBLE)


_KERNELS: dict[str, Callable[[Numbers], Numbers]] = {
    "acos": np.arccos,
    "asin": np.arcsin,
    "atan": np.arctan,
    "atanh": np.arctanh,
    "cbrt": np.cbrt,
    "cosh": np.cosh,
    "degrees": np.degrees,
    "expm1": np.expm1,
    "log1p": np.log1p,
    "radians": np.radians,
    "rint": np.rint,
    "sinh": np.sinh,
    "tanh": np.tanh,
}


def _computed(call_: Call, args: list[Datum]) -> Evaluated:
    x = args[0]
    values, null = stored_numbers(x), null_mask(x)
    with np.errstate(all="ignore"):
        out = np.atleast_1d(_KERNELS[call_.function](values))
        bad = np.atleast_1d(values <= -1) if call_.function == "log1p" else None
    if bad is not None and null is not None:
        bad = bad & ~null
    return mode_outcome(build_array(out, null, to_arrow_type(DOUBLE)), bad, call_.mode, "It has no logarithm.")


def _one_side_of_zero(call_: Call, bounds: Bounds) -> Mask:  # noqa: ARG001
    """Return where no bound lies on the other side of zero."""
    zero = literal_scalar(0.0, DOUBLE)
    lo, hi = bounds[0]
    return np.asarray(is_true(pc.greater_equal(lo, zero)) | is_true(pc.less_equal(hi, zero)))


_FALLS = {"acos": Claim.DOWN, "cosh": Claim.EITHER}
_INSIDE_ONE = frozenset({"acos", "asin", "atanh"})
"""Functions that are NaN outside of -1 to 1."""
for _name, _catalyst in (
    ("acos", "Acos"),
    ("asin", "Asin"),
    ("atan", "Atan"),
    ("atanh", "Atanh"),
    ("cbrt", "Cbrt"),
    ("cosh", "Cosh"),
    ("degrees", "ToDegrees"),
    ("expm1", "Expm1"),
    ("log1p", "Log1p"),
    ("radians", "ToRadians"),
    ("sinh", "Sinh"),
    ("tanh", "Tanh"),
):
    declare_function(
        Function(
            _name,
            _one_double,
            _computed,
            sql=(_name,),
            catalyst=(_catalyst,),
            claims=lambda c: (_FALLS.get(c.function, Claim.UP),),
            partial=lambda c: Partial.OUTSIDE if c.function == "log1p" else Partial.NEVER,
            guard=_one_side_of_zero if _name == "cosh" else None,
            nan=lambda c: NaN.SAME if c.function in _INSIDE_ONE else NaN.KEPT,
            rule="approximate",
            approximate=True,
            note={"log1p": "NULL where there is no logarithm", "cosh": "on one side of zero"}.get(_name, ""),
        )
    )
declare_function(
    Function(
        "rint",
        _one_double,
        _computed,
        sql=("rint",),
        catalyst=("Rint",),
        claims=lambda _: (Claim.UP,),
        nan=lambda _: NaN.KEPT,
    )
)


@declare_sugar("nanvl", catalyst=("NaNvl",))
def _nanvl(args: tuple[Expr, ...], mode: Mode, zone: str | None) -> Expr | None:
    """Build ``CASE WHEN isnan(a) THEN b ELSE a END``."""
    if len(args) != 2 or not all(is_numeric(a.type) for a in args):
        return None
    kind = FLOAT if all(a.type == FLOAT for a in args) else DOUBLE
    value, other = (implicit_cast(a, kind, mode, zone) for a in args)
    return make_call("case", make_call("is_nan", value), other, value)
