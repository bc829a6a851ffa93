"""Reading a table as a stream: ``spark.readStream.table("lake.db.t")``.

Invariant: a query returns the rows of its starting version, then the rows that each commit adds, each once.
Spark's checkpoint stores the position; ``stream_source.Follower`` lists the parts between two positions, and
``micro_batch`` prunes them. Before a micro-batch is planned, the reader's schema is checked against the
table's. A schema that is no longer valid fails the query with ``SchemaFenced``, at every attempt, until it is
started under the new schema.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from tamis.core.expr import Expr
from tamis.core.types import Schema
from tamis.engine.operations.streaming.range_plan import kept_parts, plan_ranges
from tamis.engine.operations.streaming.stream_source import Bools, Follower, Position, Wanted
from tamis.engine.scan.query_instants import instant_micros
from tamis.errors import InvalidInput
from tamis.spark.catalog.analyzed_schema import check_folded_columns
from tamis.spark.options.source_options import Use, read_options
from tamis.spark.streaming.micro_batch import INTERFACES, STREAM, MicroBatch, plan_with_filters, range_request
from tamis.spark.streaming.query_filters import current_filters, referenced_columns
from tamis.spark.streaming.stream_start import stored_start
from tamis.storage.commit_log import load
from tamis.storage.commit_log.part_range import PartRange

if TYPE_CHECKING:
    from tamis.spark.scan.spark_scan import Scan

_MOST_FILES = 2**31 - 1
"""Stands for "limited" where only bytes are: Spark passes the limit back, and ``latestOffset`` applies both."""


class MicroBatchStream:
    """Spark's ``MicroBatchStream``: the positions of a stream. Rows are read by ``MicroBatch``."""

    java_arity: ClassVar = {"latestOffset": (0, 2)}

    def __init__(self, scan: Scan, options: Mapping[str, str], checkpoint: str) -> None:
        self._scan = scan
        self._checkpoint = checkpoint
        self._owner = scan._owner
        found = self._options = read_options(options, {Use.READ_STREAM}, by_path=scan.source.by_path)
        self._follower = Follower(
            scan.source.store,
            scan.source.snapshot.head.table_id,
            skip_changes=found.get("skipchangecommits", False),
            skip_deletes=found.get("ignoredeletes", False),
        )
        self._max_parts: int | None = found.get("maxfilespertrigger")
        self._max_bytes: int | None = found.get("maxbytespertrigger")
        self._until: Position | None = None
        self._checked = ""
        """The offset of the last check of columns."""
        self._read: tuple[str, list[Schema]] = ("", [])
        """The end of the last micro-batch, and the sets of columns that its scans of the stream read."""
        self.java_key = ""
        self._unfiltered: MicroBatch | None = None
        plan_with_filters(self._owner)

    def java(self) -> Any:
        """Make the Java object, by whose key ``StreamFilters`` knows the stream."""
        made, self.java_key = self._owner.implement_with_key(INTERFACES, self)
        return made

    # --- positions ---

    def initialOffset(self) -> Any:  # noqa: N802
        """Return the start, which is the same at each call and after a restart.

        Spark stores only the end of the first micro-batch. Until that is committed, Spark asks for the start again,
        also when it repeats the micro-batch.
        """
        return self._offset(stored_start(self._owner, self._checkpoint, self._begin))

    def _begin(self) -> Position:
        version, timestamp = self._options.get("startingversion"), self._options.get("startingtimestamp")
        if version is not None and timestamp is not None:
            raise InvalidInput(
                "A version and a timestamp are given.",
                code="BAD_OPTION",
                name="startingVersion",
                remedy="Give one of them.",
            )
        if timestamp is not None:
            zone = self._owner.active_session().conf.get("spark.sql.session.timeZone")
            return self._follower.begin(timestamp_micros=instant_micros(timestamp, zone, name="startingTimestamp"))
        return self._follower.end() if version == "latest" else self._follower.begin(version)

    def latestOffset(self, start: Any = None, limit: Any = None) -> Any:  # noqa: N802
        if start is None:
            return self._offset(self._follower.end())
        here = Position.from_json(start.json())
        everything = limit is not None and limit.getClass().getSimpleName() == "ReadAllAvailable"
        parts, size = (None, None) if everything else (self._max_parts, self._max_bytes)
        wanted = self._counted_parts()
        after = self._follower.advance(here, max_parts=parts, max_bytes=size, until=self._until, wanted=wanted)
        if after != here:
            self._check_columns(after.to_json())
        return self._offset(after)

    def _check_columns(self, offset: str) -> None:
        """Raise ``SchemaFenced`` if what Spark knew of the columns of the query is not true up to ``offset``.

        Spark plans a micro-batch without the columns that it has simplified away, by the types and nullability that
        the query was analyzed with: ``n = 3000000000`` is FALSE for an INT. So the micro-batch checks fewer columns.
        """
        if offset == self._checked:  # Spark asks an idle stream a hundred times a second
            return
        head = load(self._scan.source.store).head
        if head.schema is not None and head.schema.fields != self.schema.fields:
            names = referenced_columns(self._owner, self.java_key)
            fields = tuple(f for f in self.schema if names is None or f.name in names)
            check_folded_columns(head, replace(self.schema, fields=fields))
        self._checked = offset

    def reportLatestOffset(self) -> Any:  # noqa: N802
        return self._offset(self._follower.end())

    def getDefaultReadLimit(self) -> Any:  # noqa: N802
        limits = self._owner.cls(STREAM + "ReadLimit")
        if self._max_parts is None and self._max_bytes is None:
            return limits.allAvailable()
        most = _MOST_FILES if self._max_parts is None else self._max_parts
        return limits.maxFiles(min(most, _MOST_FILES))  # a Java int; what is read is limited by ``_max_parts``

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        self._until = self._follower.end()

    def deserializeOffset(self, text: str) -> Any:  # noqa: N802
        """Return an offset of the checkpoint. A query that starts again may repeat the micro-batch up to it."""
        self._check_columns(text)
        return self._offset(Position.from_json(text))

    def commit(self, end: Any) -> None:  # noqa: ARG002  # a stream holds no resources
        return None

    def stop(self) -> None:
        return None

    # --- rows ---

    @property
    def schema(self) -> Schema:
        """The columns that the stream was analysed with."""
        return self._scan.source.schema

    def batch(self, conjuncts: tuple[Expr, ...], selected: Schema) -> MicroBatch:
        """Return the stream as one micro-batch reads it under ``conjuncts``."""
        return MicroBatch(self, self._scan, self._follower, conjuncts, selected)

    def column_set_number(self, end: str, selected: Schema) -> int:
        """Return a number that identifies the columns ``selected`` within the micro-batch up to ``end``."""
        if self._read[0] != end:
            self._read = end, []
        if selected not in self._read[1]:
            self._read[1].append(selected)
        return self._read[1].index(selected)

    def _counted_parts(self) -> Wanted:
        """Return a function that selects the parts that count towards a limit: those that the query's filters keep.

        Spark plans the micro-batch later, at an instant that is a few milliseconds after this one. So a
        micro-batch may be larger or smaller than intended by the parts for which that decides. All parts count
        if a scan has no filter or the filters are not known.
        """
        scan, options = self._scan, replace(self._scan.options, audit_percent=0.0)

        @cache  # asked for only if there are parts: Spark asks an idle stream a hundred times a second
        def filters() -> list[tuple[Expr, ...]]:
            found = current_filters(self._owner, self.java_key, self.schema)
            return [()] if found is None else found

        def wanted(part_range: PartRange) -> Bools:
            found = np.full(len(part_range.parts()), () in filters())
            for conjuncts in filter(None, filters() if not found.all() else []):
                request = range_request(scan, conjuncts, self.schema, options)
                found |= kept_parts(part_range, plan_ranges([part_range], scan.source.store, request))
            return found

        return wanted

    def planInputPartitions(self, start: Any, end: Any) -> Any:  # noqa: N802
        """Plan all parts between two offsets, for a session that does not pass filters."""
        self._unfiltered = MicroBatch(self, self._scan, self._follower, (), self.schema)
        self._unfiltered.java()
        return self._unfiltered.planInputPartitions(start, end)

    def createReaderFactory(self) -> Any:  # noqa: N802
        assert self._unfiltered is not None
        return self._unfiltered.createReaderFactory()

    def _offset(self, position: Position) -> Any:
        return self._owner.helper("Offsets").make(position.to_json())

    def __eq__(self, other: object) -> bool:
        return other is self or (isinstance(other, MicroBatch) and other.origin is self)

    def __hash__(self) -> int:
        return id(self)

    def __str__(self) -> str:
        return f"tamis stream of {self._scan.source.name}"
