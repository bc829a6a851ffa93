"""The house rules that a machine can check. An excuse that is no longer needed must go: the lists only shrink."""

from __future__ import annotations

import ast
import re
import subprocess
from collections.abc import Collection
from functools import cache
from pathlib import Path

from tests.import_graph import modules, parsed

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "src" / "tamis"
MODULES = sorted(PACKAGE.rglob("*.py"))
TESTS = sorted((ROOT / "tests").rglob("test_*.py"))

MODULE_LINES = 400
FUNCTION_LINES = 60
LONG_MODULES: frozenset[str] = frozenset()
LONG_FUNCTIONS: frozenset[str] = frozenset()
"""Excused, as ``path`` and ``path:function``."""

PARAMETERS = 8
MANY_PARAMETERS = {
    "src/tamis/cli/adopt.py:adopt": "typer reads a command's options from its parameters",
    "src/tamis/cli/compact.py:compact": "as above",
    "src/tamis/cli/query_commands.py:query": "as above",
    "src/tamis/cli/query_commands.py:explain": "as above",
    "src/tamis/table/adoption.py:adopt": "the public function, whose options are given by keyword",
    "src/tamis/table/table.py:scan": "the public method, whose options are given by keyword",
    "src/tamis/table/upkeep_verbs.py:compact": "as above",
}
"""Excused, with the reason."""

EMPTY_NAMES = {"utils", "util", "helpers", "helper", "common", "misc", "manager"}
MACHINE = {"time", "random", "secrets", "uuid"}
"""Modules that ask the machine; only ``world`` imports them."""

ONE_WORD = {
    "adopt", "analyze", "append", "attach", "backquote", "commit", "compact", "create", "decide", "delete", "evaluate", "export", "history", "load",
    "main", "merge", "open", "overwrite", "printable", "changes", "reports", "restore", "sync", "update", "vacuum", "verify", "world",
}  # fmt: skip
"""Functions of one word that other modules import: the verbs of a table and of the design."""

PROVENANCE = re.compile(r":test_(?:[a-z]?\d+_)|_(?:issue|review|round\d+|scenarios?|seed_\d+)(?:_|$)")
"""A number in front of a test's name, or a word for where it came from."""

ADDRESSES = re.compile(
    r"/(?:root|home|work|Users)/\w|/opt/\w+/simple|\b(?:test\.)?pypi\.org/simple|files\.pythonhosted\.org|(?:extra-)?index-url\s*=|find-links\s*="
)


def short(path: Path) -> str:
    return str(path.relative_to(ROOT))


def tracked() -> list[Path]:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False)
    if listed.returncode:  # an unpacked archive: what is there stands for what is tracked
        return [
            p
            for folder in ("src", "tests", "docs", "bench", "requirements")
            for p in (ROOT / folder).rglob("*")
            if p.is_file()
        ]
    return [ROOT / name for name in listed.stdout.split("\0") if name and (ROOT / name).is_file()]


def test_no_folder_came_by_accident() -> None:
    """What a program wrote into the folder that it was started in."""
    there = {path.relative_to(ROOT).parts[0] for path in tracked() if path.parent != ROOT}
    assert there <= {".ci", ".github", "bench", "docs", "requirements", "src", "tests"}, sorted(there)


def test_modules_fit() -> None:
    long = {short(p) for p in MODULES if len(p.read_text().splitlines()) > MODULE_LINES}
    assert long == LONG_MODULES


def test_functions_fit_a_screen() -> None:
    long = {
        f"{short(path)}:{node.name}"
        for path in MODULES
        for node in ast.walk(parsed(path))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and (node.end_lineno or 0) - node.lineno + 1 > FUNCTION_LINES
    }
    assert long == LONG_FUNCTIONS


def test_parameters_are_few() -> None:
    """A function with more takes a value that has names for them."""
    many = {
        f"{short(path)}:{node.name}"
        for path in MODULES
        for node in ast.walk(parsed(path))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and parameters(node) > PARAMETERS
    }
    assert many == set(MANY_PARAMETERS)


