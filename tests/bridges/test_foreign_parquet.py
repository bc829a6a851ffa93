"""Foreign Parquet files are read as their writers meant them, and no statistic of theirs is believed without a reason."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tamis
from tamis.core.types import DATE, INTEGER, LONG, STRING, Array, DataType, Field, Schema, Struct
from tamis.errors import InvalidInput, StoreUnavailable
from tamis.storage.commit_log import Source
from tamis.storage.files import PartRef, open_part
from tamis.storage.files.parquet.legacy_calendar import gregorian_days
from tamis.storage.object_store import open_store
from tests.bridges import delta_logs as logs
from tests.bridges.foreign_files import patched, write_file, writer_of


def adopted(tmp_path: Path, *tables: pa.Table, **options: Any) -> tamis.Table:
    """Adopt a folder of these files."""
    for at, table in enumerate(tables):
        write_file(tmp_path / "source" / f"{at}.parquet", table, **options)
    return again(tmp_path)


def again(tmp_path: Path) -> tamis.Table:
    table = tamis.adopt(tmp_path / "source", tmp_path / "table")
    assert isinstance(table, tamis.Table)
    return table


NAN = math.nan
VALUES: dict[str, tuple[pa.DataType, list[Any]]] = {
    "byte": (pa.int8(), [-128, -1, 0, 127]),
    "whole": (pa.int64(), [-(2**63), -1, 0, 1, 2**63 - 1]),
    "unsigned": (pa.uint32(), [0, 1, 2**31 - 1, 2**31, 2**32 - 1]),
    "largest": (pa.uint64(), [0, 1, 2**63 - 1, 2**63, 2**64 - 1]),
    "double": (pa.float64(), [NAN, -0.0, 0.0, -math.inf, math.inf, 1.5]),
    "single": (pa.float32(), [NAN, -0.0, 0.0, 1.5]),
    "text": (pa.string(), ["", "a", "é", "\U0001f600" * 40, "z" * 100, "\uffff"]),
    "bytes": (pa.binary(), [b"", b"\x00", b"\x7f", b"\x80", b"\xff" * 80]),
    "fixed": (pa.binary(2), [b"\x00\x01", b"\xff\xff"]),
    "day": (pa.date32(), [dt.date(1, 1, 1), dt.date(1970, 1, 1), dt.date(9999, 12, 31)]),
    "milli": (
        pa.timestamp("ms", "UTC"),
        [dt.datetime(1960, 1, 1, tzinfo=dt.UTC), dt.datetime(2024, 1, 1, tzinfo=dt.UTC)],
    ),
    "micro": (pa.timestamp("us"), [dt.datetime(1960, 1, 1), dt.datetime(2024, 1, 1, 1, 2, 3, 4)]),
    "money": (pa.decimal128(9, 2), [Decimal("-1.00"), Decimal("0.00"), Decimal("9999999.99")]),
    "large": (
        pa.decimal128(30, 4),
        [Decimal("-1.0000"), Decimal("0.0000"), Decimal("99999999999999999999999999.9999")],
    ),
    "flag": (pa.bool_(), [True, False]),
    "time": (pa.time64("us"), [dt.time(0, 0), dt.time(23, 59, 59, 999999)]),
}


@st.composite
def files(draw: st.DrawFn) -> pa.Table:
    count = draw(st.integers(1, 12))
    columns = {
        name: pa.array(draw(st.lists(st.sampled_from([None, *values]), min_size=count, max_size=count)), kind)
        for name, (kind, values) in VALUES.items()
    }
    columns["inner"] = pa.StructArray.from_arrays(
        [columns["whole"], columns["text"]],
        names=["w", "t"],
        mask=pa.array(draw(st.lists(st.booleans(), min_size=count, max_size=count))),
    )
    return pa.table(columns)


def _text(value: Any) -> str:
    return str(Decimal(value)) if isinstance(value, int) else repr(value) if isinstance(value, float) else str(value)


@pytest.mark.slow
@given(st.lists(files(), min_size=1, max_size=3), st.integers(1, 8), st.booleans(), st.sampled_from(["1.0", "2.6"]))
def test_every_statistic_of_a_footer_holds_for_the_values(
    tmp_path_factory: pytest.TempPathFactory, tables: list[pa.Table], rows: int, statistics: bool, version: str
) -> None:
    """``verify`` compares every statistic with the values. Every bound as a filter finds the same rows as without."""
    place = tmp_path_factory.mktemp("statistics")
    table = adopted(place, *tables, row_group_size=rows, write_statistics=statistics, version=version)
    assert table.verify().problems.to_pylist() == []
    found = table.scan().to_arrow()
    expected = pa.concat_tables(tables, promote_options="permissive")
    assert found.num_rows == expected.num_rows
    for name in VALUES:
        mine, theirs = (sorted(map(_text, t[name].to_pylist())) for t in (found, expected))
        assert mine == theirs, name
    hidden = expected["inner"].combine_chunks().flatten()[0].null_count
    assert table.scan("inner.w IS NULL", ["whole"]).count() == hidden
    assert table.scan("text IS NULL", ["whole"]).count() == expected["text"].null_count


@pytest.mark.slow
def test_filters_over_blocks_and_files_find_what_a_scan_of_all_finds(tmp_path: Path) -> None:
    random = np.random.default_rng(7)
    tables = []
    for _ in range(4):
        columns = {
            name: pa.array([[None, *values][i] for i in random.integers(0, len(values) + 1, 40)], kind)
            for name, (kind, values) in VALUES.items()
        }
        tables.append(pa.table(columns))
    table = adopted(tmp_path, *tables, row_group_size=4)
    for name, text in {
        "unsigned": "2147483648",
        "largest": "9223372036854775808",
        "double": "0.0",
        "single": "0",
        "whole": "0",
        "byte": "-1",
        "text": "'é'",
        "day": "DATE'1970-01-01'",
        "money": "0",
        "large": "0",
        "micro": "TIMESTAMP_NTZ'2024-01-01 01:02:03.000004'",
        "milli": "TIMESTAMP'2024-01-01 00:00:00Z'",
        "bytes": "X'80'",
        "flag": "true",
    }.items():
        for comparison in ("=", "<", ">", "<=", ">=", "<>"):
            row_filter = f"{name} {comparison} {text}"
            mine = table.scan(row_filter, [name]).to_arrow().num_rows
            plain = table.scan(
                row_filter, [name], options={"tamis.stats.filter": False, "tamis.read.lazy": "off"}
            ).to_arrow()
            assert mine == plain.num_rows, row_filter
    for name in ("double", "single"):
        nans = sum(1 for one in tables for v in one[name].to_pylist() if v is not None and math.isnan(v))
        assert table.scan(f"isnan({name})", ["whole"]).to_arrow().num_rows == nans


def text_bounds(table: tamis.Table) -> list[Any]:
    parts = table.snapshot.parts(None, frozenset([1]))
    return parts["1|string|lo"].to_pylist() if "1|string|lo" in parts.column_names else [None] * len(parts)


@pytest.mark.parametrize(
    ("writer", "believed"),
    [
        (b"parquet-mr version 1.10.0", True),
        (b"parquet-mr version 1.8.1", False),
        (b"parquet-mr version 1.9.0", False),
        (b"parquet-rs version 53.0.0", True),
        (b"parquet-rs version 4.0.0", False),
        (b"somebody version 9.9.9", False),
        (b"", False),
    ],
)
def test_bounds_of_texts_count_only_of_writers_that_order_them(tmp_path: Path, writer: bytes, believed: bool) -> None:
    file = write_file(tmp_path / "source" / "0.parquet", pa.table({"s": ["a", "é"]}))
    patched(file, writer_of(file), writer)
    assert (text_bounds(again(tmp_path)) == ["a"]) == believed


def test_notes_that_a_tool_copied_into_another_file_mean_nothing(tmp_path: Path) -> None:
    """pyarrow copies all notes of a file that it rewrites: pages, leaves, counts of NaN, the part's id."""
    made = tamis.create(tmp_path / "made", pa.schema([("id", pa.int64()), ("x", pa.float64())]))
    made.append(pa.table({"id": range(5000), "x": [float(i) for i in range(5000)]}))
    (file,) = (tmp_path / "made" / "data").iterdir()
    notes = pq.read_metadata(file).metadata
    assert b"tamis.pages" in notes
    assert b"tamis.nans" in notes
    other = pa.table({"id": range(5000, 9000), "x": [NAN if i % 3 else 1.0 for i in range(4000)]})
    write_file(tmp_path / "source" / "0.parquet", other.replace_schema_metadata(notes), row_group_size=1000)
    table = again(tmp_path)
    assert table.scan("isnan(x)", ["id"]).to_arrow().num_rows == sum(1 for i in range(4000) if i % 3)
    assert table.scan("id IN (5001, 8888)").to_arrow()["id"].to_pylist() == [5001, 8888]
    assert table.verify().ok


