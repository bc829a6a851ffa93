"""Vortex keeps texts that are not UTF-8, whatever the library makes of them: one value, few, or nested ones."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import tamis
from tamis.storage.files.vortex import vortex_writer

pytest.importorskip("vortex")

CAFE, PLAIN = b"caf\xe9", b"a"
MOSTLY: list[bytes | None] = [*[CAFE] * 4000, *[PLAIN] * 1000]
CASES: dict[str, list[bytes | None]] = {
    "one": [CAFE],
    "one value": [CAFE] * 3,
    "one value and NULL": [CAFE, None, CAFE],
    "mixed": [CAFE, PLAIN, b"\xff\x00", b"", None],
    "mostly one": MOSTLY,
    "well formed": [PLAIN, "é".encode(), None],
}


def texts(values: list[bytes | None]) -> pa.Array:
    return pa.array(values, pa.binary()).cast(pa.string(), safe=False)


def rows(values: list[bytes | None]) -> pa.Table:
    found = texts(values)
    offsets = pa.array(range(len(values) + 1), pa.int32())
    return pa.table(
        {
            "k": pa.array(range(len(values)), pa.int64()),
            "s": found,
            "t": pa.StructArray.from_arrays([found, found.is_null()], ["x", "n"]),
            "l": pa.ListArray.from_arrays(offsets, found),
            "m": pa.MapArray.from_arrays(offsets, pa.array(["k"] * len(values)), found),
        }
    )


def raw(array: pa.ChunkedArray) -> Any:
    return array.combine_chunks().cast(pa.binary(), safe=False).to_pylist()


def stored(table: tamis.Table, row_filter: str | None = None) -> dict[str, Any]:
    """The bytes of all texts, and the keys, in the order of the keys."""
    found = table.scan(row_filter).to_arrow().sort_by("k")
    chunk = found.combine_chunks()
    return {
        "k": found["k"].to_pylist(),
        "s": raw(found["s"]),
        "t": raw(pa.chunked_array([c.field("x") for c in chunk["t"].chunks])),
        "l": raw(pa.chunked_array([c.flatten() for c in chunk["l"].chunks])),
        "m": raw(pa.chunked_array([c.items for c in chunk["m"].chunks])),
    }


def expected(values: list[bytes | None]) -> dict[str, Any]:
    return {"k": list(range(len(values)))} | dict.fromkeys("stlm", values)


@pytest.mark.parametrize("values", CASES.values(), ids=CASES)
def test_texts_are_stored_as_they_are(tmp_path: Path, values: list[bytes | None]) -> None:
    table = tamis.create(tmp_path / "t", rows(values).schema, format="vortex")
    table.append(rows(values))
    assert stored(table) == expected(values)
    assert table.scan("s = 'a'").count() == values.count(PLAIN)
    assert not len(table.verify().problems)
    for options in ({"tamis.read.lazy": "on"}, {"tamis.read.lazy": "off"}):
        assert table.scan("k = 0", ["s"], options=options).count() == 1
    first = stored(table, "k = 0")
    assert first == {name: found[:1] for name, found in expected(values).items()}


@pytest.mark.slow
def test_blocks_of_one_part_may_differ(tmp_path: Path) -> None:
    values = [PLAIN] * 70_000 + [CAFE] * 70_000 + [None] * 10
    table = tamis.create(tmp_path / "t", rows(values).schema, format="vortex")
    table.append(rows(values))
    assert stored(table) == expected(values)
    table.delete("s = 'a'")
    assert raw(table.scan(None, ["s"]).to_arrow()["s"]) == [CAFE] * 70_000 + [None] * 10
    table.compact()
    assert raw(table.scan(None, ["s"]).to_arrow()["s"]) == [CAFE] * 70_000 + [None] * 10


def test_parts_of_older_releases_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They hold such texts as texts, of which the library cannot select rows."""
    values = MOSTLY
    with monkeypatch.context() as older:
        older.setattr(
            vortex_writer, "with_malformed_as_bytes", lambda columns, schema: pa.record_batch(columns, schema=schema)
        )
        table = tamis.create(tmp_path / "t", rows(values).schema, format="vortex")
        table.append(rows(values))
    table.delete("s = 'a'")
    assert raw(table.scan(None, ["s"]).to_arrow()["s"]) == [CAFE] * 4000
    table.compact()
    assert raw(table.scan(None, ["s"]).to_arrow()["s"]) == [CAFE] * 4000
