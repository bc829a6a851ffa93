"""CALL adopt: a table of the catalog over the files of another table."""

from __future__ import annotations

import deltalake
import pyarrow as pa
from tests.bridges import iceberg_tables as ice
from tests.bridges.foreign_files import write_file
from tests.spark.conftest import Lake


def ids(lake: Lake, name: str) -> list[int]:
    return [row[0] for row in lake.rows(f"SELECT n FROM lake.db.{name} ORDER BY n")]


def test_sources_of_every_kind(lake: Lake) -> None:
    source = lake.folder.parent / "source"
    for start in (0, 10):
        deltalake.write_deltalake(source, pa.table({"n": [start, start + 1]}), mode="append")
    (dry,) = lake.sql(f"CALL lake.system.adopt('{source}', 'db.t', dry_run => true)").collect()
    assert (dry["kind"], dry["source_version"], dry["files"], dry["rows"]) == ("delta", "1", 2, 4)
    assert (dry["columns"], dry["version"]) == ("n: bigint", None)
    assert lake.rows("SHOW TABLES IN lake.db") == []
    (done,) = lake.sql(
        f"CALL lake.system.adopt(source => '{source}', table => 'lake.db.t', follow => true, "
        "properties => map('owner', 'me'))"
    ).collect()
    assert done.asDict() == {**dry.asDict(), "version": 0}
    assert ids(lake, "t") == [0, 1, 10, 11]
    (detail,) = lake.sql("CALL lake.system.detail('db.t')").collect()
    assert (detail["name"], dict(detail["properties"])["owner"]) == ("db.t", "me")
    (row,) = lake.rows("SELECT kind, source_version, followed, parts, parts_not_analyzed FROM lake.db.t.sources")
    assert row == ("delta", "1", True, 2, 2)
    assert "version 1, followed: 2 parts" in detail["sources"][0]
    deltalake.DeltaTable(source).delete("n = 1")
    lake.sql("CALL lake.system.sync('db.t')").collect()
    assert ids(lake, "t") == [0, 10, 11]
    lake.sql(f"CALL lake.system.adopt('{source}', 'db.older', source_options => map('version', '0'))").collect()
    assert ids(lake, "older") == [0, 1]
    lake.sql(f"CALL lake.system.adopt('{source}', 'db.own', mode => 'copy')").collect()
    lake.sql("INSERT INTO lake.db.own VALUES (99)")
    assert ids(lake, "own") == [0, 10, 11, 99]


def test_an_iceberg_catalog_and_a_folder(lake: Lake) -> None:
    place = lake.folder.parent
    catalog = ice.catalog(place)
    table = catalog.create_table("n.t", pa.schema([("n", pa.int64())]))
    table.append(pa.table({"n": [1]}))
    options = f"map('catalog', 'local', 'catalog.uri', '{catalog.properties['uri']}')"
    lake.sql(f"CALL lake.system.adopt('n.t', 'db.i', follow => true, source_options => {options})").collect()
    table.append(pa.table({"n": [2]}))
    lake.sql(f"CALL lake.system.sync('db.i', source_options => {options})").collect()
    assert ids(lake, "i") == [1, 2]
    write_file(place / "folder" / "day=007" / "a.parquet", pa.table({"n": [1]}))
    lake.sql(f"CALL lake.system.adopt('{place}/folder', 'db.f', partition_types => 'day STRING')").collect()
    assert lake.rows("SELECT n, day FROM lake.db.f") == [(1, "007")]


def test_what_is_refused(lake: Lake) -> None:
    source = lake.folder.parent / "source"
    deltalake.write_deltalake(source, pa.table({"n": [1]}))
    lake.sql("CREATE TABLE lake.db.t (n BIGINT)")
    lake.refused(f"CALL lake.system.adopt('{source}', 'db.t')", "TABLE_OR_VIEW_ALREADY_EXISTS")
    lake.refused(f"CALL lake.system.adopt('{source}', 'nowhere.t')", "SCHEMA_NOT_FOUND")
    lake.refused(f"CALL lake.system.adopt('{source}', 'db.u', mode => 'move')", "BAD_OPTION")
    lake.refused(f"CALL lake.system.adopt('{source}', 'db.u', source_options => map('a', 'b'))", "BAD_OPTION")
    lake.refused(
        f"CALL lake.system.adopt('{source}', 'db.u', source_options => map('version', CAST(NULL AS STRING)))",
        "BAD_OPTION",
    )
    lake.refused(f"CALL lake.system.adopt('{lake.folder}/none', 'db.u')", "SOURCE_NOT_FOUND")
    assert [row[1] for row in lake.rows("SHOW TABLES IN lake.db")] == ["t"]


FOLDER_VALUES = [
    "1",
    "+5",
    "-5",
    "007",
    "+007",
    "00",
    "0",
    "2147483648",
    "+9223372036854775807",
    "9223372036854775808",
    "-9223372036854775808",
    "1.",
    "1.0",
    "1.5",
    ".5",
    "5e",
    "1e3",
    "1e+3",
    "1e-0",
    "1e-1",
    "1E2",
    "1.5e1",
    "1.5e3",
    "1.50e1",
    "1.50e2",
    ".5e1",
    ".05e1",
    "0e5",
    "0e0",
    "0.0",
    "12e36",
    "12e37",
    "1e38",
    "1e400",
    "1e-400",
    "1e999999999",
    "-1.5e3",
    "NaN",
    "Infinity",
    "-Infinity",
    "inf",
    "1f",
    "1d",
    "1.5D",
    "1L",
    "0x10",
    "1_000",
    "٣",
    "٣.٥",
    "٣e2",
    "٢٠٢٤-٠١-٠١",
    "true",
    "null",
    "2024-01-01",
    "2024-1-1",
    "2024-02-30",
    "2024-01-01 10%3A00%3A00",
    "2024-01-01 10%3A00%3A00.5",
    "2024-01-01T10%3A00%3A00",
    "a",
    "é",
    "+",
    "-",
    "e3",
]


def test_folders_have_the_types_that_spark_infers(lake: Lake) -> None:
    """One column per text, and columns of two texts each."""
    pairs = [
        "1|1e-0",
        "1|1.5",
        "2147483648|1e3",
        "1e3|1.5e19",
        "1|0e5",
        "1e3|2.5",
        "1|2024-01-01",
        "2024-01-01|2024-01-01 10%3A00%3A00",
    ]
    place = lake.folder.parent
    for file in (0, 1):
        names = [f"c{at}={text}" for at, text in enumerate(FOLDER_VALUES)]
        names += [f"p{at}={pair.split('|')[file]}" for at, pair in enumerate(pairs)]
        write_file(place / "folder" / "/".join(names) / f"{file}.parquet", pa.table({"n": [file]}))
    lake.sql(f"CALL lake.system.adopt('{place}/folder', 'db.f')").collect()
    theirs, ours = lake.spark.read.parquet(f"{place}/folder"), lake.spark.table(f"{lake.name}.db.f")
    texts = [*FOLDER_VALUES, *pairs]
    expected = {text: kind for text, (_, kind) in zip(texts, theirs.dtypes[1:], strict=True)}
    assert {text: kind for text, (_, kind) in zip(texts, ours.dtypes[1:], strict=True)} == expected
    assert {str(row) for row in ours.collect()} == {str(row) for row in theirs.collect()}