def test_int96_is_an_instant_at_any_time(tmp_path: Path) -> None:
    moments = [dt.datetime(1900, 1, 1), dt.datetime(2024, 2, 29, 1, 2, 3, 456789), dt.datetime(2261, 1, 1)]
    table = adopted(
        tmp_path, pa.table({"t": pa.array(moments, pa.timestamp("us"))}), use_deprecated_int96_timestamps=True
    )
    assert str(table.schema.field("t").type) == "timestamp[us, tz=UTC]"
    assert [m.replace(tzinfo=None) for m in table.scan().to_arrow()["t"].to_pylist()] == moments


def test_a_struct_of_which_a_file_has_other_fields_is_not_null(tmp_path: Path) -> None:
    one = pa.table({"s": pa.array([{"a": 1}, None, {"a": None}])})
    two = pa.table({"s": pa.array([{"b": "x"}, None])})
    lists = pa.table({"s": pa.array([{"b": "y"}]), "l": pa.array([[{"c": 1}, None], None, []][:1])})
    table = adopted(tmp_path, one, two, lists)
    found = table.scan(None, ["s"]).to_arrow()["s"].to_pylist()
    assert found == [
        {"a": 1, "b": None},
        None,
        {"a": None, "b": None},
        {"a": None, "b": "x"},
        None,
        {"a": None, "b": "y"},
    ]
    only = [row["s"] for row in table.scan("s IS NOT NULL", ["s.a"]).to_arrow().to_pylist()]
    assert len(only) == 4
    assert table.scan("s IS NULL", ["s.a"]).to_arrow().num_rows == 2


