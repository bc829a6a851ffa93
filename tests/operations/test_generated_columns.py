"""Generated columns: every embedded write path computes them, and what they read does not change under them."""

from __future__ import annotations

import datetime as dt
import json
from decimal import Decimal
from itertools import count
from typing import Any

import pyarrow as pa
import pytest

import tamis
from tamis.core.expr import parse_predicate
from tamis.core.pruning import decide
from tamis.core.stats import TableEvidence
from tamis.core.types import Schema
from tamis.errors import InvalidInput
from tamis.storage.commit_log import head_json, load
from tamis.table.table_definition import new_head

_names = count()
UTC = dt.UTC
DDL = "id BIGINT, ts TIMESTAMP, day DATE GENERATED ALWAYS AS (CAST(ts AS DATE)), tens BIGINT GENERATED ALWAYS AS (id div 10)"


def made(ddl: str = DDL, **given: Any) -> tamis.Table:
    return tamis.create(f"memory://generated-{next(_names)}", ddl, **given)


def noon(day: int, month: int = 1) -> dt.datetime:
    return dt.datetime(2026, month, day, 12, tzinfo=UTC)


def rows(*days: int, start: int = 0) -> pa.Table:
    ids = range(start, start + len(days))
    return pa.table({"id": pa.array(ids, pa.int64()), "ts": [noon(day) for day in days]})


def right(table: tamis.Table) -> int:
    """Check every row against its expressions, by hand; return the number of rows."""
    found = table.scan().to_arrow().to_pylist()
    for row in found:
        assert row["day"] == (None if row["ts"] is None else row["ts"].date()), row
        assert row["tens"] == (None if row["id"] is None else int(row["id"] / 10)), row
    return len(found)


@pytest.mark.push_cases(1)
@pytest.mark.parametrize("clustered", [(), ("day",), ("tens", "day")])
def test_every_verb_computes_them(clustered: tuple[str, ...]) -> None:
    table = made(cluster_by=clustered)
    table.append(rows(3, 1, 2))
    table.append(rows(3, start=10).append_column("day", pa.array([dt.date(2026, 1, 3)])))
    table.append(rows(4, start=20).append_column("day", pa.array([None], pa.date32())))
    assert right(table) == 5
    table.update({"ts": "ts + INTERVAL 40 DAYS", "id": "id + 100"}, "id < 2")
    assert right(table) == 5
    table.update({"id": "id + 1"}, all_rows=True)
    assert right(table) == 5
    table.upsert(rows(7, 8, start=103), on="id")
    assert right(table) == 7
    (
        table.merge(rows(9, 10, start=104), "target.id = source.id")
        .when_matched_update({"ts": "source.ts"})
        .when_not_matched_insert({"id": "source.id", "ts": "source.ts"})
        .execute()
    )
    assert right(table) == 8
    table.overwrite(rows(5, 6), "day = '2026-01-05' OR day = '2026-01-06'")
    assert right(table) == 10
    table.compact()
    assert right(table) == 10
    table.overwrite(rows(1))
    assert right(table) == 1
    table.restore(table.version - 1)
    assert right(table) == 10


def test_a_new_row_is_held_against_a_filter_on_the_column() -> None:
    table = made()
    with pytest.raises(tamis.InvalidInput, match="OUTSIDE_FILTER"):
        table.overwrite(rows(5), "day = '2026-01-06'")


def test_a_part_is_in_the_order_of_the_computed_column() -> None:
    table = made(cluster_by=("day",))
    table.append(rows(*range(28, 0, -1)))
    assert table.metadata("parts")["ordered"].to_pylist() == [True]
    table.update({"ts": "ts + INTERVAL 1 DAY"}, all_rows=True)
    assert table.metadata("parts")["ordered"].to_pylist() == [True]


@pytest.mark.parametrize(
    "change",
    [
        lambda t: t.append(rows(1).append_column("day", pa.array([dt.date(2020, 1, 1)]))),
        lambda t: t.overwrite(rows(1).append_column("day", pa.array([dt.date(2020, 1, 1)]))),
        lambda t: t.update({"day": "DATE'2020-01-01'"}, "id = 0"),
        lambda t: t.upsert(rows(1).append_column("day", pa.array([dt.date(2020, 1, 1)])), on="id"),
        lambda t: t.merge(rows(1), "target.id = source.id").when_matched_update({"day": "DATE'2020-01-01'"}).execute(),
    ],
)
def test_another_value_is_refused_with_both(change: Any) -> None:
    table = made()
    table.append(rows(1))
    with pytest.raises(tamis.InvalidInput) as raised:
        change(table)
    assert (raised.value.code, raised.value.name) == ("GENERATED_VALUE", "day")
    assert "2026-01-01" in raised.value.message
    assert "2020-01-01" in raised.value.message
    assert table.version == 1


