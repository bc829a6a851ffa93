"""Law: a room imports only from rooms above it in this list. The order is DESIGN §4; here it is kept."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ORDER = (
    "errors",
    "world",
    "sizes",
    "types",
    "schema",
    "expr",
    "domain",
    "stats",
    "state",
    "files",
    "read",
    "exec",
    "index",
    "scan",
    "maintain",
    "table",
    "spark",
    "cli",
)

DOORS = {
    ("scan", "spark"): "Scan.to_spark, when it is handed a session",
    ("table", "spark"): "Table.append and its kin, when they are handed a Spark DataFrame",
}
"""Where a lower room calls a higher one by name at run time (``importlib``), and what for. Nothing else may."""

ROOT = Path(__file__).parent.parent / "src" / "tamis"
MODULES = sorted(ROOT.rglob("*.py"))


def room(path: Path) -> str:
    return path.relative_to(ROOT).parts[0].removesuffix(".py")


def imported(tree: ast.AST, path: Path) -> Iterator[tuple[str, int]]:
    """Rooms that a module imports from, at its top or inside functions, with the line."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno} imports relatively; write tamis.…"
            names = [f"tamis.{alias.name}" for alias in node.names] if node.module == "tamis" else [node.module or ""]
        else:
            continue
        yield from ((name.split(".")[1], node.lineno) for name in names if name.startswith("tamis."))


def opened(tree: ast.AST) -> Iterator[tuple[str, int]]:
    """Rooms that a module reaches by ``import_module("tamis.…")``."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("import_module"):
            for argument in node.args:
                if isinstance(argument, ast.Constant) and str(argument.value).startswith("tamis."):
                    yield str(argument.value).split(".")[1], node.lineno


def test_every_room_has_its_place() -> None:
    assert {room(path) for path in MODULES} - {"__init__"} <= set(ORDER)


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(ROOT)))
def test_imports_go_downwards(path: Path) -> None:
    if path == ROOT / "__init__.py":
        return  # the front door re-exports from everywhere
    own, tree = room(path), ast.parse(path.read_text())
    for other, line in imported(tree, path):
        assert other in ORDER, f"{path}:{line} imports tamis.{other}, which is no room"
        assert ORDER.index(other) <= ORDER.index(own), f"{path}:{line}: {own} imports from {other}, which stands below it"
    for other, line in opened(tree):
        assert ORDER.index(other) <= ORDER.index(own) or (own, other) in DOORS, f"{path}:{line}: {own} has no door to {other}"


def test_an_upward_import_is_seen() -> None:
    planted = "def f():\n    from tamis.spark import attach\n    import tamis.cli\n    from tamis import table\n"
    assert [name for name, _ in imported(ast.parse(planted), Path("planted"))] == ["spark", "cli", "table"]


def test_every_door_is_used() -> None:
    used = {(room(path), other) for path in MODULES for other, _ in opened(ast.parse(path.read_text()))}
    assert set(DOORS) <= used
