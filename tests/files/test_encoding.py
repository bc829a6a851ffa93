"""How columns are encoded: the fewest bytes, then what is decoded fastest; and every value comes back, also through Spark's own reader."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tamis.core.types import (
    BYTE,
    DATE,
    DOUBLE,
    INTEGER,
    LONG,
    SHORT,
    STRING,
    TIMESTAMP,
    DayTimeInterval,
    Decimal,
    Field,
    Schema,
    Struct,
    Time,
)
from tamis.core.types.arrow import to_arrow_schema
from tamis.storage.files import open_part
from tamis.storage.files.parquet.encoding import Encodings
from tamis.storage.object_store import open_store
from tests.files.parts import write_part
from tests.spark.capabilities import has_time_type

ROWS, PAGE = 8192, 2048
RNG = np.random.default_rng(8)
AT = np.arange(ROWS)
HEX = np.char.mod("%016x", RNG.integers(0, 2**62, ROWS))

CASES: dict[str, tuple[Any, str]] = {
    "keys in no order": (pa.array(RNG.integers(0, 10**5, ROWS)), "differences"),
    "keys, nearly as many as rows, in few bits": (pa.array(RNG.integers(0, ROWS // 2, ROWS)), "differences"),
    "a date that changes seldom": (pa.array(AT // 400, pa.int32()).cast(pa.date32()), "dictionary"),
    "times, rising evenly": (pa.array(AT * 250_000).view(pa.timestamp("us")), "differences"),
    "times, rising unevenly": (
        pa.array(np.cumsum(RNG.integers(0, 10**6, ROWS))).view(pa.timestamp("us")),
        "differences",
    ),
    "numbers in runs of eight": (pa.array(np.repeat(RNG.integers(0, 10**6, ROWS // 8), 8)), "differences compressed"),
    "numbers that hardly change": (pa.array(AT // 2), "differences compressed"),
    "numbers with zero bits behind": (pa.array(RNG.integers(0, 2**20, ROWS) << 36), "compressed"),
    "numbers of 64 random bits": (pa.array(RNG.integers(-(2**63), 2**63 - 1, ROWS)), ""),
    "amounts": (
        pa.array(RNG.integers(0, 10**7, ROWS)).cast(pa.decimal128(20, 0)).cast(pa.decimal128(18, 2)),
        "differences",
    ),
    "amounts too long for a number": (pa.array(RNG.integers(0, 10**7, ROWS)).cast(pa.decimal128(38, 2)), "compressed"),
    "measures": (pa.array(RNG.random(ROWS)), ""),
    "few texts": (pa.array(np.array(["red", "green", "blue"])[RNG.integers(0, 3, ROWS)]), "dictionary"),
    "texts of hexadecimal digits": (pa.array(HEX), "compressed"),
    "few numbers in runs": (pa.array(AT // 1000), "dictionary"),
    "NULLs only": (pa.nulls(ROWS, pa.int64()), "dictionary"),
}


def encodings_by_leaf(first: pa.Table) -> dict[str, str]:
    found = Encodings.of(first, PAGE)
    words = {
        "dictionary": found.dictionary,
        "differences": found.differences,
        "compressed": set(found.leaves) - found.uncompressed,
    }
    return {leaf: " ".join(word for word, leaves in words.items() if leaf in leaves) for leaf in found.leaves}


@pytest.mark.parametrize("case", CASES)
def test_the_way_of_a_column(case: str) -> None:
    values, expected = CASES[case]
    assert encodings_by_leaf(pa.table({"c": values})) == {"c": expected}


BLOCK = 65_536


BLOCK_CASES = {
    "unique": (RNG.permutation(BLOCK), False),
    "mostly unique": (RNG.integers(0, BLOCK, BLOCK), False),
    "each about four times": (RNG.integers(0, BLOCK // 4, BLOCK), True),
    "runs of two": (np.repeat(RNG.permutation(BLOCK // 2), 2), True),
    "mostly zeros": (np.where(np.arange(BLOCK) % 4 > 0, 0, np.arange(BLOCK)), True),
} | {
    f"sequence of {period} again and again": (np.arange(BLOCK) % period, True)
    for period in (4_096, 8_192, 9_216, 13_000, 16_384, 20_000, 30_000)
}


@pytest.mark.parametrize("case", BLOCK_CASES)
def test_texts_of_a_whole_block_get_a_dictionary_if_they_repeat(case: str) -> None:
    """A block of this size is first judged by some of its rows."""
    values, has_dictionary = BLOCK_CASES[case]
    texts = pa.table({"c": pa.array(np.char.mod("%08x", values))})
    assert (Encodings.of(texts, PAGE).dictionary == {"c"}) == has_dictionary


def test_a_sample_spares_counting_a_mostly_distinct_block(monkeypatch: pytest.MonkeyPatch) -> None:
    counted: list[int] = []

    def count_distinct(column: Any) -> pa.Scalar:
        counted.append(len(column))
        return pa.scalar(len(column))

    monkeypatch.setattr("tamis.storage.files.parquet.encoding.pc.count_distinct", count_distinct)
    Encodings.of(pa.table({"c": pa.array(np.arange(BLOCK).astype(str))}), PAGE)
    assert counted == [BLOCK // 8]


def test_never_much_larger_than_the_smallest_way(tmp_path: Path) -> None:
    table = pa.table({case: values for case, (values, _) in CASES.items()})
    found = Encodings.of(table, PAGE)
    sizes: list[dict[str, int]] = []
    numbers = [
        n
        for n, c in zip(table.column_names, table.columns, strict=True)
        if pa.types.is_integer(c.type) or pa.types.is_temporal(c.type)
    ]
    for ways in (
        {"compression": "zstd", "use_dictionary": True},
        {"compression": "zstd", "use_dictionary": False},
        found.options(),
    ):
        pq.write_table(
            table,
            tmp_path / "t.parquet",
            max_rows_per_page=PAGE,
            store_decimal_as_integer=True,
            **{"compression_level": 1} | dict(ways),
        )
        group = pq.read_metadata(tmp_path / "t.parquet").row_group(0)
        sizes.append({table.column_names[i]: group.column(i).total_compressed_size for i in range(table.num_columns)})
    for name in numbers:
        smallest = min(s[name] for s in sizes)
        assert sizes[2][name] <= max(1.15 * smallest, min(2.3 * smallest, smallest + 4096 * (ROWS // PAGE))), name
    assert sum(sizes[2].values()) < sum(sizes[1].values()) < sum(sizes[0].values())


def test_few_rows_are_not_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tamis.storage.files.parquet.encoding._tried", None)
    assert encodings_by_leaf(pa.table({"n": AT[:1023], "few": AT[:1023] % 2})) == {
        "n": "compressed",
        "few": "dictionary compressed",
    }


def test_a_column_with_the_name_of_a_field_of_another(tmp_path: Path) -> None:
    """``a.b`` is a whole number and a text: Parquet's writer knows both by one name, so neither gets what only one may have."""
    struct = pa.StructArray.from_arrays([pa.array(HEX), pa.array(AT)], names=["b", "n"])
    table = pa.table({"a": struct, "a.b": AT * 7919 % 10**6})
    pq.write_table(table, tmp_path / "t.parquet", **Encodings.of(table, PAGE).options())
    assert pq.read_table(tmp_path / "t.parquet").equals(table)


