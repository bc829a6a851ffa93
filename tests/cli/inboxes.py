"""Folders of files to ingest, and the rows that came of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import tamis


def inbox_of(tmp_path: Path, texts: dict[str, str], place: str = "inbox") -> Path:
    inbox = tmp_path / place
    inbox.mkdir()
    for name, text in texts.items():
        (inbox / name).write_text(text)
    return inbox


def rows_by(path: Path, column: str) -> list[dict[str, Any]]:
    return tamis.open(path).scan().to_arrow().sort_by(column).to_pylist()
