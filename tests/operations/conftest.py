"""Small blocks, so that few rows make many parts."""

from __future__ import annotations

import pytest


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tamis.engine.part_writer.write_part.BLOCK_ROWS", (256, 512))
