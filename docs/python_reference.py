"""The pages ``python-reference.md`` and ``options.md``: the public interface, read from signatures and docstrings in the source."""

from __future__ import annotations

import ast
import re
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from tamis.engine.scan import scan_options
from tamis.engine.scan.scan_options import Options
from tamis.spark.options import source_options
from tamis.spark.options.foreign_options import FOREIGN
from tamis.storage.object_store import storage_options

SOURCE = Path(__file__).parent.parent / "src" / "tamis"

_HEAD = """# Python reference

`import tamis` gives these names. Everything else below `tamis` is internal ([versions and compatibility](compatibility.md)). Values
are Spark SQL text. A filter (`RowFilter`) is Spark SQL text, or [a pyarrow or Polars expression](python.md#filters-of-pyarrow-and-polars). [Options](options.md) lists what `options=` and `properties=` take, [errors](errors.md) lists every code.

This page is generated from the docstrings by `docs/generate.py`.
"""

_OPTIONS_HEAD = """# Options

An option of a scan or query overrides a setting of the Spark session, which overrides a property of the table:

```python
import pyarrow as pa
import tamis

table = tamis.create("events", pa.schema({"n": pa.int64()}), properties={"tamis.read.lazy": "on"})
table.append(pa.table({"n": [1, 2, 3]}))
scan = table.scan("n > 1", options={"tamis.scan.max_bytes": "64MB"})
print(scan.count(), scan.options.read_lazy)
```

```output
2 on
```

In Spark SQL write `FROM t WITH ('tamis.read.lazy' = 'on')`, `SET tamis.read.lazy = on`, or `TBLPROPERTIES ('tamis.read.lazy' = 'on')`. An unknown
name and a value that an option cannot have are refused (`UNKNOWN_OPTION`, `BAD_OPTION`). `timezone` and `ansi` belong to a query and cannot be
properties; in Spark they are the session's. Options that disable skipping change no result of a query, except which of several equally valid rows a
LIMIT, or an order with ties, returns. A change of rows can conflict with more commits beside it: without statistics (`tamis.stats.filter` off for the change, or `tamis.stats.collect` off for the
other commit) nothing proves that they concern different rows, and the later one fails with `Conflict`.

[Readers and writers](#readers-and-writers) of Spark have options of their own; [object stores](#object-stores) have theirs.

This page is generated from the code by `docs/generate.py`.

## Queries and tables

| option | values | default | effect |
| --- | --- | --- | --- |
"""

_SOURCES_HEAD = """
## Readers and writers

These are options of `spark.read`, `spark.readStream`, `df.write` and `df.writeStream`, by path (`format("tamis")`) and by table. Their names may be written in any case. Every other option is an error: one that is unknown (`UNKNOWN_OPTION`), one that
has no effect where it is given, and one of another format (both `BAD_OPTION`). A switch that is `false` passes everywhere. Spark's own options, such as `checkpointLocation` and `queryName`, pass, too.

The `tamis.` options above are also options of reads and of writes into tables of a catalog. For writes by path and `df.writeStream`, set them in the session's conf. `versionAsOf` of `spark.readStream.table` is refused by Spark itself.

| option | where | values | effect |
| --- | --- | --- | --- |
"""

_FOREIGN_HEAD = """
### Options of other formats

These are refused by name.

| option | known from | what to do |
| --- | --- | --- |
"""

_STORES_HEAD = """
## Object stores

These are options of `storage_options=`, of `--storage-option`, and of reads, writes and streams by path. They have these names everywhere, in lower or upper case, with or without the prefix of the environment's variables: `access_key_id` and
`AWS_ACCESS_KEY_ID` are the same. [Object stores and credentials](object-stores.md) says where else they come from. No plan, report or error shows a value.

| store | option | meaning |
| --- | --- | --- |
"""

