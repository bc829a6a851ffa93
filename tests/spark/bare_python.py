"""An interpreter that has PySpark, as Spark brings it, and nothing else."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

_SCRIPT = """#!/bin/sh
PYTHONPATH=$(printf %s "$PYTHONPATH" | tr : '\\n' | grep -E '(pyspark|py4j-[^/]*)\\.zip' | paste -sd: -)
export PYTHONPATH
exec "{python}" "$@"
"""


def made(folder: Path) -> Path:
    """The interpreter: a script that forgets PYTHONPATH, where a developer's may lead to Tamis."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder / "venv"], check=True)
    script = folder / "python"
    script.write_text(_SCRIPT.format(python=folder / "venv" / "bin" / "python"))
    script.chmod(0o755)
    return script
