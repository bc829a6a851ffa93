"""CHECK constraints hold on every way into a table, and keys are kept as information."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

import tamis
from tamis.engine.operations.layout import index_commits
from tamis.engine.operations.schema import evolve
from tamis.errors import Conflict, InvalidInput, SchemaMismatch
from tamis.storage.commit_log import Head, Operation, Proposal, commit, features
from tamis.storage.commit_log.head_json import head_from_json, head_to_json
from tests.operations.constrained_tables import SCHEMA, _names, checks, empty, ids, racing, rows, table


def merge(of: tamis.Table, insert: bool) -> object:
    found = of.merge(rows(1 if not insert else 9, price=-1.0), "target.id = source.id")
    found = found.when_not_matched_insert() if insert else found.when_matched_update({"price": "source.price"})
    return found.execute()


WRITES: dict[str, Callable[[tamis.Table], object]] = {
    "append": lambda of: of.append(rows(9, price=-1.0)),
    "append of batches": lambda of: of.append(
        pa.RecordBatchReader.from_batches(SCHEMA, iter([*rows(8).to_batches(), *rows(9, price=-1.0).to_batches()]))
    ),
    "overwrite": lambda of: of.overwrite(rows(9, price=-1.0)),
    "overwrite by filter": lambda of: of.overwrite(rows(1, price=-1.0), "id = 1"),
    "update": lambda of: of.update({"price": "price - 5"}, "id = 3"),
    "merge: update": lambda of: merge(of, insert=False),
    "merge: insert": lambda of: merge(of, insert=True),
    "upsert": lambda of: of.upsert(rows(2, 9, price=-1.0), on="id"),
}


@pytest.mark.push_cases(8)
@pytest.mark.parametrize("data_format", ["parquet", "orc", "vortex"])
@pytest.mark.parametrize("write", WRITES)
def test_every_write_is_refused(write: str, data_format: str) -> None:
    of = table(data_format)
    before = of.scan().to_arrow().to_pylist()
    with pytest.raises(SchemaMismatch, match=r"'sane', CHECK \(price >= 0 AND id < 1000\): price = -[14].0, id = \d"):
        WRITES[write](of)
    assert of.refresh().version == 3
    assert of.scan().to_arrow().to_pylist() == before


@pytest.mark.parametrize("write", WRITES)
def test_every_write_that_fits_is_made(write: str) -> None:
    of = empty()
    of.append(rows(1, 2, 3, 4))
    of.alter().add_check("sane", "price > -100").commit()
    WRITES[write](of)
    assert of.refresh().version == 3


def test_sorted_writes_are_tested_too() -> None:
    of = table(cluster_by=["id"])
    with pytest.raises(SchemaMismatch) as caught:
        of.append(rows(7, 5, 6, price=-2.0))
    assert (caught.value.code, caught.value.name) == ("CHECK_VIOLATION", "sane")


def test_unknown_passes() -> None:
    """As in the SQL standard and in Spark's CheckInvariant, which refuses FALSE alone."""
    of = table()
    of.append(rows(7, price=None))
    assert ids(of) == [1, 2, 3, 4, 7]
    with pytest.raises(SchemaMismatch):
        of.append(rows(1_000, price=None))  # NULL AND FALSE
    of.alter().add_check("named", "price > 0 OR price IS NULL").commit()
    with pytest.raises(SchemaMismatch, match="'named'"):
        of.append(rows(7, price=0.0))


def test_a_row_on_which_the_expression_fails_is_refused() -> None:
    of = empty()
    of.alter().add_check("ratio", "10 / n > 1").commit()
    of.append(rows(1, 2))
    with pytest.raises(SchemaMismatch, match=r"fails on a row: n = 0: \[DIVIDE_BY_ZERO\]") as caught:
        of.append(rows(2, 0))
    assert caught.value.code == "CHECK_FAILED"
    with pytest.raises(SchemaMismatch, match="CHECK_FAILED") as caught:
        of.alter().add_check("whole", "n + 2147483646 > 0").commit()
    assert of.refresh().version == 2


