"""Bad input of any kind: the right error, its code, the name of the thing, and a remedy; the table is as it was."""

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

import tamis
from tamis.errors import AlreadyExists, CorruptData, InvalidInput, NotFound, SchemaMismatch, TamisError

SCHEMA = pa.schema([("id", pa.int64()), ("name", pa.string()), ("tags", pa.list_(pa.string()))])
ROWS = pa.table({"id": [1, 2], "name": ["a", "b"], "tags": [[], None]}, schema=SCHEMA)


@pytest.fixture
def table(tmp_path: Path) -> tamis.Table:
    made = tamis.create(tmp_path / "t", SCHEMA)
    made.append(ROWS)
    return made


SCANS: dict[str, tuple[dict[str, Any], type[TamisError], str | None, str | None]] = {
    "unknown column in the filter": ({"row_filter": "nope = 1"}, NotFound, "COLUMN_NOT_FOUND", "nope"),
    "unknown nested column": ({"row_filter": "id.x = 1"}, TamisError, None, None),
    "text that does not parse": ({"row_filter": "id ="}, InvalidInput, "PARSE_ERROR", None),
    "an empty filter": ({"row_filter": ""}, InvalidInput, "PARSE_ERROR", None),
    "two statements": ({"row_filter": "id = 1; DROP TABLE t"}, InvalidInput, "PARSE_ERROR", None),
    "a filter that is no boolean": ({"row_filter": "id + 1"}, InvalidInput, None, None),
    "a filter that is no text": ({"row_filter": 3}, InvalidInput, "BAD_FILTER", "row_filter"),
    "a filter with a name for it": ({"row_filter": "id > 1 x"}, InvalidInput, "PARSE_ERROR", "id > 1 x"),
    "a query": ({"row_filter": "SELECT 1"}, InvalidInput, "PARSE_ERROR", "SELECT 1"),
    "a star": ({"row_filter": "*"}, InvalidInput, "PARSE_ERROR", "*"),
    "half a character": ({"row_filter": "name = '\ud800'"}, InvalidInput, "PARSE_ERROR", None),
    "a filter nested too deeply": ({"row_filter": "id" + " + 1" * 300 + " > 0"}, InvalidInput, "PARSE_ERROR", None),
    "unknown selected field": ({"selected_fields": ["nope"]}, NotFound, "COLUMN_NOT_FOUND", "nope"),
    "fields that are none": ({"selected_fields": None}, InvalidInput, "BAD_COLUMN", "selected_fields"),
    "a field of what has none": ({"selected_fields": ["id.x"]}, NotFound, "COLUMN_NOT_FOUND", "id.x"),
    "nothing selected": ({"selected_fields": []}, InvalidInput, "NO_COLUMNS", "selected_fields"),
    "a negative limit": ({"limit": -1}, InvalidInput, "BAD_LIMIT", "limit"),
    "a limit that is no number": ({"limit": "10"}, InvalidInput, "BAD_LIMIT", "limit"),
    "an unknown option": (
        {"options": {"tamis.stats.fitler": "off"}},
        InvalidInput,
        "UNKNOWN_OPTION",
        "tamis.stats.fitler",
    ),
    "an option that is not ours": ({"options": {"mergeSchema": "true"}}, InvalidInput, "UNKNOWN_OPTION", "mergeSchema"),
    "a bad option value": ({"options": {"tamis.read.lazy": "maybe"}}, InvalidInput, "BAD_OPTION", "tamis.read.lazy"),
    "options that are no mapping": ({"options": 5}, InvalidInput, "BAD_OPTION", "options"),
    "an option's name that is no text": ({"options": {5: 1}}, InvalidInput, "UNKNOWN_OPTION", "5"),
    "a time zone out of range": ({"options": {"timezone": "+18:01"}}, InvalidInput, "BAD_OPTION", "timezone"),
    "a version that is not there": ({"version": 99}, NotFound, "VERSION_NOT_FOUND", None),
    "a version that is none": ({"version": "1"}, InvalidInput, "BAD_VERSION", "1"),
    "a negative version": ({"version": -1}, InvalidInput, "BAD_VERSION", "-1"),
    "a time before the table": ({"timestamp": "1999-01-01"}, NotFound, None, None),
    "no time": ({"timestamp": "yesterday"}, InvalidInput, "BAD_TIMESTAMP", None),
    "a version and a time": ({"version": 1, "timestamp": "2026-01-01"}, InvalidInput, "TWO_VERSIONS", "1, 2026-01-01"),
    "now that is no instant": ({"now": "soon"}, InvalidInput, "BAD_TIMESTAMP", "now"),
    "now backwards": ({"now": ("2026-01-02", "2026-01-01")}, InvalidInput, "BAD_TIMESTAMP", "now"),
}