def parameters(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """How many a caller may give, without ``self`` or ``cls``."""
    names = [a.arg for a in (*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs)]
    return len(names) - (names[:1] in (["self"], ["cls"]))


def test_names_say_something() -> None:
    assert not [short(p) for p in [*MODULES, *TESTS] if EMPTY_NAMES & set(p.with_suffix("").parts[len(ROOT.parts) :])]


def test_functions_between_modules_can_be_searched_for() -> None:
    """Their names have two words or more, or are verbs that the design knows."""
    defined = {name: {f.name for f in functions(path)} for name, path in modules().items()}
    imported = {
        alias.name
        for path in MODULES
        for node in ast.walk(parsed(path))
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
        if alias.name in defined.get(node.module or "", ())
    }
    assert {name for name in imported if "_" not in name} == ONE_WORD


def test_names_of_tests_say_the_law() -> None:
    """Not where a test came from: no numbers of scenarios or lists, no issues, reviews or rounds."""
    names = [f"{short(path)}:{name}" for path in TESTS for name in (path.stem, *(f.name for f in functions(path)))]
    assert not [name for name in names if PROVENANCE.search(name)]


def test_no_module_of_tests_waits_for_a_merge() -> None:
    """The tier ``merge`` is for single tests and cases: every push runs some of every module."""
    marked = {short(path): path.read_text() for path in TESTS}
    assert not [name for name, text in marked.items() if re.search(r"^pytestmark\b.*\bmerge\b", text, re.MULTILINE)]
    for path in TESTS:
        tests = [f for f in functions(path) if f.name.startswith("test")]
        waiting = [f for f in tests if any(ast.unparse(d) == "pytest.mark.merge" for d in f.decorator_list)]
        assert not tests or len(waiting) < len(tests), f"{short(path)}: every push must run one of its tests"


def test_inits_only_re_export() -> None:
    """Imports, names, and the two hooks by which heavy names are fetched when first used."""
    more = []
    for path in sorted(PACKAGE.rglob("__init__.py")):
        for node in parsed(path).body:
            fits = isinstance(node, ast.Import | ast.ImportFrom | ast.Assign | ast.AnnAssign | ast.If) or (
                isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
            )
            hook = isinstance(node, ast.FunctionDef) and node.name in {"__getattr__", "__dir__"}
            more += [] if fits or hook else [f"{short(path)}:{node.lineno}"]
    assert more == []


def test_tests_can_fail() -> None:
    """Every test function asserts, or expects an error, itself or through a function that it names."""
    helpers = {path: functions(path) for path in (ROOT / "tests").rglob("*.py")}
    shared = [f for path, found in helpers.items() if not path.name.startswith("test_") for f in found]
    judged = {f.name for f in judging(shared)}
    idle = []
    for path in TESTS:
        judges = judging(helpers[path], judged)
        idle += [f"{short(path)}:{f.name}" for f in helpers[path] if f.name.startswith("test") and f not in judges]
    assert idle == []


def test_a_test_that_asserts_nothing_is_seen() -> None:
    planted = ast.parse(
        "def test_a():\n    helper()\ndef helper():\n    return 1\ndef test_b():\n    assert helper()\n"
    ).body
    assert {f.name for f in judging([f for f in planted if isinstance(f, ast.FunctionDef)])} == {"test_b"}


def test_helpers_live_in_modules_of_their_own() -> None:
    """What two test modules use is in a third one, whose name does not begin with ``test_``."""
    borrowed = []
    for path in sorted((ROOT / "tests").rglob("*.py")):
        for node in ast.walk(parsed(path)):
            origins = (
                [a.name for a in node.names]
                if isinstance(node, ast.Import)
                else [f"{node.module or ''}.{a.name}" for a in node.names]
                if isinstance(node, ast.ImportFrom)
                else []
            )
            borrowed += [f"{short(path)} imports {o}" for o in origins if re.search(r"(^|\.)test_\w+\.|\.test_\w+$", o)]
    assert borrowed == []


@cache
def functions(path: Path) -> list[ast.FunctionDef]:
    """The functions of a module; nobody changes the list."""
    return [node for node in ast.walk(parsed(path)) if isinstance(node, ast.FunctionDef)]


EXPECTING = {"assert", "raise", "raises", "fail", "warns", "run_state_machine_as_test"}


@cache
def named_in(function: ast.FunctionDef) -> frozenset[str]:
    """Names and attributes in a function, and its statements ``assert`` and ``raise``."""
    found = {
        "assert" if isinstance(node, ast.Assert) else "raise"
        for node in ast.walk(function)
        if isinstance(node, ast.Assert | ast.Raise)
    }
    found |= {node.id for node in ast.walk(function) if isinstance(node, ast.Name)}
    return frozenset(found | {node.attr for node in ast.walk(function) if isinstance(node, ast.Attribute)})


def judging(known: list[ast.FunctionDef], elsewhere: Collection[str] = ()) -> set[ast.FunctionDef]:
    """The functions that assert, raise or expect an error, or name one that does; ``elsewhere`` has the names of other such functions."""
    names = {f: named_in(f) for f in known}
    judges = {f for f in known if names[f] & EXPECTING}
    while True:
        judged = {f.name for f in judges}.union(elsewhere)
        more = {f for f in known if f not in judges and names[f] & judged}
        if not more:
            return judges
        judges |= more


def test_only_world_asks_the_machine() -> None:
    for path in MODULES:
        if path == PACKAGE / "world.py":
            continue
        for node in ast.walk(parsed(path)):
            names = (
                [a.name for a in node.names]
                if isinstance(node, ast.Import)
                else [node.module]
                if isinstance(node, ast.ImportFrom)
                else []
            )
            assert not MACHINE & set(names), (
                f"{short(path)}:{getattr(node, 'lineno', 0)} asks the machine; ask tamis.world"
            )
            asked = isinstance(node, ast.Attribute) and ast.unparse(node) in {"os.environ", "os.getenv", "os.urandom"}
            assert not asked, f"{short(path)} asks the machine; ask tamis.world"


def test_backquotes_are_written_in_one_place() -> None:
    """No other module doubles backquotes or matches doubled ones: it calls ``core.types.identifiers``."""
    rule = PACKAGE / "core" / "types" / "identifiers.py"
    assert [short(p) for p in MODULES if p != rule and doubles_backquotes(parsed(p))] == []
    assert doubles_backquotes(parsed(rule))


def doubles_backquotes(tree: ast.AST) -> bool:
    """A doubled backquote as a whole text, as ``replace`` takes it, or as a case of a regular expression."""
    texts = [node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)]
    return any(text == "``" or "|``)" in text for text in texts)


