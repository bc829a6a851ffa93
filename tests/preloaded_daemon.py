"""Spark's Python daemon with the modules that its workers need imported before it forks them.

A worker dies with each task that fails, and tests make many tasks fail: a new one took a third of a second of processor time to import
pandas, pyarrow and Tamis. The session of ``tests/conftest.py`` starts this module in place of ``pyspark.daemon``.
"""

from __future__ import annotations

import gc
import sys
from importlib import import_module
from importlib.util import find_spec

TASKS = ("change_task", "generated_task", "read_task", "row_change_task", "write_task")
PRELOADED = ("pandas", "pyarrow.compute", "pyspark.worker", *(f"tamis.spark.executors.{task}" for task in TASKS))


def preload_modules() -> None:
    """Import ``PRELOADED``, for the workers that this process forks."""
    # A worker reads the directory of each archive on its path anew for every task. The same pyspark is installed beside pytest.
    for archive in [path for path in sys.path if path.endswith(".zip")]:
        sys.path.remove(archive)
        sys.path_importer_cache.pop(archive, None)
    for module in PRELOADED:
        import_module(module)
    gc.collect()
    gc.freeze()  # a worker collects garbage after every task, and need not visit what was imported


if __name__ == "__main__":
    if all(map(find_spec, ("pandas", "pyarrow", "tamis"))):  # the tests of executors without them choose another Python
        preload_modules()
    import_module("pyspark.daemon").manager()
