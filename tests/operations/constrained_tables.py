"""Tables with CHECK constraints, for the tests of these."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import Any

import pyarrow as pa
import pytest

import tamis

_names = count()
SCHEMA = pa.schema(
    [
        *[("id", pa.int64()), ("price", pa.float64()), ("n", pa.int32()), ("name", pa.string())],
        *[("s", pa.struct([("a", pa.int64()), ("b", pa.int64())])), ("tags", pa.list_(pa.int64()))],
    ]
)
CHECK = "price >= 0 AND id < 1000"


def rows(*ids: int, price: float | None = 1.0) -> pa.Table:
    made = [{"id": i, "price": price, "n": i, "name": f"n{i}", "s": {"a": i, "b": 1}, "tags": [i]} for i in ids]
    return pa.Table.from_pylist(made, schema=SCHEMA)


def empty(data_format: str = "parquet", **more: Any) -> tamis.Table:
    return tamis.create(f"memory://constraints-{next(_names)}", SCHEMA, format=data_format, **more)


def table(data_format: str = "parquet", **more: Any) -> tamis.Table:
    """Two parts, with a CHECK."""
    made = empty(data_format, **more)
    made.append(rows(1, 2))
    made.append(rows(3, 4))
    made.alter().add_check("sane", CHECK).commit()
    return made


def ids(of: tamis.Table) -> list[int]:
    return sorted(of.scan(selected_fields=["id"]).to_arrow()["id"].to_pylist())


def checks(of: tamis.Table) -> list[str]:
    return [row["expression"] for row in tamis.open(of.path).constraints().to_pylist()]


def racing(
    monkeypatch: pytest.MonkeyPatch, where: Any, name: str, meanwhile: Callable[[], object], times: int = 1
) -> list[int]:
    """Run ``meanwhile`` just before the first ``times`` calls of ``where.name``; the list counts the calls."""
    plain, calls = getattr(where, name), list[int]()

    def run(*args: Any, **more: Any) -> Any:
        calls.append(1)
        if len(calls) <= times:
            meanwhile()
        return plain(*args, **more)

    monkeypatch.setattr(where, name, run)
    return calls
