"""Each row of the task tables of the "Coming from" pages is typed as it stands there, and what is refused is named."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from tests.spark.coming_from_reads import (
    list_metadata,
    name_files,
    read_changes,
    read_stream,
    read_without_spark,
    scan_in_python,
    show_skipped,
    travel_in_time,
)
from tests.spark.coming_from_schemas import (
    change_columns,
    default_values,
    fence_old_reader,
    merge_schema,
    replace_schema,
    widen_type,
)
from tests.spark.coming_from_shop import DAYS, SCHEMA, Shop
from tests.spark.coming_from_tables import (
    analyze_adopted_files,
    attach_folder,
    copy_by_query,
    copy_from_pyiceberg,
    create_in_python,
    create_in_sql,
    follow_where_it_lies,
    open_by_path,
    read_and_write_by_path,
    refuse_other_schemes,
    typed_elsewhere,
)
from tests.spark.coming_from_upkeep import (
    change_clustering,
    collect_statistics,
    compact_parts,
    drop_table,
    index_a_column,
    keep_log,
    partition,
    rename_table,
    restore_version,
    show_history,
    vacuum_files,
    verify_files,
    z_order,
)
from tests.spark.coming_from_writes import (
    append_rows,
    delete_and_update,
    delete_beside_a_delete,
    keep_files_of_deletes,
    merge_rows,
    overwrite_all,
    overwrite_dynamically,
    overwrite_some,
    repeat_batches,
    write_stream,
)
from tests.spark.conftest import Lake

import tamis

pytestmark = pytest.mark.spark

DOCS = Path(__file__).parents[2] / "docs"
PAGES = ("coming-from-delta.md", "coming-from-iceberg.md")


@pytest.fixture
def shop(lake: Lake) -> Shop:
    table = tamis.create(lake.folder / "db" / "t", SCHEMA, cluster_by=["day"])
    for start in (0, 3):
        table.append(
            pa.table({"id": range(start, start + 3), "day": DAYS, "state": ["open"] * 3}, schema=SCHEMA)
        )  # fmt: skip
    return Shop(lake)


CASES: dict[str, Callable[[Shop], None]] = {
    "install": typed_elsewhere,
    "choose a catalog": attach_folder,
    "create a table": create_in_sql,
    "create from Python": create_in_python,
    "open by path": open_by_path,
    "open from Python": open_by_path,
    "read and write by path": read_and_write_by_path,
    "reach an object store": refuse_other_schemes,
    "convert a table": copy_by_query,
    "bring a table over": copy_from_pyiceberg,
    "use a table where it lies": follow_where_it_lies,
    "know more about adopted files": analyze_adopted_files,
    "append": append_rows,
    "overwrite all": overwrite_all,
    "overwrite some rows": overwrite_some,
    "overwrite by filter": overwrite_some,
    "overwrite partitions dynamically": overwrite_dynamically,
    "merge": merge_rows,
    "upsert": merge_rows,
    "delete, update": delete_and_update,
    "deletion vectors": keep_files_of_deletes,
    "copy-on-write or merge-on-read": keep_files_of_deletes,
    "write a stream": write_stream,
    "idempotent batches": repeat_batches,
    "concurrent writers": delete_beside_a_delete,
    "isolation": delete_beside_a_delete,
    "time travel": travel_in_time,
    "change data feed": read_changes,
    "changes": read_changes,
    "the file of a row": name_files,
    "read as a stream": read_stream,
    "read without Spark": read_without_spark,
    "scan in Python": scan_in_python,
    "see what was skipped": show_skipped,
    "what a scan would read": show_skipped,
    "metadata tables": list_metadata,
    "partition": partition,
    "cluster": change_clustering,
    "sort": change_clustering,
    "change the layout": change_clustering,
    "compact": compact_parts,
    "Z-order": z_order,
    "collect statistics": collect_statistics,
    "find single rows by another column": index_a_column,
    "Bloom filters": index_a_column,
    "add or widen columns while writing": merge_schema,
    "merge schemas while writing": merge_schema,
    "rename a table": rename_table,
    "drop a table": drop_table,
    "rename, drop": change_columns,
    "add, drop, rename, reorder": change_columns,
    "widen a type": widen_type,
    "widen": widen_type,
    "a reader with an older schema": fence_old_reader,
    "replace the schema": replace_schema,
    "default values": default_values,
    "defaults": default_values,
    "remove old files": vacuum_files,
    "expire snapshots, remove orphans": vacuum_files,
    "clean up the log": keep_log,
    "checkpoint": keep_log,
    "rewrite manifests": keep_log,
    "restore": restore_version,
    "roll back": restore_version,
    "history": show_history,
    "check the files": verify_files,
}


def tasks(page: str) -> list[str]:
    """The first cells of the rows of a page's task tables."""
    lines = (DOCS / page).read_text().splitlines()
    found = [re.split(r"(?<!\\)\|", line)[1].strip() for line in lines if line.startswith("| ")]
    return [task for task in found if task not in {"task", "---"}]


@pytest.mark.parametrize("page", PAGES)
def test_every_row_is_typed(page: str) -> None:
    assert sorted(set(tasks(page)) - set(CASES)) == []
    assert len(tasks(page)) > 20


def test_no_case_is_left_over() -> None:
    assert set(CASES) == {task for page in PAGES for task in tasks(page)}


@pytest.mark.parametrize("case", [pytest.param(f, id=f.__name__) for f in dict.fromkeys(CASES.values())])
@pytest.mark.push_cases(6)
def test_a_row_does_what_it_says(shop: Shop, case: Callable[[Shop], None]) -> None:
    case(shop)
