"""Translation of Spark's CREATE TABLE to the head of a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tamis.core.schema.clustering_key import clustering_keys
from tamis.core.types import Field, Generation, Identity, Schema
from tamis.engine.operations.schema.constraint_definitions import ConstraintRequest, with_constraint
from tamis.engine.scan import check_places, check_properties
from tamis.engine.scan.scan_options import PREFIX
from tamis.engine.secondary_index.index_definition import without_index
from tamis.errors import InvalidInput
from tamis.spark.catalog.generated_properties import COMPUTED, apply_generated_properties
from tamis.spark.catalog.spark_constraints import asked_constraint
from tamis.spark.jvm_bridge.adapter import Bridge
from tamis.spark.jvm_bridge.spark_errors import unsupported_statement
from tamis.spark.jvm_bridge.spark_types import from_spark
from tamis.spark.options.source_options import Use, read_options
from tamis.storage.commit_log import Constraint, Head, next_schema
from tamis.storage.commit_log.constraint_columns import with_constraints
from tamis.storage.files.formats import check_format, format_named
from tamis.table.table_definition import FORMAT, checked_columns
from tamis.world import new_id, world

_CATALOG_UTILS = "org.apache.spark.sql.connector.catalog.CatalogV2Util"
_GIVEN_BY_US = frozenset(
    {"provider", "location", "owner", "external", "is_managed_location", "table_type", "comment", FORMAT, "format"}
)


@dataclass(frozen=True, slots=True)
class Definition:
    """The content of a CREATE or REPLACE statement."""

    schema: Schema
    cluster_by: tuple[tuple[str, ...], ...]
    properties: dict[str, str]
    comment: str | None
    format: str
    constraints: tuple[ConstraintRequest, ...] = ()


def requested_definition(bridge: Bridge, *asked: Any) -> Definition:
    """Read a Java ``TableInfo``; or the columns (or schema), partitioning and properties that Spark 4.0 passes.

    Raises ``InvalidInput`` naming an unsupported type, clause or property.
    """
    constraints: tuple[ConstraintRequest, ...] = ()
    if len(asked) == 1:
        columns, transforms, properties = asked[0].columns(), asked[0].partitions(), asked[0].properties()
        constraints = tuple(asked_constraint(bridge, one) for one in asked[0].constraints())
    else:
        columns, transforms, properties = asked
    given = bridge.dict(properties)
    provider = given.get("provider", "tamis").lower()
    if provider != "tamis" and provider != _default_source(bridge):
        raise unsupported_statement(f"USING {given['provider']}", "Write USING tamis, or leave it out.")
    if "location" in given and given.get("is_managed_location") != "true":
        raise unsupported_statement(
            "LOCATION", "A table lies in its catalog's folder: leave LOCATION out, or attach a catalog there."
        )
    return Definition(
        checked_columns(apply_generated_properties(_columns(bridge, columns), given)),
        clustering(bridge, transforms),
        user_properties({k: v for k, v in given.items() if not k.startswith(COMPUTED)}),
        given.get("comment"),
        data_format(given),
        constraints,
    )


def _columns(bridge: Bridge, columns: Any) -> Schema:
    """Return the schema of a Java array of ``Column``, or of a ``StructType``, whose columns are all plain."""
    if type(columns).__name__ != "JavaArray":
        return from_spark(columns.json())
    schema = from_spark(bridge.static(_CATALOG_UTILS, "v2ColumnsToStructType")(columns).json())
    conf = _conf(bridge)
    zone, ansi = str(conf.sessionLocalTimeZone()), bool(conf.ansiEnabled())
    pairs = zip(schema.fields, columns, strict=True)
    return replace(schema, fields=tuple(_computed(field, column, zone, ansi) for field, column in pairs))


def _computed(field: Field, column: Any, zone: str, ansi: bool) -> Field:
    """Return ``field`` with what the Java ``column`` says about its values."""
    expression, numbers = column.generationExpression(), column.identityColumnSpec()
    if expression is not None:
        return replace(field, generated=Generation(expression, zone, ansi))
    if numbers is None:
        return field
    always = not numbers.isAllowExplicitInsert()
    return replace(field, identity=Identity(int(numbers.getStart()), int(numbers.getStep()), always))


def inherited_definition(asked: Definition, source: Head, given: Mapping[str, str]) -> Definition:
    """``asked`` by CREATE TABLE LIKE, completed from ``source``. ``given``: the statement's properties."""
    known = {} if source.schema is None else {f.name: f for f in source.schema if f.computed}
    fields = tuple(
        replace(known[f.name], id=f.id, type=f.type, comment=f.comment) if f.name in known else f for f in asked.schema
    )
    chosen = asked.format if _given_format(given) else source.format
    return replace(
        asked,
        schema=replace(asked.schema, fields=fields),
        properties={**source.properties, **asked.properties},
        comment=asked.comment or source.comment,
        format=chosen,
    )


