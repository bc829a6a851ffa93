"""The entry point of the program ``tamis``, which checks for the packages of the command line first."""

from __future__ import annotations

import sys
from importlib.util import find_spec

_PACKAGES = ("rich", "typer")


def main() -> None:
    """Run the command line of this process, and exit. Says what to install if its packages are missing."""
    missing = [package for package in _PACKAGES if find_spec(package) is None]
    if missing:
        sys.stderr.write(f"[MISSING_PACKAGE] The command line needs {missing[0]}. pip install 'tamis[cli]'\n")
        sys.exit(1)
    from tamis.cli.app import main as run

    run()
