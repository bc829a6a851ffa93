"""Evidence across schemas: younger columns, defaults, widened types, and what is not known at all."""

from dataclasses import replace

import pyarrow as pa
import pytest

from tamis.core.pruning.evidence import ColumnEvidence
from tamis.core.stats import TableEvidence, columns_of_ids, union_statistics
from tamis.core.types import DOUBLE, INTEGER, LONG, STRING, VARIANT, Decimal, Field, Schema, Struct

OLD = Schema((Field("a", INTEGER, id=1),), schema_id=0)
NEW = Schema(
    (
        Field("a", LONG, id=1),
        Field("b", STRING, id=2),
        Field("c", LONG, id=3, initial_default=42),
        Field("n", DOUBLE, id=4, initial_default="NaN"),
        Field("s", Struct((Field("x", LONG, id=6, initial_default=5),)), id=5),
    ),
    schema_id=1,
)
TABLE = pa.table(
    {
        "rows": [10, 20],
        "schema_id": pa.array([0, 1], pa.int32()),
        "1|integer|lo": pa.array([1, None], pa.int32()),
        "1|integer|hi": pa.array([9, None], pa.int32()),
        "1|long|lo": [None, 2**40],
        "1|long|hi": [None, 2**41],
        "1|exact": pa.array([3, 2], pa.uint8()),
        "1|nulls": [0, 0],
        "2|string|lo": [None, "b"],
        "2|string|hi": [None, "c"],
        "2|nulls": [None, 1],
    }
)


def column(
    ids: tuple[int, ...], table: pa.Table = TABLE, schemas: dict[int, Schema] | Schema | None = None
) -> ColumnEvidence:
    found = TableEvidence(table, schemas or {0: OLD, 1: NEW}).column(ids)
    assert found is not None
    return found


def test_widened_column_has_bounds_of_both_types() -> None:
    a = column((1,))
    assert (a.type, a.lo.to_pylist(), a.hi.to_pylist()) == (LONG, [1, 2**40], [9, 2**41])
    assert (a.lo_exact.to_pylist(), a.hi_exact.to_pylist(), a.nans.to_pylist()) == ([True, False], [True, True], [0, 0])


def test_younger_column_is_null_in_older_parts() -> None:
    b = column((2,))
    assert (b.nulls.to_pylist(), b.count.to_pylist(), b.lo.to_pylist()) == ([10, 1], [10, 20], [None, "b"])


def test_younger_column_with_a_default_shows_it() -> None:
    c = column((3,))
    assert (c.lo.to_pylist(), c.hi.to_pylist(), c.nulls.to_pylist()) == ([42, None], [42, None], [0, None])
    assert c.lo_exact.to_pylist() == [True, None]


def test_default_of_nan_is_counted() -> None:
    n = column((4,))
    assert (n.lo.to_pylist(), n.nans.to_pylist(), n.nulls.to_pylist()) == ([None, None], [10, None], [0, None])


def test_field_of_a_younger_struct_is_null_whatever_its_default() -> None:
    x = column((5, 6))
    assert (x.nulls.to_pylist(), x.lo.to_pylist()) == ([10, None], [None, None])


def test_younger_field_of_an_older_struct_has_its_default_where_the_struct_is() -> None:
    before = replace(NEW, fields=(*NEW.fields[:-1], Field("s", Struct((Field("y", LONG, id=7),)), id=5)), schema_id=0)
    table = pa.table({"rows": [10, 10, 10], "schema_id": [0, 0, 0], "5|nulls": [4, 10, None]})
    x = column((5, 6), table, {0: before, 1: NEW})
    assert (x.nulls.to_pylist(), x.lo.to_pylist(), x.hi.to_pylist()) == (
        [4, 10, None],
        [5, None, None],
        [5, None, None],
    )


def test_without_a_schema_id_nothing_is_said_about_younger_columns() -> None:
    b = column((2,), TABLE.drop_columns("schema_id"))
    assert b.nulls.to_pylist() == [None, 1]


def test_an_unreadable_default_is_unknown() -> None:
    broken = replace(NEW, fields=(Field("c", LONG, id=3, initial_default="soon"),))
    c = column((3,), TABLE, {0: OLD, 1: broken})
    assert (c.lo.to_pylist(), c.nulls.to_pylist()) == ([None, None], [None, None])


def test_unknown_columns_have_no_evidence() -> None:
    assert TableEvidence(TABLE, NEW).column((99,)) is None
    assert TableEvidence(TABLE, NEW).column((6,)) is None


def test_younger_variant_and_struct_columns() -> None:
    schema = Schema((*NEW.fields, Field("v", VARIANT, id=8)), schema_id=1)
    for ids in ((8,), (5,)):
        found = column(ids, TABLE, {0: OLD, 1: schema})
        assert found.nulls.to_pylist() == [10, None]


def test_rows_that_are_all_null_do_not_spoil_a_union() -> None:
    table = pa.table(
        {
            "rows": [2, 2],
            "1|long|lo": [None, 3],
            "1|long|hi": [None, 4],
            "1|nulls": [2, 0],
            "1|exact": pa.array([0, 3], pa.uint8()),
        }
    )
    assert union_statistics(table).to_pylist() == [{"1|long|lo": 3, "1|long|hi": 4, "1|exact": 3, "1|nulls": 2}]


def test_one_unknown_row_makes_the_bound_of_a_union_unknown() -> None:
    table = pa.table(
        {
            "rows": [2, 2],
            "1|long|lo": [None, 3],
            "1|long|hi": [9, 4],
            "1|nulls": [None, 0],
            "1|exact": pa.array([0, 3], pa.uint8()),
        }
    )
    assert union_statistics(table).to_pylist() == [{"1|long|lo": None, "1|long|hi": 9, "1|exact": 0, "1|nulls": None}]


def test_union_of_types_is_in_the_widest() -> None:
    assert union_statistics(TABLE)["1|long|lo"].to_pylist() == [1]
    clash = pa.table({"rows": [1, 1], "1|long|lo": [1, None], "1|string|lo": [None, "a"], "1|nulls": [0, 0]})
    assert union_statistics(clash).to_pylist() == [{"1|nulls": 0}]


@pytest.mark.parametrize("name", ["part_id", "rows", "x|lo", "²|nulls"])
def test_wanted_are_statistics_of_these_columns_only(name: str) -> None:
    names = [name, "1|nulls", "11|nulls", "1|decimal(10,2)|lo", "1|future"]
    assert columns_of_ids(names, {1}) == ["1|nulls", "1|decimal(10,2)|lo", "1|future"]


def test_decimal_of_another_scale_is_the_same_number() -> None:
    table = pa.table({"rows": [1], "1|decimal(5,1)|lo": pa.array([None], pa.decimal128(5, 1)), "1|nulls": [0]})
    assert column((1,), table, Schema((Field("a", Decimal(10, 2), id=1),))).lo.type == pa.decimal128(10, 2)