def test_the_first_wrong_row_is_shown_shortly() -> None:
    of = empty()
    of.alter().add_check("short", "length(name) < 5").commit()
    bad = rows(1, 2).set_column(3, "name", pa.array(["ok", "x" * 1_000]))
    with pytest.raises(SchemaMismatch, match=r"name = .x{58}…") as caught:
        of.append(bad)
    assert len(str(caught.value)) < 300


# --- adding ---


def test_a_constraint_that_rows_violate_is_not_added() -> None:
    of = empty()
    of.append(rows(1, 2))
    of.append(rows(3, price=-3.0))
    with pytest.raises(SchemaMismatch, match=r"price = -3.0"):
        of.alter().add_check("positive", "price > 0").add_column("more", "INT").commit()
    assert (of.refresh().version, checks(of), "more" in of.schema.names) == (2, [], False)
    of.delete("id = 3")
    of.alter().add_check("positive", "price > 0").commit()
    assert checks(of) == ["price > 0"]


def test_only_parts_that_may_hold_a_wrong_row_are_read() -> None:
    of = empty()
    for first in (0, 100, 200, 300):
        of.append(rows(first, first + 9))
    of.alter().add_check("low", "id < 1000").commit()
    report = tamis.reports()[0]
    assert (report.parts["total"], report.parts["kept"]) == (4, 0)
    with pytest.raises(SchemaMismatch):
        of.alter().add_check("low2", "id < 205").commit()
    assert tamis.reports()[0].parts["kept"] <= 2


def test_rows_that_come_between_the_test_and_the_commit_are_tested(monkeypatch: pytest.MonkeyPatch) -> None:
    of = empty()
    of.append(rows(1))
    other = tamis.open(of.path)
    calls = racing(monkeypatch, evolve, "commit", lambda: other.append(rows(2, price=-5.0)))
    with pytest.raises(SchemaMismatch, match=r"price = -5\.0"):
        of.alter().add_check("positive", "price > 0").commit()
    assert (len(calls), of.refresh().version, checks(of)) == (1, 2, [])


def test_rows_that_came_and_fit_are_read_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    of = empty()
    of.append(rows(*range(90, 200)))
    other = tamis.open(of.path)
    # Their bounds leave open whether they fit, so that their part must be read, and the first one not again.
    calls = racing(monkeypatch, evolve, "commit", lambda: other.append(rows(*range(2, 90))))
    of.alter().add_check("squares", "id * n % 7 <> 6").commit()
    assert (len(calls), checks(of)) == (2, ["id * n % 7 <> 6"])
    assert [r.parts["kept"] for r in tamis.reports(2)] == [1, 1]


def test_rows_that_provably_fit_do_not_delay_the_commit(monkeypatch: pytest.MonkeyPatch) -> None:
    of = empty()
    other = tamis.open(of.path)
    calls = racing(monkeypatch, evolve, "commit", lambda: other.append(rows(2, 6)))
    of.alter().add_check("low", "id < 9").commit()
    assert (len(calls), checks(of)) == (1, ["id < 9"])


def test_statistics_that_are_not_to_be_used_prove_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    of = empty(properties={"tamis.stats.filter": "off"})
    of.append(rows(1))
    other = tamis.open(of.path)
    calls = racing(monkeypatch, evolve, "commit", lambda: other.append(rows(2, 6)))
    of.alter().add_check("low", "id < 9").commit()
    assert (len(calls), checks(of)) == (2, ["id < 9"])
    assert [r.parts["kept"] for r in tamis.reports(2)] == [1, 1]


