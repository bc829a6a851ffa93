"""Run by the Python of ``TAMIS_PEERS_PYTHON``: reads exports by other engines, and prints what each returns as JSON.

Arguments: the format (``delta``, ``iceberg``), the table's folder, a filter or an empty text, the names of the readers.
It imports nothing of ours: the engines stand in an environment without Tamis.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any


def metadata_file(path: str) -> str:
    number = Path(path, "metadata", "version-hint.text").read_text()
    return f"{path}/metadata/v{number}.metadata.json"


def sql(where: str) -> str:
    return f" WHERE {where}" if where else ""


def duckdb(kind: str, path: str, where: str) -> Any:
    connection = import_module("duckdb").connect()
    for name in ("avro", "iceberg") if kind == "iceberg" else ("delta",):
        package = import_module(f"duckdb_extension_{name}")
        (file,) = Path(str(package.__file__)).parent.glob(f"extensions/*/{name}.duckdb_extension")
        connection.execute(f"LOAD '{file}'")
    place = metadata_file(path) if kind == "iceberg" else path
    return connection.execute(f"SELECT * FROM {kind}_scan('{place}'){sql(where)}").to_arrow_table()


def daft(kind: str, path: str, where: str) -> Any:
    engine = import_module("daft")
    found = engine.read_iceberg(metadata_file(path)) if kind == "iceberg" else engine.read_deltalake(path)
    return (found.where(engine.sql_expr(where)) if where else found).to_arrow()


def datafusion(_: str, path: str, where: str) -> Any:
    context = import_module("datafusion").SessionContext()
    context.register_table("t", import_module("deltalake").DeltaTable(path))
    return context.sql(f"SELECT * FROM t{sql(where)}").to_arrow_table()


def chdb(kind: str, path: str, where: str) -> Any:
    os.chdir("/")  # it reads files below the working directory only
    function = "icebergLocal" if kind == "iceberg" else "deltaLakeLocal"
    found = import_module("chdb").query(f"SELECT * FROM {function}('{path}'){sql(where)}", "Arrow").bytes()
    arrow = import_module("pyarrow")
    return arrow.ipc.open_file(arrow.BufferReader(found)).read_all()


def deltalake(_: str, path: str, where: str) -> Any:
    engine = import_module("deltalake")
    query = engine.QueryBuilder().register("t", engine.DeltaTable(path)).execute(f"SELECT * FROM t{sql(where)}")
    return import_module("pyarrow").table(query)


def polars(kind: str, path: str, where: str) -> Any:
    engine = import_module("polars")
    found = engine.scan_iceberg(metadata_file(path)) if kind == "iceberg" else engine.scan_delta(path)
    return (found.filter(engine.sql_expr(where)) if where else found).collect().to_arrow()


def pyiceberg(_: str, path: str, where: str) -> Any:
    found = import_module("pyiceberg.table").StaticTable.from_metadata(metadata_file(path))
    return (found.scan(where) if where else found.scan()).to_arrow()


READERS: dict[str, Callable[[str, str, str], Any]] = {
    f.__name__: f for f in (duckdb, daft, datafusion, chdb, deltalake, polars, pyiceberg)
}


def main() -> None:
    kind, path, where, *names = sys.argv[1:]
    for name in names:  # chDB comes last: it leaves the working directory
        try:
            rows = sorted(READERS[name](kind, path, where).to_pylist(), key=lambda row: row["id"])
            result = {"reader": name, "rows": rows}
        except Exception as error:  # whatever a reader raises is its answer
            result = {"reader": name, "error": f"{type(error).__name__}: {error}"[:400]}
        sys.stdout.write(json.dumps(result, default=str) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