def test_waits_are_decided_in_one_place() -> None:
    """Only a retry policy sleeps; other modules run what they repeat through one."""
    asleep = {p.relative_to(PACKAGE).as_posix() for p in MODULES if ".sleep(" in p.read_text()}
    assert asleep == {"world.py", "storage/commit_log/retry_policy.py"}


def test_no_machine_is_named() -> None:
    """Nothing tracked names a developer's path or a package registry: it must work, and mean the same, everywhere."""
    for path in tracked():
        if path == Path(__file__) or path.suffix in {".parquet", ".png", ".orc", ".vortex", ".gz"}:
            continue
        found = ADDRESSES.findall(path.read_text(errors="replace"))
        assert not found, f"{short(path)} says {found}"


def test_an_address_is_seen() -> None:
    assert all(ADDRESSES.search(text) for text in ("--index-url=x", "/home/ann/x", "https://pypi.org/simple/"))


def test_every_requirement_is_pinned_by_hash() -> None:
    for path in sorted((ROOT / "requirements").glob("*.txt")):
        entries = re.findall(r"^([a-z0-9][^\s;]*)(.*?)(?=^[a-z0-9]|\Z)", path.read_text(), re.MULTILINE | re.DOTALL)
        assert entries
        for name, rest in entries:
            assert re.fullmatch(r"[a-z0-9.-]+==[\w.!+]+", name), f"{short(path)}: {name} has no exact version"
            assert "--hash=sha256:" in rest, f"{short(path)}: {name} has no hash"
