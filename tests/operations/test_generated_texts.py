"""Generated columns of text with a length: refused in new tables unless they copy such a text, and right in older ones."""

from __future__ import annotations

from itertools import count

import pyarrow as pa
import pytest

import tamis
from tamis.core.expr import generated_columns, parse_predicate
from tamis.core.pruning.implied_conjuncts import implied_conjuncts
from tamis.core.types import STRING, Field, Generation, Schema, String

_names = count()


def made(ddl: str) -> tamis.Table:
    return tamis.create(f"memory://generated-texts-{next(_names)}", ddl)


@pytest.fixture
def older(monkeypatch: pytest.MonkeyPatch) -> tamis.Table:
    """A table with ``w VARCHAR(3)``, as releases made them that did not check its expression."""
    with monkeypatch.context() as patched:
        patched.setattr(generated_columns, "_check_new", lambda *_: None)
        table = made("id INT, s STRING, w VARCHAR(3) GENERATED ALWAYS AS (upper(s))")
    for at, s in enumerate(("ab", "ab ", "abc", "xyz")):
        table.append(pa.table({"id": pa.array([at], pa.int32()), "s": [s]}))
    return table


@pytest.mark.parametrize(
    "ddl",
    [
        "s STRING, w VARCHAR(3) GENERATED ALWAYS AS (upper(s))",
        "s STRING, w VARCHAR(3) GENERATED ALWAYS AS (CAST(s AS VARCHAR(3)))",
        "v VARCHAR(4), w VARCHAR(3) GENERATED ALWAYS AS (v)",
        "v VARCHAR(2), w VARCHAR(3) GENERATED ALWAYS AS (v)",
    ],
)
def test_a_text_of_another_type_is_refused(ddl: str) -> None:
    with pytest.raises(tamis.InvalidInput, match="GENERATED_COLUMN") as raised:
        made(ddl)
    assert (raised.value.name, "STRING" in raised.value.remedy) == ("w", True)


def test_a_copy_is_exact() -> None:
    table = made("v VARCHAR(3), w VARCHAR(3) GENERATED ALWAYS AS (v), t STRING GENERATED ALWAYS AS (upper(v))")
    table.append(pa.table({"v": ["ab    ", "abc"]}))
    assert table.to_arrow().to_pylist() == [{"v": "ab ", "w": "ab ", "t": "AB "}, {"v": "abc", "w": "abc", "t": "ABC"}]


def test_an_older_table_is_read_and_fits_what_it_computes(older: tamis.Table) -> None:
    table = tamis.open(older.path)
    table.append(pa.table({"id": pa.array([9, 10], pa.int32()), "s": ["de    ", None]}))
    assert table.scan("id >= 9").to_arrow().to_pylist() == [
        {"id": 9, "s": "de    ", "w": "DE "},
        {"id": 10, "s": None, "w": None},
    ]
    table.append(pa.table({"id": pa.array([11], pa.int32()), "s": ["fg     "], "w": ["FG    "]}))
    table.update({"s": "'hi    '"}, "id = 11")
    assert table.scan("id = 11", ["w"]).to_arrow().to_pylist() == [{"w": "HI "}]
    before = table.version
    for change in (
        lambda: table.append(pa.table({"id": pa.array([12], pa.int32()), "s": ["abcd"]})),
        lambda: table.update({"s": "'abcd'"}, "id = 11"),
    ):
        with pytest.raises(tamis.InvalidInput) as raised:
            change()
        assert (raised.value.code, raised.value.name) == ("TOO_LONG", "w")
    table.refresh()
    assert table.version == before


@pytest.mark.parametrize("index", [False, True])
@pytest.mark.parametrize(
    ("text", "ids"),
    [("upper(s) = 'AB    '", [9]), ("upper(s) > 'AB '", [9, 2, 3]), ("s = 'ab    '", [9]), ("w = 'AB '", [1, 9])],
)
def test_a_filter_on_the_expression_is_not_answered_by_what_was_cut(
    older: tamis.Table, text: str, ids: list[int], index: bool
) -> None:
    older.append(pa.table({"id": pa.array([9], pa.int32()), "s": ["ab    "]}))
    if index:
        older.create_index("by_w", ["w"])
    scan = older.scan(text, options={"tamis.index.use": "lookup"} if index else None)
    assert sorted(scan.to_arrow()["id"].to_pylist()) == sorted(ids)
    assert scan.count() == len(ids)


@pytest.mark.parametrize(("length", "implied"), [(None, 1), (3, 0)], ids=["exact", "cut"])
def test_nothing_follows_for_indexes_of_what_is_cut(length: int | None, implied: int) -> None:
    kind = STRING if length is None else String("varchar", length)
    columns = Field("s", STRING, id=1), Field("w", kind, id=2, generated=Generation("concat('x', s)"))
    schema = Schema(columns)
    found = implied_conjuncts([parse_predicate("concat('x', s) = 'xb    '", schema)], schema, (0, 0))
    assert len(found) == implied


def test_the_column_itself_still_skips(older: tamis.Table) -> None:
    assert older.explain("w = 'XYZ'").parts["kept"] == 1
