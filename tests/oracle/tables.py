"""Random histories of small tables."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from random import Random  # noqa: TID251  # seeded by the caller
from typing import Any

from tests.oracle import adoptions
from tests.oracle import history as h
from tests.oracle.kinds import KINDS, PLAIN, WIDER, apart_values, column_values, rank, some_literal
from tests.oracle.predicates import Predicates

BASE = {"a": "int", "s": "string"}
MAYBE = {"b": "bigint", "d": "double", "x": "binary"}
"""In every other table."""
OTHERS = ("tinyint", "smallint", "double", "double", "float", "decimal", "decimal38", "boolean", "binary", "date", "timestamp", "ntz", "interval", "char", "char",
          "struct", "array", "array", "map", "map", "orders", "keyed", "json", "json", "json", "variant", "typed")  # fmt: skip
FORMATS = ("parquet", "parquet", "parquet", "orc", "vortex")
UNFIT = {
    "orc": {"variant", "typed", "interval", "ntz"},
    "vortex": {"variant", "typed", "interval", "map", "keyed"},
    **adoptions.UNFIT,
}
"""Kinds that a format, or a source, cannot hold."""

DOCUMENTS = {"json", "variant", "typed"}

BIG = (1024, 1030, 160)
"""Rows of 64 blocks, after which statistics fold what they have gathered; or of a few."""

GENERATED = {
    "int": (("int", "{} % 7"), ("bigint", "{} div 10"), ("int", "abs({} % 100)")),
    "string": (("string", "substring({}, 1, 2)"), ("string", "upper({})"), ("int", "length({})")),
    "timestamp": (("date", "CAST({} AS DATE)"), ("timestamp", "date_trunc('HOUR', {})")),
    "ntz": (("date", "CAST({} AS DATE)"),),
    "date": (("int", "year({})"), ("date", "trunc({}, 'MM')")),
    "double": (("bigint", "floor({} % 1000)"),),
}
"""By the kind of a source: the kind of a generated column, and its expression."""

THEMES = ("any", "any", "indexed", "indexed", "apart", "long", "trimmed", "trimmed", "scant")
"""``scant``: some parts of a commit have bounds of a column and others have none, as the budget ends at one and not at the next."""


class Tables:
    """Histories, one a call. ``k`` numbers the rows in the order in which they came."""

    def __init__(self, rng: Random) -> None:
        self.rng = rng
        self._next = 0
        self.theme = ""
        """What questions about the table are best about, one of ``THEMES``."""
        self._loads: list[tuple[int, int]] = []
        """The first and last ``k`` of the rows that came together."""
        self._apart: set[str] = set()
        """Columns whose values differ from part to part."""
        self._generated: dict[str, str] = {}
        """Expressions of generated columns."""
        self._sources: dict[str, str] = {}
        """The column that each of them reads."""
        self._trimmed: list[str] = []
        """Columns whose least or greatest values were deleted."""

    def history(self, *, plain: bool = False, merged: bool = False) -> h.History:
        """``plain``: Parquet that is only appended to, as most tables are; every reader may read it. ``merged``: statements of SQL come last, a MERGE among them."""
        rng = self.rng
        source = adoptions.some_source(rng)
        made = "parquet" if plain or source else rng.choice(FORMATS)
        columns = self._columns(source or made)
        self._generated, self._sources = {}, {}
        if not plain and source is None and rng.random() < 0.25:
            self._generate(columns)
        self.theme = "plain" if plain else rng.choice(THEMES)
        self._apart = {
            c
            for c, kind in columns.items()
            if kind in PLAIN and rng.random() < (0.7 if self.theme == "apart" else 0.15)
        }
        ordered = [name for name, kind in columns.items() if kind in PLAIN and kind != "interval"]
        cluster = tuple(rng.sample(ordered, rng.choice((0, 0, 1, 1, 2))))
        properties = self._properties(columns)
        if self.theme in {"long", "scant"}:
            properties["tamis.write.part_bytes"] = rng.choice(("1", "300"))
        if self.theme == "scant":
            properties["tamis.stats.budget_bytes"] = rng.choice(("100", "200", "400"))
        self._next, self._loads = 0, []
        first = h.Create(columns, made, cluster, properties, self._generated)
        if source is not None:
            first = adoptions.adopted(rng, first, source, self.values)
            columns = first.columns
        steps: list[h.Step] = [first]
        if self.theme == "indexed" or (not plain and rng.random() < 0.2):
            steps += [self._index(columns, name) for name in rng.choice((("i0",), ("i0", "i1")))]
        wanted = rng.choice((1, 2, 3, 5, 5) if plain else (2, 3, 5) if merged else (0, 1, 1, 1, 2, 2, 3, 3, 5))
        for _ in range(wanted):
            steps.append(self._append(columns, rng.choice((1, 5, 17, 40, 90))))
            if not plain and rng.random() < 0.06:
                steps += self._reformat(steps, columns)
            if self.theme == "indexed" and rng.random() < 0.4:
                steps.append(rng.choice((h.Repair(), h.ForgetSegments())))
        if rng.random() < 0.15 and "tamis.write.part_bytes" not in properties:
            steps.append(self._append(columns, rng.choice(BIG)))
        for _ in range(0 if plain else rng.choice((1, 2)) if self.theme == "trimmed" else rng.random() < 0.4):
            steps += self._delete(steps, columns)
        for _ in range(0 if plain else rng.choice((0, 0, 1)) if merged else rng.choice((1, 2, 3))):
            steps += self._change(steps)
        if merged:
            columns = h.columns_of(tuple(steps))[-1]
            for step in (
                *self._delete(steps, columns),
                *self._merge(steps, columns, (20, 50)),
                *self._merge(steps, columns),
            ):
                assert isinstance(step, h.Delete | h.Merge)
                steps.append(replace(step, how="sql"))
        return tuple(steps)

    def focus(self, history: h.History) -> list[str]:
        """Columns that are worth more questions: those of indexes and clustering, those that were added, and a few others."""
        first, rng = history[0], self.rng
        assert isinstance(first, h.Create)
        found = [*first.cluster_by, *(c for step in history if isinstance(step, h.Index) for c in step.columns)]
        plain = [c for c, kind in first.columns.items() if kind in PLAIN]
        if self.theme in {"long", "scant"}:
            found += [c for c, kind in first.columns.items() if kind in {"string", "binary"}]
        found += [*sorted(self._apart), *self._trimmed, *(step.name for step in history if isinstance(step, h.Add))]
        return list(dict.fromkeys(found + rng.sample(plain, min(len(plain), 2))))

    def _columns(self, data_format: str) -> h.Columns:
        rng = self.rng
        columns = {"k": "bigint", **BASE, **{c: kind for c, kind in MAYBE.items() if rng.random() < 0.5}}
        fits = [kind for kind in OTHERS if kind not in UNFIT.get(data_format, ())]
        for kind in rng.sample(fits, rng.choice((1, 2, 2, 3, 4, 6))):
            columns[f"{kind[:2]}{len(columns)}"] = kind
        return columns

    def _generate(self, columns: h.Columns) -> None:
        """Add one or two generated columns."""
        sources = [(c, kind) for c, kind in columns.items() if kind in GENERATED]
        for source, kind in self.rng.sample(sources, min(len(sources), self.rng.choice((1, 1, 2)))):
            made, expression = self.rng.choice(GENERATED[kind])
            name = f"g{len(columns)}"
            columns[name], self._generated[name] = made, expression.format(source)
            self._sources[name] = source

    def _properties(self, columns: h.Columns) -> dict[str, str]:
        rng, found = self.rng, dict[str, str]()
        if rng.random() < 0.5:
            found["tamis.write.part_bytes"] = str(rng.choice((1, 300, 1500)))
        if rng.random() < 0.15:
            found["tamis.stats.budget_bytes"] = str(rng.choice((0, 100, 400, 1000)))
        if rng.random() < 0.08:
            found["tamis.stats.collect"] = "off"
        documents = [name for name, kind in columns.items() if kind in DOCUMENTS]
        if documents and rng.random() < 0.3:
            found["tamis.write.shred"] = f"{documents[0]}.a"
        return found

    def values(self, columns: h.Columns, rows: int) -> dict[str, list[Any]]:
        made = {name: self._made(name, kind, rows) for name, kind in columns.items() if name != "k"}
        first, self._next = self._next, self._next + rows
        self._loads.append((first, self._next - 1))
        return {"k": list(range(first, self._next)), **made}

    def _made(self, name: str, kind: str, rows: int) -> list[Any]:
        if name in self._generated:
            return [None] * rows
        if name in self._apart:
            return apart_values(self.rng, kind, rows)
        if self.theme == "scant" and kind in {"string", "binary"}:  # short in one half of the parts, long in the other
            halves = [column_values(self.rng, kind, rows // 2, 0), column_values(self.rng, kind, rows - rows // 2, 1)]
            return [v for half in self.rng.sample(halves, 2) for v in half]
        return column_values(self.rng, kind, rows, 0.7 if self.theme == "long" else 0.2)

    def _append(self, columns: h.Columns, rows: int) -> h.Append:
        if self.rng.random() < 0.08:
            return h.Append(self.values(columns, rows), "embedded", self.rng.randrange(1, 10**6))
        return h.Append(self.values(columns, rows), self.rng.choice(("embedded", "embedded", "sql")))

    def _index(self, columns: h.Columns, name: str) -> h.Index:
        rng = self.rng
        chosen = rng.sample([c for c, kind in columns.items() if kind in PLAIN], rng.choice((1, 1, 2)))
        return h.Index(name, tuple(chosen), rng.choice(("with_write", "with_write", "deferred")), rng.random() < 0.6)

    def _change(self, steps: list[h.Step]) -> list[h.Step]:
        columns = h.columns_of(tuple(steps))[-1]
        of_rows: list[Callable[[list[h.Step], h.Columns], list[h.Step]]] = [
            self._delete,
            self._delete,
            self._update,
            self._overwrite,
            self._merge,
            self._merge,
            self._merge,
            self._more,
        ]
        others = [
            self._merge,
            self._rename,
            self._drop_and_add,
            self._widen,
            self._restore,
            self._widen_source,
            self._tend,
            self._tend,
            self._indexes,
            self._indexes,
            self._limits,
            self._reformat,
        ]
        makers = of_rows if self.rng.random() < 0.5 else others
        return self.rng.choice(makers)(steps, columns)

    def _predicate(self, columns: h.Columns) -> str:
        asked = Predicates(self.rng, columns)
        return asked.simple() if self.rng.random() < 0.6 else asked.predicate(1)

    def _sets(self, columns: h.Columns, source: str | None = None) -> dict[str, str]:
        rng, found = self.rng, dict[str, str]()
        fit = [c for c, kind in columns.items() if KINDS[kind].ordered and c != "k" and c not in self._generated]
        for name in rng.sample(fit, min(len(fit), rng.choice((1, 1, 2)))):
            literal = some_literal(rng, columns[name])
            found[name] = rng.choice(
                (literal, "NULL", f"{source or ''}{name}", f"coalesce({source or ''}{name}, {literal})")
            )
        return found

    def _delete(self, steps: list[h.Step], columns: h.Columns) -> list[h.Step]:
        return [h.Delete(self._some_rows(steps, columns), self.rng.choice(("sql", "embedded")))]

    def _ends(self, steps: list[h.Step], columns: h.Columns) -> str | None:
        """A predicate of the least or the greatest values of a column, as retention deletes them; None without values."""
        known = {c: v for c, v in h.samples_of(tuple(steps)).items() if columns[c] in PLAIN and c != "k"}
        if not known:
            return None
        name = self.rng.choice(list(known))
        self._trimmed.append(name)
        values, op = sorted(known[name], key=rank), self.rng.choice(("<=", "<", ">=", ">"))
        near = min(self.rng.choice((0, 1, len(values) // 8)), len(values) - 1)
        return f"{name} {op} {KINDS[columns[name]].literal(values[near if '<' in op else -1 - near])}"

    def _some_rows(self, steps: list[h.Step], columns: h.Columns) -> str:
        """Return a change's predicate, true of many rows, of rows loaded together, of a column's ends, or of any."""
        rng, last = self.rng, max(self._next, 1)
        if rng.random() < (0.7 if self.theme == "trimmed" else 0.1) and (ends := self._ends(steps, columns)):
            return ends
        if self._loads and rng.random() < 0.15:  # whole parts, whose index entries stay
            return "k BETWEEN {} AND {}".format(*rng.choice(self._loads))
        first = rng.randrange(last)
        key_predicate = rng.choice(
            (
                f"k % {rng.choice((2, 3, 7))} = {rng.randrange(2)}",
                f"k BETWEEN {first} AND {first + rng.choice((0, 3, 20, 60))}",
            )
        )
        return key_predicate if rng.random() < 0.5 else self._predicate(columns)

    def _update(self, steps: list[h.Step], columns: h.Columns) -> list[h.Step]:
        return [h.Update(self._sets(columns), self._some_rows(steps, columns), self.rng.choice(("sql", "embedded")))]

    def _overwrite(self, steps: list[h.Step], columns: h.Columns) -> list[h.Step]:
        return [h.Overwrite(self.values(columns, self.rng.choice((0, 3, 20))), Predicates(self.rng, columns).simple(), self.rng.choice(("sql", "embedded")))]  # fmt: skip

    def _merge(self, steps: list[h.Step], columns: h.Columns, sizes: tuple[int, ...] = (1, 5, 20, 50)) -> list[h.Step]:
        rng = self.rng
        rows, span = rng.choice(sizes), max(self._next, 1)
        values = self.values(columns, rows)
        self._next -= rows
        keys = rng.sample(range(span + rows), rows)
        if rng.random() < 0.25:  # a statement that must be refused, if such a key is met
            keys = [rng.choice(keys) if rng.random() < 0.3 else key for key in keys]
        values["k"] = [None if rng.random() < 0.05 else key for key in keys]
        on, how = "(target.k = source.k)", rng.choice(("sql", "sql", "embedded"))
        whens = ["matched", "matched", "not_matched"] if rng.random() < 0.7 else ["matched", "not_matched", "by_source"]
        clauses = [
            self._clause(when, columns, last=i == len(whens) - 1 or whens[i + 1] != when)
            for i, when in enumerate(whens)
        ]
        clauses = [c for c in clauses if rng.random() < 0.8 or c.when == "matched"]
        if rng.random() < 0.3:
            on = f"(target.k = source.k AND {Predicates(rng, {c: k for c, k in columns.items() if k in PLAIN}, 'target.').simple()})"
        return [h.Merge(values, on, tuple(clauses), how, how == "sql" and rng.random() < 0.3)]

    def _clause(self, when: str, columns: h.Columns, *, last: bool) -> h.Clause:
        rng = self.rng
        plain = {c: k for c, k in columns.items() if k in PLAIN and k != "interval"}
        side = "source." if when != "by_source" and (when == "not_matched" or rng.random() < 0.5) else "target."
        if side == "source.":  # which is of STRING, and not padded
            plain = {c: k for c, k in plain.items() if k != "char"}
        condition = Predicates(rng, plain, side).simple() if not last or rng.random() < 0.5 else None
        if when == "not_matched":
            return h.Clause(
                when,
                condition,
                {"k": "source.k", **{c: f"source.{c}" for c in columns if c != "k" and rng.random() < 0.8}},
            )
        if rng.random() < 0.4:
            return h.Clause(when, condition, None)
        return h.Clause(when, condition, self._sets(columns, "target." if when == "by_source" else "source."))

    def _bound(self, steps: list[h.Step]) -> set[str]:
        """Columns that clustering or an index needs: they stay as they are."""
        gone = {step.name for step in steps if isinstance(step, h.Drop)}
        found = {"k"} | {c for name, source in self._sources.items() if name not in gone for c in (name, source)}
        for step in steps:
            found |= (
                set(step.cluster_by)
                if isinstance(step, h.Create)
                else set(step.columns)
                if isinstance(step, h.Index)
                else set()
            )
        return found

    def _free(self, steps: list[h.Step], columns: h.Columns) -> str:
        return self.rng.choice([c for c in columns if c not in self._bound(steps)] or ["s"])

    def _rename(self, steps: list[h.Step], columns: h.Columns) -> list[h.Step]:
        """Rename a column, or let two swap names, and append."""
        free = [c for c in columns if c not in self._bound(steps)]
        if not free:
            return []
        spare = f"{free[0]}_r{len(steps)}"
        if len(free) > 1 and self.rng.random() < 0.5:
            one, other = self.rng.sample(free, 2)
            renames = [h.Rename(one, spare), h.Rename(other, one), h.Rename(spare, other)]
        else:
            renames = [h.Rename(self.rng.choice(free), spare)]
        for step in renames:
            columns = h.columns_after(columns, step, [])
        return [*renames, self._append(columns, 20)]

    def _drop_and_add(self, steps: list[h.Step], columns: h.Columns) -> list[h.Step]:
        rng, name = self.rng, self._free(steps, columns)
        if name in self._bound(steps) or columns[name] in DOCUMENTS:  # the property that shreds may name it
            return []
        fits = set(columns.values()) & DOCUMENTS  # a kind that the format can hold
        kind = rng.choice(("int", "string", "char", "date", "bigint", *sorted(fits)))
        back = name if rng.random() < 0.6 else f"n{len(steps)}"
        added = h.Add(back, kind, some_literal(rng, kind) if kind not in fits and rng.random() < 0.5 else None)
        after = h.columns_after(h.columns_after(columns, h.Drop(name), []), added, [])
        return [h.Drop(name), added, *([self._append(after, 20)] if rng.random() < 0.7 else [])]

    def _widen(self, steps: list[h.Step], columns: h.Columns) -> list[h.Step]:
        fit = [c for c, kind in columns.items() if kind in WIDER and c not in self._bound(steps)]
        if not fit:
            return []
        name = self.rng.choice(fit)
        step = h.Widen(name, WIDER[columns[name]])
        return [step, *([self._append(h.columns_after(columns, step, []), 20)] if self.rng.random() < 0.7 else [])]

    def _widen_source(self, steps: list[h.Step], columns: h.Columns) -> list[h.Step]:
        """Drop the generated columns, and widen what one of them read."""
        names = {name for name in self._sources if name in columns}
        kept = {c for step in steps if isinstance(step, h.Create) for c in step.cluster_by}
        kept |= {c for step in steps if isinstance(step, h.Index) for c in step.columns}
        fit = {self._sources[name] for name in names if columns[self._sources[name]] in WIDER} - kept
        if not fit or names & kept:
            return []
        name = self.rng.choice(sorted(fit))
        after = {c: kind for c, kind in columns.items() if c not in names}
        step = h.Widen(name, WIDER[after[name]])
        more = [self._append(h.columns_after(after, step, []), 20)] if self.rng.random() < 0.5 else []
        return [*(h.Drop(n) for n in sorted(names)), step, *more]

    def _restore(self, steps: list[h.Step], columns: h.Columns) -> list[h.Step]:
        changed = max(
            i for i, step in enumerate(steps) if isinstance(step, h.Create | h.Rename | h.Drop | h.Add | h.Widen)
        )
        return [h.Restore(self.rng.randrange(changed, len(steps)))]

    def _tend(self, steps: list[h.Step], columns: h.Columns) -> list[h.Step]:
        return [h.Compact(self.rng.choice(("embedded", "sql")))]

    def _reformat(self, steps: list[h.Step], columns: h.Columns) -> list[h.Step]:
        kinds = set(columns.values())
        fits = [name for name in dict.fromkeys(FORMATS) if not kinds & UNFIT.get(name, set())]
        return [h.Format(self.rng.choice(fits)), self._append(columns, self.rng.choice((5, 20, 40)))]

    def _more(self, steps: list[h.Step], columns: h.Columns) -> list[h.Step]:
        return [self._append(columns, self.rng.choice((1, 20))) for _ in range(self.rng.choice((1, 3)))]

    def _indexes(self, steps: list[h.Step], columns: h.Columns) -> list[h.Step]:
        rng = self.rng
        if not any(isinstance(step, h.Index) for step in steps):
            return [self._index(columns, "i1"), self._append(columns, 20)]
        return [
            rng.choice(
                (h.ForgetSegments(), h.Repair(), h.DamageIndex("cut"), h.DamageIndex("gone"), h.DamageIndex("bit"))
            )
        ]

    def _limits(self, steps: list[h.Step], columns: h.Columns) -> list[h.Step]:
        values = self.rng.choice(
            ({"tamis.stats.budget_bytes": "200"}, {"tamis.stats.collect": "off"}, {"tamis.stats.collect": "on"})
        )
        return [h.Properties(values), self._append(columns, 30)]
