"""Index builds by Spark's executors, and the statements CREATE INDEX and DROP INDEX."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from tamis.errors import AlreadyExists, InvalidInput, NotFound
from tamis.files import PartRef
from tamis.index import BuildSpec, Run, run_here
from tamis.spark import errors
from tamis.spark.adapter import JavaThrow
from tamis.spark.write_task import from_ipc, to_ipc

FEW_ROWS = 200_000
"""Rows that the driver indexes itself: a job costs as much."""
TASK_ROWS = 10_000_000
"""Base rows for a task: each task gives a sorted run of its own, and a look-up asks every run."""


def by_spark(spark: Any) -> Run:
    """Builds index parts by the executors of the session ``spark``, a run of index parts for each task."""

    def run(parts: Sequence[tuple[int, PartRef]], spec: BuildSpec) -> list[pa.Table]:
        rows = sum(ref.rows for _, ref in parts)
        if rows <= FEW_ROWS:
            return run_here(parts, spec)
        context = spark.sparkContext
        count = min(len(parts), max(context.defaultParallelism, -(-rows // TASK_ROWS)))
        work = [pickle.dumps(([parts[i] for i in range(at, len(parts), count)], spec)) for at in range(count)]
        return [from_ipc(m) for done in context.parallelize(work, count).map(build).collect() for m in done]

    return run


def build(pickled: bytes) -> list[bytes]:
    """What a task does: ``(parts with their ordinals, build spec)``. Manifests as IPC."""
    parts, spec = pickle.loads(pickled)  # noqa: S301  # made by our own driver
    return [to_ipc(manifest) for manifest in run_here(parts, spec)]


class Indexed:
    """The part of a table that is ``SupportsIndex``. Method names are Spark's."""

    bridge: Any
    store: Any
    snapshot: Any

    def createIndex(self, name: str, columns: Any, columns_properties: Any, properties: Any) -> None:  # noqa: N802, ARG002
        given = {k.lower(): v for k, v in self.bridge.dict(properties).items()}
        build = given.pop("build", "with_write")
        kind = given.pop("type", "")
        if kind:
            raise InvalidInput(
                f"There is no index of type {kind!r}.", code="UNKNOWN_OPTION", name=kind, remedy="Leave USING out: every index is sorted."
            )
        if given:
            name_ = next(iter(given))
            raise InvalidInput(f"An index has no option {name_!r}.", code="UNKNOWN_OPTION", name=name_, remedy="The option is build.")
        paths = [".".join(_quoted(part) for part in self.bridge.texts(column.fieldNames())) for column in columns]
        try:
            self._verb("create_index", name, paths, build)
        except AlreadyExists as error:
            raise self._thrown("IndexAlreadyExistsException", name) from error

    def dropIndex(self, name: str) -> None:  # noqa: N802
        try:
            self._verb("drop_index", name)
        except NotFound as error:
            raise self._thrown("NoSuchIndexException", name) from error

    def indexExists(self, name: str) -> bool:  # noqa: N802
        return any(index.name.lower() == name.lower() for index in self.snapshot.head.indexes)

    def listIndexes(self) -> Any:  # noqa: N802
        return self.bridge.array("org.apache.spark.sql.connector.catalog.index.TableIndex", [])

    def _verb(self, verb: str, *arguments: Any) -> None:
        from tamis.maintain import index as verbs
        from tamis.scan import Options

        session = self.bridge.active_session()
        conf = self.bridge.dict(session._jsparkSession.sessionState().conf().settings(), "tamis.")
        told = Options.resolve(None, conf, self.snapshot.head.properties).index_build
        more = {"told": told, "run": by_spark(session)} if verb == "create_index" else {}
        getattr(verbs, verb)(self.store, self.snapshot, *arguments, **more)

    def _thrown(self, kind: str, name: str) -> JavaThrow:
        return errors.index_error(self.bridge, kind, name, str(self))


def _quoted(part: str) -> str:
    return f"`{part}`" if "." in part else part
