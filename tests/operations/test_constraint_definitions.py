"""What may be a constraint, and how constraints follow changes of the schema."""

from __future__ import annotations

from itertools import count

import pyarrow as pa
import pytest

import tamis
from tamis.errors import AlreadyExists, InvalidInput, NotFound, SchemaMismatch, TamisError
from tests.operations.constrained_tables import checks, empty, rows, table

_names = count()  # --- renames and other changes of the schema ---


def expression(of: tamis.Table) -> str:
    return checks(of)[0]


def test_a_constraint_follows_renames() -> None:
    of = empty()
    of.append(rows(1, 2))
    of.alter().add_check("c", "id < 100 /* id */ AND s.a<100 AND `name` <> 'id'").commit()
    of.alter().rename_column("id", "key").rename_column("s.a", "in ner").rename_column("name", "select").commit()
    assert expression(of) == "key < 100 /* id */ AND s.`in ner`<100 AND `select` <> 'id'"
    with pytest.raises(SchemaMismatch, match="key = 100"):
        of.append(pa.table({"key": [100], "select": ["x"]}))
    of.alter().rename_column("key", "tmp").rename_column("n", "key").rename_column("tmp", "n").commit()
    assert expression(of).startswith("n < 100")
    with pytest.raises(SchemaMismatch, match="n = 100"):
        of.append(pa.table({"n": [100], "key": pa.array([1], pa.int32())}))
    of.append(pa.table({"n": [1], "key": pa.array([100], pa.int32())}))


def test_a_rename_that_cannot_be_followed_is_refused() -> None:
    of = empty()
    of.alter().add_check("c", "exists(tags, id -> id > 5)").commit()
    of.alter().rename_column("tags", "labels").commit()
    assert expression(of) == "exists(labels, id -> id > 5)"
    of.alter().rename_column("id", "key").commit()  # the variable is no column
    assert expression(of) == "exists(labels, id -> id > 5)"
    of.alter().drop_constraint("c").add_check("d", "exists(labels, x -> x > key)").commit()
    with pytest.raises(InvalidInput, match=r"'d', .* uses column 'key', which cannot be renamed") as caught:
        of.alter().rename_column("key", "x").commit()
    assert caught.value.code == "CONSTRAINED_COLUMN"
    of.alter().rename_column("key", "y").commit()
    assert expression(of) == "exists(labels, x -> x > y)"


def test_by_schema_and_by_evolution_names_follow_too() -> None:
    of = table()
    fields = [f.with_name("cost") if f.name == "price" else f for f in of.schema]
    with_ids = pa.schema(fields)
    of.compare_and_evolve_schema(0, with_ids)
    assert expression(of) == "cost >= 0 AND id < 1000"
    with pytest.raises(InvalidInput, match="cannot be dropped"):
        of.compare_and_evolve_schema(1, pa.schema([f for f in with_ids if f.name != "cost"]))


@pytest.mark.parametrize("column", ["price", "id"])
def test_a_column_that_a_constraint_uses_stays(column: str) -> None:
    of = table()
    of.alter().add_primary_key("pk", ["id", "n"]).commit()
    for name in (column, "n"):
        with pytest.raises(InvalidInput) as caught:
            of.alter().drop_column(name).commit()
        assert caught.value.code == "CONSTRAINED_COLUMN"
    of.alter().drop_constraint("sane").drop_constraint("pk").drop_column(column).drop_column("n").commit()
    assert of.constraints().num_rows == 0


WIDENED = [
    ("n > 5", "BIGINT", True),
    ("n IN (1, 2, NULL) OR n BETWEEN 3 AND 9 OR n IS NULL", "BIGINT", True),
    ("n > id", "BIGINT", True),
    ("n > 0.5", "BIGINT", True),
    ("n * 2 > 5", "BIGINT", False),
    ("n & 1 = 1", "BIGINT", False),
]


@pytest.mark.parametrize(("check", "wider", "allowed"), WIDENED)
def test_widening_is_allowed_where_values_compare_alike(check: str, wider: str, allowed: bool) -> None:
    of = empty()
    of.alter().add_check("c", check).commit()
    if allowed:
        of.alter().widen("n", wider).commit()
        assert (expression(of), of.schema.field("n").type) == (check, pa.int64())
        return
    with pytest.raises(InvalidInput, match="'n', which cannot change its type"):
        of.alter().widen("n", wider).commit()


def test_changes_that_mean_nothing_to_a_constraint_are_made() -> None:
    of = table()
    of.alter().add_column("more", "INT").drop_column("n").move_column("price", first=True).commit()
    of.alter().set_comment("price", "in euros").set_default("price", 1.5).commit()
    with pytest.raises(SchemaMismatch):
        of.append(pa.table({"id": [1], "price": [-1.0]}))
    of.append(pa.table({"id": [5]}))
    with pytest.raises(SchemaMismatch):
        of.append(pa.table({"id": [1_000]}))


def test_a_default_is_tested() -> None:
    of = empty()
    of.alter().set_default("price", -1.0).add_check("c", "price > 0").commit()
    with pytest.raises(SchemaMismatch, match=r"price = -1\.0"):
        of.append(pa.table({"id": [1]}))


def test_a_column_and_its_constraint_come_in_one_commit() -> None:
    of = empty()
    of.append(rows(1))
    with pytest.raises(SchemaMismatch, match="score = -1"):
        of.alter().add_column("score", "INT", default=-1).add_check("c", "score >= 0").commit()
    of.alter().add_column("score", "INT", default=1).add_check("c", "score >= 0").commit()
    assert of.refresh().version == 2
    with pytest.raises(SchemaMismatch, match="score = -7"):
        of.update({"score": "-7"}, all_rows=True)


