"""Law of changes: version a, without what was deleted and with what was inserted, is version b. Whatever the commits between them were."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tamis
from tamis.engine.operations.rows.change_feed import cancel_copied_rows
from tamis.engine.operations.rows.row_codes import _flat, row_codes
from tamis.errors import InvalidInput, NotFound, SchemaFenced
from tests.operations.making import SCHEMA, delete_rows, filled, rows, table


def bag(rows: pa.Table) -> Counter[str]:
    return Counter(map(repr, rows.select(["ts", "user", "name"]).to_pylist()))


def applied(of: tamis.Table, a: int, b: int) -> Counter[str]:
    changes = of.changes(a, b).to_arrow()
    now = bag(of.scan(version=a).to_arrow())
    kinds = changes["_change_type"]
    import pyarrow.compute as pc

    gone, come = bag(changes.filter(pc.equal(kinds, "delete"))), bag(changes.filter(pc.equal(kinds, "insert")))
    now.update(come)
    assert all(now[row] >= count for row, count in gone.items()), "what is deleted was there"
    now.subtract(gone)
    return +now


def story() -> tamis.Table:
    of = filled(3, ("user",))
    of.overwrite(rows(10_000, 5), "ts < 30", allow_outside=True)
    of.compact()
    of.append(rows(0, 10))
    of.overwrite(rows(500, 20))
    of.restore(4)
    delete_rows(of, 7)
    delete_rows(of, 3)
    of.restore(8)
    of.compact()
    return of


@pytest.mark.slow
def test_any_two_versions() -> None:
    of = story()
    last = of.refresh().version
    for a in range(last + 1):
        for b in range(a, last + 1):
            assert applied(of, a, b) == bag(of.scan(version=b).to_arrow()), (a, b)


def test_rows_that_were_only_copied_are_not_told() -> None:
    of = filled(1, ())
    of.overwrite(rows(900, 1), "ts = 7", allow_outside=True)
    changes = of.changes(1, 2).to_arrow().to_pylist()
    assert [(r["_change_type"], r["ts"], r["_commit_version"]) for r in changes] == [
        ("delete", 7, 2),
        ("insert", 900, 2),
    ]
    assert changes[0]["_commit_timestamp"] == of.history(1)["timestamp"][0].as_py()


def test_upkeep_tells_nothing() -> None:
    of = filled(4)
    of.compact()
    assert of.changes(4).to_arrow().num_rows == 0
    assert of.changes(0).to_arrow().num_rows == 200
    assert pa.RecordBatchReader.from_stream(of.changes(3, 4)).read_all().num_rows == 50


def test_what_cannot_be() -> None:
    of = filled(2)
    with pytest.raises(InvalidInput):
        of.changes(2, 1)
    with pytest.raises(NotFound):
        of.changes(0, 9)
    empty = table()
    assert empty.changes(0).to_arrow().schema.names == [
        *SCHEMA.names,
        "_change_type",
        "_commit_version",
        "_commit_timestamp",
    ]


def test_a_column_added_under_the_name_of_a_dropped_one_ends_the_range() -> None:
    of = table()
    of.append(rows(0, 3))
    of.alter().rename_column("name", "was").rename_column("user", "name").commit()
    of.alter().rename_column("was", "user").commit()
    assert of.changes(0).to_arrow()["user"].to_pylist() == ["n0", "n1", "n2"], "renamed columns keep their values"
    of.alter().drop_column("user").commit()
    assert of.changes(0).schema.names[:2] == ["ts", "name"], "a dropped column is missing"
    of.append(pa.table({"ts": [9], "name": [9]}))
    of.alter().add_column("USER", "STRING").commit()
    of.append(pa.table({"ts": [10], "name": [9], "USER": ["new"]}))
    of.alter().add_column("more", "STRING").commit()
    for asked in ({}, {"net": True}, {"keys": ["ts"]}):
        with pytest.raises(SchemaFenced, match=r"Version 6 .*'USER'.*changes\(6\)") as error:
            of.changes(3, **asked)
        assert error.value.code == "FENCED_READD_DELETED"
    assert of.changes(4).to_arrow()["USER"].to_pylist() == [None, "new"], "from version 4 on there was no such column"
    assert of.changes(6).to_arrow()["USER"].to_pylist() == ["new"]
    assert of.changes(0, 5).to_arrow().num_rows == 4


def test_a_field_added_under_the_name_of_a_dropped_one_ends_the_range() -> None:
    of = tamis.create("memory://field-again", pa.schema([("s", pa.struct([("a", pa.int64()), ("b", pa.int64())]))]))
    of.append(pa.table({"s": [{"a": 1, "b": 2}]}))
    of.alter().drop_column("s.b").add_column("s.b", "BIGINT").commit()
    with pytest.raises(SchemaFenced, match="Version 2") as error:
        of.changes(0)
    assert (error.value.code, error.value.name) == ("FENCED_READD_DELETED", "s.b")


@pytest.mark.parametrize("name", ["_change_type", "_COMMIT_version", "_commit_timestamp"])
def test_a_column_named_as_one_of_the_feed_is_refused(name: str) -> None:
    of = tamis.create(f"memory://own{name}", pa.schema([("id", pa.int64()), (name, pa.string())]))
    of.append(pa.table({"id": [1], name: ["mine"]}))
    with pytest.raises(InvalidInput, match="Rename") as error:
        of.changes(0)
    assert (error.value.code, error.value.name) == ("RESERVED_NAME", name)
    of.alter().rename_column(name, "kind").commit()
    assert of.changes(0).to_arrow()["kind"].to_pylist() == ["mine"]


KIND = pa.struct([("a", pa.float64()), ("b", pa.list_(pa.string()))])
VALUES = st.none() | st.fixed_dictionaries(
    {"a": st.sampled_from([None, 0.0, -0.0, 1.5, float("inf")]), "b": st.sampled_from([None, [], ["x"], [None]])}
)


@given(
    st.lists(st.tuples(st.sampled_from([None, 1, 2]), VALUES)),
    st.lists(st.tuples(st.sampled_from([None, 1, 2]), VALUES)),
)
def test_net_is_the_difference_of_bags(left: list[Any], right: list[Any]) -> None:
    def made(of: list[Any]) -> pa.Table:
        return pa.table({"k": pa.array([k for k, _ in of], pa.int64()), "v": pa.array([v for _, v in of], KIND)})

    mine, theirs = Counter(map(repr, made(left).to_pylist())), Counter(map(repr, made(right).to_pylist()))
    gone, come = (Counter(map(repr, part.to_pylist())) for part in cancel_copied_rows(made(left), made(right)))
    assert (gone, come) == (mine - theirs, theirs - mine)


FAR = pa.array([-800_000, 0, 5_000_000, 2_900_000_000 // 2], pa.int32()).view(pa.date32())
"""Days before, within and beyond the years that Python knows."""


def test_lists_and_maps_of_dates_that_python_lacks_are_compared() -> None:
    places = pa.array([0, 1, 3, 3, 4], pa.int32())
    lists = pa.ListArray.from_arrays(places, FAR)
    maps = pa.MapArray.from_arrays(places, FAR, pa.array([1, 2, 3, 4], pa.int64()))
    inner = pa.StructArray.from_arrays([lists, maps], ["l", "m"])
    every = pa.table({"l": lists, "m": maps, "deep": pa.ListArray.from_arrays(places, inner)})
    gone, come = cancel_copied_rows(every, every.slice(1, 2))
    assert come.num_rows == 0
    assert gone.equals(pa.concat_tables([every.slice(0, 1), every.slice(3)]))


def test_a_commit_that_adds_and_removes_parts_may_hold_any_date() -> None:
    kind = pa.schema([("id", pa.date32()), ("l", pa.list_(pa.date32())), ("n", pa.int64())])
    of = tamis.create("memory://far-dates", kind)
    lists = pa.ListArray.from_arrays(pa.array(range(5), pa.int32()), FAR)
    of.append(pa.table({"id": FAR, "l": lists, "n": [1, 2, 3, 4]}, schema=kind))
    of.update({"n": "n + 10"}, "n >= 3")
    changes = of.changes(1, keys="id").to_arrow()
    assert changes["n"].to_pylist() == [3, 4, 13, 14]
    of.append(pa.table({"id": FAR.take(pa.array([3])), "l": lists.slice(0, 1), "n": [14]}, schema=kind))
    of.update({"n": "n + 10"}, "n = 14")
    with pytest.raises(InvalidInput, match="id = ") as error:
        of.changes(3, keys="id").to_arrow()
    assert error.value.code == "DUPLICATE_KEYS"


NESTED = pa.list_(pa.struct([("k", pa.list_(pa.int8())), ("m", pa.map_(pa.string(), pa.int8()))]))
ELEMENTS = st.none() | st.fixed_dictionaries(
    {
        "k": st.none() | st.lists(st.sampled_from([None, 0, 1]), max_size=2),
        "m": st.none() | st.lists(st.tuples(st.sampled_from("ab"), st.sampled_from([None, 1])), max_size=2),
    }
)


@given(st.lists(st.none() | st.lists(ELEMENTS, max_size=2), max_size=12), st.integers(0, 3), st.integers(1, 13))
def test_equal_codes_are_equal_nested_values(values: list[Any], skipped: int, length: int) -> None:
    """From whichever chunks they come; each has memory of its own."""
    cut = [values[start : start + length] for start in range(0, len(values), length)]
    column = pa.chunked_array([pa.array([None] * skipped + piece, NESTED).slice(skipped) for piece in cut], NESTED)
    codes = row_codes(pa.table({"v": column}))
    texts = [repr(v) for v in column.to_pylist()]
    assert [[a == b for b in texts] for a in texts] == (codes[:, None] == codes).tolist()


ENDS = pa.array(range(5), pa.int32())
SHAPES: dict[str, Callable[[pa.Array], pa.Array]] = {
    "text": lambda values: values,
    "bytes": lambda values: values.cast(pa.binary()),
    "struct": lambda values: pa.StructArray.from_arrays([values], names=["t"]),
    "list": lambda values: pa.ListArray.from_arrays(ENDS, values),
    "map": lambda values: pa.MapArray.from_arrays(ENDS, pa.array([1] * 4), values),
}


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_a_column_may_be_longer_than_an_array(shape: Callable[[pa.Array], pa.Array]) -> None:
    """Its chunks, more than 2 GiB together, are one and the same piece of memory."""
    size, count = 2**24, 45
    chunk = shape(pa.array(["a" * size, None, "b" * size, "a" * size]))
    codes = row_codes(pa.table({"v": pa.chunked_array([chunk] * count)}))
    assert [codes.tolist().index(code) for code in codes] == [0, 1, 2, 0] * count


@pytest.mark.parametrize(("narrow", "wide"), [(pa.string(), pa.large_string()), (pa.binary(), pa.large_binary())])
def test_distinct_values_may_be_longer_than_an_array(narrow: pa.DataType, wide: pa.DataType) -> None:
    """They become one dictionary, whose offsets must not be those of the column."""
    flat = _flat(pa.chunked_array([["a"], ["b", "a"]], narrow))
    assert flat.dictionary_encode().chunk(0).dictionary.type == wide
