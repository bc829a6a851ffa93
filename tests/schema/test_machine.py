"""Histories of many steps against a model in plain Python: rows, and whether each reader that was opened on the way may still read."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

import tamis
from tamis import IncompatibleSchema, SchemaFenced, Table
from tests.schema.making import new_table

NAMES = ["a", "A b", "10", "2", "x.y", "ü'\"`"]
TYPES = {"INT": pa.int32(), "BIGINT": pa.int64(), "STRING": pa.string()}


@dataclass(frozen=True)
class Column:
    id: int
    name: str
    type: str
    nullable: bool = True


@dataclass
class Reader:
    table: Table
    columns: tuple[Column, ...]


@dataclass
class Model:
    """Rows by column id; a row lacks what was not there when it was written, and ``defaults`` say what it shows then."""

    columns: tuple[Column, ...] = ()
    rows: list[dict[int, Any]] = field(default_factory=list)
    defaults: dict[int, Any] = field(default_factory=dict)

    def shown(self, columns: tuple[Column, ...]) -> list[dict[str, Any]]:
        return [{c.name: row.get(c.id, self.defaults.get(c.id)) for c in columns} for row in self.rows]

    def fenced(self, columns: tuple[Column, ...]) -> bool:
        live = {c.id: c for c in self.columns}
        return any(c.id not in live or (c.type, c.nullable) != (live[c.id].type, live[c.id].nullable) for c in columns)


class Evolving(RuleBasedStateMachine):
    @initialize(kind=st.sampled_from(["parquet", "orc", "vortex"]))
    def create(self, kind: str) -> None:
        self.table = new_table(pa.field("k", pa.int64(), nullable=False), pa.field("a", pa.int32()), format=kind)
        self.model = Model((Column(1, "k", "BIGINT", False), Column(2, "a", "INT")))
        self.ids, self.keys = itertools.count(3), itertools.count()
        self.readers: list[Reader] = []

    def _other(self, data: st.DataObject) -> Column:
        return data.draw(st.sampled_from(self.model.columns[1:]))

    def _set(self, old: Column, new: Column) -> None:
        self.model.columns = tuple(new if c == old else c for c in self.model.columns)

    @rule(data=st.data(), kind=st.sampled_from(sorted(TYPES)), default=st.booleans())
    def add(self, data: st.DataObject, kind: str, default: bool) -> None:
        free = [n for n in NAMES if n not in {c.name for c in self.model.columns}]
        if not free:
            return
        column = Column(next(self.ids), data.draw(st.sampled_from(free)), kind)
        text = None if not default else "'d'" if kind == "STRING" else "7"
        self.table.alter().add_column((column.name,), kind, default=text).commit()
        self.model.columns += (column,)
        self.model.defaults[column.id] = None if not default else "d" if kind == "STRING" else 7

    @precondition(lambda self: len(self.model.columns) > 1)
    @rule(data=st.data())
    def drop(self, data: st.DataObject) -> None:
        gone = self._other(data)
        self.table.alter().drop_column((gone.name,)).commit()
        self.model.columns = tuple(c for c in self.model.columns if c != gone)

    @precondition(lambda self: len(self.model.columns) > 1)
    @rule(data=st.data(), name=st.sampled_from(NAMES))
    def rename(self, data: st.DataObject, name: str) -> None:
        old = self._other(data)
        if name not in {c.name for c in self.model.columns}:
            self.table.alter().rename_column((old.name,), name).commit()
            self._set(old, replace(old, name=name))

    @rule()
    def relax(self) -> None:
        self.table.alter().drop_not_null("k").commit()
        self._set(self.model.columns[0], replace(self.model.columns[0], nullable=True))

    @precondition(lambda self: any(c.type == "INT" for c in self.model.columns))
    @rule(data=st.data())
    def widen(self, data: st.DataObject) -> None:
        old = data.draw(st.sampled_from([c for c in self.model.columns if c.type == "INT"]))
        self.table.alter().widen((old.name,), "BIGINT").commit()
        self._set(old, replace(old, type="BIGINT"))

    @rule(data=st.data(), count=st.integers(1, 3))
    def append(self, data: st.DataObject, count: int) -> None:
        values = {
            "STRING": st.sampled_from(["p", "q", None]),
            "INT": st.sampled_from([1, 7, None]),
            "BIGINT": st.sampled_from([7, 2**40, None]),
        }
        made = [{c.id: next(self.keys) if c.name == "k" else data.draw(values[c.type]) for c in self.model.columns} for _ in range(count)]
        arrays = [pa.array([row[c.id] for row in made], TYPES[c.type]) for c in self.model.columns]
        self.table.append(pa.Table.from_arrays(arrays, names=[c.name for c in self.model.columns]))
        self.model.rows += made

    @rule()
    def compact(self) -> None:
        self.table.compact()

    @rule()
    def open(self) -> None:
        self.readers = [*self.readers[-4:], Reader(tamis.open(self.table.path), self.model.columns)]

    @precondition(lambda self: len(self.model.columns) > 1)
    @rule(data=st.data())
    def refuse(self, data: st.DataObject) -> None:
        """The registry does not take back what went, nor another order."""
        current = self.table.schema
        shuffled = pa.schema([*list(current)[1:], current.field(0)])
        version = tamis.open(self.table.path).version
        with pytest.raises(IncompatibleSchema) as caught:
            self.table.compare_and_evolve_schema(self.table.schema_id, shuffled)
        assert caught.value.code == "MIGRATION_REORDER"
        assert tamis.open(self.table.path).version == version

    @invariant()
    def readers_see_the_rows_or_are_fenced(self) -> None:
        if not hasattr(self, "model"):
            return
        fresh = Reader(tamis.open(self.table.path), self.model.columns)
        for reader in (*self.readers, fresh):
            if self.model.fenced(reader.columns):
                with pytest.raises(SchemaFenced):
                    reader.table.scan()
            else:
                assert _sorted(reader.table.scan().to_arrow().to_pylist()) == _sorted(self.model.shown(reader.columns))
        some = [c for c in self.model.columns if c.type != "STRING"][-1]
        wanted = [row for row in self.model.shown(self.model.columns) if row[some.name] == 7]
        name = "`" + some.name.replace("`", "``") + "`"
        assert _sorted(fresh.table.scan(f"{name} = 7").to_arrow().to_pylist()) == _sorted(wanted)
        none = [row for row in self.model.shown(self.model.columns) if row[some.name] is None]
        assert fresh.table.scan(f"{name} IS NULL").count() == len(none)


def _sorted(rows: list[dict[str, Any]]) -> list[str]:
    return sorted(map(repr, rows))


Evolving.TestCase.settings = settings(max_examples=12, stateful_step_count=12, deadline=None)
TestEvolving = Evolving.TestCase