def test_fields_are_found_by_id_only_where_the_source_says_so(tmp_path: Path) -> None:
    ids = [
        pa.field("x", pa.int64(), metadata={"PARQUET:field_id": "2"}),
        pa.field("y", pa.int64(), metadata={"PARQUET:field_id": "1"}),
    ]
    file = write_file(tmp_path / "f.parquet", pa.table([[10], [20]], schema=pa.schema(ids)))
    schema = Schema((Field("x", LONG, id=1), Field("y", LONG, id=2), Field("z", LONG, id=3)))
    ref = PartRef("p", "f.parquet", "parquet", 0, 1, file.stat().st_size, source="s")
    for source, expected in (
        (Source("s", "parquet", str(tmp_path)), {"1": [10], "2": [20]}),
        (
            Source("s", "iceberg", str(tmp_path), by_field_id=True),
            {"2": [10], "1": [20]},
        ),  # the same id: nothing is remembered
        (Source("s", "delta", str(tmp_path), {1: "y", 2: "w", 3: "x"}), {"3": [10], "1": [20]}),
    ):
        part = open_part(open_store("memory://ids"), ref, schema, (source,))
        (piece,) = part.read([1, 2, 3], [0])
        assert piece.batch.to_pydict() == expected, source


def test_names_of_files_may_differ_in_case_from_those_of_a_delta_table(tmp_path: Path) -> None:
    """Spark finds such columns; a reader that does not gives NULL for every value."""
    value = pa.table({"ID": [1, 2], "S": pa.array([{"Inner": "x"}, None]), "w": [3, 4], "W": [5, 6]})
    inner = {"type": "struct", "fields": [logs.field("inner", "string")]}
    fields = [logs.field("id", "long"), logs.field("s", inner), logs.field("W", "long")]
    (tmp_path / "source").mkdir()
    logs.create(tmp_path / "source", fields, [logs.add(tmp_path / "source", "f.parquet", value, {})])
    table = tamis.adopt(tmp_path / "source", tmp_path / "t")
    assert isinstance(table, tamis.Table)
    expected = [{"id": 1, "s": {"inner": "x"}, "W": 5}, {"id": 2, "s": None, "W": 6}]
    assert table.scan().to_arrow().to_pylist() == expected
    assert table.scan("id = 2").to_arrow().to_pylist() == expected[1:]
    assert table.scan("id > 2").to_arrow().num_rows == table.scan("id IS NULL").to_arrow().num_rows == 0
    assert table.explain("id > 2").parts.kept == 0


