"""Filters on a position of an array or a key of a map, of whole tables: what is skipped, and that nothing else is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import tamis
from tamis.engine.part_writer import write_part
from tamis.engine.scan import funnel
from tamis.storage.commit_log import Operation, Proposal, commit

SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("arr", pa.list_(pa.int32())),
        ("lines", pa.list_(pa.struct([("sku", pa.string()), ("n", pa.int32())]))),
        ("m", pa.map_(pa.string(), pa.int64())),
    ]
)
OFF = {"tamis.stats.filter": "off"}
FILTERS = {
    "arr[0] = 2": 1,
    "get(arr, 0) = 95": 0,
    "element_at(arr, 2) = 95": 1,
    "lines[0].sku = 's3'": 1,
    "lines.sku[1] = 't3'": 1,
    "get(lines, 1).n > 102": 1,
    "m['k'] = 2": 1,
    "m.k BETWEEN 1 AND 2": 2,
    "element_at(m, 'far') = 97": 1,
    "try_element_at(m, 'far') IS NULL": 4,
    "m['none'] = 2": 0,
}
"""Filters, and how many of the four parts are read."""


def rows(part: int, count: int = 20) -> pa.Table:
    return pa.Table.from_pylist(
        [
            {
                "id": 100 * part + n,
                "arr": [part, 98 - part],
                "lines": [{"sku": f"s{part}", "n": part}, {"sku": f"t{part}", "n": part + 100}],
                "m": [("k", part), ("far", 100 - part)][: 2 - (n == 7)],
            }
            for n in range(count)
        ],
        schema=SCHEMA,
    )


def made(path: Path, **properties: str) -> tamis.Table:
    table = tamis.create(path, SCHEMA, properties={f"tamis.{name}": text for name, text in properties.items()})
    for part in range(4):
        table.append(rows(part))
    return table


def same(table: tamis.Table, text: str, **options: Any) -> int:
    """Return how many parts are read, after comparing the rows with those of a scan without statistics."""
    scan = table.scan(text, options=options or None)
    found = sorted(scan.to_arrow()["id"].to_pylist())
    assert found == sorted(table.scan(text, options=OFF).to_arrow()["id"].to_pylist()), text
    return len(table.scan(text, options=options or None).plan().parts)


@pytest.mark.push_cases(1)
@pytest.mark.parametrize("form", ["parquet", "orc", "vortex"])
def test_parts_are_skipped(tmp_path: Path, form: str) -> None:
    table = tamis.create(tmp_path / "t", SCHEMA if form != "vortex" else SCHEMA.remove(3), format=form)
    for part in range(4):
        table.append(rows(part).select(table.schema.names))
    for text, kept in FILTERS.items():
        if form != "vortex" or "m" not in text.split("[")[0].split(".")[0].split("(")[-1]:
            assert same(table, text) == kept, text
    assert table.verify().problems.num_rows == 0


@pytest.mark.parametrize("few_parts", [0, 128])
def test_parts_of_one_commit_are_skipped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, few_parts: int) -> None:
    """Parts are skipped also where segments are decided first, by the union of their parts' statistics."""
    monkeypatch.setattr(write_part, "BLOCK_ROWS", (20, 20))
    monkeypatch.setattr(funnel, "FEW_PARTS", few_parts)
    table = tamis.create(tmp_path / "t", SCHEMA, properties={"tamis.write.part_bytes": "1"})
    table.append(pa.concat_tables([rows(part) for part in range(4)]))
    assert len(table.scan().plan().parts) == 4
    for text, kept in FILTERS.items():
        assert same(table, text) == kept, text
    table.append(rows(9))
    assert same(table, "m['k'] = 9") == 1
    assert same(table, "arr[0] > 5") == 1
    assert table.scan("arr[0] > 5").plan().report.parts["skipped_segment"] == 4


def test_without_statistics_nothing_is_skipped(tmp_path: Path) -> None:
    table = made(tmp_path / "t")
    assert len(table.scan("m['k'] = 2", options=OFF).plan().parts) == 4
    bare = made(tmp_path / "u", **{"stats.collect": "off"})
    assert same(bare, "m['k'] = 2") == same(bare, "arr[0] = 2") == 4
    bare.append(rows(2))
    assert same(bare, "m['k'] = 2") == 5
    bare.alter().set_properties({"tamis.stats.collect": "on"}).commit()
    bare.append(rows(3))
    assert same(bare, "m['k'] = 2") == 5
    assert same(bare, "m['k'] = 3") == 6
    bare.compact()
    assert same(bare, "m['k'] > 3") == 0


