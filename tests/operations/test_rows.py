"""Delete, update, merge and upsert: what is read, what is written, what is refused; and what two of them at once come to."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import tamis
from tamis.engine import operations
from tamis.engine.scan import Options
from tamis.errors import Conflict, InvalidInput, NotFound, SchemaMismatch, TamisError
from tamis.spark.write import dml_by_path
from tamis.storage.commit_log import Snapshot, load
from tamis.table.scan_request import parse_filter, parse_values

SCHEMA = pa.schema(
    [
        pa.field("id", pa.int64(), nullable=False),
        ("v", pa.int32()),
        ("s", pa.string()),
        ("at", pa.timestamp("us", tz="UTC")),
    ]
)


def rows(*ids: int, **values: Any) -> pa.Table:
    return pa.Table.from_pylist(
        [{"id": i, "v": i % 10, "s": f"s{i}", "at": None, **values} for i in ids], schema=SCHEMA
    )


@pytest.fixture
def table(tmp_path: Path) -> tamis.Table:
    """Three segments of ten rows."""
    made = tamis.create(tmp_path / "t", SCHEMA)
    for first in (0, 10, 20):
        made.append(rows(*range(first, first + 10)))
    return made


def ids(table: tamis.Table, text: str | None = None) -> list[int]:
    return sorted(table.scan(text).to_arrow()["id"].to_pylist())


def test_what_matches_wholly_goes_by_metadata(table: tamis.Table) -> None:
    for path in (Path(table.path) / "data").iterdir():
        path.write_bytes(b"")  # nothing may be read
    result = table.delete("id < 20")
    assert (
        result.rows_deleted,
        result.parts_removed,
        result.parts_read,
        result.parts_thinned,
        result.bytes_written,
    ) == (20, 2, 0, 0, 0)
    assert table.snapshot.commit.remove_parts == ()  # whole segments
    assert table.scan().count() == 10
    assert table.delete("id > 100").version == result.version  # nothing to do, nothing committed
    assert table.delete(all_rows=True).rows_deleted == 10
    assert table.detail()["num_parts"].to_pylist() == [0]


def test_what_matches_in_part_is_read_by_its_leaders(table: tamis.Table) -> None:
    result = table.delete("id BETWEEN 8 AND 11")
    assert (result.rows_deleted, result.parts_removed, result.parts_read, result.parts_thinned, result.parts_added) == (
        4,
        0,
        2,
        2,
        0,
    )
    assert ids(table) == [*range(8), *range(12, 30)]
    assert dict(table.history()["metrics"][0].as_py())["parts_read"] == 2
    assert "id" in table.history()["filter"][0].as_py()


@pytest.mark.parametrize(
    ("verb", "filter_text"),
    [
        pytest.param(lambda of: of.delete("id = 8"), "id = 8", id="delete"),
        pytest.param(lambda of: of.update({"v": "v + 1"}, "id = 8"), "id = 8", id="update"),
        pytest.param(lambda of: of.upsert(rows(8), on=["id"]), "id", id="upsert"),
        pytest.param(lambda of: of.overwrite(rows(8), "id = 8"), "id = 8", id="overwrite"),
    ],
)
def test_what_a_verb_looked_at_is_told(
    table: tamis.Table, verb: Callable[[tamis.Table], Any], filter_text: str
) -> None:
    """Verbs report as scans do: bytes in the result and in the history, the funnel in a report."""
    scan = table.scan("id = 8", ["id"])
    scan.to_arrow()
    result = verb(table)
    report = next(r for r in tamis.reports(1_000) if r.table == table.path and r is not scan.report)
    assert report.filter is not None
    assert filter_text in report.filter.replace("`", "")
    assert dict(report.parts)["kept"] == result.parts_read == 1
    assert (report.parts["total"], report.parts["skipped_segment"] + report.parts["skipped_stats"]) == (3, 2)
    assert result.bytes_read == report.bytes["leader"] + report.bytes["follower"] + report.bytes["index"] > 0
    assert dict(table.history()["metrics"][0].as_py())["bytes_read"] == result.bytes_read
    if result.rows_deleted and not result.parts_added:  # a delete
        assert result.bytes_read <= 1.1 * (scan.report.bytes["leader"] + scan.report.bytes["follower"])


def test_a_delete_by_metadata_is_answered(table: tamis.Table) -> None:
    assert table.delete("id < 20").bytes_read == 0
    report = next(r for r in tamis.reports(1_000) if r.table == table.path)
    assert (report.parts["answered"], report.parts["kept"], report.bytes["leader"]) == (2, 0, 0)


def test_null_is_not_true(table: tamis.Table) -> None:
    table.append(rows(30, v=None))
    assert table.delete("v >= 0 OR v < 0").rows_deleted == 30
    assert table.update({"s": "'x'"}, "v > 0").rows_updated == 0
    assert ids(table) == [30]


def test_an_error_on_a_deleted_row_is_none(table: tamis.Table) -> None:
    with pytest.raises(InvalidInput) as caught:
        table.delete("10 / v > 9")
    assert (caught.value.code, table.version) == ("FILTER_FAILED", 3)
    table.delete("v = 0")
    assert table.delete("10 / v > 9").rows_deleted == 3


def test_values_see_the_row_as_it_was(table: tamis.Table) -> None:
    result = table.update(
        {"v": "id + 1", "s": "concat(s, CAST(v AS STRING))", "at": "TIMESTAMP '2026-01-01 00:00:00'"}, "id IN (3, 14)"
    )
    assert (result.rows_updated, result.parts_thinned, result.parts_added) == (2, 2, 1)
    found = table.scan("id IN (3, 14)", ["id", "v", "s"]).to_arrow().to_pylist()
    assert found == [{"id": 3, "v": 4, "s": "s33"}, {"id": 14, "v": 15, "s": "s144"}]
    assert table.update({"v": 7}, all_rows=True).rows_updated == 30
    assert set(table.scan().to_arrow()["v"].to_pylist()) == {7}
    assert tamis.open(table.path, version=3).scan("id = 3").to_arrow()["s"].to_pylist() == ["s3"]


REFUSED: list[tuple[Callable[[tamis.Table], Any], type[TamisError], str]] = [
    (lambda t: t.update({"nope": "1"}, all_rows=True), NotFound, "COLUMN_NOT_FOUND"),
    (lambda t: t.update({}, all_rows=True), InvalidInput, "BAD_VALUES"),
    (lambda t: t.update({"v": object()}, all_rows=True), InvalidInput, "BAD_VALUES"),
    (lambda t: t.update({"v": "s"}, all_rows=True), SchemaMismatch, "UNSAFE_CAST"),
    (lambda t: t.update({"v": "my_udf(s)"}, all_rows=True), InvalidInput, "UNKNOWN_FUNCTION"),
    (lambda t: t.update({"v": "sum(v)"}, all_rows=True), InvalidInput, "NO_PLACE"),
    (lambda t: t.update({"v": "id * 1000000000"}, all_rows=True), InvalidInput, "VALUE_FAILED"),
    (lambda t: t.update({"id": None}, all_rows=True), SchemaMismatch, "NULL_IN_REQUIRED"),
    (lambda t: t.delete("my_udf(s)"), InvalidInput, "UNKNOWN_FUNCTION"),
    (lambda t: t.delete("id +"), InvalidInput, "PARSE_ERROR"),
    (lambda t: t.upsert(rows(1, 1), on=["id"]), InvalidInput, "DUPLICATE_KEYS"),
    (lambda t: t.upsert(rows(1), on=[]), InvalidInput, "BAD_COLUMN"),
    (lambda t: t.upsert(rows(1), on="nope"), InvalidInput, "BAD_COLUMN"),
    (lambda t: t.merge(rows(1), "target.id = source.id").execute(), InvalidInput, "BAD_MERGE"),
    (
        lambda t: t.merge(rows(1), "target.id > source.id").when_matched_delete().execute(),
        InvalidInput,
        "MERGE_WITHOUT_KEY",
    ),
    (lambda t: t.merge(rows(1), "target.id = source.x").when_matched_delete().execute(), NotFound, "COLUMN_NOT_FOUND"),
    (
        lambda t: t.merge(rows(1), "target.id = source.id").when_not_matched_insert({"id": "target.v"}).execute(),
        InvalidInput,
        "BAD_MERGE",
    ),
    (
        lambda t: t.merge(rows(1, 1), "target.id = source.id").when_matched_update().execute(),
        InvalidInput,
        "MERGE_CARDINALITY_VIOLATION",
    ),
    (lambda t: tamis.open(t.path, version=1).delete("id = 1"), InvalidInput, "PINNED"),
]


@pytest.mark.push_cases(7)
@pytest.mark.parametrize(("call", "kind", "code"), REFUSED, ids=[f"{i} {case[2]}" for i, case in enumerate(REFUSED)])
def test_refused_by_name_and_nothing_changed(
    table: tamis.Table, call: Callable[[tamis.Table], Any], kind: type[TamisError], code: str
) -> None:
    with pytest.raises(kind) as caught:
        call(table)
    assert caught.value.code == code
    assert load(table.store).version == 3
    assert ids(table) == list(range(30))


def test_a_row_may_be_deleted_by_two(table: tamis.Table) -> None:
    assert table.merge(rows(1, 1, 2), "target.id = source.id").when_matched_delete().execute().rows_deleted == 2


def test_upsert_touches_only_parts_that_can_match(table: tamis.Table) -> None:
    result = table.upsert(pa.table({"ID": [12, 13, 99], "s": ["x", "y", "z"]}), on=["id"])
    assert (result.rows_updated, result.rows_inserted, result.parts_read, result.parts_thinned) == (2, 1, 1, 1)
    found = {r["id"]: (r["v"], r["s"]) for r in table.scan("id >= 12").to_arrow().to_pylist()}
    assert (found[12], found[13], found[99]) == ((2, "x"), (3, "y"), (None, "z"))


ONLY = "target.id = source.id AND target.v >= 5"
# What a merge of the rows 3, 7 and 40 does to the table by a condition that names the target alone too: 3 is no match.
BY_TARGET: list[Any] = [
    pytest.param(lambda m: m.when_not_matched_by_source_delete(), [7], (0, 0, 29), id="the unmatched go"),
    pytest.param(
        lambda m: m.when_matched_delete().when_not_matched_by_source_update({"v": "-1"}),
        [*range(7), *range(8, 30)],
        (0, 29, 1),
        id="the matched go",
    ),
    pytest.param(
        lambda m: m.when_not_matched_insert().when_not_matched_by_source_delete(),
        [3, 7, 40],
        (2, 0, 29),
        id="the source's unmatched come",
    ),
]


@pytest.mark.parametrize(("clauses", "left", "counts"), BY_TARGET)
def test_the_condition_holds_of_rows_that_are_read_for_another_clause(
    table: tamis.Table, clauses: Callable[[Any], Any], left: list[int], counts: tuple[int, int, int]
) -> None:
    result = clauses(table.merge(rows(3, 7, 40), ONLY)).execute()
    assert ids(table) == left
    assert (result.rows_inserted, result.rows_updated, result.rows_deleted) == counts


@pytest.mark.parametrize("on", ["id", "t.id = s.id", "target.id = s.id"])
def test_a_merge_says_how_it_names_columns(table: tamis.Table, on: str) -> None:
    with pytest.raises(NotFound, match=r"target\.x and source\.x.*upsert") as caught:
        table.merge(rows(1), on=on).when_matched_delete().execute()
    assert caught.value.code == "COLUMN_NOT_FOUND"


@pytest.mark.parametrize("given", ["reader", "stream"])
def test_a_merge_of_a_stream_runs_once(table: tamis.Table, given: str) -> None:
    """The second reader of a stream finds no rows, and NOT MATCHED BY SOURCE would take all of the table's."""

    class Stream:
        def __init__(self) -> None:
            self.rows = rows(1, 2).to_reader()

        def __arrow_c_stream__(self, requested: object = None) -> object:
            return self.rows.__arrow_c_stream__(requested)

    source = rows(1, 2).to_reader() if given == "reader" else Stream()
    merge = table.merge(source, "target.id = source.id").when_matched_update().when_not_matched_by_source_delete()
    assert merge.execute().rows_updated == 2
    with pytest.raises(InvalidInput, match="is a stream, and has been read before") as caught:
        merge.execute()
    assert (caught.value.code, table.scan().count()) == ("BAD_DATA", 2)
    with pytest.raises(InvalidInput, match="read before"):
        merge.when_not_matched_insert().execute()


