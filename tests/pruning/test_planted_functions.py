"""Rules of functions that would skip wrongly if a condition of theirs were left out: each check holds, and fails once the bug is planted."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import pytest

from tamis.core.expr import Expr, make_call, registry
from tamis.core.expr.functions.nested import constructed
from tamis.core.expr.registry import Claim
from tamis.core.pruning import bit_rules, text_rules
from tests.pruning.piece_decisions import decided, rows

Plant = Callable[[pytest.MonkeyPatch], object]


@dataclass(frozen=True)
class Way:
    """``text`` is true for some rows of a piece and false for others; with the bug planted, it is decided."""

    text: str
    columns: dict[str, list[Any]]
    plant: Plant

    def decided(self) -> str:
        return decided(self.text, rows(**self.columns))


def entry(name: str, **changes: Any) -> Plant:
    """The function's entry with another claim."""
    return lambda patch: patch.setitem(registry._BY_NAME, name, replace(registry.function_entry(name), **changes))


def plainly(pairs: list[tuple[Expr, Expr]]) -> Expr:
    """Compare fields by ``=``, which is NULL of NULL."""
    return make_call("and", *(make_call("eq", x, y) for x, y in pairs))


DAY = 86_400_000_000
TURN = 1_729_990_800_000_000
"""2024-10-27 01:00 UTC, when clocks in Berlin go back from 03:00 to 02:00."""
MINUTE = 60_000_000
WAYS = {
    "clocks go back": Way(
        "convert_timezone('UTC', 'Europe/Berlin', timestamp_ntz0) < TIMESTAMP_NTZ'2024-10-27 02:30:00'",
        {"timestamp_ntz0": [TURN - 20 * MINUTE, TURN + 20 * MINUTE]},
        entry("convert_timezone", rule=None, claims=lambda _: (Claim.FIXED, Claim.FIXED, Claim.UP)),
    ),
    "a curve that turns at zero": Way("cosh(double0) < 1.5", {"double0": [-5.0, 0.5, 5.0]}, entry("cosh", guard=None)),
    "an interval below zero times a number below zero": Way(
        "interval0 * integer0 > INTERVAL '10' DAY",
        {"interval0": [-5 * DAY, DAY], "integer0": [-5, 1]},
        entry("interval_multiply", claims=lambda _: (Claim.UP, Claim.UP)),
    ),
    "digits of numbers do not sort": Way(
        "hex(bigint0) = 'A'",
        {"bigint0": [9, 10, 256]},
        entry("hex", claims=lambda _: (Claim.UP,)),
    ),
    "what follows the beginning that is shared": Way(
        "translate(string0, 'a', 'b') = 'bz'",
        {"string0": ["ab", "az"]},
        lambda patch: patch.setattr(text_rules, "text_above", lambda prefix: prefix),
    ),
    "NULL inside of structs": Way(
        "(integer0, integer1) = (integer1, integer0)",
        {"integer0": [None, 1], "integer1": [None, 2]},
        lambda patch: patch.setitem(constructed._TESTS, "eq", plainly),
    ),
    "an item that fails beside the one that is read": Way(
        "element_at(array(integer0, 1 div integer1), 1) > 5",
        {"integer0": [1, 2], "integer1": [1, 0]},
        lambda patch: patch.setattr(constructed, "_unsure", lambda *_: False),
    ),
    "a bit that neither bound has": Way(
        "integer0 & 4 = 4",
        {"integer0": [1, 4, 8]},
        lambda patch: patch.setattr(bit_rules, "_smeared", lambda differ: differ),
    ),
    "the bit of the sign": Way(
        "integer0 & -1 < 0",
        {"integer0": [-5, 5]},
        lambda patch: patch.setattr(bit_rules, "_range", lambda set_, possible: (set_, possible)),
    ),
    "bits lost by a shift": Way("integer0 << 30 > 5", {"integer0": [0, 1, 4]}, entry("shift_left", guard=None)),
    "a shift that loses the sign": Way(
        "integer0 >>> 31 = 0", {"integer0": [-5, 0, 5]}, entry("shift_right_unsigned", guard=None)
    ),
}


@pytest.mark.parametrize("way", WAYS)
def test_the_rule_decides_nothing_there(way: str) -> None:
    assert WAYS[way].decided() == "some"


@pytest.mark.parametrize("way", WAYS)
def test_the_bug_would_be_seen(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    WAYS[way].plant(monkeypatch)
    assert WAYS[way].decided() != "some"
