"""A row change as one commit: deletion vectors, whole parts removed by metadata, and new parts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from tamis.core.expr import Expr, Literals, column_paths, short_sql, to_sql
from tamis.engine.operations.layout.index_commits import commit_indexed
from tamis.engine.operations.result import Result, written_counts
from tamis.engine.scan import Options
from tamis.engine.secondary_index import Run, run_here
from tamis.storage.commit_log import Operation, Proposal, ReadSet, Snapshot
from tamis.storage.commit_log.deletion_vectors import serialize_vector
from tamis.storage.object_store import Store
from tamis.world import new_id

MOST_LOGGED_VALUES = 100
"""Values of a list literal that the log records in full."""


@dataclass(slots=True)
class RowChange:
    """The effect of a verb on rows.

    ``gone`` maps part ids to bitmaps of deleted row ordinals; ``whole`` lists parts whose live rows all go.
    """

    verb: str
    reads: ReadSet
    options: Options
    conjuncts: Sequence[Expr] | None = None
    exact: bool = False
    """Whether every row that ``reads`` matched goes (``Proposal.exact``)."""
    parameters: dict[str, Any] = field(default_factory=dict)
    gone: dict[str, Any] = field(default_factory=dict)
    whole: list[str] = field(default_factory=list)
    manifests: list[pa.Table] = field(default_factory=list)
    inserted: int = 0
    updated: int = 0
    deleted: int = 0
    read: int = 0
    """Parts whose rows were read."""
    bytes_read: int = 0

    def commit(self, store: Store, snapshot: Snapshot, run: Run = run_here) -> tuple[Snapshot, Result]:
        """Commit the change with index segments of new parts (built by ``run``); a no-op if it is empty.

        Raises ``Conflict`` if another commit changed what was read, or the same rows.
        """
        _, parts, size = written_counts(self.manifests)
        if not (self.gone or self.whole or parts):
            return snapshot, Result(snapshot.version, parts_read=self.read, bytes_read=self.bytes_read)
        thinned, emptied = split_deletions(snapshot, self.gone)
        whole = [*self.whole, *emptied]
        result = Result(
            -1,
            rows_inserted=self.inserted,
            rows_updated=self.updated,
            rows_deleted=self.deleted,
            parts_added=parts,
            parts_removed=len(whole),
            bytes_written=size,
            parts_read=self.read,
            parts_thinned=len(thinned),
            bytes_read=self.bytes_read,
        )
        proposal = Proposal(
            operation=Operation(self.verb, self.parameters, result.metrics()),
            table_id=snapshot.head.table_id,
            read_version=snapshot.version,
            read_operation_id=snapshot.commit.operation_id,
            reads=self.reads,
            conjuncts=self.conjuncts,
            exact=self.exact,
            add=self.manifests,
            remove_parts=whole,
            delete_rows=thinned,
            operation_id=new_id(),
        )
        build, catch_up = self.options.index_build, self.options.index_catch_up
        after = commit_indexed(store, snapshot.head, proposal, build, run, catch_up=catch_up)
        return after, replace(result, version=after.version)


def split_deletions(snapshot: Snapshot, gone: Mapping[str, Any]) -> tuple[dict[str, bytes], list[str]]:
    """Return the deletion vectors of the parts that keep a row, and the ids of the parts that keep none."""
    if not gone:
        return {}, []
    parts = snapshot.parts()
    parts = parts.filter(pc.is_in(parts["part_id"], value_set=pa.array(list(gone), pa.string())))
    live = pc.subtract(parts["rows"], parts["deleted"]).to_pylist()
    left = {part: rows - len(gone[part]) for part, rows in zip(parts["part_id"].to_pylist(), live, strict=True)}
    thinned = {part: serialize_vector(rows) for part, rows in gone.items() if left.get(part, 1) > 0 and len(rows)}
    return thinned, [part for part, rows in left.items() if rows <= 0]


def read_set(conjuncts: Sequence[Expr], options: Options) -> ReadSet:
    """Return the read set of a verb that visits the rows matching ``conjuncts`` (none: all rows)."""
    if not conjuncts:
        return ReadSet(zone=options.timezone, ansi=options.ansi)
    named = tuple(dict.fromkeys(path for c in conjuncts for path in column_paths(c)))
    text = " AND ".join(f"({_conjunct_text(c)})" for c in conjuncts)
    return ReadSet(text, named, options.timezone, options.ansi, options.stats_filter)


def _conjunct_text(conjunct: Expr) -> str:
    """Format a conjunct for the log, truncating long lists. Conflicts are judged by the conjunct itself."""
    long = any(isinstance(node, Literals) and len(node.array) > MOST_LOGGED_VALUES for node in conjunct.walk())
    return short_sql(conjunct) if long else to_sql(conjunct)