@pytest.mark.parametrize(
    "held",
    [
        lambda data: data,
        lambda data: data.combine_chunks().to_batches()[0],
        lambda data: data.to_pandas(),
        lambda data: pytest.importorskip("polars").from_arrow(data),
    ],
    ids=["table", "batch", "pandas", "polars"],
)
def test_a_merge_of_rows_that_are_held_runs_again(table: tamis.Table, held: Callable[[pa.Table], Any]) -> None:
    source = held(rows(1, 2).select(["id"]))
    merge = table.merge(source, "target.id = source.id").when_matched_update({"v": "target.v + 1"})
    for _ in range(2):
        assert merge.execute().rows_updated == 2
    assert table.scan("id IN (1, 2)", "v").to_arrow().column(0).to_pylist() == [3, 4]


def test_keys_compare_as_in_spark(tmp_path: Path) -> None:
    table = tamis.create(tmp_path / "f")
    nan = float("nan")
    table.append(pa.table({"k": [0.0, nan, None, 1.0], "n": [1, 2, 3, 4]}))
    result = table.upsert(pa.table({"k": pa.array([-0.0, nan, None, 5.0]), "n": [10, 20, 30, 50]}), on=["k"])
    assert (result.rows_updated, result.rows_inserted) == (2, 2)
    assert sorted(table.scan().to_arrow()["n"].to_pylist()) == [3, 4, 10, 20, 30, 50]


