"""Columns and indexes that come, go and change, and versions before and after."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import tamis
from tamis.errors import AlreadyExists, InvalidInput, NotFound
from tamis.storage.commit_log import Operation, Proposal, commit
from tests.secondary_index.tables import SEGMENTS, empty_table, ids, info, key_in, missing, rows_of, same, table_a, used


def test_an_indexed_column_is_not_dropped(tmp_path: Path) -> None:
    table = table_a(tmp_path / "t", ("ik", "k"), ("io", "o.a"))
    for column, index in (("k", "ik"), ("o", "io")):
        with pytest.raises(InvalidInput, match=index) as error:
            table.alter().drop_column(column).commit()
        assert error.value.code == "INDEXED_COLUMN"
    table.alter().drop_column("w").commit()
    report = same(table, f"k = {key_in(2)}")
    assert used(report) == {"ik": (5, 0)}
    assert report.rows.matched == 1
    table.drop_index("io")
    table.alter().drop_column("o").commit()


def test_an_index_follows_a_renamed_column(tmp_path: Path) -> None:
    table = table_a(tmp_path / "t", ("ik", "k"))
    table.alter().rename_column("k", "k2").commit()
    table.append(rows_of(0, segments=SEGMENTS + 1).rename_columns(["k2", "g", "n", "s", "f", "o", "w"]).slice(0, 1))
    report = same(table, f"k2 = {key_in(2)}")
    assert used(report) == {"ik": (5, 0)}  # the last load is one row: its bounds say more
    assert report.rows.matched in (1, 2)
    assert info(table).columns == ("k2",)


def test_an_index_answers_for_a_widened_column(tmp_path: Path) -> None:
    table = tamis.create(tmp_path / "t")
    for segment in range(3):
        rows = rows_of(segment)
        table.append(pa.table({"k": rows["k"].cast(pa.int32()), "w": rows["w"]}))
    table.create_index("ik", "k")
    table.alter().widen("k", pa.int64()).commit()
    table.append(pa.table({"k": pa.array([2**40, 3, None], pa.int64()), "w": [1.0, 2.0, 3.0]}))
    for row_filter, matched in (
        (f"k = {key_in(2)}", 1),
        (f"k = {2**40}", 1),
        (f"k > {2**31}", 1),
        (f"k IN ({key_in(0)}, {2**40})", 2),
        ("k IS NULL", 1),
    ):
        report = same(table, row_filter)
        assert (report.rows.matched, set(used(report))) == (matched, {"ik"}), row_filter
    assert missing(table) == []
    assert used(same(table, f"k IN ({key_in(0)}, 3, {2**40})")) == {"ik": (4, 0)}, (
        "what was built of INT answers for BIGINT"
    )


def test_the_default_of_an_added_column_is_indexed(tmp_path: Path) -> None:
    table = table_a(tmp_path / "t", ("ik", "k"))
    table.alter().add_column("c", pa.int32(), default="7").commit()
    table.create_index("ic", "c")
    table.append(rows_of(0, 3).append_column("c", pa.array([8, None, 7], pa.int32())))
    report = same(table, "c = 7")
    assert report.rows.matched in (0, SEGMENTS * len(rows_of(0)) + 1)  # 0: parts that match wholly need no filter
    assert table.scan("c = 7").count() == SEGMENTS * len(rows_of(0)) + 1
    assert table.scan("c = 8").count() == 1
    assert same(table, f"c = 7 AND k = {key_in(2)}").rows.matched == 1
    assert table.scan("c IS NULL").count() == 1


def test_a_restore_brings_its_index_back(tmp_path: Path) -> None:
    table = table_a(tmp_path / "t", ("ik", "k"))
    version = table.version
    table.update({"s": "'new'"}, f"k = {key_in(1)}")
    table.delete(f"k = {key_in(2)}")
    table.append(pa.table({**{name: rows_of(0)[name].slice(0, 1) for name in rows_of(0).column_names}, "k": [77_777]}))
    table.restore(version)
    assert missing(table) == []
    assert same(table, "k = 77777").parts.kept == 0
    for key in (key_in(1), key_in(2)):
        report = same(table, f"k = {key}")
        assert used(report)["ik"][1] == 0
        assert report.rows.matched == 1
    assert table.scan("s = 'new'").count() == 0


def test_a_past_version_uses_the_index_that_it_had(tmp_path: Path) -> None:
    table = table_a(tmp_path / "t", segments=2)
    before = table.version
    table.create_index("ik", "k")
    between = table.refresh().version
    table.append(rows_of(2))
    assert used(same(table, f"k = {key_in(0)}", version=before)) == {}
    assert used(same(table, f"k = {key_in(0)}", version=between)) == {"ik": (2, 0)}
    assert same(table, f"k = {key_in(2)}", version=between).rows.matched == 0
    assert [i.name for i in tamis.open(table.path, version=before).indexes()] == []
    assert used(same(table, f"k = {key_in(2)}")) == {"ik": (3, 0)}


def test_a_query_goes_on_with_an_index_that_is_dropped(tmp_path: Path) -> None:
    row_filter = " OR ".join(f"k = {key_in(segment)}" for segment in range(SEGMENTS))
    for use, planned in (("lookup", True), ("plan", True), ("lookup", False)):
        table = table_a(tmp_path / f"{use}{planned}", ("ik", "k"))
        scan = table.scan(row_filter, options={"tamis.index.use": use})
        if planned:
            assert used(scan.plan().report) == {"ik": (5, 0)}
        batches = scan.to_batches()
        first = next(batches)
        tamis.open(table.path).drop_index("ik")
        assert first.num_rows + sum(batch.num_rows for batch in batches) == SEGMENTS
        assert scan.report is not None
        assert used(scan.report) == {"ik": (5, 0)}, "it goes on with what it has begun with"
        assert used(same(table, row_filter)) == {}


def test_names_of_indexes_are_unique_without_case(tmp_path: Path) -> None:
    table = table_a(tmp_path / "t", ("ik", "k"), segments=1)
    with pytest.raises(AlreadyExists):
        table.create_index("IK", "g")
    table.create_index("ik2", "k")
    assert [i.name for i in table.indexes()] == ["ik", "ik2"]
    with pytest.raises(NotFound):
        table.drop_index("other")


def test_parts_of_a_writer_that_builds_no_index_are_missing(tmp_path: Path) -> None:
    """As an import is, or a load by a program that knows no indexes: read by statistics, and listed, until it is repaired."""
    table = table_a(tmp_path / "t", ("ik", "k"), segments=2)
    stranger = empty_table(tmp_path / "other")
    stranger.append(rows_of(2))
    part = stranger.metadata("parts")["path"][0].as_py()
    (tmp_path / "t" / part).write_bytes((tmp_path / "other" / part).read_bytes())
    head, snapshot = table.snapshot.head, table.refresh().snapshot
    manifest = stranger.snapshot.parts(None, frozenset(f.id for f in head.schema)).drop_columns(
        ["segment", "part", "deleted", "deletion"]
    )
    commit(
        table.store,
        Proposal(
            operation=Operation("append"),
            table_id=head.table_id,
            read_version=snapshot.version,
            blind_append=True,
            add=[manifest],
        ),
    )
    assert missing(table) == [2]
    assert info(table).missing[ids(table)[2]] == "it was written without building the index"
    report = same(table, f"k = {key_in(2)}")
    assert (report.rows.matched, used(report), report.parts.skipped_index) == (1, {"ik": (2, 1)}, 2)
    table.repair_index()
    assert used(same(table, f"k = {key_in(2)}")) == {"ik": (3, 0)}


def test_deferred_builds_are_missing_until_repaired(tmp_path: Path) -> None:
    table = table_a(tmp_path / "t", segments=2)
    table.create_index("ik", "k", build="deferred")
    table.append(rows_of(2))
    assert missing(table) == [0, 1, 2]
    assert "deferred" in list(info(table).missing.values())[-1]
    table.repair_index()
    assert missing(table) == []


def test_a_property_defers_the_builds_of_loads(tmp_path: Path) -> None:
    """The table's property leaves the builds of loads for later, whatever the index says of itself."""
    table = table_a(tmp_path / "t", ("ik", "k"), segments=1, properties={"tamis.index.build": "deferred"})
    assert missing(table) == [], "an index is built when it is made"
    table.append(rows_of(1))
    assert missing(table) == [1]
    report = same(table, f"k = {key_in(1)}")
    assert (report.rows.matched, used(report)) == (1, {"ik": (1, 1)})
    table.repair_index()
    assert missing(table) == []