def test_what_is_stored_is_the_computed_value() -> None:
    """Minus zero equals zero, so giving it is no error; the column still holds what the expression gives."""
    table = made("x DOUBLE, y DOUBLE GENERATED ALWAYS AS (abs(x))")
    table.append(pa.table({"x": [-0.0, float("nan")], "y": [-0.0, float("nan")]}))
    values = table.scan().to_arrow()["y"].to_pylist()
    assert str(values[0]) == "0.0"
    assert values[1] != values[1]


def test_a_row_on_which_the_expression_fails_is_named() -> None:
    table = made("a INT, b INT, ratio INT GENERATED ALWAYS AS (a div b)".replace("INT GEN", "BIGINT GEN"))
    with pytest.raises(tamis.InvalidInput, match=r"VALUE_FAILED.*ratio.*a = 1, b = 0"):
        table.append(pa.table({"a": pa.array([4, 1], pa.int32()), "b": pa.array([2, 0], pa.int32())}))


def test_not_null_holds_for_the_computed_value() -> None:
    table = made("id BIGINT, next BIGINT NOT NULL GENERATED ALWAYS AS (id + 1)")
    table.append(pa.table({"id": [1]}))
    assert table.scan().to_arrow().to_pylist() == [{"id": 1, "next": 2}]
    with pytest.raises(tamis.SchemaMismatch, match="NULL_IN_REQUIRED"):
        table.append(pa.table({"id": pa.array([None], pa.int64())}))


@pytest.mark.parametrize(
    ("ddl", "why"),
    [
        ("a INT, b INT GENERATED ALWAYS AS (c)", "no column 'c'"),
        ("a INT, b INT GENERATED ALWAYS AS (b + 1)", "generated itself"),
        ("a INT, b INT GENERATED ALWAYS AS (a + 1), c INT GENERATED ALWAYS AS (b + 1)", "generated itself"),
        ("a INT, b DATE GENERATED ALWAYS AS (current_date())", "must be deterministic"),
        ("a INT, b DOUBLE GENERATED ALWAYS AS (rand())", "unknown here"),
        ("a DOUBLE, b DOUBLE GENERATED ALWAYS AS (sin(a))", "unknown here"),
        ("a DOUBLE, b DOUBLE GENERATED ALWAYS AS (exp(a))", "last digits"),
        ("a INT, b STRING GENERATED ALWAYS AS (a + 1)", "Write CAST"),
        ("a BIGINT, b INT GENERATED ALWAYS AS (a + 1)", "Write CAST"),
        ("a STRING, b TIMESTAMP GENERATED ALWAYS AS (CAST(a AS TIMESTAMP))", "time of the day"),
        ("a CHAR(4), b STRING GENERATED ALWAYS AS (upper(a))", "char"),
        ("a STRING, b CHAR(4) GENERATED ALWAYS AS (upper(a))", "char"),
        ("a INT, b INT GENERATED ALWAYS AS (5)", "constant"),
        ("a ARRAY<INT>, b ARRAY<INT> GENERATED ALWAYS AS (a)", "plain type"),
        ("a STRING, b BIGINT GENERATED ALWAYS AS (hash(a))", ""),
    ],
)
def test_an_expression_that_cannot_hold_is_refused(ddl: str, why: str) -> None:
    with pytest.raises(tamis.InvalidInput, match="GENERATED_COLUMN") as raised:
        made(ddl)
    assert why in str(raised.value)


def test_it_gets_no_default() -> None:
    table = made()
    table.append(rows(1))
    for name, default in (("day", "DATE'2026-01-01'"), ("day", "CAST(NULL AS DATE)")):
        with pytest.raises(tamis.InvalidInput, match=r"GENERATED_COLUMN.*'day'.*default"):
            table.alter().set_default(name, default).commit()
    table.alter().set_default("ts", "TIMESTAMP'2026-01-05 12:00:00+00:00'").set_default("day", None).commit()
    table.refresh().append(pa.table({"id": [7]}))
    assert right(table) == 2


