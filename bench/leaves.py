"""Filters on one path of JSON documents, with the path kept apart (``tamis.write.shred``) and without: VARIANT and text of 20 paths each, in Parquet and Vortex.

One of 100,000 values of a path of numbers, in no order, so that statistics skip nothing. CPU seconds are this process's, least of some rounds, the first left out; bytes are
the report's leaders. What the leaves cost is the whole write, and the size of the files.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import Any

import pyarrow as pa

import tamis
from bench.lazy import cpu_in_turn
from bench.report import Figure, record, rounds, rows
from bench.stats import documents, variants
from tamis.core.types import LONG, STRING, VARIANT, Field, Schema
from tamis.core.types.arrow import to_arrow_schema

SCHEMA = Schema((Field("id", LONG, id=1), Field("v", VARIANT, id=2), Field("s", STRING, id=3)))
FILTERS = {"VARIANT": "try_variant_get(v, '$.k0', 'bigint') = {key}", "text": "get_json_object(s, '$.k0') = '{key}'"}
KEY = 777
SHRED = {"tamis.write.shred": "v:k0, s:k0"}


def table_of(count: int) -> pa.Table:
    texts = documents(count)
    return pa.Table.from_arrays(
        [pa.array(range(count)), variants(texts), pa.array(texts)], schema=to_arrow_schema(SCHEMA)
    )


def scanned(table: Any, text: str) -> dict[str, Any]:
    scan = table.scan(text, ("id",))
    return {
        "rows": len(scan.to_arrow()),
        "leader": int(scan.report.bytes["leader"]),
        "read": int(scan.report.bytes["read"]),
    }


def main() -> None:
    data = table_of(rows(40_000))
    figures: list[Figure] = []
    detail: dict[str, Any] = {"rows": len(data)}
    with tempfile.TemporaryDirectory() as home:
        for form in ("parquet", "vortex"):
            tables, written, sizes = {}, {}, {}
            for name, properties in (("whole", {}), ("apart", SHRED)):
                tables[name] = tamis.create(
                    Path(home) / f"{form}-{name}", data.schema, format=form, properties=properties
                )
                start = time.process_time()
                tables[name].append(data)
                written[name] = time.process_time() - start
                sizes[name] = sum(f.stat().st_size for f in (Path(home) / f"{form}-{name}" / "data").iterdir())
            detail[form] = {"write_cpu": written, "size": sizes}
            for kind, template in FILTERS.items():
                text = template.format(key=KEY)
                counted = {name: scanned(table, text) for name, table in tables.items()}
                if counted["whole"]["rows"] != counted["apart"]["rows"]:
                    raise AssertionError(f"other rows: {counted}")
                taken = cpu_in_turn(
                    rounds(), **{name: lambda t=table, text=text: scanned(t, text) for name, table in tables.items()}
                )
                detail[form][kind] = {name: counted[name] | taken[name] for name in tables}
                leader, cpu = (
                    (counted[n]["leader"] for n in ("apart", "whole")),
                    (taken[n]["cpu"] for n in ("apart", "whole")),
                )
                figures.append(
                    Figure(f"{kind}, {form}: leader bytes, path apart / whole documents", _ratio(*leader), "×")
                )
                figures.append(Figure(f"{kind}, {form}: CPU, path apart / whole documents", _ratio(*cpu), "×"))
            figures.append(Figure(f"{form}: size, two paths apart / none", sizes["apart"] / sizes["whole"], "×"))
            figures.append(
                Figure(f"{form}: CPU of the write, two paths apart / none", written["apart"] / written["whole"], "×")
            )
    record("leaves", figures, detail)


def _ratio(a: float, b: float) -> float:
    return a / max(b, 1e-9)


if __name__ == "__main__":
    main()
