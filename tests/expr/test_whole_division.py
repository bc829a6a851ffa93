"""Division of whole numbers at the ends of their types, as Java does it."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from tamis.core.expr import evaluate, parse_value
from tamis.core.types import BYTE, INTEGER, LONG, SHORT, DataType, Field, Schema
from tamis.core.types.arrow import to_arrow_type

BITS: dict[DataType, int] = {BYTE: 8, SHORT: 16, INTEGER: 32, LONG: 64}


def wrapped(value: int, bits: int) -> int:
    half = 1 << (bits - 1)
    return (value + half) % (2 * half) - half


def truncated(x: int, y: int) -> int:
    return abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1)


def positive_modulo(x: int, y: int, bits: int) -> int:
    """Java's sum has at least 32 bits."""
    rest = x - truncated(x, y) * y
    if rest >= 0:
        return rest
    total = wrapped(rest + y, max(bits, 32))
    return total - truncated(total, y) * y


@pytest.mark.parametrize("kind", BITS, ids=str)
def test_edges(kind: DataType) -> None:
    bits = BITS[kind]
    least, most = -(1 << (bits - 1)), (1 << (bits - 1)) - 1
    edges = sorted({least, least + 1, least + 5, least // 2, -7, -1, 1, 2, 7, most // 2, most - 1, most, 0})
    pairs = [(x, y) for x in edges for y in edges if y]
    schema = Schema((Field("x", kind, id=1), Field("y", kind, id=2)))
    arrow = to_arrow_type(kind)
    batch = {i: pa.array([p[i - 1] for p in pairs], arrow) for i in (1, 2)}
    wanted = {
        "x div y": [wrapped(truncated(x, y), 64) for x, y in pairs],
        "x % y": [x - truncated(x, y) * y for x, y in pairs],
        "pmod(x, y)": [positive_modulo(x, y, bits) for x, y in pairs],
    }
    for text, values in wanted.items():
        out = evaluate(parse_value(text, schema, zone="UTC", ansi=False), batch, len(pairs))
        assert out.failed is None or not np.any(out.failed)
        assert out.values.to_pylist() == values, text


OVERFLOWS = "x + 9223372036854775807L"


@pytest.mark.parametrize("text", ["try_divide({0}, y)", "try_mod({0}, y)", "try_divide(CAST({0} AS DECIMAL(24, 2)), CAST(y AS DECIMAL(24, 2)))"])  # fmt: skip
def test_a_zero_divisor_hides_the_dividends_error(text: str) -> None:
    """Spark looks at the divisor first, and then at the dividend only where there is a quotient."""
    schema = Schema((Field("x", LONG, id=1), Field("y", LONG, id=2)))
    batch = {1: pa.array([1, 1, 1, 0]), 2: pa.array([0, None, 1, 1])}
    out = evaluate(parse_value(text.format(OVERFLOWS), schema, zone="UTC", ansi=True), batch, 4)
    assert out.failed is not None
    assert out.failed.tolist() == [False, False, True, False]
    assert out.values.is_valid().to_pylist() == [False, False, False, True]


@pytest.mark.parametrize("text", ["{0} / y", "{0} div y", "{0} % y", "pmod({0}, y)"])
@pytest.mark.parametrize("ansi", [True, False])
def test_only_in_ansi_mode_a_zero_divisor_is_an_error(text: str, ansi: bool) -> None:
    """A sum of a time and a day that overflows is an error in every mode."""
    schema = Schema((Field("x", LONG, id=1), Field("y", LONG, id=2)))
    late = "unix_micros(timestamp_micros(x) + INTERVAL '1' DAY)"
    batch = {1: pa.array([2**63 - 1, 2**63 - 1, 0]), 2: pa.array([0, 1, 1])}
    out = evaluate(parse_value(text.format(late), schema, zone="UTC", ansi=ansi), batch, 3)
    assert out.failed is not None
    assert out.failed.tolist() == [ansi, True, False]