@pytest.mark.parametrize(
    "keys",
    [
        pytest.param(pa.array([-0.0, 0.0]), id="both zeros"),
        pytest.param(
            pa.array(np.array([0x7FF8000000000000, 0xFFF8000000000001], np.uint64).view(np.float64)), id="two NaNs"
        ),
        pytest.param(pa.array([-0.0, 0.0], pa.float32()), id="both zeros, of a FLOAT"),
        pytest.param(pa.array(["a", "a "]), id="padded to one"),
    ],
)
def test_keys_that_compare_as_one_are_there_twice(tmp_path: Path, keys: pa.Array) -> None:
    kind = pa.field("k", keys.type, metadata={b"tamis:type": b"char(4)"} if keys.type == pa.string() else None)
    table = tamis.create(tmp_path / "t", pa.schema([kind, ("v", pa.int64())]))
    with pytest.raises(InvalidInput) as caught:
        table.upsert(pa.table({"k": keys, "v": [1, 2]}), on=["K"])
    assert (caught.value.code, table.version) == ("DUPLICATE_KEYS", 0)


@pytest.mark.parametrize("kind", ["varchar(4)", "char(4)"])
def test_text_of_a_length_is_a_key(tmp_path: Path, kind: str) -> None:
    schema = pa.schema([pa.field("k", pa.string(), metadata={b"tamis:type": kind.encode()}), ("v", pa.int64())])
    table = tamis.create(tmp_path / "t", schema)
    table.append(pa.table({"k": ["a", "b"], "v": [1, 2]}))
    result = table.upsert(pa.table({"k": ["b", "c", None], "v": [20, 30, 40]}), on="k")
    assert (result.rows_updated, result.rows_inserted) == (1, 2)
    merge = table.merge(
        pa.table({"k": ["a".ljust(4 if kind == "char(4)" else 1), "b.", "é"], "v": [1, 2, 3]}), "target.k = source.k"
    )
    assert merge.when_matched_delete().execute().rows_deleted == 1
    assert [
        (r["k"].rstrip() if r["k"] else None, r["v"]) for r in table.scan(order_by="v", limit=9).to_arrow().to_pylist()
    ] == [
        ("b", 20),
        ("c", 30),
        (None, 40),
    ]
    with pytest.raises((InvalidInput, SchemaMismatch)):
        table.upsert(pa.table({"k": ["b   !"], "v": [0]}), on="k")


