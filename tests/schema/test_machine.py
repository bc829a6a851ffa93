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
    inside: tuple[Column, ...] = ()
    """The fields of a struct."""

    def shown(self, row: dict[int, Any], defaults: dict[int, Any]) -> Any:
        """The column's value in a row, which says of a struct whether it is there, and of each of its fields what it was."""
        value = row.get(self.id, defaults.get(self.id))
        if self.inside:
            return {c.name: c.shown(row, {}) for c in self.inside} if value else None
        return value


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
        return [{c.name: c.shown(row, self.defaults) for c in columns} for row in self.rows]

    def fenced(self, columns: tuple[Column, ...]) -> bool:
        live = {c.id: c for top in self.columns for c in (top, *top.inside)}
        read = [c for top in columns for c in (top, *top.inside)]
        return any(c.id not in live or (c.type, c.nullable) != (live[c.id].type, live[c.id].nullable) for c in read)


class Evolving(RuleBasedStateMachine):
    @initialize(kind=st.sampled_from(["parquet", "orc", "vortex"]))
    def create(self, kind: str) -> None:
        self.table = new_table(pa.field("k", pa.int64(), nullable=False), pa.field("a", pa.int32()), format=kind)
        self.model = Model((Column(1, "k", "BIGINT", False), Column(2, "a", "INT")))
        self.ids, self.keys = itertools.count(3), itertools.count()
        self.readers: list[Reader] = []

    def _other(self, data: st.DataObject) -> Column:
        return data.draw(st.sampled_from(self.model.columns[1:]))

    def _struct(self) -> Column | None:
        return next((c for c in self.model.columns if c.inside), None)

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

    @precondition(lambda self: self._struct() is None)
    @rule(name=st.sampled_from(NAMES))
    def nest(self, name: str) -> None:
        if name not in {c.name for c in self.model.columns}:
            self.table.alter().add_column((name,), "STRUCT<x: INT>").commit()
            self.model.columns += (
                Column(next(self.ids), name, "STRUCT", inside=(Column(next(self.ids), "x", "INT"),)),
            )

    @precondition(lambda self: self._struct() is not None)
    @rule(data=st.data(), step=st.sampled_from(["add", "drop", "rename", "widen"]))
    def change_inside(self, data: st.DataObject, step: str) -> None:
        """The same changes of a struct's fields; a name that was dropped may come again there too."""
        outer = self._struct()
        assert outer is not None
        inner = data.draw(st.sampled_from(outer.inside))
        free = [n for n in ("x", "y", "2") if n not in {c.name for c in outer.inside}]
        kept, path, change = [c for c in outer.inside if c != inner], (outer.name, inner.name), self.table.alter()
        if step == "add" and free:
            change.add_column((outer.name, free[0]), "INT").commit()
            kept = [*outer.inside, Column(next(self.ids), free[0], "INT")]
        elif step == "drop" and kept:
            change.drop_column(path).commit()
        elif step == "rename" and free:
            change.rename_column(path, free[-1]).commit()
            kept = [replace(c, name=free[-1]) if c == inner else c for c in outer.inside]
        elif step == "widen" and inner.type == "INT":
            change.widen(path, "BIGINT").commit()
            kept = [replace(c, type="BIGINT") if c == inner else c for c in outer.inside]
        else:
            return
        self._set(outer, replace(outer, inside=tuple(kept)))

    @rule(rest=st.integers(0, 2))
    def delete(self, rest: int) -> None:
        """Rows of every schema that the table ever had, by vectors and by whole parts."""
        gone = [row for row in self.model.rows if row[1] % 3 == rest]
        assert self.table.delete(f"k % 3 = {rest}").rows_deleted == len(gone)
        self.model.rows = [row for row in self.model.rows if row[1] % 3 != rest]

    @rule()
    def index(self) -> None:
        """On what is there, repaired, or gone again."""
        if not self.table.indexes():
            self.table.create_index("by_k", ["k"])
        elif any(info.missing for info in self.table.indexes()):
            self.table.repair_index()
        else:
            self.table.drop_index("by_k")

    @rule(data=st.data(), count=st.integers(1, 3))
    def append(self, data: st.DataObject, count: int) -> None:
        values = {
            "STRING": st.sampled_from(["p", "q", None]),
            "INT": st.sampled_from([1, 7, None]),
            "BIGINT": st.sampled_from([7, 2**40, None]),
        }
        plain = [c for top in self.model.columns for c in (top.inside or (top,))]
        made = [
            {c.id: next(self.keys) if c.name == "k" else data.draw(values[c.type]) for c in plain} for _ in range(count)
        ]
        for row, (outer, there) in itertools.product(
            made, [(c, data.draw(st.booleans())) for c in self.model.columns if c.inside]
        ):
            row[outer.id] = there
        kinds = [
            pa.struct([(i.name, TYPES[i.type]) for i in c.inside]) if c.inside else TYPES[c.type]
            for c in self.model.columns
        ]
        arrays = [
            pa.array([c.shown(row, {}) for row in made], kind)
            for c, kind in zip(self.model.columns, kinds, strict=True)
        ]
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
                    reader.table.scan().to_arrow()
                assert reader.table.scan().count() == len(self.model.rows)
            else:
                assert _sorted(reader.table.scan().to_arrow().to_pylist()) == _sorted(self.model.shown(reader.columns))
        for key in [row[1] for row in self.model.rows][:2]:  # by the index, where there is one
            found = fresh.table.scan(f"k = {key}", options={"tamis.index.use": "lookup"}).to_arrow().to_pylist()
            assert found == [row for row in self.model.shown(self.model.columns) if row["k"] == key]
        some = [c for c in self.model.columns if c.type in {"INT", "BIGINT"}][-1]
        wanted = [row for row in self.model.shown(self.model.columns) if row[some.name] == 7]
        name = "`" + some.name.replace("`", "``") + "`"
        assert _sorted(fresh.table.scan(f"{name} = 7").to_arrow().to_pylist()) == _sorted(wanted)
        none = [row for row in self.model.shown(self.model.columns) if row[some.name] is None]
        assert fresh.table.scan(f"{name} IS NULL").count() == len(none)


def _sorted(rows: list[dict[str, Any]]) -> list[str]:
    return sorted(map(repr, rows))


Evolving.TestCase.settings = settings(max_examples=12, stateful_step_count=14, deadline=None)
TestEvolving = Evolving.TestCase
