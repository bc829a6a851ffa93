"""A query, and what it may ask. Tables are written ``oracle_t0``, ``oracle_t1`` …, as they were after a step of their history ``oracle_t0_v3``."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

EXACT, ORDERED, SOME = "exact", "ordered", "some"
"""How rows are compared: as a multiset, in order, or in number and as rows of the unlimited query."""
TABLE = re.compile(r"\boracle_t(\d+)(?:_v(\d+))?\b")


@dataclass(frozen=True)
class Query:
    text: str
    judge: str = EXACT
    shape: str = ""
    unlimited: str | None = None
    before: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    args: dict[str, Any] = field(default_factory=dict, hash=False)


@dataclass(frozen=True)
class Asked:
    """A table that may be asked: its name in queries, its columns, and the steps to which one may travel."""

    name: str
    columns: dict[str, str]
    steps: tuple[int, ...] = ()
    samples: dict[str, list[Any]] = field(default_factory=dict)
    focus: tuple[str, ...] = ()
    """Columns that filters name more often."""
    rows: tuple[dict[str, Any], ...] = ()


def named(text: str, name: Callable[[int, int | None], str]) -> str:
    """The text with each table called by ``name(number, step)``."""
    return TABLE.sub(lambda found: name(int(found[1]), int(found[2]) if found[2] else None), text)
