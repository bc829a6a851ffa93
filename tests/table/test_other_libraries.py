"""The rows of a table in pyarrow, Polars, DuckDB and pandas: always those of a scan, however their queries reach it."""

from __future__ import annotations

import itertools
import pickle
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tamis
from tamis.engine.scan.scan import Scan
from tamis.errors import InvalidInput, NotFound
from tamis.table.arrow_dataset import TamisDataset
from tamis.table.duckdb_source import DuckDbDataset, texts_of_few_values
from tests.table.foreign_filters import (
    EVERY,
    FILTERS,
    ORDERED,
    ROWS,
    SCHEMA,
    VALUES,
    arrow_filter,
    batch_of,
    polars_filter,
)


@pytest.fixture
def changed(tmp_path: Path) -> tamis.Table:
    """Files that do not hold its rows: deleted rows, a renamed column, a default, a wider type, a name used again."""
    table = tamis.create(tmp_path / "t", "id INT, old STRING, gone BIGINT, x DOUBLE")
    for first in range(0, 40, 10):
        ids = list(range(first, first + 10))
        rows = {"id": ids, "old": [f"n{i}" for i in ids], "gone": [1000 + i for i in ids], "x": [i / 2 for i in ids]}
        table.append(
            pa.table(
                rows, pa.schema([("id", pa.int32()), ("old", pa.string()), ("gone", pa.int64()), ("x", pa.float64())])
            )
        )
    table.alter().rename_column("old", "name").drop_column("gone").widen("id", "BIGINT").commit()
    table.refresh()
    table.alter().add_column("gone", "BIGINT").add_column("level", "INT", default="7").commit()
    table.refresh()
    table.append(
        pa.table(
            {
                "id": [40, 41],
                "name": ["n40", "n41"],
                "x": [None, 1.5],
                "gone": [5, None],
                "level": pa.array([1, None], pa.int32()),
            }
        )
    )
    table.delete("id IN (3, 17, 18) OR id = 40")
    return table


def rows_of(found: Any) -> list[dict[str, Any]]:
    return sorted(found.to_pylist(), key=lambda row: row["id"])


def test_every_library_gives_the_rows_of_a_scan(changed: tamis.Table) -> None:
    expected = rows_of(changed.scan().to_arrow())
    assert (len(expected), expected[-1]) == (38, {"id": 41, "name": "n41", "x": 1.5, "gone": None, "level": None})
    assert expected[0] == {"id": 0, "name": "n0", "x": 0.0, "gone": None, "level": 7}
    assert rows_of(changed.to_arrow()) == expected
    assert rows_of(pa.table(changed)) == expected, "__arrow_c_stream__"
    assert rows_of(changed.to_batches().read_all()) == expected
    assert rows_of(pa.Table.from_pandas(changed.to_pandas(), changed.schema, preserve_index=False)) == expected
    assert rows_of(changed.to_polars().to_arrow()) == expected
    assert rows_of(tamis.scan_polars(changed).collect().to_arrow()) == expected
    assert rows_of(tamis.scan_polars(changed.path).collect().to_arrow()) == expected
    assert rows_of(changed.to_pyarrow_dataset().to_table()) == expected
    assert rows_of(changed.to_duckdb().to_arrow_table()) == expected
    assert rows_of(pl.scan_pyarrow_dataset(changed.to_pyarrow_dataset()).collect().to_arrow()) == expected
    assert pa.schema(changed) == changed.schema


def test_a_table_streams(changed: tamis.Table, monkeypatch: pytest.MonkeyPatch) -> None:
    """Taking one batch does not collect the others."""
    monkeypatch.setattr(Scan, "to_arrow", lambda _: pytest.fail("all rows at once"))
    reader = pa.RecordBatchReader.from_stream(changed)
    assert 0 < reader.read_next_batch().num_rows < 38


def kept() -> Any:
    """What the latest scan read: kept parts, and the columns."""
    report = tamis.reports(1)[0]
    return report.parts["kept"], sorted(report.columns)


def test_duckdb_reads_what_its_query_needs(changed: tamis.Table) -> None:
    events = changed.to_pyarrow_dataset()  # noqa: F841  # DuckDB finds it by its name
    names = duckdb.sql("SELECT name FROM events WHERE id BETWEEN 33 AND 34 ORDER BY id").fetchall()
    assert names == [("n33",), ("n34",)]
    assert kept() == (1, ["id", "name"])
    relation = changed.to_duckdb()
    assert relation.filter("level = 7 AND name = 'n5'").project("x").fetchall() == [(2.5,)]
    assert relation.aggregate("count(*)").fetchall() == [(38,)]
    with duckdb.connect() as connection:
        assert changed.to_duckdb(connection).aggregate("max(id)").fetchall() == [(41,)]