@pytest.mark.parametrize("case", SCANS)
def test_scan(table: tamis.Table, case: str) -> None:
    arguments, kind, code, name = SCANS[case]
    with pytest.raises(kind) as caught:
        table.scan(**arguments)
    good(caught.value, code, name)


def good(error: BaseException, code: str | None, name: str | None) -> None:
    assert isinstance(error, TamisError)
    assert code is None or error.code == code, error
    assert name is None or error.name == name, error
    assert error.remedy, error
    assert "Traceback" not in str(error)


def test_the_message_for_half_a_filter_is_for_people(table: tamis.Table) -> None:
    with pytest.raises(InvalidInput, match="Something is missing") as caught:
        table.scan("id >")
    assert "column 5" in str(caught.value)


def test_many_alternatives_are_not_deep(table: tamis.Table) -> None:
    assert table.scan(" OR ".join(f"id = {i}" for i in range(500))).count() == 2


def test_a_limit_beyond_any_table(table: tamis.Table) -> None:
    assert table.scan(limit=10**30).to_arrow().num_rows == 2


def test_a_spark_session_that_is_none(table: tamis.Table) -> None:
    with pytest.raises(InvalidInput) as caught:
        table.scan().to_spark(None)
    good(caught.value, "BAD_SESSION", "spark")


def test_a_history_limit_that_is_no_number(table: tamis.Table) -> None:
    with pytest.raises(InvalidInput) as caught:
        table.history("x")  # type: ignore[arg-type]
    good(caught.value, "BAD_LIMIT", "limit")


def test_the_remedy_names_what_there_is(tmp_path: Path, table: tamis.Table) -> None:
    with pytest.raises(NotFound, match="'id' is bigint, which has no fields"):
        table.scan(None, ["id.x"])
    with pytest.raises(NotFound, match="no columns yet"):
        tamis.create(tmp_path / "bare").scan("x = 1")


def test_rows_are_read_at_one_instant(table: tamis.Table) -> None:
    scan = table.scan("id = 1", now=("2026-01-01", "2026-01-02"))
    assert scan.explain().filter == "id = 1"
    with pytest.raises(InvalidInput) as caught:
        scan.to_arrow()
    good(caught.value, "NOW_IS_A_RANGE", "now")


def test_an_unknown_function_can_be_explained_but_not_read(table: tamis.Table) -> None:
    scan = table.scan("my_udf(id) = 1")
    assert scan.explain().not_skipped_because
    for read in (scan.to_arrow, scan.count, scan.to_batches):
        with pytest.raises(InvalidInput) as caught:
            read()
        good(caught.value, "UNKNOWN_FUNCTION", None)


