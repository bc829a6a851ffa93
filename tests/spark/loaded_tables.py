"""Tables of random parts at every budget of statistics, beside the same rows in plain Parquet."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import tamis
from tamis.engine.operations.rows.append import write_rows
from tamis.engine.scan import Options
from tamis.storage.commit_log import Operation, Proposal, commit
from tamis.world import new_id

BUDGETS = (None, 2048, 256, 0)
"""Bytes of statistics per part; None: no limit."""

PARTS, PER_SEGMENT = 40, 5

COLUMNS = 150
"""Filters in one projection."""

Matrix = np.ndarray[Any, np.dtype[np.bool_]]


class Loaded(NamedTuple):
    """The parts in one table, a copy at every budget, and the same rows once in plain Parquet."""

    spark: Any
    name: str
    table: tamis.Table
    plain: str
    starts: Any
    """The row at which each part begins, and the end of the last."""

    def rows(self, condition: str) -> list[int]:
        """What Spark finds in the table: every row as often as there are budgets."""
        return sorted(self.spark.sql(f"SELECT rid FROM {self.name} WHERE {condition}").toArrow()["rid"].to_pylist())

    def scan(self, condition: str, **options: Any) -> tamis.Scan:
        return self.table.scan(condition, ["rid"], options=options)

    def embedded(self, condition: str, **options: Any) -> list[int] | None:
        """The same of an embedded scan; None where it does not know a function."""
        try:
            return sorted(self.scan(condition, **options).to_arrow()["rid"].to_pylist())
        except tamis.InvalidInput as error:
            if error.code != "UNKNOWN_FUNCTION":
                raise
            return None

    def expected(self, conditions: list[str]) -> Matrix:
        """What plain Spark says of each row, a line per filter: true, or not."""
        lines = []
        for start in range(0, len(conditions), COLUMNS):
            chosen = conditions[start : start + COLUMNS]
            columns = ", ".join(f"(({c}) IS TRUE) AS c{i}" for i, c in enumerate(chosen))
            found = self.spark.sql(f"SELECT rid, {columns} FROM {self.plain}").toArrow().sort_by("rid")
            lines += [found[f"c{i}"].to_numpy(zero_copy_only=False) for i in range(len(chosen))]
        return np.array(lines, dtype=np.bool_)

    def misjudged(self, condition: str, truth: Any, **options: Any) -> tuple[str, Any]:
        """What a plan gets wrong about the filter, and the share of parts that it skips at each budget."""
        plan = self.scan(condition, **options).plan()
        hits, sizes = np.add.reduceat(truth.astype(np.int64), self.starts[:-1]), np.diff(self.starts)
        shape = (len(BUDGETS), -(-len(sizes) // PER_SEGMENT), PER_SEGMENT)
        read, whole = np.zeros(shape, np.bool_), np.zeros(shape, np.bool_)
        segment, part = (plan.parts.table[name].to_numpy() for name in ("segment", "part"))
        at = (segment // shape[1], segment % shape[1], part)
        read[at], whole[at] = True, plan.parts.all_match
        read, whole = (each.reshape(len(BUDGETS), -1)[:, : len(sizes)] for each in (read, whole))
        lost, invented = ~read & (hits > 0), whole & (hits < sizes)
        wrong = [
            f"budget {budget}: {condition}: loses rows of parts {np.flatnonzero(gone).tolist()}, invents rows of {np.flatnonzero(made).tolist()}"
            for budget, gone, made in zip(BUDGETS, lost, invented, strict=True)
            if gone.any() or made.any()
        ]
        return "\n".join(wrong), 1 - read.mean(axis=1)


def loaded(path: Path, parts: list[pa.Table]) -> tamis.Table:
    """A table of these parts, in segments of ``PER_SEGMENT``, at one budget after the other."""
    table = tamis.create(path, parts[0].schema)
    for budget in BUDGETS:
        options = Options.resolve(None, None, {} if budget is None else {"tamis.stats.budget_bytes": budget})
        for start in range(0, len(parts), PER_SEGMENT):
            head, chosen = table.refresh().snapshot.head, parts[start : start + PER_SEGMENT]
            manifests = [
                m for part in chosen for m in write_rows(table.store, head, part.combine_chunks().to_batches(), options)
            ]
            add = Proposal(
                Operation("append"),
                table_id=head.table_id,
                read_version=table.version,
                blind_append=True,
                add=manifests,
                operation_id=new_id(),
            )
            commit(table.store, add)
    return tamis.open(path, table.refresh().version)


def load(session: Any, root: Path, name: str, parts: list[pa.Table]) -> Loaded:
    pq.write_table(pa.concat_tables(parts).drop_columns("v"), root / f"{name}.parquet")
    session.read.parquet(str(root / f"{name}.parquet")).selectExpr("*", "try_parse_json(j) v").createOrReplaceTempView(
        f"plain_{name}"
    )
    starts = np.cumsum([0, *(len(part) for part in parts)])
    return Loaded(
        session, f"oracle_lake.db.{name}", loaded(root / "lake" / "db" / name, parts), f"plain_{name}", starts
    )


_UNWRAP = "org.apache.spark.sql.catalyst.optimizer.UnwrapCastInBinaryComparison"
"""This rule turns ``CAST(n AS TIMESTAMP) > t`` into ``n > CAST(t AS TIMESTAMP_NTZ)``, which in the gaps of a time zone is another question (Apia, 2011-12-30)."""


def interpreted(spark: Any, zone: str, ansi: bool) -> None:
    """The session's settings. Hundreds of columns, once: compiling them takes longer than running them."""
    values = {
        "session.timeZone": zone,
        "ansi.enabled": str(ansi).lower(),
        "codegen.wholeStage": "false",
        "codegen.factoryMode": "NO_CODEGEN",
    }
    for key, value in {**values, "optimizer.excludedRules": _UNWRAP}.items():
        spark.conf.set(f"spark.sql.{key}", value)