def test_names_of_an_iceberg_table_are_exact(tmp_path: Path) -> None:
    """By its name mapping, a column of another case is another one."""
    file = write_file(tmp_path / "f.parquet", pa.table({"X": [10]}))
    ref = PartRef("p", "f.parquet", "parquet", 0, 1, file.stat().st_size, source="s")
    for kind, expected in (("iceberg", {}), ("parquet", {"1": [10]})):
        source = Source("s", kind, str(tmp_path), by_field_id=kind == "iceberg")
        part = open_part(open_store("memory://ids"), ref, Schema((Field("x", LONG, id=1),)), (source,))
        (piece,) = part.read([1], [0])
        assert piece.batch.to_pydict() == expected, kind


def test_nested_names_of_the_source_are_found_by_column_id(tmp_path: Path) -> None:
    value = pa.array([{"c-1": 5, "c-2": [{"c-3": "x"}]}])
    file = write_file(tmp_path / "f.parquet", pa.table({"c-0": value}))
    element = Field("element", Struct((Field("text", STRING, id=5),)), id=4)
    inner = Struct((Field("number", LONG, id=2), Field("list", Array(element), id=3)))
    schema = Schema((Field("outer", inner, id=1),))
    source = Source("s", "delta", str(tmp_path), {1: "c-0", 2: "c-1", 3: "c-2", 5: "c-3"})
    ref = PartRef("p", "f.parquet", "parquet", 0, 1, file.stat().st_size, source="s")
    part = open_part(open_store("memory://nested"), ref, schema, (source,))
    (piece,) = part.read([1], [0])
    assert piece.batch["1"].to_pylist() == [{"number": 5, "list": [{"text": "x"}]}]
    (piece,) = part.read([5], [0])
    assert piece.batch["1"].to_pylist() == [{"list": [{"text": "x"}]}]
    assert part.statistics({2})["2|long|hi"].to_pylist() == [5]


def _read(file: Path, data_type: DataType) -> list[Any]:
    schema = Schema((Field("x", data_type, id=1),))
    rows = pq.read_metadata(file).num_rows
    ref = PartRef("p", file.name, "parquet", 0, rows, file.stat().st_size, source="s")
    part = open_part(open_store("memory://read"), ref, schema, (Source("s", "parquet", str(file.parent)),))
    found = [v for piece in part.read([1], range(len(part.block_rows))) for v in piece.batch["1"].to_pylist()]
    low, high = (part.statistics({1}).to_pydict().get(f"1|{data_type.to_json()}|{k}", []) for k in ("lo", "hi"))
    for bounds, side in ((low, min), (high, max)):
        for bound in bounds:
            assert bound is None or side(bound, *found) == bound, "bounds are of the type that is read"
    return found


def test_binaries_and_uuids_are_read_as_the_texts_that_they_are(tmp_path: Path) -> None:
    assert _read(write_file(tmp_path / "a.parquet", pa.table({"x": [b"caf\xc3\xa9", b"z"]})), STRING) == ["café", "z"]
    uuid = pa.array([bytes(range(16))], pa.binary(16))
    assert _read(write_file(tmp_path / "b.parquet", pa.table({"x": uuid})), STRING) == [
        "00010203-0405-0607-0809-0a0b0c0d0e0f"
    ]


