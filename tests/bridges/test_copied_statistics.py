"""A source's metadata that were computed from footers never bring back what the footers were not believed.

Each test fails if the metadata count wherever the footers left a statistic unknown.
"""

from __future__ import annotations

import json
import math
import struct
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tamis
from tamis.bridges.sources.delta_source import read_delta
from tests.bridges import delta_logs as logs
from tests.bridges import iceberg_tables as ice
from tests.bridges.foreign_files import edit_footer, patched, write_file, writer_of
from tests.bridges.foreign_tables import check_claims


def adopted(source: str | Path, folder: Path) -> tamis.Table:
    table = tamis.adopt(source, folder)
    assert isinstance(table, tamis.Table)
    return table


def found(table: tamis.Table, text: str) -> tuple[int, int]:
    """How many rows match, and how many parts are planned to be read for them."""
    return table.scan(text).to_arrow().num_rows, table.scan(text).plan().report.parts.kept


@pytest.mark.parametrize("of", ["iceberg", "delta"])
def test_a_row_group_without_bounds_is_not_left_out_of_a_files_bounds(tmp_path: Path, of: str) -> None:
    """PyIceberg and deltalake take the bounds of the other row groups for those of the file."""
    texts = ["a", "b", "z" * 5_000, "zz"]
    if of == "iceberg":
        source = ice.catalog(tmp_path).create_table(
            "n.t", pa.schema([("body", pa.string())]), properties={"write.parquet.row-group-limit": "2"}
        )
        source.append(pa.table({"body": texts}))
        place = str(ice.metadata_of(source))
    else:
        write_file(tmp_path / "d" / "a.parquet", pa.table({"body": texts}), row_group_size=2)
        deltalake.convert_to_deltalake(str(tmp_path / "d"))
        place = str(tmp_path / "d")
    table = adopted(place, tmp_path / "t")
    assert found(table, "body = 'zz'")[0] == 1
    assert found(table, "body > 'c'")[0] == 2
    assert table.verify().ok


def test_bounds_of_files_whose_footers_have_none_are_the_sources(tmp_path: Path) -> None:
    """What must prune: Spark's INT96 has no bounds, and neither have texts that are too long for a footer."""
    for at in range(3):
        stamp, text = datetime(2020, 1, 1 + at, tzinfo=UTC), f"{at}" + "x" * 5_000
        data = pa.table({"t": pa.array([stamp], pa.timestamp("us", "UTC")), "s": [text]})
        file = write_file(tmp_path / "d" / f"{at}.parquet", data, use_deprecated_int96_timestamps=True)
        size = file.stat().st_size
        said = {"t": f"{stamp:%Y-%m-%dT%H:%M:%S.000Z}", "s": text[:32]}
        stats = {"numRecords": 1, "minValues": said, "maxValues": {**said, "s": text[:31] + "\U0010ffff"}}
        add = {"path": f"{at}.parquet", "partitionValues": {}, "size": size, "modificationTime": 1, "dataChange": True}
        fields = [logs.field("t", "timestamp"), logs.field("s", "string")]
        first = [{"protocol": logs.PROTOCOL}, {"metaData": logs.metadata(fields)}] if not at else []
        logs.commit(tmp_path / "d", at, [*first, {"add": {**add, "stats": json.dumps(stats)}}])
    table = adopted(tmp_path / "d", tmp_path / "t")
    assert found(table, "t >= TIMESTAMP'2020-01-03 00:00:00Z'") == (1, 1)
    assert found(table, "s < '1'") == (1, 1)


