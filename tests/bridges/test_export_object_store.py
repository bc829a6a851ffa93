"""Exports of tables on an object store: S3 as moto serves it, read by libraries of others."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from types import ModuleType
from typing import Any

import deltalake
import polars as pl
import pyarrow as pa
import pytest
from pyiceberg.table import StaticTable

import tamis
from tamis.bridges.export import delta_log, iceberg_metadata
from tamis.errors import Conflict
from tests.bridges.exported_tables import made, rows, values_of
from tests.moto_server import moto
from tests.storage.fake_s3 import FakeS3, serve

BOTH = {"tamis.export": "iceberg, delta"}


@pytest.fixture(scope="module")
def options(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    with moto(tmp_path_factory.mktemp("moto")) as found:
        yield found


class Readers:
    """Foreign readers of the tables on one server."""

    def __init__(self, options: dict[str, Any]) -> None:
        self.delta = {
            "AWS_ENDPOINT_URL": options["endpoint"],
            "AWS_REGION": options["region"],
            "AWS_ACCESS_KEY_ID": options["access_key_id"],
            "AWS_SECRET_ACCESS_KEY": options["secret_access_key"],
            "AWS_ALLOW_HTTP": "true",
        }
        self.iceberg = {
            "s3.endpoint": options["endpoint"],
            "s3.region": options["region"],
            "s3.access-key-id": options["access_key_id"],
            "s3.secret-access-key": options["secret_access_key"],
        }

    def every(self, table: tamis.Table) -> list[list[str]]:
        """The rows that each reader finds."""
        opened = deltalake.DeltaTable(table.path, storage_options=self.delta)
        number = table.store.get("metadata/version-hint.text").decode()
        place = f"{table.path}/metadata/v{number}.metadata.json"
        found = [
            pa.table(deltalake.QueryBuilder().register("t", opened).execute("SELECT * FROM t")),
            StaticTable.from_metadata(place, properties=self.iceberg).scan().to_arrow(),
        ]
        if " " not in table.path:  # Polars escapes such names twice
            found.append(pl.scan_delta(table.path, storage_options=self.delta).collect().to_arrow())
        return [values_of(rows_) for rows_ in found]


@pytest.mark.merge
@pytest.mark.parametrize("name", ["plain", "a folder/ünï"])
def test_exports_follow_commits(options: dict[str, Any], name: str) -> None:
    table = made(f"s3://lake/{name}/t", storage_options=options, properties=BOTH)
    readers = Readers(options)
    for change in (
        lambda: table.delete("id % 3 = 1"),
        lambda: table.append(rows(50, 51)),
        lambda: table.compact(cluster_by=["id", "day"]),
        lambda: table.vacuum(timedelta(0), dry_run=False, below_retention=True),
    ):
        change()
        wanted = values_of(table.refresh().scan().to_arrow())
        assert all(found == wanted for found in readers.every(table))
    assert [(row["behind"], row["problem"]) for row in table.exports().to_pylist()] == [(0, None)] * 2


def test_exporters_race_by_conditional_writes() -> None:
    """Each exports the version that it knows; none overwrites another's, and the newest one wins."""
    with serve(FakeS3) as (options, handler):
        table = made("s3://bucket/race", storage_options=options)
        opened = []
        for at in range(4):
            table.append(rows(100 + at))
            opened.append(tamis.open(table.path, storage_options=options))
        calls = [(one, name) for one in opened for name in ("delta", "iceberg")] * 2
        with ThreadPoolExecutor(8) as pool:
            done = list(pool.map(lambda call: call[0].export(call[1]), calls))
        written = [(one.format, one.exported_version) for one in done if one.written]
        assert len(written) == len(set(written))
        assert [row["behind"] for row in table.refresh().exports().to_pylist()] == [0, 0]
        first_lines = [
            json.loads(data.splitlines()[0]) for name, data in sorted(handler.objects.items()) if "_delta_log" in name
        ]
        versions = [line["commitInfo"]["tamis"]["version"] for line in first_lines]
        assert versions == sorted(set(versions))


@pytest.mark.parametrize(
    ("name", "module", "function", "path"),
    [
        ("delta", delta_log, "write_commit", f"_delta_log/{1:020}.json"),
        ("iceberg", iceberg_metadata, "write_metadata", "metadata/v2.metadata.json"),
    ],
)
def test_a_foreign_commit_at_the_last_moment_is_not_overwritten(
    monkeypatch: pytest.MonkeyPatch, name: str, module: ModuleType, function: str, path: str
) -> None:
    with serve(FakeS3) as (options, _):
        table = made("s3://bucket/foreign", storage_options=options)
        table.export(name)
        table.append(rows(60))
        plain = getattr(module, function)

        def late(store: Any, *more: Any) -> Any:
            if path not in [entry.path for entry in store.list(path.partition("/")[0])]:
                store.put(path, b"{}\n")
            return plain(store, *more)

        monkeypatch.setattr(module, function, late)
        with pytest.raises(Conflict) as error:
            table.export(name)
        assert error.value.code == "EXPORT_FOREIGN_COMMIT"
        assert table.store.get(path) == b"{}\n"


def test_a_final_export_is_a_plain_table(options: dict[str, Any], tmp_path: Path) -> None:
    table = made("s3://lake/final/t", storage_options=options)
    table.delete("id < 3")
    table.export("delta", final=True)
    readers = Readers(options)
    deltalake.write_deltalake(
        table.path,
        pa.table({"id": [100]}),
        mode="append",
        schema_mode="merge",
        storage_options={**readers.delta, "conditional_put": "etag"},
    )
    opened = deltalake.DeltaTable(table.path, storage_options=readers.delta)
    query = deltalake.QueryBuilder().register("t", opened)
    assert pa.table(query.execute("SELECT count(*) AS n FROM t"))["n"].to_pylist() == [38]
