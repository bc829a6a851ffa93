"""What all tests share: how much Hypothesis tries, and one Spark session per process.

``HYPOTHESIS_PROFILE`` is the only dial of the property tests; a test never sets its own number of examples. A tier of tests sets it:
``push`` (``make test``, and wherever ``CI`` is set), ``merge`` (``make test-all``), ``nightly``; ``dev`` is for ``pytest`` by hand.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

# What these modules assert is shown with its values, as in a test.
pytest.register_assert_rewrite(
    "tests.bridges.followed_iceberg_tables",
    "tests.spark.coming_from_reads",
    "tests.spark.coming_from_schemas",
    "tests.spark.coming_from_shop",
    "tests.spark.coming_from_tables",
    "tests.spark.coming_from_upkeep",
    "tests.spark.coming_from_writes",
)

IN_CI = os.environ.get("CI", "").lower() in {"1", "true", "yes"}
OLDEST_JAVA = 17

_QUIET = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.function_scoped_fixture]
settings.register_profile("dev", max_examples=40, deadline=None, suppress_health_check=_QUIET)
for _tier, _examples in (("push", 20), ("merge", 150)):  # the same cases in every run: a red run is the change's doing
    settings.register_profile(
        _tier, max_examples=_examples, deadline=None, derandomize=True, print_blob=True, suppress_health_check=_QUIET
    )
settings.register_profile("nightly", max_examples=3_000, deadline=None, print_blob=True, suppress_health_check=_QUIET)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE") or ("push" if IN_CI else "dev"))

# Python turns Spark's instants into local time: one zone for the driver, the JVM and the workers keeps tests the same everywhere.
os.environ["TZ"] = "UTC"
time.tzset()
# An audit that finds a wrong proof fails the test.
os.environ["TAMIS_AUDIT"] = "raise"
# Workers start the first python3 on PATH, which may lack pyarrow; ``tamis.attach`` cares for that, plain Spark in tests does not.
os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
# Java's second compiler pays after minutes of one query; tests ask thousands of small ones. Without it they take 40 % less of the
# processors, in every JVM that a test or one of its processes starts. Without that compiler Java keeps 48 MiB for compiled code, which
# the classes that Spark generates fill again and again; and it collects classes from 21 MiB of metadata on.
os.environ.setdefault(
    "SPARK_SUBMIT_OPTS",
    "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:ReservedCodeCacheSize=256m -XX:MetaspaceSize=512m",
)


def java_problem() -> str | None:
    """Why Spark cannot start on this machine, in a sentence; None where it can."""
    home = os.environ.get("JAVA_HOME")
    java = shutil.which(str(Path(home) / "bin" / "java")) if home else shutil.which("java")
    if java is None:
        return "No java was found (JAVA_HOME, PATH): install a JDK 17 or newer, e.g. openjdk-17-jre-headless."
    output = subprocess.run([java, "-version"], capture_output=True, text=True, check=False).stderr
    version = re.search(r'version "(?:1\.)?(\d+)', output)
    if version is None or int(version[1]) < OLDEST_JAVA:
        return f"{java} is not Java {OLDEST_JAVA} or newer: install a JDK {OLDEST_JAVA}, e.g. openjdk-17-jre-headless."
    return None


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """The one Spark session of a test run: two threads, no UI, UTC, its warehouse in a temporary folder.

    Tests that change its conf put it back, or use ``spark.newSession()``. Without Java they are skipped; in CI they fail.
    """
    problem = java_problem()
    if problem is not None:
        (pytest.fail if IN_CI else pytest.skip)(problem)
    from pyspark.sql import SparkSession

    home = tmp_path_factory.mktemp("spark")
    session = (
        SparkSession.builder.master("local[2]")
        .appName("tamis-tests")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.default.parallelism", "2")
        .config("spark.driver.memory", "2g")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.extraJavaOptions", f"-Duser.timezone=UTC -Dderby.system.home={home}")
        .config("spark.sql.session.timeZone", "UTC")
        .config(
            "tamis.read.native_bytes", "0"
        )  # tests' tables are tiny: what our reader does with a filter is to be seen
        .config("spark.sql.warehouse.dir", str(home / "warehouse"))
        .config("spark.showConsoleProgress", "false")
        .config("spark.python.daemon.module", "tests.preloaded_daemon")
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("ERROR")
    yield session
    session.stop()


@pytest.fixture(autouse=True)
def active_session(request: pytest.FixtureRequest) -> None:
    """Make ``spark`` Java's active session: Spark keeps that of the last ``createDataFrame``, which may be another test's."""
    if "spark" in request.fixturenames:
        session = request.getfixturevalue("spark")
        getattr(session._jvm, "org.apache.spark.sql.classic.SparkSession").setActiveSession(session._jsparkSession)


def mark_cases_of_merges(items: list[pytest.Item]) -> None:
    """Mark with ``merge`` the cases that ``push_cases`` leaves to the tests of a merge; those that stay are spread evenly."""
    cases: dict[str, list[pytest.Item]] = {}
    for item in items:
        if item.get_closest_marker("push_cases"):
            cases.setdefault(item.nodeid.split("[")[0], []).append(item)
    for group in cases.values():
        marker = group[0].get_closest_marker("push_cases")
        stay = {at * len(group) // marker.args[0] for at in range(marker.args[0])} if marker else set()
        for at, item in enumerate(group):
            if at not in stay:
                item.add_marker(pytest.mark.merge)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A test that asks for the session is a Spark test, whether it says so or not; nightly ones run in the long profile only.

    Files with Spark tests come first: they take longest, and a long file at the end would keep one process alone.
    """
    mark_cases_of_merges(items)
    nightly = settings.get_current_profile_name() == "nightly"
    for item in items:
        if "spark" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.spark)
        if item.get_closest_marker("nightly") and not nightly:
            item.add_marker(pytest.mark.skip(reason="only in the long profile: HYPOTHESIS_PROFILE=nightly"))
    sparks = {item.path for item in items if item.get_closest_marker("spark")}
    items.sort(key=lambda item: item.path not in sparks)
