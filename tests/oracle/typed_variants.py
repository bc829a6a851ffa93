"""VARIANT values of types that JSON does not have: dates, times, floats, decimals, binary values.

A staging file holds each as text, a type and a number (``date:17``); SQL and the embedded writer make the same
VARIANT ``{"a": value}`` of it, or the value alone where the type has a star.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from random import Random  # noqa: TID251  # seeded by the caller

import pyarrow as pa

from tamis.core.types import VARIANT
from tamis.core.types.arrow import to_arrow_type

_HALF_SECOND, _DAY0 = 500_000, 19_723
_SQL = {
    "ts": f"timestamp_micros({{n}} * {_HALF_SECOND})",
    "ntz": f"timestampadd(MICROSECOND, {{n}} * {_HALF_SECOND}, TIMESTAMP_NTZ'1970-01-01 00:00:00')",
    "date": f"date_from_unix_date(CAST({{n}} AS INT) + {_DAY0})",
    "float": "CAST({n} / 4 AS FLOAT)",
    "double": "CAST({n} / 4 AS DOUBLE)",
    "decimal": "CAST({n} / 4 AS DECIMAL(38,10))",
    "boolean": "({n} > 20)",
    "binary": "CAST(CAST({n} AS STRING) AS BINARY)",
    "string": "CAST({n} AS STRING)",
    "long": "{n}",
}
_BYTES: dict[str, Callable[[int], bytes]] = {
    "ts": lambda n: b"\x30" + struct.pack("<q", n * _HALF_SECOND),
    "ntz": lambda n: b"\x34" + struct.pack("<q", n * _HALF_SECOND),
    "date": lambda n: b"\x2c" + struct.pack("<i", n + _DAY0),
    "float": lambda n: b"\x38" + struct.pack("<f", n / 4),
    "double": lambda n: b"\x1c" + struct.pack("<d", n / 4),
    "decimal": lambda n: b"\x28\x0a" + (n * 25 * 10**8).to_bytes(16, "little", signed=True),
    "boolean": lambda n: b"\x04" if n > 20 else b"\x08",
    "binary": lambda n: b"\x3c" + struct.pack("<I", len(str(n))) + str(n).encode(),
    "string": lambda n: bytes([len(str(n)) << 2 | 1]) + str(n).encode(),
    "long": lambda n: b"\x18" + struct.pack("<q", n),
}
TYPES = ("TINYINT", "SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE", "DECIMAL(38,10)", "DECIMAL(10,2)", "BOOLEAN", "STRING", "DATE", "TIMESTAMP",
         "TIMESTAMP_NTZ", "BINARY")  # fmt: skip
"""Types that a path can be read as."""


def staged_sql() -> str:
    """SQL that makes the VARIANT of the text in a column ``{0}``."""
    number = "CAST(substring_index({0}, ':', -1) AS BIGINT)"
    cases = []
    for name, sql in _SQL.items():
        value = sql.format(n=number)
        cases.append(f"WHEN {{0}} LIKE '{name}:%' THEN to_variant_object(named_struct('a', {value}))")
    return f"CASE {' '.join(cases)} END"


def typed_values(i: int) -> str:
    """Text of a value that depends on ``i``; neighbours are mostly of one type."""
    names = list(_SQL)
    return f"{names[i // 20 % len(names) if i % 9 else i % len(names)]}:{i}"


POOL = tuple(f"{name}:{n}" for name in _SQL for n in (0, -1, 7, 119, 40_000))


def typed_array(values: Sequence[str | None]) -> pa.Array:
    """The VARIANT array of these texts."""
    data = [None if v is None else _object(v) for v in values]
    metadata = pa.array([b"\x01\x01\x00\x01a"] * len(data), pa.binary())
    body = pa.array([d or b"" for d in data], pa.binary())
    fields = list(to_arrow_type(VARIANT))
    by_name = {"metadata": metadata, "value": body}
    return pa.StructArray.from_arrays(
        [by_name[f.name] for f in fields], fields=fields, mask=pa.array([d is None for d in data], pa.bool_())
    )


def _object(text: str) -> bytes:
    name, _, number = text.partition(":")
    value = _BYTES[name](int(number))
    return b"\x02\x01\x00\x00" + bytes([len(value)]) + value


def typed_predicate(rng: Random, x: str, compare: str, literal: Callable[[str], str]) -> str:
    """A comparison of the value at ``$.a`` of the VARIANT ``x``; ``literal`` makes one of a kind of column."""
    target = rng.choice(TYPES)
    source = f"try_variant_get({x}, '$.a', '{target}')"
    if rng.random() < 0.25:
        return f"{source} IS {rng.choice(('', 'NOT '))}NULL"
    n = rng.choice((0, 1, -1, 5, 10, 30, 86_400))
    value = {
        "BOOLEAN": rng.choice(("true", "false")),
        "STRING": f"'{n}'",
        "DATE": literal("date"),
        "TIMESTAMP": literal("timestamp"),
        "TIMESTAMP_NTZ": literal("ntz"),
        "BINARY": f"X'{str(n).encode().hex()}'",
    }.get(target, f"{n}")
    return f"{source} {compare} {value}"
