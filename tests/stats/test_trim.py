"""Trimming: at every budget what is left admits the same documents, fits, and says what is gone; what is to be kept goes last."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import tamis
from tamis.core import expr
from tamis.core.pruning import decide
from tamis.core.stats import Collector, TableEvidence, statistics_budget
from tamis.core.stats.json_paths.packed_paths import PATHS, pack_paths, unpack_paths
from tamis.core.stats.json_paths.path_evidence import PathTable
from tamis.core.stats.json_paths.path_rows import table_of
from tamis.core.stats.kept_statistics import recent_places, resolve_names
from tamis.core.stats.statistics_budget import Priorities, part_budget, trim_statistics
from tamis.core.types import LONG, STRING, Field, Schema
from tamis.core.types.arrow import to_arrow_schema

SCHEMA = Schema((Field("n", LONG, True, 1), Field("s", STRING, True, 2), Field("long", STRING, True, 3)))
ROWS = [{"n": i, "s": json.dumps({"id": i, "user": {"name": f"name {i}", "deep": {"er": i / 8}}, "mixed": i if i % 2 else str(i)}), "long": "é" * 30 + f"{i:040d}"} for i in range(50)]  # fmt: skip
FILTERS = [
    "get_json_object(s, '$.id') = '7'", "cast(get_json_object(s, '$.id') AS INT) = 7", "from_json(s, 'id INT').id > 60", "get_json_object(s, '$.user.name') > 'o'", "get_json_object(s, '$.nothing') IS NOT NULL",
    "from_json(s, 'user STRUCT<deep: STRUCT<er: DOUBLE>>').user.deep.er > 100", "get_json_object(s, '$.user.deep.none') = 'x'", "n = 7", "n > 60", f"long < '{'é' * 30}{7:040d}'", "long > 'ê'", "long < 'é'",
]  # fmt: skip
NO_PRIORITIES = Priorities()
BUDGETS = [100_000, 600, 400, 300, 200, 150, 100, 50, 16, 0]


def collected() -> Collector:
    collector = Collector(SCHEMA)
    collector.update(pa.RecordBatch.from_pylist(ROWS, schema=to_arrow_schema(SCHEMA)))
    return collector


def decided(text: str, room: int, priorities: Priorities = NO_PRIORITIES) -> tuple[bool, bool, str | None]:
    collector = collected()
    left = trim_statistics(collector.figures(), collector.documents(), room, priorities)
    rows = table_of(left.documents)
    row = {
        "part_id": pa.array(["p"]),
        "segment": pa.array([0], pa.int32()),
        "part": pa.array([0], pa.int32()),
        "rows": pa.array([len(ROWS)], pa.int64()),
    }
    row |= left.statistics
    table, tables = unpack_paths(
        pa.table(row | ({} if rows is None else {"packed_paths": pa.array([pack_paths(rows)])}))
    )
    found = tables.get(PATHS)
    paths = (
        None
        if found is None
        else PathTable.of_parts(found.append_column("segment", pa.array([0] * len(found), pa.int32())), table)
    )
    decision = decide(
        expr.conjuncts_of(expr.parse_predicate(text, SCHEMA)), TableEvidence(table, SCHEMA, paths), strict=True
    )
    return bool(decision.none[0]), bool(decision.all[0]), decision.why[0]


@pytest.mark.parametrize("room", BUDGETS)
def test_nothing_moves_inward(room: int) -> None:
    rows = pa.RecordBatch.from_pylist(ROWS, schema=to_arrow_schema(SCHEMA))
    for text in FILTERS:
        keep, failed, _ = expr.filter_mask(
            expr.conjuncts_of(expr.parse_predicate(text, SCHEMA)),
            {f.id: rows.column(i) for i, f in enumerate(SCHEMA.fields)},
            len(rows),
        )
        none, all_, _ = decided(text, room)
        assert not (none and (keep | failed).any()), text
        assert not (all_ and not keep.all()), text


def test_every_budget_is_kept() -> None:
    """Counts are dropped too, so that a budget of 0 leaves nothing but the rows of kept paths."""
    for room in BUDGETS:
        left = trim_statistics(collected().figures(), collected().documents(), room)
        assert left.size <= room
        assert left.excess == 0
        assert left.size == 0 or left.statistics or any(left.documents.values())


def test_the_size_is_what_is_left() -> None:
    """The size that is kept incrementally is that of the statistics, counted anew."""
    for room in BUDGETS:
        left = trim_statistics(collected().figures(), collected().documents(), room)
        figures = [
            (name, array.type, array[0] if array.null_count == 0 else None) for name, array in left.statistics.items()
        ]
        anew = trim_statistics(iter(figures), left.documents, 10**9)
        assert anew.size == left.size
        assert anew.dropped == 0


def test_the_work_is_linear_in_the_number_of_statistics(monkeypatch: pytest.MonkeyPatch) -> None:
    measured: list[object] = []

    def width(value: object) -> int:
        measured.append(value)
        return 8

    monkeypatch.setattr(statistics_budget, "_width", width)
    for count in (100, 1000):
        measured.clear()
        figures = [
            (f"{i}|{kind}", pa.int64(), i) for i in range(count) for kind in ("long|lo", "long|hi", "exact", "nulls")
        ]
        assert trim_statistics(figures, {}, 0).size == 0
        assert len(measured) <= 4 * count


def test_without_need_nothing_goes() -> None:
    assert trim_statistics(collected().figures(), collected().documents(), 100_000).dropped == 0
    assert decided("from_json(s, 'id INT').id > 60", 100_000)[0]


def test_the_deepest_goes_first_and_it_is_said() -> None:
    none, _, why = decided("from_json(s, 'user STRUCT<deep: STRUCT<er: DOUBLE>>').user.deep.er > 100", 350)
    assert (none, why) == (False, "no statistics for s.user.deep.er: trimmed")
    assert decided("from_json(s, 'id INT').id > 60", 350)[0]


def test_what_is_named_is_never_dropped() -> None:
    keep = Priorities(always=frozenset(resolve_names(["s:user.deep.er", "long"], SCHEMA)))
    assert keep.always == {(2, "$.user.deep.er"), (3, "$")}
    text = "from_json(s, 'user STRUCT<deep: STRUCT<er: DOUBLE>>').user.deep.er > 100"
    assert decided(text, 0, keep)[0]
    assert decided("long > 'ê'", 0, keep)[0]
    assert not decided(text, 300)[0]
    assert not decided("n > 60", 0, keep)[0]
    left = trim_statistics(collected().figures(), collected().documents(), 10, keep)
    assert left.excess == left.size - 10 > 0


def test_what_recent_filters_used_is_dropped_last() -> None:
    recent_ones = Priorities(last=frozenset(resolve_names(["s:user.deep.er"], SCHEMA)))
    text = "from_json(s, 'user STRUCT<deep: STRUCT<er: DOUBLE>>').user.deep.er > 100"
    assert decided(text, 300, recent_ones)[0]
    assert not decided(text, 300)[0]
    assert not decided(text, 0, recent_ones)[0]


def test_kept_statistics_beyond_the_budget_are_reported(tmp_path: Path) -> None:
    properties = {"tamis.stats.budget_bytes": "16", "tamis.stats.keep": "long"}
    data = pa.table({"n": [r["n"] for r in ROWS], "long": [r["long"] for r in ROWS]})
    table = tamis.create(tmp_path / "t", data.schema, properties=properties)
    table.append(data)
    metrics = dict(table.history()["metrics"][0].as_py())
    assert metrics["statistics_excess_bytes"] > 0
    detail = table.detail().to_pylist()[0]
    assert detail["statistics_excess_bytes"] == metrics["statistics_excess_bytes"]
    assert detail["statistics_dropped"] == metrics["statistics_dropped"] > 0
    assert table.explain("long > 'ê'").parts["kept"] == 0
    assert table.explain("n > 60").parts["kept"] == 1


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("s", "s.a = 100"),
        ("s", "s.deep.b = 'x'"),
        ("s", "get_json_object(s.doc, '$.k') = '100'"),
        ("s.deep", "s.deep.b = 'x'"),
        ("l", "array_contains(l, 100)"),
        ("l", "exists(l, x -> x > 100)"),
        ("m", "m['x'] = 1"),
        ("m.value", "m['k'] = 100"),
    ],
)
def test_a_kept_container_keeps_all_below_it(name: str, text: str, tmp_path: Path) -> None:
    deep = pa.struct([("b", pa.string())])
    fields = [
        ("s", pa.struct([("a", pa.int64()), ("deep", deep), ("doc", pa.string())])),
        ("l", pa.list_(pa.int64())),
        ("m", pa.map_(pa.string(), pa.int64())),
    ]
    rows = [
        {"s": {"a": i, "deep": {"b": f"b{i}"}, "doc": json.dumps({"k": i})}, "l": [i, i + 1], "m": [("k", i)]}
        for i in range(50)
    ]
    for keep in ("", name):
        properties = {"tamis.stats.budget_bytes": "0"} | ({"tamis.stats.keep": keep} if keep else {})
        table = tamis.create(tmp_path / f"t{keep}", pa.schema(fields), properties=properties)
        table.append(pa.Table.from_pylist(rows, pa.schema(fields)))
        assert table.explain(text).parts["kept"] == (0 if keep else 1)
        assert (table.detail().to_pylist()[0]["statistics_excess_bytes"] > 0) is bool(keep)


def test_clustering_tuples_obey_the_budget(tmp_path: Path) -> None:
    names = [f"c{i}" for i in range(40)]
    data = pa.table({name: [f"{'x' * 40} {row}" for row in range(10)] for name in names})
    for room, keep in ((300, ""), (300, "c0"), (2000, "")):
        properties = {"tamis.stats.budget_bytes": str(room), "tamis.stats.keep": keep}
        table = tamis.create(
            tmp_path / f"{room}{keep}",
            data.schema,
            cluster_by=names,
            properties={k: v for k, v in properties.items() if v},
        )
        table.append(data)
        row = table.snapshot.parts(None, set(range(1, 41)))
        assert row["ordered"].to_pylist() == [True]
        figures = [(n, row[n].type, row[n][0]) for n in row.column_names if n[0].isdigit()]
        size, excess = (
            trim_statistics(figures, {}, 10**9).size,
            table.detail().to_pylist()[0]["statistics_excess_bytes"],
        )
        assert size <= room + excess
        assert (excess > 0) is (keep == "c0")
        assert any(name.endswith("|last") for name in row.column_names) is (room == 2000 or keep == "c0")
        assert table.scan("c0 >= 'x' AND c1 >= 'x'").count() == 10


def test_bounds_of_the_first_clustering_column_go_last(tmp_path: Path) -> None:
    """A filter on it is what the table is sorted for; counts of other columns help few filters."""
    names = [f"c{at}" for at in range(50)]
    schema = pa.schema([(name, pa.int64()) for name in names])
    for room in (60, 100, 400, 800, 1_200, 2_400):
        table = tamis.create(
            tmp_path / str(room),
            schema,
            cluster_by=["c7", "c3"],
            properties={"tamis.stats.budget_bytes": str(room)},
        )
        for load in range(3):
            values = np.arange(load * 1_000, (load + 1) * 1_000)
            table.append(pa.table(dict.fromkeys(names, values), schema=schema))
        assert len(table.scan("c7 < 100").plan().parts) == 1, room
        if room == 60:
            assert len(table.scan("c3 < 100").plan().parts) == 3, "there is no room for the second one"


def test_more_clustering_columns_than_tuples_can_number(tmp_path: Path) -> None:
    names = [f"c{i}" for i in range(140)]
    data = pa.table({name: [1, 2] for name in names})
    table = tamis.create(tmp_path / "t", data.schema, cluster_by=names)
    table.append(data)
    assert table.scan("c0 = 2 AND c139 = 2").count() == 1


def test_a_trimmed_column_is_named_so() -> None:
    """NULL counts stay: without bounds, and without NULLs, the cause is still the budget."""
    none, _, why = decided("long > 'ê'", 20)
    assert (none, why) == (False, "no statistics for long: trimmed")
    assert decided("long > 'ê'", 100_000)[0]


def test_a_column_whose_counts_were_dropped_too_is_named_so(tmp_path: Path) -> None:
    names, none = [f"c{i}" for i in range(30)], {"tamis.stats.budget_bytes": "0"}
    table = tamis.create(tmp_path / "t", pa.schema([(name, pa.int64()) for name in names]), properties=none)
    table.append(pa.table({name: [1, 2] for name in names}))
    assert "no statistics for c29: trimmed" in str(table.scan("c29 > 2").explain())
    other = tamis.create(tmp_path / "o", "c BIGINT", properties={"tamis.stats.collect": "off"})
    other.append(pa.table({"c": [1, 2]}))
    shown = str(other.scan("c > 2").explain())
    assert "no statistics for c" in shown
    assert "trimmed" not in shown, "they were never collected"


def test_the_budget_grows_with_the_rows(tmp_path: Path) -> None:
    """Every 65,536 rows, begun or whole, have the budget once: what a part of one row fewer must drop, one of a row more keeps."""
    assert [part_budget(None, rows) for rows in (0, 1, 65_536, 65_537, 131_072, 131_073)] == [
        65_536 * times for times in (1, 1, 1, 2, 2, 3)
    ]
    assert [part_budget(100, rows) for rows in (65_536, 65_537)] == [100, 200]
    kept = {}
    for rows in (65_536, 65_537):
        data = pa.table({f"n{i}": np.arange(rows) for i in range(6)})
        table = tamis.create(tmp_path / str(rows), data.schema, properties={"tamis.stats.budget_bytes": "120"})
        table.append(data)
        kept[rows] = sum(table.explain(f"n{i} < 0").parts["kept"] == 0 for i in range(6))
    assert kept[65_536] < kept[65_537] == 6


def test_end_to_end(tmp_path: Path) -> None:
    """A small budget by property, what it did in the history, and what a filter of late asked for kept."""
    data = pa.table({"n": [r["n"] for r in ROWS], "s": [r["s"] for r in ROWS]})
    table = tamis.create(tmp_path / "t", data.schema, properties={"tamis.stats.budget_bytes": "220"})
    table.append(data)
    assert dict(table.history()["metrics"][0].as_py())["statistics_dropped"] > 0
    text = "cast(get_json_object(s, '$.user.deep.er') AS DOUBLE) > 100"
    assert table.explain(text).parts["kept"] == 1
    assert (2, "$.user.deep.er") in recent_places(table.snapshot.store.url)
    table.append(data)
    assert table.explain(text).parts["kept"] == 1
    assert table.scan(text).count() == 0


def test_collecting_can_be_switched_off(tmp_path: Path) -> None:
    data = pa.table({"n": [r["n"] for r in ROWS], "s": [r["s"] for r in ROWS]})
    table = tamis.create(tmp_path / "t", data.schema, properties={"tamis.stats.collect": "off"}, cluster_by=("n", "s"))
    table.append(data)
    snapshot = table.snapshot
    assert snapshot.table("paths", (), None, {1, 2}).num_rows == 0
    assert not [name for name in snapshot.parts(None, {1, 2}).column_names if name[0].isdigit()]
    assert table.scan("get_json_object(s, '$.id') = '7'").count() == 1


def test_dates_that_python_has_not(tmp_path: Path) -> None:
    far = pa.table(
        {
            "d": pa.array([2_932_897, -800_000], pa.date32()),
            "t": pa.array([2**60, -(2**60)], pa.timestamp("us", tz="UTC")),
        }
    )
    made = tamis.create(tmp_path / "t", far.schema, properties={"tamis.stats.budget_bytes": "40"})
    made.append(far)
    assert made.scan("d > DATE'9999-12-31' AND t > TIMESTAMP'2026-01-01'").count() == 1
    assert made.scan("d > DATE'9999-12-31' AND t < TIMESTAMP'2026-01-01'").count() == 0