FUNCTIONS = [
    ("table/table.py", "create"),
    ("table/table.py", "open"),
    ("table/adoption.py", "adopt"),
    ("table/table.py", "scan_polars"),
    ("spark/session.py", "attach"),
]
REPORTS = [("engine/scan/report/scan_report.py", "reports"), ("engine/scan/report/report_hooks.py", "on_report")]
CLASSES: list[tuple[str, list[tuple[str, str]]]] = [
    (
        "Table",
        [
            ("table/table.py", "Table"),
            ("table/change_verbs.py", "ChangeVerbs"),
            ("table/read_verbs.py", "ReadVerbs"),
            ("table/schema_verbs.py", "SchemaVerbs"),
            ("table/upkeep_verbs.py", "UpkeepVerbs"),
            ("table/index_verbs.py", "IndexVerbs"),
        ],
    ),
    ("Scan", [("engine/scan/scan.py", "Scan")]),
    ("Report", [("engine/scan/report/scan_report.py", "Report")]),
    ("CommitReport", [("engine/scan/report/report_hooks.py", "CommitReport")]),
    ("Merge", [("table/merge_builder.py", "Merge")]),
    ("Alter", [("table/alter_builder.py", "Alter")]),
    ("Result", [("engine/operations/result.py", "Result")]),
    ("Plan", [("engine/scan/scan_plan.py", "Plan")]),
]
"""Public classes, each with the classes in the source that make it."""

FIELDS = {"CommitReport", "Plan", "Result"}
"""Classes whose fields are public."""

INTERNAL = {
    "Table": {"snapshot", "store", "bind_filter", "merge_columns", "write_snapshot"},
    "Scan": {"plan_read"},
    "Report": {
        "record_planning",
        "record_lookup",
        "record_answered",
        "record_search",
        "record_join",
        "record_unread",
        "add",
        "record_violation",
        "close",
        "finish",
        "for_execution",
    },
    "Result": {"metrics"},
}
"""Methods without an underscore that other layers call and users do not. ``page`` refuses a name that is not there."""


def page() -> str:
    sections = [_HEAD, "## Functions", ""]
    for path, name in [*FUNCTIONS, *REPORTS]:
        sections += _callable(f"tamis.{name}", _named(path, name), method=False)
    for name, sources in CLASSES:
        sections += _class(name, [_named(path, class_name) for path, class_name in sources])
    sections += ["## Schemas", "", "`tamis.schema` checks schemas without a table.", ""]
    for name in ("check_migration", "check_reader"):
        function = _named("core/schema/history_checks.py", name)
        sections += _callable(f"tamis.schema.{name}", function, method=False)
    sections += ["## Errors", ""]
    return "\n".join([*sections, *_error_lines()]).rstrip("\n") + "\n"


def options_page() -> str:
    """The page of options. Raises ``ValueError`` naming an option without a docstring."""
    meanings = dict(_attributes(_named("engine/scan/scan_options.py", "Options")))
    lines = []
    for name, default in Options().as_dict().items():
        attribute, read = scan_options._SWITCHES[name]
        if not meanings.get(attribute):
            raise ValueError(f"Option {name} has no docstring: add one below Options.{attribute}.")
        cells = [f"`{name}`", _values(read), _default(default), _one_line(meanings[attribute])]
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return _OPTIONS_HEAD + "\n".join([*lines, *_source_options(), *_storage_options()]) + "\n"


def _source_options() -> Iterator[str]:
    yield _SOURCES_HEAD.rstrip("\n")
    for option in source_options.OPTIONS:
        names = ", ".join(f"`{name}`" for name in (option.name, *option.aliases))
        uses = ", ".join(_use(use) for use in source_options.Use if use in option.uses)
        yield f"| {names} | {uses} | {option.values} | {option.effect} |"
    yield _FOREIGN_HEAD.rstrip("\n")
    for foreign in FOREIGN.values():
        yield f"| `{foreign.name}` | {foreign.source} | {foreign.remedy.replace('|', '/')} |"


def _use(use: source_options.Use) -> str:
    """A place in words, with its code marked."""
    return re.sub(r"((?:spark|df)\.\S+|readChangeFeed)", r"`\1`", use)


def _storage_options() -> Iterator[str]:
    yield _STORES_HEAD.rstrip("\n")
    stores = {"S3": storage_options.S3, "Google Cloud Storage": storage_options.GCS, "Azure": storage_options.AZURE}
    for store, names in {**stores, "all": {**storage_options.CLIENT, **storage_options.RETRIES}}.items():
        yield from (f"| {store} | `{name}` | {meaning} |" for name, meaning in names.items())


def _values(read: Callable[[Any], Any]) -> str:
    """What an option takes, in the words of the error that refuses another value."""
    try:
        read("")
    except ValueError as error:
        return str(error.args[0])
    return "names, separated by commas"


def _default(value: Any) -> str:
    if value is None or value == ():
        return ""
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, int) and value >= 2**20 and value % 2**20 == 0:
        return f"{value // 2**20} MB"
    return f"{value:g}" if isinstance(value, float) else str(value)