@pytest.mark.parametrize("of", ["nan", "old calendar", "old writer"])
def test_bounds_that_footers_are_not_believed_do_not_come_back_by_the_log(tmp_path: Path, of: str) -> None:
    """deltalake copies the bounds of footers into its log, whatever they are."""
    file = tmp_path / "d" / "a.parquet"
    if of == "nan":
        data = pa.table({"v": [1.0, 1000.0, math.nan, 5.0, 6.0, 5.5]})
        write_file(file, data, row_group_size=3, store_schema=False)
        top, nan = (struct.pack("<d", v) for v in (1000.0, math.nan))
        edit_footer(file, [(top, nan)], times=2)  # as parquet-mr writes it: once in the old field, once in the new one
        text, count = "v = 1000", 1
    elif of == "old calendar":
        noted = pa.schema([("v", pa.date32())]).with_metadata({"org.apache.spark.version": "2.4.8"})
        write_file(file, pa.table({"v": [date(1000, 1, 1)] * 2}, schema=noted))
        text, count = "v = DATE'0999-12-27'", 2
    else:
        write_file(file, pa.table({"v": ["a\u00e9", "az", "b"]}), store_schema=False)
        patched(file, writer_of(file), b"parquet-mr version 1.8.1")
        text, count = "v < 'b'", 2
    size = file.stat().st_size
    lies: dict[str, Any] = {"nan": (1.0, 6.0), "old calendar": ("1000-01-01",) * 2, "old writer": ("b", "b")}
    low, high = lies[of]
    kinds = {"nan": "double", "old calendar": "date", "old writer": "string"}
    rows = pq.read_metadata(file).num_rows
    stats = {"numRecords": rows, "minValues": {"v": low}, "maxValues": {"v": high}, "nullCount": {"v": 0}}
    add = {"path": "a.parquet", "partitionValues": {}, "size": size, "modificationTime": 1, "dataChange": True}
    logs.create(tmp_path / "d", [logs.field("v", kinds[of])], [{"add": {**add, "stats": json.dumps(stats)}}])
    table = adopted(tmp_path / "d", tmp_path / "t")
    assert found(table, text)[0] == count
    assert table.verify().ok


@pytest.mark.slow
def test_partition_columns_of_very_wide_tables_prune(tmp_path: Path) -> None:
    """What must prune: their values are known, whatever room the statistics of the others take."""
    names = [f"c{n}" for n in range(1_700)]
    for day in ("2024-01-01", "2024-01-02", "2024-01-03"):
        data = pa.table({**{name: [1.0] for name in names}, "ds": [day]})
        deltalake.write_deltalake(tmp_path / "d", data, mode="append", partition_by=["ds"])
    table = adopted(tmp_path / "d", tmp_path / "t")
    assert found(table, "ds = '2024-01-02'") == (1, 1)


def test_bounds_of_writers_that_are_not_known_are_the_sources(tmp_path: Path) -> None:
    """What must prune: the log of Photon and others tells the bounds of texts, in whose footers nothing is believed."""
    adds = []
    for at in range(3):
        stats = {"minValues": {"s": f"{at}"}, "maxValues": {"s": f"{at}"}, "nullCount": {"s": 0}}
        adds.append(logs.add(tmp_path / "d", f"{at}.parquet", pa.table({"s": [f"{at}"] * 4}), stats))
        file = tmp_path / "d" / f"{at}.parquet"
        patched(file, writer_of(file), b"parquet-mr compatible with Photon"[: len(writer_of(file))])
    logs.create(tmp_path / "d", [logs.field("s", "string")], adds)
    table = adopted(tmp_path / "d", tmp_path / "t")
    assert found(table, "s = '1'") == (4, 1)


@pytest.mark.parametrize("kind", [pa.string(), pa.decimal128(38, 3), pa.int64(), pa.timestamp("us", "UTC")])
def test_files_of_deltalake_prune_by_their_footers(tmp_path: Path, kind: pa.DataType) -> None:
    """What must prune; each file has numbers of both signs, whose bytes are in another order."""
    for numbers in ([-5, 7, 30], [-900, -800], [120_000, 130_000]):
        whole = pa.array(numbers, pa.int64())
        values = whole.cast(pa.decimal128(38, 3)) if pa.types.is_decimal(kind) else whole.cast(kind)
        deltalake.write_deltalake(tmp_path / "d", pa.table({"v": values}), mode="append")
    table = adopted(tmp_path / "d", tmp_path / "t")
    texts = {"string": "v = '7'", "decimal128(38, 3)": "v = 7.000", "int64": "v = 7"}
    text = texts.get(str(kind), "v = TIMESTAMP'1970-01-01 00:00:00.000007Z'")
    assert found(table, text) == (1, 1)
    assert table.verify().ok


