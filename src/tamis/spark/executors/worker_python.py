"""Which Python interpreter executors run. Every job of Tamis that runs Python asks here before it starts.

1. What is configured: ``PYSPARK_PYTHON``, else ``spark.pyspark.python``, else ``spark.executorEnv.PYSPARK_PYTHON``.
   Spark itself reads the second only in spark-submit, and the third never.
2. The driver's interpreter, if every executor runs on the driver's machine.
3. Spark's own choice: the first ``python3`` on the executor's PATH.
"""

from __future__ import annotations

import socket
import sys
import weakref
from functools import lru_cache
from typing import Any

from tamis.world import world

_SPARKS_CHOICE = "python3"
"""What PySpark runs if nothing is configured."""
_CONF = ("spark.pyspark.python", "spark.executorEnv.PYSPARK_PYTHON")
_ours: weakref.WeakKeyDictionary[Any, str] = weakref.WeakKeyDictionary()
"""The driver's interpreter, by the Spark contexts that run it because of rule 2."""


def choose_python(context: Any, *, wait: bool) -> None:
    """Have the Python workers of a ``SparkContext`` run the right interpreter; leave one that the user has set.

    ``wait``: where a cluster has no executor yet, wait for the first one. Otherwise decide nothing.
    """
    chosen_before = _ours.get(context)
    if world().environment().get("PYSPARK_PYTHON") or context.pythonExec not in {_SPARKS_CHOICE, chosen_before}:
        return
    local = is_local(context.master)
    if chosen_before is None:
        conf = context._jsc.getConf()
        if configured := next((python for key in _CONF if (python := conf.get(key, ""))), None):
            context.pythonExec = configured
            return
    elif local:
        context.pythonExec = chosen_before
        return
    shared = local or _shares_machine(context, wait)
    if shared:
        context.pythonExec = _ours[context] = sys.executable
    elif shared is False:  # perhaps an executor elsewhere has just joined
        context.pythonExec = _SPARKS_CHOICE


def is_local(master: str) -> bool:
    """Whether executors are threads of the driver's JVM."""
    return master == "local" or master.startswith("local[")


def _shares_machine(context: Any, wait: bool) -> bool | None:
    """Whether all executors run on this machine; None if there are none yet."""
    hosts = _hosts(context)
    if len(hosts) < 2 and wait:
        one = context._jvm.java.util.Collections.singletonList("")
        context._jsc.parallelize(one, 1).count()  # runs in an executor, and needs no Python there
        hosts = _hosts(context)
    return all(map(is_this_machine, hosts)) if len(hosts) > 1 else None


def _hosts(context: Any) -> list[str]:
    """The hosts of the driver and of the executors, one each."""
    found = str(context._jsc.sc().getExecutorMemoryStatus().keys().mkString(" "))
    return [address.rpartition(":")[0].strip("[]") for address in found.split()]


@lru_cache(maxsize=1024)  # asked before each job; a name server may be slow
def is_this_machine(host: str) -> bool:
    """Whether ``host`` is an address of this machine: only such an address can be bound."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, 0, type=socket.SOCK_DGRAM)[0]
        with socket.socket(family, kind, protocol) as probe:
            probe.bind(address)
    except OSError:
        return False
    return True
