"""Analysis learns what footers do not say: filters then skip more parts, and no row changes."""

from __future__ import annotations

import datetime as dt
import json
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tamis
from tamis.core.stats.statistics_budget import part_budget
from tamis.engine.operations.upkeep import analyze as analysis
from tamis.engine.operations.upkeep import part_analysis
from tamis.engine.operations.upkeep.analyze import unanalyzed_parts
from tamis.engine.part_reader import read_part
from tamis.engine.secondary_index.index_segments import renamed_covers
from tamis.errors import CorruptData
from tests.bridges.exported_tables import values_of
from tests.bridges.foreign_files import write_file
from tests.bridges.foreign_readers import delta_by_deltalake, delta_by_polars, iceberg_by_pyiceberg
from tests.bridges.foreign_tables import contents, sorted_rows
from tests.bridges.source_histories import DELTA

FILES, ROWS = 4, 50


def rows(first: int, count: int = ROWS) -> pa.Table:
    ids = list(range(first, first + count))
    return pa.table(
        {
            "id": ids,
            "body": [json.dumps({"user": {"id": n}, "tag": f"t{n:03}"}) for n in ids],
            "kind": [f"kind {n // ROWS} {n % 3}" for n in ids],
            "real": pa.array([math.nan if n == 0 else n / 2 for n in ids], pa.float32()),
        }
    )


@pytest.fixture
def source(tmp_path: Path) -> Path:
    for n in range(FILES):
        write_file(tmp_path / "source" / f"part-{n}.parquet", rows(n * ROWS))
    return tmp_path / "source"


@pytest.fixture
def table(source: Path, tmp_path: Path) -> tamis.Table:
    made = tamis.adopt(source, tmp_path / "t")
    assert isinstance(made, tamis.Table)
    return made


def read_of(table: tamis.Table, row_filter: str) -> tuple[list[str], int, int]:
    """The rows, how many parts were kept, and the bytes that were read."""
    scan = tamis.open(table.path).scan(row_filter)
    found = scan.to_arrow()
    assert scan.report is not None
    return sorted_rows(found), scan.report.parts.kept, scan.report.bytes.leader + scan.report.bytes.follower


FILTERS = {
    "get_json_object(body, '$.user.id') = '120'": 1,
    "get_json_object(body, '$.tag') = 't170'": 1,
    "get_json_object(body, '$.absent') = 'x'": 0,
    "kind = 'kind 2 10'": 0,
    "real > 90": 2,
}


def test_filters_skip_more_and_rows_stay(table: tamis.Table, source: Path) -> None:
    before, every = contents(source), sorted_rows(table.scan().to_arrow())
    found = {text: read_of(table, text) for text in FILTERS}
    done = table.analyze()
    assert (done.parts, done.commits, done.later) == (FILES, 1, 0)
    assert done.bytes_read > 0
    assert contents(source) == before
    assert sorted_rows(table.scan().to_arrow()) == every
    for text, kept in FILTERS.items():
        matching_rows, parts, read = read_of(table, text)
        assert (matching_rows, parts) == (found[text][0], kept), text
        assert read < found[text][2], text
        assert parts < found[text][1], text
    assert tamis.open(table.path).verify().ok
    assert table.analyze().as_dict() == {**done.as_dict(), **dict.fromkeys(("parts", "commits", "bytes_read"), 0)} | {
        "seconds": pytest.approx(0, abs=60)
    }
    assert [row["operation"] for row in table.history().to_pylist()] == ["analyze", "adopt"]


