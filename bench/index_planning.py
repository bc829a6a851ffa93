"""Planning a look-up over many segments and several indexes: milliseconds, and how they grow. Embedded."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import tamis
from bench.report import Figure, in_turn, record, rounds, rows

EACH = 100


def main() -> None:
    segments = max(rows(1_000), 40)
    with tempfile.TemporaryDirectory() as home:
        table = tamis.create(Path(home) / "t")
        keys = np.random.default_rng(1).permutation(segments * EACH)
        for number in range(segments):
            key = keys[number * EACH : (number + 1) * EACH]
            table.append(
                pa.table(
                    {
                        "key": key,
                        "other": key[::-1] * 7,
                        "text": [f"u{k}" for k in key],
                        "third": key % 1_000,
                        "w": key * 0.5,
                    }
                )
            )
            if number == 0:
                for name, columns in (("ik", ["key"]), ("io", ["other"]), ("it", ["text"]), ("i3", ["third", "key"])):
                    table.create_index(name, columns)
        end = table.version
        points = {share: tamis.open(table.path, version=end * share // 4) for share in (1, 2, 4)}
        work: dict[str, Any] = {
            f"{share}/4": lambda turn, t=t: t.scan(f"key = {int(keys[turn])} AND text = 'u{int(keys[turn])}'").plan()
            for share, t in points.items()
        }
        taken = in_turn(3 * rounds(), **work)
        found = points[4].indexes()
        kept = {share: len(t.metadata("segments")) for share, t in points.items()}
    least = {name: t["min"] * 1000 for name, t in taken.items()}
    detail = {
        "segments": kept,
        "milliseconds": taken,
        "index_segments": {i.name: i.index_segments for i in found},
        "rows_per_segment": EACH,
    }
    figures = [
        Figure(f"plan, {kept[4]:,} segments, 4 indexes", least["4/4"], "ms", 150),
        Figure("plan, four times the segments", least["4/4"] / least["1/4"], "×", 4),
    ]
    record("index_planning", figures, detail)


if __name__ == "__main__":
    main()
