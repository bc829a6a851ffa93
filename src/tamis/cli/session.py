"""A local Spark session for commands that need one: quiet, without a UI, on all cores."""

from __future__ import annotations

import shutil
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any

from tamis.errors import InvalidInput
from tamis.spark.jvm_bridge.session_checks import check_version
from tamis.world import world


@contextmanager
def spark_session(conf: Mapping[str, str] | None = None) -> Iterator[Any]:
    """Provide the running session, or a local one that stops afterwards.

    Raises ``InvalidInput`` (``MISSING_PACKAGE``, ``UNSUPPORTED_SPARK``, ``NO_JAVA``) if Spark cannot start.
    """
    check_installed()
    warnings.filterwarnings("ignore", message="PySpark does not yet fully support pandas", category=FutureWarning)
    from pyspark.sql import SparkSession

    running = SparkSession.getActiveSession()
    if running is not None:
        yield running
        return
    with as_file(files("tamis.cli") / "quiet.properties") as log:
        builder = (
            SparkSession.builder.master("local[*]")
            .appName("tamis")
            .config("spark.ui.enabled", "false")
            .config("spark.ui.showConsoleProgress", "false")
            .config("spark.driver.memory", "2g")
            .config("spark.driver.host", "127.0.0.1")
            .config("spark.driver.bindAddress", "127.0.0.1")
            .config("spark.driver.extraJavaOptions", f"-Dlog4j2.configurationFile={log.as_uri()}")
            .config("spark.log.level", "ERROR")
        )
        for key, value in (conf or {}).items():
            builder = builder.config(key, value)
        session = builder.getOrCreate()
        try:
            yield session
        finally:
            session.stop()


def check_installed() -> None:
    """Raise ``InvalidInput`` (``MISSING_PACKAGE``, ``UNSUPPORTED_SPARK``, ``NO_JAVA``) if Spark cannot start."""
    try:
        import pyspark
    except ImportError:
        raise InvalidInput(
            "PySpark is not installed.", code="MISSING_PACKAGE", name="pyspark", remedy="pip install 'tamis[spark]'"
        ) from None
    check_version(pyspark.__version__)
    home = world().environment().get("JAVA_HOME")
    if shutil.which(str(Path(home) / "bin" / "java") if home else "java") is None:
        raise InvalidInput(
            "No java was found.",
            code="NO_JAVA",
            name="java",
            remedy="Install a JDK 17 or newer, e.g. openjdk-17-jre-headless, or set JAVA_HOME.",
        )
