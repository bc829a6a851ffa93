"""Append and overwrite: what may be given, what comes back, what is answered."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import tamis
from tamis.errors import Conflict, InvalidInput, TamisError
from tamis.storage.object_store.checked_json import unseal_json

TABLE = pa.table({"id": pa.array([3, 1, 2], pa.int64()), "name": ["c", "a", None]})


def forms() -> Iterator[tuple[str, Any]]:
    yield "table", TABLE
    yield "batch", TABLE.to_batches()[0]
    yield "reader", TABLE.to_reader()
    yield "pandas", TABLE.to_pandas()
    yield "pandas with an index", TABLE.to_pandas().set_index(pd.Index(["x", "y", "z"]))
    yield "polars", pl.from_arrow(TABLE)
    yield (
        "capsule",
        type("Capsule", (), {"__arrow_c_stream__": lambda self, schema=None: TABLE.__arrow_c_stream__(schema)})(),
    )


@pytest.mark.parametrize("case", [name for name, _ in forms()])
def test_any_arrow_stream_can_be_appended(tmp_path: Path, case: str) -> None:
    table = tamis.create(tmp_path)
    result = table.append(dict(forms())[case])
    assert (result.version, result.rows_inserted, result.parts_added) == (1, 3, 1)
    assert result.bytes_written > 0
    assert table.schema.names == ["id", "name"]
    assert table.scan().to_arrow().to_pylist() == TABLE.to_pylist()


def frame(*ids: int) -> pl.DataFrame:
    """A Polars frame of every kind that it holds in a way of its own: views, and dictionaries of views."""
    names = [f"n{i}" for i in ids]
    plainly = pl.DataFrame(
        {
            "id": pl.Series(ids, dtype=pl.Int64),
            "text": names,
            "bytes": [n.encode() for n in names],
            "texts": [[n, None] if n != "n1" else None for n in names],
            "pair": [{"a": n, "b": [n]} if n != "n2" else None for n in names],
        }
    )
    return plainly.with_columns(
        category=pl.col("text").cast(pl.Categorical), enum=pl.col("text").cast(pl.Enum(["n1", "n2", "n3", "n4"]))
    )


VERBS = {
    "append": lambda t: t.append(frame(3, 4)),
    "overwrite": lambda t: t.overwrite(frame(3, 4), "id > 2"),
    "upsert": lambda t: t.upsert(frame(2, 3, 4), on=["id"]),
    "upsert by text": lambda t: t.upsert(frame(2, 3, 4), on=["text"]),
    "upsert by a category": lambda t: t.upsert(frame(2, 3, 4), on=["category", "enum", "bytes"]),
    "merge": lambda t: (
        t.merge(frame(2, 3, 4), "target.text = source.enum").when_matched_update().when_not_matched_insert().execute()
    ),
}


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_takes_a_polars_frame(tmp_path: Path, verb: str) -> None:
    table = tamis.create(tmp_path)
    table.append(frame(1, 2))
    VERBS[verb](table)
    assert table.scan(order_by="id", limit=9).to_arrow().to_pylist() == frame(1, 2, 3, 4).to_dicts()


def test_runs_are_values_like_others(tmp_path: Path) -> None:
    table = tamis.create(tmp_path)
    runs = pa.RunEndEncodedArray.from_arrays(pa.array([2, 3], pa.int32()), ["a", "b"])
    table.append(pa.table({"id": [1, 2, 3], "s": runs}))
    table.upsert(pa.table({"id": [3, 4, 5], "s": runs}), on=["id"])
    assert table.scan().to_arrow()["s"].to_pylist() == ["a", "a", "a", "a", "b"]


def test_a_scan_can_be_appended_to_another_table(tmp_path: Path) -> None:
    one, two = tamis.create(tmp_path / "1"), tamis.create(tmp_path / "2")
    one.append(TABLE)
    two.append(one.scan("id > 1"))
    assert two.scan().to_arrow().to_pylist() == [{"id": 3, "name": "c"}, {"id": 2, "name": None}]


def test_the_first_append_brings_the_schema_and_pending_clustering(tmp_path: Path) -> None:
    table = tamis.create(tmp_path, cluster_by=["id"], properties={"owner": "me"})
    assert (table.schema_id, table.schema.names, table.scan().count(), table.properties) == (
        None,
        [],
        0,
        {"owner": "me"},
    )
    assert table.scan().to_arrow().num_rows == 0
    table.append(TABLE)
    assert (table.schema_id, table.properties) == (0, {"owner": "me"})
    assert table.scan().to_arrow()["id"].to_pylist() == [1, 2, 3]
    assert tamis.open(tmp_path).detail()["clustering_columns"].to_pylist() == [["id"]]


def test_names_match_without_case_and_order(tmp_path: Path) -> None:
    table = tamis.create(tmp_path, TABLE.schema)
    table.append(pa.table({"NAME": ["x"], "ID": pa.array([9], pa.int32())}))
    assert table.scan().to_arrow().to_pylist() == [{"id": 9, "name": "x"}]


def test_no_rows_make_no_version(tmp_path: Path) -> None:
    table = tamis.create(tmp_path, TABLE.schema)
    assert table.append(TABLE.slice(0, 0)).version == 0
    assert table.history().num_rows == 1


def test_clustering_skips(tmp_path: Path) -> None:
    table = tamis.create(tmp_path, cluster_by=["id"], properties={"tamis.write.part_bytes": "4096"})
    rows = 120_000
    shuffled = pc.bit_wise_and(pc.multiply(pa.array(range(rows), pa.int64()), 7919), 16383)
    result = table.append(pa.table({"id": shuffled, "pad": [str(i) * 100 for i in range(rows)]}))
    assert result.parts_added > 5, "a part has a block of rows at least"
    scan = table.scan("id < 100")
    assert scan.to_arrow()["id"].to_pylist() == sorted(v for v in shuffled.to_pylist() if v < 100)
    assert scan.report.parts.kept < scan.report.parts.total / 2


def test_append_and_read_back_after_reopening(tmp_path: Path) -> None:
    tamis.create(tmp_path, TABLE.schema)
    for _ in range(3):
        tamis.open(tmp_path).append(TABLE)
    again = tamis.open(tmp_path)
    assert (again.version, again.scan().count()) == (3, 9)
    assert again.history()["version"].to_pylist() == [3, 2, 1, 0]


def test_overwrite_all(tmp_path: Path) -> None:
    table = tamis.create(tmp_path)
    table.append(TABLE)
    table.append(TABLE)
    result = table.overwrite(TABLE.slice(0, 1))
    assert (result.rows_inserted, result.rows_deleted, result.parts_removed, result.parts_rewritten) == (1, 6, 2, 0)
    assert table.scan().to_arrow().to_pylist() == [{"id": 3, "name": "c"}]
    assert tamis.open(tmp_path, version=result.version - 1).scan().count() == 6


def test_overwrite_where_touches_only_what_it_must(tmp_path: Path) -> None:
    table = tamis.create(tmp_path)
    for ids in ([1, 2], [10, 11], [20, 21]):
        table.append(pa.table({"id": pa.array(ids, pa.int64())}))
    before = dict(zip(*table.metadata("parts").select(["part_id", "rows"]).to_pydict().values(), strict=True))
    result = table.overwrite(pa.table({"id": pa.array([100], pa.int64())}), "id BETWEEN 2 AND 15", allow_outside=True)
    assert result.bytes_read > 0
    assert result.as_dict() | {"bytes_written": 0, "bytes_read": 0} == {
        "version": 4,
        "rows_inserted": 1,
        "rows_updated": 0,
        "rows_deleted": 3,
        "parts_added": 2,
        "parts_removed": 2,
        "parts_rewritten": 1,
        "bytes_written": 0,
        "parts_read": 1,
        "parts_thinned": 0,
        "bytes_read": 0,
    }
    assert sorted(table.scan().to_arrow()["id"].to_pylist()) == [1, 20, 21, 100]
    after = table.metadata("parts")["part_id"].to_pylist()
    assert len(set(after) & set(before)) == 1


def test_an_overwrite_leaves_a_part_without_a_matching_row(tmp_path: Path) -> None:
    """Its bounds hold the value, and none of its rows: no row goes, so that the commit only adds one."""
    table = tamis.create(tmp_path)
    for first in (0, 1, 3):
        table.append(pa.table({"id": pa.array(range(first, 4_000 + first, 4), pa.int64())}))
    before = set(table.metadata("parts")["part_id"].to_pylist())
    done = table.overwrite(pa.table({"id": pa.array([2002], pa.int64())}), "id = 2002")
    assert (done.rows_deleted, done.parts_removed, done.parts_rewritten, done.parts_read) == (0, 0, 0, 3)
    assert before < set(table.metadata("parts")["part_id"].to_pylist())
    done = table.overwrite(pa.table({"id": pa.array([2001], pa.int64())}), "id = 2001")
    assert (done.rows_deleted, done.parts_removed, done.parts_rewritten, done.parts_read) == (1, 1, 1, 3)
    assert len(before & set(table.metadata("parts")["part_id"].to_pylist())) == 2
    found = table.scan().to_arrow()["id"].to_pylist()
    assert sorted(found) == sorted([*range(0, 4_000, 4), *range(1, 4_001, 4), *range(3, 4_003, 4), 2002])


def test_a_row_on_which_the_filter_fails_ends_an_overwrite_of_no_row(tmp_path: Path) -> None:
    table = tamis.create(tmp_path)
    table.append(pa.table({"id": pa.array([1, 9], pa.int64()), "name": pa.array(["1", "x"])}))
    with pytest.raises(TamisError) as caught:
        table.overwrite(pa.table({"id": pa.array([7], pa.int64())}), "CAST(name AS INT) = 7", allow_outside=True)
    assert caught.value.code == "FILTER_FAILED"
    assert table.refresh().version == 1


def test_overwrite_keeps_rows_for_which_the_filter_is_null(tmp_path: Path) -> None:
    table = tamis.create(tmp_path)
    table.append(TABLE)
    assert table.overwrite(TABLE.slice(0, 0), "name > 'a'").rows_deleted == 1
    assert table.scan().to_arrow()["name"].to_pylist() == ["a", None]


@pytest.mark.parametrize(("theirs", "fits"), [(TABLE, True), (TABLE.select(["name"]), False)])
def test_two_first_appends_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, theirs: pa.Table, fits: bool
) -> None:
    from tamis.engine.operations import append as module

    ours, other = tamis.create(tmp_path), tamis.open(tmp_path)
    real = sys.modules[module.__module__].write_rows
    raced: list[bool] = []

    def racing(*arguments: Any, **named: Any) -> Any:
        if not raced:
            raced.append(True)
            other.append(theirs)
        return real(*arguments, **named)

    monkeypatch.setattr(sys.modules[module.__module__], "write_rows", racing)
    if fits:
        assert ours.append(TABLE).version == 2
        assert ours.scan().count() == 6
    else:
        with pytest.raises(Conflict):
            ours.append(TABLE)
        assert tamis.open(tmp_path).scan().count() == 3


def test_a_first_append_whose_files_a_vacuum_removed_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another first append came between, of the same schema, so that this one tries a second time."""
    from tamis.engine.operations import append as module

    ours, other = tamis.create(tmp_path), tamis.open(tmp_path)
    real = sys.modules[module.__module__].commit_indexed
    raced: list[int] = []

    def racing(*arguments: Any, **named: Any) -> Any:
        if not raced:
            raced.append(0)
            other.append(TABLE.slice(1))
            raced.append(len(other.vacuum("0s", dry_run=False, below_retention=True).objects))
        return real(*arguments, **named)

    monkeypatch.setattr(sys.modules[module.__module__], "commit_indexed", racing)
    with pytest.raises(Conflict) as caught:
        ours.append(TABLE)
    assert (caught.value.code, raced) == ("CONFLICT_VACUUMED", [0, 1])
    assert tamis.open(tmp_path).scan().to_arrow().equals(TABLE.slice(1))