def test_bounds_of_decimals_that_a_writer_compared_without_their_sign_prove_nothing(tmp_path: Path) -> None:
    """As parquet-go does (its issue 592), and arrow-rs did: the lower bound is above the upper one, also in the log."""
    file = write_file(
        tmp_path / "d" / "a.parquet",
        pa.table({"v": pa.array([-5, 7, 30], pa.decimal128(38, 0))}),
        store_schema=False,
        write_page_index=False,
    )
    low, high, between = ((value).to_bytes(16, "big", signed=True) for value in (-5, 30, 1 << 90))
    data = file.read_bytes()
    start = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    times = data[start:].count(low)
    assert times == data[start:].count(high) > 0
    edit_footer(file, [(low, between), (high, low), (between, high)], times=times)
    patched(file, writer_of(file), b"github.com/parquet-go 0.32")
    size = file.stat().st_size
    stats = {"numRecords": 3, "minValues": {"v": 30}, "maxValues": {"v": -5}, "nullCount": {"v": 0}}
    add = {"path": "a.parquet", "partitionValues": {}, "size": size, "modificationTime": 1, "dataChange": True}
    fields = [logs.field("v", "decimal(38,0)")]
    # those of a segment are of all parts together, and would not be crossed
    other = pa.table({"v": pa.array([-900, -800], pa.decimal128(38, 0))})
    bounds = {"minValues": {"v": -900}, "maxValues": {"v": -800}, "nullCount": {"v": 0}}
    adds = [{"add": {**add, "stats": json.dumps(stats)}}, logs.add(tmp_path / "d", "b.parquet", other, bounds)]
    logs.create(tmp_path / "d", fields, adds)
    table = adopted(tmp_path / "d", tmp_path / "t")
    table.append(pa.table({"v": pa.array([5_000], pa.decimal128(38, 0))}))  # of several segments, each is judged
    assert found(table, "v = 7")[0] == 1
    assert table.verify().ok


def struct_file(path: Path) -> Path:
    """A file in which Arrow counts no NULL of the struct itself."""
    values = [None if i % 4 == 3 else {"s": str(i % 9)} for i in range(40)]
    kind = pa.struct([("s", pa.dictionary(pa.int8(), pa.string()))])
    return write_file(path, pa.table({"k": range(40), "x": pa.array(values, kind)}), row_group_size=20)


@pytest.mark.parametrize("of", ["iceberg", "delta"])
def test_bounds_of_a_first_chunk_do_not_come_back(tmp_path: Path, of: str) -> None:
    """Arrow before 12 may bound a dictionary's first chunk only; metadata that was computed from footers repeats it."""
    place = tmp_path / ("warehouse/n/t" if of == "iceberg" else "d")
    texts = pa.table({"k": [0, 1, 2], "h": ["aa", "sean", "zzz"]})
    file = write_file(place / "plain.parquet", texts, store_schema=False)
    writer = writer_of(file)
    early = b"parquet-cpp-arrow version 10.0.1".ljust(len(writer))
    edit_footer(file, [(b"\x28\x03zzz", b"\x28\x03sea"), (writer, early)])
    if of == "iceberg":
        source = ice.catalog(tmp_path).create_table("n.t", texts.schema)
        source.add_files([file.as_uri()])
        table = adopted(ice.metadata_of(source), tmp_path / "t")
    else:
        deltalake.convert_to_deltalake(str(place))
        table = adopted(place, tmp_path / "t")
    assert found(table, "h = 'zzz'")[0] == 1
    assert table.verify().ok


@pytest.mark.parametrize("of", ["iceberg", "delta"])
def test_a_count_of_nulls_that_is_not_believed_stays_unknown(tmp_path: Path, of: str) -> None:
    if of == "iceberg":
        file = struct_file(tmp_path / "warehouse" / "n" / "t" / "plain.parquet")
        kind = pa.struct([("s", pa.string())])
        source = ice.catalog(tmp_path).create_table("n.t", pa.schema([("k", pa.int64()), ("x", kind)]))
        source.add_files([file.as_uri()])
        place = ice.metadata_of(source)
    else:
        place = struct_file(tmp_path / "d" / "a.parquet").parent
        deltalake.convert_to_deltalake(str(place))
    table = adopted(place, tmp_path / "t")
    assert found(table, "x.s IS NULL")[0] == 10
    assert found(table, "x.s IS NOT NULL")[0] == 30
    assert table.verify().ok