@pytest.mark.parametrize(
    "late",
    [
        lambda m: m.when_matched_delete().when_matched_update(),
        lambda m: (
            m.when_not_matched_insert()
            .when_matched_delete()
            .when_not_matched_insert({"id": "source.id"}, condition="source.id > 3")
        ),
        lambda m: m.when_not_matched_by_source_delete().when_not_matched_by_source_update({"v": "1"}),
    ],
)
def test_a_clause_that_can_take_no_row_is_refused(table: tamis.Table, late: Callable[[Any], Any]) -> None:
    with pytest.raises(InvalidInput, match="takes no row") as caught:
        late(table.merge(rows(1), "target.id = source.id"))
    assert caught.value.code == "BAD_MERGE"


def test_clauses_stand_by_kind_as_spark_has_them(table: tamis.Table) -> None:
    merge = (
        table.merge(rows(1), "target.id = source.id")
        .when_not_matched_by_source_delete(condition="target.v = 1")
        .when_not_matched_insert()
    )
    merge = (
        merge.when_matched_delete(condition="target.v = 2")
        .when_not_matched_by_source_delete()
        .when_matched_update({"v": "source.v"})
    )
    assert dml_by_path.merge_clauses_sql(merge.clauses).split(" WHEN ") == [
        "WHEN MATCHED AND (target.v = 2) THEN DELETE",
        "MATCHED THEN UPDATE SET `v` = source.v",
        "NOT MATCHED THEN INSERT *",
        "NOT MATCHED BY SOURCE AND (target.v = 1) THEN DELETE",
        "NOT MATCHED BY SOURCE THEN DELETE",
    ]


