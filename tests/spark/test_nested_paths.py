"""Names that lead through arrays and maps at any depth: an embedded filter finds the rows that Spark finds over plain Parquet."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.spark.conftest import Lake

import tamis
from tamis.errors import InvalidInput, NotFound

VALUE = pa.struct(
    [("v", pa.int64()), ("p", pa.struct([("q", pa.int64())])), ("l", pa.list_(pa.struct([("sku", pa.int64())])))]
)
SCHEMA = pa.schema(
    [
        ("k", pa.int64()),
        (
            "s",
            pa.struct(
                [
                    (
                        "items",
                        pa.list_(pa.struct([("sku", pa.int64()), ("product", pa.struct([("code", pa.string())]))])),
                    ),
                    ("m", pa.map_(pa.string(), VALUE)),
                ]
            ),
        ),
        (
            "lines",
            pa.list_(pa.struct([("product", pa.struct([("code", pa.string())])), ("tags", pa.list_(pa.int64()))])),
        ),
        ("ma", pa.map_(pa.string(), pa.list_(pa.struct([("sku", pa.int64())])))),
        ("mm", pa.map_(pa.string(), pa.map_(pa.string(), pa.int64()))),
    ]
)
FILTERS = [
    "array_contains(s.items.sku, 5)",
    "NOT array_contains(s.items.sku, 5)",
    "array_contains(s.items.product.code, 'a')",
    "array_contains(S.Items.PRODUCT.code, 'b')",
    "size(s.items.sku) = 2",
    "s.items.sku IS NULL",
    "s.items.product.code IS NOT NULL",
    "try_element_at(s.items.sku, 1) = 5",
    "get(s.items, 0).product.code = 'a'",
    "get(s.items.sku, 0) = 5",
    "s.m.a.v = 1",
    "s.m.a.p.q = 2",
    "s.m.a.p.q IS NULL",
    "array_contains(lines.product.code, 'b')",
    "size(lines.tags) = 2",
]


def item(sku: int | None, code: str | None, *, product: bool = True) -> dict[str, Any]:
    return {"sku": sku, "product": {"code": code} if product else None}


def rows() -> list[dict[str, Any]]:
    found: list[tuple[Any, Any, Any]] = [
        ({"items": [item(5, "a"), item(1, "b")], "m": [("a", {"v": 1, "p": {"q": 2}})]}, [], [("a", [("b", 7)])]),
        ({"items": [item(1, None), None], "m": [("b", {"v": 1, "p": None})]}, [None], [("a", None)]),
        ({"items": [item(None, "a", product=False)], "m": [("a", {"v": 1, "p": None})]}, None, None),
        ({"items": [], "m": []}, [{"product": {"code": "b"}, "tags": [1]}, {"product": None, "tags": None}], []),
        ({"items": None, "m": None}, [{"product": {"code": None}, "tags": []}], [("b", [("b", 7)])]),
        (None, [{"product": {"code": "a"}, "tags": [1, None]}], [("a", [("c", 7), ("b", 8)])]),
        ({"items": [item(4, "a"), item(5, "b")], "m": [("a", None)]}, [None, None], [("a", [])]),
    ]
    return [{"k": k, "s": s, "lines": lines, "mm": mm} for k, (s, lines, mm) in enumerate(found)]


@pytest.mark.parametrize("rows_per_part", [1, 3, 100])
def test_filters_through_arrays_and_maps(lake: Lake, tmp_path: Path, rows_per_part: int) -> None:
    data = pa.Table.from_pylist(rows(), SCHEMA)
    table = tamis.create(lake.folder / "db" / "t", SCHEMA)
    for start in range(0, len(data), rows_per_part):
        table.append(data.slice(start, rows_per_part))
    through_spark = lake.spark.table(f"{lake.name}.db.t")
    pq.write_table(data, tmp_path / "plain.parquet")
    plain = lake.spark.read.parquet(str(tmp_path / "plain.parquet"))
    for text in FILTERS:
        expected = sorted(row[0] for row in plain.where(text).select("k").collect())
        assert sorted(table.scan(text, ["k"]).to_arrow()["k"].to_pylist()) == expected, text
        assert table.scan(text).count() == len(expected), text
        assert sorted(row[0] for row in through_spark.where(text).select("k").collect()) == expected, text


@pytest.mark.parametrize("text", ["exists(s.items.sku, x -> x > 3)", "exists(s.items, x -> x.sku > 3)"])
def test_lambdas_read_arrays_of_structs_but_not_of_their_fields(tmp_path: Path, text: str) -> None:
    table = tamis.create(tmp_path / "t", SCHEMA)
    table.append(pa.Table.from_pylist(rows(), SCHEMA))
    if "items.sku" in text:
        with pytest.raises(InvalidInput, match="UNKNOWN_FUNCTION"):
            table.scan(text).to_arrow()
    else:
        assert sorted(table.scan(text, ["k"]).to_arrow()["k"].to_pylist()) == [0, 6]


def test_a_merge_names_such_fields_of_its_target(tmp_path: Path) -> None:
    table = tamis.create(tmp_path / "t", SCHEMA)
    table.append(pa.Table.from_pylist(rows(), SCHEMA))
    source = pa.table({"k": [0, 1, 6]})
    condition = "target.k = source.k AND array_contains(target.s.items.sku, 5)"
    table.merge(source, condition).when_matched_delete().execute()
    assert sorted(table.scan(selected_fields=["k"]).to_arrow()["k"].to_pylist()) == [1, 2, 3, 4, 5]


@pytest.mark.parametrize("text", ["mm.a.b = 7", "mm['a']['b'] = 7", "mm.a IS NULL"])
def test_maps_of_maps_are_left_to_spark(tmp_path: Path, text: str) -> None:
    table = tamis.create(tmp_path / "t", SCHEMA)
    with pytest.raises(InvalidInput, match="BAD_ARGUMENTS"):
        table.scan(text).to_arrow()
    assert table.explain(text).filter == text


@pytest.mark.parametrize(
    "text", ["array_contains(ma.a.sku, 5)", "array_contains(ma['a'].sku, 5)", "array_contains(s.m.a.l.sku, 5)"]
)
def test_fields_of_computed_arrays_are_left_to_spark(tmp_path: Path, text: str) -> None:
    table = tamis.create(tmp_path / "t", SCHEMA)
    with pytest.raises(InvalidInput, match=r"UNKNOWN_FUNCTION|BAD_ARGUMENTS"):
        table.scan(text).to_arrow()
    assert table.explain(text).filter == text


@pytest.mark.parametrize(
    ("name", "remedy"),
    [
        ("s.items.nothing", "Fields are: sku, product."),
        ("lines.product.nothing", "Fields are: code."),
        ("lines.nothing", "Fields are: product, tags."),
        ("lines.tags.x", "use element_at"),
        ("s.items.sku.x", "use element_at"),
        ("k.x", "has no fields"),
        ("s.nothing", "items"),
    ],
)
def test_names_that_lead_nowhere(tmp_path: Path, name: str, remedy: str) -> None:
    table = tamis.create(tmp_path / "t", SCHEMA)
    with pytest.raises(NotFound, match=remedy) as caught:
        table.scan(f"{name} IS NULL").to_arrow()
    assert (caught.value.code, caught.value.name) == ("COLUMN_NOT_FOUND", name)


MUST_PRUNE = [
    "array_contains(s.items.sku, 205)",
    "array_contains(s.items.product.code, 'c205')",
    "s.items.sku[0] = 205",
    "s.items[0].sku = 205",
    "get(s.items, 0).product.code = 'c205'",
    "exists(s.items, x -> x.sku = 205)",
    "array_contains(lines.product.code, 'c205')",
    "s.m.a.v = 205",
    "element_at(s.m, 'a').p.q = 205",
]


@pytest.mark.parametrize("text", MUST_PRUNE)
def test_names_through_arrays_and_maps_prune(tmp_path: Path, text: str) -> None:
    table = tamis.create(tmp_path / "t", SCHEMA)
    for part in range(4):
        numbers = [100 * part + i for i in range(10)]
        found = [
            {
                "k": n,
                "s": {"items": [item(n, f"c{n:03}")], "m": [("a", {"v": n, "p": {"q": n}})]},
                "lines": [{"product": {"code": f"c{n:03}"}}],
            }
            for n in numbers
        ]
        table.append(pa.Table.from_pylist(found, SCHEMA))
    scan = table.scan(text, ["k"])
    assert scan.to_arrow()["k"].to_pylist() == [205]
    assert scan.report.parts.kept == 1
