"""JSON paths as indexed columns, into VARIANT and into text: rows are those of a scan without index, whatever the documents hold."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import tamis
from tamis.engine.secondary_index import index_segments, indexed_paths
from tamis.engine.secondary_index.index_coverage import OLDER
from tamis.engine.secondary_index.index_definition import define_index
from tamis.engine.secondary_index.indexed_paths import split_definitions
from tamis.errors import InvalidInput, NotFound
from tests.secondary_index.tables import delete, failing, ids, info, same, table_a, used
from tests.stats.document_paths import variants

ODD = [
    None,
    "null",
    "7",
    '"text"',
    "[1]",
    "{}",
    '{"user": 3}',
    '{"user": {"id": null}}',
    '{"user": {"id": "12"}}',
    '{"user": {"id": 2.5}}',
]
WORSE = [
    '{"user": {"id": "x"}}',
    '{"user": {"id": [1]}}',
    '{"user": {"id": 99999999999999999999}}',
    '{"user": {"id": true}}',
]
FILTERS = [
    "v:user.id::bigint = 131",
    "v:user.id::bigint IN (5, 200, 7000)",
    "try_variant_get(v, '$.user.id', 'bigint') = 12",
    "try_variant_get(v, '$[\"user\"].id', 'bigint') BETWEEN 40 AND 60",
    "try_variant_get(v, '$.user.id', 'bigint') IS NULL",
    "v:user.name::string = 'n17'",
    "get_json_object(s, '$.user.id') = '131'",
    "CAST(get_json_object(s, '$.user.id') AS STRING) LIKE '13%'",
    "get_json_object(s, '$.user.id') IS NULL AND k > 10",
    "get_json_object(s, '$.user.name') = 'n3' OR k = 4",
]


def load(number: int, odd: Any = ()) -> pa.Table:
    texts = [
        json.dumps({"user": {"id": 3 * i + number, "name": f"n{i}"}, "fill": "x" * 40}) for i in range(300)
    ] + list(odd)
    return pa.table(
        {
            "k": pa.array(range(number * 1_000, number * 1_000 + len(texts)), pa.int64()),
            "s": pa.array(texts, pa.string()),
            "v": variants(texts),
        }
    )


def table_of(path: Path, odd: Any = ()) -> tamis.Table:
    table = tamis.create(path, load(0, odd).schema)
    for number in range(3):
        table.append(load(number, odd))
    return table


@pytest.fixture(scope="module")
def t(tmp_path_factory: pytest.TempPathFactory) -> tamis.Table:
    table = table_of(tmp_path_factory.mktemp("paths") / "t", ODD)
    table.create_index("iv", "v:user.id::bigint")
    table.create_index("is", ["s:user.id", "k"])
    table.create_index("in", "v:user.name::string")
    return table


@pytest.mark.push_cases(10)
@pytest.mark.parametrize("use", ["auto", "lookup", "plan"])
@pytest.mark.parametrize("row_filter", FILTERS)
def test_rows_are_those_of_a_scan_without_index(t: tamis.Table, row_filter: str, use: str) -> None:
    report = same(t, row_filter, options={"tamis.index.use": use, "timezone": "Europe/Paris"})
    assert used(report) or use == "auto" or "$.user.name" in row_filter


def test_a_path_prunes(t: tamis.Table) -> None:
    report = same(t, "v:user.id::bigint = 131", ("k",))
    assert (used(report), report.parts.skipped_index) == ({"iv": (3, 0)}, 2)
    report = same(t, "get_json_object(s, '$.user.id') = '131'", ("k",))
    assert used(report) == {"is": (3, 0)}
    assert report.bytes.leader + report.bytes.follower == 0, "no entry is flagged: rows come from the index alone"
    assert used(same(t, "v:user.id::int = 131")) == {}, "another type is another path"
    assert used(same(t, "v:user.other::bigint = 131")) == {}


def test_values_without_a_cast_are_candidates(tmp_path: Path) -> None:
    """They raise the error that a scan without index raises; try_ gives NULL."""
    table = table_of(tmp_path / "t", WORSE)
    table.create_index("iv", "v:user.id::bigint")
    for use in ("off", "lookup", "plan"):
        with pytest.raises(InvalidInput):
            table.scan("v:user.id::bigint = 131", options={"tamis.index.use": use}).to_arrow()
        report = same(table, "try_variant_get(v, '$.user.id', 'bigint') IS NULL", options={"tamis.index.use": use})
        assert report.rows.matched > 0
    assert used(same(table, "try_variant_get(v, '$.user.id', 'bigint') = 131")) == {"iv": (3, 0)}


def test_a_further_column_does_not_hide_a_cast_that_fails(tmp_path: Path) -> None:
    """The row with the error is not among those of the further column's value: the path comes first."""
    table = table_of(tmp_path / "t", WORSE)
    table.create_index("ivk", ["v:user.id::bigint", "k"])
    for row_filter in ("v:user.id::bigint = 131 AND k = 3", "k >= 0 AND v:user.id::bigint = 131 AND k = 3"):
        for use in ("off", "lookup", "plan", "auto"):
            with pytest.raises(InvalidInput, match="FILTER_FAILED"):
                table.scan(row_filter, options={"tamis.index.use": use}).to_arrow()
    for row_filter in (
        "k = 43 AND v:user.id::bigint = 129",
        "try_variant_get(v, '$.user.id', 'bigint') = 129 AND k = 43",
    ):
        report = same(table, row_filter, options={"tamis.index.use": "lookup"})
        assert (report.rows.matched, set(used(report))) == (1, {"ivk"})
        assert report.rows.leader == 1, "both columns of the index are used"


