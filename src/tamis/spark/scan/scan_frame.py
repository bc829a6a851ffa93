"""An embedded scan as a Spark DataFrame, whose parts Spark's executors read.

Uses public PySpark interfaces only, so it works under Spark Connect too.
"""

from __future__ import annotations

import json
import pickle
from collections.abc import Sequence
from typing import Any

from tamis.engine.scan import Plan, Scan
from tamis.engine.scan.skip_audit import audit_is_strict
from tamis.errors import InvalidInput
from tamis.spark.executors.executor_function import executor_function
from tamis.spark.executors.partitions import Cut, Sizes
from tamis.spark.executors.read_task import Read
from tamis.spark.jvm_bridge.adapter import bridge_of
from tamis.spark.jvm_bridge.session_checks import check_version, is_connect, no_session
from tamis.spark.jvm_bridge.spark_types import to_python_spark
from tamis.spark.scan.scan_metrics import Planned, metrics_ledger, scan_id

FRAME_NAME = "tamis_scan"
"""How the name of a DataFrame's function begins; ``TableReads.java`` knows it, too."""
_SIZES = ("spark.sql.files.maxPartitionBytes", "spark.sql.files.openCostInBytes")


def to_spark(scan: Scan, spark: Any) -> Any:
    """The rows of ``scan`` as a DataFrame of the session ``spark``. The scan is planned now.

    Raises what reading the scan in this process would raise before reading.
    """
    from pyspark.sql.types import StructType

    if not hasattr(spark, "createDataFrame"):
        raise no_session(spark)
    if not is_connect(spark):
        check_version(str(spark.version))
    if scan.order:
        raise InvalidInput(
            "Spark executors cannot run an ordered scan.",
            code="BAD_ORDER",
            name="order_by",
            remedy=("Leave order_by out and use orderBy(…).limit(…) of the DataFrame, or call scan.to_arrow()."),
        )
    plan = _ready(scan)
    tasks = Cut(plan, _sizes(spark)).tasks()
    schema = StructType.fromJson(json.loads(to_python_spark(plan.spec.schema)))
    read = executor_function(spark, _reader(plan, spark, len(tasks)), frame_name(scan))
    frame = ordered_tasks(spark, [pickle.dumps(task, pickle.HIGHEST_PROTOCOL) for task in tasks])
    rows = frame.mapInArrow(read, schema)
    return rows if scan.limit is None else rows.limit(scan.limit)


def frame_name(scan: Scan) -> str | None:
    """Return the name under which Spark's plans show the DataFrame's function; None if a version was asked for.

    ``own_reads`` finds by it what the DataFrame reads, in whichever query it is.
    """
    if scan.pinned:
        return None
    return f"{FRAME_NAME} {scan.snapshot.head.table_id} {scan.version} {scan.store.location.resolved_url}"


def ordered_tasks(spark: Any, payloads: Sequence[bytes]) -> Any:
    """A DataFrame of one partition per payload, in order; the payload is the last column."""
    frame = spark.createDataFrame(
        [(i, bytearray(payload)) for i, payload in enumerate(payloads)], "task int, work binary"
    )
    return frame.repartitionByRange(len(payloads), "task") if len(payloads) > 1 else frame


def _ready(scan: Scan) -> Plan:
    try:
        return scan.plan_read()
    except InvalidInput as error:
        if error.code != "UNKNOWN_FUNCTION":
            raise
        raise InvalidInput(
            error.message,
            code=error.code,
            name=error.name,
            remedy=(
                "Spark computes it where the table is in a catalog: tamis.attach(spark, name, warehouse), "
                "then SELECT … WHERE … in SQL."
            ),
        ) from None


def _sizes(spark: Any) -> Sizes:
    context = _context(spark)
    parallelism = context.defaultParallelism if context is not None else 8
    return Sizes.of({name: spark.conf.get(name) for name in _SIZES} | {"parallelism": str(parallelism)})


def _context(spark: Any) -> Any:
    """The SparkContext, or None under Spark Connect."""
    return None if is_connect(spark) else spark.sparkContext


def _reader(plan: Plan, spark: Any, tasks: int) -> Read:
    name = scan_id()
    if _context(spark) is None:
        return Read(
            name, plan.spec, None, strict=audit_is_strict()
        )  # no accumulator under Connect: reports hold planning only
    book = metrics_ledger(bridge_of(spark))
    book.record_plan(name, Planned(name, plan.report, tasks, 0, 0, native=False))
    return Read(name, plan.spec, book.accumulator, strict=audit_is_strict())