# ---- every value comes back

FIELDS = (
    Field("by", BYTE, id=1),
    Field("sh", SHORT, id=2),
    Field("i", INTEGER, id=3),
    Field("lo", LONG, id=4),
    Field("d9", Decimal(9, 2), id=5),
    Field("d18", Decimal(18, 3), id=6),
    Field("da", DATE, id=7),
    Field("ts", TIMESTAMP, id=8),
    Field("ti", Time(6), id=9),
    Field("iv", DayTimeInterval(), id=10),
    Field("s", STRING, id=11),
    Field("f", DOUBLE, id=12),
    Field("st", Struct((Field("x", LONG, id=14),)), id=13),
)
SCHEMA = Schema(FIELDS)


def extremes(least: int, most: int, width: type[np.signedinteger[Any]]) -> pa.Array:
    """Random values over the whole range, the ends next to each other, a page of NULLs, and single ones."""
    values = RNG.integers(least, most, ROWS, endpoint=True)
    values[: 2 * PAGE : 2], values[1:PAGE:2], values[PAGE : PAGE + 9] = least, most, 0
    gaps = RNG.random(ROWS) < 0.1
    gaps[2 * PAGE : 3 * PAGE] = True
    gaps[:2] = False
    return pa.array(values.astype(width), mask=gaps)


def edges() -> pa.RecordBatch:
    kinds = [f.type for f in to_arrow_schema(SCHEMA)]
    long = extremes(-(2**63), 2**63 - 1, np.int64)
    columns = [
        extremes(-128, 127, np.int8),
        extremes(-(2**15), 2**15 - 1, np.int16),
        extremes(-(2**31), 2**31 - 1, np.int32),
        long,
        scaled(extremes(-(10**9) + 1, 10**9 - 1, np.int64), kinds[4]),
        scaled(extremes(-(10**18) + 1, 10**18 - 1, np.int64), kinds[5]),
        extremes(-719162, 2932896, np.int32).cast(kinds[6]),
        extremes(-62135596800 * 10**6, 253402300799 * 10**6, np.int64).view(kinds[7]),
        extremes(0, 86_399_999_999, np.int64).view(kinds[8]),
        extremes(-(2**62), 2**62, np.int64).view(kinds[9]),
        pa.array(HEX),
        pa.array(RNG.random(ROWS)),
        pa.StructArray.from_arrays([long], fields=[kinds[12].field(0)]),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=to_arrow_schema(SCHEMA))


