"""Reading a table as a stream: ``spark.readStream.table("lake.db.t")``.

Invariant: a query returns the rows of its starting version, then the rows that each commit adds, each once.
Spark's checkpoint stores the position; ``stream_source.Follower`` lists the parts between two positions.
Before a micro-batch is planned, the reader's schema is checked against the table's. A schema that is no
longer valid fails the query with ``SchemaFenced``, at every attempt, until it is started under the new
schema.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

from tamis.core.schema import check_table_reader
from tamis.engine.operations.streaming.stream_source import Follower, Position
from tamis.engine.scan.query_instants import micros
from tamis.engine.scan.scan_options import size_of
from tamis.errors import InvalidInput
from tamis.spark.executors.partitions import Cut, pack
from tamis.spark.executors.read_task import Read
from tamis.spark.scan.python_source import python_reader
from tamis.storage.commit_log import load

if TYPE_CHECKING:
    from tamis.spark.scan.spark_scan import Scan

_STREAM = "org.apache.spark.sql.connector.read.streaming."
INTERFACES = (_STREAM + "MicroBatchStream", _STREAM + "SupportsTriggerAvailableNow")
OPTIONS = {"startingversion", "startingtimestamp", "maxfilespertrigger", "maxbytespertrigger", "skipchangecommits"}
"""Options of a stream, in lower case; users may write them in any case."""


class MicroBatchStream:
    """Spark's ``MicroBatchStream`` over a scan without filters."""

    java_arity: ClassVar = {"latestOffset": (0, 2)}

    def __init__(self, scan: Scan, options: Mapping[str, str]) -> None:
        self._scan = scan
        self._owner = scan._owner
        self._told = {key.lower(): value for key, value in options.items() if key.lower() in OPTIONS}
        skips = self._told.get("skipchangecommits", "false").lower() == "true"
        self._follower = Follower(scan.source.store, skip_changes=skips)
        self._max_parts = _number(self._told, "maxfilespertrigger")
        self._max_bytes = _size(self._told, "maxbytespertrigger")
        self._until: Position | None = None

    # --- positions ---

    def initialOffset(self) -> Any:  # noqa: N802
        return self._offset(self._begin())

    def _begin(self) -> Position:
        version, timestamp = self._told.get("startingversion"), self._told.get("startingtimestamp")
        if version is not None and timestamp is not None:
            raise _bad("startingVersion", "A version and a timestamp are given.", "Give one of them.")
        if timestamp is not None:
            return self._follower.begin(timestamp_micros=micros(timestamp))
        if version is None:
            return self._follower.begin()
        if version.lower() == "latest":
            return self._follower.end()
        if not version.isdigit():
            raise _bad("startingVersion", f"{version!r} is not a version.", "Give a number, or latest.")
        return self._follower.begin(int(version))

    def latestOffset(self, start: Any = None, limit: Any = None) -> Any:  # noqa: N802
        if start is None:
            return self._offset(self._follower.end())
        here = Position.from_json(start.json())
        everything = limit is not None and limit.getClass().getSimpleName() == "ReadAllAvailable"
        parts, size = (None, None) if everything else (self._max_parts, self._max_bytes)
        return self._offset(self._follower.advance(here, max_parts=parts, max_bytes=size, until=self._until))

    def reportLatestOffset(self) -> Any:  # noqa: N802
        return self._offset(self._follower.end())

    def getDefaultReadLimit(self) -> Any:  # noqa: N802
        limits = self._owner.cls(_STREAM + "ReadLimit")
        return limits.allAvailable() if self._max_parts is None else limits.maxFiles(self._max_parts)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        self._until = self._follower.end()

    def deserializeOffset(self, text: str) -> Any:  # noqa: N802
        return self._offset(Position.from_json(text))

    def commit(self, end: Any) -> None:  # noqa: ARG002  # a stream holds no resources
        return None

    def stop(self) -> None:
        return None

    # --- rows ---

    def planInputPartitions(self, start: Any, end: Any) -> Any:  # noqa: N802
        self._check_schema()
        parts = self._follower.parts(Position.from_json(start.json()), Position.from_json(end.json()))
        cut = Cut(replace(self._scan.plan, parts=parts, audit=parts[:0], proofs={}), self._scan.cut.sizes)
        return self._owner.helper("Partitions").python(pack(cut.tasks()))

    def createReaderFactory(self) -> Any:  # noqa: N802
        head = load(self._scan.source.store).head
        spec = replace(self._scan.plan.spec, part_schemas={s.schema_id: s for s in head.schemas})
        return python_reader(self._owner, Read(self._scan.id, spec, None), self._scan.readSchema())

    def _check_schema(self) -> None:
        check_table_reader(load(self._scan.source.store).head.schemas, self._scan.plan.spec.schema)

    def _offset(self, position: Position) -> Any:
        return self._owner.helper("Offsets").make(position.to_json())

    def __str__(self) -> str:
        return f"tamis stream of {self._scan.source.name}"


def _number(told: Mapping[str, str], name: str) -> int | None:
    text = told.get(name)
    if text is None:
        return None
    if not text.isdigit() or not int(text):
        raise _bad(name, f"{text!r} is not a number of files.", "Give a whole number above 0.")
    return int(text)


def _size(told: Mapping[str, str], name: str) -> int | None:
    text = told.get(name)
    if text is None:
        return None
    try:
        return size_of(text)
    except ValueError:
        raise _bad(name, f"{text!r} is not a size.", "Give a number of bytes, or a size such as 64MB.") from None


def _bad(name: str, what: str, remedy: str) -> InvalidInput:
    return InvalidInput(what, code="BAD_OPTION", name=name, remedy=remedy)
