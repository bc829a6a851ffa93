"""The scan builder: takes the filters, columns, limits, orders and aggregates that Spark pushes down.

Spark's builder is an object of ``ScanBuilders.java``, which collects filters and columns, and asks once for the scan
(``planned_scan``). Where Spark needs an answer that only Python has, it is, or becomes, ``Builder`` itself.

Invariant: every filter is returned to Spark, which tests it again, so no extra row gets through. The scan
keeps a filter to itself only under a limit or an aggregate, which Spark would not push otherwise, and only if
the filter is exact (``pushdown.is_exact``).
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import replace
from functools import cached_property
from typing import Any, ClassVar

from tamis.core.types import Schema
from tamis.engine.scan import Options
from tamis.engine.scan.index_stage import check_index_options
from tamis.errors import SchemaFenced
from tamis.spark.catalog.analyzed_schema import captured_schema
from tamis.spark.catalog.loaded_table import LoadedTable
from tamis.spark.executors.partitions import Sizes
from tamis.spark.executors.row_metadata import METADATA, PART, POSITION
from tamis.spark.jvm_bridge.adapter import Bridge
from tamis.spark.jvm_bridge.catalyst import Translation, known_nodes, opaque_filter, translate_filters
from tamis.spark.jvm_bridge.node_settings import zone_table
from tamis.spark.jvm_bridge.spark_types import pruned_schema, to_spark
from tamis.spark.jvm_bridge.wire_format import PUSHED_MARK, STEADY_MARK, UNREADABLE, list_items
from tamis.spark.options.source_options import POINTS, Use, read_options, unapplied_point
from tamis.spark.scan.inferred_checks import without_inferred_checks
from tamis.spark.scan.pushdown import (
    AGGREGATE,
    AGGREGATES,
    LIMITS,
    NOTHING,
    Pushed,
    aggregate_output,
    aggregation_of,
    is_exact,
    order_of,
)
from tamis.spark.scan.pushed_filters import CATALYST_FILTERS, builder_wrapper, java_builder
from tamis.spark.scan.scan_source import ScanRequest, Source
from tamis.spark.scan.spark_scan import Scan

BUILDER = (
    CATALYST_FILTERS,
    "org.apache.spark.sql.connector.read.SupportsPushDownRequiredColumns",
    *LIMITS,
)


def has_column(schema: Schema, name: str) -> bool:
    return any(f.name.lower() == name for f in schema)


def scan_builder(owner: Bridge, table: LoadedTable, options: Any, built: list[Scan] | None = None) -> Any:
    """A Java ``ScanBuilder`` for ``table``, of which every call comes to Python.

    ``options`` (Java) are those of the query, from ``WITH (…)`` or the reader. Scans that it builds are also
    appended to ``built``.
    """
    given = owner.dict(options)
    made = _builder(owner, table, given, built)
    # Spark translates every aggregate above a source that takes them, and fails on some: see Pushed.java.
    interfaces = (*BUILDER, AGGREGATES) if given.get(PUSHED_MARK) == AGGREGATE else BUILDER
    return java_builder(owner, interfaces, made)


def collect_in_java(owner: Bridge) -> None:
    """Have Java answer ``newScanBuilder`` of tables from now on, where it can."""
    owner.make_once("maker", "newScanBuilder", lambda: _installed(owner))


def _installed(owner: Bridge) -> bool:
    owner.helper("ScanBuilders").install(owner.helper("TreeText"), known_nodes(), builder_wrapper(owner))
    return True


def planned_scan(owner: Bridge, table: LoadedTable, collected: str, required: Any) -> Any:
    """A Java ``Scan`` of ``table`` for what a builder of ``ScanBuilders.java`` has collected.

    ``collected`` is described there. ``required`` (Java) is the type of the rows, None for all columns.
    """
    filters, columns, count, *rest = list_items(collected)
    end = 2 * int(count)
    builder = _builder(owner, table, _pairs(rest[:end]), None)
    return builder.collected(None if filters == UNREADABLE else filters, columns, required, _pairs(rest[end:])).build()


def _pairs(flat: list[str]) -> dict[str, str]:
    return dict(zip(flat[::2], flat[1::2], strict=True))


def _builder(owner: Bridge, table: LoadedTable, options: dict[str, str], built: list[Scan] | None) -> Builder:
    source = Source(table.name(), table.store, table.snapshot, table.logical_schema, table.opening, table.pinned)
    found = read_options(options, {Use.READ, Use.READ_STREAM}, by_path=table.by_path)
    if not table.pinned and not found.keys().isdisjoint(POINTS):
        raise unapplied_point(options)
    return Builder(owner, source, options, built, table.captured)


class Builder:
    """Collects what Spark pushes down. Method names are Spark's.

    ``analysed`` are ids of the schemas under which the plan may have been analysed. If one of them differs
    from the table's schema, names must be resolved as they were in it. Which one it is becomes known in
    ``pruneColumns``; until then nothing that is bound to a name is accepted.
    """

    java_constant: ClassVar = {"pushedFilters": "", "isPartiallyPushed": ""}

    def __init__(
        self,
        owner: Bridge,
        source: Source,
        options: Mapping[str, str],
        built: list[Scan] | None,
        analysed: Collection[int],
    ) -> None:
        self._owner = owner
        self._source = source
        self._options = options
        self._analysed = frozenset(analysed)
        schemas = source.snapshot.head.schemas
        self._moved = any(i < len(schemas) and schemas[i].fields != source.schema.fields for i in self._analysed)
        self._text: str | None = ""
        self._filters = Translation(())
        self._selected = source.schema
        self._required: Any = None
        self._with_positions = False
        self._metadata: tuple[str, ...] = ()
        self._built = built
        self._pushed = NOTHING
        self._asked: dict[str | None, Scan | None] = {}
        """Scans made for the aggregates that Spark has asked about."""
        self._answer: Scan | None = None
        self._settings: dict[str, str] | None = None

    @cached_property
    def _switches(self) -> tuple[Options, dict[str, str]]:
        """The effective options, and the session's settings."""
        settings = self._settings or _pairs(list_items(self._owner.helper("ScanBuilders").settings("tamis.")))
        conf = {k: v for k, v in settings.items() if k.lower().startswith("tamis.")}
        metadata_fields = {k: v for k, v in self._options.items() if k not in {PUSHED_MARK, STEADY_MARK}}
        return Options.resolve(metadata_fields, conf, self._source.snapshot.head.properties, foreign=True), settings

    def collected(self, filters: str | None, columns: str, required: Any, settings: dict[str, str]) -> Builder:
        """Take what was collected in Java; return this builder.

        ``filters`` are the text of their trees, None if they could not be read. ``settings`` are the session's.
        Spark has got all filters back, so the scan must own none.
        """
        self._settings = settings
        self._take_filters(filters)
        if self._pushed.owned:
            raise AssertionError("The scan owns its filter, but Java has returned it to Spark.")
        if columns:
            self._take_columns(required, json.loads(columns))
        return self

    def pushFilters(self, filters: Any) -> Any:  # noqa: N802
        from py4j.protocol import Py4JError

        try:
            text = self._owner.helper("TreeText").render(filters, known_nodes())
        except Py4JError:  # a tree nested too deeply for Java to walk: it may mean anything
            text = None
        self._take_filters(text)
        return self._owner.seq([]) if self._pushed.owned else filters

    def _take_filters(self, text: str | None) -> None:
        self._text = text
        self._filters = self._translated(self._source.schema)
        owned = (
            not self._moved
            and PUSHED_MARK in self._options
            and self._built is None
            and self._switches[0].read_lazy != "native"
            and is_exact(self._filters.conjuncts)
        )
        self._pushed = Pushed(owned=owned and bool(self._filters.conjuncts))

    def pushedFilters(self) -> list[Any]:  # noqa: N802
        return []

    def pruneColumns(self, required: Any) -> None:  # noqa: N802
        self._take_columns(required, json.loads(required.json()))

    def _take_columns(self, required: Any, wanted: dict[str, Any]) -> None:
        asked = any(f["name"] == METADATA for f in wanted["fields"]) and self._offers_metadata()
        hidden = {PART, POSITION, METADATA} if asked else {PART, POSITION}
        columns = [f for f in wanted["fields"] if f["name"] not in hidden]
        self._with_positions = len(columns) < len(wanted["fields"])
        metadata_fields = [f for f in wanted["fields"] if asked and f["name"] == METADATA]
        self._metadata = tuple(inner["name"] for f in metadata_fields for inner in f["type"]["fields"])
        schema = captured_schema(
            self._source.snapshot.head, self._source.schema, wanted | {"fields": columns}, self._analysed
        )
        if schema is not self._source.schema:
            self._source = replace(self._source, schema=schema)
            self._filters = self._translated(schema)
        self._selected = pruned_schema(schema, wanted | {"fields": columns})
        places = [
            {"name": PART, "type": "string", "nullable": False, "metadata": {}},
            {"name": POSITION, "type": "long", "nullable": False, "metadata": {}},
        ]
        self._required = (
            self._owner.struct_type(json.dumps(wanted | {"fields": columns + metadata_fields + places}))
            if self._with_positions
            else required
        )

    def _offers_metadata(self) -> bool:
        """Whether ``_metadata`` is the metadata column, and not a column of the table, which hides it.

        Raises ``SchemaFenced`` if the table has got such a column since the plan was analysed.
        """
        schemas = self._source.snapshot.head.schemas
        taken = {has_column(schemas[i], METADATA) for i in self._analysed if i < len(schemas)}
        own = has_column(self._source.schema, METADATA)
        if taken | {own} == {True, False}:
            raise SchemaFenced(
                f"The table has or had a column {METADATA}, which hides the metadata of its rows.",
                code="FENCED_METADATA",
                name=METADATA,
                remedy="Make the DataFrame again.",
            )
        return not own

    # --- SupportsPushDownLimit, SupportsPushDownTopN, SupportsPushDownAggregates ---

    def pushLimit(self, limit: int) -> bool:  # noqa: N802
        if not self._switches[0].scan_limits or self._answer is not None or self._built is not None:
            return False
        self._pushed = replace(self._pushed, limit=limit)
        return True

    def pushTopN(self, orders: Any, limit: int) -> bool:  # noqa: N802
        if self._moved or not self._switches[0].scan_topk or self._answer is not None or self._built is not None:
            return False
        order = order_of(self._owner.helper("Pushed").orders(orders), self._source.schema)
        if order:
            self._pushed = replace(self._pushed, order=order, limit=limit)
        return bool(order)

    def isPartiallyPushed(self) -> bool:  # noqa: N802
        """Always true: Spark sorts and limits the rows of the scan itself."""
        return True

    def supportCompletePushDown(self, asked: Any) -> bool:  # noqa: N802
        """Whether Spark need not aggregate the scan's rows: metadata answers, and no task reads a part.

        Each task that reads returns partial aggregates, also one that reads audited parts alone.
        """
        made = self._aggregated(asked)
        return made is not None and not len(made.cut)

    def pushAggregation(self, asked: Any) -> bool:  # noqa: N802
        self._answer = self._aggregated(asked)
        return self._answer is not None

    def _aggregated(self, asked: Any) -> Scan | None:
        """The scan that answers Spark's aggregate; None if it cannot answer exactly or does not pay off."""
        if self._moved or self._built is not None or not self._switches[0].scan_aggregates:
            return None
        text = self._owner.helper("Pushed").aggregation(asked)
        if text not in self._asked:
            found = aggregation_of(text, self._source.schema)
            made = None
            if found is not None:
                required = self._owner.struct_type(to_spark(aggregate_output(found)))
                made = self._scan(replace(self._pushed, aggregation=found), found.columns, required)
            self._asked[text] = made if made is not None and made.pays else None
        return self._asked[text]

    def build(self) -> Any:
        if self._required is None:
            self._required = self._owner.struct_type(to_spark(self._source.schema))
        check_index_options(self._options, self._switches[0], self._source.snapshot.head)
        made = self._answer or self._scan(self._pushed, self._selected, self._required)
        made.read_options = self._options
        java = made.java()
        if self._built is not None:
            self._built.append(made)
        return java

    def _translated(self, schema: Schema) -> Translation:
        if self._text is None:
            return opaque_filter(schema, "a filter that could not be read")
        if not self._text:
            return Translation(())
        return Translation(
            without_inferred_checks(translate_filters(self._text, schema, zone_table(self._owner)).conjuncts)
        )

    def _scan(self, pushed: Pushed, selected: Schema, required: Any) -> Scan:
        options, settings = self._switches
        return Scan(
            self._owner,
            self._source,
            options,
            Sizes.of(settings, steady=STEADY_MARK in self._options),
            ScanRequest(
                self._filters,
                selected,
                required,
                pushed,
                positions=self._with_positions,
                metadata=self._metadata,
                changes_rows=self._with_positions or self._built is not None,
                cost_based=settings["spark.sql.cbo.enabled"] == "true",
            ),
        )
