"""What Spark pushes down: filters and columns.

Law: every filter goes back to Spark, which checks it again, so a row too many is never seen.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tamis.scan import Options
from tamis.spark.adapter import Bridge
from tamis.spark.batch import SCAN, Scan, Source
from tamis.spark.catalyst import Translation, known, translate, unknown
from tamis.spark.tasks import Sizes
from tamis.spark.types import to_spark
from tamis.spark.worker import PART, POSITION
from tamis.types import Array, DataType, Field, Map, Schema, Struct

if TYPE_CHECKING:
    from tamis.spark.table import SparkTable

BUILDER = (
    "org.apache.spark.sql.internal.connector.SupportsPushDownCatalystFilters",
    "org.apache.spark.sql.connector.read.SupportsPushDownRequiredColumns",
)


def scan_builder(owner: Bridge, table: SparkTable, options: Any, built: list[Scan] | None = None) -> Any:
    """A Java ``ScanBuilder`` for ``table``; ``options`` (Java) are those of the query: ``WITH (…)``, a reader's options. What it builds is put into ``built`` too."""
    source = Source(table.name(), table.store, table.snapshot, table.logical_schema, table.opening)
    return owner.implement(BUILDER, Builder(owner, source, owner.dict(options.asCaseSensitiveMap()), built))


class Builder:
    """Collects what Spark pushes down. Method names are Spark's."""

    def __init__(self, owner: Bridge, source: Source, options: Mapping[str, str], built: list[Scan] | None = None) -> None:
        self._owner = owner
        self._source = source
        self._options = options
        self._filters = Translation((), ())
        self._selected = source.schema
        self._required: Any = None
        self._placed = False
        self._built = built

    def pushFilters(self, filters: Any) -> Any:  # noqa: N802
        from py4j.protocol import Py4JError

        try:
            text = self._owner.helper("TreeText").render(filters, known())
            self._filters = translate(text, self._source.schema)
        except Py4JError:  # a tree that Java itself cannot walk (nested too deeply): it may mean anything
            self._filters = unknown(self._source.schema, "a filter that could not be read")
        return filters

    def pushedFilters(self) -> list[Any]:  # noqa: N802
        return []

    def pruneColumns(self, required: Any) -> None:  # noqa: N802
        wanted = json.loads(required.json())
        columns = [f for f in wanted["fields"] if f["name"] not in {PART, POSITION}]
        self._placed = len(columns) < len(wanted["fields"])
        self._selected = pruned(self._source.schema, wanted | {"fields": columns})
        places = [
            {"name": PART, "type": "string", "nullable": False, "metadata": {}},
            {"name": POSITION, "type": "long", "nullable": False, "metadata": {}},
        ]
        self._required = self._owner.struct_type(json.dumps(wanted | {"fields": columns + places})) if self._placed else required

    def build(self) -> Any:
        owner, source = self._owner, self._source
        if self._required is None:
            self._required = owner.struct_type(to_spark(source.schema))
        flat = owner.texts(owner.helper("Partitions").settings("tamis."))
        settings = dict(zip(flat[::2], flat[1::2], strict=True))
        conf = {k: v for k, v in settings.items() if k.lower().startswith("tamis.")}
        options = Options.resolve(self._options, conf, source.snapshot.head.properties, foreign=True)
        made = Scan(owner, source, options, self._filters, self._selected, self._required, Sizes.of(settings), placed=self._placed)
        made.told = self._options
        java = owner.implement(SCAN, made)
        made.register(owner._tools.keyOf(java))
        if self._built is not None:
            self._built.append(made)
        return java


def pruned(schema: Schema, required: dict[str, Any]) -> Schema:
    """The columns and struct fields that Spark's schema (JSON) names, in its order."""
    return replace(schema, fields=tuple(_pruned(schema.find(f["name"])[0], f["type"]) for f in required["fields"]))


def _pruned(f: Field, required: Any) -> Field:
    return replace(f, type=_pruned_type(f.type, required)) if isinstance(required, dict) else f


def _pruned_type(ours: DataType, required: dict[str, Any]) -> DataType:
    match ours:
        case Struct(fields):
            by_name = {f.name: f for f in fields}
            return Struct(tuple(_pruned(by_name[f["name"]], f["type"]) for f in required["fields"]))
        case Array(element):
            return Array(_pruned(element, required["elementType"]))
        case Map(key, value):
            return Map(_pruned(key, required["keyType"]), _pruned(value, required["valueType"]))
    return ours
