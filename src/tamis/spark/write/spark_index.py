"""Index builds on Spark's executors, and the statements CREATE INDEX and DROP INDEX."""

from __future__ import annotations

import pickle
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from tamis.core.types.identifiers import dotted_path
from tamis.engine.operations.layout import index_operations as verbs
from tamis.engine.scan import Options
from tamis.engine.secondary_index import Run, Work
from tamis.errors import AlreadyExists, InvalidInput, NotFound
from tamis.sizes import SIZES
from tamis.spark.executors.executor_function import executor_function
from tamis.spark.executors.write_task import from_ipc, to_ipc
from tamis.spark.jvm_bridge import spark_errors
from tamis.spark.jvm_bridge.java_callback import JavaThrow
from tamis.spark.write.spark_job import spark_job

FEW_ROWS = SIZES.index_driver_rows
"""Maximum number of rows that the driver indexes itself: a Spark job would cost as much."""
TASK_ROWS = 10_000_000
"""Base rows per task. Each task makes a sorted run of its own, and a look-up searches every run."""


def spark_index_builder(spark: Any) -> Run:
    """Return a function that builds index parts on the executors of ``spark``, a sorted run per task."""

    def run(work: Work) -> list[pa.Table]:
        if work.rows <= FEW_ROWS:
            return work.manifests()
        context = spark.sparkContext
        pieces = [
            pickle.dumps(piece) for piece in work.cut(max(context.defaultParallelism, -(-work.rows // TASK_ROWS)))
        ]
        with spark_job(spark, "build an index of", work.url):
            done = context.parallelize(pieces, len(pieces)).map(executor_function(spark, build_index_task)).collect()
        return [from_ipc(m) for of_task in done for m in of_task]

    return run


def build_index_task(pickled: bytes) -> list[bytes]:
    """Run a pickled piece of ``Work`` in a task; return manifests as IPC."""
    work: Work = pickle.loads(pickled)  # noqa: S301  # made by our own driver
    return [to_ipc(manifest) for manifest in work.manifests()]


class Indexed:
    """A table's implementation of ``SupportsIndex``. Method names are Spark's."""

    bridge: Any
    store: Any
    snapshot: Any

    def createIndex(self, name: str, columns: Any, columns_properties: Any, properties: Any) -> None:  # noqa: N802
        given = {k.lower(): v for k, v in self.bridge.dict(properties).items()}
        build = given.pop("build", "with_write")
        kind = given.pop("type", "")
        if kind:
            raise InvalidInput(
                f"There is no index of type {kind!r}.",
                code="UNKNOWN_OPTION",
                name=kind,
                remedy="Leave USING out: every index is sorted.",
            )
        texts = self.bridge.texts
        more = {
            tuple(texts(column.fieldNames())): self.bridge.dict(columns_properties[column])
            for column in columns_properties
        }
        whole = {"path": given.pop("path")} if "path" in given else {}
        if given:
            raise _no_option(next(iter(given)), "Options are build and path.")
        if whole and len(columns) > 1:
            raise _no_option(
                "path", "Give it beside the column that it is about: (body OPTIONS (path = 'user.id::bigint'), day)."
            )
        named = [tuple(texts(column.fieldNames())) for column in columns]
        paths = [index_column(names, more.get(names) or whole) for names in named]
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
        session = self.bridge.active_session()
        conf = self.bridge.dict(session._jsparkSession.sessionState().conf().settings(), "tamis.")
        build_mode = Options.resolve(None, conf, self.snapshot.head.properties).index_build
        more = {"build_mode": build_mode, "run": spark_index_builder(session)} if verb == "create_index" else {}
        getattr(verbs, verb)(self.store, self.snapshot, *arguments, **more)

    def _thrown(self, kind: str, name: str) -> JavaThrow:
        return spark_errors.index_error(self.bridge, kind, name, str(self))


def _no_option(name: str, remedy: str) -> InvalidInput:
    return InvalidInput(f"An index has no option {name!r} here.", code="UNKNOWN_OPTION", name=name, remedy=remedy)


def index_column(names: Sequence[str], given: Mapping[str, str]) -> str:
    """The text of an indexed column, with the JSON path in its options, if any."""
    column = dotted_path(names)
    options = {name.lower(): value for name, value in given.items()}
    path = options.pop("path", None)
    if options:
        raise _no_option(next(iter(options)), "A column's option is path.")
    return column if path is None else f"{column}:{path.removeprefix('$.')}"