CREATES: dict[str, tuple[dict[str, Any], type[TamisError], str | None, str | None]] = {
    "a schema that is none": ({"schema": {"id": "int"}}, InvalidInput, "BAD_SCHEMA", "schema"),
    "no columns": ({"schema": pa.schema([])}, InvalidInput, "BAD_SCHEMA", "schema"),
    "a column twice": (
        {"schema": pa.schema([("a", pa.int64()), ("A", pa.int64())])},
        InvalidInput,
        "DUPLICATE_COLUMN",
        "A",
    ),
    "a column without name": ({"schema": pa.schema([("", pa.int64())])}, InvalidInput, "BAD_COLUMN", None),
    "a type Spark has none of": (
        {"schema": pa.schema([("m", pa.month_day_nano_interval())])},
        InvalidInput,
        "UNSUPPORTED_TYPE",
        "m",
    ),
    "a decimal too wide": ({"schema": pa.schema([("m", pa.decimal256(60, 2))])}, InvalidInput, "UNSUPPORTED_TYPE", "m"),
    "a decimal of more places than digits": (
        {"schema": pa.schema([("m", pa.decimal128(5, 10))])},
        InvalidInput,
        "UNSUPPORTED_TYPE",
        "m",
    ),
    "a decimal of places below none": (
        {"schema": pa.schema([("m", pa.decimal128(5, -2))])},
        InvalidInput,
        "UNSUPPORTED_TYPE",
        "m",
    ),
    "a map by maps": (
        {"schema": pa.schema([("m", pa.map_(pa.struct([("a", pa.map_(pa.int32(), pa.int32()))]), pa.int32()))])},
        InvalidInput,
        "UNSUPPORTED_TYPE",
        "m",
    ),
    "a struct without fields": (
        {"schema": pa.schema([("m", pa.list_(pa.struct([])))])},
        InvalidInput,
        "UNSUPPORTED_TYPE",
        "m",
    ),
    "a column of no type": (
        {"schema": pa.schema([("a", pa.int64()), ("m", pa.null())])},
        InvalidInput,
        "UNSUPPORTED_TYPE",
        "m",
    ),
    "a list of no type": ({"schema": pa.schema([("m", pa.list_(pa.null()))])}, InvalidInput, "UNSUPPORTED_TYPE", "m"),
    "clustering by nothing there": ({"schema": SCHEMA, "cluster_by": ["nope"]}, NotFound, "COLUMN_NOT_FOUND", "nope"),
    "clustering twice by one": ({"schema": SCHEMA, "cluster_by": ["id", "ID"]}, InvalidInput, "BAD_CLUSTERING", "ID"),
    "clustering twice, no schema": ({"cluster_by": ["id", "id"]}, InvalidInput, "BAD_CLUSTERING", "id"),
    "clustering by a list": ({"schema": SCHEMA, "cluster_by": ["tags"]}, InvalidInput, "BAD_CLUSTERING", "tags"),
    "clustering by a number": ({"schema": SCHEMA, "cluster_by": [3]}, InvalidInput, "BAD_COLUMN", "cluster_by"),
    "an unknown format": ({"schema": SCHEMA, "format": "csv"}, InvalidInput, "UNKNOWN_FORMAT", "csv"),
    "clustering that is no sequence": ({"schema": SCHEMA, "cluster_by": 5}, InvalidInput, "BAD_COLUMN", "cluster_by"),
    "properties that are no mapping": ({"schema": SCHEMA, "properties": 5}, InvalidInput, "BAD_OPTION", "properties"),
    "storage options that are no mapping": (
        {"schema": SCHEMA, "storage_options": 5},
        InvalidInput,
        "BAD_OPTION",
        "storage_options",
    ),
    "an unknown property of ours": (
        {"schema": SCHEMA, "properties": {"tamis.nope": "1"}},
        InvalidInput,
        "UNKNOWN_OPTION",
        "tamis.nope",
    ),
    "a bad property value": (
        {"schema": SCHEMA, "properties": {"tamis.read.lazy": "x"}},
        InvalidInput,
        "BAD_OPTION",
        "tamis.read.lazy",
    ),
    "a bad storage option": ({"schema": SCHEMA, "storage_options": {"nonsense_key": "1"}}, InvalidInput, None, None),
}


@pytest.mark.parametrize("case", CREATES)
def test_create(tmp_path: Path, case: str) -> None:
    arguments, kind, code, name = CREATES[case]
    with pytest.raises(kind) as caught:
        tamis.create(tmp_path / "t", **arguments)
    error = caught.value
    assert isinstance(error, TamisError)
    assert code is None or error.code == code, error
    assert name is None or error.name == name, error
    assert error.remedy
    with pytest.raises(NotFound):
        tamis.open(tmp_path / "t")


@pytest.mark.parametrize("path", ["", "  ", 3, None, b"x"])
def test_a_path_that_is_none(path: Any) -> None:
    with pytest.raises(InvalidInput) as caught:
        tamis.create(path, SCHEMA)
    assert caught.value.code == "BAD_PATH"


def test_paths(tmp_path: Path, table: tamis.Table) -> None:
    with pytest.raises(NotFound) as missing:
        tamis.open(tmp_path / "nowhere")
    good(missing.value, "TABLE_NOT_FOUND", None)
    with pytest.raises(AlreadyExists) as twice:
        tamis.create(tmp_path / "t", SCHEMA)
    good(twice.value, None, None)
    (tmp_path / "file").write_text("not a table")
    for call in (tamis.open, tamis.create):
        with pytest.raises(TamisError):
            call(tmp_path / "file")
    with pytest.raises(TamisError):
        tamis.open("gopher://somewhere/table")


