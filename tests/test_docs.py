"""Every example in the documentation runs, and prints what the page says it prints (docs/examples.py holds the rules).

A page is a program, executed from its first block to its last in an empty folder and an interpreter of its own, as a reader would.
"""

from __future__ import annotations

import functools
import importlib
import re
import sys
import tempfile
from collections import Counter
from pathlib import Path
from types import ModuleType

import pytest
from _pytest.mark import ParameterSet

import tamis
from tamis.world import world
from tests.conftest import IN_CI, java_problem

ROOT = Path(__file__).parent.parent
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
EVERY_PUSH = {"README.md"}
"""Pages with a Spark session that every push runs. Each such page starts a JVM of its own, so the others wait for a merge."""
RUNNABLE = [page for page in PAGES if re.search("^```(python|sql|console)$", page.read_text(), re.MULTILINE)]
LINK = re.compile(r"\]\(([^)#:]+)(?:#[^)]*)?\)")


def pages_to_run() -> list[ParameterSet]:
    """The pages with examples, each with its tier."""
    waiting = [
        p for p in RUNNABLE if re.search("SparkSession|tamis ingest", p.read_text()) and p.name not in EVERY_PUSH
    ]
    return [
        pytest.param(p, id=str(p.relative_to(ROOT)), marks=[pytest.mark.merge] if p in waiting else [])
        for p in RUNNABLE
    ]


@pytest.fixture
def docs(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The module ``docs/examples.py``."""
    monkeypatch.syspath_prepend(ROOT / "docs")
    return importlib.import_module("examples")


@functools.cache
def outputs_of(page: Path) -> list[str]:
    """What the page's examples print. A page runs once, however many tests look at it."""
    text = page.read_text()
    if ("spark" in text or "ingest" in text) and (problem := java_problem()):
        (pytest.fail if IN_CI else pytest.skip)(problem)
    environment = {**world().environment(), "SPARK_LOCAL_IP": "127.0.0.1"}
    with tempfile.TemporaryDirectory() as folder:
        return list(sys.modules["examples"].run_page(page, Path(folder), environment))


LACKS = ("MISSING_CATALOG_ABILITY.VIEWS", "does not support views", "at or near 'CHECK'", "CHANGES FROM VERSION")
"""What an older Spark says of statements that it does not know; Spark 4.3 knows all that the pages show."""


@pytest.mark.push_cases(6)
@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.parametrize("page", pages_to_run())
def test_examples_print_what_the_page_says(docs: ModuleType, page: Path) -> None:
    try:
        outputs = outputs_of(page)
    except RuntimeError as error:
        if not any(lack in str(error) for lack in LACKS):
            raise
        pytest.skip(f"{page.name} needs a newer Spark.")
    problems = docs.output_problems(docs.page_examples(page.read_text()), outputs)
    assert not problems, (
        f"{page.name}\n" + "\n".join(problems) + "\nIs it right? python docs/generate.py --outputs writes it down."
    )


@pytest.mark.spark
@pytest.mark.slow
def test_the_query_of_the_readme_counts_every_user(docs: ModuleType) -> None:
    """The page shows some of the rows; these are all."""
    days, minutes = 2, range(1440)
    clicks = Counter({user: days * n for user, n in Counter(minute % 100 for minute in minutes).items()})
    shown = re.findall(r"^\| *(\d+)\| *(\d+)\|$", "".join(outputs_of(ROOT / "README.md")), re.MULTILINE)
    assert {int(user): int(n) for user, n in shown} == clicks
    assert len(shown) == 100


def page(*blocks: tuple[str, str]) -> str:
    return "\n".join(f"Words.\n\n```{kind}\n{body}```\n" for kind, body in blocks).replace(
        "Words.\n\n```output", "```output"
    )


def problems(docs: ModuleType, text: str) -> list[str]:
    found = docs.page_examples(text)
    return docs.output_problems(found, docs.run_examples(found, "page.md"))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (page(("python", "print(6 * 7)\n"), ("output", "43\n")), "prints\n42\n"),
        (page(("python", "print(6 * 7)\n")), "no output block"),
        (page(("python", "assert 6 * 7 == 42\n"), ("output", "42\n")), "(nothing)"),
        (page(("python", "print(1, 2)\n"), ("output", "… …\n")), "matches everything"),
        (page(("python", "print(1)\nprint(2)\n"), ("output", "1\n")), "prints\n1\n2\n"),
        (page(("python", "print(1)\n"), ("output", "1\n2\n")), "the page says\n1\n2\n"),
        (page(("console", "$ tamis schema show nowhere  # exits with 1\n")), "NOT_FOUND"),
    ],
)
def test_a_wrong_output_is_seen(docs: ModuleType, text: str, message: str) -> None:
    (problem,) = problems(docs, text)
    assert message in problem


@pytest.mark.parametrize("expected", ["", "+---+\n|n  |\n+---+\n|2  |\n+---+\n"])
def test_rows_of_a_statement_must_be_on_the_page(docs: ModuleType, expected: str) -> None:
    session = """
class Frame:
    def __init__(self, *rows):
        self.columns, self.rows = ["n"] if rows else [], rows
    def collect(self):
        return self.rows
class spark:
    sql = lambda text: Frame((1,)) if text == "SELECT 1" else Frame()
"""
    blocks = ("python", session), ("sql", "CREATE TABLE t; SELECT 1;\n")
    right = "+---+\n|n  |\n+---+\n|1  |\n+---+\n"
    assert problems(docs, page(*blocks, ("output", right))) == []
    (problem,) = problems(docs, page(*blocks, ("output", expected)) if expected else page(*blocks))
    assert right in problem
    assert problems(docs, page(blocks[0], ("sql", "CREATE TABLE t\n"))) == []


