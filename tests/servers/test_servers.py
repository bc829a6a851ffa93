"""``tamis spark connect``, ``thrift``, ``sql`` and ``submit``: real servers and real clients, in processes of their own."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import tamis
from tamis.cli.spark_driver import LOOK_SECONDS
from tamis.world import world
from tests.moto_server import moto
from tests.servers.running import CLIENT, TAMIS, free_port, serving, terminal, without_java

HERE = Path(__file__).parent
pytestmark = [pytest.mark.spark, pytest.mark.slow]
LOCAL = ["--master", "local[2]", "--conf", "spark.ui.enabled=false"]
client_only = pytest.mark.skipif(not CLIENT, reason="make test-connect installs the client")


def asked(script: str, *arguments: object) -> Any:
    """What a client script prints, run by a Python that can start no JVM."""
    environment = without_java({**world().environment(), "PYTHONPATH": f"{Path(tamis.__file__).parent.parent}"})
    done = subprocess.run(
        [CLIENT, str(HERE / script), *map(str, arguments)],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=280,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])


@client_only
@pytest.mark.nightly
def test_a_connect_client_without_a_jvm_does_all(tmp_path: Path) -> None:
    port = free_port()
    command = [*TAMIS, "spark", "connect", "--warehouse", f"lake={tmp_path / 'wh'}", "--port", str(port), *LOCAL]
    with serving(command, tmp_path / "log") as line:
        assert line == f"Spark Connect is ready: sc://127.0.0.1:{port}"
        answers = asked("connect_client.py", f"sc://127.0.0.1:{port}", tmp_path / "checkpoint")
    assert answers == {
        "group": [[b, 143 if b < 6 else 142] for b in range(7)],
        "changed": [[902, 5000], [5, 9, "m"], [5000, 1, "n"]],
        "past": [[1000]],
        "call": 5,
        "indexed": [[0]],
        "streamed": [[20, 90]],
        "skips": True,
    }


@client_only
@pytest.mark.nightly
def test_a_token_keeps_other_clients_out(tmp_path: Path) -> None:
    """On all addresses of the machine, as a server for other machines listens."""
    port = free_port()
    tamis.create(tmp_path / "wh" / "db" / "t", "id BIGINT").append(pa.table({"id": [1, 2, 3]}))
    command = [*TAMIS, "spark", "connect", "--warehouse", f"lake={tmp_path / 'wh'}", "--host", "0.0.0.0"]
    command += ["--port", str(port), *LOCAL]
    with serving(command, tmp_path / "log", {"SPARK_CONNECT_AUTHENTICATE_TOKEN": "s3cret"}) as line:
        assert line == f"Spark Connect is ready: sc://localhost:{port}/;token=…"
        address = f"sc://localhost:{port}"
        answers = asked("token_client.py", address, f"{address}/;token=wrong", f"{address}/;token=s3cret")
    assert answers == ["UNAUTHENTICATED", "UNAUTHENTICATED", "3"]
    assert "s3cret" not in (tmp_path / "log").read_text()


@pytest.mark.merge
def test_the_plugins_of_the_configuration_stay(tmp_path: Path) -> None:
    """The server listens once it says so, beside a plugin that spark-defaults.conf names."""
    conf = tmp_path / "conf"
    conf.mkdir()
    (conf / "spark-defaults.conf").write_text("spark.plugins org.example.Missing\n")
    command = [*TAMIS, "spark", "connect", "--warehouse", f"lake={tmp_path / 'wh'}", "--port", str(free_port()), *LOCAL]
    done = subprocess.run(
        command,
        env={**world().environment(), "SPARK_CONF_DIR": str(conf)},
        capture_output=True,
        text=True,
        check=False,
        timeout=280,
    )
    assert done.returncode == 1
    assert "org.example.Missing" in done.stderr
    port = free_port()
    command = [*TAMIS, "spark", "connect", "--warehouse", f"lake={tmp_path / 'wh'}", "--port", str(port), *LOCAL]
    with serving(command, tmp_path / "log"), socket.create_connection(("127.0.0.1", port), timeout=10) as client:
        assert client.getpeername()[1] == port


@pytest.mark.merge
def test_a_jvm_that_ends_is_named(tmp_path: Path) -> None:
    port = str(free_port())
    command = [*TAMIS, "spark", "connect", "--warehouse", f"lake={tmp_path / 'wh'}", "--port", port, *LOCAL]
    with serving(command, tmp_path / "log"):
        subprocess.run(["pkill", "-9", "-f", f"binding.port={port}"], check=True)
        world().sleep(5 * LOOK_SECONDS)
    assert "[JVM_LOST] The JVM of Spark has ended." in (tmp_path / "log").read_text()


@client_only
@pytest.mark.nightly
def test_a_server_of_others_reads_and_writes_by_the_data_source(tmp_path: Path) -> None:
    """The server has the package tamis, and no catalog of it."""
    port = free_port()
    command = [sys.executable, str(HERE / "plain_connect_server.py"), str(port)]
    with serving(command, tmp_path / "log", {"PYSPARK_PYTHON": sys.executable}):
        answers = asked("data_source_client.py", f"sc://127.0.0.1:{port}", tmp_path)
    assert answers == {
        "attach": "SPARK_CONNECT",
        "schema": True,
        "same rows": [0, 2000, {"m": 999_000, "v": 2000}],
        "filtered": [2, 1972, 2, 0],
        "after a filter": 2000,
        "joined": 4,
        "columns": ["b", "id"],
        "filter": 20,
        "none": 0,
        "version": 1000,
        "unknown option": "UNKNOWN_OPTION",
        "schema given": "BAD_OPTION",
        "missing": "TABLE_NOT_FOUND",
        "overwritten": [10, 2000],
        "other columns": "MISSING_COLUMN",
        "stream read": "UNSUPPORTED_READ",
        "streamed": True,
    }


@pytest.mark.merge
def test_jdbc_clients_have_the_catalogs(tmp_path: Path) -> None:
    import pyspark

    port = free_port()
    script = tmp_path / "script.sql"
    script.write_text(
        "CREATE NAMESPACE lake.db;\n"
        "CREATE TABLE lake.db.t AS SELECT id AS a, id % 7 AS b FROM range(1000);\n"
        "DELETE FROM lake.db.t WHERE a % 10 = 3;\n"
        "MERGE INTO lake.db.t t USING (SELECT 5 AS a, 9 AS b) q ON t.a = q.a WHEN MATCHED THEN UPDATE SET *;\n"
        "OPTIMIZE lake.db.t;\n"
        "SELECT count(*) AS n, max(b) AS m FROM lake.db.t WHERE a >= 5;\n"
    )
    command = [*TAMIS, "spark", "thrift", "--warehouse", f"lake={tmp_path / 'wh'}", "--port", str(port), *LOCAL]
    with serving(command, tmp_path / "log") as line:
        assert line == f"The Thrift server is ready: jdbc:hive2://127.0.0.1:{port}"
        beeline = Path(pyspark.__file__).parent / "bin" / "beeline"
        options = ["-u", line.rpartition(" ")[2], "--outputformat=csv2", "--silent=true", "-f", str(script)]
        done = subprocess.run([beeline, *options], capture_output=True, text=True, check=False, timeout=280)
    assert done.returncode == 0, done.stderr[-3000:]
    assert "n,m\n896,9" in done.stdout


@pytest.mark.merge
def test_sql_runs_statements_until_the_first_error(tmp_path: Path) -> None:
    command = [*TAMIS, "spark", "sql", "--warehouse", f"lake={tmp_path / 'wh'}", *LOCAL]
    text = (
        "CREATE NAMESPACE lake.db; CREATE TABLE lake.db.t AS SELECT id FROM range(5);\n"
        "-- a comment; with a semicolon\n"
        "SELECT ';', id, chr(27) FROM lake.db.t WHERE id > 2 ORDER BY id; SELECT nothing; SELECT 'never'"
    )
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=False, timeout=280)
    assert (done.returncode, done.stdout) == (1, ";\t3\t\\x1b\n;\t4\t\\x1b\n")
    assert "[SPARK] [UNRESOLVED_COLUMN" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.merge
def test_the_shell_answers_at_a_terminal(tmp_path: Path) -> None:
    """A statement over several lines, an error that does not end the session, and quit."""
    command = [*TAMIS, "spark", "sql", "--warehouse", f"lake={tmp_path / 'wh'}", *LOCAL]
    shown = terminal(
        command,
        [
            "CREATE NAMESPACE lake.db;",
            "CREATE TABLE lake.db.t AS\nSELECT id * 111 AS n FROM range(5);",
            "SELECT nothing;",
            "SELECT max(n) FROM lake.db.t;",
            "quit",
        ],
    )
    assert "444" in shown.partition("max(n) FROM")[2]
    assert "[UNRESOLVED_COLUMN" in shown
    assert tamis.open(tmp_path / "wh" / "db" / "t").scan().count() == 5


@pytest.mark.merge
def test_a_core_site_names_the_store_of_a_bucket(tmp_path: Path) -> None:
    """Keys of the bucket go before the general ones, which are wrong here; ``s3a://`` is ``s3://``."""
    with moto(tmp_path) as options:
        bucket = {"endpoint": options["endpoint"], "access.key": "mine", "secret.key": "mine"}
        keys = {f"fs.s3a.bucket.lake.{key}": value for key, value in bucket.items()}
        keys |= {"fs.s3a.endpoint": "http://127.0.0.1:1", "fs.s3a.endpoint.region": "us-east-1"}
        entries = (f"<property><name>{key}</name><value>{value}</value></property>" for key, value in keys.items())
        (tmp_path / "core-site.xml").write_text(f"<configuration>{''.join(entries)}</configuration>")
        text = (
            "CREATE NAMESPACE lake.db; CREATE TABLE lake.db.t AS SELECT id FROM range(7); SELECT sum(id) FROM lake.db.t"
        )
        done = subprocess.run(
            [*TAMIS, "spark", "sql", "--warehouse", "lake=s3a://lake/wh", *LOCAL],
            env={**world().environment(), "HADOOP_CONF_DIR": str(tmp_path)},
            input=text, capture_output=True, text=True, check=False, timeout=280,
        )  # fmt: skip
        assert (done.returncode, done.stdout) == (0, "21\n"), done.stderr[-3000:]
        found = [word for key, value in options.items() for word in ("--storage-option", f"{key}={str(value).lower()}")]
        shown = subprocess.run(
            [*TAMIS, "history", "s3://lake/wh/db/t", "--json", *found],
            capture_output=True, text=True, check=False, timeout=120,
        )  # fmt: skip
    assert shown.returncode == 0, shown.stderr
    assert json.loads(shown.stdout)[0]["operation"] == "create"


