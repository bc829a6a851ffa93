"""Changing the clustering: later writes follow it, older parts say that they do not, and no row is lost."""

from __future__ import annotations

import pyarrow as pa
import pytest

import tamis
from tamis import InvalidInput, NotFound, Table
from tamis.table.table_definition import PENDING
from tests.schema.making import BIG, INT, f, new_table, rows

BAND = [{"a": a, "b": b} for a in range(20) for b in range(20) if 15 <= a + b <= 23]
"""Rows whose first and last tuples in one order are not the corners of the other."""


def band(*cluster_by: str) -> Table:
    """Five parts, each with rows from all of the band."""
    table = new_table(f("a"), f("b"), cluster_by=list(cluster_by))
    for at in range(5):
        table.append(pa.Table.from_pylist([row for row in BAND if (row["a"] + 2 * row["b"]) % 5 == at]))
    return table


def ordered(table: Table) -> list[bool]:
    found: list[bool] = tamis.open(table.path).metadata("parts")["ordered"].to_pylist()
    return found


def keys(table: Table) -> list[str]:
    found: list[str] = tamis.open(table.path).detail()["clustering_columns"][0].as_py()
    return found


def test_a_new_clustering_sorts_what_is_written_later() -> None:
    table = new_table(f("a"), f("b"), cluster_by=["a"])
    table.append(pa.table({"a": [2, 1], "b": [1, 2]}))
    assert ordered(table) == [True]
    done = table.alter().cluster_by(["b"]).commit()
    assert (done.changes, done.fences, done.schema_id) == (("clustered by `b`",), (), 1)
    assert (keys(table), ordered(table)) == (["b"], [False])
    table.append(pa.table({"a": [5, 6], "b": [8, 7]}))
    assert rows(table) == [{"a": 1, "b": 2}, {"a": 2, "b": 1}, {"a": 6, "b": 7}, {"a": 5, "b": 8}]
    assert ordered(table) == [False, True]
    table.compact()
    assert ordered(table) == [True]
    assert [row["b"] for row in rows(table)] == [1, 2, 7, 8]


@pytest.mark.push_cases(2)
@pytest.mark.parametrize(
    ("before", "after"),
    [(("a", "b"), ("b", "a")), (("a", "b"), ()), (("b", "a"), ("a", "b")), ((), ("a", "b"))],
)
def test_filters_over_parts_of_both_orders_lose_no_row(before: tuple[str, ...], after: tuple[str, ...]) -> None:
    """Old parts are skipped by the order that they were written in, never by the table's present one."""
    table = band(*before)
    table.alter().cluster_by(after).commit()
    table.append(pa.Table.from_pylist(BAND[::7]))
    every = BAND + BAND[::7]
    for compacted in (False, True):
        if compacted:
            table.compact()
        for a, b in [(0, 19), (19, 0), (3, 12), (16, 4)]:
            for text, wanted in (
                (f"a = {a} AND b = {b}", [r for r in every if (r["a"], r["b"]) == (a, b)]),
                (f"a >= {a} AND b <= {b}", [r for r in every if r["a"] >= a and r["b"] <= b]),
                (f"b = {b} AND a < {a}", [r for r in every if r["a"] < a and r["b"] == b]),
            ):
                found = sorted(rows(table, text), key=lambda r: (r["a"], r["b"]))
                assert found == sorted(wanted, key=lambda r: (r["a"], r["b"])), (text, compacted)


def test_the_first_columns_of_the_old_clustering_keep_its_order() -> None:
    table = band("a", "b")
    table.alter().cluster_by(["a"]).commit()
    assert (keys(table), set(ordered(table))) == (["a"], {True})
    table.alter().cluster_by(["a", "b"]).commit()
    assert set(ordered(table)) == {False}, "parts may have been written by (a) alone meanwhile"


def test_no_clustering_has_no_order() -> None:
    table = band("a")
    assert table.alter().cluster_by([]).commit().changes == ("no longer clustered",)
    assert (keys(table), set(ordered(table))) == ([], {False})
    table.append(pa.table({"a": [9, 1], "b": [0, 0]}))
    assert [row["a"] for row in rows(table)][-2:] == [9, 1]
    table.alter().cluster_by("a").commit()
    assert set(ordered(table)) == {False}


