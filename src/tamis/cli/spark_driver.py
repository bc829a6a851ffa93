"""The driver of a ``tamis spark`` command: a session with attached catalogs, which runs until it is told to stop."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from typing import Any

from tamis.cli.session import check_installed
from tamis.errors import InvalidInput, StoreUnavailable

LOOK_SECONDS = 1.0
"""How often a server looks whether its JVM is still there."""


@dataclass(frozen=True, slots=True)
class DriverOptions:
    """What every ``tamis spark`` command takes. ``warehouses``: place by catalog name."""

    warehouses: Mapping[str, str]
    storage_options: Mapping[str, str]
    conf: Mapping[str, str]
    master: str | None = None

    def with_defaults(self, conf: Mapping[str, str]) -> DriverOptions:
        """Return these options with ``conf`` for the settings that they lack."""
        return replace(self, conf={**conf, **self.conf})


@contextmanager
def attached_session(options: DriverOptions, conf: Mapping[str, str], name: str) -> Iterator[Any]:
    """Provide a session with the catalogs attached, and stop it afterwards.

    Its settings are those of spark-defaults.conf, then ``options.conf``, then ``conf``.
    Raises ``InvalidInput`` (``BAD_OPTION`` if ``options.conf`` contradicts ``conf``, ``MISSING_PACKAGE``,
    ``UNSUPPORTED_SPARK``, ``NO_JAVA``, ``NO_WAREHOUSE`` and what ``attach`` raises).
    """
    _check_settings(options.conf, conf)
    check_installed()
    from pyspark.sql import SparkSession

    from tamis.spark.servers.warehouses import attach_warehouses

    builder = SparkSession.builder.appName(options.conf.get("spark.app.name", name))
    if options.master:
        builder = builder.master(options.master)
    for key, value in {**options.conf, **conf}.items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    try:
        attach_warehouses(session, options.warehouses, options.storage_options)
        yield session
    finally:
        with suppress(ConnectionError):  # the JVM has ended: serve() reports that
            session.stop()


def _check_settings(given: Mapping[str, str], chosen: Mapping[str, str]) -> None:
    for key, value in chosen.items():
        if given.get(key, value) != value:
            raise InvalidInput(
                f"--conf {key}={given[key]} contradicts {value}, which this command sets.",
                code="BAD_OPTION",
                name=key,
                remedy="Leave it out, and choose the address by --host and --port.",
            )


@contextmanager
def stop_signal() -> Iterator[threading.Event]:
    """Provide an event that SIGINT and SIGTERM set."""
    stopped = threading.Event()

    def stop(*_: object) -> None:
        stopped.set()

    before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stopped
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def serve_until_stopped(session: Any, stopped: threading.Event) -> None:
    """Wait for ``stopped``. Raises ``StoreUnavailable`` (``JVM_LOST``) if the JVM ends first."""
    java = session.sparkContext._gateway.proc
    while not stopped.wait(LOOK_SECONDS):
        if java.poll() is not None:
            raise StoreUnavailable(
                "The JVM of Spark has ended.",
                code="JVM_LOST",
                name="java",
                remedy="Look at its last messages above; give it more memory by --conf spark.driver.memory=4g.",
            )
