"""A random life of a table with indexes: after every step a query gives what one without index gives, and uses what the listing says is covered.

The listing itself is checked against a model that knows only which builds were made: a segment is covered if and only if each of its live parts was built
since it was last forgotten.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

import tamis
from tamis.errors import InvalidInput, StoreUnavailable
from tests.secondary_index.tables import delete, failing, ids

VALUES = st.one_of(st.none(), st.integers(-3, 12))
ROWS = st.lists(st.tuples(VALUES, VALUES), min_size=1, max_size=12)
ONLY_A, ONLY_B, EITHER = ({"ia"}, {"iba"}), ({"ib"}, {"iba"}), ({"ia"}, {"ib"}, {"iba"})
FILTERS: dict[str, tuple[set[str], ...]] = {
    "{a} = 3": ONLY_A,
    "{a} IS NULL": ONLY_A,
    "{a} <=> NULL": ONLY_A,
    "{a} > 4 AND {b} < 6": EITHER,
    "{a} = 1 OR {b} = 2": ({"ia", "ib"}, {"iba"}),
    "{a} IN (0, 2, 4, NULL)": ONLY_A,
    "{b} = 5 AND {a} <> 2": EITHER,
    "{a} + {b} = 4": ({"iba"},),
    "{b} BETWEEN 2 AND 7": ONLY_B,
}
"""Filters, and which indexes together can answer each: any one of these sets."""
INDEXES = {"ia": "a", "ib": "b", "iba": "ba"}
USES = ("auto", "lookup", "plan")


class Life(RuleBasedStateMachine):
    """``built``: by index, the parts that are covered as the builds of this very test have made it."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.path = Path(self.folder.name) / "t"
        self.built: dict[str, set[str]] = {}
        self.builds: dict[str, str] = {}
        self.names = {"a": "a", "b": "b", "c": "c"}
        """What columns are called now; c, which no index has, may be gone."""
        self.turn = 0

    def teardown(self) -> None:
        self.folder.cleanup()

    @property
    def table(self) -> tamis.Table:
        return tamis.open(self.path)

    def parts(self) -> dict[str, str]:
        """Live parts, and the segment of each."""
        found = self.table.metadata("parts")
        return dict(zip(found["part_id"].to_pylist(), found["segment_id"].to_pylist(), strict=True))

    @initialize(rows=ROWS)
    def begin(self, rows: list[Any]) -> None:
        tamis.create(self.path, pa.schema([("a", pa.int64()), ("b", pa.int32()), ("c", pa.string())]))
        self.load(rows)

    def data(self, rows: list[Any]) -> pa.Table:
        """Rows under the names and types of now."""
        schema = self.table.schema
        columns = {"a": [a for a, _ in rows], "b": [b for _, b in rows], "c": [f"{a}" for a, _ in rows]}
        return pa.table({now: pa.array(columns[was], schema.field(now).type) for was, now in self.names.items()})

    @rule(rows=ROWS)
    def load(self, rows: list[Any]) -> None:
        before = set(self.parts())
        self.table.append(self.data(rows))
        self._loaded(before, None)

    @rule(rows=ROWS, name=st.sampled_from([*INDEXES, None]))
    def load_with_a_failing_build(self, rows: list[Any], name: str | None) -> None:
        before = set(self.parts())
        with failing(name):
            self.table.append(self.data(rows))
        self._loaded(before, name or "*")

    @rule(rows=ROWS, value=st.integers(-3, 12))
    def overwrite_some(self, rows: list[Any], value: int) -> None:
        before = set(self.parts())
        self.table.overwrite(self.data(rows), row_filter=f"{self.names['a']} = {value}", allow_outside=True)
        self._loaded(before, None)

    @rule(rows=ROWS)
    def overwrite_all(self, rows: list[Any]) -> None:
        before = set(self.parts())
        self.table.overwrite(self.data(rows))
        self._loaded(before, None)

    @rule()
    def compact(self) -> None:
        before = set(self.parts())
        self.table.compact()
        self._loaded(before, None)

    @rule(value=st.integers(-3, 12))
    def delete_some(self, value: int) -> None:
        delete(self.table, f"{self.names['b']} = {value}")

    @rule(value=st.integers(-3, 12), column=st.sampled_from("ab"))
    def update_some(self, value: int, column: str) -> None:
        before = set(self.parts())
        name = self.names[column]
        self.table.update({name: f"{name} + 1"}, f"{self.names['a']} = {value}")
        self._loaded(before, None)

    @rule(rows=ROWS)
    def upsert(self, rows: list[Any]) -> None:
        before = set(self.parts())
        self.table.upsert(self.data(list({a: (a, b) for a, b in rows}.values())), on=self.names["a"])
        self._loaded(before, None)

    @rule(data=st.data())
    def look_back(self, data: st.DataObject) -> None:
        """An earlier version, under its own names, by what was built then."""
        version = data.draw(st.integers(1, self.table.version))
        then = tamis.open(self.path, version=version)
        names = {column: next((n for n in then.schema.names if n.startswith(column)), None) for column in "ab"}
        row_filter = data.draw(st.sampled_from(sorted(FILTERS))).format(**names)
        plain = then.scan(row_filter, options={"tamis.index.use": "off"}).to_arrow()
        for use in USES:
            assert then.scan(row_filter, options={"tamis.index.use": use}).to_arrow().equals(plain), (
                version,
                row_filter,
                use,
            )
            assert self.table.scan(row_filter, version=version, options={"tamis.index.use": use}).count() == len(plain)

    @rule(column=st.sampled_from("ab"), at=st.integers(0, 3))
    def rename(self, column: str, at: int) -> None:
        if (name := f"{column}{at}") != self.names[column]:
            self.table.alter().rename_column(self.names[column], name).commit()
            self.names[column] = name

    @rule()
    def widen(self) -> None:
        if self.table.schema.field(self.names["b"]).type == pa.int32():
            self.table.alter().widen(self.names["b"], pa.int64()).commit()

    @rule()
    def drop_or_add_a_column(self) -> None:
        if "c" in self.names:
            self.table.alter().drop_column(self.names.pop("c")).commit()
        else:
            self.names["c"] = "c"
            self.table.alter().add_column("c", pa.string(), default="'x'").commit()

    @precondition(lambda self: self.built)
    @rule(data=st.data())
    def drop_an_indexed_column(self, data: st.DataObject) -> None:
        name = data.draw(st.sampled_from(sorted(self.built)))
        with pytest.raises(InvalidInput) as caught:
            self.table.alter().drop_column(self.names[INDEXES[name][0]]).commit()
        assert caught.value.code == "INDEXED_COLUMN"

    @rule(data=st.data())
    def restore(self, data: st.DataObject) -> None:
        before = set(self.parts())
        version = data.draw(st.integers(1, self.table.version))
        self.table.restore(version, allow_dropped_columns=True)
        self._loaded(before, None)

    @rule(name=st.sampled_from([*INDEXES]), build=st.sampled_from(["with_write", "deferred"]), fail=st.booleans())
    def create(self, name: str, build: str, fail: bool) -> None:
        if name in self.built:
            return
        self.built[name], self.builds[name] = set(), build
        if not fail:
            self.table.create_index(name, self.columns(name), build=build)
            if build == "with_write":
                self.built[name] = set(self.parts())
            return
        try:
            with failing():
                self.table.create_index(name, self.columns(name), build=build)
        except StoreUnavailable:
            assert self.parts()
            assert build == "with_write"

    def columns(self, name: str) -> list[str]:
        return [self.names[column] for column in INDEXES[name]]

    @precondition(lambda self: self.built)
    @rule(data=st.data())
    def drop(self, data: st.DataObject) -> None:
        name = data.draw(st.sampled_from(sorted(self.built)))
        self.table.drop_index(name)
        del self.built[name]

    @precondition(lambda self: self.built)
    @rule(data=st.data())
    def drop_segments(self, data: st.DataObject) -> None:
        name = data.draw(st.sampled_from(sorted(self.built)))
        chosen = data.draw(st.sets(st.sampled_from(every))) if (every := ids(self.table)) else set()
        self.table.drop_index_segments(name, sorted(chosen))
        self.built[name] -= {part for part, segment in self.parts().items() if segment in chosen}

    @precondition(lambda self: self.built)
    @rule(data=st.data(), fail=st.booleans())
    def repair(self, data: st.DataObject, fail: bool) -> None:
        name = data.draw(st.sampled_from(sorted(self.built)))
        parts = self.parts()
        chosen = (
            data.draw(st.none() | st.lists(st.sampled_from(sorted(set(parts.values()))), unique=True))
            if parts
            else None
        )
        wanted = {part for part, segment in parts.items() if chosen is None or segment in chosen}
        lacking = wanted - self.built[name]
        if fail and lacking:
            try:
                with failing():
                    self.table.repair_index(name, chosen)
            except StoreUnavailable:
                return
            raise AssertionError("a repair that failed reported success")
        assert bool(self.table.repair_index(name, chosen).parts_added) == bool(lacking)
        self.built[name] |= wanted

    @invariant()
    def answers_and_coverage(self) -> None:
        if not self.path.exists():
            return
        table, parts = self.table, self.parts()
        covered: dict[str, set[str]] = {}
        for entry in table.indexes():
            missing = {segment for part, segment in parts.items() if part not in self.built[entry.name]}
            assert set(entry.missing) == missing, entry.name
            assert set(entry.covered) == set(parts.values()) - missing
            covered[entry.name] = set(entry.covered)
        assert set(covered) == set(self.built)
        self.turn += 1
        for at, (text, enough) in enumerate(FILTERS.items()):
            row_filter = text.format(**self.names)
            unindexed = table.scan(row_filter, options={"tamis.index.use": "off", "tamis.read.lazy": "off"})
            plain = unindexed.to_arrow()
            asked = {parts[ref.part_id] for ref in unindexed.plan().parts if not ref.all_match}
            answerable = any(asked.intersection(*(covered.get(name, set()) for name in names)) for names in enough)
            use = USES[(self.turn + at) % len(USES)]
            for columns in (tuple(plain.column_names), (self.names["b"], self.names["a"])):
                scan = table.scan(row_filter, columns, options={"tamis.index.use": use})
                assert scan.to_arrow().equals(plain.select(columns)), (row_filter, columns, use)
                assert scan.report is not None
                assert "could not be used" not in scan.report.index_reason, scan.report.index_reason
                if use != "auto":
                    any_used = bool(
                        scan.report.indexes
                    )  # value sets may rule out one side of an OR, so that fewer indexes are enough
                    assert any_used == answerable or (any_used and " OR " in row_filter), (
                        row_filter,
                        use,
                        covered,
                        scan.report.index_reason,
                    )
                for used in scan.report.indexes:
                    assert 0 < used.segments <= len(covered[used.name])
                    assert used.segments + used.missing <= len(set(parts.values()))
            assert table.scan(row_filter, options={"tamis.index.use": use}).count() == len(plain), (row_filter, use)

    def _loaded(self, before: set[str], failed: str | None) -> None:
        for name in self.built:
            if self.builds[name] == "with_write" and failed not in (name, "*"):
                self.built[name] |= set(self.parts()) - before


TestLife = Life.TestCase
TestLife.settings = settings(max_examples=max(5, settings().max_examples // 25), stateful_step_count=14)
