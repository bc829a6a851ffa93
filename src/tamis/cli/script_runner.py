"""Runs a Python script in this process as if Python had started it."""

from __future__ import annotations

import runpy
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path


def run_python(script: Path, arguments: Sequence[str]) -> int:
    """Run ``script`` as ``__main__``; return its exit code. The traceback of an error goes to stderr."""
    argv, path = sys.argv, list(sys.path)
    sys.argv = [str(script), *arguments]
    sys.path[0:0] = [str(script.resolve().parent)]
    try:
        runpy.run_path(str(script), run_name="__main__")
    except SystemExit as exit_:
        return _code(exit_.code)
    except Exception:  # noqa: BLE001  # whatever the script raises is its own to show
        traceback.print_exc()
        return 1
    finally:
        sys.argv, sys.path[:] = argv, path
    return 0


def _code(code: object) -> int:
    """Return the exit code that Python makes of ``sys.exit(code)``."""
    if code is None or isinstance(code, int):
        return code or 0
    sys.stderr.write(f"{code}\n")
    return 1
