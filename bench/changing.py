"""Deletes and merges: a retention delete over 1,000 segments, one row of many by a selective filter, 10,000 keys clustered in 1 % of a table beside ``deltalake``."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import tamis
from bench.report import Figure, record, rounds, rows

SEGMENTS = 1_000
PARTS = 100


def main() -> None:
    count = rows(10_000_000)
    figures: list[Figure] = []
    detail: dict[str, Any] = {"rows": count}
    with tempfile.TemporaryDirectory() as home:
        folder = Path(home)
        detail["retention"] = retention(folder, figures)
        detail["needle"] = needle(folder, count, figures)
        detail["merge"] = merge(folder, count, figures)
    record("changing", figures, detail)


def retention(folder: Path, figures: list[Figure]) -> dict[str, Any]:
    """The older half of 1,000 segments goes, again and again from the same version."""
    table = tamis.create(folder / "retention", pa.schema([("ts", pa.int64()), ("n", pa.int64())]))
    for at in range(SEGMENTS):
        table.append(pa.table({"ts": np.arange(at * 100, at * 100 + 100), "n": np.zeros(100, dtype=np.int64)}))
    taken = []
    for at in range(rounds()):
        fresh = tamis.open(folder / "retention")
        seconds, result = timed(
            lambda fresh=fresh, at=at: fresh.delete(f"ts < {SEGMENTS // 2 * 100 // rounds() * (at + 1)}")
        )
        assert (result.parts_read, result.parts_removed) == (0, SEGMENTS // 2 // rounds())
        taken.append(seconds)
    whole = tamis.create(folder / "whole", table.schema)
    for at in range(SEGMENTS):
        whole.append(pa.table({"ts": np.arange(at * 100, at * 100 + 100), "n": np.zeros(100, dtype=np.int64)}))
    seconds, result = timed(lambda: tamis.open(folder / "whole").delete(f"ts < {SEGMENTS // 2 * 100}"))
    assert result.parts_removed == SEGMENTS // 2
    figures.append(Figure("retention delete of half of 1,000 segments, s", seconds, "s", 0.5))
    figures.append(Figure("retention delete, data parts read", result.parts_read, "parts", 0))
    return {"seconds": seconds, "in turns": taken}


def timed(work: Any) -> tuple[float, Any]:
    start = time.perf_counter()
    result = work()
    return time.perf_counter() - start, result


def needle(folder: Path, count: int, figures: list[Figure]) -> dict[str, Any]:
    """One row of many: bytes of the delete against those of the same SELECT of one column."""
    table = tamis.create(folder / "needle", big(1).schema)
    table.append(batches(count))
    scan = table.scan("token = 4711", ["token"], options={"tamis.read.lazy": "on"})
    assert scan.count() == 1
    scan.to_arrow()
    select = scan.report.bytes["leader"] + scan.report.bytes["follower"]
    before = files(folder / "needle")
    result = table.delete("token = 4711")
    assert result.rows_deleted == 1
    new = files(folder / "needle") - before
    figures.append(
        Figure(
            f"delete of one row of {count:,}: bytes read / those of the same lazy SELECT",
            result.bytes_read / select,
            "×",
            1.1,
        )
    )
    figures.append(Figure("delete of one row: objects written", len(new), "objects", 1))
    return {
        "select_bytes": select,
        "delete_bytes": result.bytes_read,
        "new": sorted(str(Path(p).relative_to(folder)) for p in new),
        "commit_bytes": max(Path(p).stat().st_size for p in new),
    }


def merge(folder: Path, count: int, figures: list[Figure]) -> dict[str, Any]:
    """10,000 keys in 1 % of the key range."""
    from deltalake import DeltaTable, write_deltalake

    table = tamis.create(folder / "merge", big(1).schema, properties={"tamis.write.part_bytes": "1000000"})
    step = count // PARTS
    for at in range(PARTS):
        table.append(big(step, at * step))
    write_deltalake(str(folder / "delta"), big(step), target_file_size=10**9)
    for at in range(1, PARTS):
        write_deltalake(str(folder / "delta"), big(step, at * step), mode="append")
    keys = np.sort(
        np.random.default_rng(1).choice(
            np.arange(count // 2, count // 2 + count // 100), min(10_000, count // 200), replace=False
        )
    )
    source = pa.table({"id": keys, "token": keys, "text": ["new"] * len(keys)})
    matching = len({i for i, (lo, hi) in enumerate(bounds(table)) if np.any((keys >= lo) & (keys <= hi))})

    def delta() -> None:
        merged = DeltaTable(str(folder / "delta")).merge(source, "t.id = s.id", source_alias="s", target_alias="t")
        merged.when_matched_update_all().when_not_matched_insert_all().execute()

    theirs, _ = timed(delta)
    ours, result = timed(lambda: table.upsert(source, on=["id"]))
    assert result.rows_updated == len(keys)
    touched = result.parts_thinned + result.parts_removed
    figures.append(Figure("merge: parts touched / parts matching", touched / max(matching, 1), "×", 1.2))
    figures.append(Figure("merge: seconds, tamis / deltalake", ours / theirs, "×", None))
    return {
        "seconds": {"tamis": ours, "deltalake": theirs},
        "matching": matching,
        "touched": touched,
        "read": result.parts_read,
    }


def bounds(table: Any) -> list[tuple[int, int]]:
    found = table.metadata("parts")["statistics"].to_pylist()
    return [(row["id"]["lo"], row["id"]["hi"]) for row in found]


def big(size: int, first: int = 0) -> pa.Table:
    ids = np.arange(first, first + size)
    return pa.table(
        {
            "id": ids,
            "token": (ids * 2_654_435_761) % (2**32) if size > 1 else ids,
            "text": np.char.add("text ", (ids % 1000).astype(str)),
        }
    )


def batches(count: int) -> pa.RecordBatchReader:
    """Rows of which exactly one has the token 4711."""
    step = 1_000_000

    def made() -> Any:
        for first in range(0, count, step):
            table = big(min(step, count - first), first)
            ids = table["id"].to_numpy()
            token = np.where(
                ids == count // 3, 4_711, (ids * 7_919) % 1_000_003 + 5_000 * (ids % 2 == 0) + 4_712 * (ids % 2)
            )
            yield from table.set_column(
                1, "token", pa.array(np.where((token == 4_711) & (ids != count // 3), 1, token))
            ).to_batches()

    return pa.RecordBatchReader.from_batches(big(1).schema, made())


def files(folder: Path) -> set[str]:
    return {str(p) for p in folder.rglob("*") if p.is_file()}


if __name__ == "__main__":
    main()
