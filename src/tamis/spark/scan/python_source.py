"""Partition readers that run in Python workers, and Spark's description of how to start these workers."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pyarrow as pa

from tamis.spark.executors.executor_function import executor_function_by
from tamis.spark.jvm_bridge.adapter import Bridge

_PYTHON = "org.apache.spark.sql.execution.datasources.v2.python."
_sources: weakref.WeakKeyDictionary[Any, tuple[object, Any]] = weakref.WeakKeyDictionary()
"""By Spark application: the settings that start its workers, and the Java object made from them."""


ReadFunction = Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]


def python_reader(owner: Bridge, read: ReadFunction, required: Any) -> Any:
    """A Java ``PartitionReaderFactory`` that runs ``read`` in Python workers.

    ``required`` is the Java schema of its rows.
    """
    from pyspark import SparkContext
    from pyspark.serializers import CloudPickleSerializer
    from pyspark.sql.types import StructType

    context = SparkContext._active_spark_context
    assert context is not None
    command = CloudPickleSerializer().dumps((executor_function_by(owner, context, read), StructType()))
    factory = _PYTHON + "PythonPartitionReaderFactory"
    nones = [owner.scala_object("scala.None")] * (2 if owner.has_method(factory, "new", 5) else 1)
    return owner.new(factory, _python_source(owner, context), command, required, *nones)


def worker_metrics(owner: Bridge) -> list[Any]:
    """Spark's own metrics of tasks that run such readers: data sent to Python workers and back, rows, times."""
    from pyspark import SparkContext

    if not owner.has_method(_PYTHON + "UserDefinedPythonDataSource", "createPythonMetrics", 0):
        return []
    return list(_python_source(owner, SparkContext._active_spark_context).createPythonMetrics())


def _python_source(owner: Bridge, context: Any) -> Any:
    """The Java ``UserDefinedPythonDataSource`` that holds interpreter, environment, files and accumulators.

    It is made again if interpreter, environment or files change. Spark never calls the function in it.
    """
    from pyspark.sql.udf import _wrap_function

    start = context.pythonExec, tuple(context.environment.items()), tuple(context._python_includes)
    known = _sources.get(context)
    if known is None or known[0] != start:
        known = start, owner.new(_PYTHON + "UserDefinedPythonDataSource", _wrap_function(context, _no_function))
        _sources[context] = known
    return known[1]


def _no_function() -> None:
    """Placeholder for the class of a Python data source."""
