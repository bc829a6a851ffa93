"""Powers at the edges are Java's, not C's. Rows are Spark's; bounds of parts are computed here."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from tamis.core.expr import parse_value
from tamis.core.expr.arrow_values import Evaluated
from tamis.core.expr.evaluate import apply_function
from tamis.core.expr.tree import Call
from tamis.core.types import DOUBLE, Field, Schema

NAN, INF = float("nan"), float("inf")
SCHEMA = Schema((Field("x", DOUBLE, id=1), Field("y", DOUBLE, id=2)))


@pytest.mark.parametrize(
    ("base", "exponent", "power"),
    [
        (1.0, INF, NAN),
        (1.0, -INF, NAN),
        (-1.0, INF, NAN),
        (1.0, NAN, NAN),
        (NAN, 0.0, 1.0),
        (1.0, 5.0, 1.0),
        (-1.0, 3.0, -1.0),
        (2.0, INF, INF),
        (0.5, INF, 0.0),
        (INF, 0.0, 1.0),
    ],
)
def test_what_java_gives(base: float, exponent: float, power: float) -> None:
    call: Any = parse_value("power(x, y)", SCHEMA, zone="UTC", ansi=True)
    assert isinstance(call, Call)
    out = apply_function(call, [Evaluated(pa.array([v])) for v in (base, exponent)])
    assert np.array_equal(np.asarray(out.values), np.array([power]), equal_nan=True)
