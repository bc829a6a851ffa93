"""Options: a scan option overrides a Spark conf, which overrides a table property.

Invariant: disabling any kind of skipping changes speed, never rows. An unknown name or invalid value under
``tamis.`` is refused by name, because a misspelled option must not silently do nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any
from zoneinfo import ZoneInfo

from tamis.core.stats.kept_statistics import unfit_name
from tamis.core.stats.place_properties import STATS_KEEP, WRITE_SHRED
from tamis.core.types import Schema
from tamis.core.types.identifiers import split_list
from tamis.core.types.schema import listed_names
from tamis.errors import InvalidInput

PREFIX = "tamis."
_UNITS = {"": 1, "b": 1, "k": 2**10, "m": 2**20, "g": 2**30, "t": 2**40}
_SIZE = re.compile(r"(\d+)\s*(?:([kmgt]?)i?b?)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Options:
    """The options in force for one scan or write. Sizes are in bytes; None means no limit."""

    stats_collect: bool = True
    """Whether writes collect statistics of the rows that they write; indexes have statistics of their own, always."""
    stats_filter: bool = True
    """Whether reads use statistics of parts, files and indexes, to prune, answer aggregates and estimate costs."""
    stats_budget_bytes: int | None = None
    """Bytes of statistics per part, for each 65,536 rows begun; 64 KiB if not set."""
    stats_keep: tuple[str, ...] = ()
    """Columns and JSON paths whose statistics, and those of all below them, are never trimmed."""
    audit_percent: float = 0.0
    """Percentage of the parts of a filtered scan that are read to check the pruning decisions."""
    audit_max_bytes: int = 256 * 2**20
    """Bytes that an audit of one query reads at most."""
    read_lazy: str = "auto"
    """Whether to read the filter's columns first; ``native`` uses Spark's Parquet reader where possible."""
    read_native_bytes: int = 8 * 2**20
    """Bytes to read up to which ``auto`` prefers Spark's Parquet reader; 0 disables this rule."""
    index_use: str = "auto"
    """Which secondary indexes a scan uses, and where look-ups run."""
    index_build: str = "with_write"
    """When a write builds its indexes; ``fail`` makes each build fail, for tests."""
    index_catch_up: int | None = None
    """Bytes of older parts, per index, that a load also indexes after a failed build; unset: as many as it adds."""
    scan_limits: bool = True
    """Whether a limit prunes parts."""
    scan_topk: bool = True
    """Whether ``ORDER BY … LIMIT`` prunes parts."""
    scan_aggregates: bool = True
    """Whether metadata answers counts, minima, maxima and groups."""
    scan_max_bytes: int | None = None
    """File bytes above which a scan fails before it reads (``SCAN_TOO_LARGE``); unlimited if not set."""
    scan_join_keys: bool = True
    """Whether a join's keys prune the large side."""
    write_part_bytes: int = 128 * 2**20
    """Target size of a part."""
    write_shred: tuple[str, ...] = ()
    """JSON paths whose values are stored beside their documents, such as ``body:user.id``."""
    write_outside: str = "auto"
    """What a filtered overwrite does with new rows that do not match its filter.

    ``auto`` refuses them, except in Spark statements whose meaning in Spark is to take any row.
    """
    write_wide_rows: bool = False
    """Whether rows may have more than 32 KB in texts, binaries, arrays and maps.

    Spark then hands them over in smaller batches. Without it, a write that meets such a row runs again.
    """
    schema_policy: str = "any"
    """``forward`` refuses schema changes that would fence readers of the current schema."""
    export: tuple[str, ...] = ()
    """Formats in which the table is exported after every commit: ``delta``, ``iceberg``."""
    timezone: str = "UTC"
    """The time zone in which a filter's times are interpreted."""
    ansi: bool = True
    """Whether a filter follows Spark's ANSI mode."""

    @staticmethod
    def resolve(
        options: Mapping[str, Any] | None = None,
        conf: Mapping[str, Any] | None = None,
        properties: Mapping[str, Any] | None = None,
        *,
        foreign: bool = False,
    ) -> Options:
        """Resolve scan ``options`` over Spark ``conf`` over table ``properties``.

        ``foreign`` ignores other names in ``options`` (Spark's own). Conf entries and properties outside
        ``tamis.`` are always ignored, and so are properties that this version does not know (a later version
        may have set them). Raises ``InvalidInput`` (``UNKNOWN_OPTION``, ``BAD_OPTION``).
        """
        found: dict[str, Any] = {}
        for key, value in (properties or {}).items():
            if key.lower() in _SWITCHES and key.lower().startswith(PREFIX):
                _put(found, key, value)
        for key, value in (conf or {}).items():
            if key.lower().startswith(PREFIX):
                _check_query_option(key)
                _put(found, key, value)
        for key, value in mapping_items(options or {}, "options"):
            if not foreign:
                _check_query_option(key)
            if not foreign or (name := str(key).lower()).startswith(PREFIX) or name in _SWITCHES:
                _put(found, key, value)
        return Options(**found)

    def as_dict(self) -> dict[str, Any]:
        """Return the options by their public names, without what is a property of the table."""
        attributes = {attribute: name for name, (attribute, _) in _SWITCHES.items() if name != _EXPORT}
        return {attributes[f.name]: getattr(self, f.name) for f in fields(self) if f.name in attributes}