def test_a_field_of_a_struct(tmp_path: Path) -> None:
    table = table_a(tmp_path / "t", ("io", "o.a"), segments=3)
    assert used(same(table, f"o.a = {key_in(0) if key_in(0) % 9 else key_in(0, 6)}")) == {"io": (3, 0)}
    assert same(table, "o.a IS NULL", options={"tamis.index.use": "io"}).rows.matched > 0


def test_why_nested_types_cannot_be_indexed(tmp_path: Path) -> None:
    """Spark sorts arrays and structs, and no maps."""
    kinds = {"a": pa.list_(pa.int64()), "o": pa.struct([("x", pa.int64())]), "m": pa.map_(pa.string(), pa.int64())}
    table = tamis.create(tmp_path / "t", pa.schema(list(kinds.items())))
    for name, why in (
        ("a", "arrays and structs are not indexed"),
        ("o", "nothing keeps their bounds"),
        ("m", "have no order"),
    ):
        with pytest.raises(InvalidInput, match=why) as caught:
            table.create_index("bad", name)
        assert caught.value.code == "BAD_INDEX"


@pytest.mark.parametrize("columns", [[], ["nothing"], ["k", "k"], ["o"]])
def test_what_cannot_be_indexed(just_ik: tamis.Table, columns: list[str]) -> None:
    with pytest.raises((InvalidInput, NotFound)):
        just_ik.create_index("bad", columns)
    assert [i.name for i in just_ik.indexes()] == ["ik"]
