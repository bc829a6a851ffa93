"""One form for floats that are equal in Spark: Arrow hashes their bits, in which zeros and NaNs differ.

On x86, arithmetic gives a negative NaN (``inf - inf``); a constant is a positive one.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc


def with_one_nan(values: Any) -> Any:
    """Return floats, an array of any kind, whose NaNs have the same bits; other types unchanged."""
    if not pa.types.is_floating(values.type):
        return values
    nan = pc.is_nan(values)
    return pc.if_else(nan, pa.scalar(float("nan"), values.type), values) if pc.any(nan).as_py() else values


def with_one_zero(values: Any) -> Any:
    """Return floats without negative zeros and with one NaN; other types unchanged."""
    if not pa.types.is_floating(values.type):
        return values
    return with_one_nan(pc.add(values, pa.scalar(0.0, values.type)))  # −0.0 + 0.0 = 0.0