def test_a_dataset_reads_what_its_scan_needs(changed: tamis.Table) -> None:
    dataset = changed.to_pyarrow_dataset()
    assert isinstance(dataset, ds.Dataset)
    assert dataset.to_table(["name"], filter=pc.field("id") >= 38).to_pylist() == [
        {"name": "n38"},
        {"name": "n39"},
        {"name": "n41"},
    ]
    assert kept() == (2, ["name"]), "the filter's column is not handed over, as nothing is left to test"
    odd = pc.utf8_length(pc.field("name")) < 9
    assert dataset.to_table(["x"], filter=(pc.field("id") > 38) & odd).num_rows == 2
    assert kept() == (2, ["id", "name", "x"])
    doubled = dataset.to_table({"twice": pc.field("id") + pc.field("id")}, filter=pc.field("x") == 1.0)
    assert (doubled.to_pylist(), kept()) == ([{"twice": 4}], (1, ["id"]))
    assert (dataset.count_rows(), dataset.count_rows(pc.field("level") == 7)) == (38, 37)
    assert dataset.filter(pc.field("id") > 5).filter(pc.field("id") < 8).to_table()["id"].to_pylist() == [6, 7]
    assert dataset.filter(pc.field("id") > 5).count_rows(pc.field("id") < 8) == 2
    assert dataset.head(2)["id"].to_pylist() == [0, 1]
    assert dataset.take([1, 3])["id"].to_pylist() == [1, 4]
    assert sum(batch.num_rows for batch in dataset.to_batches(columns=["x"])) == 38
    assert dataset.sort_by([("id", "descending")]).head(1)["id"].to_pylist() == [41]
    assert dataset.scanner(columns=[]).count_rows() == 38
    with pytest.raises(pa.ArrowInvalid, match="nope"):
        dataset.to_table(["nope"])
    with pytest.raises(pa.ArrowInvalid, match="nope"):
        dataset.to_table(filter=pc.field("nope") == 1)


def test_a_dataset_stays_at_its_version(changed: tamis.Table) -> None:
    dataset, frame = changed.to_pyarrow_dataset(), tamis.scan_polars(changed)
    changed.delete(all_rows=True)
    assert dataset.count_rows() == dataset.to_table().num_rows == frame.collect().height == 38
    assert changed.to_pyarrow_dataset().count_rows() == tamis.scan_polars(changed).collect().height == 0
    assert changed.scan(version=1).count() == tamis.scan_polars(changed, 1).collect().height == 10


NATIVE: dict[str, Any] = {
    "fragments": lambda d: list(d.get_fragments()),
    "files": lambda d: d.files,
    "the filesystem": lambda d: d.filesystem,
    "the format": lambda d: d.format,
    "a join": lambda d: d.join(d, "id"),
    "a join in time": lambda d: d.join_asof(d, "id", "id", 1),
    "another schema": lambda d: d.replace_schema(pa.schema([])),
    "a pickle": pickle.dumps,
}


