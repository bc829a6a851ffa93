"""Audit of a scan that Spark's own Parquet reader reads.

Spark's reader reports neither the rows it skips nor the parts it was given, so the audit runs separately, on
the driver. It reads a sample of parts without using their evidence, and again by Spark's reader with its
hints. A skipped part must hold no matching row; a part whose rows are all proved to match must hold no other
row; and Spark's reader must return every matching row.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from tamis.core.types import Schema
from tamis.engine.part_reader import ReadCounters, evaluates_all
from tamis.engine.scan import Plan, Report
from tamis.engine.scan.skip_audit import (
    Proof,
    audit_is_strict,
    audit_violation,
    count_certain_matches,
    log_violation,
    read_audited,
)
from tamis.storage.files import PartRef


def audit_native(audited: Plan, report: Report, native_rows: Callable[[PartRef], int]) -> bool:
    """Whether the proofs about the sample of ``audited`` hold. Logs each violation and adds it to ``report``.

    ``native_rows`` returns the number of rows that Spark's reader returns for a part. Raises what the filter
    raises, and ``CorruptData`` (``AUDIT_FAILED``) for a violation if ``TAMIS_AUDIT`` is ``raise``.
    """
    sound = True

    def found(part: str, problem: str) -> None:
        nonlocal sound
        sound = False
        report.record_violation(part, problem)
        error = audit_violation(report.table, report.filter, part, problem)
        if audit_is_strict():
            raise error
        log_violation(error)

    spec = replace(audited.spec, schema=Schema(()))
    for ref in audited.audit:
        for _ in read_audited(ref, Proof.NONE, spec, ReadCounters(), found):
            pass
    for ref in audited.parts:
        proof = audited.proofs.get(ref.part_id)
        if proof is None:
            continue
        matching = sum(len(batch) for batch in read_audited(ref, proof, spec, ReadCounters(), found))
        returned = native_rows(ref)
        if returned >= matching or not evaluates_all(spec):
            continue
        certain = count_certain_matches(ref, spec, ReadCounters())
        if isinstance(certain, str) or returned < certain:
            found(ref.part_id, f"Spark's reader returns {returned} rows of it, but {matching} rows match")
    report.parts["audited"] = len(audited.audit)
    return sound
