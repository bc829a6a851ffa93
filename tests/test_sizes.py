"""The sizes at which code paths begin: their defaults, how they are turned down, and that the modules follow."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tamis.errors import InvalidInput
from tamis.sizes import VARIABLE, InternalSizes, parse_sizes
from tamis.world import world


def test_what_is_not_named_keeps_its_default() -> None:
    assert parse_sizes("") == InternalSizes()
    assert parse_sizes(" block_rows = 16, set_values=3 ") == InternalSizes(block_rows=16, set_values=3)


@pytest.mark.parametrize(
    "text",
    [
        "nothing=3",
        "block_rows",
        "block_rows=",
        "block_rows=0",
        "block_rows=-1",
        "block_rows=many",
        "largest_block_rows=1048577",
    ],
)
def test_what_means_nothing_is_refused_by_name(text: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        parse_sizes(text)
    assert caught.value.code == "BAD_SIZES"
    assert "block_rows" in str(caught.value)


def test_another_process_follows_the_variable() -> None:
    program = "from tamis.engine.part_writer.write_part import BLOCK_ROWS; from tamis.core.stats.columns.value_sets import MOST; print(*BLOCK_ROWS, MOST)"
    environment = {**world().environment(), VARIABLE: "block_rows=16,set_values=3"}
    output = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True
    ).stdout
    assert output.split() == ["16", str(InternalSizes().largest_block_rows), "3"]
