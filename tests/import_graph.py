"""Which of our modules import which, read from the source."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parent.parent / "src" / "tamis"


@cache
def parsed(path: Path) -> ast.Module:
    """The syntax tree of a module; nobody changes it."""
    return ast.parse(path.read_text())


def modules() -> dict[str, Path]:
    """The files of all modules, by dotted name."""
    found = {}
    for path in sorted(ROOT.rglob("*.py")):
        name = ".".join(path.relative_to(ROOT.parent).with_suffix("").parts)
        found[name.removesuffix(".__init__")] = path
    return found


def own_imports(tree: ast.AST, known: Mapping[str, object]) -> Iterator[tuple[str, int, bool]]:
    """Our modules that a module imports at run time: name, line, and whether the import is inside a function."""
    inside = {
        id(n) for f in ast.walk(tree) if isinstance(f, ast.FunctionDef | ast.AsyncFunctionDef) for n in ast.walk(f)
    }
    skipped = {
        id(n)
        for i in ast.walk(tree)
        if isinstance(i, ast.If) and ast.unparse(i.test) == "TYPE_CHECKING"
        for n in ast.walk(i)
    }
    for name in sorted(lazy_imports(tree).values()):
        yield name, 0, False
    for node in ast.walk(tree):
        if id(node) in skipped:
            continue
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            full = [f"{node.module}.{alias.name}" for alias in node.names]
            names = [name if name in known else node.module for name in full]
        for name in names:
            if name.split(".")[0] == "tamis":
                yield name, getattr(node, "lineno", 0), id(node) in inside


def lazy_imports(tree: ast.AST) -> dict[str, str]:
    """Names that ``lazy_attributes`` and ``lazy_module`` define in a module, and the module that each comes from."""
    found: dict[str, str] = {}
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Call)
            and ast.unparse(node.func) == "lazy_attributes"
            and isinstance(node.args[1], ast.Dict)
        ):
            found |= ast.literal_eval(node.args[1])
        if isinstance(node, ast.Assign) and ast.unparse(node.value).startswith("lazy_module("):
            assert isinstance(node.value, ast.Call)
            found[ast.unparse(node.targets[0])] = ast.literal_eval(node.value.args[0])
    return found


def circles(graph: Mapping[str, set[str]]) -> list[list[str]]:
    """Groups of modules that reach one another."""
    reach = {start: _reached(graph, start) for start in graph}
    groups = {frozenset({a} | {b for b in reach[a] if a in reach.get(b, ())}) for a in graph if a in reach[a]}
    return sorted(sorted(group) for group in groups)


def _reached(graph: Mapping[str, set[str]], start: str) -> set[str]:
    found: set[str] = set()
    left = list(graph[start])
    while left:
        name = left.pop()
        if name not in found:
            found.add(name)
            left.extend(graph.get(name, ()))
    return found