def test_a_short_budget_drops_them_before_bounds(tmp_path: Path) -> None:
    short = made(tmp_path / "t", **{"stats.budget_bytes": "350"})
    assert same(short, "m['k'] = 50") == 4
    assert same(short, "id = 202") == 1
    short.append(rows(4))  # what filters have asked for is dropped last
    assert same(short, "m['k'] = 50") == 4
    kept = made(tmp_path / "u", **{"stats.budget_bytes": "350", "stats.keep": "m"})
    assert same(kept, "m['k'] = 50") == 0
    assert same(kept, "arr[0] = 50") == 4


def test_columns_that_change(tmp_path: Path) -> None:
    table = made(tmp_path / "t")
    table.alter().rename_column("m", "props").rename_column(("lines", "element", "sku"), "code").commit()
    assert same(table, "props['k'] = 2") == 1
    assert same(table, "lines[0].code = 's3'") == 1
    table.alter().widen(("arr", "element"), pa.int64()).commit()
    wide = rows(5).rename_columns(["id", "arr", "lines", "props"])
    codes = pa.list_(pa.struct([("code", pa.string()), ("n", pa.int32())]))
    lines = pa.array([[{"code": r["sku"], "n": r["n"]} for r in row] for row in wide["lines"].to_pylist()], codes)
    wide = wide.set_column(1, "arr", pa.array([[2**40]] * 20)).set_column(2, "lines", lines)
    table.append(wide)
    assert same(table, "get(arr, 0) = 2") == 1
    assert same(table, "get(arr, 0) > 1000") == 1
    table.alter().drop_column("arr").drop_column("props").commit()
    table.alter().add_column("arr", pa.list_(pa.int32())).add_column("props", pa.map_(pa.string(), pa.int64())).commit()
    assert same(table, "get(arr, 0) = 2") == same(table, "props['k'] = 2") == 0
    assert same(table, "get(arr, 0) IS NULL AND props['k'] IS NULL") == 5


def test_an_error_of_a_short_array_is_not_hidden(tmp_path: Path) -> None:
    table = made(tmp_path / "t")
    table.append(rows(8).set_column(1, "arr", pa.array([[8]] * 19 + [[]], pa.list_(pa.int32()))))
    assert len(table.scan("get(arr, 0) = 2").plan().parts) == 1
    assert len(table.scan("arr[0] = 2", options={"ansi": "false"}).plan().parts) == 1
    assert len(table.scan("arr[0] = 2").plan().parts) == 2
    with pytest.raises(tamis.TamisError):
        table.scan("arr[0] = 2").to_arrow()


LIES = {
    "a bound too narrow": ("arr", "|integer|placed_hi", lambda old: [old[0] - 1, *old[1:]]),
    "a NULL that is not there": ("arr", "|placed_nulls", lambda old: [*old[:-1], 1]),
    "a key too seldom": ("m", "|placed_count", lambda old: [old[0] - 1, *old[1:]]),
    "another key's statistics": ("m", "|places", lambda old: old[::-1]),
    "a key that is not listed": ("m", "|places", lambda old: ["other", *old[1:]]),
}


@pytest.mark.push_cases(2)
@pytest.mark.parametrize("name", LIES)
def test_verify_finds_statistics_that_do_not_hold(tmp_path: Path, name: str) -> None:
    table = tamis.create(tmp_path / "t", SCHEMA)
    table.append(pa.concat_tables([rows(2), rows(3)]))
    assert table.verify().ok
    column, suffix, change = LIES[name]
    inner = table.snapshot.head.schema.find((column,))[0].type.children[-1].id
    manifest = table.refresh().snapshot.parts(None, set(range(30))).drop_columns(["segment", "part"])
    manifest = manifest.select([n for n in manifest.column_names if n not in {"deleted", "deletion"}])
    field = manifest.schema.field(f"{inner}{suffix}")
    wrong = pa.array([change(manifest[field.name][0].as_py())], field.type)
    manifest = manifest.set_column(manifest.schema.get_field_index(field.name), field, wrong)
    commit(table.store, Proposal(Operation("plant"), table.version, add=[manifest], replace_all=True))
    found = table.refresh().verify().problems
    assert found["code"].to_pylist() == ["STATISTICS_LIE"]
    assert f"column {column!r}" in found["problem"][0].as_py()
