"""The 63 scenarios of secondary indexes, each a test that bears its number."""

from __future__ import annotations

import re
from pathlib import Path


def test_every_scenario_has_its_test() -> None:
    names = [
        name
        for file in Path(__file__).parent.glob("test_*.py")
        for name in re.findall(r"^def test_([0-9_]+)", file.read_text(), re.M)
    ]
    assert {int(number) for name in names for number in name.split("_") if number} == set(range(1, 64))
