"""Writes the pages that are made from the code: ``python docs/generate.py``. A test compares them with what stands in the tree."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

from tamis import errors

HERE = Path(__file__).parent
SOURCE = HERE.parent / "src" / "tamis"
CATEGORIES = [kind for kind in vars(errors).values() if isinstance(kind, type) and kind.__mro__[1] is errors.TamisError]

_HEAD = """# Errors

Every error of Tamis is a `TamisError`. Its class says what you would do next, its `code` what happened (codes are stable: scripts may rely on
them), `name` names the offending thing and `remedy` says what to do. Each is also the builtin that a Python programmer would catch.

This page is made from the code by `docs/generate.py`.
"""


def codes() -> dict[str, set[str]]:
    """Codes by category: the ``code=`` of every call of an error's class in the package, its default where none is given."""
    found: dict[str, set[str]] = defaultdict(set)
    names = {kind.__name__ for kind in CATEGORIES}
    for path in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in names:
                given = next((k.value for k in node.keywords if k.arg == "code"), None)
                if isinstance(given, ast.Constant):
                    found[node.func.id].add(str(given.value))
                elif given is None:
                    found[node.func.id].add(getattr(errors, node.func.id).default_code)
    return found


def errors_page() -> str:
    found = codes()
    lines = [_HEAD, "| error | also a | meaning | codes |", "| --- | --- | --- | --- |"]
    for kind in CATEGORIES:
        meaning = " ".join((kind.__doc__ or "").split("\n\n")[0].split())
        listed = ", ".join(f"`{code}`" for code in sorted(found[kind.__name__] or {kind.default_code}))
        lines.append(f"| `{kind.__name__}` | `{kind.__mro__[2].__name__}` | {meaning} | {listed} |")
    return "\n".join(lines) + "\n"


PAGES = {"errors.md": errors_page}

if __name__ == "__main__":
    for name, make in PAGES.items():
        (HERE / name).write_text(make())
