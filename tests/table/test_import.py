"""``import tamis`` is light; names are fetched when first used."""

import ast
import importlib
import subprocess
import sys

import pytest

from tamis.engine import operations
from tests.import_graph import lazy_imports, modules

HEAVY = ["pyarrow", "numpy", "pyspark", "pandas", "polars", "duckdb", "obstore", "rich", "typer"]


def run(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)


def test_importing_loads_nothing_heavy() -> None:
    done = run(f"import sys, tamis; dir(tamis); tamis.TamisError; print([m for m in {HEAVY!r} if m in sys.modules])")
    assert (done.stdout.strip(), done.stderr) == ("[]", "")


def test_opening_a_table_loads_what_a_scan_needs() -> None:
    """pandas is loaded by ``pyarrow.dataset`` and by ``pyarrow.array`` of a list, the rest by the verbs that use it."""
    unneeded = [
        *("pandas", "polars", "pyarrow.dataset", "pyspark", "typer"),
        *(
            "tamis.bridges.adoption",
            "tamis.bridges.export.current_exports",
            "tamis.engine.operations.layout",
            "tamis.engine.operations.rows.merge_plan",
            "tamis.table.arrow_dataset",
        ),
    ]
    done = run(f"import sys, tamis; tamis.open; print([m for m in {unneeded!r} if m in sys.modules])")
    assert (done.stdout.strip(), done.stderr) == ("[]", "")


@pytest.mark.slow
def test_lazy_names_are_found_when_asked_for() -> None:
    """Each lazy module and name exists: a name with a spelling error would fail only in its verb."""
    found = {
        (home, name) for path in modules().values() for name, home in lazy_imports(ast.parse(path.read_text())).items()
    }
    assert len(found) > 50
    for home, name in found:
        module = importlib.import_module(home)
        assert home.endswith(f".{name}") or hasattr(module, name), (home, name)


def test_a_name_that_is_none_is_refused_as_python_does() -> None:
    with pytest.raises(AttributeError, match=r"module 'tamis.engine.operations' has no attribute 'compacted'"):
        operations.compacted  # type: ignore[attr-defined]  # noqa: B018  # what a typing error does


def test_the_embedded_path_needs_no_spark() -> None:
    done = run(
        "import sys, tamis; tamis.create, tamis.open, tamis.Table, tamis.reports; print('pyspark' in sys.modules)"
    )
    assert (done.stdout.strip(), done.stderr) == ("False", "")


def test_the_command_line_starts_light() -> None:
    for module, loaded in (("tamis.cli", "[]"), ("tamis.cli.app", "['typer']")):
        done = run(f"import sys, {module}; print([m for m in {HEAVY!r} if m in sys.modules])")
        assert (done.stdout.strip(), done.stderr) == (loaded, "")


def test_every_public_name_is_there() -> None:
    import tamis

    for name in tamis.__all__:
        assert getattr(tamis, name) is not None