def scaled(unscaled: pa.Array, kind: pa.Decimal128Type) -> pa.Array:
    """The same digits with the point moved."""
    wide = unscaled.cast(pa.decimal128(38, 0))
    return pa.Array.from_buffers(pa.decimal128(38, kind.scale), len(wide), wide.buffers()).cast(kind)


EDGES = edges()


def with_differences(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whole numbers are packed as differences wherever they may be, also where it does not pay."""
    monkeypatch.setattr("tamis.storage.files.parquet.encoding._FEW", -1.0)
    monkeypatch.setattr(
        "tamis.storage.files.parquet.encoding._fastest",
        lambda ways, pages: max((way for _, way in ways), key=lambda way: (way.differences, not way.compressed)),
    )


def test_extremes_come_back_whole_and_by_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    with_differences(monkeypatch)
    store = open_store("memory://encodings")
    ref = write_part(store, SCHEMA, [EDGES, EDGES.slice(0, 5)], page_rows=PAGE)
    part = open_part(store, ref, SCHEMA)
    ids = [f.id for f in FIELDS]
    for rows in (
        None,
        [0, 1, PAGE - 1],
        [PAGE, PAGE + 10],
        [3 * PAGE - 1],
        [3 * PAGE, ROWS - 1],
        [ROWS - 1, ROWS + 4],
        [ROWS + 4],
    ):
        found = pa.Table.from_batches(
            [p.batch for p in part.read(ids, [0, 1], None if rows is None else np.array(rows, dtype=np.int64))]
        )
        expected = pa.Table.from_batches([EDGES, EDGES.slice(0, 5)])
        expected = expected if rows is None else expected.take(pa.array(rows))
        for f in FIELDS:
            assert found[str(f.id)].combine_chunks().equals(expected[f.name].combine_chunks()), f.name


def test_all_of_them_are_differences(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the tests around this one need to say anything."""
    with_differences(monkeypatch)
    ref = write_part(open_store(tmp_path), SCHEMA, [EDGES], page_rows=PAGE)
    group = pq.read_metadata(tmp_path / ref.path).row_group(0)
    found = {
        group.column(i).path_in_schema: (group.column(i).encodings, group.column(i).compression)
        for i in range(group.num_columns)
    }
    assert {name for name, (encodings, _) in found.items() if "DELTA_BINARY_PACKED" in encodings} == {
        f.name for f in FIELDS[:10]
    }
    assert {found[f.name][1] for f in FIELDS[:10]} == {"UNCOMPRESSED"}


DDL = "by tinyint, sh smallint, i int, lo bigint, d9 decimal(9,2), d18 decimal(18,3), da date, ts timestamp, ti time(6), iv interval day to second"
WIDER = "by int, sh bigint, i bigint, lo bigint, d9 decimal(18,2), d18 decimal(38,3), da timestamp_ntz, ts timestamp, ti time(6), iv interval day to second"


@pytest.mark.push_cases(1)
@pytest.mark.spark
@pytest.mark.parametrize(
    ("ddl", "vectorized"), [(DDL, "true"), (DDL, "false"), (WIDER, "true")]
)  # by rows Spark widens less
def test_spark_reads_differences(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ddl: str, vectorized: str
) -> None:
    """Against the same rows without them, whole and through a filter that skips pages."""
    if not has_time_type(spark):
        ddl = ddl.replace("ti time(6), ", "")
    blocks = [EDGES, EDGES.slice(0, 5)]
    pq.write_table(
        pa.Table.from_batches(blocks).drop(["s", "f", "st"]), tmp_path / "plain.parquet", store_decimal_as_integer=True
    )
    with_differences(monkeypatch)
    packed = write_part(open_store(tmp_path), SCHEMA, blocks, page_rows=PAGE)
    session = spark.newSession()
    session.conf.set("spark.sql.parquet.enableVectorizedReader", vectorized)
    session.conf.set("spark.sql.timeType.enabled", "true")
    frames = [session.read.schema(ddl).parquet(str(tmp_path / path)) for path in (packed.path, "plain.parquet")]
    for condition in ("true", "lo > 9000000000000000000", "i = 2147483647 AND lo > 0", "by IS NULL"):
        texts = (
            frame.where(condition).selectExpr(*(f"CAST({name} AS STRING)" for name in frame.columns))
            for frame in frames
        )
        found, expected = (sorted(map(str, text.collect())) for text in texts)
        assert found == expected, condition
        assert found
