"""Delete, update, upsert, merge and append in any order, against a plain list of rows; every version stays what it was, by every way of reading it."""

from __future__ import annotations

import itertools
import re
import tempfile
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

import tamis
from tamis.errors import InvalidInput

SCHEMA = pa.schema([("k", pa.int64()), ("v", pa.int64()), ("s", pa.string())])
Row = dict[str, Any]

KEYS = st.none() | st.integers(0, 12)
ROWS = st.lists(
    st.fixed_dictionaries(
        {"k": KEYS, "v": st.none() | st.integers(-2, 2), "s": st.none() | st.sampled_from(["", "a", "ab"])}
    ),
    max_size=6,
)
# A filter as text, and in Python: a row is kept where the function gives True; None is NULL.
FILTERS: dict[str, Any] = {
    "k < 4": lambda r: r["k"] is not None and r["k"] < 4,
    "k >= 4": lambda r: r["k"] is not None and r["k"] >= 4,
    "k = 7 OR v = 1": lambda r: r["k"] == 7 or r["v"] == 1,
    "v IS NULL": lambda r: r["v"] is None,
    "s LIKE 'a%' AND v > -2": lambda r: (r["s"] or "").startswith("a") and r["v"] is not None and r["v"] > -2,
    "NOT (v = 0)": lambda r: r["v"] is not None and r["v"] != 0,
    "k IN (1, 2, 3, 9) AND v <> 1": lambda r: r["k"] in {1, 2, 3, 9} and r["v"] is not None and r["v"] != 1,
    "v <> 0 AND 10 / v > 1": lambda r: r["v"] is not None and r["v"] > 0,
    "true": lambda r: True,
    "false": lambda r: False,
}
FILTER = st.sampled_from(sorted(FILTERS))
UPDATES: dict[str, tuple[dict[str, Any], Any]] = {
    "v + 1": ({"v": "v + 1"}, lambda r: {**r, "v": None if r["v"] is None else r["v"] + 1}),
    "NULL": ({"s": None, "v": "k"}, lambda r: {**r, "s": None, "v": r["k"]}),
    "key": ({"k": "coalesce(k, 0)"}, lambda r: {**r, "k": r["k"] or 0}),
}
READ = [
    {},
    {"tamis.read.lazy": "on"},
    {"tamis.read.lazy": "off"},
    {"tamis.stats.filter": "off"},
    {"tamis.audit.percent": 100},
]
_numbers = itertools.count()


def table_of(rows: list[Row]) -> pa.Table:
    return pa.Table.from_pylist(rows, schema=SCHEMA)


def same(found: list[Row], expected: list[Row]) -> bool:
    return sorted(repr(sorted(r.items())) for r in found) == sorted(repr(sorted(r.items())) for r in expected)


