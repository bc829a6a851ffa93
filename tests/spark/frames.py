"""Rows of a DataFrame in a form that compares: no order, NaN equal to itself."""

from __future__ import annotations

import math
from typing import Any


def rows_of(frame: Any) -> list[str]:
    """The rows as sorted texts."""
    return sorted(repr(_plain(row)) for row in frame.collect())


def _plain(value: Any) -> Any:
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else value + 0.0
    if isinstance(value, dict):
        return {k: _plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return tuple(_plain(v) for v in value)
    return value