def test_keys_may_be_expressions(table: tamis.Table) -> None:
    source = pa.table({"name": ["S3", "S25", "S77"], "n": [1, 2, 3]})
    result = (
        table.merge(source, "upper(target.s) = source.name AND target.id >= 10")
        .when_matched_update({"v": "source.n"})
        .execute()
    )
    assert (result.rows_updated, result.rows_inserted) == (1, 0)
    assert table.scan("id = 25").to_arrow()["v"].to_pylist() == [2]


# --- two at once: mine starts from the version before theirs ---

Run = Callable[[tamis.Table, Snapshot], Any]


def deleting(text: str) -> Run:
    return lambda t, at: operations.delete(t.store, at, parse_filter(text, at.head.schema, Options())[0], Options())


def updating(text: str) -> Run:
    def run(t: tamis.Table, at: Snapshot) -> Any:
        values = parse_values({"v": "v + 1"}, at.head.schema, Options())
        return operations.update(t.store, at, values, parse_filter(text, at.head.schema, Options())[0], Options())

    return run


def upserting(*keys: int) -> Run:
    def run(t: tamis.Table, at: Snapshot) -> Any:
        clauses = operations.MergeClause("matched", "update"), operations.MergeClause("not matched", "insert")
        condition = "target.id = source.id"
        return operations.merge_once(t.store, at, rows(*keys, v=-1), condition, clauses, Options())

    return run


def appending(*keys: int) -> Run:
    return lambda t, at: operations.append(t.store, at, at.head, rows(*keys).to_reader(), Options())


def overwriting(text: str) -> Run:
    return lambda t, at: operations.overwrite(
        t.store, at, at.head, rows().to_reader(), parse_filter(text, at.head.schema, Options())[0], Options()
    )