def test_dates_of_the_old_calendar_are_rebased_and_old_times_refused(tmp_path: Path) -> None:
    days = [-719_164, CUTOVER - 1, CUTOVER, 0]  # 0001-01-01 and 1582-10-04 of the Julian calendar
    note = {"org.apache.spark.version": "2.4.8"}
    old = pa.table({"x": pa.array(days, pa.int32()).view(pa.date32())}).replace_schema_metadata(note)
    file = write_file(tmp_path / "source" / "a.parquet", old)
    found = _read(file, DATE)
    assert found == [dt.date(1, 1, 1), dt.date(1582, 10, 4), dt.date(1582, 10, 15), dt.date(1970, 1, 1)]
    table = again(tmp_path)
    assert table.scan("x = DATE'0001-01-01'").to_arrow().num_rows == 1, "its bounds are of the old calendar"
    plain = write_file(tmp_path / "plain.parquet", old.slice(1).replace_schema_metadata(None))
    assert _read(plain, DATE)[0] == dt.date(1582, 10, 14)
    moment = pa.array([dt.datetime(1899, 1, 1)], pa.timestamp("us", "UTC"))
    times = pa.table({"x": moment, "y": [1]}).replace_schema_metadata(note)
    write_file(tmp_path / "times" / "source" / "a.parquet", times)
    table = again(tmp_path / "times")
    assert table.scan(None, ["y"]).to_arrow()["y"].to_pylist() == [1]
    with pytest.raises(InvalidInput) as caught:
        table.scan().to_arrow()
    assert caught.value.code == "LEGACY_CALENDAR"
    with pytest.raises(InvalidInput):
        table.scan("x < TIMESTAMP'1950-01-01'").to_arrow()


LEGACY = {
    name: {"org.apache.spark.version": "4.1.0", f"org.apache.spark.{name}": ""}
    for name in ("legacyINT96", "legacyDateTime")
}


@pytest.mark.parametrize("mark", LEGACY)
@pytest.mark.parametrize("stored", ["INT96", "INT64", "TIMESTAMP_NTZ"])
@pytest.mark.parametrize("nested", ["plain", "struct", "list", "map"])
def test_old_times_are_refused_only_as_the_file_marks_how_they_are_stored(
    tmp_path: Path, mark: str, stored: str, nested: str
) -> None:
    zone = None if stored == "TIMESTAMP_NTZ" else "UTC"
    moment = dt.datetime(1850, 1, 1, tzinfo=None if zone is None else dt.UTC)
    kind = pa.timestamp("us", zone)
    value, column = {
        "plain": (moment, kind),
        "struct": ({"a": moment}, pa.struct([("a", kind)])),
        "list": ([moment], pa.list_(kind)),
        "map": ([("k", moment)], pa.map_(pa.string(), kind)),
    }[nested]
    rows = pa.table({"x": pa.array([value, None], column)}).replace_schema_metadata(LEGACY[mark])
    write_file(tmp_path / "source" / "a.parquet", rows, use_deprecated_int96_timestamps=stored == "INT96")
    table = again(tmp_path)
    if (stored, mark) not in {("INT96", "legacyINT96"), ("INT64", "legacyDateTime")}:
        assert table.scan().to_arrow()["x"].to_pylist() == [value, None]
        if nested == "plain":
            literal = f"TIMESTAMP{'_NTZ' if zone is None else ''}'1850-01-01 00:00:00{'' if zone is None else 'Z'}'"
            assert table.scan(f"x = {literal}").count() == 1
        return
    with pytest.raises(InvalidInput, match=r"RebaseModeInWrite.*CORRECTED") as caught:
        table.scan().to_arrow()
    assert caught.value.code == "LEGACY_CALENDAR"


def test_an_index_over_old_times_says_what_to_do_before_a_repair(tmp_path: Path) -> None:
    rows = pa.table({"x": pa.array([dt.datetime(1850, 1, 1)], pa.timestamp("us", "UTC")), "k": [1]})
    write_file(tmp_path / "source" / "a.parquet", rows.replace_schema_metadata(LEGACY["legacyDateTime"]))
    table = again(tmp_path)
    with pytest.raises(StoreUnavailable, match=r"CORRECTED.* Then call repair_index") as caught:
        table.create_index("old", "x")
    assert caught.value.code == "INDEX_BUILD_FAILED"
    table.create_index("other", "k")
    assert table.scan("k = 1", ["k"]).count() == 1


def test_bounds_of_times_without_a_zone_count_in_files_of_the_old_calendar(tmp_path: Path) -> None:
    moments = pa.array([dt.datetime(1850, 1, 1), dt.datetime(1860, 1, 1)], pa.timestamp("us"))
    rows = pa.table({"x": moments}).replace_schema_metadata(LEGACY["legacyDateTime"])
    write_file(tmp_path / "source" / "a.parquet", rows)
    table = again(tmp_path)
    assert table.scan("x > TIMESTAMP_NTZ'1899-01-01 00:00:00'").plan().report.parts["kept"] == 0


