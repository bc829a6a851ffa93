"""What tests of sources share: reading their files naively, and checking that each statistic is true of them."""

from __future__ import annotations

import json
import math
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from pyroaring import BitMap

from tamis.bridges.sources.source_table import SourceTable
from tamis.core.stats.statistics_columns import Name, parse_name
from tamis.core.types import Field, Schema
from tamis.core.types.arrow import to_arrow_type
from tamis.core.types.defaults import initial_scalar
from tamis.world import world


def file_rows(source: SourceTable, row: Mapping[str, Any]) -> pa.Table:
    """The physical rows of a file, with top-level columns by our names and in our types."""
    place = row["path"] if "://" in row["path"] or row["path"].startswith("/") else f"{source.root}/{row['path']}"
    data = pq.read_table(place.removeprefix("file://"), partitioning=None)
    constants = json.loads(row["constants"] or "{}")
    ids = {int((f.metadata or {}).get(b"PARQUET:field_id", -1)): f.name for f in data.schema}
    by_id = source.by_field_id and any(i >= 0 for i in ids)
    columns = {}
    for f in source.schema.fields:
        name = ids.get(f.id) if by_id else source.column_names.get(f.id, f.name)
        kind = to_arrow_type(f.type)
        if name in data.column_names:
            columns[f.name] = _cast(data[name], kind)
        elif str(f.id) in constants:
            value = constants[str(f.id)]
            scalar = initial_scalar(Field(f.name, f.type, id=f.id, initial_default=value))
            columns[f.name] = pa.array([scalar.as_py()] * len(data), kind)
        else:
            columns[f.name] = pa.array([initial_scalar(f).as_py()] * len(data), kind)
    return pa.table(columns)


def _cast(column: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray:
    return column if pa.types.is_nested(kind) else column.cast(kind)  # names inside differ, positions do not


def live_rows(source: SourceTable) -> pa.Table:
    """All live rows."""
    tables = []
    for row in source.files.to_pylist():
        data = file_rows(source, row)
        if row["deletion"]:
            gone = BitMap.deserialize(row["deletion"])
            data = data.filter(pa.array([at not in gone for at in range(len(data))]))
        tables.append(data)
    return pa.concat_tables(tables) if tables else pa.table({f.name: [] for f in source.schema.fields})


def check_claims(source: SourceTable) -> int:
    """Check every statistic of every file against its rows; return how many there were."""
    checked = 0
    names = [(name, parsed) for name in source.files.column_names if (parsed := parse_name(name))]
    for row in source.files.to_pylist():
        data = file_rows(source, row)
        assert row["rows"] is None or row["rows"] == len(data), row["path"]
        for name, parsed in names:
            if row[name] is not None and (values := _values(data, source.schema, parsed)) is not None:
                _check(parsed, row[name], values, f"{name} of {row['path']}")
                checked += 1
    return checked


def _values(data: pa.Table, schema: Schema, name: Name) -> pa.Array | None:
    path = schema.paths[name.id]
    column = data[schema.by_id[path[0]].name]
    found = pa.concat_arrays(column.chunks) if column.num_chunks else pa.nulls(0, column.type)
    above = schema.by_id[path[0]]
    for step in path[1:]:
        if not pa.types.is_struct(found.type):
            return None
        at = [f.id for f in above.type.children].index(step)
        above = schema.by_id[step]
        found = pc.struct_field(found, [at])
    return found


def _check(name: Name, claim: Any, values: pa.Array, what: str) -> None:
    if name.kind == "nulls":
        assert claim == values.null_count, what
        return
    if name.kind == "nans":
        assert claim == sum(1 for v in values.to_pylist() if v is not None and math.isnan(v)), what
        return
    assert name.type is not None
    kind = to_arrow_type(name.type)
    for value in values.cast(kind).drop_null().to_pylist():
        if isinstance(value, float) and math.isnan(value):
            continue
        ours, theirs = (_ordered(v) for v in (claim, value))
        assert ours <= theirs if name.kind == "lo" else ours >= theirs, f"{what}: {claim!r} beside {value!r}"


def _ordered(value: Any) -> Any:
    return value.encode() if isinstance(value, str) else value


def sorted_rows(data: pa.Table) -> list[str]:
    """Rows as texts, in an order of their own."""
    names = sorted(data.column_names)
    return sorted(repr([_plain(row[name]) for name in names]) for row in data.to_pylist())


def _plain(value: Any) -> Any:
    if isinstance(value, float):
        return "nan" if math.isnan(value) else value
    if isinstance(value, dict):
        return [_plain(v) for v in value.values()]
    if isinstance(value, list):
        return [_plain(v) for v in value]
    return value.isoformat() if hasattr(value, "isoformat") else value


def contents(folder: Path) -> dict[str, tuple[int, bytes]]:
    """Every byte and time of a folder."""
    return {
        str(p.relative_to(folder)): (p.stat().st_mtime_ns, p.read_bytes())
        for p in sorted(folder.rglob("*"))
        if p.is_file()
    }


def peers_python() -> str:
    """The interpreter that has the other engines; skips without one."""
    found = world().environment().get("TAMIS_PEERS_PYTHON")
    if not found:
        pytest.skip("TAMIS_PEERS_PYTHON is not set")
    return found


_DUCKDB = """
import json, sys, pathlib, importlib, duckdb
kinds, query = json.loads(sys.argv[1]), sys.argv[2]
connection = duckdb.connect(config={"allow_unsigned_extensions": "true"})
for kind in kinds:
    folder = pathlib.Path(importlib.import_module(f"duckdb_extension_{kind}").__file__).parent
    connection.execute(f"LOAD '{next(folder.rglob('*.duckdb_extension'))}'")
print(json.dumps(connection.execute(query).fetchall(), default=str))
"""


def duckdb_rows(kinds: Sequence[str], query: str) -> list[list[Any]]:
    """The rows of a query by DuckDB with these extensions."""
    done = subprocess.run(
        [peers_python(), "-c", _DUCKDB, json.dumps(list(kinds)), query], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    rows: list[list[Any]] = json.loads(done.stdout)
    return rows
