"""Commands that start Spark with attached catalogs: connect, thrift, sql, submit."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from tamis.cli.arguments import Stored, key_value_pairs
from tamis.cli.output import print_line, print_note
from tamis.cli.spark_driver import DriverOptions, attached_session, serve_until_stopped, stop_signal
from tamis.world import world

Warehouses = Annotated[
    list[str] | None,
    typer.Option(
        "--warehouse",
        "-w",
        metavar="NAME=PLACE",
        help="A catalog's name and its folder or URL, e.g. lake=s3://bucket/wh. Repeatable. "
        "spark.tamis.warehouse.NAME of spark-defaults.conf adds others.",
    ),
]
Master = Annotated[str | None, typer.Option(metavar="URL", help="Spark's master; by default the configured one.")]
Conf = Annotated[list[str] | None, typer.Option("--conf", metavar="KEY=VALUE", help="A setting of Spark. Repeatable.")]
Host = Annotated[
    str, typer.Option(metavar="ADDRESS", help="The address to listen on. Anyone who can reach it acts as this user.")
]

program = typer.Typer(name="spark", help="Start Spark with catalogs attached.", no_args_is_help=True)


def connect(
    warehouse: Warehouses = None,
    host: Host = "127.0.0.1",
    port: Annotated[int, typer.Option(min=1, max=65535, metavar="N", help="The port to listen on.")] = 15002,
    master: Master = None,
    conf: Conf = None,
    storage_option: Stored = None,
) -> None:
    """Serve Spark Connect until the process is stopped. Clients need neither a JVM nor tamis.

    With the environment's SPARK_CONNECT_AUTHENTICATE_TOKEN, clients must send that token.
    """
    from tamis.spark.servers.connect_server import connect_conf, start_connect_server, stop_connect_server
    from tamis.spark.servers.server_port import check_port

    options = _options(warehouse, storage_option, conf, master)
    check_port(host, port)
    with stop_signal() as stopped, attached_session(options, connect_conf(host, port), "tamis connect") as session:
        start_connect_server(session)
        token = "SPARK_CONNECT_AUTHENTICATE_TOKEN" in world().environment()
        _ready(f"Spark Connect is ready: {client_address(host, port, token=token)}")
        serve_until_stopped(session, stopped)
        stop_connect_server(session)  # not after an error: a JVM that has ended cannot be asked


def thrift(
    warehouse: Warehouses = None,
    host: Host = "127.0.0.1",
    port: Annotated[int, typer.Option(min=1, max=65535, metavar="N", help="The port to listen on.")] = 10000,
    master: Master = None,
    conf: Conf = None,
    storage_option: Stored = None,
) -> None:
    """Serve JDBC and ODBC clients by Spark's Thrift server until the process is stopped."""
    from tamis.spark.servers.server_port import check_port
    from tamis.spark.servers.thrift_server import start_thrift_server, thrift_conf

    options = _options(warehouse, storage_option, conf, master)
    check_port(host, port)
    with stop_signal() as stopped, attached_session(options, thrift_conf(host, port), "tamis thrift") as session:
        server = start_thrift_server(session)
        _ready(f"The Thrift server is ready: jdbc:hive2://{_authority(host, port)}")
        serve_until_stopped(session, stopped)
        server.stop()


def sql(
    warehouse: Warehouses = None,
    execute: Annotated[str | None, typer.Option("--execute", "-e", metavar="SQL", help="Run these statements.")] = None,
    file: Annotated[str | None, typer.Option("--file", "-f", metavar="FILE", help="Run a file's statements.")] = None,
    master: Master = None,
    conf: Conf = None,
    storage_option: Stored = None,
) -> None:
    """Run SQL statements: those of --execute or --file, or those that are typed or piped in.

    Rows are printed as spark-sql prints them, separated by tabs. The first error of a script ends it.
    """
    from tamis.cli.sql_shell import quiet_log, run_script, run_shell

    options = _options(warehouse, storage_option, conf, master)
    if execute is not None and file is not None:
        raise typer.BadParameter("Give statements or a file, not both.", param_hint="--execute / --file")
    script = execute if file is None else _text(file)
    if script is None and not sys.stdin.isatty():
        script = sys.stdin.read()
    with quiet_log() as quiet, attached_session(options.with_defaults(quiet), {}, "tamis sql") as session:
        if script is None:
            run_shell(session)
        else:
            run_script(session, script)


def submit(
    script: Annotated[str, typer.Argument(metavar="SCRIPT", help="A Python script.")],
    arguments: Annotated[list[str] | None, typer.Argument(metavar="[ARGUMENTS]", help="Its arguments.")] = None,
    warehouse: Warehouses = None,
    master: Master = None,
    conf: Conf = None,
    storage_option: Stored = None,
) -> None:
    """Run a Python script whose SparkSession.builder.getOrCreate() has the catalogs. Options go before SCRIPT.

    The driver runs on this machine; its exit code is that of the script.
    """
    from tamis.cli.script_runner import run_python

    options = _options(warehouse, storage_option, conf, master)
    path = Path(script)
    if not path.is_file():
        raise typer.BadParameter(f"{script} is not a file.", param_hint="SCRIPT")
    with attached_session(options, {}, path.name):
        code = run_python(path, arguments or [])
    raise typer.Exit(code)


def _options(
    warehouses: list[str] | None, storage: list[str] | None, conf: list[str] | None, master: str | None
) -> DriverOptions:
    return DriverOptions(
        key_value_pairs(warehouses, "--warehouse"),
        key_value_pairs(storage, "--storage-option"),
        key_value_pairs(conf, "--conf"),
        master,
    )


def client_address(host: str, port: int, *, token: bool) -> str:
    """Return the address for a client on this machine. PySpark sends a token without TLS only to ``localhost``."""
    if not token:
        return f"sc://{_authority(host, port)}"
    name = "localhost" if host in {"127.0.0.1", "::1", "0.0.0.0", "::"} else _authority(host, port).rpartition(":")[0]  # noqa: S104  # compared only
    return f"sc://{name}:{port}/;token=…"


def _authority(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _ready(message: str) -> None:
    """Print the line for which a caller waits; flushed, as it may go to a pipe."""
    print_line(message)
    sys.stdout.flush()
    print_note("Stop it by Ctrl-C or SIGTERM.")


def _text(file: str) -> str:
    try:
        return Path(file).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise typer.BadParameter(f"{file} cannot be read: {error}", param_hint="--file") from error