def check_properties(properties: Mapping[Any, Any]) -> dict[str, str]:
    """Return table properties in stored form.

    Raises ``InvalidInput`` for an unknown name or invalid value under ``tamis.``, or a value that is not
    text.
    """
    checked: dict[str, str] = {}
    for key, value in mapping_items(properties, "properties"):
        if not isinstance(key, str) or not isinstance(value, str | int | float | bool):
            raise InvalidInput(
                f"Property {key!r} cannot have the value {value!r}.",
                code="BAD_PROPERTY",
                name=str(key),
                remedy="Names and values are text.",
            )
        if key.lower().startswith(PREFIX):
            _check_table_property(key)
            _put({}, key, value)
        _refuse_protection(key, value)
        checked[key] = str(value).lower() if isinstance(value, bool) else str(value)
    return checked


def _refuse_protection(key: str, value: Any) -> None:
    """Raise ``InvalidInput`` (``BAD_PROPERTY``) for a property of Delta Lake that would protect no row here."""
    name = key.lower()
    if name.startswith("delta.constraints."):
        remedy = "Add a constraint: ALTER TABLE … ADD CONSTRAINT, or table.alter().add_check(…)."
    elif name == "delta.appendonly" and str(value).strip().lower() != "false":
        remedy = (
            "Leave it out: Tamis has no tables that only take appends. Deny other writes by the store's permissions."
        )
    else:
        return
    raise InvalidInput(f"{key} would protect no row here.", code="BAD_PROPERTY", name=key, remedy=remedy)


def _check_table_property(key: str) -> None:
    """Raise ``InvalidInput`` (``BAD_PROPERTY``) for an option that cannot be set as a table property."""
    elsewhere = _SAID_ELSEWHERE.get(key.lower())
    if elsewhere is not None:
        raise InvalidInput(f"{key} is no property that can be set.", code="BAD_PROPERTY", name=key, remedy=elsewhere)


def _check_query_option(key: Any) -> None:
    """Raise ``InvalidInput`` (``BAD_OPTION``) for a property of tables, which does nothing elsewhere."""
    if str(key).lower() == _EXPORT:
        raise InvalidInput(
            f"{key} is a property of a table, and no option of a query or a session.",
            code="BAD_OPTION",
            name=str(key),
            remedy="Set it by alter().set_properties(…), or ALTER TABLE … SET TBLPROPERTIES.",
        )


_EXPORT = "tamis.export"
_SAID_ELSEWHERE = {
    "tamis.format": (
        "The format of a table's files is chosen when it is made: "
        "tamis.create(…, format=…), or CREATE TABLE … TBLPROPERTIES."
    ),
    "tamis.timezone": "A time zone belongs to a query: scan(options={'timezone': …}); in Spark it is the session's.",
    "tamis.ansi": "ANSI mode belongs to a query: scan(options={'ansi': …}); in Spark it is the session's.",
}


def check_places(given: Mapping[str, str], schemas: Sequence[Schema], code: str = "BAD_PROPERTY") -> None:
    """Raise ``InvalidInput`` if ``tamis.stats.keep`` names what cannot be kept.

    The ``code`` is ``BAD_PROPERTY``, or ``BAD_OPTION`` for an option of one write. A column of any of the schemas is
    known. Of a path below a document column only the form is checked.
    """
    names = {key.lower(): value for key, value in given.items()}.get(STATS_KEEP, "")
    found = unfit_name(_names(names), schemas)
    if found is None:
        return
    wrong, why = found
    kind = "Option" if code == "BAD_OPTION" else "Property"
    if why is not None:
        raise InvalidInput(
            f"{kind} tamis.stats.keep names {wrong!r}, which has no statistics of its own to keep.",
            code=code,
            name=wrong,
            remedy=f"{why[0].upper()}{why[1:]}.",
        )
    raise InvalidInput(
        f"{kind} tamis.stats.keep names {wrong!r}, and there is no such column.",
        code=code,
        name=wrong,
        remedy="Columns are: "
        + listed_names(schemas[-1].names, wrong)
        + "; a path in a document follows its column: body.user.id.",
    )


def check_bound(name: str, value: Any, least: int) -> None:
    """Raise ``InvalidInput`` (``BAD_OPTION``) unless ``value`` is None or a number >= ``least``."""
    if value is not None and (isinstance(value, bool) or not isinstance(value, int | float) or not value >= least):
        raise InvalidInput(
            f"{name} cannot be {value!r}.",
            code="BAD_OPTION",
            name=name,
            remedy=f"Give a number, {least} or more; None for no bound.",
        )


def mapping_items(given: Any, name: str) -> list[tuple[Any, Any]]:
    """Return a mapping's entries.

    Raises ``InvalidInput`` (``BAD_OPTION``) naming the argument if it is no mapping.
    """
    if not isinstance(given, Mapping):
        raise InvalidInput(
            f"{name} is a mapping, not {type(given).__name__}.",
            code="BAD_OPTION",
            name=name,
            remedy='Give a mapping, such as {"key": "value"}.',
        )
    return list(given.items())


