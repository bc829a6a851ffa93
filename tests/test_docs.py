"""Every example in the documentation runs: a page is a program, executed from its first block to its last in an empty folder.

``python`` and ``sql`` blocks share one interpreter (``sql`` needs a ``spark`` that the page has made), ``console`` blocks run the command
line; a line that should fail says ``# exits with N``. Blocks of any other kind are pictures.
"""

from __future__ import annotations

import importlib
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tamis.world import world
from tests.conftest import IN_CI, java_problem

ROOT = Path(__file__).parent.parent
PAGES = sorted(p for p in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])
FENCE = re.compile(r"^```(python|sql|console)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(([^)#:]+)(?:#[^)]*)?\)")


def program(page: Path) -> str:
    """The page's blocks as one Python program."""
    lines = ["import subprocess, sys"]
    for kind, body in FENCE.findall(page.read_text()):
        if kind == "python":
            lines.append(body)
        elif kind == "sql":
            lines += [f"spark.sql({statement.strip()!r}).collect()" for statement in body.split(";") if statement.strip()]
        else:
            lines += [command(line[2:]) for line in body.splitlines() if line.startswith("$ ")]
    return "\n".join(lines)


def command(line: str) -> str:
    """A line of a console as a call of this interpreter's command line, its exit code checked."""
    text, _, comment = line.partition("# exits with ")
    words = shlex.split(text)
    assert words[0] == "tamis", f"{line!r} is no command of ours"
    call = ["-c", "from tamis.cli import main; main()", *words[1:]]
    return f"assert subprocess.run([sys.executable, *{call!r}]).returncode == {int(comment or 0)}, {line!r}"


RUNNABLE = [page for page in PAGES if FENCE.search(page.read_text())]
SHARED = [page for page in RUNNABLE if "SparkSession" in program(page) and "checkpoint" not in program(page)]
"""Pages that share this process's JVM. A stream's checkpoint follows the folder in which the JVM was started."""


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.parametrize("page", [page for page in RUNNABLE if page not in SHARED], ids=lambda p: str(p.relative_to(ROOT)))
def test_examples_run(page: Path, tmp_path: Path) -> None:
    code = program(page)
    if ("spark" in code or "ingest" in code) and (problem := java_problem()):
        (pytest.fail if IN_CI else pytest.skip)(problem)
    script = tmp_path / "page.py"
    script.write_text(code)
    environment = {**world().environment(), "SPARK_LOCAL_IP": "127.0.0.1"}
    done = subprocess.run([sys.executable, str(script)], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{page.name}:\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}"


@pytest.mark.slow
@pytest.mark.parametrize("page", SHARED, ids=lambda p: str(p.relative_to(ROOT)))
def test_examples_of_spark_run(page: Path, spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In this process and its JVM, in a session of their own: what they ask of the builder (threads, no UI) the one here has. A catalog's name stands for one folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(type(spark.builder), "getOrCreate", lambda _: _as_delivered(spark.newSession()))
    code = re.sub(r"\blake\b", f"lake_{page.stem.lower().replace('-', '_')}", program(page))
    with folder_of_java(spark, tmp_path):
        exec(compile(code, page.name, "exec"), {"__name__": "__main__"})


def _as_delivered(session: Any) -> Any:
    """The session without what tests set for themselves."""
    session.conf.unset("tamis.read.native_bytes")
    return session


@contextmanager
def folder_of_java(spark: Any, folder: Path) -> Iterator[None]:
    """Where the JVM, whose working folder cannot be changed, finds relative paths."""
    java = spark.sparkContext._jvm.org.apache.hadoop.fs
    files = java.FileSystem.getLocal(spark.sparkContext._jsc.hadoopConfiguration())
    home = files.getWorkingDirectory()
    files.setWorkingDirectory(java.Path(folder.as_uri()))
    try:
        yield
    finally:
        files.setWorkingDirectory(home)


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    text = re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    missing = [target for target in LINK.findall(text) if not (page.parent / target).exists()]
    assert not missing, f"{page.name} links to {missing}"


def test_generated_pages_are_fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(ROOT / "docs")
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


def test_a_failing_example_is_seen() -> None:
    assert command("tamis explain t --max-parts 1   # exits with 1").endswith(
        "returncode == 1, 'tamis explain t --max-parts 1   # exits with 1'"
    )
    with pytest.raises(AssertionError):
        command("rm -rf x")