def test_texts_that_depend_on_the_time_zone_are_not_sure(tmp_path: Path) -> None:
    table = tamis.create(tmp_path / "t")
    table.append(pa.table({"v": variants(['{"a": "2024-01-01 00:00:00"}', '{"a": "x"}', '{"a": 1}']), "k": [1, 2, 3]}))
    table.create_index("ia", ["v:a::string"])
    table.create_index("it", ["v:a::timestamp"])
    for zone in ("UTC", "America/New_York"):
        for row_filter in (
            "v:a::string = 'x'",
            "try_variant_get(v, '$.a', 'timestamp') = TIMESTAMP '2024-01-01 00:00:00'",
        ):
            report = same(table, row_filter, options={"timezone": zone, "tamis.index.use": "lookup"})
            assert report.rows.matched == 1, (zone, row_filter)


NUMBERS = ['{"a": 2E23}', '{"a": 7.9248121131225648E16}', '{"a": 1.5}', '{"a": "2E23"}', '{"a": 12}']
"""The first two have other texts in Java 17 than in Java 19; Spark has the last word about them."""


def test_texts_that_depend_on_java_are_not_sure(tmp_path: Path) -> None:
    held = {"s": pa.array(NUMBERS), "v": variants(NUMBERS)}
    table = tamis.create(tmp_path / "t")
    table.append(pa.table(held))
    head = table.snapshot.head
    assert head.schema is not None
    for path, doubt in (
        ("s:a", [True, True, False, False, False]),
        ("v:a::string", [True, True, False, False, False]),
        ("v:a::double", [False] * 5),
    ):
        index = define_index(head, "i", [path], "with_write", 1)
        call = indexed_paths.path_expression(index, index.columns[0], head.schema)
        values, unsure = indexed_paths.path_values(call, {index.columns[0][0]: held[path[0]]}, 5)
        assert (unsure.tolist(), values.is_null().to_pylist()) == (doubt, doubt), path


def test_such_rows_are_candidates_and_rows_come_from_the_table(tmp_path: Path) -> None:
    table = tamis.create(tmp_path / "t")
    table.append(pa.table({"s": NUMBERS, "k": range(5)}))
    table.create_index("is", ["s:a", "k"])
    report = same(table, "get_json_object(s, '$.a') = '1.5'", ("k",), options={"tamis.index.use": "lookup"})
    assert (report.rows.matched, report.rows.leader) == (1, 3)
    assert report.bytes.leader > 0