def test_masks_stand_for_what_differs(docs: ModuleType) -> None:
    text = page(
        ("python", "for n in range(9): print('row', n, 'of', id(n))\n"), ("output", "row 0 of …\n…\nrow 8 of …\n")
    )
    assert problems(docs, text) == []
    assert docs.output_pattern("a …\n").fullmatch("a b\nc\n") is None, "a mask within a line ends with the line"
    assert docs.output_pattern("1.5\n").fullmatch("1x5\n") is None


def test_outputs_are_written_below_their_blocks(docs: ModuleType) -> None:
    """Those that fit stay as they are, and so do lines with masks."""
    text = page(
        ("python", "print('took', id(0))\nprint(2)\n"),
        ("output", "took …\n1\n"),
        ("python", "print(3)\n"),
        ("python", "x = 4\n"),
    )
    found = docs.page_examples(text)
    filled = docs.page_with_outputs(text, docs.run_examples(found, "page.md"))
    assert problems(docs, filled) == []
    assert "```output\ntook …\n2\n```" in filled
    assert "```output\n3\n```" in filled
    assert docs.page_with_outputs(filled, docs.run_examples(found, "page.md")) == filled
    with pytest.raises(ValueError, match="directly below"):
        docs.page_examples("```output\n1\n```\n")


def test_an_error_in_an_example_names_the_line_of_the_page(docs: ModuleType, tmp_path: Path) -> None:
    broken = tmp_path / "broken.md"
    broken.write_text(page(("python", "x = 1\n"), ("python", "assert x == 2\n")))
    with pytest.raises(RuntimeError, match=r'"broken.md", line 10'):
        docs.run_page(broken, tmp_path, world().environment())


def test_an_exit_code_that_differs_is_seen(docs: ModuleType) -> None:
    assert docs.command_words("tamis explain t --max-parts 1   # exits with 1") == (
        ["explain", "t", "--max-parts", "1"],
        1,
    )
    with pytest.raises(ValueError, match="not a tamis command"):
        docs.command_words("rm -rf x")
    with pytest.raises(RuntimeError, match="exited with 1, not 0"):
        problems(docs, page(("console", "$ tamis schema show nowhere\n")))


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    text = re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    missing = [target for target in LINK.findall(text) if not (page.parent / target).exists()]
    assert not missing, f"{page.name} links to {missing}"


PATHS = re.compile(
    r"`((?:src/tamis/|tests/|docs/|bench/|core/|storage/|engine/|spark/|table/|cli/)[\w/.-]+\.(?:py|java|md|json))`"
)


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_paths_that_a_page_names_are_there(page: Path) -> None:
    named = {match[1] for match in PATHS.finditer(page.read_text())}
    assert {
        path for path in named if not (ROOT / path).exists() and not (ROOT / "src" / "tamis" / path).exists()
    } == set()


def nav_pages() -> list[str]:
    """The pages in the site's navigation, relative to ``docs/``."""
    nav = (ROOT / "mkdocs.yml").read_text().split("\nnav:\n")[1]
    return re.findall(r": ([\w/.-]+\.md)$", nav, re.MULTILINE)


def test_every_page_is_in_the_navigation_once() -> None:
    from_root = {"changelog.md", "contributing.md"}  # added by docs/site_hooks.py
    pages = {path.relative_to(ROOT / "docs").as_posix() for path in (ROOT / "docs").rglob("*.md")} | from_root
    assert sorted(nav_pages()) == sorted(pages)


def heading_anchors(text: str) -> set[str]:
    """The anchors of a page's headings, as the site and GitHub make them."""
    headings = re.findall(r"^#+ (.+)$", re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.replace("`", "")).strip().lower().replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_anchors_lead_to_headings(page: Path) -> None:
    found = re.findall(r"\]\(([^):#]*)#([^)]+)\)", page.read_text())
    missing = [
        f"{target}#{anchor}"
        for target, anchor in found
        if anchor not in heading_anchors((page.parent / target if target else page).read_text())
    ]
    assert missing == []


@pytest.mark.usefixtures("docs")
def test_the_reference_has_every_public_name() -> None:
    reference = importlib.import_module("python_reference")
    text = reference.page()
    documented = set(re.findall(r"^#+ (?:tamis\.)?(\w+)$|^\| `tamis\.(\w+)`", text, re.MULTILINE))
    names = {name for pair in documented for name in pair if name}
    assert set(tamis.__all__) - {"schema"} <= names
    assert "tamis.schema.check_migration" in text
    assert not re.findall(r"^### \w+\._", text, re.MULTILINE)


@pytest.mark.slow
@pytest.mark.usefixtures("docs")
def test_generated_pages_are_fresh() -> None:
    module = importlib.import_module("generate")
    for name, make in module.PAGES.items():
        assert (ROOT / "docs" / name).read_text() == make(), f"docs/{name} is stale: run python docs/generate.py"


def test_every_code_that_a_test_expects_is_on_the_page() -> None:
    """Independent of how the page finds them: what a user can meet, some test meets."""
    page = set(re.findall(r"`([A-Z][A-Z_0-9]+)`", (ROOT / "docs" / "errors.md").read_text()))
    met = re.compile(r"\.code == \"([A-Z][A-Z_]+)\"")
    expected = {code for path in (ROOT / "tests").rglob("test_*.py") for code in met.findall(path.read_text())}
    assert len(expected) > 10
    assert expected <= page, f"docs/errors.md lacks {sorted(expected - page)}"
