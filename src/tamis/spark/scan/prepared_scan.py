"""What planning decides about a Spark scan, remembered for the same scan of the same version of a table.

Dashboards and scheduled jobs send the same queries again, and one query may scan a table several times. Planning
depends on the version, which never changes, and on what the scan was asked, unless it reads a clock, an index or a
data file. Such scans are planned each time.

Invariant: a remembered plan was made for an equal request. Its report is copied, without the costs of planning, so
executions never share counters. Files are checked before every execution (``file_checks``), remembered plan or not.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tamis.core.expr import Expr, Literal, Literals
from tamis.engine.scan import Options, Plan, PlanRequest, plan_scan
from tamis.engine.scan.funnel import remember_places
from tamis.spark.executors.partitions import Cut
from tamis.spark.scan.file_checks import has_copied_elements
from tamis.spark.scan.filter_contract import FilterContract
from tamis.spark.scan.pushdown import is_exact
from tamis.spark.scan.scan_answers import PackedFiles
from tamis.spark.scan.scan_estimates import estimated_columns
from tamis.world import world

if TYPE_CHECKING:
    from tamis.spark.scan.spark_scan import Scan

_LARGEST = 2**18
"""Maximum bytes of a preparation that is remembered, so that plans do not evict metadata."""
_OVERHEAD, _FIELD, _NODE = 2**14, 2**9, 2**8
"""Approximate bytes of a remembered preparation besides its data, of a field of its schema, of a node of its filter."""

_numbers = itertools.count()


def plan_prepared(scan: Scan, conjuncts: tuple[Expr, ...], options: Options) -> Plan:
    """Run the funnel for the rows of ``scan`` that satisfy ``conjuncts``."""
    measured: frozenset[int] = frozenset()
    if scan.pushed.aggregation:
        measured = frozenset(f.id for f in scan.selected)
    elif scan.cost_based:
        measured = estimated_columns(scan.selected)
    request = PlanRequest(
        conjuncts=conjuncts,
        selected=scan.selected,
        options=options,
        limit=scan.pushed.limit,
        order=scan.pushed.order,
        measured=measured,
        errors="raise" if scan.pushed.owned else "keep",
        covering=not scan.sizes.steady,
        table=scan.source.name,
        filter_text=scan.filter_text,
    )
    return plan_scan(scan.source.snapshot, scan.source.store, request)


@dataclass(frozen=True, slots=True)
class Preparation:
    """The decisions about one scan: its plan, who reads it, who tests its filter, and its tasks."""

    plan: Plan
    answer: bytes
    pays: bool
    residual_reason: str | None
    obstacle: str | None
    contract: FilterContract
    cut: Cut
    bytes: int
    rows: int
    offered_keys: str
    spark_reader_text: tuple[str, str]
    packed_files: PackedFiles | None
    filter_text: str | None
    identity: str | None = None
    """A text that the scans of one preparation share, which are equal; None if it is not remembered.

    Equal scans that were prepared twice have two texts, as after an eviction: Spark then reuses no exchange of theirs.
    """

    @staticmethod
    def of(scan: Scan) -> Preparation:
        """Return the decisions that ``scan`` holds."""
        return Preparation(
            scan.plan,
            scan.answer,
            scan.pays,
            scan.residual_reason,
            scan.obstacle,
            scan.contract,
            scan.cut,
            scan.bytes,
            scan.rows,
            scan.offered_keys,
            scan.spark_reader_text,
            scan.packed_files,
            scan.filter_text,
        )

    def apply(self, scan: Scan) -> None:
        """Give ``scan`` these decisions."""
        scan.plan, scan.answer, scan.pays = self.plan, self.answer, self.pays
        scan.residual_reason, scan.obstacle = self.residual_reason, self.obstacle
        scan.contract, scan.cut, scan.bytes, scan.rows = self.contract, self.cut, self.bytes, self.rows
        scan.offered_keys, scan.spark_reader_text = self.offered_keys, self.spark_reader_text
        scan.packed_files, scan.filter_text = self.packed_files, self.filter_text
        scan.java_identity = self.identity

    def copy_for_execution(self) -> Preparation:
        """Return the same decisions for an execution now, with a report of its own: planning has read nothing."""
        spec = replace(self.plan.spec, now_micros=world().now_micros())
        return replace(self, plan=replace(self.plan, spec=spec, report=self.plan.report.replanned()))


def is_cacheable(scan: Scan) -> bool:
    """Whether the decisions about ``scan`` depend on its version and request only.

    Row changes are planned for the rows that they find. A filter that is not exact may read a clock. Arrays make
    planning read footers.
    """
    return (
        not scan.changes_rows
        and not scan.join_keys
        and not scan.options.audit_percent
        and is_exact(scan.filters.conjuncts)
        and not any(has_copied_elements(f.type) for f in scan.selected)
    )


def cached_preparation(scan: Scan, prepare: Callable[[], Preparation]) -> Preparation:
    """Return what ``prepare`` has returned for an equal scan of the same version, or its result."""
    store = scan.source.store
    key = (
        *("scan", scan.source.name, tuple(sorted(store.options.items())), scan.source.schema),
        *(scan.selected, scan.filters.conjuncts, scan.options, scan.sizes, scan.pushed),
        *(scan.positions, scan.metadata, scan.keyed, scan.cost_based),
    )
    made: list[Preparation] = []

    def first() -> Preparation:
        new = prepare()
        made.append(new if _size(new) is None else replace(new, identity=f"scan {next(_numbers)}"))
        return made[0].copy_for_execution()

    found = scan.source.snapshot.cached_result(key, first, _size)
    if made:
        return made[0]
    if scan.options.stats_filter:
        remember_places(store.url, scan.filters.conjuncts)
    return found.copy_for_execution()


def _size(kept: Preparation) -> int | None:
    """Approximate bytes of ``kept`` and its key; None if it is too large, or if planning again may skip more.

    That is so if an index was read, and if statistics or an index could not be read.
    """
    plan = kept.plan
    if plan.report.indexes or plan.shared or not plan.complete:
        return None
    nodes = sum(_NODE + _constants(node) for conjunct in plan.spec.conjuncts for node in conjunct.walk())
    texts = len(kept.answer) + len(kept.offered_keys) + sum(map(len, kept.spark_reader_text))
    texts += len(kept.filter_text or "")
    if kept.packed_files is not None:
        texts += len(kept.packed_files.partitions) + sum(map(len, kept.packed_files.urls))
    fields = sum(1 for _ in plan.spec.schema.walk())
    size = int(plan.parts.table.nbytes) + nodes + texts + _FIELD * fields
    return None if size > _LARGEST else size + _OVERHEAD


def _constants(node: Expr) -> int:
    """Bytes of the constants in a node."""
    if isinstance(node, Literals):
        return int(node.array.nbytes)
    return sys.getsizeof(node.value) if isinstance(node, Literal) else 0
