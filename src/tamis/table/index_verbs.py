"""The verbs of secondary indexes: they create, drop, repair and list them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from tamis.engine import operations
from tamis.engine.scan import Options
from tamis.lazy_imports import lazy_module
from tamis.storage.commit_log import Head, Snapshot
from tamis.storage.object_store import Store

if TYPE_CHECKING:
    from tamis.engine.operations import Result
    from tamis.engine.operations.layout import index_operations
else:
    index_operations = lazy_module("tamis.engine.operations.layout.index_operations")


class IndexVerbs:
    """The index part of ``Table``."""

    _store: Store
    _snapshot: Snapshot

    if TYPE_CHECKING:

        def _writable(self) -> None: ...
        def _latest(self, store: Store | None = None) -> Snapshot: ...
        def _options(self, head: Head) -> Options: ...

    def create_index(
        self,
        name: str,
        columns: Sequence[str] | str,
        *,
        build: str = "with_write",
        progress: operations.Progress | None = None,
    ) -> Result:
        """Create a secondary index on columns, struct fields or JSON paths (``body:user.id::bigint``).

        Existing segments are indexed now, unless ``build`` is ``deferred``. Raises ``AlreadyExists``,
        ``NotFound``, ``InvalidInput``; ``StoreUnavailable`` (``INDEX_BUILD_FAILED``) if the index was created
        but its build failed, so that it covers nothing yet.
        """
        build_mode = self._options(self._snapshot.head).index_build
        return self._index(
            index_operations.create_index, name, columns, build, build_mode=build_mode, progress=progress
        )

    def drop_index(self, name: str) -> Result:
        """Drop an index. Raises ``NotFound`` (``INDEX_NOT_FOUND``)."""
        return self._index(index_operations.drop_index, name)

    def repair_index(
        self,
        name: str | None = None,
        segments: Sequence[str] | None = None,
        *,
        progress: operations.Progress | None = None,
    ) -> Result:
        """Build what an index (or every index) lacks for all segments, or for the given ones.

        A no-op if nothing is missing. Raises the error that makes a build fail.
        """
        build_mode = self._options(self._snapshot.head).index_build
        return self._index(index_operations.repair_index, name, segments, build_mode=build_mode, progress=progress)

    def drop_index_segments(self, name: str, segments: Sequence[str]) -> Result:
        """Remove these segments from an index; queries then prune them by statistics alone until a repair."""
        return self._index(index_operations.drop_index_segments, name, segments)

    def indexes(self) -> list[index_operations.IndexInfo]:
        """List the indexes: columns, size, covered segments, and missing segments with the reason."""
        return index_operations.list_indexes(self._latest())

    def _index(self, verb: Callable[..., tuple[Snapshot, Result]], *arguments: Any, **more: Any) -> Result:
        self._writable()
        self._snapshot, result = verb(self._store, self._latest(), *arguments, **more)
        return result