def test_a_count_of_nulls_that_the_footer_does_not_have_stays_unknown(tmp_path: Path) -> None:
    """deltalake writes 0 then."""
    file = write_file(tmp_path / "d" / "a.parquet", pa.table({"k": [1, None, 3]}), store_schema=False)
    edit_footer(
        file, [(b"\x16\x02\x28\x08", b"\x26\x02\x18\x08")]
    )  # the number of NULLs becomes one of distinct values
    assert not pq.read_metadata(file).row_group(0).column(0).statistics.has_null_count
    size = file.stat().st_size
    stats = {"numRecords": 3, "minValues": {"k": 1}, "maxValues": {"k": 3}, "nullCount": {"k": 0}}
    add = {"path": "a.parquet", "partitionValues": {}, "size": size, "modificationTime": 1, "dataChange": True}
    logs.create(tmp_path / "d", [logs.field("k", "long")], [{"add": {**add, "stats": json.dumps(stats)}}])
    table = adopted(tmp_path / "d", tmp_path / "t")
    assert found(table, "k IS NULL")[0] == 1
    assert table.scan("k IS NULL").count() == 1
    assert table.verify().ok


def test_counts_of_nulls_of_arrays_in_a_delta_log_are_not_believed(tmp_path: Path) -> None:
    """deltalake wrote those of their elements, and counted empty arrays."""
    kind = {"type": "array", "elementType": "string", "containsNull": True}
    data = pa.table({"tags": pa.array([[], [], []], pa.list_(pa.string())), "value": pa.array([None, [1], [2]])})
    counts = {"nullCount": {"tags": 3, "value": 0}}
    longs = {"type": "array", "elementType": "long", "containsNull": True}
    logs.create(
        tmp_path / "d",
        [logs.field("tags", kind), logs.field("value", longs)],
        [logs.add(tmp_path / "d", "a.parquet", data, counts)],
    )
    assert check_claims(read_delta(str(tmp_path / "d"))) == 0
    table = adopted(tmp_path / "d", tmp_path / "t")
    assert found(table, "tags IS NOT NULL")[0] == 3
    assert found(table, "value IS NULL")[0] == 1


@pytest.mark.parametrize(
    ("instant", "said"),
    [
        (datetime(1905, 5, 31, 18, 38, 50, tzinfo=UTC), "1905-06-01T00:00:00.000+05:21"),  # Kolkata, +05:21:10
        (datetime(1905, 6, 1, 3, 6, 28, tzinfo=UTC), "1905-06-01T00:00:00.000-03:06"),  # Sao Paulo, -03:06:28
    ],
)
def test_an_old_time_is_found_though_its_offset_was_cut_to_minutes(
    tmp_path: Path, instant: datetime, said: str
) -> None:
    """Delta wrote the local time with an offset without its seconds (its issue 5249)."""
    data = pa.table({"t": pa.array([instant], pa.timestamp("us", "UTC"))})
    file = write_file(tmp_path / "d" / "a.parquet", data, use_deprecated_int96_timestamps=True)
    stats = {"numRecords": 1, "minValues": {"t": said}, "maxValues": {"t": said}, "nullCount": {"t": 0}}
    add = {"path": "a.parquet", "partitionValues": {}, "modificationTime": 1, "dataChange": True}
    more = {"size": file.stat().st_size, "stats": json.dumps(stats)}
    logs.create(tmp_path / "d", [logs.field("t", "timestamp")], [{"add": {**add, **more}}])
    table = adopted(tmp_path / "d", tmp_path / "t")
    assert found(table, f"t = TIMESTAMP'{instant:%Y-%m-%d %H:%M:%S}Z'")[0] == 1
    assert found(table, "t > TIMESTAMP'1905-06-02 00:00:00Z'") == (0, 0)


def test_iceberg_counts_days_as_the_file_stores_them(tmp_path: Path) -> None:
    """Its readers do not rebase dates of the old calendar; the bounds in its manifests are such days, too."""
    schema = pa.schema([("d", pa.date32())])
    noted = schema.with_metadata({"org.apache.spark.version": "3.5.0", "org.apache.spark.legacyDateTime": ""})
    file = tmp_path / "warehouse" / "n" / "t" / "plain.parquet"
    write_file(file, pa.table({"d": [date(1000, 1, 1)]}, schema=noted))
    source = ice.catalog(tmp_path).create_table("n.t", schema)
    source.add_files([file.as_uri()])
    table = adopted(str(ice.metadata_of(source)), tmp_path / "t")
    theirs: list[Any] = source.scan().to_arrow()["d"].to_pylist()
    assert table.scan("d < DATE'1100-01-01'").to_arrow()["d"].to_pylist() == theirs == [date(1000, 1, 1)]
    assert found(table, "d = DATE'1000-01-01'")[0] == 1
    assert found(table, "d > DATE'1100-01-01'") == (0, 0)
    assert table.verify().ok