class Rows(RuleBasedStateMachine):
    """``model`` is the table's rows, ``past`` those of versions."""

    folder: str

    @initialize(clustered=st.booleans(), small=st.booleans())
    def make(self, clustered: bool, small: bool) -> None:
        properties = {"tamis.write.part_bytes": "1"} if small else {}
        self.table = tamis.create(
            f"{self.folder}/{next(_numbers)}", SCHEMA, cluster_by=("k",) if clustered else (), properties=properties
        )
        self.model: list[Row] = []
        self.past: dict[int, list[Row]] = {0: []}

    def did(self, result: Any, model: list[Row], *, inserted: int = 0, updated: int = 0, deleted: int = 0) -> None:
        assert (result.rows_inserted, result.rows_updated, result.rows_deleted) == (inserted, updated, deleted)
        assert result.version == self.table.version
        self.model = model
        self.past[result.version] = list(model)

    @rule(rows=ROWS, more=ROWS)
    def append(self, rows: list[Row], more: list[Row]) -> None:
        everything = rows + more * 3
        self.did(self.table.append(table_of(everything)), self.model + everything, inserted=len(everything))

    @rule(text=FILTER)
    def delete(self, text: str) -> None:
        keep = [r for r in self.model if not FILTERS[text](r)]
        self.did(self.table.delete(text), keep, deleted=len(self.model) - len(keep))

    @rule(text=FILTER, name=st.sampled_from(sorted(UPDATES)))
    def update(self, text: str, name: str) -> None:
        values, new = UPDATES[name]
        hit = [r for r in self.model if FILTERS[text](r)]
        rest = [r for r in self.model if not FILTERS[text](r)]
        self.did(self.table.update(values, text), rest + [new(r) for r in hit], updated=len(hit))

    @rule(rows=ROWS)
    def upsert(self, rows: list[Row]) -> None:
        keys = [r["k"] for r in rows if r["k"] is not None]
        if len(set(keys)) < len(keys):
            with pytest.raises(InvalidInput, match="DUPLICATE_KEYS"):
                self.table.upsert(table_of(rows), on=["k"])
            return
        hit = [r for r in self.model if r["k"] in keys]
        new = {r["k"]: r for r in rows if r["k"] is not None}
        there = {r["k"] for r in hit}
        added = [r for r in rows if r["k"] not in there or r["k"] is None]
        model = [r for r in self.model if r["k"] not in keys] + [new[r["k"]] for r in hit] + added
        self.did(self.table.upsert(table_of(rows), on=["k"]), model, inserted=len(added), updated=len(hit))

    @rule(rows=ROWS, text=FILTER, only=FILTER, by_source=st.booleans())
    def merge(self, rows: list[Row], text: str, only: str, by_source: bool) -> None:
        """Rows of equal keys match where the target's also fulfils ``only``. Matched and filtered: deleted; matched: v from the source; source rows with
        v >= 0 inserted; target rows on their own with v = 2 go.
        """
        merge = self.table.merge(
            table_of(rows), on=f"target.k = source.k AND source.v IS NOT NULL AND ({_of_target(only)})"
        )
        merge = merge.when_matched_delete(condition=_of_target(text)).when_matched_update({"v": "source.v * 10"})
        merge = merge.when_not_matched_insert(condition="source.v >= 0")
        if by_source:
            merge = merge.when_not_matched_by_source_delete(condition="target.v = 2")
        usable = [r for r in rows if r["k"] is not None and r["v"] is not None]
        pairs = {i: [r for r in usable if r["k"] == t["k"] and FILTERS[only](t)] for i, t in enumerate(self.model)}
        if any(len(found) > 1 for found in pairs.values()):
            with pytest.raises(InvalidInput, match="MERGE_CARDINALITY_VIOLATION"):
                merge.execute()
            return
        model, updated, deleted = [], 0, 0
        for i, t in enumerate(self.model):
            if pairs[i] and FILTERS[text](t):
                deleted += 1
            elif pairs[i]:
                updated += 1
                model.append({**t, "v": pairs[i][0]["v"] * 10})
            elif by_source and t["v"] == 2:
                deleted += 1
            else:
                model.append(t)
        there = {t["k"] for t in self.model if FILTERS[only](t)}
        added = [r for r in rows if r["v"] is not None and r["v"] >= 0 and (r["k"] is None or r["k"] not in there)]
        self.did(merge.execute(), model + added, inserted=len(added), updated=updated, deleted=deleted)

    @rule(text=FILTER, options=st.sampled_from(READ), limit=st.integers(0, 8), data=st.data())
    def read(self, text: str, options: dict[str, str], limit: int, data: st.DataObject) -> None:
        version = data.draw(st.sampled_from(sorted(self.past)))
        expected = [r for r in self.past[version] if FILTERS[text](r)]
        scan = self.table.scan(text, version=version, options=options)
        found = scan.to_arrow().to_pylist()
        assert same(found, expected)
        assert scan.count() == len(expected)
        assert (
            self.table.scan(text, version=version, options=options, limit=limit).to_arrow().to_pylist() == found[:limit]
        )
        assert self.table.scan(text, ["v"], version=version, options=options).to_arrow()["v"].to_pylist() == [
            r["v"] for r in found
        ]

    @invariant()
    def as_the_model(self) -> None:
        if not hasattr(self, "table"):
            return
        assert same(self.table.scan().to_arrow().to_pylist(), self.model)
        assert self.table.scan().count() == len(self.model)
        assert self.table.detail()["num_rows"].to_pylist() == [len(self.model)]
        assert sum(self.table.metadata("parts")["rows"].to_pylist()) == len(self.model)


def _of_target(text: str) -> str:
    """``text`` over the target's columns of a merge."""
    return re.sub(r"\b[kvs]\b", r"target.\g<0>", text)


@pytest.mark.slow
def test_rows() -> None:
    with tempfile.TemporaryDirectory() as folder:
        Rows.folder = folder
        run_state_machine_as_test(
            Rows, settings=settings(max_examples=max(30, settings().max_examples // 3), stateful_step_count=10)
        )
