"""Spark's ``Batch``, which it runs, and the Java objects that its executors get."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from tamis.engine.scan.skip_audit import audit_is_strict
from tamis.errors import InvalidInput
from tamis.spark.executors.partitions import local_url, pack_files, pack_tasks
from tamis.spark.executors.read_task import Fold, Read, Task
from tamis.spark.jvm_bridge.wire_format import packed_pairs
from tamis.spark.options.source_options import Use, read_options
from tamis.spark.scan import native_reader as native
from tamis.spark.scan.join_keys import Narrowed
from tamis.spark.scan.parquet_filter import filter_hints
from tamis.spark.scan.python_source import python_reader
from tamis.spark.scan.scan_answers import answer_maker, checked_files, packed_files
from tamis.storage.files import PartRef

if TYPE_CHECKING:
    from tamis.spark.scan.spark_scan import Scan


BATCH = "org.apache.spark.sql.connector.read.Batch"


class Batch:
    """Spark's ``Batch``. Batches are equal if their scans and the keys that narrow them are.

    Raises ``InvalidInput`` for options of streams, which a scan cannot know yet.
    """

    java_constant: ClassVar = {"planInputPartitions": "", "createReaderFactory": ""}

    def __init__(self, scan: Scan, narrowed: Narrowed | None = None) -> None:
        read_options(scan.read_options, {Use.READ}, by_path=scan.source.by_path)
        self._scan = scan
        self._narrowed = narrowed
        self._pages = False
        """Whether page indexes may be trusted; false until they are checked."""

    def java(self) -> Any:
        owner, known = self._scan._owner, {"hashCode": str(hash(self) & 0x7FFFFFFF)}
        if self._narrowed is not None:  # Spark's reader needs no keys, which skip whole parts
            plan = self._narrowed.plan
            if files := checked_files(self._scan, plan, packed_files(self._scan, plan, self._narrowed.cut)):
                known["planInputPartitions"] = files
        return owner.implement_with_answers((BATCH,), self, (answer_maker(owner), packed_pairs(known), None))[0]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Batch) and self._scan == other._scan and self._narrowed is other._narrowed

    def __hash__(self) -> int:
        return hash(self._scan)

    @property
    def java_identity(self) -> str | None:
        """A text by which Java finds batches equal without asking ``__eq__``; None with keys of a join."""
        scan = self._scan.java_identity
        return None if scan is None or self._narrowed is not None else f"batch of {scan}"

    def planInputPartitions(self) -> Any:  # noqa: N802
        self._pages = self._scan.check(self._narrowed)
        if self._narrowed is not None:
            return pack_partitions(self._scan, self._narrowed.tasks())
        if self._scan.native:  # Spark asks for both: Java keeps the reader until then
            return files_and_reader(self._scan, self._scan.tasks, pages=self._pages)
        return self._scan.partitions

    def createReaderFactory(self) -> Any:  # noqa: N802
        return self._scan.reader(pages=self._pages)


def batch_part(scan: Scan) -> tuple[str, str, Batch] | None:
    """The answer of ``toBatch``, for ``Bridge.implement_with_answers``. None if Java has to ask for it.

    That is so for a row change, which may be planned again, and for options of streams, which ``Batch`` refuses.
    """
    if scan.changes_rows:
        return None
    try:
        return "toBatch", BATCH, Batch(scan)
    except InvalidInput:
        return None


def pack_partitions(scan: Scan, tasks: list[Task]) -> Any:
    """A Java array of input partitions for ``tasks``."""
    helper = scan._owner.helper("Partitions")
    if scan.native:
        return helper.files(pack_files(tasks, local_url(scan.plan.spec.url)))
    return helper.python(pack_tasks(tasks))


def files_and_reader(scan: Scan, tasks: list[Task], *, pages: bool) -> Any:
    """``pack_partitions``, and ``made_reader`` as the answer of ``createReaderFactory``, for Spark's own reader."""
    files = pack_files(tasks, local_url(scan.plan.spec.url))
    reader = *scan.spark_reader_text, pages, "createReaderFactory"
    return scan._owner.helper("Partitions").filesAndParquet(files, *reader)


def spark_reader_text(scan: Scan) -> tuple[str, str]:
    """The schema to request from Spark's reader, and hints, by which it skips by the statistics in the files."""
    schemas = native.remaining_schemas(scan.plan)
    hints = filter_hints(scan.contract.hints, schemas) if scan.plan.options.stats_filter else ""
    return native.requested_schema(scan.plan.spec.schema), hints


def made_reader(scan: Scan, pages: bool) -> Any:
    """A new Java ``PartitionReaderFactory``. ``pages``: whether page indexes may be trusted."""
    scan._search_top_rows()
    spec = scan.plan.spec
    if scan.native:
        return scan._owner.helper("Partitions").parquet(*scan.spark_reader_text, pages)
    if scan.pushed.aggregation is not None:
        fold = Fold(
            scan.id, spec, scan._ledger.accumulator, scan.pushed.aggregation, scan.answer, strict=audit_is_strict()
        )
        return python_reader(scan._owner, fold, scan.required)
    return python_reader(
        scan._owner,
        Read(scan.id, spec, scan._ledger.accumulator, metadata=scan.metadata, strict=audit_is_strict()),
        scan.required,
    )


def native_rows(scan: Scan, reader: Any, ref: PartRef) -> int:
    """How many rows ``reader``, one of Spark's own, reads of a part."""
    files = pack_files([Task(0, (ref,))], local_url(scan.plan.spec.url))
    return int(scan._owner.helper("Partitions").countRows(reader, files))