def _default_source(bridge: Bridge) -> str:
    """The session's default format.

    A DataFrame's writer names it if the user names none (``saveAsTable``, ``toTable``), so it says nothing
    about the user's choice.
    """
    return str(_conf(bridge).defaultDataSourceName()).lower()


def _conf(bridge: Bridge) -> Any:
    return bridge.cls("org.apache.spark.sql.classic.SparkSession").active().sessionState().conf()


def user_properties(given: Mapping[str, str]) -> dict[str, str]:
    """The checked properties, without those that Spark or the format sets, and without the options of a write.

    Spark gives OPTIONS twice, as ``option.name`` and as ``name``; of them, only settings of Tamis are properties.
    """
    options = {k.removeprefix("option."): v for k, v in given.items() if k.startswith("option.")}
    check_create_options(options)
    written = {k for k in options if not k.lower().startswith(PREFIX)}
    kept = {
        k: v
        for k, v in given.items()
        if k.lower() not in _GIVEN_BY_US and k not in written and not (k.startswith("option.") and k[7:] in given)
    }
    return check_properties(kept)


def check_create_options(given: Mapping[str, str]) -> dict[str, Any]:
    """Return the options of a write that creates or replaces a table, by their names in lower case.

    Raises ``InvalidInput``, also for ``overwriteSchema=false``, because the columns are replaced.
    """
    found = read_options(given, {Use.CREATE_TABLE}, by_path=False)
    if found.get("overwriteschema") is False:
        raise InvalidInput(
            "overwriteSchema cannot be off: this write replaces the columns.",
            code="BAD_OPTION",
            name="overwriteSchema",
            remedy="Keep them by INSERT OVERWRITE, or df.writeTo(table).overwrite(condition).",
        )
    return found


def data_format(given: Mapping[str, str]) -> str:
    """The format of the data files: the property ``tamis.format``, or ``format`` from OPTIONS.

    Raises ``InvalidInput`` (``UNKNOWN_FORMAT``).
    """
    chosen = _given_format(given) or "parquet"
    format_named(chosen)
    return chosen


def is_format_option(name: str) -> bool:
    """Whether an option or a property says the format of the data files; their names have no case."""
    return name.lower() in {FORMAT, "format"}


def _given_format(given: Mapping[str, str]) -> str | None:
    chosen = sorted((name.lower(), value) for name, value in given.items() if is_format_option(name) and value)
    return chosen[-1][1] if chosen else None  # the longer name before the other


def clustering(bridge: Bridge, transforms: Any) -> tuple[tuple[str, ...], ...]:
    """The columns of CLUSTER BY as name paths.

    Also accepts the form that SHOW CREATE TABLE prints: PARTITIONED BY (cluster_by(…)). Rejects other
    partitioning.
    """
    columns: list[tuple[str, ...]] = []
    for transform in transforms:
        if transform.name().lower() != "cluster_by":
            raise unsupported_statement(
                f"PARTITIONED BY ({transform.toString()})",
                "Write CLUSTER BY (columns): parts are skipped by their statistics.",
            )
        columns += [bridge.texts(bridge.call(reference, "fieldNames")) for reference in transform.references()]
    return tuple(columns)


def new_head(asked: Definition, names: Sequence[str], before: Head | None = None) -> Head:
    """The head of a new table, or of one that replaces ``before``: same id and history, new columns, no indexes."""
    head = before or Head(table_id=new_id(), created_micros=world().now_micros())
    for index in head.indexes:  # of the old columns, so that they could never be built
        head = without_index(head, index)
    head = replace(
        head,
        name=".".join(names),
        properties=asked.properties,
        comment=asked.comment,
        format=asked.format,
        cluster_by=(),
    )
    if not asked.schema.fields:
        if asked.cluster_by or before:
            raise InvalidInput(
                "A table needs a column.", code="BAD_SCHEMA", name=".".join(names), remedy="Name its columns."
            )
        return head
    schema = asked.schema.assign_ids(head.highest_column_id)
    after = next_schema(head, schema, clustering_keys(schema, asked.cluster_by), constraints=())
    check_format(asked.format, after.schemas[-1])
    check_places(asked.properties, after.schemas)
    constraints: tuple[Constraint, ...] = ()
    for one in asked.constraints:
        constraints = with_constraint(constraints, one, schema)
    return with_constraints(after, constraints)