PAIRS: dict[str, tuple[Run, Run, str | None]] = {
    "delete, delete of other rows of the part": (deleting("id = 3"), deleting("id = 4"), None),
    "delete, delete of the same row": (deleting("id = 3"), deleting("id < 5"), "CONFLICT_ROWS"),
    "delete, delete of the whole part": (deleting("id = 3"), deleting("id < 10"), "CONFLICT_REMOVED"),
    "delete of the whole part, delete of a row of it": (deleting("id < 10"), deleting("id = 3"), "CONFLICT_REMOVED"),
    "delete, delete of another part": (deleting("id = 3"), deleting("id = 13"), None),
    "delete, append that may match": (deleting("v = 3"), appending(43), "CONFLICT_READ"),
    "delete, append that cannot match": (deleting("id = 3"), appending(43), None),
    "delete, update of other rows": (deleting("id = 3"), updating("id = 4"), None),
    "delete, update of the same row": (deleting("id = 3"), updating("id = 3"), "CONFLICT_ROWS"),
    "update, update of other rows of the part": (updating("id = 3"), updating("id = 4"), None),
    "update, update of the same row": (updating("id = 3"), updating("id = 3"), "CONFLICT_ROWS"),
    "update, update whose rows now match": (updating("v = 4"), updating("v = 3"), "CONFLICT_READ"),
    "update, delete of the same row": (updating("id = 3"), deleting("id = 3"), "CONFLICT_ROWS"),
    "upsert, upsert of other keys": (upserting(3, 5), upserting(6, 8), None),
    "upsert, upsert of a key that was there": (upserting(3), upserting(3), "CONFLICT_ROWS"),
    "upsert, upsert of the same new key": (upserting(40), upserting(40), "CONFLICT_READ"),
    "upsert, append of its key": (upserting(40), appending(40), "CONFLICT_READ"),
    "upsert, delete of its key": (upserting(3), deleting("id = 3"), "CONFLICT_ROWS"),
    "upsert, delete of another": (upserting(3), deleting("id = 4"), None),
    "append, delete": (appending(40), deleting("true"), None),
    "overwrite, delete of what it rewrites": (overwriting("id < 15"), deleting("id = 12"), "CONFLICT_REMOVED"),
    "delete, overwrite of its part": (deleting("id = 12"), overwriting("id = 13"), "CONFLICT_REMOVED"),
}


@pytest.mark.parametrize(("mine", "theirs", "code"), PAIRS.values(), ids=PAIRS)
@pytest.mark.parametrize("between", [0, 1], ids=["next", "later"])
@pytest.mark.push_cases(5)
def test_pairs_are_as_one_after_the_other(
    table: tamis.Table, mine: Run, theirs: Run, code: str | None, between: int, tmp_path: Path
) -> None:
    base = load(table.store)
    theirs(table, base)
    for _ in range(between):
        table.append(rows(1000))
    before = ids(table), load(table.store).version
    if code is not None:
        with pytest.raises(Conflict) as caught:
            mine(table, base)
        assert caught.value.code == code
        assert (ids(table), load(table.store).version) == before
        return
    mine(table, base)
    twin = tamis.create(tmp_path / "twin", SCHEMA)  # the same, one after the other
    for first in (0, 10, 20):
        twin.append(rows(*range(first, first + 10)))
    theirs(twin, load(twin.store))
    for _ in range(between):
        twin.append(rows(1000))
    mine(twin, load(twin.store))
    assert sorted(map(repr, table.scan().to_arrow().to_pylist())) == sorted(
        map(repr, twin.scan().to_arrow().to_pylist())
    )


def test_a_verb_is_repeated_where_another_got_in_its_way(table: tamis.Table, monkeypatch: pytest.MonkeyPatch) -> None:
    other, calls = tamis.open(table.path), iter(range(2))

    def slow(*args: Any, **values: Any) -> Any:
        snapshot = load(table.store)
        if next(calls, None) is not None:
            other.append(rows(43))
        return snapshot

    monkeypatch.setattr(table, "_latest", slow)
    assert table.delete("v = 3").rows_deleted == 5


@pytest.mark.parametrize("name", ["x", "`x`", "target.x", "target.`x`"])
def test_a_merge_inserts_a_value_for_a_column_with_a_default(tmp_path: Path, name: str) -> None:
    table = tamis.create(tmp_path / "t", "id BIGINT")
    table.alter().add_column("x", "INT", default="5").commit()
    merge = table.merge(pa.table({"id": [2], "x": pa.array([7], pa.int32())}), on="target.id = source.id")
    merge.when_not_matched_insert({"id": "source.id", name: "source.x"}).execute()
    assert table.scan().to_arrow().to_pylist() == [{"id": 2, "x": 7}]
