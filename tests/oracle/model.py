"""The model of a table: the same rows as plain Parquet files, changed by plain Spark SQL."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from tests.oracle import history as h
from tests.oracle.kinds import KINDS, staged_array

_numbers = itertools.count()


class CardinalityError(Exception):
    """A MERGE must be refused: several source rows match one target row."""


def staging_select(columns: h.Columns, source: str) -> str:
    """SQL that makes a table's columns of a staging file's."""
    return (
        "SELECT "
        + ", ".join(f"{KINDS[kind].staged.format(name)} AS {name}" for name, kind in columns.items())
        + f" FROM {source}"
    )


def staged_table(values: dict[str, list[Any]], columns: h.Columns) -> pa.Table:
    """The values as a staging file holds them; a column that they lack is NULL."""
    rows = len(next(iter(values.values()), []))
    return pa.table({name: staged_array(kind, values.get(name) or [None] * rows) for name, kind in columns.items()})


class Model:
    """Its states are temporary views over Parquet; the current one is ``view``."""

    def __init__(self, spark: Any, folder: Path, name: str) -> None:
        self.spark, self.folder, self.name = spark, folder, name
        self.columns: h.Columns = {}
        self.generated: dict[str, str] = {}
        self.view = ""
        self.states: list[tuple[str, h.Columns]] = []
        """View and columns after each step."""

    def stage(self, values: dict[str, list[Any]], columns: h.Columns) -> str:
        """A view of ``values`` with the columns' SQL types."""
        name = f"{self.name}_s{next(_numbers)}"
        path = self.folder / f"{name}.parquet"
        pq.write_table(staged_table(values, columns), path)
        self.spark.read.parquet(str(path)).createOrReplaceTempView(f"{name}_file")
        self.spark.sql(staging_select(columns, f"{name}_file")).createOrReplaceTempView(name)
        return name

    def take(self, step: h.Step) -> None:
        """Does what ``step`` says. Raises ``CardinalityError`` for a MERGE that must be refused, and remembers the state as it was."""
        try:
            self._take(step)
        finally:
            self.states.append((self.view, dict(self.columns)))

    def _take(self, step: h.Step) -> None:
        match step:
            case h.Adopt(columns, values=values, deleted=deleted):
                self.columns = dict(columns)
                gone = ", ".join(map(str, deleted)) or "NULL"
                self._write(f"SELECT * FROM {self.stage(values, columns)} WHERE coalesce(k NOT IN ({gone}), true)")
            case h.Create(columns, generated=generated):
                self.columns, self.generated = dict(columns), generated
                self._write(f"SELECT * FROM {self.stage({name: [] for name in columns}, columns)}")
            case h.Append(values):
                self._write(f"SELECT * FROM {self.view} UNION ALL SELECT * FROM {self.stage(values, self.columns)}")
            case h.Delete(predicate):
                self._write(f"SELECT * FROM {self.view} WHERE NOT coalesce({predicate}, false)")
            case h.Overwrite(values, predicate):
                kept = f"SELECT * FROM {self.view} WHERE NOT coalesce({predicate}, false)"
                self._write(f"{kept} UNION ALL SELECT * FROM {self.stage(values, self.columns)}")
            case h.Update(sets, predicate):
                self._write(f"SELECT {self._changed(sets, predicate)} FROM {self.view}")
            case h.Merge():
                self._merge(step)
            case h.Rename(name, to):
                self.columns = h.columns_after(self.columns, step, [])
                self._write(f"SELECT * EXCEPT ({name}), {name} AS {to} FROM {self.view}")
            case h.Drop(name):
                self.columns = h.columns_after(self.columns, step, [])
                self.generated = {c: text for c, text in self.generated.items() if c != name}
                self._write(f"SELECT * EXCEPT ({name}) FROM {self.view}")
            case h.Add(name, kind, default):
                self.columns = h.columns_after(self.columns, step, [])
                self._write(
                    f"SELECT *, CAST({default or 'NULL'} AS {KINDS[kind].plain_sql}) AS {name} FROM {self.view}"
                )
            case h.Widen(name, kind):
                self.columns = h.columns_after(self.columns, step, [])
                self._write(
                    f"SELECT * EXCEPT ({name}), CAST({name} AS {KINDS[kind].plain_sql}) AS {name} FROM {self.view}"
                )
            case h.Restore(at):
                self.view, self.columns = self.states[at]

    def _write(self, select: str) -> None:
        """A new state: the rows of ``select``, generated columns computed anew, in the order of the table's columns."""
        name = f"{self.name}_m{next(_numbers)}"
        path = str(self.folder / name)
        kept = [f"{KINDS[kind].kept.format(c)} AS {c}" for c, kind in self.columns.items() if c not in self.generated]
        made = [f"{self.generated[c]} AS {c}" if c in self.generated else c for c in self.columns]
        self.spark.sql(f"SELECT {', '.join(made)} FROM (SELECT {', '.join(kept)} FROM ({select}))").write.parquet(path)
        schema = ", ".join(f"{column} {KINDS[kind].plain_sql}" for column, kind in self.columns.items())
        rows = self.spark.read.schema(schema).parquet(path)
        # Spark pads CHAR where it reads tables. The optimizer proves `c <> c` false of a bare column, not of a padded
        # one; without the padding, the query over the model would not evaluate a conjunct that fails.
        rows = rows.selectExpr(*(f"{KINDS[kind].kept.format(c)} AS {c}" for c, kind in self.columns.items()))
        for column, kind in self.columns.items():
            if KINDS[kind].metadata:
                rows = rows.withMetadata(column, dict(KINDS[kind].metadata))
        rows.createOrReplaceTempView(name)
        self.view = name

    def _changed(self, sets: dict[str, str], predicate: str) -> str:
        """A select list: the columns, those of ``sets`` changed where ``predicate`` is true."""
        made = []
        for name, kind in self.columns.items():
            made.append(
                f"IF({predicate}, CAST({sets[name]} AS {KINDS[kind].plain_sql}), {name}) AS {name}"
                if name in sets
                else name
            )
        return ", ".join(made)

    def _merge(self, step: h.Merge) -> None:
        source = f"(SELECT *, true AS marked FROM {self.stage(step.values, self.columns)}) AS source"
        target = f"(SELECT *, monotonically_increasing_id() AS place FROM {self.view}) AS target"
        joined = f"{target} LEFT JOIN {source} ON {step.on}"
        matched = [c for c in step.clauses if c.when == "matched"]
        only_deleted = len(matched) == 1 and matched[0].condition is None and matched[0].sets is None
        if matched and not only_deleted:
            counted = f"SELECT count(source.marked) AS n FROM {joined} GROUP BY target.place"
            if self.spark.sql(f"SELECT coalesce(max(n), 0) FROM ({counted})").first()[0] > 1:
                raise CardinalityError
        kept = [c for c in step.clauses if c.when != "not_matched"]
        inserts = [c for c in step.clauses if c.when == "not_matched"]
        marks = {"matched": "source.marked", "by_source": "source.marked IS NULL"}
        action = _first_of([f"{marks[c.when]} AND {c.condition or 'true'}" for c in kept])
        gone = [str(i) for i, c in enumerate(kept) if c.sets is None]
        keep = f"WHERE {action} NOT IN ({', '.join(gone)})" if gone else ""
        rows = f"SELECT {self._cases(kept, action, 'target.')} FROM {joined} {keep}"
        if inserts:
            taken = _first_of([c.condition or "true" for c in inserts])
            rows += f" UNION ALL SELECT {self._cases(inserts, taken, '')} FROM {source} LEFT ANTI JOIN {target} ON {step.on} WHERE {taken} >= 0"
        self._write(rows)

    def _cases(self, clauses: list[h.Clause], action: str, otherwise: str) -> str:
        """A select list: each column by the clause that takes the row; ``otherwise`` + column, or NULL, where none does."""
        made = []
        for name, kind in self.columns.items():
            cases = [f"WHEN {i} THEN CAST({c.sets.get(name, otherwise + name if otherwise else 'NULL')} AS {KINDS[kind].plain_sql})"
                     for i, c in enumerate(clauses) if c.sets is not None]  # fmt: skip
            rest = otherwise + name if otherwise else "NULL"
            made.append(f"CASE {action} {' '.join(cases)} ELSE {rest} END AS {name}" if cases else f"{rest} AS {name}")
        return ", ".join(made)


def _first_of(conditions: list[str]) -> str:
    """SQL: the number of the first condition that is true, or −1."""
    return (
        "CASE " + " ".join(f"WHEN {c} THEN {i}" for i, c in enumerate(conditions)) + " ELSE -1 END"
        if conditions
        else "-1"
    )