def _put(found: dict[str, Any], key: Any, value: Any) -> None:
    name = str(key).lower()
    if name not in _SWITCHES:
        raise InvalidInput(
            f"There is no option {key!r}.",
            code="UNKNOWN_OPTION",
            name=str(key),
            remedy="Options are: " + ", ".join(sorted(_SWITCHES)) + ".",
        )
    attribute, read = _SWITCHES[name]
    try:
        found[attribute] = read(value)
    except (TypeError, ValueError, KeyError) as error:
        wanted = error.args[0] if isinstance(error, _Unfit) else "another value"
        raise InvalidInput(
            f"Option {name} cannot be {value!r}.", code="BAD_OPTION", name=name, remedy=f"Give {wanted}."
        ) from None


class _Unfit(ValueError):
    """An invalid option value; the message describes the valid ones."""


def _flag(value: Any) -> bool:
    words = {"true": True, "on": True, "1": True, "false": False, "off": False, "0": False}
    text = str(value).strip().lower()
    if text not in words:
        raise _Unfit("on or off")
    return words[text]


def _size(value: Any) -> int:
    match = None if isinstance(value, bool) else _SIZE.fullmatch(str(value).strip())
    if match is None:
        raise _Unfit("a number of bytes, or a size such as 64MB")
    return int(match[1]) * _UNITS[match[2].lower()]


def size_of(text: str) -> int:
    """Parse a size such as ``64MB`` to bytes. Raises ``ValueError``."""
    return _size(text)


def _positive_size(value: Any) -> int:
    if not (size := _size(value)):
        raise _Unfit("a size above 0")
    return size


def _percent(value: Any) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = -1.0
    if not 0 <= number <= 100:
        raise _Unfit("a number from 0 to 100")
    return number


def _one_of(*words: str) -> Callable[[Any], str]:
    def read(value: Any) -> str:
        text = str(value).strip().lower()
        if text not in words:
            raise _Unfit("one of " + ", ".join(words))
        return text

    return read


def _word(value: Any) -> str:
    if not isinstance(value, str) or not value.strip():
        raise _Unfit("auto, off, lookup, plan or the name of an index")
    return value.strip()


def _names(value: Any) -> tuple[str, ...]:
    items = split_list(value) if isinstance(value, str) else list(value)
    return tuple(str(item).strip() for item in items if str(item).strip())


def _formats(value: Any) -> tuple[str, ...]:
    found = tuple(name.lower() for name in _names(value))
    if not set(found) <= {"delta", "iceberg"}:
        raise _Unfit("delta, iceberg, or both, separated by a comma")
    return found


def _zone(value: Any) -> str:
    text = str(value)
    if offset := re.fullmatch(r"(?:UTC|GMT)?[+-](\d{1,2})(?::([0-5]\d))?", text):
        if int(offset[1]) * 60 + int(offset[2] or 0) > 18 * 60:
            raise _Unfit("a time zone such as UTC or Europe/Paris; offsets end at 18 hours")
        return text
    if text == "Z":
        return text
    try:
        ZoneInfo(text)
    except (KeyError, ValueError, OSError):
        raise _Unfit("a time zone such as UTC or Europe/Paris") from None
    return text


_SWITCHES: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "tamis.stats.collect": ("stats_collect", _flag),
    "tamis.stats.filter": ("stats_filter", _flag),
    "tamis.stats.budget_bytes": ("stats_budget_bytes", _size),
    STATS_KEEP: ("stats_keep", _names),
    "tamis.audit.percent": ("audit_percent", _percent),
    "tamis.audit.max_bytes": ("audit_max_bytes", _size),
    "tamis.read.lazy": ("read_lazy", _one_of("auto", "on", "off", "native")),
    "tamis.read.native_bytes": ("read_native_bytes", _size),
    "tamis.index.use": ("index_use", _word),
    "tamis.index.build": ("index_build", _one_of("with_write", "deferred", "fail")),
    "tamis.index.catch_up": ("index_catch_up", _size),
    "tamis.scan.limits": ("scan_limits", _flag),
    "tamis.scan.topk": ("scan_topk", _flag),
    "tamis.scan.aggregates": ("scan_aggregates", _flag),
    "tamis.scan.max_bytes": ("scan_max_bytes", _size),
    "tamis.scan.join_keys": ("scan_join_keys", _flag),
    "tamis.write.part_bytes": ("write_part_bytes", _positive_size),
    WRITE_SHRED: ("write_shred", _names),
    "tamis.write.outside_filter": ("write_outside", _one_of("auto", "refuse", "allow")),
    "tamis.write.wide_rows": ("write_wide_rows", _flag),
    _EXPORT: ("export", _formats),
    "tamis.schema.policy": ("schema_policy", _one_of("any", "forward")),
    "timezone": ("timezone", _zone),
    "ansi": ("ansi", _flag),
}
