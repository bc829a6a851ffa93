"""What a table says about itself."""

from pathlib import Path

import pyarrow as pa
import pytest

import tamis
from tamis.table.metadata_tables import TABLES


@pytest.fixture
def table(tmp_path: Path) -> tamis.Table:
    made = tamis.create(tmp_path, cluster_by=["id"], properties={"owner": "<me>"})
    for i in range(3):
        made.append(
            pa.table(
                {
                    "id": pa.array([i * 10, i * 10 + 5], pa.int64()),
                    "s": pa.array([{"x": i, "y": "q"}, None], pa.struct([("x", pa.int32()), ("y", pa.string())])),
                    "f": [float("nan"), 1.0 * i],
                    "l": [[1], None],
                }
            )
        )
    return made


def test_every_table_reads_and_an_empty_table_has_the_same_shape(table: tamis.Table, tmp_path: Path) -> None:
    table.create_index("by_id", "id")
    table.alter().add_unique("u", "id").commit()
    empty = tamis.create(tmp_path / "e", table.schema)
    for name in TABLES:
        full = table.metadata(name)
        assert full.num_rows or name == "sources"  # the table has none
        assert empty.metadata(name).schema.equals(full.schema)


def test_parts_have_readable_bounds(table: tamis.Table) -> None:
    parts = table.metadata("parts")
    assert parts["rows"].to_pylist() == [2, 2, 2]
    assert parts["segment_id"].to_pylist() == table.metadata("segments")["segment_id"].to_pylist()
    statistics = [row["statistics"] for row in parts.to_pylist()]
    assert [s["id"] for s in statistics] == [
        {"lo": i * 10, "hi": i * 10 + 5, "nulls": 0, "nans": None} for i in range(3)
    ] or [s["id"]["lo"] for s in statistics] == [0, 10, 20]
    assert [(s["s.x"]["lo"], s["s.x"]["hi"], s["s.x"]["nulls"]) for s in statistics] == [(i, i, 1) for i in range(3)]
    assert [(s["f"]["lo"], s["f"]["hi"], s["f"]["nans"]) for s in statistics] == [
        (float(i), float(i), 1) for i in range(3)
    ]


def test_segments_have_the_union(table: tamis.Table) -> None:
    segments = table.metadata("segments").to_pylist()
    assert [s["rows"] for s in segments] == [2, 2, 2]
    assert [(s["statistics"]["id"]["lo"], s["statistics"]["id"]["hi"]) for s in segments] == [
        (0, 5),
        (10, 15),
        (20, 25),
    ]


def test_columns_have_the_bounds_of_the_table(table: tamis.Table) -> None:
    columns = {row["name"]: row for row in table.metadata("columns").to_pylist()}
    assert list(columns) == ["id", "s", "s.x", "s.y", "f", "l"]
    assert (columns["id"]["lo"], columns["id"]["hi"], columns["id"]["nulls"]) == ("0", "25", 0)
    assert (columns["s.x"]["type"], columns["s.x"]["nulls"]) == ("int", 3)
    assert columns["l"]["lo"] is None


def test_bounds_that_python_has_no_value_for(tmp_path: Path) -> None:
    micros = pa.array([-(10**17), None, 4 * 10**17])
    days = pa.array([-800_000, None, 3_000_000], pa.int32()).cast(pa.date32())
    table = tamis.create(tmp_path / "t")
    columns = {
        "d": days,
        "ts": micros.cast(pa.timestamp("us", tz="UTC")),
        "i": micros.cast(pa.duration("us")),
        "plain": micros,
    }
    table.append(pa.table(columns))
    found = {row["name"]: (row["lo"], row["hi"], row["nulls"]) for row in table.metadata("columns").to_pylist()}
    assert found["plain"] == ("-100000000000000000", "400000000000000000", 1)
    assert found["i"] == ("-1157408 days, 14:13:20", "4629629 days, 15:06:40", 1)
    assert found["d"] == ("-0221-09-04", "10183-09-21", 1)
    assert found["ts"] == ("-1199-02-15 14:13:20.000000Z", "14645-06-30 15:06:40.000000Z", 1)


def test_detail_and_history(table: tamis.Table) -> None:
    (detail,) = table.detail().to_pylist()
    assert (detail["num_parts"], detail["num_segments"], detail["num_rows"]) == (3, 3, 6)
    assert (detail["clustering_columns"], dict(detail["properties"]), detail["version"]) == (
        ["id"],
        {"owner": "<me>"},
        3,
    )
    history = table.history()
    assert history["version"].to_pylist() == [3, 2, 1, 0]
    assert history["operation"].to_pylist() == ["append", "append", "append", "create"]
    assert table.history(2).num_rows == 2


def test_the_card(table: tamis.Table) -> None:
    for shown in (repr(table), table._repr_html_()):
        for expected in ("version", "3 parts", "id", "bigint", "clustered by", "array"):
            assert expected in shown
    assert "array&lt;bigint&gt;" in table._repr_html_()


def test_a_past_version_knows_no_later_commits(table: tamis.Table) -> None:
    past = tamis.open(table.path, version=1)
    for name in ("history", "snapshots"):
        assert past.metadata(name)["version"].to_pylist() == [1, 0]
    assert past.history()["version"].to_pylist() == [1, 0]
    assert past.history(1)["version"].to_pylist() == [1]
    assert table.history()["version"].to_pylist() == table.metadata("history")["version"].to_pylist() == [3, 2, 1, 0]
