"""A task that failed after it had written parts, and was run again: its first files are orphans, its rows are there once."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = """
import sys
from pyspark import TaskContext
from pyspark.sql import SparkSession
import tamis

ROWS = 400_000

def fails_at_first(batches):
    for batch in batches:
        yield batch
    if TaskContext.get().attemptNumber() == 0:
        raise RuntimeError("the machine went away")

spark = (
    SparkSession.builder.master("local[2,3]").config("spark.ui.enabled", "false").config("spark.driver.memory", "1g")
    .config("spark.driver.host", "127.0.0.1").config("spark.sql.shuffle.partitions", "2").getOrCreate()
)
tamis.attach(spark, "lake", sys.argv[1])
spark.sql("CREATE NAMESPACE lake.db")
spark.sql("CREATE TABLE lake.db.t (id BIGINT) USING tamis TBLPROPERTIES ('tamis.write.part_bytes' = '64KB')")
spark.range(0, ROWS, 1, 2).mapInArrow(fails_at_first, "id bigint").writeTo("lake.db.t").append()
table = tamis.open(sys.argv[1] + "/db/t")
ids = table.scan().to_arrow()["id"].to_pylist()
assert sorted(ids) == list(range(ROWS)), len(ids)
print("parts", len(table.metadata("parts")))
spark.stop()
"""


@pytest.mark.spark
@pytest.mark.slow
def test_a_retried_task_leaves_orphans_never_rows(tmp_path: Path) -> None:
    run = subprocess.run([sys.executable, "-c", SCRIPT, str(tmp_path)], capture_output=True, text=True, timeout=240, check=False)
    assert run.returncode == 0, run.stderr[-4000:]
    parts = int(run.stdout.split("parts ")[1].split()[0])
    assert len(list((tmp_path / "db" / "t" / "data").iterdir())) > parts > 2