CUTOVER = -141_427


@given(st.integers(1, 1582), st.integers(1, 12), st.integers(1, 28))
def test_a_rebased_date_has_the_year_month_and_day_that_the_writer_meant(year: int, month: int, day: int) -> None:
    shift = (14 - month) // 12  # a Julian day number, by the usual formula
    y, m = year + 4800 - shift, month + 12 * shift - 3
    julian = day + (153 * m + 2) // 5 + 365 * y + y // 4 - 32083 - 2_440_588
    found = gregorian_days(np.array([julian], dtype=np.int64))[0]
    assert dt.date(1970, 1, 1) + dt.timedelta(days=int(found)) == dt.date(year, month, day)


def test_lists_of_old_writers_are_read(tmp_path: Path) -> None:
    value = pa.array([[1, 2], None, []], pa.list_(pa.int32()))
    file = write_file(tmp_path / "a.parquet", pa.table({"x": value}), use_compliant_nested_type=False)
    assert _read(file, Array(Field("element", INTEGER, id=2))) == [[1, 2], None, []]
    assert _read(file, Array(Field("element", LONG, id=2))) == [[1, 2], None, []]


LISTS: dict[str, pa.DataType] = {
    "small": pa.list_(pa.int32()),
    "large": pa.large_list(pa.int32()),
    "of one length": pa.list_(pa.int32(), 2),
    "large of large": pa.large_list(pa.large_list(pa.large_string())),
    "small of large": pa.list_(pa.large_list(pa.int32())),
    "struct of large": pa.struct([("l", pa.large_list(pa.int32()))]),
    "map of large": pa.map_(pa.large_string(), pa.large_list(pa.int32())),
    "texts of a dictionary": pa.list_(pa.dictionary(pa.int8(), pa.string())),
    "struct of a dictionary": pa.struct([("s", pa.dictionary(pa.int8(), pa.string()))]),
}


def _listed(name: str, i: int) -> Any:
    if i % 4 == 3:
        return None
    some: list[Any] = [i, None] if name == "of one length" else [i, None, i + 1][: i % 3]
    if name == "large of large":
        return [[str(i)], None, [], ["a", None]][: i % 5]
    if name == "texts of a dictionary":
        return ["a", None, str(i % 9)][: i % 4]
    if name == "struct of a dictionary":
        return {"s": str(i % 9) if i % 5 else None}
    wrapped = {"small of large": [some, None, []], "struct of large": {"l": some}, "map of large": [("k", some)]}
    return wrapped.get(name, some)


@pytest.mark.push_cases(6)
@pytest.mark.parametrize("note", [{}, {"org.apache.spark.version": "2.4.8"}])
@pytest.mark.parametrize("name", LISTS)
def test_lists_are_read_whatever_layout_the_writer_had_in_memory(
    tmp_path: Path, name: str, note: dict[str, str]
) -> None:
    """Arrow decodes a column into the layout that its writer noted: 64-bit offsets read as 32-bit ones shift elements."""
    values = [_listed(name, i) for i in range(100)]
    kind = LISTS[name]
    data = pa.table({"k": range(100), "x": pa.array(values, kind)}).replace_schema_metadata(note)
    table = adopted(tmp_path, data.slice(5, 90), row_group_size=20)
    found = dict(zip(*(table.scan(None, ["k", "x"]).to_arrow()[c].to_pylist() for c in ("k", "x")), strict=True))
    assert found == {k: values[k] for k in range(5, 95)}
    table.delete("k % 3 = 1")
    found = dict(zip(*(table.scan("k > 30").to_arrow()[c].to_pylist() for c in ("k", "x")), strict=True))
    assert found == {k: values[k] for k in range(31, 95) if k % 3 != 1}
    assert table.verify().ok


def test_views_of_lists_are_refused_by_name(tmp_path: Path) -> None:
    """Arrow has no sound way from them to lists."""
    with pytest.raises(InvalidInput) as caught:
        adopted(tmp_path, pa.table({"x": pa.array([[1]], pa.list_view(pa.int32()))}))
    assert (caught.value.code, caught.value.name) == ("COLUMN_NOT_READABLE", "x")
    assert not (tmp_path / "table").exists()
