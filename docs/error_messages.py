"""The page of error messages: every message of the package with its remedy, read from the source, so that they can be read in one sitting."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterable

_HEAD = """# Error messages

This page lists all error messages of Tamis by category and code, each with its remedy. `{…}` marks a value that is inserted at run time. [Errors](errors.md) explains the
categories. A message in italics comes from elsewhere, for example from Spark.

This page is generated from the code by `docs/generate.py`.
"""


def page(calls: Iterable[tuple[str, ast.Call]]) -> str:
    """The page for calls of error classes: (name of the class, the call)."""
    found: dict[str, set[tuple[str, str, str]]] = defaultdict(set)
    for kind, call in calls:
        arguments = {keyword.arg: keyword.value for keyword in call.keywords}
        code = _template(arguments["code"]) if "code" in arguments else ""
        message = _template(call.args[0]) if call.args else "*none*"
        found[kind].add((code, message, _template(arguments["remedy"]) if "remedy" in arguments else ""))
    lines = [_HEAD]
    for kind in sorted(found):
        lines += [f"## {kind}", "", "| code | message | remedy |", "| --- | --- | --- |"]
        lines += [
            f"| {f'`{code}`' if code else ''} | {message} | {remedy} |" for code, message, remedy in sorted(found[kind])
        ]
        lines.append("")
    return "\n".join(lines)


def _template(node: ast.expr) -> str:
    """Text as written, with what is put into it in braces."""
    if isinstance(node, ast.Constant):
        return _cell(str(node.value))
    if isinstance(node, ast.JoinedStr):
        parts = (str(part.value) if isinstance(part, ast.Constant) else _braces(part) for part in node.values)
        return _cell("".join(parts))
    if isinstance(node, ast.IfExp):
        return f"{_template(node.body)} / {_template(node.orelse)}"
    return f"*{_cell(ast.unparse(node))}*"


def _braces(node: ast.expr) -> str:
    value = node.value if isinstance(node, ast.FormattedValue) else node
    text = ast.unparse(value)
    return "{" + (text if len(text) <= 30 else "…") + "}"


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;")
