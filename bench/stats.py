"""What statistics cost while rows are written: the same parts with collecting on against off. 15 plain columns; a VARIANT of 20 paths; the same documents as text; an array; a map.

Beside them stand floors: what a write would cost with statistics if they took one pass over the same bytes and nothing else. That of plain columns is one call for the extremes of each. Of documents, one is the parse alone by a
native parser; the other fetches eight bytes of each scalar from where it stands, and takes the least and the greatest of each path, without finding, checking or decoding them.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json

from bench.report import Figure, in_turn, ratios, record, rounds, rows
from tamis.core.expr.json_codec.variant_encoding import encode_variant
from tamis.core.types import VARIANT, Schema
from tamis.core.types.arrow import from_arrow_schema, to_arrow_type
from tamis.engine.part_writer import WriteSpec, write_parts

PLAIN_GOAL, JSON_GOAL = 1.1, 1.5
PATHS = 20


def plain(count: int) -> pa.Table:
    """Keys, numbers, texts, times; some NULLs, few and many distinct values."""
    rng = np.random.default_rng(0)
    ids = np.arange(count)
    name = pa.array([f"user-{i}" for i in range(50_000)]).take(pa.array(rng.integers(0, 50_000, count)))
    return pa.table(
        {
            "id": ids,
            "ts": pa.array(ids * 250_000, pa.timestamp("us", "UTC")),
            "day": pa.array((ids // 5000).astype(np.int32), pa.int32()).cast(pa.date32()),
            "user": rng.integers(0, 100_000, count).astype(np.int32),
            "ref": pa.array(rng.integers(0, 2**40, count), mask=ids % 17 == 0),
            **{f"number{i}": rng.integers(0, 10**6, count) for i in range(3)},
            **{f"ratio{i}": rng.random(count) * 100 for i in range(3)},
            "flag": rng.integers(0, 2, count).astype(bool),
            "name": name,
            "colour": pa.array(["red", "green", "blue", "black", "white"]).take(pa.array(rng.integers(0, 5, count))),
            "token": pa.array([f"{v:016x}" for v in rng.integers(0, 2**62, count).tolist()]),
        }
    )


def documents(count: int) -> list[str]:
    """Documents of 20 paths: integers, texts, decimals, an object."""
    rng = np.random.default_rng(1)
    whole = rng.integers(0, 100_000, (count, 8)).tolist()
    ratio = np.round(rng.random((count, 4)) * 100, 2).tolist()
    return [
        json.dumps(
            {**{f"k{j}": v for j, v in enumerate(whole[i])}, **{f"s{j}": f"abc{v % 997}" for j, v in enumerate(whole[i][:5])}, **{f"f{j}": v for j, v in enumerate(ratio[i])}, "user": {"id": i, "name": f"x{i}"}},
            separators=(",", ":"),
        )
        for i in range(count)
    ]  # fmt: skip


def variants(texts: list[str]) -> pa.Array:
    pairs = [encode_variant(text) for text in texts]
    return pa.StructArray.from_arrays(
        [pa.array([p[k] for p in pairs], pa.binary()) for k in (0, 1)], fields=list(to_arrow_type(VARIANT))
    )


def writing(table: pa.Table, schema: Schema, folder: Path, collect: bool) -> Callable[[int], Any]:
    batches = table.to_batches(max_chunksize=65_536)

    def run(turn: int) -> None:
        target = folder / f"{collect}-{turn}"
        target.mkdir()
        for _ in write_parts(iter(batches), WriteSpec(url=str(target), schema=schema, collect=collect)):
            pass
        shutil.rmtree(target)

    return run


def parse(texts: list[str]) -> Callable[[int], Any]:
    """The parse alone, on one core, of the documents in blocks as they are written."""
    blocks = ["\n".join(texts[at : at + 8_192]).encode() for at in range(0, len(texts), 8_192)]
    options = pa.json.ReadOptions(use_threads=False, block_size=2**26)

    def run(_: int) -> None:
        for block in blocks:
            pa.json.read_json(pa.BufferReader(block), read_options=options)

    return run


def gather(column: pa.Array) -> Callable[[int], Any]:
    """Eight bytes of each scalar, and the extremes of each path: places are given, in every document the same share of it."""
    blocks = []
    for at in range(0, len(column), 8_192):
        block = column.slice(at, 8_192)
        bounds = np.frombuffer(block.buffers()[1], np.int32)[block.offset : block.offset + len(block) + 1].astype(
            np.int64
        )
        data = np.frombuffer(block.buffers()[2], np.uint8)
        words = np.ndarray((len(data) - 7,), "V8", data, 0, (1,))
        shares = np.arange(PATHS)[:, None] / PATHS
        places = np.minimum((bounds[:-1] + shares * np.diff(bounds)).astype(np.int64), len(words) - 1)
        blocks.append((words, places))

    def run(_: int) -> None:
        for words, places in blocks:
            found = words[places].view("<u8")
            found.min(axis=1)
            found.max(axis=1)

    return run


def extremes(table: pa.Table) -> Callable[[int], Any]:
    """The least and the greatest value of each column in each batch, by one call: bounds cannot cost less with this library."""
    batches = table.to_batches(max_chunksize=65_536)

    def run(_: int) -> None:
        for batch in batches:
            for column in batch.columns:
                pc.min_max(column)

    return run


def lists(count: int) -> pa.Array:
    """Zero to 19 whole numbers a row."""
    rng = np.random.default_rng(2)
    ends = np.concatenate([[0], np.cumsum(rng.integers(0, 20, count))])
    return pa.ListArray.from_arrays(pa.array(ends, pa.int32()), pa.array(rng.integers(0, 10**6, ends[-1])))


def maps(count: int) -> pa.Array:
    """Ten keys a row, the same in each."""
    keys = pa.array([f"key{i}" for i in range(10)]).take(pa.array(np.tile(np.arange(10), count)))
    values = pa.array(np.random.default_rng(3).integers(0, 10**6, 10 * count))
    return pa.MapArray.from_arrays(pa.array(np.arange(count + 1) * 10, pa.int32()), keys, values)


def main() -> None:
    count = rows(1_000_000)
    texts = documents(max(count // 5, 1))
    id_column = pa.array(np.arange(len(texts)))
    cases = [
        ("15 plain columns", plain(count), PLAIN_GOAL),
        (f"VARIANT of {PATHS} paths", pa.table([id_column, variants(texts)], names=["id", "body"]), JSON_GOAL),
        (f"text of {PATHS} paths", pa.table([id_column, pa.array(texts)], names=["id", "body"]), JSON_GOAL),
        ("an array of 0 to 19", pa.table([id_column, lists(len(texts))], names=["id", "body"]), None),
        ("a map of 10 keys", pa.table([id_column, maps(len(texts))], names=["id", "body"]), None),
    ]
    figures: list[Figure] = []
    detail: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as home:
        for name, table, goal in cases:
            schema = from_arrow_schema(table.schema).assign_ids(0)
            floors = {"extremes": extremes(table)} if "plain" in name else {}
            if "paths" in name:
                body = pa.array(texts) if name.startswith("text") else table["body"].combine_chunks().field("value")
                floors = {"gather": gather(body)} | ({"parse": parse(texts)} if name.startswith("text") else {})
            seconds = in_turn(
                rounds(),
                off=writing(table, schema, Path(home), False),
                on=writing(table, schema, Path(home), True),
                **floors,
            )
            detail[name] = {"rows": len(table), "seconds": seconds}
            figures += ratios(f"write with statistics on against off: {name}", seconds["on"], seconds["off"], goal)
            for floor in floors:
                least = 1 + seconds[floor]["median"] / seconds["off"]["median"]
                figures.append(Figure(f"floor of {name}: off and {floor} alone, against off", least, "x"))
    record("stats", figures, {"cases": detail})


if __name__ == "__main__":
    main()
