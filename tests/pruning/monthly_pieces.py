"""Twelve pieces, a month of 2024 each."""

from __future__ import annotations

import pyarrow as pa

from tamis.core.types import BOOLEAN, DATE, DOUBLE, INTEGER, LONG, STRING, TIMESTAMP, Decimal, Field, Schema, Struct
from tamis.core.types.arrow import to_arrow_schema

HOUR = 3_600_000_000

START = 1_704_067_200_000_000  # 2024-01-01

SCHEMA = Schema(
    (
        Field("ts", TIMESTAMP, True, 1),
        Field("d", DATE, True, 2),
        Field("i", INTEGER, True, 3),
        Field("l", LONG, True, 4),
        Field("x", DOUBLE, True, 5),
        Field("s", STRING, True, 6),
        Field("m", Decimal(10, 2), True, 7),
        Field("b", BOOLEAN, True, 8),
        Field("u", STRING, True, 9),
        Field("st", Struct((Field("k", LONG, True, 11),)), True, 10),
    )
)


def piece(number: int) -> pa.Table:
    """One of twelve pieces: a month of 2024 each, hundreds and letters in step with it; ``u`` is NULL in even ones."""
    rows = [
        {
            "ts": START + (number * 30 * 24 + h) * HOUR,
            "d": 19_723 + number * 30 + h // 24,
            "i": number * 100 + h // 10,
            "l": number * 1000 + h,
            "x": number + h / 1000,
            "s": f"{chr(97 + number)}{h:03d}",
            "m": number * 10,
            "b": number >= 6,
            "u": None if number % 2 == 0 else "set",
            "st": {"k": number},
        }
        for h in (0, 200, 500, 719)
    ]
    return pa.Table.from_pylist(rows, schema=to_arrow_schema(SCHEMA))


PIECES = [piece(n) for n in range(12)]
