"""Analysis by Spark: executors read parts and learn their statistics; the driver commits."""

from __future__ import annotations

import functools
import pickle
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from tamis.engine.operations.upkeep.part_analysis import AnalysisSpec, LearnParts, PartAnalysis, learn_pickled
from tamis.spark.executors.executor_function import executor_function
from tamis.spark.jvm_bridge.session_checks import check_classic
from tamis.spark.write.spark_job import spark_job
from tamis.storage.files import PartRef


def learn_by_executors(spark: Any) -> LearnParts:
    """Return a function that learns the statistics of parts on the executors of ``spark``."""
    check_classic(spark)
    return functools.partial(_learn, spark)


def _learn(spark: Any, spec: AnalysisSpec, refs: Sequence[PartRef]) -> Iterable[PartAnalysis]:
    context = spark.sparkContext
    sizes = np.cumsum([ref.bytes for ref in refs])
    count = min(len(refs), 4 * context.defaultParallelism)
    number = np.minimum((sizes - 1) * count // max(int(sizes[-1]), 1), count - 1)
    cuts = np.flatnonzero(np.diff(number)) + 1
    pieces = [pickle.dumps((spec, refs[a:b])) for a, b in zip([0, *cuts], [*cuts, len(refs)], strict=True)]
    with spark_job(spark, "analyze", spec.read.url):
        done = context.parallelize(pieces, len(pieces)).map(executor_function(spark, learn_pickled)).collect()
    return [pickle.loads(one) for of_task in done for one in of_task]  # noqa: S301  # made by our own tasks
