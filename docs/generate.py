"""Writes the pages that are made from the code: ``python docs/generate.py``. A test compares them with what stands in the tree.

``python docs/generate.py --outputs [PAGE …]`` runs the examples of all pages, or of those named, and writes what they print below them (``examples.py``).
Read what changed: a run that prints something wrong writes it down, too.
"""

from __future__ import annotations

import ast
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import architecture
import command_line
import error_messages
import examples
import python_reference
import source_tree
import speed
import which_filters

from tamis import errors
from tamis.core.schema import history_checks

HERE = Path(__file__).parent
CATEGORIES = [kind for kind in vars(errors).values() if isinstance(kind, type) and kind.__mro__[1] is errors.TamisError]

_HEAD = """# Errors

Every error of Tamis is a `TamisError`. Its class tells you what kind of reaction it needs, and its `code` what happened. Codes are stable, so scripts may rely on
them. `name` is the offending object, and `remedy` says what to do. Each class also derives from the builtin error that a Python programmer would catch.

This page is generated from the code by `docs/generate.py`.
"""

_DESIGN_HEAD = """# Design notes

Each note records one decision: the question, the choice, and the alternatives that were rejected. [Architecture](../architecture.md) describes
the code as it is now. Figures in a note were measured when the decision was made. They justify the decision, and are not claims about the current
code; `make bench` measures that.

This list is generated from the notes by `docs/generate.py`.
"""

DERIVED = {
    "IncompatibleSchema": {f"MIGRATION_{rule.upper()}" for rule in history_checks.RULES},
    "SchemaFenced": {f"FENCED_{rule.upper()}" for rule in history_checks.RULES},
}
"""Codes that are made from the names of rules."""


def codes() -> dict[str, set[str]]:
    """Codes by category: the ``code=`` of every call of an error's class in the package, its default where none is given.

    Where the code is a parameter of the function around, each call of that function gives one. Raises ``ValueError`` naming what is neither.
    """
    found: dict[str, set[str]] = defaultdict(set, {kind: set(names) for kind, names in DERIVED.items()})
    for path in _modules():
        for function, kind, node in _errors(path):
            given = next((k.value for k in node.keywords if k.arg == "code"), None)
            if given is None:
                found[kind].add(getattr(errors, kind).default_code)
            elif isinstance(given, ast.Constant):
                found[kind].add(str(given.value))
            elif isinstance(given, ast.IfExp):
                found[kind] |= {str(ast.literal_eval(choice)) for choice in (given.body, given.orelse)}
            elif not (
                isinstance(given, ast.Attribute) and given.attr == "code"
            ):  # another error's, counted where that is made
                found[kind] |= _passed(function, given, path)
    return found


def _modules() -> list[Path]:
    """All modules but that of the errors themselves."""
    return [path for path in source_tree.modules() if path != source_tree.SOURCE / "errors.py"]


def _errors(path: Path) -> Iterator[tuple[ast.FunctionDef | None, str, ast.Call]]:
    """Each call of an error's class in a module, with the function that it stands in and the name of the class."""
    names = {kind.__name__ for kind in CATEGORIES}
    around = source_tree.functions_around(path)
    for node in source_tree.nodes_of(path):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in names:
            yield around.get(id(node)), node.func.id, node


def _passed(function: ast.FunctionDef | None, given: ast.expr, path: Path) -> set[str]:
    """The values of the expression ``given`` for all that ``function`` is called with."""
    named = {node.id for node in ast.walk(given) if isinstance(node, ast.Name)}
    arguments = function.args.args if function else []
    at = next((n for n, argument in enumerate(arguments) if argument.arg in named), None)
    if function is None or at is None:
        raise ValueError(f"{path}:{given.lineno}: which codes can this be? Make it a parameter, or add it to DERIVED.")
    parameter, values = arguments[at].arg, set()
    if at >= len(arguments) - len(function.args.defaults):
        values.add(ast.literal_eval(function.args.defaults[at - len(arguments)]))
    for call in source_tree.calls_by_name().get(function.name, ()):
        value = (
            call.args[at] if at < len(call.args) else next((k.value for k in call.keywords if k.arg == parameter), None)
        )
        if isinstance(value, ast.Constant):
            values.add(value.value)
    if not values:
        raise ValueError(f"{path}:{given.lineno}: nobody calls {function.name} by its name.")
    expression = compile(ast.Expression(given), str(path), "eval")
    return {str(eval(expression, {parameter: value})) for value in values}  # noqa: S307  # an expression of our own source


def errors_page() -> str:
    found = codes()
    lines = [_HEAD, "| error | also a | meaning | codes |", "| --- | --- | --- | --- |"]
    for kind in CATEGORIES:
        meaning = " ".join((kind.__doc__ or "").split("\n\n")[0].split())
        listed = ", ".join(f"`{code}`" for code in sorted(found[kind.__name__] or {kind.default_code}))
        lines.append(f"| `{kind.__name__}` | `{kind.__mro__[2].__name__}` | {meaning} | {listed} |")
    return "\n".join(lines) + "\n"


def messages_page() -> str:
    return error_messages.page((kind, node) for path in _modules() for _, kind, node in _errors(path))


def design_page() -> str:
    """The list of design notes, by the headings of their files."""
    notes = sorted((HERE / "design").glob("0*.md"))
    listed = [f"- [{note.read_text().splitlines()[0].removeprefix('# ')}]({note.name})" for note in notes]
    return "\n".join([_DESIGN_HEAD, *listed]) + "\n"


PAGES = {
    "architecture.md": architecture.page,
    "command-line.md": command_line.page,
    "error-messages.md": messages_page,
    "design/README.md": design_page,
    "errors.md": errors_page,
    "options.md": python_reference.options_page,
    "python-reference.md": python_reference.page,
    "speed.md": speed.page,
    "which-filters-skip.md": which_filters.page,
}

if __name__ == "__main__":
    if "--outputs" in sys.argv:
        named = [Path(name) for name in sys.argv[1:] if name != "--outputs"]
        examples.fill_outputs(named or [*HERE.parent.glob("*.md"), *sorted(HERE.rglob("*.md"))])
    else:
        for name, make in PAGES.items():
            (HERE / name).write_text(make())
