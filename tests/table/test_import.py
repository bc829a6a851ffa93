"""``import tamis`` is light; names are fetched when first used."""

import subprocess
import sys

HEAVY = ["pyarrow", "numpy", "pyspark", "pandas", "polars", "duckdb", "obstore", "rich", "typer"]


def run(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)


def test_importing_loads_nothing_heavy() -> None:
    done = run(f"import sys, tamis; dir(tamis); tamis.TamisError; print([m for m in {HEAVY!r} if m in sys.modules])")
    assert (done.stdout.strip(), done.stderr) == ("[]", "")


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
