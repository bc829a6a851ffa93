"""What the commands of ``tamis spark`` refuse before, or instead of, starting Spark."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Any

import pytest
from tests.cli.conftest import Run
from tests.servers.running import free_port

from tamis.cli.script_runner import run_python
from tamis.cli.spark_commands import client_address
from tamis.errors import InvalidInput
from tamis.spark.connect.read_write_options import ReadWriteOptions
from tamis.spark.connect.write_target import query_id
from tamis.spark.servers.warehouses import attach_warehouses


@pytest.mark.parametrize("server", ["connect", "thrift"])
def test_a_port_in_use_is_refused_before_spark_starts(run: Run, server: str, tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        done = run("spark", server, "--warehouse", f"lake={tmp_path}", "--port", port)
    assert done.code == 1
    assert done.err.startswith(f"[PORT_UNAVAILABLE] Cannot listen on 127.0.0.1:{port}: Address already in use.")


@pytest.mark.parametrize(
    "arguments",
    [
        ("connect", "--warehouse", "lake"),
        ("connect", "--port", "0"),
        ("sql", "--execute", "SELECT 1", "--file", "x.sql"),
        ("sql", "--file", "missing.sql"),
        ("submit", "missing.py"),
    ],
)
def test_a_bad_command_line_is_a_usage_error(run: Run, arguments: tuple[str, ...]) -> None:
    assert run("spark", *arguments).code == 2


@pytest.mark.parametrize(
    ("server", "key"),
    [("connect", "spark.connect.grpc.binding.port"), ("thrift", "spark.hadoop.hive.server2.thrift.port")],
)
def test_an_address_in_the_configuration_is_refused(run: Run, server: str, key: str, tmp_path: Path) -> None:
    done = run("spark", server, "--warehouse", f"lake={tmp_path}", "--port", free_port(), "--conf", f"{key}=1")
    assert done.code == 1
    assert done.err.startswith(f"[BAD_OPTION] --conf {key}=1 contradicts ")


def test_a_client_with_a_token_names_localhost() -> None:
    assert client_address("127.0.0.1", 1, token=False) == "sc://127.0.0.1:1"
    assert client_address("127.0.0.1", 1, token=True) == "sc://localhost:1/;token=…"
    assert client_address("::1", 1, token=False) == "sc://[::1]:1"
    assert client_address("driver.example", 1, token=True) == "sc://driver.example:1/;token=…"


class _Session:
    """A session whose configuration names these warehouses."""

    def __init__(self, **places: str) -> None:
        self.places = {f"spark.tamis.warehouse.{name}": place for name, place in places.items()}
        self.sparkContext = self

    def getConf(self) -> _Session:  # Spark's name
        return self

    def getAll(self) -> list[tuple[str, str]]:  # Spark's name
        return [*self.places.items(), ("spark.app.name", "x")]


def test_arguments_win_over_the_configuration(monkeypatch: pytest.MonkeyPatch) -> None:
    attached: list[Any] = []
    monkeypatch.setattr(
        "tamis.spark.servers.warehouses.attach",
        lambda _, name, place, *, storage_options: attached.append((name, place, storage_options)),
    )
    found = attach_warehouses(_Session(lake="/a", other="/b"), {"lake": "/c"}, {"k": "v"})
    assert found == {"lake": "/c", "other": "/b"}
    assert attached == [("lake", "/c", {"k": "v"}), ("other", "/b", {"k": "v"})]
    with pytest.raises(InvalidInput) as refused:
        attach_warehouses(_Session(), {})
    assert refused.value.code == "NO_WAREHOUSE"


@pytest.mark.parametrize(
    ("text", "code", "err"),
    [
        ("import sys; sys.exit()", 0, ""),
        ("import sys; sys.exit('no')", 1, "no\n"),
        ("import sys; sys.exit(7)", 7, ""),
        ("1 / 0", 1, "ZeroDivisionError: division by zero\n"),
        ("import sys; assert sys.argv[1:] == ['-x']; import beside", 0, ""),
    ],
)
def test_a_script_ends_as_under_python(
    text: str, code: int, err: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "script.py").write_text(text)
    (tmp_path / "beside.py").write_text("")
    assert run_python(tmp_path / "script.py", ["-x"]) == code
    assert capsys.readouterr().err.endswith(err)


def test_a_stream_needs_the_id_of_its_query(tmp_path: Path) -> None:
    def options(**more: str) -> ReadWriteOptions:
        return ReadWriteOptions.of({"path": str(tmp_path / "t"), **more})

    for bad in ({}, {"checkpointLocation": str(tmp_path)}, {"checkpointLocation": "hdfs://x/y"}):
        with pytest.raises(InvalidInput) as refused:
            query_id(options(**bad))
        assert refused.value.code == "NO_QUERY"
    (tmp_path / "metadata").write_text('{"id":"abc"}')
    assert query_id(options(checkpointLocation=str(tmp_path))) == "abc"
