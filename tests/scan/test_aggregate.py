"""COUNT, MIN, MAX, GROUP BY and DISTINCT, embedded: what metadata answers and what is read, against counting every row in Python."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from random import Random  # noqa: TID251  # seeded: it asks the machine nothing
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import settings

import tamis
from tamis.core.types import STRING, Field
from tamis.engine.scan import partial_aggregates
from tamis.engine.scan.partial_aggregates import Aggregation, Measure, aggregate_stream, fold_partials
from tamis.errors import InvalidInput, NotFound

SCHEMA = pa.schema(
    [("a", pa.int64()), ("b", pa.float64()), ("s", pa.string()), ("d", pa.decimal128(6, 2)), ("id", pa.int64())]
)
TABLES, QUERIES = max(settings().max_examples // 25, 3), 12
FILTERS = {
    None: lambda r: True,
    "a >= 5": lambda r: r["a"] is not None and r["a"] >= 5,
    "id > 3": lambda r: r["id"] > 3,
}
OFF = {"tamis.scan.aggregates": "off"}
LONG = "x" * 70


def a_table(path: Any, rng: Any) -> tamis.Table:
    """Parts of few values, some of one; with a column that came later and one that was widened."""
    table, count = tamis.create(path, SCHEMA), 0
    for load in range(rng.randint(2, 6)):
        base, rows = rng.choice([0, 5, 10]), rng.randint(1, 6)
        choices = {
            "a": rng.choice([[base], [base, base + 1], [None], [base, None]]),
            "b": rng.choice([[math.nan], [0.0], [-0.0, 0.0], [base + 0.5], [math.nan, 1.5, None], [None], [2.5]]),
            "s": rng.choice([["b"], [LONG], [LONG + "y", "c"], [None, "é"], ["a", "b"]]),
            "d": [Decimal("1.50"), Decimal("-2.25")],
        }
        made = [{**{c: rng.choice(values) for c, values in choices.items()}, "id": count + i} for i in range(rows)]
        table.append(pa.Table.from_pylist(made, SCHEMA))
        count += rows
        if load == 1 and rng.random() < 0.5:
            table.alter().add_column("late", pa.int32(), default=rng.choice([7, None])).commit()
            table.refresh()
    if rng.random() < 0.6:
        table.delete(f"id % {rng.randint(2, 4)} = 0")
    return table


def plain(value: Any) -> Any:
    return (
        "NaN"
        if isinstance(value, float) and math.isnan(value)
        else 0.0
        if isinstance(value, float) and value == 0
        else value
    )


def measured(rows: list[dict[str, Any]], measure: str) -> Any:
    """Compute one measure over rows; NaN is above every number."""
    function, _, column = measure.removesuffix(")").partition("(")
    if column == "*":
        return len(rows)
    values = [r[column] for r in rows if r[column] is not None]
    if function == "count":
        return len(values)
    nan = [v for v in values if isinstance(v, float) and math.isnan(v)]
    numbers = [v for v in values if not (isinstance(v, float) and math.isnan(v))]
    if function == "min":
        return plain(min(numbers) if numbers else nan[0] if nan else None)
    return plain(nan[0] if nan else max(numbers, default=None))


@pytest.mark.push_cases(1)
@pytest.mark.parametrize("seed", range(TABLES))
def test_aggregates_are_those_of_the_rows(tmp_path: Any, seed: int) -> None:
    rng = Random(seed)
    table = a_table(tmp_path / "t", rng)
    every = table.scan().to_arrow().to_pylist()
    columns = list(every[0]) if every else ["a"]
    answered = 0
    for _ in range(QUERIES):
        condition = rng.choice(list(FILTERS))
        measures = [
            rng.choice(["count(*)", *(f"{f}({c})" for f in ("count", "min", "max") for c in columns)]) for _ in range(2)
        ]
        measures = list(dict.fromkeys(measures))
        groups = rng.sample([c for c in columns if c != "id"], rng.choice([0, 0, 1, 1, 2]))
        kept = [r for r in every if FILTERS[condition](r)]
        keys = {tuple(plain(r[g]) for g in groups) for r in kept} if groups else {()}
        expected = {
            k: [measured([r for r in kept if tuple(plain(r[g]) for g in groups) == k], m) for m in measures]
            for k in keys
        }
        for options in ({}, OFF, {"tamis.audit.percent": 100}):
            scan = table.scan(condition, options=options)
            rows = scan.aggregate(measures, groups).to_pylist()
            found = {tuple(plain(r[g]) for g in groups): [plain(r[m]) for m in measures] for r in rows}
            assert found == expected, (measures, groups, condition, options)
            assert len(found) == len(rows)
            parts = scan.report.parts
            assert (
                parts.total
                == sum(n for name, n in parts.items() if name.startswith("skipped")) + parts.answered + parts.kept
            )
            answered += 0 if options else parts.answered
            assert not (options == OFF and parts.answered)
        assert table.scan(condition).count() == len(kept)
    assert answered or len(every) < 8


@pytest.fixture(scope="module")
def ordered(tmp_path_factory: pytest.TempPathFactory) -> tamis.Table:
    """20 parts of 100 rows; ``ts`` rises, ``day`` is one value in each part, ``x`` has NULLs."""
    table = tamis.create(tmp_path_factory.mktemp("ordered"))
    for day in range(20):
        ts = list(range(day * 100, day * 100 + 100))
        table.append(pa.table({"ts": ts, "day": [f"d{day % 3}"] * 100, "x": [None, *range(99)]}))
    return table


def read_bytes(scan: Any) -> int:
    return int(scan.report.bytes.leader + scan.report.bytes.follower)


def test_a_filter_on_the_clustering_column_reads_its_edges(ordered: tamis.Table) -> None:
    scan = ordered.scan("ts BETWEEN 150 AND 1849")
    assert scan.aggregate(["count(*)", "count(x)", "min(ts)", "max(ts)"]).to_pylist() == [
        {"count(*)": 1_700, "count(x)": 1_683, "min(ts)": 150, "max(ts)": 1_849}
    ]
    assert (scan.report.parts.answered, scan.report.parts.kept) == (16, 2)
    assert ordered.scan("ts BETWEEN 150 AND 1849", options=OFF).aggregate("max(ts)").to_pydict() == {"max(ts)": [1_849]}


def test_groups_and_distinct_values_of_constant_parts_read_nothing(ordered: tamis.Table) -> None:
    scan = ordered.scan()
    counts = scan.aggregate(["count(*)", "max(ts)"], ["day"]).sort_by("day").to_pydict()
    assert counts == {"day": ["d0", "d1", "d2"], "count(*)": [700, 700, 600], "max(ts)": [1_899, 1_999, 1_799]}
    assert (scan.report.parts.answered, read_bytes(scan)) == (20, 0)
    assert sorted(scan.aggregate((), "day")["day"].to_pylist()) == ["d0", "d1", "d2"]
    assert read_bytes(scan) == 0


def test_bounds_of_a_part_with_deleted_rows_are_no_answer(tmp_path: Any) -> None:
    table = tamis.create(tmp_path / "t")
    table.append(pa.table({"a": [1, 2, 3], "c": [7, 7, 7], "n": pa.array([None, 1, 2], pa.int64())}))
    table.delete("a = 3")
    scan = table.scan()
    assert scan.aggregate(["min(a)", "max(a)"]).to_pydict() == {"min(a)": [1], "max(a)": [2]}
    assert scan.report.parts.kept == 1
    assert scan.aggregate("count(n)").to_pydict() == {"count(n)": [1]}
    assert scan.report.parts.kept == 1
    assert scan.aggregate(["count(*)", "max(c)", "count(a)"]).to_pydict() == {
        "count(*)": [2],
        "max(c)": [7],
        "count(a)": [2],
    }
    assert scan.report.parts.answered == 1  # one value throughout, and no NULL: whichever row went


def test_cut_bounds_are_no_answer(tmp_path: Any) -> None:
    table = tamis.create(tmp_path / "t")
    table.append(pa.table({"s": [LONG + "b", LONG + "a"]}))
    scan = table.scan()
    assert scan.aggregate(["min(s)", "max(s)"]).to_pydict() == {"min(s)": [LONG + "a"], "max(s)": [LONG + "b"]}
    assert (scan.report.parts.answered, scan.report.parts.kept) == (0, 1)
    assert scan.aggregate("min(s)").to_pydict() == {"min(s)": [LONG + "a"]}
    assert scan.aggregate("max(s)").to_pydict() == {"max(s)": [LONG + "b"]}
    one = tamis.create(tmp_path / "one")
    one.append(pa.table({"s": ["a", LONG]}))
    assert one.scan().aggregate("min(s)").to_pydict() == {"min(s)": ["a"]}
    assert one.scan().aggregate("count(*)", "s").num_rows == 2


def test_trimmed_statistics_are_no_answer(tmp_path: Any) -> None:
    table = tamis.create(tmp_path / "t", properties={"tamis.stats.budget_bytes": 8})
    table.append(pa.table({"s": ["a" * 40 + "z", "a" * 40 + "b"], "i": [5, 6]}))
    assert table.scan().aggregate(["min(s)", "max(s)", "max(i)"]).to_pydict() == {
        "min(s)": ["a" * 40 + "b"],
        "max(s)": ["a" * 40 + "z"],
        "max(i)": [6],
    }


def test_zeros_and_nan(tmp_path: Any) -> None:
    table = tamis.create(tmp_path / "t", pa.schema([("x", pa.float64())]))
    table.append(pa.table({"x": [-0.0, 1.0]}))
    assert math.copysign(1, table.scan().aggregate("min(x)")["min(x)"][0].as_py()) == -1
    table.append(pa.table({"x": [math.nan, 2.0]}))
    found = table.scan("x > 0").aggregate(["min(x)", "max(x)"]).to_pylist()[0]
    assert found["min(x)"] == 1.0
    assert math.isnan(found["max(x)"])
    groups = table.scan().aggregate("count(*)", "x").to_pydict()
    assert sorted(groups["count(*)"]) == [1, 1, 1, 1]


VALUES: dict[str, tuple[pa.DataType, list[Any]]] = {
    "boolean": (pa.bool_(), [True, False]),
    "byte": (pa.int8(), [1, 2]),
    "long": (pa.int64(), [2, 1]),
    "real": (pa.float32(), [1.5, 2.5]),
    "double": (pa.float64(), [2.5, 1.5]),
    "decimal": (pa.decimal128(8, 2), [Decimal("1.50"), Decimal("2.25")]),
    "date": (pa.date32(), [date(2020, 1, 1), date(2021, 1, 1)]),
    "instant": (pa.timestamp("us", "UTC"), [datetime(2020, 1, 1, tzinfo=UTC), datetime(2021, 1, 1, tzinfo=UTC)]),
    "local": (pa.timestamp("us"), [datetime(2021, 1, 1), datetime(2020, 1, 1)]),
    "text": (pa.string(), ["a", "b"]),
    "bytes": (pa.binary(), [b"b", b"a"]),
    "interval": (pa.duration("us"), [timedelta(1), timedelta(2)]),
    "time": (pa.time64("us"), [time(1), time(2)]),
}


def test_every_type_that_has_an_order(tmp_path: Any) -> None:
    """A part of one value, one with a NULL, one of NULLs; from metadata and read, aggregated and in order."""
    table = tamis.create(tmp_path / "t", pa.schema({name: kind for name, (kind, _) in VALUES.items()}))
    for chosen in ([0, 0], [1, None], [None]):
        table.append(
            pa.table({n: pa.array([None if at is None else v[at] for at in chosen], k) for n, (k, v) in VALUES.items()})
        )
    for name, (kind, (first, second)) in VALUES.items():
        for options in ({}, {**OFF, "tamis.scan.topk": "off"}):
            scan = table.scan(options=options)
            measures = [f"min({name})", f"max({name})", f"count({name})"]
            found = scan.aggregate(measures)
            assert list(found.to_pylist()[0].values()) == [min(first, second), max(first, second), 3]
            assert found.schema.field(0).type == kind
            groups = scan.aggregate("count(*)", name).to_pylist()
            assert {row[name]: row["count(*)"] for row in groups} == {first: 2, second: 1, None: 2}
            ordered = table.scan(
                selected_fields=[name], order_by=f"{name} DESC, {name}", limit=2, options=options
            ).to_arrow()
            assert ordered[name].to_pylist() == sorted([first, first, second], reverse=True)[:2]


def test_groups_of_long_texts_are_handed_on_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(partial_aggregates, "HELD_BYTES", 500)
    asked = Aggregation((Measure("count", None),), (Field("s", STRING, id=1),))
    texts = [f"{i % 8}" * 100 for i in range(80)]
    batches = [pa.record_batch({"s": texts[at : at + 10]}) for at in range(0, 80, 10)]
    found = list(aggregate_stream(asked, iter(batches)))
    assert len(found) > 2
    assert all(table.nbytes < 2_000 for table in found)
    whole = fold_partials(asked, found).sort_by("g0").to_pydict()
    assert whole == {"g0": sorted(set(texts)), "m0": [10] * 8}


def test_no_rows_at_all(tmp_path: Any) -> None:
    table = tamis.create(tmp_path / "t", pa.schema([("a", pa.int64())]))
    assert table.scan().aggregate(["count(*)", "max(a)"]).to_pydict() == {"count(*)": [0], "max(a)": [None]}
    assert table.scan().aggregate("count(*)", "a").num_rows == 0


@pytest.mark.parametrize(
    ("measures", "groups", "error"),
    [("sum(a)", (), InvalidInput), ((), (), InvalidInput), ("min(n)", (), InvalidInput), ("min(zz)", (), NotFound), ("count(*)", "n", InvalidInput), (7, (), InvalidInput)],
)  # fmt: skip
def test_what_cannot_be_aggregated_is_refused(tmp_path: Any, measures: Any, groups: Any, error: type) -> None:
    table = tamis.create(tmp_path / "t", pa.schema([("a", pa.int64()), ("n", pa.list_(pa.int64()))]))
    with pytest.raises(error):
        table.scan().aggregate(measures, groups)
    with pytest.raises(InvalidInput, match="limit"):
        table.scan(limit=1).aggregate()
    assert table.scan().aggregate("count(n)").to_pydict() == {"count(n)": [0]}


@pytest.mark.push_cases(2)
@pytest.mark.parametrize("parts", [1, 3])
@pytest.mark.parametrize("indexed", [False, True])
def test_counts_do_not_depend_on_when_the_consumer_stops(parts: int, indexed: bool) -> None:
    """With a limit the reader is stopped at its first batch: the rows that came are counted, not what the reader has reported by then."""
    table = tamis.create(f"memory://stops-early-{parts}-{indexed}", pa.schema([("k", pa.int64()), ("v", pa.int64())]))
    if indexed:
        table.create_index("by_v", ["v"])
    for _ in range(parts):
        table.append(pa.table({"k": range(20_000), "v": [i % 100 for i in range(20_000)]}))
    scan = table.scan("v = 5")
    assert scan.exists()
    assert not table.scan("v = 5", limit=0).exists()
    assert table.scan("v = 5", limit=3).exists()
    assert not table.scan("v = 5 AND k = 6").exists()
    for limit, found in ((0, 0), (1, 1), (199, 199), (10_000, 200 * parts)):
        assert table.scan("v = 5", limit=limit).count() == found
    assert scan.count() == 200 * parts
    assert table.scan(limit=7).count() == 7
    assert table.scan("v >= 0", limit=7).count() == 7
