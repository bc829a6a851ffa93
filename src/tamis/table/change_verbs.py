"""The verbs that change the rows that match a filter: delete and update."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from tamis.core.expr import Expr
from tamis.core.types import Schema
from tamis.engine import operations
from tamis.engine.operations import Result
from tamis.engine.scan import Options
from tamis.errors import InvalidInput
from tamis.storage.commit_log import Head, Snapshot
from tamis.storage.object_store import Store
from tamis.table.scan_request import RowFilter, checked_flag, parse_texts, plain_filter, resolve_values


class ChangeVerbs:
    """The part of ``Table`` that changes rows by a filter."""

    _store: Store
    _schema: Schema | None

    if TYPE_CHECKING:

        def _by_spark(self, verb: str, data: Any, **arguments: Any) -> Result: ...
        def _change(self, run: Callable[[Snapshot], tuple[Snapshot, Result]]) -> Result: ...
        def bind_filter(self, snapshot: Snapshot, row_filter: RowFilter, options: Options) -> tuple[Expr, ...]: ...
        def _options(self, head: Head) -> Options: ...

    def delete(
        self,
        row_filter: RowFilter | None = None,
        *,
        all_rows: bool = False,
        spark: Any = None,
        progress: operations.Progress | None = None,
    ) -> Result:
        """Delete the rows that match ``row_filter``, locally or on the executors of ``spark``.

        To delete every row, pass ``all_rows=True`` instead of a filter. The local path reads leader columns
        only. A row for which the filter is NULL stays. ``progress`` receives the bytes done so far (local runs
        only; Spark shows its own progress). Raises ``InvalidInput`` (``ALL_ROWS``) without a filter, unless
        ``all_rows``; ``Conflict`` if concurrent commits keep getting in the way.
        """
        _check_filter("delete", row_filter, all_rows)
        if spark is not None:
            return self._by_spark("delete", spark, row_filter=plain_filter(row_filter, self._schema))

        def run(snapshot: Snapshot) -> tuple[Snapshot, Result]:
            options = self._options(snapshot.head)
            conjuncts = () if row_filter is None else self.bind_filter(snapshot, row_filter, options)
            return operations.delete(self._store, snapshot, conjuncts, options, progress)

        return self._change(run)

    def update(
        self,
        values: Mapping[str, Any],
        row_filter: RowFilter | None = None,
        *,
        all_rows: bool = False,
        spark: Any = None,
        progress: operations.Progress | None = None,
    ) -> Result:
        """Set columns to SQL expressions in the rows that match ``row_filter``; otherwise like ``delete``.

        Numbers, booleans and None stand for themselves. Raises ``InvalidInput`` (``ALL_ROWS``) without a
        filter, unless ``all_rows``; ``NotFound`` for an unknown column, ``SchemaMismatch`` for a value that
        does not fit its column.
        """
        texts = parse_texts(values)
        _check_filter("update", row_filter, all_rows)
        if spark is not None:
            return self._by_spark("update", spark, values=texts, row_filter=plain_filter(row_filter, self._schema))

        def run(snapshot: Snapshot) -> tuple[Snapshot, Result]:
            options = self._options(snapshot.head)
            conjuncts = () if row_filter is None else self.bind_filter(snapshot, row_filter, options)
            meant = resolve_values(snapshot, self._schema, texts, options)
            return operations.update(self._store, snapshot, meant, conjuncts, options, progress)

        return self._change(run)


def _check_filter(verb: str, row_filter: RowFilter | None, all_rows: object) -> None:
    """Raise ``InvalidInput`` (``ALL_ROWS``) unless exactly one of a filter and ``all_rows`` is given.

    A filter that is missing by mistake must not change every row.
    """
    if checked_flag("all_rows", all_rows) != (row_filter is None):
        given = "both a filter and all_rows=True" if all_rows else "no filter"
        raise InvalidInput(
            f"{verb} was given {given}.",
            code="ALL_ROWS",
            name="all_rows",
            remedy=f"Give a filter, or all_rows=True to {verb} every row.",
        )