VALUES: dict[str, tuple[pa.DataType, st.SearchStrategy[Any]]] = {
    "i": (pa.int32(), st.integers(-3, 3)),
    "f": (pa.float64(), st.sampled_from([-1.5, -0.0, 0.0, 2.5, math.nan, math.inf])),
    "s": (pa.string(), st.sampled_from(["", "a", "ab", "\U0010ffff", "z" * 300])),
    "d": (pa.decimal128(9, 2), st.decimals(-5, 5, places=2, allow_nan=False)),
    "t": (pa.timestamp("us", tz="UTC"), st.datetimes(dt.datetime(1969, 1, 1), dt.datetime(1971, 1, 1))),
    "l": (pa.list_(pa.int32()), st.lists(st.none() | st.integers(0, 2), max_size=3)),
    "x": (
        pa.struct([("y", pa.int64()), ("z", pa.string())]),
        st.fixed_dictionaries({"y": st.none() | st.integers(0, 2), "z": st.sampled_from(["p", "q", None])}),
    ),
    "j": (
        pa.string(),
        st.sampled_from(["{", "null", '{"a": 1}', '{"a": "1"}', '{"a": {"b": [1, 2]}}', '{"a": null}', '{"a": 1e3}']),
    ),
}
ROWS_OF = st.fixed_dictionaries({name: st.none() | values for name, (_, values) in VALUES.items()})
ASKED = (
    *("i > 1", "i IS NULL", "i IN (0, 2)", "NOT (i < 2)", "f > 2", "f = 0", "f <> double('NaN')", "f IS NOT NULL"),
    *("s >= 'ab'", "s = ''", "s LIKE 'z%'", "d BETWEEN -1 AND 1", "t < TIMESTAMP'1970-01-01 00:00:00Z'"),
    *("size(l) = 2", "get(l, 0) = 1", "x.y = 1", "x.z IS NULL", "x IS NULL"),
    *(
        "get_json_object(j, '$.a') = '1'",
        "get_json_object(j, '$.a.b') IS NOT NULL",
        "get_json_object(j, '$.a') IS NULL",
    ),
)


@pytest.mark.merge
@given(
    files=st.lists(st.lists(ROWS_OF, min_size=1, max_size=4), min_size=1, max_size=3),
    gone=st.integers(-3, 3),
    texts=st.lists(st.sampled_from(ASKED), min_size=4, max_size=4, unique=True),
)
def test_no_filter_finds_other_rows_than_before(
    tmp_path_factory: pytest.TempPathFactory, files: list[list[dict[str, Any]]], gone: int, texts: list[str]
) -> None:
    place = tmp_path_factory.mktemp("random")
    schema = pa.schema([(name, kind) for name, (kind, _) in VALUES.items()])
    for n, found in enumerate(files):
        write_file(place / "source" / f"{n}.parquet", pa.Table.from_pylist(found, schema), row_group_size=2)
    table = tamis.adopt(place / "source", place / "t")
    assert isinstance(table, tamis.Table)
    table.delete(f"i = {gone}")
    before = {text: sorted_rows(table.scan(text).to_arrow()) for text in texts}
    assert table.analyze().later == 0
    table.refresh()
    for text in texts:
        assert sorted_rows(table.scan(text).to_arrow()) == before[text], text
    assert table.verify().ok, table.verify().problems.to_pylist()


def test_own_parts_without_statistics(tmp_path: Path) -> None:
    made = tamis.create(tmp_path / "t", properties={"tamis.stats.collect": "off"})
    made.append(rows(0))
    made.alter().set_properties({"tamis.stats.collect": "on"}).commit()
    made.append(rows(50))
    made.append(rows(100))
    assert len(unanalyzed_parts(made.refresh().snapshot)) == 1
    assert made.explain("id = 1000").parts.kept == 1
    assert made.analyze().parts == 1
    made.refresh()
    assert made.explain("id = 1000").parts.kept == 0
    assert sorted(made.scan().to_arrow()["id"].to_pylist()) == list(range(150))
    assert made.verify().ok
    assert made.analyze().parts == 0


def test_statistics_are_those_of_the_whole_file_whatever_is_deleted(table: tamis.Table) -> None:
    table.delete("id % 2 = 0")
    left = sorted_rows(table.scan().to_arrow())
    assert table.analyze().parts == FILES
    table.refresh()
    assert table.verify().ok
    assert sorted_rows(table.scan().to_arrow()) == left
    table.delete("id < 10")
    table.restore(0)
    assert table.verify().ok
    assert len(table.scan().to_arrow()) == FILES * ROWS
    assert not len(unanalyzed_parts(tamis.open(table.path).snapshot)) or table.analyze().parts == FILES


