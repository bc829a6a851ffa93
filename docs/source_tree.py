"""The syntax trees of the package, each read once, however many pages are made of them. Nobody changes a tree."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Mapping
from functools import cache
from pathlib import Path

SOURCE = Path(__file__).parent.parent / "src" / "tamis"


@cache
def modules() -> tuple[Path, ...]:
    """The files of all modules."""
    return tuple(sorted(SOURCE.rglob("*.py")))


@cache
def nodes_of(path: Path) -> tuple[ast.AST, ...]:
    """All nodes of a module's tree, parents before children."""
    return tuple(ast.walk(ast.parse(path.read_text())))


@cache
def functions_around(path: Path) -> Mapping[int, ast.FunctionDef]:
    """The innermost function around each node of a module, by the node's ``id``."""
    return {id(node): f for f in nodes_of(path) if isinstance(f, ast.FunctionDef) for node in ast.walk(f)}


@cache
def calls_by_name() -> Mapping[str, list[ast.Call]]:
    """All calls of functions that are named without a dot, by that name. A name that is never called is missing."""
    found: dict[str, list[ast.Call]] = defaultdict(list)
    for path in modules():
        for node in nodes_of(path):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                found[node.func.id].append(node)
    return dict(found)