@pytest.mark.parametrize("text", ["INT GENERATED ALWAYS AS (id)", "BIGINT GENERATED ALWAYS AS IDENTITY"])
def test_a_new_column_of_a_table_is_not_computed(text: str) -> None:
    table = made()
    table.append(rows(1))
    with pytest.raises(tamis.InvalidInput, match=r"(GENERATED|IDENTITY)_COLUMN.*'new'.*CREATE"):
        table.alter().add_column("new", text).commit()
    with pytest.raises(tamis.InvalidInput, match=r"(GENERATED|IDENTITY)_COLUMN.*'id'"):
        table.alter().widen("id", text).commit()
    assert "new" not in table.refresh().schema.names


def test_widening_to_the_columns_type_is_exact() -> None:
    table = made("a INT, b BIGINT GENERATED ALWAYS AS (a + 1), c DECIMAL(20,2) GENERATED ALWAYS AS (a)")
    table.append(pa.table({"a": pa.array([1], pa.int32())}))
    assert [str(v) for v in table.scan().to_arrow().to_pylist()[0].values()] == ["1", "2", "1.00"]


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (lambda a: a.rename_column("ts", "at"), "GENERATED_SOURCE"),
        (lambda a: a.drop_column("ts"), "GENERATED_SOURCE"),
        (lambda a: a.rename_column("ts", "x").rename_column("id", "ts"), "GENERATED_SOURCE"),
        (lambda a: a.widen("day", "TIMESTAMP_NTZ"), "GENERATED_SOURCE"),
        (lambda a: a.rename_column("day", "date"), None),
        (lambda a: a.drop_column("day").rename_column("ts", "at"), None),
        (lambda a: a.add_column("note", "STRING").move_column("note", first=True), None),
    ],
)
def test_what_is_read_does_not_change(change: Any, code: str | None) -> None:
    table = made()
    table.append(rows(1))
    if code is None:
        change(table.alter()).commit()
        table.refresh()
        table.append(
            pa.table(
                {
                    name: rows(1)[name if name in ("id", "ts") else "ts"]
                    for name in ("id", "ts")
                    if name in table.schema.names
                }
            )
        )
        return
    with pytest.raises(tamis.IncompatibleSchema) as raised:
        change(table.alter()).commit()
    assert raised.value.code == code
    with pytest.raises(tamis.IncompatibleSchema):
        change(table.alter()).dry_run()


def test_a_registry_keeps_the_expression() -> None:
    table = made()
    table.append(rows(1))
    fields = [*table.schema, pa.field("note", pa.string())]
    table.compare_and_evolve_schema(0, pa.schema(fields))
    table.append(rows(2).append_column("note", pa.array(["x"])))
    assert right(table) == 2
    with pytest.raises(tamis.IncompatibleSchema, match="GENERATED_SOURCE"):
        table.compare_and_evolve_schema(1, pa.schema([f for f in table.schema if f.name != "ts"]))


def test_older_writers_are_kept_out_until_the_last_column_is_gone() -> None:
    table = made()
    assert table.detail()["writer_features"].to_pylist() == [["generated-columns"]]
    assert table.detail()["reader_features"].to_pylist() == [[]]
    again = head_json.head_from_json(json.loads(json.dumps(head_json.head_to_json(load(table.store).head))))
    assert again == load(table.store).head
    table.alter().drop_column("day").drop_column("tens").commit()
    assert table.detail()["writer_features"].to_pylist() == [[]]


def test_a_constraint_sees_computed_values_and_keeps_its_own_feature() -> None:
    table = made()
    table.alter().add_check("early", "day < DATE'2026-01-20'").commit()
    table.alter().add_column("note", "STRING").commit()
    assert set(table.detail()["writer_features"].to_pylist()[0]) == {"generated-columns", "check-constraints"}
    with pytest.raises(tamis.SchemaMismatch, match="CHECK_VIOLATION"):
        table.append(rows(25))
    table.append(rows(5))
    with pytest.raises(tamis.SchemaMismatch, match="CHECK_VIOLATION"):
        table.update({"ts": "ts + INTERVAL 30 DAYS"}, all_rows=True)