def race_an_append(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let another writer append just before the next overwrite commits."""
    from tamis.engine.operations import overwrite as function

    module = sys.modules[function.__module__]
    real = module.commit_indexed

    def racing(*arguments: Any, **named: Any) -> Any:
        monkeypatch.setattr(module, "commit_indexed", real)
        tamis.open(folder).append(TABLE)
        return real(*arguments, **named)

    monkeypatch.setattr(module, "commit_indexed", racing)


def test_an_overwrite_conflicts_with_what_it_did_not_see(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = tamis.create(tmp_path)
    table.append(TABLE)
    race_an_append(tmp_path, monkeypatch)
    with pytest.raises(Conflict):
        table.overwrite(TABLE.slice(0, 1), "id = 3")
    assert tamis.open(tmp_path).scan().count() == 6
    assert table.overwrite(TABLE.slice(0, 1), "id = 3").rows_deleted == 2


def test_an_overwrite_of_an_empty_table_takes_nothing_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A stream reads its commit as an append; rows that others add meanwhile are not lost."""
    table = tamis.create(tmp_path)
    race_an_append(tmp_path, monkeypatch)
    with pytest.raises(Conflict):
        table.overwrite(TABLE.slice(0, 1))
    assert tamis.open(tmp_path).scan().count() == 3
    empty = tamis.create(tmp_path / "empty")
    assert empty.overwrite(TABLE).rows_deleted == 0
    assert not removes_all(tmp_path / "empty")
    assert empty.overwrite(TABLE.slice(1)).rows_deleted == 3
    assert removes_all(tmp_path / "empty")
    assert empty.scan().to_arrow().equals(TABLE.slice(1))


def removes_all(folder: Path) -> bool:
    """Whether the newest commit takes all earlier rows away."""
    newest = max((folder / "_tamis" / "log").glob("*.json"))
    return unseal_json("commit", newest.read_bytes(), newest.name).get("remove_all", False) is True


def test_rows_outside_the_filter_are_refused(tmp_path: Path) -> None:
    """Else the next overwrite by the same filter would leave them behind."""
    table = tamis.create(tmp_path)
    table.append(TABLE)
    before = table.scan().to_arrow()
    for new, shown in ((TABLE, "id = 1"), (TABLE.slice(0, 2), "id = 3")):
        text = "id = 3" if shown == "id = 1" else "id < 3 AND name IS NOT NULL"
        with pytest.raises(InvalidInput) as caught:
            table.overwrite(new, text)
        assert (caught.value.code, shown in caught.value.message) == ("OUTSIDE_FILTER", True), caught.value
        assert "allow_outside" in caught.value.remedy
    assert table.refresh().version == 1
    assert len(list((tmp_path / "data").iterdir())) == 1, "what was written before the row was met is gone"
    assert table.scan().to_arrow().equals(before)
    assert table.overwrite(TABLE, "id = 3", allow_outside=True).rows_inserted == 3
    allowing = tamis.create(tmp_path / "allowing", properties={"tamis.write.outside_filter": "allow"})
    allowing.append(TABLE)
    assert allowing.overwrite(TABLE, "id = 3").rows_inserted == 3
    allowing.alter().set_properties({"tamis.write.outside_filter": "refuse"}).commit()
    assert allowing.overwrite(TABLE, "id = 3", allow_outside=True).rows_inserted == 3


def test_an_overwrite_that_changes_nothing_makes_no_version(tmp_path: Path) -> None:
    table = tamis.create(tmp_path)
    table.append(TABLE)
    for text in ("id > 100", "id > 0 AND name = 'no'"):
        done = table.overwrite(TABLE.slice(0, 0), text)
        assert (done.version, done.rows_deleted, done.parts_added) == (1, 0, 0)
    assert table.refresh().version == 1
    assert len(list((tmp_path / "data").iterdir())) == 1
    table.overwrite(TABLE.slice(0, 0))
    assert table.overwrite(TABLE.slice(0, 0)).version == 2