def _named(path: str, name: str) -> Any:
    """The definition of a function or class in a module of the source."""
    found = (node for node in ast.parse((SOURCE / path).read_text()).body if getattr(node, "name", None) == name)
    return next(found)


def _class(name: str, sources: list[ast.ClassDef]) -> Iterator[str]:
    yield from (f"## {name}", "", _markdown(ast.get_docstring(sources[0]) or ""), "")
    fields = [(at, text) for at, text in _attributes(sources[0]) if name in FIELDS]
    if fields:
        yield "Fields:\n"
        yield from (f"- `{at}`{f': {_one_line(text)}' if text else ''}" for at, text in fields)
        yield ""
    methods = {node.name for source in sources for node in source.body if isinstance(node, ast.FunctionDef)}
    if gone := INTERNAL.get(name, set()) - methods:
        raise ValueError(f"{name} has no {', '.join(sorted(gone))}: remove it from INTERNAL.")
    for source in sources:
        for node in source.body:
            hidden = getattr(node, "name", "_").startswith("_") or getattr(node, "name", "") in INTERNAL.get(name, ())
            if isinstance(node, ast.FunctionDef) and not hidden:
                yield from _callable(f"{name}.{node.name}", node, method=True)


def _callable(name: str, node: ast.FunctionDef, *, method: bool) -> Iterator[str]:
    """A function's heading, signature and docstring; a property has no parentheses."""
    decorators = {ast.unparse(d) for d in node.decorator_list}
    yield from (f"### {name}", "", "```text", *_signature(name.rsplit(".", 1)[-1], node, decorators, method), "```", "")
    if text := ast.get_docstring(node):
        yield from (_markdown(text), "")


def _signature(name: str, node: ast.FunctionDef, decorators: set[str], method: bool) -> list[str]:
    result = f" -> {ast.unparse(node.returns)}" if node.returns else ""
    if "property" in decorators:
        return [f"{name}{result}"]
    arguments = ast.parse(ast.unparse(node)).body[0].args  # type: ignore[attr-defined]  # a copy that may be changed
    if method and "staticmethod" not in decorators:
        arguments.args = arguments.args[1:]
    each = [re.sub(r"^(\w+: .+?)=", r"\1 = ", part) for part in _split(ast.unparse(arguments))]
    line = f"{name}({', '.join(each)}){result}"
    return [line] if len(line) <= 100 else [f"{name}(", *(f"    {part}," for part in each), f"){result}"]


def _split(arguments: str) -> Iterator[str]:
    """The arguments one by one: the text split at commas outside of brackets."""
    depth = start = 0
    for at, character in enumerate(arguments):
        depth += (character in "([{") - (character in ")]}")
        if character == "," and not depth:
            yield arguments[start:at].strip()
            start = at + 1
    if arguments[start:].strip():
        yield arguments[start:].strip()


def _attributes(node: ast.ClassDef) -> Iterator[tuple[str, str]]:
    """The fields of a class with the strings below them."""
    for field, below in zip(node.body, [*node.body[1:], None], strict=True):
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name):
            text = below.value.value if isinstance(below, ast.Expr) and isinstance(below.value, ast.Constant) else ""
            yield field.target.id, str(text)


def _error_lines() -> Iterator[str]:
    tree = ast.parse((SOURCE / "errors.py").read_text())
    yield from ("| error | also a | raised for |", "| --- | --- | --- |")
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            bases = [ast.unparse(base) for base in node.bases if ast.unparse(base) != "TamisError"]
            summary = (ast.get_docstring(node) or "").split("\n\n")[0]
            yield f"| `tamis.{node.name}` | `{bases[0]}` | {_one_line(summary)} |"
    base = next(node for node in tree.body if isinstance(node, ast.ClassDef))
    yield from ("", _markdown((ast.get_docstring(base) or "").split("\n\n", 1)[1]))


def _markdown(text: str) -> str:
    """A docstring as Markdown: literals in single backquotes, ``::`` blocks fenced."""
    text = re.sub(
        r"::\n\n((?:    .*\n?|\n)+)",
        lambda m: ":\n\n```text\n" + textwrap.dedent(m[1]).strip("\n") + "\n```\n",
        text,
    )
    pieces = re.split(r"(```.*?```|``.+?``)", text, flags=re.DOTALL)
    return "".join(_literal(piece) if at % 2 else piece.replace("<", "&lt;") for at, piece in enumerate(pieces))


def _literal(piece: str) -> str:
    return piece if piece.startswith("```") else piece[1:-1]


def _one_line(text: str) -> str:
    return " ".join(_markdown(text).split())