@pytest.mark.merge
def test_a_script_runs_with_the_catalogs_of_the_configuration(tmp_path: Path) -> None:
    conf = tmp_path / "conf"
    conf.mkdir()
    (conf / "spark-defaults.conf").write_text(f"spark.tamis.warehouse.lake {tmp_path / 'wh'}\nspark.ui.enabled false\n")
    script = tmp_path / "script.py"
    script.write_text(
        "import sys\n"
        "from pyspark.sql import SparkSession, functions as f\n"
        "spark = SparkSession.builder.getOrCreate()\n"
        "spark.sql('CREATE NAMESPACE lake.db')\n"
        "spark.range(5).writeTo('lake.db.t').create()\n"
        "plus = f.udf(lambda x: x + 1, 'long')\n"
        "print(sys.argv[1:], spark.table('lake.db.t').where('id > 2').select(plus('id')).collect(), __name__)\n"
        "sys.exit(3)\n"
    )
    done = subprocess.run(
        [*TAMIS, "spark", "submit", "--master", "local[2]", str(script), "--warehouse", "x", "-n", "5"],
        env={**world().environment(), "SPARK_CONF_DIR": str(conf)},
        capture_output=True,
        text=True,
        check=False,
        timeout=280,
    )
    assert done.returncode == 3, done.stderr[-3000:]
    assert "['--warehouse', 'x', '-n', '5'] [Row(<lambda>(id)=4), Row(<lambda>(id)=5)] __main__" in done.stdout
