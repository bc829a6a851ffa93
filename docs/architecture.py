"""The page of the architecture: layers drawn from the imports, and a query's way drawn from what one scan calls."""

from __future__ import annotations

import ast
import sys
import tempfile
import threading
from collections import Counter
from types import FrameType
from typing import Any

import pyarrow as pa
import source_tree

import tamis

LAYERS = {
    "core": ("core.types", "core.schema", "core.expr", "core.pruning", "core.stats"),
    "storage": ("storage.object_store", "storage.commit_log", "storage.files"),
    "engine": (
        "engine.part_reader",
        "engine.part_writer",
        "engine.secondary_index",
        "engine.scan",
        "engine.operations",
    ),
    "faces": ("table", "spark", "cli"),
}
STEPS = {
    "table.table.Table.scan": "resolve the arguments",
    "core.expr.parse_filter.parse_predicate": "parse and bind the filter",
    "engine.scan.scan.Scan.to_arrow": "begin one execution",
    "engine.scan.scan_plan.plan_scan": "plan",
    "engine.scan.funnel.run_funnel": "ask which segments, then which parts, may hold a match",
    "core.pruning.decide.decide": "interpret the filter over statistics",
    "core.pruning.bound_comparison.compare_bounds": "compare constants with bounds",
    "engine.scan.index_stage.prune_by_index": "ask secondary indexes about the parts left",
    "engine.scan.scan_execution.Execution.batches": "read the parts left, in order",
    "engine.part_reader.lazy_reader.read_part": "read leaders, filter, fetch followers of surviving rows",
    "storage.files.parquet.footer.footer_of": "read and check the footer",
}
"""Steps of an embedded scan and what each is for, in the order of their first calls."""

_HEAD = """# Architecture

Tamis is a library in layers. A layer imports only from layers below it. [Design note 0018](design/0018-folders.md) says why the folders are these, and
`tests/test_layers.py` checks the order. `docs/architecture.py` draws both pictures on this page from the code.

## Layers

An arrow points from a layer to one that it imports. An import is left out if the layer also reaches it through another arrow.
"""

_WAY = """
## The path of a query

These are the steps of `tamis.open(path).scan("a = 1500").to_arrow()`. The script runs this scan and checks that the functions are called in this order.

In Spark, Spark itself does the first two steps: it parses the query, and `spark.jvm_bridge.catalyst` translates the filter's tree. `spark.scan.scan_builder` collects what Spark pushes down.
`spark.scan.spark_scan` plans through the same `engine.scan.scan_plan.plan_scan`. Executors run the same `read_part`, unless Spark's own Parquet reader reads the parts.
"""

_WHERE = """
## Where to look

| question | place |
| --- | --- |
| Where does a comparison meet bounds? | `core/pruning/bound_comparison.py` |
| Where is a commit conflict decided? | `storage/commit_log/conflict.py` |
| Where is Spark's limit pushed down? | `spark/scan/scan_builder.py` (`pushLimit`), then `engine/scan/limit_pruning.py` |
| How is a function added? | `core/expr/functions/`; [CONTRIBUTING](../CONTRIBUTING.md) lists the steps |
| Who tests which conjunct in Spark? | `spark/scan/filter_contract.py` |
| Where are statistics collected? | `core/stats/collector.py` |
"""


def page() -> str:
    return "\n".join(
        [
            _HEAD,
            "```mermaid",
            "flowchart TD",
            *_layers(),
            "```",
            _WAY,
            "```mermaid",
            "flowchart TD",
            *_way(),
            "```",
            _WHERE,
        ]
    )


def _layers() -> list[str]:
    uses = _uses()
    lines = []
    for wing, layers in LAYERS.items():
        lines += [f"  subgraph {wing}", *(f'    {_id(layer)}["{layer}"]' for layer in layers), "  end"]
    for layer, others in uses.items():
        reached = {far for near in others for far in _below(uses, near)}
        lines += [f"  {_id(layer)} --> {_id(other)}" for other in sorted(others - reached)]
    return lines


def _uses() -> dict[str, set[str]]:
    """Layers that each layer imports from."""
    known = [layer for layers in LAYERS.values() for layer in layers]
    uses: dict[str, set[str]] = {layer: set() for layer in known}
    for layer in known:
        for path in (source_tree.SOURCE / layer.replace(".", "/")).rglob("*.py"):
            for node in source_tree.nodes_of(path):
                names = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
                uses[layer] |= {
                    o for name in names for o in known if f"{name}.".startswith(f"tamis.{o}.") and o != layer
                }
    return uses


def _below(uses: dict[str, set[str]], layer: str) -> set[str]:
    return {far for near in uses[layer] for far in {near} | _below(uses, near)}


def _id(layer: str) -> str:
    return layer.replace(".", "_")


def _way() -> list[str]:
    called = _first_calls()
    order = [step for step in called if step in STEPS]
    if order != list(STEPS):
        raise ValueError(f"The scan calls {order}, not {list(STEPS)}.")
    lines = [f'  s{at}["{step}<br/>{meaning}"]' for at, (step, meaning) in enumerate(STEPS.items())]
    return [*lines, "  " + " --> ".join(f"s{at}" for at in range(len(STEPS)))]


def _first_calls() -> list[str]:
    """Our functions that a scan calls, each once, in the order of their first calls."""
    seen: Counter[str] = Counter()

    def note(frame: FrameType, event: str, _: Any) -> None:
        module = frame.f_globals.get("__name__", "")
        if event == "call" and module.startswith("tamis."):
            seen[f"{module.removeprefix('tamis.')}.{frame.f_code.co_qualname}"] += 1

    with tempfile.TemporaryDirectory() as folder:
        table = tamis.create(f"{folder}/t", pa.schema([("a", pa.int64()), ("s", pa.string())]), cluster_by=["a"])
        for part in range(3):
            table.append(pa.table({"a": range(part * 1000, part * 1000 + 1000), "s": ["x"] * 1000}))
        threading.setprofile(note)
        sys.setprofile(note)
        try:
            tamis.open(f"{folder}/t").scan("a = 1500", ["s"]).to_arrow()
        finally:
            sys.setprofile(None)
            threading.setprofile(None)
    return list(seen)