def test_two_constraints_at_once_both_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    of = empty()
    of.append(rows(1))
    other = tamis.open(of.path)
    racing(monkeypatch, evolve, "commit", lambda: other.alter().add_check("a", "id > 0").commit())
    of.alter().add_check("b", "id < 9").commit()
    assert sorted(checks(of)) == ["id < 9", "id > 0"]
    with pytest.raises(SchemaMismatch):
        of.append(rows(9))
    with pytest.raises(SchemaMismatch):
        other.append(rows(0))


# --- writers that do not know it yet ---


def test_an_append_under_an_older_head_does_not_land(monkeypatch: pytest.MonkeyPatch) -> None:
    of = empty()
    other = tamis.open(of.path)
    racing(monkeypatch, index_commits, "commit", lambda: other.alter().add_check("positive", "price > 0").commit())
    with pytest.raises(Conflict) as caught:
        of.append(rows(1, price=-1.0))
    assert (caught.value.code, caught.value.name) == ("CONFLICT_CONSTRAINT", "positive")
    assert ids(of.refresh()) == []
    of.append(rows(1))
    assert ids(of) == [1]


@pytest.mark.parametrize("verb", ["update", "merge: update", "upsert"])
def test_a_row_change_under_an_older_head_is_made_again(verb: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for check, fits in (("price > -100", True), ("price > 0", False)):
        of = empty()
        of.append(rows(1, 2, 3, 4))
        other = tamis.open(of.path)
        with monkeypatch.context() as patched:
            late = other.alter().add_check("late", check)
            racing(patched, index_commits, "commit", late.commit)
            if fits:
                WRITES[verb](of)
            else:
                with pytest.raises(SchemaMismatch, match="'late'"):
                    WRITES[verb](of)
        assert of.refresh().version == (3 if fits else 2)


def test_an_overwrite_under_an_older_head_does_not_land(monkeypatch: pytest.MonkeyPatch) -> None:
    of = empty()
    of.append(rows(1))
    other = tamis.open(of.path)
    racing(monkeypatch, index_commits, "commit", lambda: other.alter().add_check("positive", "price > 0").commit())
    with pytest.raises(Conflict):
        of.overwrite(rows(2, price=-1.0))
    assert ids(of.refresh()) == [1]


def test_parts_that_nobody_tested_are_not_committed() -> None:
    """A path to the log that forgot the test does not get past the commit."""
    of = empty()
    of.append(rows(1))
    manifest = of.snapshot.parts().drop_columns(["segment", "part", "deleted", "deletion"])
    of.alter().add_check("positive", "price > 0").commit()
    proposal = Proposal(Operation("append"), read_version=of.version, blind_append=True, add=[manifest])
    with pytest.raises(Conflict) as caught:
        commit(of.store, proposal)
    assert caught.value.code == "CONFLICT_CONSTRAINT"


def test_a_constraint_made_anew_is_another(monkeypatch: pytest.MonkeyPatch) -> None:
    of = table()
    other = tamis.open(of.path)

    def anew() -> None:
        other.alter().drop_constraint("sane").add_check("sane", "price > 0").commit()

    racing(monkeypatch, index_commits, "commit", anew)
    with pytest.raises(Conflict):
        of.append(rows(5, price=0.0))


def test_a_writer_of_an_older_version_is_fenced(monkeypatch: pytest.MonkeyPatch) -> None:
    of = table()
    assert of.detail()["writer_features"][0].as_py() == [features.CHECK_CONSTRAINTS]
    monkeypatch.setattr(features, "WRITER_FEATURES", frozenset({"indexes"}))
    with pytest.raises(InvalidInput, match="check-constraints"):
        of.append(rows(5))
    assert len(ids(of)) == 4  # readers need not know
    monkeypatch.undo()
    of.alter().drop_constraint("SANE").add_primary_key("pk", "id").commit()
    assert of.detail()["writer_features"][0].as_py() == []


# --- the head, and verbs that bring no new rows ---


def without_constraints(value: dict[str, Any]) -> dict[str, Any]:
    """Return a head as a writer that does not know constraints writes it again."""
    return {name: entry for name, entry in value.items() if name != "constraints"}


def test_the_head_keeps_constraints() -> None:
    of = table()
    of.alter().add_primary_key("pk", "id").set_properties({"x": "1"}).commit()
    head = tamis.open(of.path).snapshot.head
    assert head_from_json(head_to_json(head)) == head
    assert head.properties == {"x": "1"}
    bare = replace(head, constraints=())
    assert "constraints" not in head_to_json(bare)
    assert head_to_json(bare)["properties"] == {"x": "1"}


def test_an_older_writer_does_not_lose_keys() -> None:
    of = empty()
    of.alter().add_primary_key("pk", "id").add_unique("u", ["n"]).commit()

    def by_older(head: Head) -> Head:
        return head_from_json(without_constraints(head_to_json(head)))

    assert by_older(of.snapshot.head) == of.snapshot.head
    value = head_to_json(of.snapshot.head)
    value["schemas"][-1]["fields"] = [f for f in value["schemas"][-1]["fields"] if f["name"] != "n"]
    assert [one.name for one in head_from_json(value).constraints] == ["pk"], "a key goes with its column"


def test_restore_brings_back_no_wrong_rows() -> None:
    of = empty()
    of.append(rows(1))
    of.append(rows(2, price=-1.0))
    of.delete("id = 2")
    of.append(rows(3))
    of.alter().add_check("positive", "price > 0").commit()
    with pytest.raises(SchemaMismatch, match=r"price = -1\.0"):
        of.restore(2)
    of.restore(3)
    assert ids(of) == [1]
    assert checks(of) == ["price > 0"]
    of.alter().drop_constraint("positive").commit()
    of.restore(2)
    assert ids(of) == [1, 2]


def test_restore_meets_a_constraint_that_comes_meanwhile(monkeypatch: pytest.MonkeyPatch) -> None:
    of = empty()
    of.append(rows(2, price=-1.0))
    of.delete("id = 2")
    other = tamis.open(of.path)
    from tamis.engine.operations.rows import restore

    racing(monkeypatch, restore, "commit", lambda: other.alter().add_check("positive", "price > 0").commit())
    with pytest.raises(SchemaMismatch, match="'positive'"):
        of.restore(1)
    assert ids(of.refresh()) == []


@pytest.mark.parametrize("cluster_by", [[], ["id"]])
def test_compaction_tests_nothing(cluster_by: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    of = table(cluster_by=cluster_by)

    def never(*_: Any) -> None:
        raise AssertionError("tested")

    monkeypatch.setattr("tamis.engine.part_writer.row_checks._test", never)
    assert of.compact().parts_rewritten == 2
    assert ids(of) == [1, 2, 3, 4]


def test_a_table_without_constraints_evaluates_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    of = empty()
    monkeypatch.setattr("tamis.engine.part_writer.row_checks.bind_check", None)
    monkeypatch.setattr("tamis.engine.part_writer.row_checks.evaluate", None)
    of.append(rows(1))
    assert "checked" not in of.snapshot.parts().column_names


def test_what_a_part_was_tested_by_is_not_stored() -> None:
    of = table()
    of.append(rows(5))
    assert "checked" not in of.snapshot.parts(None).column_names
    of.delete("id = 5")
    assert ids(of) == [1, 2, 3, 4]
    assert of.verify().ok


def test_a_generated_column_is_tested_with_its_value() -> None:
    of = tamis.create(f"memory://constraints-{next(_names)}", "id BIGINT, twice BIGINT GENERATED ALWAYS AS (id * 2)")
    of.alter().add_check("c", "twice < 10").commit()
    of.append(pa.table({"id": [4]}))
    with pytest.raises(SchemaMismatch, match="twice = 10"):
        of.append(pa.table({"id": [5]}))
    with pytest.raises(SchemaMismatch, match="twice = 12"):
        of.update({"id": "6"}, all_rows=True)
