"""Definition of a procedure of ``CALL lake.system.<procedure>(…)`` and reading of its arguments."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from tamis.core.types.identifiers import parse_path
from tamis.errors import InvalidInput
from tamis.table import Table


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter. ``default`` is SQL text, or None if required; ``type`` is a key of ``READERS``."""

    name: str
    type: str = "string"
    default: str | None = None
    comment: str = ""


TABLE = Parameter("table", comment="Name of the table within the catalog, such as db.t")
FILTER = Parameter("filter", default="NULL", comment="Only what may match this filter, Spark SQL text")
ROW_FILTER = Parameter("row_filter", default="NULL", comment="The same by the name that it has in Python")
_TEXTS = '{"type": "map", "keyType": "string", "valueType": "string", "valueContainsNull": true}'
Answer = Callable[[Any, dict[str, Any]], pa.Table]


@dataclass(frozen=True)
class Procedure:
    """A procedure. ``answer`` takes the catalog and the arguments by name and returns the result rows."""

    name: str
    description: str
    parameters: tuple[Parameter, ...]
    answer: Answer


def _map_of_texts(row: Any, at: int) -> dict[str, str]:
    """The entries of a map of texts. Raises ``InvalidInput`` (``BAD_OPTION``) for a NULL in it."""
    found = row.getMap(at)
    keys, values = found.keyArray(), found.valueArray()
    texts = {}
    for n in range(found.numElements()):
        name = keys.getUTF8String(n).toString()
        if values.isNullAt(n):
            raise InvalidInput(
                f"The option {name} is NULL.", code="BAD_OPTION", name=name, remedy="Give a value, or leave it out."
            )
        texts[name] = values.getUTF8String(n).toString()
    return texts


READERS: dict[str, tuple[str, Callable[[Any, int], Any]]] = {
    "string": ("StringType", lambda row, at: row.getUTF8String(at).toString()),
    "int": ("IntegerType", lambda row, at: row.getInt(at)),
    "long": ("LongType", lambda row, at: row.getLong(at)),
    "double": ("DoubleType", lambda row, at: row.getDouble(at)),
    "boolean": ("BooleanType", lambda row, at: row.getBoolean(at)),
    "map": (_TEXTS, _map_of_texts),
}
"""By parameter type: Spark's type (a name, or JSON), and a function that reads the argument from a row."""


def procedure_argument(row: Any, at: int, parameter: Parameter) -> Any:
    """The argument at ``at`` of Spark's row; None for NULL if that is the default.

    Raises ``InvalidInput`` (``BAD_OPTION``) for any other NULL.
    """
    if not row.isNullAt(at):
        return READERS[parameter.type][1](row, at)
    if parameter.default == "NULL":
        return None
    raise InvalidInput(
        f"{parameter.name} cannot be NULL.",
        code="BAD_OPTION",
        name=parameter.name,
        remedy="Give a value."
        if parameter.default is None
        else f"Leave it out, which means {parameter.default}, or give a value.",
    )


def row_filter(arguments: dict[str, Any]) -> str | None:
    """The filter, under either of its names. Raises ``InvalidInput`` (``BAD_FILTER``) if both are given."""
    found: list[str] = [arguments[p.name] for p in (FILTER, ROW_FILTER) if arguments[p.name] is not None]
    if len(found) > 1:
        raise InvalidInput(
            "A filter and a row_filter are given.",
            code="BAD_FILTER",
            name="filter",
            remedy="Give one: they are the same.",
        )
    return found[0] if found else None


def named_table(catalog: Any, arguments: dict[str, Any]) -> Any:
    """The ``Table`` that the argument ``table`` names."""
    return Table(*opened_table(catalog, arguments))


def new_name(catalog: Any, arguments: dict[str, Any]) -> tuple[str, ...]:
    """The name of the new table that the argument ``table`` gives, without the catalog's own name before it."""
    names: tuple[str, ...] = catalog.strip_catalog_name(table_name(arguments["table"]))
    return names


def opened_table(catalog: Any, arguments: dict[str, Any]) -> Any:
    """Store and snapshot of the table that the argument ``table`` names.

    The name may start with the catalog's own name.
    """
    names = table_name(arguments["table"])
    if len(names) > 1 and names[0] == catalog.name() and not catalog.warehouse.is_table(names):
        names = names[1:]
    return catalog.open(names)


def session_options(bridge: Any) -> dict[str, str]:
    """The calling session's time zone, ANSI mode and ``tamis`` settings, as scan options."""
    conf = bridge.cls("org.apache.spark.sql.classic.SparkSession").active().sessionState().conf()
    switches = bridge.dict(conf.settings(), "tamis.")
    return {
        **switches,
        "timezone": conf.getConfString("spark.sql.session.timeZone"),
        "ansi": conf.getConfString("spark.sql.ansi.enabled"),
    }


def table_name(text: str | None) -> tuple[str, ...]:
    """The parts of ``db.t`` or ``db.`my table```; within backquotes a backquote is doubled.

    Raises ``InvalidInput`` (``BAD_NAME``).
    """
    if (parts := parse_path(text or "")) is not None:
        return parts
    raise InvalidInput(
        f"{text!r} is not the name of a table." if text else "No table is named.",
        code="BAD_NAME",
        name="table",
        remedy="Write table => 'db.t'; put a part with a dot or a backquote in backquotes, and double those within.",
    )
