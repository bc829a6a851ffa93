"""The command line ``tamis``; docs/command-line.md lists its commands."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line of this process, and exit. Says what to install if its packages are missing."""
    try:
        from tamis.cli.app import main as run
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package not in {"rich", "typer"}:
            raise
        sys.stderr.write(f"[MISSING_PACKAGE] The command line needs {package}. pip install 'tamis[cli]'\n")
        sys.exit(1)
    run()


__all__ = ["main"]
