"""Audits a scan that Spark's own Parquet reader reads: what was proved of a sample of parts, and what that reader returns of them.

Spark's reader reports neither which rows it skips nor which parts it was given, so the audit stands beside it. On the driver
the parts of the sample are read as if nothing were known of them, and read once more by Spark's reader with its hints. A
skipped part must hold no row that matches; a part whose rows were all said to match must hold no other; and Spark's reader
must return every row that matches.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from tamis.core.types import Schema
from tamis.engine.part_reader import ReadCounters
from tamis.engine.scan import Plan, Report
from tamis.engine.scan.skip_audit import Proof, read_audited, strict, tell, violation
from tamis.storage.files import PartRef


def audit_native(audited: Plan, report: Report, native_rows: Callable[[PartRef], int]) -> bool:
    """Whether what was proved of the sample of ``audited`` holds. Each violation is logged and put into ``report``.

    ``native_rows`` gives the number of rows that Spark's reader returns of a part. Raises what the filter raises, and
    ``CorruptData`` (``AUDIT_FAILED``) for a violation where ``TAMIS_AUDIT`` is ``raise``.
    """
    sound = True

    def found(part: str, problem: str) -> None:
        nonlocal sound
        sound = False
        report.violate(part, problem)
        error = violation(report.table, report.filter, part, problem)
        if strict():
            raise error
        tell(error)

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
        if returned < matching:
            found(ref.part_id, f"Spark's reader returns {returned} rows of it, but {matching} rows match")
    report.parts["audited"] = len(audited.audit)
    return sound