def test_rows_that_are_read_do_not_define_columns() -> None:
    """A table made from the rows of another has plain columns: only a definition says GENERATED."""
    table = made()
    table.append(rows(1))
    head = new_head(table.scan().to_arrow().schema, (), "parquet", {})
    assert head.schema is not None
    assert all(f.generated is None for f in head.schema)
    assert not head.writer_features


def test_a_held_schema_writes_under_the_newest() -> None:
    table = made()
    held = tamis.open(table.path)
    table.alter().rename_column("day", "date").commit()
    held.append(rows(1).append_column("day", pa.array([dt.date(2026, 1, 1)])))
    assert table.refresh().scan().to_arrow()["date"].to_pylist() == [dt.date(2026, 1, 1)]


def months(**properties: Any) -> tamis.Table:
    """Create twelve parts of a month each; the budget leaves no room for statistics of ``ts``."""
    ddl = "ts TIMESTAMP, body STRING, month INT GENERATED ALWAYS AS (month(ts)), kind STRING GENERATED ALWAYS AS (get_json_object(body, '$.kind'))"
    table_properties = {"tamis.stats.budget_bytes": "1", "tamis.stats.keep": "month, kind"} | properties
    table = made(ddl, properties=table_properties)
    for month in range(1, 13):
        body = json.dumps({"kind": f"k{month % 4}", "n": month})
        table.append(pa.table({"ts": [noon(1, month), noon(2, month)], "body": [body, body]}))
    return table


@pytest.mark.push_cases(2)
@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("ts = '2026-03-01 12:00:00'", 1),
        ("month(ts) = 3", 1),
        ("month(ts) IN (3, 5) AND body IS NOT NULL", 2),
        ("get_json_object(body, '$.kind') = 'k1'", 3),
        ("month = 3", 1),
        ("ts >= '2026-03-01'", 12),  # not monotone: other years have a March, too
    ],
)
def test_a_filter_on_the_source_skips_by_the_column(text: str, kept: int) -> None:
    table = months()
    report = table.explain(text)
    assert report.parts["kept"] == kept
    assert kept == 12 or any({"month", "kind"} & set(entry["statistic"].split(", ")) for entry in report.because)
    everything = table.scan(text, options={"tamis.stats.filter": "off"}).to_arrow()
    assert table.scan(text).to_arrow().sort_by("ts").equals(everything.sort_by("ts"))
    assert table.explain(text, options={"tamis.stats.filter": "off"}).parts["kept"] == 12


def test_clustering_by_the_column_serves_the_source() -> None:
    table = made("ts TIMESTAMP, day DATE GENERATED ALWAYS AS (CAST(ts AS DATE))", cluster_by=["day"])
    for day in range(1, 9):
        table.append(pa.table({"ts": [noon(day), noon(day + 1)]}))
    report = table.explain("ts >= '2026-01-07' AND ts < '2026-01-08'")
    assert report.parts["kept"] == 2
    audited = table.scan("ts >= '2026-01-07'", options={"tamis.audit.percent": "100"})
    assert audited.to_arrow().num_rows == 5


@pytest.mark.push_cases(2)
@pytest.mark.parametrize(
    ("text", "uses"),
    [
        ("ts >= '2026-01-07' AND ts < '2026-01-08'", True),
        ("ts = '2026-01-07 12:00:00'", True),
        ("CAST(ts AS DATE) IN ('2026-01-07')", True),
        ("ts IS NOT NULL", False),
        ("10 / (n - 5) > 1 AND ts = '2026-01-07 12:00:00'", False),  # the index would hide the error
    ],
)
def test_an_index_on_the_column_serves_the_source(text: str, uses: bool) -> None:
    table = made("n BIGINT, ts TIMESTAMP, day DATE GENERATED ALWAYS AS (CAST(ts AS DATE))")
    for start in range(4):
        days = [noon(1 + (start + 5 * k) % 28) for k in range(28)]
        table.append(pa.table({"n": list(range(100, 128)), "ts": days}))
    table.create_index("by_day", ["day"])
    report = table.explain(text, options={"tamis.index.use": "by_day", "tamis.stats.filter": "off"})
    assert bool(report.indexes) == uses
    plain = table.scan(text, options={"tamis.index.use": "off"}).to_arrow().sort_by("ts")
    found = table.scan(text, options={"tamis.index.use": "by_day"})
    assert found.to_arrow().sort_by("ts").equals(plain)
    assert not uses or len(plain) == 4


