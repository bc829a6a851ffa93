"""Tables with an index that covers all, and with one that lacks segments."""

from __future__ import annotations

from pathlib import Path

import pytest

import tamis
from tests.secondary_index.tables import ids, table_a


@pytest.fixture(scope="module")
def a(tmp_path_factory: pytest.TempPathFactory) -> tamis.Table:
    """In sync; only read."""
    return table_a(
        tmp_path_factory.mktemp("a") / "t",
        ("ik", "k"),
        ("ig", "g"),
        ("ikg", ["k", "g"]),
        ("is", "s"),
        ("if", "f"),
        ("in", "n"),
    )


@pytest.fixture(scope="module")
def just_ik(tmp_path_factory: pytest.TempPathFactory) -> tamis.Table:
    return table_a(tmp_path_factory.mktemp("ik") / "t", ("ik", "k"))


@pytest.fixture
def out_of_sync(tmp_path: Path) -> tamis.Table:
    """Case 19: ik covers the loads 0, 2, 3 of five."""
    table = table_a(tmp_path / "t", ("ik", "k"))
    every = ids(table)
    table.drop_index_segments("ik", [every[1], every[4]])
    return table
