"""The only way by which Python functions of Tamis reach executors.

``executor_function`` has the executors run the right interpreter (``worker_python``), and wraps the function so that
an executor checks its packages before it imports anything of Tamis. A package that is missing there, or another version
of Tamis, is an error that names host, interpreter and remedy. The first such task ends its job
(``ExecutorFailures.java``). A job of ours raises it as a ``TamisError`` (``spark_job``), a query of the user's as
PySpark's ``PythonException``.
"""

from __future__ import annotations

import re
import sys
import weakref
from collections.abc import Callable
from typing import Any

import tamis
from tamis.errors import InvalidInput, TamisError
from tamis.spark.executors.worker_python import choose_python, is_local
from tamis.spark.jvm_bridge.adapter import Bridge, bridge_of
from tamis.spark.jvm_bridge.session_checks import is_connect

_MISSING = re.compile(r"\[MISSING_PACKAGE\] The executor on (\S+) runs (.+?), which has no (\S+)\. Install")
_DIFFERS = re.compile(r"\[VERSION_DIFFERS\] The executor on (\S+) runs (.+?) with tamis (\S+), the driver")
_watched: weakref.WeakSet[Any] = weakref.WeakSet()
"""The Spark contexts whose jobs end at the first task that lacks a package."""


def executor_function(spark: Any, function: Callable[..., Any], name: str | None = None) -> ExecutorFunction:
    """``function`` for the executors of the session ``spark``, which may be one of Spark Connect.

    ``name`` is what Spark's plans call it.
    """
    if is_connect(spark):
        return ExecutorFunction(function, name)
    return executor_function_by(bridge_of(spark), spark.sparkContext, function, name)


def executor_function_by(
    owner: Bridge, context: Any, function: Callable[..., Any], name: str | None = None
) -> ExecutorFunction:
    """``function`` for the executors of a ``SparkContext`` in the JVM of ``owner``."""
    choose_python(context, wait=True)
    tries_once = is_local(context.master) and "," not in context.master  # local[2,4] tries a task four times
    if not tries_once and context not in _watched:
        owner.helper("ExecutorFailures").watch(context._jsc.sc())
        _watched.add(context)
    return ExecutorFunction(function, name)


class ExecutorFunction:
    """A function that is pickled with a check of the packages of the process that unpickles it."""

    def __init__(self, function: Callable[..., Any], name: str | None = None) -> None:
        self._function = function
        self.__name__ = name or type(self).__name__

    def __call__(self, *arguments: Any) -> Any:
        return self._function(*arguments)

    def __reduce__(self) -> tuple[Any, ...]:
        from pyspark import cloudpickle

        texts = str(_missing("{host}", "{python}", "{package}")), str(_differs("{host}", "{python}", "{version}"))
        return _unpickle, (cloudpickle.dumps(self._function), tamis.__version__, *texts)


def _self_contained() -> Callable[..., Any]:
    """The function that unpickles a shipped function.

    It is local, so that cloudpickle sends its code, not its name: the executor may have no Tamis. So it uses nothing
    of this module.
    """

    def unpickle(payload: bytes, version: str, missing: str, differs: str) -> Any:
        import importlib
        import pickle
        import platform
        import sys

        package = "tamis"
        try:
            found = getattr(importlib.import_module(package), "__version__", None)  # None: some folder of that name
            if found == version:
                function = pickle.loads(payload)  # noqa: S301  # made by the driver, sent by Spark like code
                if "pyspark.worker" in sys.modules:
                    importlib.import_module("tamis.spark.executors.worker_process").prepare_worker()
                return function
        except ModuleNotFoundError as error:
            found, package = None, error.name or package
        text = missing.replace("{package}", package) if found is None else differs.replace("{version}", found)
        raise RuntimeError(text.replace("{host}", platform.node()).replace("{python}", sys.executable)) from None

    return unpickle


_unpickle = _self_contained()


def executor_error(error: BaseException) -> TamisError | None:
    """The error of an executor's packages that failed a job of Spark, or None."""
    text = str(error)
    if found := _MISSING.search(text):
        return _missing(*found.groups())
    if found := _DIFFERS.search(text):
        return _differs(*found.groups())
    return None


def _missing(host: str, python: str, package: str) -> InvalidInput:
    return InvalidInput(
        f"The executor on {host} runs {python}, which has no {package}.",
        code="MISSING_PACKAGE",
        name=package,
        remedy=f"Install what the driver has, pip install 'tamis[spark]=={tamis.__version__}', on every executor, or "
        "set PYSPARK_PYTHON to an interpreter there that has it.",
    )


def _differs(host: str, python: str, version: str) -> InvalidInput:
    return InvalidInput(
        f"The executor on {host} runs {python} with tamis {version}, the driver {sys.executable} with tamis "
        f"{tamis.__version__}.",
        code="VERSION_DIFFERS",
        name=version,
        remedy=f"Install what the driver has, pip install 'tamis[spark]=={tamis.__version__}', on every executor.",
    )