def test_a_table_shows_how_columns_are_computed() -> None:
    table = made("id BIGINT GENERATED BY DEFAULT AS IDENTITY, a INT, b INT GENERATED ALWAYS AS (a + 1)")
    computed = {row["name"]: row["computed"] for row in table.metadata("columns").to_pylist()}
    assert computed["a"] is None
    assert computed["b"] == "GENERATED ALWAYS AS (a + 1) in UTC"
    assert computed["id"] == "GENERATED BY DEFAULT AS IDENTITY (START WITH 1 INCREMENT BY 1)"
    assert "int GENERATED ALWAYS AS (a + 1) in UTC" in repr(table)


def test_a_piece_of_another_schema_says_nothing() -> None:
    """Rows of a schema without the column show NULL for it, whatever its expression gives."""
    table = made("x INT, own INT GENERATED ALWAYS AS (coalesce(x, 0))")
    schema = load(table.store).head.schema
    assert schema is not None
    before = Schema((schema.fields[0],), 0)
    after = Schema(schema.fields, 1)
    identifier = schema.fields[1].id
    pieces = pa.table(
        {
            "rows": pa.array([1, 1, 1], pa.int64()),
            "schema_id": pa.array([0, 1, None], pa.int32()),
            f"nulls.{identifier}": pa.array([1, 1, 1], pa.int64()),
        }
    )
    evidence = TableEvidence(pieces, {0: before, 1: after})
    ((_, holds),) = evidence.generated()
    assert holds.tolist() == [False, True, False]
    decision = decide([parse_predicate("x IS NULL OR x = 0", after)], evidence, strict=True)
    assert not decision.none[0]
    assert not decision.none[2]


@pytest.mark.push_cases(1)
@pytest.mark.parametrize(
    ("source", "wider", "generated", "value", "test"),
    [
        ("DATE", "TIMESTAMP_NTZ", "INT GENERATED ALWAYS AS (year(x))", dt.date(2024, 1, 1), "x >= TIMESTAMP_NTZ'2024-01-01 00:00:00'"),
        ("DATE", "TIMESTAMP_NTZ", "STRING GENERATED ALWAYS AS (CAST(x AS STRING))", dt.date(2024, 1, 1), "CAST(x AS STRING) = '2024-01-01 00:00:00'"),
        ("DECIMAL(5,2)", "DECIMAL(9,4)", "STRING GENERATED ALWAYS AS (CAST(x AS STRING))", Decimal("1.50"), "x = 1.5"),
    ],
)  # fmt: skip
def test_a_dropped_column_says_nothing_of_a_wider_source(
    source: str, wider: str, generated: str, value: Any, test: str
) -> None:
    """Parts, blocks and indexes that were written with the column have an expression of the old type."""
    rows = 140_000  # several blocks
    table = made(f"x {source}, p STRING, y {generated}")
    table.append(pa.table({"x": pa.array([value] * rows), "p": [f"p{i}" for i in range(rows)]}))
    table.alter().drop_column("y").commit()
    table.alter().widen("x", wider).commit()
    assert table.refresh().scan(f"{test} AND p <> 'p5'").count() == rows - 1


def test_a_column_that_can_no_longer_be_computed_hinders_no_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """Older releases took the arguments of trim in the other order."""
    with monkeypatch.context() as older:
        older.setattr("tamis.core.expr.binding.binder._CHARACTERS_FIRST", frozenset({"ltrim", "rtrim"}))
        table = made("s STRING, own STRING GENERATED ALWAYS AS (trim(s, 'x'))")
        table.append(pa.table({"s": ["xax", "b"]}))
    table = tamis.open(table.path)
    assert table.scan("trim('x', s) = 'a'").to_arrow().to_pylist() == [{"s": "xax", "own": "a"}]
    assert table.scan("s > 'c'").to_arrow().num_rows == 1
    with pytest.raises(InvalidInput, match="own"):
        table.append(pa.table({"s": ["c"]}))
    table.alter().drop_column("own").commit()
    table = tamis.open(table.path)
    table.append(pa.table({"s": ["c"]}))
    assert table.scan("s < 'd'").count() == 2
