"""Writes the TPC-DS tables as Parquet files: ``python tpcds_data.py FOLDER SCALE``. Runs in an environment of its own (requirements/tpcds.txt).

DuckDB loads extensions of its own version only, and the one that tests compare with is newer than the newest generator.
"""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path

import duckdb


def write_tables(folder: Path, scale: float) -> None:
    """One Parquet file per table; nothing where the folder has them already."""
    if (folder / "web_site.parquet").exists():
        return
    folder.mkdir(parents=True, exist_ok=True)
    package = find_spec("duckdb_extension_tpcds")
    if package is None or package.origin is None:
        raise ModuleNotFoundError("duckdb_extension_tpcds is not installed: pip install -r requirements/tpcds.txt")
    extension = next(Path(package.origin).parent.rglob("tpcds.duckdb_extension"))
    connection = duckdb.connect()
    connection.execute(f"LOAD '{extension}'")
    connection.execute(f"CALL dsdgen(sf = {scale})")
    for (name,) in sorted(
        connection.execute("SHOW TABLES").fetchall()
    ):  # web_site comes last: it says that all are there
        connection.execute(f"COPY {name} TO '{folder / name}.parquet' (FORMAT parquet)")


if __name__ == "__main__":
    write_tables(Path(sys.argv[1]), float(sys.argv[2]))
