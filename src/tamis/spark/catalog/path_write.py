"""A DataFrame written to a path: ``df.write.format("tamis").options(…).save(path)``."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from tamis.core.expr import Expr, conjuncts_of
from tamis.core.schema.additions import columns_of_data
from tamis.engine.operations.rows.append import create_with_parts
from tamis.engine.operations.schema.constraint_definitions import repeat_request
from tamis.engine.operations.schema.evolve import check_policy
from tamis.engine.scan import Options
from tamis.errors import InvalidInput, NotFound
from tamis.spark.catalog.create_table import Definition, data_format, new_head
from tamis.spark.catalog.kept_definitions import keep_generated_columns
from tamis.spark.catalog.staged_table import commit_replacement
from tamis.spark.jvm_bridge.adapter import Bridge
from tamis.spark.jvm_bridge.spark_errors import unsupported_statement
from tamis.spark.jvm_bridge.spark_types import from_spark
from tamis.spark.options.source_options import Use, read_options, refuse_settings
from tamis.spark.write import insert_by_path, spark_write
from tamis.spark.write.own_reads import check_own_reads
from tamis.spark.write.session_frames import write_switches
from tamis.storage.commit_log import Head
from tamis.storage.commit_log.path_checks import check_free
from tamis.storage.object_store import Store
from tamis.table import Table
from tamis.table.scan_request import parse_filter
from tamis.table.table_definition import checked_columns

_PARTITIONED, _CLUSTERED = "__partition_columns", "__clustering_columns"
"""Options in which Spark passes ``partitionBy`` and ``clusterBy``, as JSON lists of names."""


class PathWrite:
    """A write and its options, all checked before anything is written.

    ``overwrites``: whether the mode is overwrite. Raises ``InvalidInput`` for an option that would have no effect.
    """

    def __init__(self, bridge: Bridge, df: Any, overwrites: bool, given: Mapping[str, str]) -> None:
        self._bridge, self._df, self._overwrites = bridge, df, overwrites
        self.given = given
        found = read_options(given, {Use.WRITE_PATH}, by_path=True)
        refuse_settings(given, "A write to a path")
        internal = {key.lower(): value for key, value in given.items()}
        if _PARTITIONED in internal:
            raise unsupported_statement(
                f"partitionBy ({internal[_PARTITIONED]})", "Use clusterBy: parts are skipped by their statistics."
            )
        self._cluster_by = tuple(tuple(name.split(".")) for name in json.loads(internal.get(_CLUSTERED, "[]")))
        self._merges, self._redefines = found.get("mergeschema", False), found.get("overwriteschema", False)
        self._filter: str | None = found.get("replacewhere")
        self._format: str | None = found.get("tamis.format")
        for name, value in (("overwriteSchema", self._redefines), ("replaceWhere", self._filter)):
            if value and not overwrites:
                raise _bad(name, f"{name} has no effect unless rows are replaced.", 'Add mode("overwrite").')
        if self._redefines and (self._filter is not None or self._merges):
            raise _bad(
                "overwriteSchema",
                "overwriteSchema replaces all rows and columns.",
                "Leave replaceWhere and mergeSchema out.",
            )

    def create(self, store: Store) -> None:
        """Create the table with the rows in one commit."""
        check_free(store)
        head = new_head(self._definition({}, None, data_format({"tamis.format": self._format or ""})), ())
        manifests = self._rows(store, head)
        create_with_parts(store, head, manifests)

    def write(self, table: Table) -> None:
        """Append to ``table``, or replace its rows; with ``overwriteSchema`` its columns, too."""
        head = table.snapshot.head
        if self._format is not None and self._format != head.format:
            raise _bad(
                "tamis.format",
                f"The files of {table.path} are in the format {head.format}.",
                "Leave tamis.format out, or write to a new path.",
            )
        if self._redefines:
            self._redefine(table)
            return
        if self._cluster_by:
            raise unsupported_statement(
                "clusterBy for a table that is there", "Leave it out: rows are arranged as the table says."
            )
        if self._overwrites:
            insert_by_path.overwrite(table, self._df, self._filter, merge_schema=self._merges)
        else:
            insert_by_path.append(table, self._df, merge_schema=self._merges)

    def _redefine(self, table: Table) -> None:
        """Replace rows and columns in one commit, as CREATE OR REPLACE TABLE does; generated columns stay so."""
        before = table.snapshot.head
        asked = self._definition(before.properties, before.comment, before.format)
        if not self._cluster_by and before.schema is not None:
            by_id = before.schema.by_id
            names = tuple(tuple(by_id[i].name for i in path) for path in before.cluster_by)
            asked = replace(asked, cluster_by=names)
        if before.schema is not None:
            again = tuple(repeat_request(one, before.schema) for one in before.constraints)
            asked = replace(asked, constraints=again, schema=keep_generated_columns(before.schema, asked.schema))
        try:
            head = replace(new_head(asked, (), before), name=before.name)
        except NotFound as error:
            raise _bad(
                "overwriteSchema",
                f"The table is clustered by a column that the new rows lack, or has a constraint on it: {error.name}.",
                "Name columns to cluster by: clusterBy(…), or drop the constraint first.",
            ) from None
        check_policy(before, head)
        check_own_reads(self._df, self._bridge, table.store, table.snapshot)
        commit_replacement(table.store, table.snapshot, head, self._rows(table.store, head))

    def _definition(self, properties: Mapping[str, str], comment: str | None, format_: str) -> Definition:
        schema = checked_columns(columns_of_data(from_spark(self._df._jdf.schema().json())))
        return Definition(schema, self._cluster_by, dict(properties), comment, format_)

    def _rows(self, store: Store, head: Head) -> list[Any]:
        options = write_switches(self._df.sparkSession, self._bridge, {}, head)
        if self._filter is None:
            return spark_write.write_rows(self._df, store, head, options)
        return spark_write.write_rows(
            self._df, store, head, replace(options, write_outside="refuse"), _conjuncts(self._filter, head, options)
        )


def _conjuncts(row_filter: str, head: Head, options: Options) -> tuple[Expr, ...]:
    assert head.schema is not None
    found = parse_filter(row_filter, head.schema, options)[0]
    return tuple(c for part in found for c in conjuncts_of(part))


def _bad(name: str, what: str, remedy: str) -> InvalidInput:
    return InvalidInput(what, code="BAD_OPTION", name=name, remedy=remedy)
