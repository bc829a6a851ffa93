"""What a Catalyst node and its session say: mode, offsets of the time zone, settings that its evaluation reads."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tamis.core.expr.time_zones import name_with_table, zone_named
from tamis.core.expr.tree import Expr, Literal, Mode
from tamis.errors import InvalidInput

_EVALUATED_UNDER = {
    "spark.sql.icu.caseMappings.enabled": "true",
    "spark.sql.json.enableExactStringParsing": "true",
    "spark.sql.json.enablePartialResults": "true",
    "spark.sql.legacy.json.allowEmptyString.enabled": "false",
    "spark.sql.legacy.json.enableDateTimeParsingFallback": "",
    "spark.sql.legacy.timeParserPolicy": "CORRECTED",
}
"""Values of a session's settings under which Tamis evaluates as Spark does. They are Spark's defaults."""

_MODES = {"ANSI": Mode.ANSI, "TRY": Mode.TRY, "LEGACY": Mode.LEGACY}

ZoneTable = Callable[[str], str]
"""Gives the offsets of a zone in the JVM, as ``time_zones.name_with_table`` takes them."""

_named: dict[tuple[str, int], str] = {}
"""Names with the tables of zones that the JVM has otherwise, by name and checksum."""


def mode_of(settings: Mapping[str, Any]) -> Mode | None:
    """The mode in a node's constructor arguments, or None."""
    context = settings.get("evalContext")
    name = settings.get("evalMode") or (context.get("evalMode") if isinstance(context, dict) else None)
    if name is not None:
        return _MODES.get(str(name))
    for key in ("failOnError", "ansiEnabled"):
        if key in settings:
            return Mode.ANSI if settings[key] else Mode.LEGACY
    return None


def other_setting(session: Mapping[str, str]) -> str | None:
    """Return a setting under which Spark may evaluate differently than Tamis, or None.

    An empty value means that the setting is unset, or that this Spark does not have it.
    """
    for name, value in session.items():
        if value not in ("", _EVALUATED_UNDER.get(name, value)):
            return name
    return None


def zone_table(owner: Any) -> ZoneTable:
    """Return the tables of the JVM to which the bridge ``owner`` leads."""
    return lambda name: str(owner.helper("TreeText").zoneTable(name))


def zones_by_name(checksums: Mapping[str, int], table: ZoneTable) -> dict[str, str]:
    """Return names with tables for the zones of which the JVM, by their checksums, has other offsets."""
    return {
        name: _with_table(name, checksum, table) for name, checksum in checksums.items() if not _same(name, checksum)
    }


def _same(name: str, checksum: int) -> bool:
    try:
        return zone_named(name).checksum == checksum
    except InvalidInput:
        return False


def _with_table(name: str, checksum: int, table: ZoneTable) -> str:
    found = _named.get((name, checksum))
    if found is None:
        found = _named[name, checksum] = name_with_table(name, table(name)) if checksum >= 0 else name
    return found


def names_zone(tree: Expr, zones: Mapping[str, str]) -> bool:
    """Return whether an argument names one of ``zones``."""
    values = (node.value for node in tree.walk() if isinstance(node, Literal))
    return any(isinstance(value, str) and value in zones for value in values)
