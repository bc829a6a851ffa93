"""Stacking manifests of different columns: nothing is lost, and a doubtful statistic is unknown."""

from __future__ import annotations

import pyarrow as pa
import pytest

from tamis.storage.object_store.metadata_union import (
    cast_to_schema,
    common_schema,
    is_statistic,
    stack_tables,
    wanted_columns,
)

ONE = pa.table({"part_id": ["a"], "1|long|lo": pa.array([1], pa.int64())})
TWO = pa.table({"2|string|lo": ["x"], "part_id": ["b"], "1|long|lo": pa.nulls(1)})
ODD = pa.table({"part_id": ["c"], "1|long|lo": ["not a number"]})


def test_a_missing_column_is_null() -> None:
    assert stack_tables([ONE, TWO]).to_pydict() == {
        "part_id": ["a", "b"],
        "1|long|lo": [1, None],
        "2|string|lo": [None, "x"],
    }
    assert stack_tables([TWO, ONE]).schema.field("1|long|lo").type == pa.int64()


def test_a_statistic_of_two_types_is_unknown() -> None:
    assert stack_tables([ONE, ODD]).to_pydict() == {"part_id": ["a", "c"]}
    assert stack_tables([ODD, TWO, ONE]).to_pydict() == {"part_id": ["c", "b", "a"], "2|string|lo": [None, "x", None]}


def test_a_fact_of_two_types_is_refused() -> None:
    with pytest.raises(ValueError, match="part_id"):
        stack_tables([ONE, pa.table({"part_id": [1]})])


def test_common_and_under_agree_with_stack() -> None:
    tables = [ONE, TWO, ODD]
    schema = common_schema(table.schema for table in tables)
    assert pa.concat_tables([cast_to_schema(t, schema) for t in tables]).to_pydict() == stack_tables(tables).to_pydict()


def test_tables_without_columns_do_not_count() -> None:
    assert stack_tables([pa.table({}), ONE]).equals(ONE)


@pytest.mark.parametrize(
    ("name", "number"), [("12|long|lo", 12), ("3|nulls", 3), ("rows", -1), ("²|x", -1), ("1x|lo", -1)]
)
def test_what_a_column_is_about(name: str, number: int) -> None:
    assert wanted_columns([name], (), {number, 7}) == ([name] if number > 0 else [])
    assert is_statistic(name) or number == -1


def test_which_columns_are_wanted() -> None:
    names = ["part_id", "rows", "1|long|lo", "11|long|lo", "1|nulls"]
    assert wanted_columns(names, {"rows"}, {1}) == ["rows", "1|long|lo", "1|nulls"]
    assert wanted_columns(names, (), ()) == []
