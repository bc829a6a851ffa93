"""What other engines make of exports, as ``docs/exporting.md`` says it: rows, a refusal, or wrong rows.

They stand in an environment of their own, whose Python ``TAMIS_PEERS_PYTHON`` names (``make test-peers``).
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

import tamis
from tamis.world import world
from tests.bridges.exported_tables import CHANGES, RENAMES, fitted, made, rows, widen

PYTHON = world().environment().get("TAMIS_PEERS_PYTHON")
PAGE = Path(__file__).parents[2] / "docs" / "exporting.md"

DELTA = ("deltalake", "polars", "duckdb", "daft", "datafusion", "chdb")
ICEBERG = ("pyiceberg", "polars", "duckdb", "daft", "chdb")

NESTED = frozenset({"point", "items", "attributes"})
"""Columns that are compared in the second state only."""


def _append(table: tamis.Table) -> object:
    return table.refresh().append(fitted(table, rows(*range(40, 45))))


def _append_nulls(table: tamis.Table) -> object:
    table.alter().add_column("points", "ARRAY<STRUCT<x: INT>>").commit()
    return _append(table)


def _append_spaced(table: tamis.Table) -> object:
    table.alter().add_column("a b", "INT").commit()
    return _append(table)


STATES: Mapping[str, Callable[[tamis.Table], object]] = {
    "only appends": lambda table: table.append(rows(*range(40, 45))),
    "NULL as a list, map or struct": lambda table: table.append(rows(*range(40, 45))),
    "NULL as a list of structs": _append_nulls,
    "deleted rows": CHANGES["delete"],
    "an added column": CHANGES["add a column"],
    "an added column with a space in its name": _append_spaced,
    "a dropped column": CHANGES["drop a column"],
    "a widened column": widen,
    "a renamed column": lambda table: (RENAMES["rename"](table), _append(table)),
    "a column in the place of a dropped one": lambda table: (RENAMES["replace a column"](table), _append(table)),
    "a default in older files": lambda table: table.alter().add_column("more", "BIGINT", default="7").commit(),
}


FILTERS: Mapping[str, str] = {
    "`id > 33 AND s <> 'x'`": "id > 33 AND s <> 'x'",
    "`amount < 2.25`": "amount < 2.25",
    "`s IS NULL`": "s IS NULL",
    "`f > 12.5` where `f` has NaN": "f > 12.5",
}


def answers(
    kind: str, table: tamis.Table, readers: tuple[str, ...], ignored: frozenset[str], where: str = ""
) -> list[str]:
    """Return what each reader makes of the export: it reads it, refuses it, or finds wrong rows."""
    assert PYTHON is not None
    script = Path(__file__).with_name("peer_readers.py")
    command = [PYTHON, "-W", "ignore", str(script), kind, table.path, where, *readers]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    results = {r["reader"]: r for r in map(json.loads, filter(lambda t: t.startswith("{"), done.stdout.splitlines()))}
    own = tamis.open(table.path).scan(where or None).to_arrow().to_pylist()
    wanted = sorted(json.loads(json.dumps(own, default=str)), key=lambda row: row["id"])
    return [_answer(results.get(reader, {"error": done.stderr}), wanted, ignored) for reader in readers]


def _answer(result: Mapping[str, Any], wanted: list[dict[str, Any]], ignored: frozenset[str]) -> str:
    if "error" in result:
        return "refuses"
    same = [_texts(row, ignored) for row in result["rows"]] == [_texts(row, ignored) for row in wanted]
    return "reads" if same else "**wrong rows**"


def _texts(row: Mapping[str, Any], ignored: frozenset[str]) -> dict[str, str]:
    """The values as text, but for bytes, which each engine spells in its own way."""
    return {name: str(value) for name, value in row.items() if name not in ignored | {"raw"}}


@pytest.mark.skipif(PYTHON is None, reason="TAMIS_PEERS_PYTHON names no Python with the engines")
@pytest.mark.parametrize("kind", ["delta", "iceberg", "iceberg 3"])
def test_the_page_says_what_engines_read(tmp_path: Path, kind: str) -> None:
    name, _, version = kind.partition(" ")
    readers = DELTA if name == "delta" else ICEBERG
    lines = []
    for state, change in STATES.items():
        table = made(tmp_path / state.replace(" ", "-"))
        change(table)
        table.refresh()
        ignored = frozenset() if state.startswith("NULL") else NESTED
        options: dict[str, Any] = {"by_id": True} if name == "delta" else {"format_version": int(version or 2)}
        try:
            table.export(name, **options)
        except tamis.InvalidInput as error:
            lines.append(f"| {state} | " + " | ".join([f"`{error.code}`"] + [""] * (len(readers) - 1)) + " |")
            continue
        lines.append(f"| {state} | " + " | ".join(answers(name, table, readers, ignored)) + " |")
    assert "\n".join(lines) in PAGE.read_text(), "\n".join(lines)


@pytest.mark.skipif(PYTHON is None, reason="TAMIS_PEERS_PYTHON names no Python with the engines")
@pytest.mark.parametrize("kind", ["delta", "iceberg"])
def test_the_page_says_what_engines_find_by_filters(tmp_path: Path, kind: str) -> None:
    readers = DELTA if kind == "delta" else ICEBERG
    table = made(tmp_path / "t")
    table.export(kind)
    found = {title: answers(kind, table, readers, NESTED, where) for title, where in FILTERS.items()}
    lines = "\n".join(f"| {title} | {' | '.join(cells)} |" for title, cells in found.items())
    assert lines in PAGE.read_text(), lines