def test_a_writer_of_the_old_clustering_writes_parts_that_are_not_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    """The clustering changes between a writer's look at the table and its commit."""
    table = new_table(f("a"), f("b"), cluster_by=["a"])
    seen = table._latest

    def then_changed(*arguments: object) -> object:
        snapshot = seen()
        tamis.open(table.path).alter().cluster_by(["b"]).commit()
        return snapshot

    monkeypatch.setattr(table, "_latest", then_changed)
    table.append(pa.table({"a": [1, 2], "b": [4, 3]}))
    assert (keys(table), ordered(table)) == (["b"], [False])


def test_dropping_a_column_between_shows_in_the_parts() -> None:
    table = new_table(f("a"), f("b"), f("c"), cluster_by=["a", "b", "c"])
    table.append(pa.table({"a": [1, 1], "b": [1, 2], "c": [9, 3]}))
    assert ordered(table) == [True]
    table.alter().drop_column("b").commit()
    assert ordered(table) == [False]
    table.compact()
    assert ordered(table) == [True]


def test_restored_parts_are_not_in_the_new_order() -> None:
    table = new_table(f("a"), f("b"), cluster_by=["a"])
    table.append(pa.table({"a": [1, 2], "b": [4, 3]}))
    before = table.version
    table.delete(all_rows=True)
    table.alter().cluster_by(["b"]).commit()
    table.restore(before)
    assert (len(rows(table)), ordered(table)) == (2, [False])


def test_a_change_of_clustering_with_others_is_one_commit() -> None:
    table = new_table(f("a"), f("b", INT), cluster_by=["a"])
    done = table.alter().add_column("c", BIG).rename_column("b", "d").cluster_by([("c",), "b"])
    with pytest.raises(NotFound, match="'b'"):
        done.commit()
    table.alter().add_column("c", BIG).rename_column("b", "d").cluster_by([("c",), ("d",)]).drop_column("a").commit()
    assert (keys(table), tamis.open(table.path).schema_id, tamis.open(table.path).version) == (["c", "d"], 1, 1)
    table.alter().cluster_by(["c", "d"]).commit()
    assert tamis.open(table.path).version == 1, "nothing changed"


def test_a_nested_column_may_be_a_key() -> None:
    table = new_table(f("s", pa.struct([f("x")])), f("l", pa.list_(BIG)))
    table.alter().cluster_by(["s.x"]).commit()
    table.append(pa.table({"s": [{"x": 2}, {"x": 1}], "l": [[], []]}))
    assert (keys(table), ordered(table)) == (["s.x"], [True])
    assert [row["s"]["x"] for row in rows(table)] == [1, 2]


@pytest.mark.parametrize(
    ("names", "error", "code"),
    [
        (["nosuch"], NotFound, "COLUMN_NOT_FOUND"),
        (["l"], InvalidInput, "BAD_CLUSTERING"),
        (["l.element"], InvalidInput, "BAD_CLUSTERING"),
        (["a", "A"], InvalidInput, "BAD_CLUSTERING"),
        ([1], InvalidInput, "BAD_COLUMN"),
        (None, InvalidInput, "BAD_COLUMN"),
    ],
)
def test_what_cannot_be_a_clustering_is_refused_by_name(names: object, error: type[Exception], code: str) -> None:
    table = new_table(f("a"), f("l", pa.list_(BIG)), cluster_by=["a"])
    with pytest.raises(error) as caught:
        table.alter().cluster_by(names).commit()  # type: ignore[arg-type]
    assert caught.value.code == code  # type: ignore[attr-defined]
    assert keys(table) == ["a"]


def test_a_table_without_columns_keeps_its_clustering() -> None:
    table = new_table(cluster_by=["a"])
    with pytest.raises(InvalidInput) as caught:
        table.alter().cluster_by([]).commit()
    assert caught.value.code == "NO_SCHEMA"
    assert PENDING in tamis.open(table.path).snapshot.head.properties