def meanwhile(monkeypatch: pytest.MonkeyPatch, act: Callable[[], object]) -> None:
    """Let ``act`` happen once, between reading the parts of a batch and the commit."""
    real = analysis._commit_statistics
    done: list[object] = []

    def land(*given: Any) -> Any:
        if not done:
            done.append(act)
            act()
        return real(*given)

    monkeypatch.setattr(analysis, "_commit_statistics", land)


def test_two_at_once_land_each_part_once(table: tamis.Table, monkeypatch: pytest.MonkeyPatch) -> None:
    meanwhile(monkeypatch, lambda: tamis.open(table.path).analyze())
    done = table.analyze()
    assert (done.parts, done.later) == (0, FILES)
    found = tamis.open(table.path)
    assert sorted(found.scan().to_arrow()["id"].to_pylist()) == list(range(FILES * ROWS))
    assert [row["operation"] for row in found.history().to_pylist()] == ["analyze", "adopt"]
    assert not len(unanalyzed_parts(found.snapshot))


def test_a_delete_meanwhile_stays_deleted(table: tamis.Table, monkeypatch: pytest.MonkeyPatch) -> None:
    meanwhile(monkeypatch, lambda: tamis.open(table.path).delete("id IN (1, 60) OR id >= 150"))
    done = table.analyze()
    assert (done.parts, done.later) == (3, 1), "one part is gone"
    found = tamis.open(table.path)
    assert sorted(found.scan().to_arrow()["id"].to_pylist()) == [n for n in range(150) if n not in {1, 60}]
    assert found.verify().ok
    assert not len(unanalyzed_parts(found.snapshot))


@pytest.mark.push_cases(2)
@pytest.mark.parametrize("act", ["delete", "append", "compact", "vacuum", "migrate", "index"])
def test_what_happens_while_it_commits(table: tamis.Table, monkeypatch: pytest.MonkeyPatch, act: str) -> None:
    """Between planning the commit and landing it: the analysis is landed upon what is there then."""
    other, real = tamis.open(table.path), renamed_covers
    done: list[object] = []
    acts: dict[str, Callable[[], object]] = {
        "delete": lambda: other.delete("id < 5"),
        "append": lambda: other.append(rows(1000)),
        "compact": other.compact,
        "vacuum": lambda: other.vacuum("0s", dry_run=False, below_retention=True),
        "migrate": lambda: other.alter().rename_column("kind", "sort").commit(),
        "index": lambda: other.create_index("by_id", ["id"]),
    }
    expected = FILES * ROWS + {"delete": -5, "append": ROWS}.get(act, 0)

    def covers(*given: Any) -> Any:
        if not done:
            done.append(acts[act]())
        return real(*given)

    monkeypatch.setattr(analysis, "renamed_covers", covers)
    assert table.analyze().parts == FILES
    found = tamis.open(table.path)
    assert len(found.scan().to_arrow()) == expected
    assert len(found.scan("id = 100").to_arrow()) == 1
    assert found.verify().ok


def test_indexes_cover_the_parts_as_before(table: tamis.Table) -> None:
    table.create_index("by_tag", ["body:tag"])
    table.create_index("by_id", ["id"])
    table.delete("id = 77")
    table.analyze()
    table.refresh()
    for index in table.indexes():
        assert index.missing == {}, index.name
    scan = table.scan("id = 78")
    assert scan.to_arrow()["id"].to_pylist() == [78]
    assert table.scan("id = 77").to_arrow().num_rows == 0
    assert table.verify().ok


def test_a_call_that_is_killed_leaves_what_it_landed(table: tamis.Table, monkeypatch: pytest.MonkeyPatch) -> None:
    class Killed(BaseException):
        pass

    read: list[str] = []
    real = part_analysis.analyze_part

    def learn(spec: Any, refs: Sequence[Any]) -> Iterator[Any]:
        for ref in refs:
            if len(read) == 2:
                raise Killed
            read.append(ref.path)
            yield real(spec, ref)

    monkeypatch.setattr(analysis, "BATCH_PARTS", 1)
    snapshot = table.refresh().snapshot
    with pytest.raises(Killed):
        analysis.analyze(table.store, snapshot, (), table._options(snapshot.head), learn=learn)
    assert len(unanalyzed_parts(tamis.open(table.path).snapshot)) == 2
    first = list(read)
    read[:] = ["", "", ""]
    del read[:2]
    now = tamis.open(table.path)
    done = analysis.analyze(now.store, now.snapshot, (), now._options(now.snapshot.head), learn=learn_all(read))[1]
    assert (done.parts, done.commits) == (2, 2)
    assert not set(first) & set(read)
    assert tamis.open(table.path).verify().ok


