"""Each layer imports only from layers above it in this list. ``docs/design/0018-folders.md`` says why they are these."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from tests.import_graph import circles, lazy_imports, modules, own_imports, parsed

ORDER = (
    "errors",
    "lazy_imports",
    "world",
    "sizes",
    "cost_model",
    "core.types",
    "core.schema",
    "core.expr",
    "core.pruning",
    "core.stats",
    "storage.object_store",
    "storage.commit_log",
    "storage.files",
    "engine.part_reader",
    "engine.part_writer",
    "engine.secondary_index",
    "engine.scan",
    "engine.operations",
    "bridges.sources",
    "bridges.adoption",
    "bridges.export",
    "table",
    "spark",
    "cli",
    "otel",
)

WINGS = ("core", "storage", "engine", "bridges")
"""Folders of layers; every other folder is a layer itself."""

DOORS = {
    ("engine.scan", "spark"): "Scan.to_spark, when it is handed a session",
    ("table", "spark"): "Table.append and its kin, when they are handed a Spark DataFrame",
}
"""Where a lower room calls a higher one by name at run time (``importlib``), and what for. Nothing else may."""

ROOT = Path(__file__).parent.parent / "src" / "tamis"
MODULES = sorted(ROOT.rglob("*.py"))


def layer(parts: tuple[str, ...]) -> str:
    """The layer of a module, from the names below ``tamis``."""
    return ".".join(parts[:2]) if parts[0] in WINGS and len(parts) > 1 else parts[0]


def room(path: Path) -> str:
    return layer(path.relative_to(ROOT).with_suffix("").parts)


def imported(tree: ast.AST, path: Path) -> Iterator[tuple[str, int]]:
    """Rooms that a module imports from, at its top or inside functions, with the line."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno} imports relatively; write tamis.…"
            whole = node.module == "tamis" or node.module in {f"tamis.{wing}" for wing in WINGS}
            names = [f"{node.module}.{alias.name}" for alias in node.names] if whole else [node.module or ""]
        else:
            continue
        yield from ((layer(tuple(name.split(".")[1:])), node.lineno) for name in names if name.startswith("tamis."))


def opened(tree: ast.AST) -> Iterator[tuple[str, int]]:
    """Rooms that a module reaches by ``import_module("tamis.…")``."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("import_module"):
            for argument in node.args:
                if isinstance(argument, ast.Constant) and str(argument.value).startswith("tamis."):
                    yield layer(tuple(str(argument.value).split(".")[1:])), node.lineno


def test_every_room_has_its_place() -> None:
    assert {
        room(path)
        for path in MODULES
        if path.name != "__init__.py" or (path.parent.parent != ROOT and path.parent != ROOT)
    } <= set(ORDER)


def test_imports_go_downwards() -> None:
    """``tamis`` re-exports from everywhere, and a wing is a folder only: their ``__init__`` files may import anything."""
    wrong = []
    for path in MODULES:
        if path == ROOT / "__init__.py" or (path.parent.name in WINGS and path.name == "__init__.py"):
            continue
        own, tree = room(path), parsed(path)
        for other, line in imported(tree, path):
            if other not in ORDER or ORDER.index(other) > ORDER.index(own):
                wrong.append(f"{path}:{line}: {own} imports from {other}, which is above it or no layer")
        for other, line in opened(tree):
            if ORDER.index(other) > ORDER.index(own) and (own, other) not in DOORS:
                wrong.append(f"{path}:{line}: {own} has no door to {other}")
    assert wrong == []


def test_an_upward_import_is_seen() -> None:
    planted = "def f():\n    from tamis.spark import attach\n    import tamis.cli\n    from tamis import table\n    from tamis.engine import scan\n"
    assert [name for name, _ in imported(ast.parse(planted), Path("planted"))] == [
        "spark",
        "cli",
        "table",
        "engine.scan",
    ]


def test_every_door_is_used() -> None:
    used = {(room(path), other) for path in MODULES for other, _ in opened(parsed(path))}
    assert set(DOORS) <= used


IMPORTS_INSIDE = {
    "cli/": "a command loads what it runs, so that `tamis --help` is quick",
    "core/schema/widening.py": "checks of schemas that hold our own types need no pyarrow",
}
"""Where our own modules may be imported inside functions, and why."""


def test_modules_form_no_circles() -> None:
    known = modules()
    graph = {name: {other for other, _, _ in own_imports(parsed(path), known)} - {name} for name, path in known.items()}
    assert circles(graph) == []


def test_lazy_names_are_those_of_the_type_checker() -> None:
    """A name that only one of them knows would pass mypy and fail in use, or the reverse."""
    for path in MODULES:
        tree = parsed(path)
        lazy = lazy_imports(tree)
        typed: dict[str, str] = {}
        for branch in ast.walk(tree):
            if isinstance(branch, ast.If) and ast.unparse(branch.test) == "TYPE_CHECKING" and branch.orelse:
                for node in branch.body:
                    if isinstance(node, ast.ImportFrom):
                        typed |= {alias.asname or alias.name: f"{node.module}" for alias in node.names}
        assert lazy.keys() <= typed.keys(), path
        for name, home in lazy.items():
            assert home in {typed[name], f"{typed[name]}.{name}"}, (path, name)


def test_a_circle_is_seen() -> None:
    assert circles({"a": {"b"}, "b": {"c"}, "c": {"b"}, "d": set()}) == [["b", "c"]]


def test_our_modules_are_imported_at_the_top() -> None:
    known = modules()
    hidden = {
        (str(path.relative_to(ROOT)), line)
        for path in known.values()
        for _, line, inside in own_imports(parsed(path), known)
        if inside
    }
    assert sorted(place for place in hidden if not place[0].startswith(tuple(IMPORTS_INSIDE))) == []
    assert {reason for reason in IMPORTS_INSIDE if any(place.startswith(reason) for place, _ in hidden)} == set(
        IMPORTS_INSIDE
    )