@pytest.mark.parametrize("name", ["with space", "quo'te\"s", "ünïcode", "a%20b", "semi;colon", "#hash", "a=b"])
def test_paths_with_odd_names(tmp_path: Path, name: str) -> None:
    tamis.create(tmp_path / name, SCHEMA).append(ROWS)
    assert tamis.open(tmp_path / name).scan("id = 2").to_arrow()["name"].to_pylist() == ["b"]


def test_a_first_append_with_a_column_of_nulls_only(tmp_path: Path) -> None:
    table = tamis.create(tmp_path / "t")
    with pytest.raises(InvalidInput, match="'m'") as caught:
        table.append(pa.table({"id": [1], "m": [None]}))
    good(caught.value, "UNSUPPORTED_TYPE", "m")
    table.append(pa.table({"id": [1], "m": pa.array([None], pa.string())}))
    table.append(pa.table({"id": [2], "m": [None]}))
    assert table.scan("m IS NULL").count() == 2


APPENDS: dict[str, tuple[Any, type[TamisError], str | None]] = {
    "a missing type": (pa.table({"id": ["x"], "name": ["a"], "tags": [["t"]]}), SchemaMismatch, "id"),
    "an unknown column": (pa.table({"id": [1], "name": ["a"], "tags": [["t"]], "more": [1]}), SchemaMismatch, "more"),
    "no frame": ([{"id": 1}], InvalidInput, None),
    "a number": (3, InvalidInput, None),
    "a pandas series": (pd.Series([1, 2]), InvalidInput, None),
}


@pytest.mark.parametrize("verb", ["append", "overwrite"])
@pytest.mark.parametrize("case", APPENDS)
def test_rows_that_do_not_fit(table: tamis.Table, case: str, verb: str) -> None:
    data, kind, name = APPENDS[case]
    version = table.version
    with pytest.raises(kind) as caught:
        getattr(table, verb)(data)
    assert name is None or name in caught.value.name, caught.value
    assert caught.value.remedy
    assert tamis.open(table.path).version == version
    assert table.scan().count() == 2


def test_a_null_where_none_may_be(tmp_path: Path) -> None:
    table = tamis.create(tmp_path / "n", pa.schema([pa.field("id", pa.int64(), nullable=False)]))
    with pytest.raises(SchemaMismatch) as caught:
        table.append(pa.table({"id": pa.array([1, None], pa.int64())}))
    assert "id" in caught.value.name
    assert table.scan().count() == 0


