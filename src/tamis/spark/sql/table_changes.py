"""The table function ``table_changes('lake.db.t', first, last)``, as users of Delta Lake know it.

It is put into Spark's registry of table functions, so SQL, views, Spark Connect and JDBC find it. The bounds are
inclusive: versions as integers, times as strings. A fourth argument names key columns, for images of updates. A
``table_changes`` that was there before still answers for tables of other catalogs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tamis.errors import InvalidInput
from tamis.spark.catalog.change_feed_table import change_feed
from tamis.spark.jvm_bridge.adapter import Bridge
from tamis.spark.options.source_options import Use, read_options
from tamis.spark.sql.catalog_lookup import tamis_catalog
from tamis.spark.sql.procedure import table_name

NAME = "table_changes"
USAGE = "table_changes(table, first[, last[, key columns]])"
_TYPES = frozenset({"string", "tinyint", "smallint", "int", "bigint", "void"})
_CATALYST = "org.apache.spark.sql.catalyst."


class TableChanges:
    """Scala's ``Function1`` from the arguments to the plan that reads the feed."""

    def __init__(self, bridge: Bridge, before: Any) -> None:
        self._bridge = bridge
        self._before = before
        """The function of this name that was there before; None if there was none."""

    def apply(self, expressions: Any) -> Any:
        arguments = [expressions.apply(at) for at in range(expressions.length())]
        names = _table_names(arguments)
        found = tamis_catalog(self._bridge, names) if names else None
        if found is None and self._before is not None:
            return self._before.apply(expressions)
        given = [_value(argument) for argument in arguments]
        if found is None or not 2 <= len(given) <= 4:
            raise _bad(f"{NAME}({', '.join(map(repr, given))}) does not name a Tamis table and a first version.")
        catalog, inside = found
        store, _ = catalog.open(inside)
        # in a view, the settings of the session that made it, as for the texts beside it
        zone = str(self._bridge.static("org.apache.spark.sql.internal.SQLConf", "get")().sessionLocalTimeZone())
        asked = read_options(_options(given[1:]), {Use.FEED}, by_path=False)
        feed = change_feed(self._bridge, store, asked, zone)
        none = self._bridge.scala_object("scala.None")
        relation = self._bridge.scala_object("org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation")
        return relation.create(feed.java(), none, none)


def _options(bounds: Sequence[Any]) -> dict[str, str]:
    """The arguments after the table as the options of a feed; NULL is left out."""
    options: dict[str, str] = {}
    for place, value in zip(("starting", "ending"), bounds, strict=False):
        if isinstance(value, int) and value >= 0:
            options[f"{place}Version"] = str(value)
        elif isinstance(value, str):
            options[f"{place}Timestamp"] = value
        elif value is not None or place == "starting":
            raise _bad(f"{value!r} is not a version or a time.")
    if len(bounds) > 2 and bounds[2] is not None:
        options["keyColumns"] = str(bounds[2])
    return options


def _table_names(arguments: Sequence[Any]) -> tuple[str, ...]:
    """Return the parts of the name in the first argument; none if it is no constant text."""
    try:
        first = _value(arguments[0]) if arguments else None
    except InvalidInput:
        return ()
    return table_name(first) if isinstance(first, str) else ()


def _value(expression: Any) -> Any:
    """The value of a constant: a string, an integer or None. Raises ``InvalidInput`` for a column and other types."""
    kind = str(expression.dataType().catalogString())
    if not expression.foldable() or kind not in _TYPES:  # dates and times are numbers inside of Spark
        raise _bad(f"{expression.sql()} is not a constant integer or string.")
    value = expression.eval(None)
    return value if value is None or isinstance(value, int) else str(value.toString())


def _bad(what: str) -> InvalidInput:
    return InvalidInput(
        what,
        code="BAD_OPTION",
        name=NAME,
        remedy=f"Write {USAGE}, with versions as integers and times as strings, or CALL catalog.system.changes(…).",
    )


def register_table_changes(bridge: Bridge, spark: Any) -> None:
    """Register the function in this session and for sessions made later. If a later Spark forbids it, CALL remains."""
    from py4j.protocol import Py4JError

    try:
        for registry in (
            bridge.static(_CATALYST + "analysis.TableFunctionRegistry", "builtin")(),
            spark._jsparkSession.sessionState().tableFunctionRegistry(),
        ):
            _register(bridge, registry)
    except Py4JError:
        return


def _identifier(bridge: Bridge) -> Any:
    """The name in a registry. Newer Spark takes qualified names only."""
    functions = _CATALYST + "analysis.FunctionRegistry"
    if bridge.has_method(functions + "$", "builtinFunctionIdentifier", 1):
        return bridge.scala_object(functions).builtinFunctionIdentifier(NAME)
    return bridge.new(_CATALYST + "FunctionIdentifier", NAME)


def _register(bridge: Bridge, registry: Any) -> None:
    name = _identifier(bridge)
    known = registry.lookupFunctionBuilder(name)
    before = known.get() if known.isDefined() else None
    if isinstance(bridge.target(before), TableChanges):
        return
    made = bridge.implement(("scala.Function1",), TableChanges(bridge, before))
    registry.registerFunction(name, bridge.new(_CATALYST + "expressions.ExpressionInfo", "tamis", NAME), made)