# --- what may be a constraint ---

REFUSED = [
    ("price > rand()", "UNKNOWN_FUNCTION"),
    ("price > my_udf(id)", "UNKNOWN_FUNCTION"),
    ("id > (SELECT 1)", "NO_PLACE"),
    ("sum(id) > 1", "NO_PLACE"),
    ("CAST('2024-01-01' AS DATE) < current_date()", "BAD_CONSTRAINT"),
    ("CAST(name AS TIMESTAMP) IS NOT NULL", "BAD_CONSTRAINT"),
    ("at > TIMESTAMP '2024-01-01 00:00:00'", "BAD_CONSTRAINT"),
    ("hour(at) < 12", "BAD_CONSTRAINT"),
    ("CAST(at AS DATE) > DATE'2020-01-01'", "BAD_CONSTRAINT"),
    ("id", "PARSE_ERROR"),
    ("id >", "PARSE_ERROR"),
    ("  ", "BAD_CONSTRAINT"),
    ("id > 0 -- positive", "BAD_CONSTRAINT"),
    ("nope > 1", "COLUMN_NOT_FOUND"),
    ("id > 1 / 0", "FILTER_FAILED"),
]


@pytest.mark.parametrize(("check", "code"), REFUSED)
def test_what_writers_could_not_all_test_alike_is_refused(check: str, code: str) -> None:
    of = empty()
    of.alter().add_column("at", "TIMESTAMP").commit()
    with pytest.raises(TamisError) as caught:  # the code is compared below
        of.alter().add_check("c", check).commit()
    assert caught.value.code == code
    assert "Spark." not in caught.value.remedy or code == "PARSE_ERROR", caught.value.remedy
    assert of.refresh().version == 1


def test_nan_is_a_constant_like_others() -> None:
    of = empty()
    of.alter().add_check("c", "price <> CAST('NaN' AS DOUBLE) -- no number\n AND id > 0").commit()
    with pytest.raises(SchemaMismatch, match="price = nan"):
        of.append(pa.table({"id": [1], "price": [float("nan")]}))
    of.alter().rename_column("price", "amount").commit()
    assert checks(of) == ["amount <> CAST('NaN' AS DOUBLE) -- no number\n AND id > 0"]


def test_instants_with_their_offset_are_no_matter_of_the_session() -> None:
    of = empty()
    of.alter().add_column("at", "TIMESTAMP").add_check("c", "at > TIMESTAMP '2024-01-01 00:00:00+00:00'").commit()
    assert len(checks(of)) == 1


def test_names_are_one_ignoring_case() -> None:
    of = table()
    of.alter().add_primary_key("pk", "id").commit()
    for again in ("Sane", "PK"):
        with pytest.raises(AlreadyExists, match="already") as caught:
            of.alter().add_check(again, "id > 0").commit()
        assert caught.value.code == "CONSTRAINT_EXISTS"
    with pytest.raises(AlreadyExists, match="has a primary key"):
        of.alter().add_primary_key("pk2", "n").commit()
    with pytest.raises(NotFound, match="Constraints are: sane, pk"):
        of.alter().drop_constraint("nope").commit()
    of.alter().drop_constraint("nope", missing_ok=True).drop_constraint("PK").drop_constraint("SANE").commit()
    assert of.constraints().num_rows == 0
    of.append(rows(5, price=-1.0))


def test_keys_are_kept_and_enforce_nothing() -> None:
    of = empty()
    change = of.alter().add_primary_key("pk", ["id", "s.a"]).add_unique("u", "name")
    change.add_foreign_key("fk", "n", "db.other", ["k"]).commit()
    assert of.detail()["writer_features"][0].as_py() == []
    of.append(rows(1, 1, price=-1.0))
    of.alter().rename_column("id", "key").commit()
    assert [row["definition"] for row in of.constraints().to_pylist()] == [
        "PRIMARY KEY (key, s.a) NOT ENFORCED",
        "UNIQUE (name) NOT ENFORCED",
        "FOREIGN KEY (n) REFERENCES db.other (k) NOT ENFORCED",
    ]
    assert of.properties == {}
    with pytest.raises(NotFound):
        of.alter().add_unique("v", "nope").commit()
    with pytest.raises(InvalidInput, match="twice"):
        of.alter().add_unique("v", ["name", "NAME"]).commit()
    with pytest.raises(InvalidInput, match="no plain column"):
        of.alter().add_unique("v", "tags").commit()


def test_a_table_without_columns_has_no_constraints() -> None:
    of = tamis.create("memory://constraints-without-columns")
    with pytest.raises(InvalidInput) as caught:
        of.alter().add_check("c", "1 > 0").commit()
    assert caught.value.code == "NO_SCHEMA"


def test_ddl_text_of_python_names_what_adds_constraints() -> None:
    for text in ("price DOUBLE CHECK (price > 0)", "id BIGINT, primary key (id)"):
        with pytest.raises(InvalidInput, match="add_check"):
            tamis.create(f"memory://constraints-{next(_names)}", text)


def test_a_dry_run_says_what_would_come() -> None:
    of = empty()
    planned = of.alter().add_check("c", "id > 0").dry_run()
    assert planned.changes == ("constraint c added: CHECK (id > 0) ENFORCED",)
    assert of.refresh().version == 0
    of.alter().add_check("c", "id > 0").commit()
    assert "constraint c added: CHECK (id > 0) ENFORCED" in of.history(1)["parameters"][0].as_py()