def test_a_part_that_has_vanished_or_is_garbled(table: tamis.Table) -> None:
    part = next((__import__("pathlib").Path(table.path.removeprefix("file://")) / "data").iterdir())
    content = part.read_bytes()
    for broken in (content[: len(content) // 2], b"", b"garbage" * 100, None):
        part.unlink()
        if broken is not None:
            part.write_bytes(broken)
        else:
            assert not part.exists()
        with pytest.raises(TamisError) as caught:
            tamis.open(table.path).scan().to_arrow()
        assert isinstance(caught.value, CorruptData | NotFound)
        assert caught.value.remedy
        if broken is None:
            part.write_bytes(content)
    assert table.scan().count() == 2


def test_an_unknown_metadata_table(table: tamis.Table) -> None:
    with pytest.raises(NotFound) as caught:
        table.metadata("files")
    good(caught.value, "METADATA_NOT_FOUND", "files")


def test_a_table_at_a_version_is_read_only(table: tamis.Table) -> None:
    pinned = tamis.open(table.path, version=1)
    for write in (pinned.append, pinned.overwrite):
        with pytest.raises(InvalidInput) as caught:
            write(ROWS)
        good(caught.value, "PINNED", None)


def test_a_guarded_scan_fails_before_it_reads(table: tamis.Table) -> None:
    scan = table.scan("id + 0 > 0", options={"tamis.scan.max_bytes": 1})
    assert scan.plan().report.parts.kept == 1
    with pytest.raises(InvalidInput) as caught:
        scan.to_arrow()
    good(caught.value, "SCAN_TOO_LARGE", "tamis.scan.max_bytes")
    assert "id" in str(caught.value)
    assert scan.report.bytes.leader == 0


VERBS: dict[str, tuple[Callable[[Any], object], str, str | None]] = {
    "a column type that says NOT NULL": (
        lambda t: t.alter().add_column("n", "BIGINT NOT NULL"),
        "BAD_TYPE",
        "BIGINT NOT NULL",
    ),
    "a column type that is two columns": (
        lambda t: t.alter().add_column("n", "BIGINT, m INT"),
        "BAD_TYPE",
        "BIGINT, m INT",
    ),
    "a default that is no SQL": (lambda t: t.alter().add_column("n", "BIGINT", default=[1]), "BAD_VALUES", "n"),
    "a default that Spark would not store": (
        lambda t: t.alter().add_column("n", "DOUBLE", default="true"),
        "BAD_DEFAULT",
        "n",
    ),
    "a list of properties to unset": (lambda t: t.alter().unset_properties(["a"]), "BAD_PROPERTY", None),
    "an expected schema id that is text": (lambda t: t.compare_and_evolve_schema("0", SCHEMA), "BAD_SCHEMA", "'0'"),
    "merge on names": (lambda t: t.merge(ROWS, on=["id"]).when_matched_delete().execute(), "BAD_FILTER", "on"),
    "a merge condition that is no text": (
        lambda t: t.merge(ROWS, "true").when_matched_delete(condition=True),
        "BAD_FILTER",
        "condition",
    ),
    "merge values that are no mapping": (
        lambda t: t.merge(ROWS, "true").when_matched_update("id"),
        "BAD_VALUES",
        "values",
    ),
    "merge values that are no SQL": (
        lambda t: t.merge(ROWS, "true").when_matched_update({"id": object()}),
        "BAD_VALUES",
        "id",
    ),
    "compact to a size as text": (lambda t: t.compact(max_bytes="1GB"), "BAD_OPTION", "max_bytes"),
    "compact below nothing": (lambda t: t.compact(max_seconds=-1), "BAD_OPTION", "max_seconds"),
    "compact by one name": (lambda t: t.compact(cluster_by="id"), "BAD_CLUSTERING", "id"),
    "a schema for a history": (lambda t: tamis.schema.check_migration(SCHEMA, SCHEMA), "BAD_SCHEMA", "schema"),
    "a reader that is none": (lambda t: tamis.schema.check_reader([SCHEMA], "id BIGINT"), "BAD_SCHEMA", "schema"),
    "no history": (
        lambda _: tamis.schema.check_migration(None, SCHEMA),  # type: ignore[arg-type]
        "BAD_SCHEMA",
        "history",
    ),
    "a dry run or not, who knows": (lambda t: t.vacuum(timedelta(7), dry_run=None), "BAD_OPTION", "dry_run"),
    "a compaction that may be a dry run": (lambda t: t.compact(dry_run=0), "BAD_OPTION", "dry_run"),
    "an evolution that may be a dry run": (
        lambda t: t.compare_and_evolve_schema(0, SCHEMA, dry_run="no"),
        "BAD_OPTION",
        "dry_run",
    ),
    "restore of no version": (lambda t: t.restore(None), "BAD_VERSION", "None"),
    "restore below nothing": (lambda t: t.restore(-1), "BAD_VERSION", "-1"),
    "changes since no version": (lambda t: t.changes(None), "BAD_VERSION", "None"),
    "a comment that is no text": (lambda t: t.alter().set_comment("id", 5), "BAD_COLUMN", "id"),
    "a new column's comment that is no text": (
        lambda t: t.alter().add_column("n", "INT", comment=[1]),
        "BAD_COLUMN",
        "n",
    ),
    "a delete without a filter": (lambda t: t.delete(), "ALL_ROWS", "all_rows"),
    "a delete by a filter and of all rows": (lambda t: t.delete("id = 1", all_rows=True), "ALL_ROWS", "all_rows"),
    "a delete of all rows, who knows": (lambda t: t.delete(all_rows=1), "BAD_OPTION", "all_rows"),
    "an update without a filter": (lambda t: t.update({"id": "1"}), "ALL_ROWS", "all_rows"),
    "an update by a filter and of all rows": (
        lambda t: t.update({"id": "1"}, "id = 1", all_rows=True),
        "ALL_ROWS",
        "all_rows",
    ),
    "a short retention, who knows": (
        lambda t: t.vacuum(timedelta(0), below_retention="yes"),
        "BAD_OPTION",
        "below_retention",
    ),
    "an update of one column twice": (lambda t: t.update({"name": "'x'", "NAME": "'y'"}), "DUPLICATE_COLUMN", "NAME"),
    "an update of one column in two spellings": (
        lambda t: t.update({"name": "'x'", "`name`": "'y'"}, all_rows=True),
        "DUPLICATE_COLUMN",
        "name",
    ),
    "an upsert of one column twice": (
        lambda t: t.upsert(pa.table([[1], ["x"], ["y"]], names=["id", "name", "NAME"]), "id"),
        "DUPLICATE_COLUMN",
        "NAME",
    ),
    "a merge that sets one column twice": (
        lambda t: (
            t.merge(ROWS, "target.id = source.id").when_matched_update({"target.name": "'x'", "name": "'y'"}).execute()
        ),
        "DUPLICATE_COLUMN",
        "name",
    ),
    "a column named as a metadata column": (
        lambda t: t.alter().add_column("_tamis_Part", "INT").commit(),
        "RESERVED_NAME",
        "_tamis_Part",
    ),
    "a guard by a size as text": (lambda t: t.explain("id = 1").guard(max_bytes="10MB"), "BAD_OPTION", "max_bytes"),
    "a guard below nothing": (lambda t: t.explain("id = 1").guard(max_parts=-1), "BAD_OPTION", "max_parts"),
}


@pytest.mark.push_cases(12)
@pytest.mark.parametrize("case", VERBS)
def test_verbs(table: tamis.Table, case: str) -> None:
    call, code, name = VERBS[case]
    with pytest.raises(InvalidInput) as caught:
        call(table)
    good(caught.value, code, name)
    assert table.refresh().version == 1


def test_a_number_stands_for_itself(table: tamis.Table) -> None:
    table.alter().add_column("n", "INT", default=5).commit()
    table.merge(ROWS, "target.id = source.id").when_matched_update({"n": 7}, condition="source.id = 1").execute()
    assert table.scan(None, ["id", "n"]).to_arrow().to_pydict() == {"id": [2, 1], "n": [5, 7]}


def test_a_named_target_keeps_its_value_over_the_default(table: tamis.Table) -> None:
    table.alter().add_column("n", "INT", default=5).commit()
    table.merge(pa.table({"id": [9]}), "target.id = source.id").when_not_matched_insert(
        {"id": "source.id", "target.n": 7}
    ).execute()
    assert table.scan("id = 9", ["n"]).to_arrow().to_pydict() == {"n": [7]}


def test_an_index_with_a_name_is_a_column(tmp_path: Path) -> None:
    """Its values would be NULL otherwise."""
    table = tamis.create(tmp_path, pa.schema([("id", pa.int64()), ("s", pa.string())]))
    table.append(pd.DataFrame({"s": ["a", "b"]}, index=pd.Index([1, 2], name="id")))
    table.append(
        pd.DataFrame({"id": [3], "s": ["c"]}, index=pd.Index([9], name="id"))
    )  # the column is the one that is meant
    table.append(pd.DataFrame({"id": [4], "s": ["d"]}, index=["no name"]))
    assert table.scan(order_by="id", limit=9).to_arrow()["id"].to_pylist() == [1, 2, 3, 4]
    with pytest.raises(InvalidInput) as caught:
        table.append(pd.DataFrame([[1, 2]], columns=["id", "id"]))
    assert caught.value.code == "BAD_DATA"
    assert "id" in caught.value.message


def test_a_very_wide_table_says_little(tmp_path: Path) -> None:
    table = tamis.create(tmp_path, pa.schema([(f"c{i}", pa.int64()) for i in range(2_000)]))
    assert len(repr(table).splitlines()) < 120
    assert "1,900 more" in repr(table)
    assert "1,900 more" in table._repr_html_()
    with pytest.raises(NotFound) as caught:
        table.scan("c1999x = 1")
    assert "c1999" in caught.value.remedy
    assert "1,970 more" in caught.value.remedy


@pytest.mark.parametrize("kind", ["MAP<VARIANT, INT>", "MAP<STRUCT<x: VARIANT>, INT>", "ARRAY<MAP<VARIANT, INT>>"])
def test_a_variant_is_no_key(tmp_path: Path, kind: str) -> None:
    from tamis.core.expr.column_definitions import parse_columns

    with pytest.raises(InvalidInput) as caught:
        tamis.create(tmp_path, parse_columns(f"id INT, m {kind}"))
    assert (caught.value.code, caught.value.name) == ("UNSUPPORTED_TYPE", "m")
    assert "no variant" in caught.value.message
    table = tamis.create(tmp_path, parse_columns("id INT, m MAP<VARCHAR(3), VARIANT>"))
    with pytest.raises(InvalidInput):
        table.alter().add_column("k", kind).commit()
