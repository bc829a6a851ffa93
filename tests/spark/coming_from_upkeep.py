"""Tasks of the "Coming from" pages that lay rows out or keep a table in order."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.spark.coming_from_shop import Shop, rows_of

import tamis


def partition(shop: Shop) -> None:
    shop.fails(lambda: shop.lake.sql("CREATE TABLE lake.db.n (d DATE) USING tamis PARTITIONED BY (d)"), "CLUSTER BY")
    shop.lake.sql("CREATE TABLE lake.db.n (ts TIMESTAMP) USING tamis CLUSTER BY (ts)")
    for year in (2025, 2026):
        shop.lake.sql(f"INSERT INTO lake.db.n VALUES (TIMESTAMP'{year}-05-05 00:00:00')")
    found = tamis.open(shop.lake.folder / "db" / "n").explain("year(ts) = 2026")
    assert found.parts.skipped_stats + found.segments.by_stats >= 1


def change_clustering(shop: Shop) -> None:
    shop.lake.sql("ALTER TABLE lake.db.t CLUSTER BY (id)")
    assert shop.open().detail()["clustering_columns"].to_pylist() == [["id"]]
    shop.open().alter().cluster_by(["state"]).commit()
    assert shop.open().detail()["clustering_columns"].to_pylist() == [["state"]]


def compact_parts(shop: Shop) -> None:
    def parts_after(act: Callable[[], Any]) -> int:
        for n in range(8):  # two small parts are not worth a rewrite
            shop.open().append(rows_of(n))
        act()
        return len(shop.open().metadata("parts"))

    assert parts_after(lambda: shop.open().compact(dry_run=True)) == 10
    assert parts_after(lambda: shop.lake.sql("OPTIMIZE lake.db.t WHERE state >= 'new'")) == 1
    assert parts_after(lambda: shop.lake.sql("CALL lake.system.compact(table => 'db.t')")) == 1
    assert parts_after(lambda: shop.open().compact()) == 1


def z_order(shop: Shop) -> None:
    shop.lake.sql("OPTIMIZE lake.db.t ZORDER BY (id, state)")
    shop.open().append(rows_of(7))
    shop.open().compact(cluster_by=["id", "state"], curve="zorder")
    shop.lake.sql("CALL lake.system.compact(table => 'db.t', cluster_by => 'id, state', curve => 'zorder')")
    assert shop.ids() == [0, 1, 2, 3, 4, 5, 7]


def collect_statistics(shop: Shop) -> None:
    shop.lake.sql(
        "ALTER TABLE lake.db.t SET TBLPROPERTIES ('tamis.stats.budget_bytes' = '4096', 'tamis.stats.keep' = 'id')"
    )
    shop.fails(lambda: shop.lake.sql("ANALYZE TABLE lake.db.t COMPUTE STATISTICS"), "ANALYZE TABLE")
    assert shop.open().explain("state = 'closed'").parts.kept == 0


def index_a_column(shop: Shop) -> None:
    shop.lake.sql("CREATE INDEX i ON lake.db.t (state)")
    assert [index.name for index in shop.open().indexes()] == ["i"]


def vacuum_files(shop: Shop) -> None:
    shop.lake.sql("VACUUM lake.db.t RETAIN 168 HOURS")
    shop.lake.sql("CALL lake.system.vacuum(table => 'db.t')")
    shop.open().vacuum("7d", dry_run=False)
    shop.fails(lambda: shop.lake.sql("VACUUM lake.db.t RETAIN 1 HOURS"), "below_retention")
    shop.lake.sql("CALL lake.system.vacuum(table => 'db.t', retention => '1h', below_retention => true)")
    assert shop.ids() == [0, 1, 2, 3, 4, 5]


def keep_log(shop: Shop) -> None:
    for n in range(20):
        shop.open().append(rows_of(100 + n))
    shop.open().vacuum("0s", dry_run=False, below_retention=True)
    assert len(list(Path(shop.path, "_tamis", "log").iterdir())) == shop.open().version + 1
    assert list(Path(shop.path, "_tamis", "rollup").iterdir())
    assert shop.open().scan().count() == 26


def rename_table(shop: Shop) -> None:
    shop.lake.sql("ALTER TABLE lake.db.t RENAME TO lake.db.other")
    assert shop.lake.sql("SELECT * FROM lake.db.other").count() == 6
    shop.lake.sql("ALTER TABLE lake.db.other RENAME TO lake.db.t")
    name = f"{shop.lake.name}_remote"
    tamis.attach(shop.lake.spark, name, f"memory://{name}")
    shop.lake.spark.sql(f"CREATE NAMESPACE {name}.db")
    shop.lake.spark.sql(f"CREATE TABLE {name}.db.t (id INT) USING tamis")
    refused = f"ALTER TABLE {name}.db.t RENAME TO {name}.db.other"
    assert "on an object store is not supported" in shop.lake.refused(refused, "UNSUPPORTED_STATEMENT")


def drop_table(shop: Shop) -> None:
    """Nothing of the table's folder is left; the files of an adopted source are."""
    source = shop.lake.folder.parent / "source"
    shop.lake.spark.range(3).write.parquet(str(source))
    shop.lake.sql("CREATE NAMESPACE lake.dropped")
    shop.lake.sql(f"CALL lake.system.adopt('{source}', 'dropped.adopted')")
    shop.open().export("delta")
    for statement in ("DROP TABLE lake.db.t", "DROP NAMESPACE lake.dropped CASCADE"):
        shop.lake.sql(statement)
    assert not Path(shop.path).exists()
    assert not (shop.lake.folder / "dropped").exists()
    assert shop.lake.spark.read.parquet(str(source)).count() == 3
    shop.lake.sql("CREATE TABLE lake.db.t (id INT) USING tamis")
    shop.lake.sql("DROP TABLE lake.db.t PURGE")
    assert not Path(shop.path).exists()


def restore_version(shop: Shop) -> None:
    shop.lake.sql("RESTORE lake.db.t TO VERSION AS OF 1")
    assert shop.ids() == [0, 1, 2]
    shop.open().restore(2)
    assert shop.ids() == [0, 1, 2, 3, 4, 5]
    shop.lake.sql("CALL lake.system.restore(table => 'db.t', version => 1)")
    assert shop.ids() == [0, 1, 2]


def show_history(shop: Shop) -> None:
    assert shop.lake.sql("DESCRIBE HISTORY lake.db.t").count() == 3
    assert shop.lake.sql("SELECT * FROM lake.db.t.history").count() == 3


def verify_files(shop: Shop) -> None:
    assert shop.open().verify().ok
    shop.lake.sql("CALL lake.system.verify(table => 'db.t')")
    completed = subprocess.run(
        [sys.executable, "-m", "tamis.cli.entry", "verify", shop.path], check=False, capture_output=True, text=True
    )
    assert completed.returncode == 0, completed.stderr