def test_entries_of_an_earlier_release_answer_for_no_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Theirs were never flagged: what is missing is made anew by a repair."""
    table = table_of(tmp_path / "t")
    with monkeypatch.context() as earlier:
        earlier.setattr(index_segments, "SCHEME", 0)
        table.create_index("is", ["s:user.id", "k"])
        table.create_index("ik", ["k"])
    assert used(same(table, "get_json_object(s, '$.user.id') = '131'")) == {}
    assert set(info(table, "is").missing.values()) == {OLDER}
    assert used(same(table, "k = 131")) == {"ik": (1, 0)}
    table.drop_index_segments("is", [ids(table)[0]])
    assert len(info(table, "is").missing) == 3
    table.repair_index("is")
    assert used(same(table, "get_json_object(s, '$.user.id') = '131'")) == {"is": (3, 0)}


def test_entries_of_json_text_of_earlier_releases_are_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are NULL for documents with an escaped single quote; those of a VARIANT are used."""
    table = table_of(tmp_path / "t")
    with monkeypatch.context() as earlier:
        earlier.setattr(index_segments, "SCHEME", 2)
        table.create_index("is", ["s:user.id", "k"])
        table.create_index("iv", "v:user.id::bigint")
    assert used(same(table, "get_json_object(s, '$.user.id') = '131'")) == {}
    assert used(same(table, "try_variant_get(v, '$.user.id', 'bigint') = 131")) == {"iv": (3, 0)}
    table.repair_index("is")
    assert used(same(table, "get_json_object(s, '$.user.id') = '131'")) == {"is": (3, 0)}


def test_life_of_a_path(tmp_path: Path) -> None:
    table = table_of(tmp_path / "t")
    with failing(), pytest.raises(tamis.errors.StoreUnavailable):
        table.create_index("iv", "v:user.id::bigint")
    assert len(info(table, "iv").missing) == 3
    table.repair_index("iv")
    assert info(table, "iv").columns == ("v:user.id::bigint",)
    with pytest.raises(InvalidInput, match="iv"):
        table.alter().drop_column("v").commit()
    table.alter().rename_column("v", "doc").commit()
    assert info(table, "iv").columns == ("doc:user.id::bigint",)
    assert delete(table, "k = 43") == 1
    table.append(load(3).rename_columns(["k", "s", "doc"]))
    assert info(table, "iv").missing == {}
    report = same(table, "doc:user.id::bigint = 129")
    assert (report.rows.matched, used(report)["iv"][1]) == (1, 0), "one of the two was deleted"
    again = tamis.open(table.path)
    assert used(same(again, "doc:user.id::bigint = 129"))["iv"][0] == len(ids(again))
    table.compact()
    assert same(table, "doc:user.id::bigint = 129").rows.matched == 1


@pytest.mark.parametrize(
    ("columns", "error", "message"),
    [
        ("v:user.id", InvalidInput, "Give a type"),
        ("s:user.id::int", InvalidInput, "Leave the type out"),
        ("k:user", (InvalidInput, NotFound), "k"),
        ("w:user::int", NotFound, "w"),
        (["v:user.id::int", "variant_get(v, '$[\"user\"].id', 'int')"], InvalidInput, "Duplicate column"),
        ("v", InvalidInput, "no order"),
    ],
)
def test_what_is_no_path(t: tamis.Table, columns: Any, error: Any, message: str) -> None:
    with pytest.raises(error) as caught:
        t.create_index("bad", columns)
    assert message in f"{caught.value} {caught.value.remedy}"
    assert "bad" not in [i.name for i in t.indexes()]


def test_lists_of_columns_as_text() -> None:
    assert split_definitions("a, b:c::decimal(10,2) ,`d,e`, get_json_object(s, '$.a,b')") == [
        "a",
        "b:c::decimal(10,2)",
        "`d,e`",
        "get_json_object(s, '$.a,b')",
    ]


def test_plain_indexes_say_nothing_of_paths(tmp_path: Path) -> None:
    table = table_a(tmp_path / "t", ("ik", "k"), segments=1)
    assert table.snapshot.head.indexes[0].paths == ()