@pytest.mark.push_cases(3)
@pytest.mark.parametrize("what", NATIVE)
def test_what_would_read_its_files_is_refused(changed: tamis.Table, what: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        NATIVE[what](changed.to_pyarrow_dataset())
    assert caught.value.code == "DATASET_METHOD"
    with pytest.raises(TypeError):
        TamisDataset.from_paths(["x"])


@pytest.mark.parametrize("how", ["from_dataset", "union", "written"])
def test_code_that_reads_datasets_in_c_fails_instead_of_giving_other_rows(
    changed: tamis.Table, how: str, tmp_path: Path
) -> None:
    dataset = changed.to_pyarrow_dataset()
    read = {
        "from_dataset": lambda: ds.Scanner.from_dataset(dataset).to_table(),
        "union": lambda: ds.dataset([dataset, dataset]).to_table(),
        "written": lambda: ds.write_dataset(ds.Scanner.from_dataset(dataset), tmp_path / "out", format="parquet"),
    }[how]
    with pytest.raises((OSError, InvalidInput)):
        read()


def test_nothing_of_the_base_class_is_left_to_c() -> None:
    """Each attribute is ours, or calls ``scanner``, or tells nothing about files."""
    through_scanner = {"to_table", "to_batches", "head", "take"}
    harmless = {"schema", "partition_expression"}
    public = {name for name in dir(ds.FileSystemDataset) if not name.startswith("_")}
    assert public <= set(vars(TamisDataset)) | through_scanner | harmless


def test_polars_reads_what_its_query_needs(changed: tamis.Table) -> None:
    frame = tamis.scan_polars(changed)
    assert frame.collect_schema().names() == ["id", "name", "x", "gone", "level"]
    assert frame.filter(pl.col("id") == 33).select("x", "name").collect().rows() == [(16.5, "n33")]
    query = frame.filter(pl.col("id").is_between(33, 34) & pl.col("name").str.starts_with("n")).select("name")
    assert (query.collect()["name"].to_list(), kept()) == (["n33", "n34"], (1, ["id", "name"]))
    assert frame.head(3).collect().height == 3
    assert frame.filter(pl.col("id") > 5).head(2).collect()["id"].to_list() == [6, 7]
    assert frame.head(8).filter(pl.col("id") > 5).collect()["id"].to_list() == [6, 7, 8]
    assert frame.select(pl.len()).collect().item() == 38
    assert frame.filter(pl.col("id") < 0).collect().height == 0
    assert frame.filter(pl.col("id") < 0).select("x").collect().columns == ["x"]
    assert frame.filter(pl.col("level").is_null()).collect(engine="streaming")["id"].to_list() == [41]


@pytest.mark.slow
@given(rows=ROWS, form=FILTERS, cut=st.integers(0, 20))
def test_filters_that_are_pushed_down_lose_no_row(
    rows: list[dict[str, Any]], form: Any, cut: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """The libraries' own answers over the same rows, in two parts."""
    batch = batch_of(rows)
    table = tamis.create(tmp_path_factory.mktemp("t"), SCHEMA)
    table.append(batch.slice(0, cut))
    table.append(batch.slice(cut))
    plain = ds.dataset(batch).to_table(filter=arrow_filter(form))
    assert str(table.to_pyarrow_dataset().to_table(filter=arrow_filter(form)).to_pylist()) == str(plain.to_pylist())
    assert str(table.scan(arrow_filter(form)).to_arrow().to_pylist()) == str(plain.to_pylist())
    dataset = table.to_pyarrow_dataset()
    assert dataset.to_table(["day"], filter=arrow_filter(form)).equals(plain.select(["day"]))
    assert dataset.count_rows(arrow_filter(form)) == dataset.filter(arrow_filter(form)).count_rows() == len(plain)
    frame = pl.from_arrow(batch).lazy().filter(polars_filter(form)).collect()
    lazy = tamis.scan_polars(table).filter(polars_filter(form))
    assert lazy.select("day", "byte").collect().rows() == frame.select("day", "byte").rows()
    assert str(tamis.scan_polars(table).filter(polars_filter(form)).collect().rows()) == str(frame.rows())
    assert str(table.scan(polars_filter(form)).to_polars().rows()) == str(frame.rows())


@pytest.mark.push_cases(3)
@pytest.mark.parametrize("name", VALUES)
def test_duckdb_finds_what_it_finds_in_its_own_tables(name: str, tmp_path: Path) -> None:
    """NaN, too, which is the greatest number in DuckDB, and not in pyarrow."""
    table = tamis.create(tmp_path / "t", SCHEMA)
    table.append(EVERY.slice(0, 5))
    table.append(EVERY.slice(5))
    with duckdb.connect() as connection:
        connection.register("dataset", table.to_pyarrow_dataset())
        connection.register("relation", DuckDbDataset(table.scan()))
        connection.register("rows", EVERY)
        connection.execute("CREATE TABLE native AS SELECT * FROM rows")
        for sign, value in itertools.product(ORDERED, VALUES[name]):
            condition = f"{name} {'=' if sign == '==' else sign} ?"
            expected, *others = (
                connection.execute(f"SELECT hash(r)::VARCHAR FROM {source} r WHERE {condition}", [value]).fetchall()
                for source in ("native", "dataset", "relation")
            )
            for found in others:
                assert sorted(found) == sorted(expected), (condition, value)


@pytest.fixture(params=["parquet", "orc", "vortex"])
def worded(tmp_path: Path, request: pytest.FixtureRequest) -> tamis.Table:
    """Texts of few values, of other values in each part, NULLs, and deleted rows. Parquet alone has dictionaries."""
    schema = "n BIGINT, word STRING, free STRING, code CHAR(4), nested STRUCT<word: STRING>"
    table = tamis.create(tmp_path / "t", schema, format=request.param)
    for at in range(4):
        words = [None if i % 7 == 3 else f"w{at}{'é' * (i % 3)}" for i in range(500)]
        free = [f"{at} {i * 7919}" for i in range(500)]
        rows = {"n": range(at * 500, at * 500 + 500), "word": words, "free": free, "code": words}
        table.append(pa.table(rows | {"nested": [{"word": word} for word in words]}))
    table.delete("n % 5 = 1 OR n BETWEEN 600 AND 800")
    return table


WORD_QUERIES = [
    "SELECT word, count(*), sum(n) FROM {t} GROUP BY ALL",
    "SELECT word, code, count(DISTINCT free), max(nested.word) FROM {t} GROUP BY ALL",
    "SELECT n, word FROM {t} WHERE word = 'w0é'",
    "SELECT n, upper(word) FROM {t} WHERE word LIKE 'w3%' AND n < 1700",
    "SELECT count(*) FROM {t} WHERE word IN ('w1', 'w3éé', 'none')",
    "SELECT n FROM {t} WHERE word IS NULL",
    "SELECT n, free FROM {t} WHERE word IS NOT NULL AND word <> 'w2' AND n > 700",
    "SELECT count(*) FROM {t} WHERE word > 'w1' OR n < 10",
    "SELECT count(*) FROM {t} a JOIN {t} b ON a.word = b.word AND a.n = b.n",
    "SELECT word FROM {t} ORDER BY word DESC NULLS LAST, n LIMIT 9",
    "SELECT length(word), starts_with(word, 'w2'), code FROM {t} WHERE n % 50 = 0",
    "SELECT count(*), count(word) FROM {t}",
    "SELECT word || free FROM {t} WHERE code = 'w1'",
]


@pytest.mark.parametrize("query", WORD_QUERIES)
@pytest.mark.push_cases(12)
def test_duckdb_reads_texts_of_few_values_by_dictionaries(worded: tamis.Table, query: str) -> None:
    with duckdb.connect() as connection:
        connection.register("plain", worded.to_arrow())
        worded.to_duckdb(connection).create_view("held")
        by_dictionary, expected = (
            sorted(map(str, connection.sql(query.format(t=name)).fetchall())) for name in ("held", "plain")
        )
        types = connection.sql("SELECT word, free FROM held").types
    assert by_dictionary == expected
    assert [str(t) for t in types] == ["VARCHAR", "VARCHAR"]


def test_pyarrow_tests_texts_without_their_dictionary(worded: tamis.Table) -> None:
    """It has no ``starts_with`` over dictionaries."""
    condition = pc.starts_with(pc.field("word"), "w3")
    found = DuckDbDataset(worded.scan()).scanner(["n", "word"], condition).to_reader().read_all()
    expected = worded.to_pyarrow_dataset().to_table(["n", "word"], condition)
    assert (len(expected) > 100, found.cast(expected.schema).equals(expected)) == (True, True)
    assert pa.types.is_dictionary(found.schema.field("word").type)


def test_duckdb_gets_columns_in_the_order_in_which_it_asks_for_them(worded: tamis.Table) -> None:
    dataset = DuckDbDataset(worded.scan())
    for condition in (pc.field("n") < 9, pc.starts_with(pc.field("word"), "w0") & (pc.field("n") < 9)):
        found = dataset.scanner(["word", "n"], condition).to_reader().read_all()
        assert (found.schema.names, found.num_rows > 0) == (["word", "n"], True)


def test_the_schema_is_not_built_for_each_column(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = tamis.create(tmp_path)
    table.append(pa.table({f"c{at}": [at] for at in range(50)}))
    built: list[int] = []
    schema = vars(Scan)["schema"].fget

    def counted(scan: Scan) -> pa.Schema:
        built.append(1)
        found: pa.Schema = schema(scan)
        return found

    monkeypatch.setattr(Scan, "schema", property(counted))
    assert table.to_duckdb().fetchall() == [tuple(range(50))]
    assert len(built) < 10


def test_only_texts_of_few_values_have_dictionaries(worded: tamis.Table) -> None:
    assert texts_of_few_values(worded.scan()) == {"word"}, "not CHAR, not one of many values, none inside a struct"
    batches = list(worded.scan(None, ["word", "code"]).encoded_batches())
    form = pa.DictionaryArray if list(Path(worded.path).rglob("data/*.parquet")) else pa.StringArray
    assert {(type(b["word"]), type(b["code"])) for b in batches} == {(form, pa.StringArray)}
    assert pa.Table.from_batches(worded.scan().to_batches()).schema == worded.schema, "others see plain texts"
    ordered = worded.scan(None, ["word"], order_by="word DESC", limit=3)
    assert pa.Table.from_batches(ordered.encoded_batches()).equals(ordered.to_arrow())


def test_polars_takes_texts_from_dictionaries(worded: tamis.Table) -> None:
    plain = pl.from_arrow(worded.to_arrow())
    lazy = tamis.scan_polars(worded)
    assert lazy.collect().equals(plain)
    for condition in (pl.col("word") == "w0é", pl.col("word").is_null(), pl.col("word").str.starts_with("w3")):
        assert lazy.filter(condition).collect().equals(plain.filter(condition))
    assert lazy.select("word").head(7).collect().equals(plain.select("word").head(7))


def test_all_types_arrive_as_in_a_scan(tmp_path: Path) -> None:
    types = [
        "TINYINT",
        "SMALLINT",
        "INT",
        "BIGINT",
        "FLOAT",
        "DOUBLE",
        "DECIMAL(10,2)",
        "STRING",
        "CHAR(3)",
        "VARCHAR(3)",
        "BINARY",
        "BOOLEAN",
        "DATE",
        "TIMESTAMP",
        "TIMESTAMP_NTZ",
        "ARRAY<INT>",
        "MAP<STRING,INT>",
        "STRUCT<a:INT>",
        "VARIANT",
    ]
    table = tamis.create(tmp_path / "t", ", ".join(f"c{i} {kind}" for i, kind in enumerate(types)))
    plain = table.schema.remove(types.index("VARIANT"))
    table.append(pa.table({f.name: pa.nulls(2, f.type) for f in plain}, plain))
    assert table.to_pyarrow_dataset().to_table().equals(table.to_arrow())
    lazy = tamis.scan_polars(table)
    assert lazy.collect_schema() == table.to_polars().schema
    assert lazy.collect().equals(table.to_polars())
    assert lazy.filter(pl.col("c8").is_null() & pl.col("c4").is_null()).select("c17").collect().height == 2


def test_an_empty_table(tmp_path: Path) -> None:
    table = tamis.create(tmp_path / "t", "a BIGINT")
    assert table.to_pyarrow_dataset().to_table().num_rows == 0
    assert tamis.scan_polars(table).filter(pl.col("a") > 1).collect().schema == pl.Schema({"a": pl.Int64})
    assert table.to_duckdb().fetchall() == []
    assert pa.table(table).num_rows == table.to_polars().height == len(table.to_pandas()) == 0


def test_a_table_without_a_schema(tmp_path: Path) -> None:
    table = tamis.create(tmp_path / "t")
    assert pa.table(table).num_columns == 0
    assert tamis.scan_polars(table).collect().width == 0
    assert table.to_pyarrow_dataset().to_table().num_columns == 0
    with pytest.raises(InvalidInput) as caught:
        table.to_duckdb()
    assert caught.value.code == "NO_COLUMNS"


@pytest.mark.parametrize("columns", [["s.a"], ["s.a", "x"], ["p.q"], [".s.a"]])
@pytest.mark.parametrize("condition", [None, pc.field("x") > 1, pc.field("s", "a") == 1])
def test_dotted_paths_are_pyarrows(tmp_path: Path, columns: list[str], condition: pc.Expression | None) -> None:
    rows = pa.table({"x": [1, 2, 3], "s": [{"a": 1, "b": 2}] * 3, "p.q": [7, 8, 9]})
    table = tamis.create(tmp_path / "t", rows.schema)
    table.append(rows)
    expected = ds.dataset(rows).to_table(columns=columns, filter=condition)
    assert table.to_pyarrow_dataset().to_table(columns=columns, filter=condition).equals(expected)


def test_options_of_a_table_that_is_open(changed: tamis.Table) -> None:
    with pytest.raises(InvalidInput, match="storage_options") as caught:
        tamis.scan_polars(changed, storage_options={})
    assert caught.value.code == "BAD_OPTION"
    with pytest.raises(NotFound):
        tamis.scan_polars(changed.path + "/nowhere")


@pytest.mark.push_cases(2)
@pytest.mark.parametrize(
    ("package", "verb"), [("polars", "to_polars"), ("duckdb", "to_duckdb"), ("pandas", "to_pandas"), ("polars", "lazy")]
)
def test_a_package_that_is_missing_is_named(
    changed: tamis.Table, package: str, verb: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(__import__("sys").modules, package, None)
    with pytest.raises(InvalidInput) as caught:
        tamis.scan_polars(changed) if verb == "lazy" else getattr(changed, verb)()
    assert (caught.value.code, caught.value.name) == ("MISSING_PACKAGE", package)
