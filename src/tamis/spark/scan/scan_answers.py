"""The answers to what Spark asks of a scan, sent to Java with the scan, so that few questions reach Python.

A call from Java takes about a millisecond, and Spark asks ten things of every scan of a query. Java forgets what no
longer holds once join keys or a stream have come (``Scan.java_forgets``).
"""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any, NamedTuple

from tamis.engine.scan import Plan
from tamis.errors import TamisError
from tamis.spark.executors.partitions import Cut, local_url, pack_files
from tamis.spark.jvm_bridge.adapter import Bridge
from tamis.spark.jvm_bridge.sql_metrics import define_metrics
from tamis.spark.jvm_bridge.wire_format import packed_pairs, packed_texts, words_text
from tamis.spark.scan.file_checks import checked_already
from tamis.spark.scan.join_keys import INTERFACE
from tamis.spark.scan.native_reader import has_repeated
from tamis.spark.scan.node_metrics import METRICS, planning_metrics
from tamis.spark.scan.scan_estimates import column_statistics

if TYPE_CHECKING:
    from tamis.spark.scan.spark_scan import Scan

_MOST_FILES = 64
"""Number of files up to which Java checks them itself: more are too much to send with every scan."""


class PackedFiles(NamedTuple):
    """The files of a scan that Spark's reader reads, for ``Partitions.apply``."""

    partitions: str
    """What ``pack_files`` returns, in Base64."""
    urls: tuple[str, ...]


def answer_maker(owner: Bridge) -> Any:
    """The Java ``BiFunction`` that makes answers of ``known_answers``, for ``Bridge.implement_with_answers``."""
    return owner.make_once("answers", "scan", lambda: _installed(owner))


def _installed(owner: Bridge) -> Any:
    define_metrics(owner)  # ScanAnswers is compiled against them
    made = owner.helper("ScanAnswers")
    made.install(owner.helper("Partitions"), words_text(w for m in METRICS for w in (m.kind, m.name, m.description)))
    return made


def known_answers(scan: Scan, *, batch: bool) -> str:
    """Return the answers of ``scan`` that hold until Java forgets them, as ``ScanAnswers`` reads them.

    ``batch``: whether Java gets the batch too, and so may have its answers.
    """
    known = {"hashCode": str(hash(scan) & 0x7FFFFFFF)}
    known["supportedCustomMetrics"] = ""  # the same of all scans: Java has them
    if not scan.changes_rows:  # such a scan may yet be narrowed
        known |= {
            "columnarSupportMode": scan.columnarSupportMode(),
            "description": scan.description(),
            "estimateStatistics": estimate_text(scan),
        }
        if INTERFACE in scan.interfaces:
            known["filterAttributes"] = scan.offered_keys
        if scan.audited is None and not scan.pushed.order:  # else it looks at parts before it runs
            reported = planning_metrics(scan.plan.report)
            known["reportDriverMetrics"] = " ".join(str(reported[m.name]) for m in METRICS)
            if batch and (files := checked_files(scan, scan.plan, scan.packed_files)):
                known["toBatch"] = packed_pairs({"planInputPartitions": files})
    return packed_pairs(known)


def estimate_text(scan: Scan) -> str:
    """Bytes and rows of ``scan``, and statistics of its columns, as ``ScanAnswers.estimate`` reads them."""
    columns = column_statistics(scan.plan, scan.selected) if scan.cost_based else ""
    return words_text((str(max(scan.bytes, 1)), str(scan.rows), *([columns] if columns else ())))


def packed_files(scan: Scan, plan: Plan, cut: Cut) -> PackedFiles | None:
    """The files of ``plan``, cut into tasks; None if another reader than Spark's reads them, or if they are many."""
    if not scan.native or len(plan.parts) > _MOST_FILES:
        return None
    url = local_url(plan.spec.url)
    partitions = base64.b64encode(pack_files(cut.tasks(), url)).decode()
    return PackedFiles(partitions, tuple(url(path) for path in plan.parts.table["path"].to_pylist()))


def checked_files(scan: Scan, plan: Plan, files: PackedFiles | None) -> str | None:
    """What ``Partitions.apply`` reads; None if Python must check the files, or if Python's reader reads them.

    ``plan`` is that of the scan, or is made with the keys of a join.
    """
    if files is None or not scan.native:
        return None
    try:
        plan.guard()
    except TamisError:  # raised where Spark runs the scan
        return None
    checked = checked_already(plan.parts, scan.source.store)
    if checked is None:
        return None
    signatures, sound = checked
    signed = words_text(
        w for url, found in zip(files.urls, signatures, strict=True) for w in (url, " ".join(map(str, found)))
    )
    pages = str(sound and not has_repeated(scan.selected)).lower()
    return packed_texts((files.partitions, signed, *scan.spark_reader_text, pages))