def learn_all(read: list[str]) -> Callable[[Any, Sequence[Any]], Iterable[Any]]:
    def learn(spec: Any, refs: Sequence[Any]) -> Iterator[Any]:
        for ref in refs:
            read.append(ref.path)
            yield part_analysis.analyze_part(spec, ref)

    return learn


def test_limits_and_filters_choose_the_parts(table: tamis.Table) -> None:
    size = table.detail()["size_in_bytes"][0].as_py()
    done = table.analyze("id BETWEEN 60 AND 70")
    assert (done.parts, done.later) == (1, 0)
    assert len(unanalyzed_parts(table.refresh().snapshot)) == FILES - 1
    done = table.analyze(max_bytes=size // 2)
    assert (done.parts + done.later, done.parts) == (FILES - 1, 2)
    done = table.analyze(max_bytes=1)
    assert (done.parts, done.later) == (1, 0)
    assert table.analyze(max_seconds=0).parts == 0


def test_a_file_that_changed_is_refused_and_the_others_are_learned(table: tamis.Table, source: Path) -> None:
    write_file(source / "part-1.parquet", rows(7000))
    with pytest.raises(CorruptData) as caught:
        table.analyze()
    assert (caught.value.code, caught.value.name) == ("SOURCE_CHANGED", "part-1.parquet")
    left = unanalyzed_parts(tamis.open(table.path).snapshot)
    assert left["path"].to_pylist() == ["part-1.parquet"]
    (source / "part-1.parquet").unlink()
    with pytest.raises(CorruptData, match="PART_MISSING"):
        table.analyze()


def test_a_file_that_is_replaced_while_it_is_read_is_not_learned(
    table: tamis.Table, source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = read_part

    def read(ref: Any, *given: Any) -> Iterator[pa.RecordBatch]:
        yield from real(ref, *given)
        if ref.path == "part-2.parquet":
            write_file(source / ref.path, rows(7000))

    monkeypatch.setattr(part_analysis, "read_part", read)
    with pytest.raises(CorruptData, match="SOURCE_CHANGED"):
        table.analyze()
    assert unanalyzed_parts(tamis.open(table.path).snapshot)["path"].to_pylist() == ["part-2.parquet"]


@pytest.mark.push_cases(2)
@pytest.mark.parametrize("step", ["append", "delete", "update", "compact", "add a column", "restore"])
def test_a_synchronization_keeps_what_was_learned(tmp_path: Path, step: str) -> None:
    from tests.bridges.source_histories import rows as delta_data

    place = tmp_path / "delta"
    for start in (0, 10):
        deltalake.write_deltalake(place, delta_data(start), mode="append")
    followed = tamis.adopt(place, tmp_path / "t", follow=True)
    assert isinstance(followed, tamis.Table)
    assert followed.analyze().parts == 2
    DELTA[step](place)
    followed.sync()
    followed.refresh()
    assert sorted_rows(followed.scan().to_arrow()) == sorted_rows(deltalake.DeltaTable(place).to_pyarrow_table())
    fresh = set(unanalyzed_parts(followed.snapshot)["path"].to_pylist())
    first = set(deltalake.DeltaTable(place, version=1).file_uris())
    assert not {str(place / path) for path in fresh} & first
    followed.analyze()
    followed.refresh()
    assert not len(unanalyzed_parts(followed.snapshot))
    assert followed.verify().ok
    assert sorted_rows(followed.scan().to_arrow()) == sorted_rows(deltalake.DeltaTable(place).to_pyarrow_table())


@pytest.mark.parametrize("net", [False, True])
def test_a_change_feed_tells_nothing_of_it(table: tamis.Table, *, net: bool) -> None:
    table.delete("id = 1")
    table.analyze()
    assert table.changes(1, 2, net=net).to_arrow().num_rows == 0
    table.delete("id = 2")
    changes = table.changes(0, net=net).to_arrow().select(["id", "_change_type"]).to_pylist()
    assert changes == [{"id": n, "_change_type": "delete"} for n in (1, 2)]


def test_statistics_stay_within_their_budget(source: Path, tmp_path: Path) -> None:
    table = tamis.adopt(source, tmp_path / "t", properties={"tamis.stats.budget_bytes": "300"})
    assert isinstance(table, tamis.Table)
    table.analyze()
    table.refresh()
    detail = table.detail().to_pylist()[0]
    assert detail["statistics_dropped"] > 0
    assert detail["statistics_excess_bytes"] == 0
    assert part_budget(300, ROWS) == 300
    assert table.verify().ok


def test_a_table_without_parts(tmp_path: Path) -> None:
    assert tamis.create(tmp_path / "t").analyze().parts == 0
    assert tamis.create(tmp_path / "u", "id BIGINT").analyze("id = 1").parts == 0


def test_exports_go_on(tmp_path: Path) -> None:
    made = tamis.create(tmp_path / "t")
    made.append(rows(ROWS))
    made.alter().set_properties({"tamis.stats.collect": "off"}).commit()
    made.append(rows(0))
    made.delete("id = 4")
    made.export("delta")
    made.export("iceberg")
    made.alter().set_properties({"tamis.stats.collect": "on"}).commit()
    assert made.analyze().parts == 1
    for gone in (set(), {3}):
        made.delete(f"id IN ({', '.join(map(str, gone))})") if gone else None
        made.export("delta")
        made.export("iceberg")
        assert len(made.scan().to_arrow()) == 2 * ROWS - 1 - len(gone)
        expected = values_of(made.scan().to_arrow())
        assert delta_by_deltalake(made.path) == delta_by_polars(made.path) == expected
        assert iceberg_by_pyiceberg(made.path) == expected
    assert made.refresh().verify().ok


BUDGET, OFF = {"tamis.stats.budget_bytes": "20"}, {"tamis.stats.collect": "off"}
FULL = {"tamis.stats.budget_bytes": "65536", "tamis.stats.collect": "on"}


@pytest.mark.parametrize(
    "steps",
    [
        [BUDGET, "append", OFF, "append", "analyze"],
        [BUDGET, "append", "append", OFF, "append", "append", "analyze", "compact"],
        [OFF, "append", FULL, "append", BUDGET, "append", "analyze", "analyze"],
        [OFF, "append", BUDGET, "analyze", FULL, "append", "delete", "analyze"],
    ],
)
def test_parts_without_room_for_statistics_are_analyzed_beside_others(
    tmp_path: Path, steps: list[str | dict[str, str]]
) -> None:
    table = tamis.create(tmp_path / "t", rows(0).schema)
    count = gone = 0
    for step in steps:
        table = tamis.open(tmp_path / "t")
        if isinstance(step, dict):
            table.alter().set_properties(step).commit()
        elif step == "append":
            table.append(rows(count))
            count += ROWS
        elif step == "delete":
            table.delete("id = 3")
            gone = 1
        else:
            getattr(table, step)()
        found = tamis.open(tmp_path / "t")
        assert (found.scan().count(), found.scan("id < 7").to_arrow().num_rows) == (count - gone, min(count, 7 - gone))
    assert tamis.open(tmp_path / "t").verify().ok


@pytest.mark.slow
def test_a_wide_source_is_analyzed_in_several_calls(tmp_path: Path) -> None:
    """Its statistics do not fit into the default budget."""
    wide = {f"c{i}": [f"{i} {n} " + "y" * 40 for n in range(20)] for i in range(1_500)}
    for n in range(3):
        write_file(tmp_path / "source" / f"part-{n}.parquet", pa.table({"id": range(n * 20, n * 20 + 20), **wide}))
    tamis.adopt(tmp_path / "source", tmp_path / "t")
    for left in (2, 1, 0):
        assert tamis.open(tmp_path / "t").analyze(max_bytes=1).later == left
        assert tamis.open(tmp_path / "t").scan("id = 33", ["id", "c7"]).to_arrow().num_rows == 1
