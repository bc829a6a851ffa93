"""The options of readers and writers: one table of names, where each is valid, and how it is read.

Invariant: an option does what this table says, or the query fails and names it. Names of options are compared
without case, as Spark does. ``tamis.`` options are in ``scan_options``, storage options in ``storage_options``.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from enum import StrEnum
from typing import Any

from tamis.engine.scan.scan_options import PREFIX, size_of
from tamis.errors import InvalidInput
from tamis.spark.jvm_bridge.wire_format import MARK_PREFIX
from tamis.spark.options.foreign_options import FOREIGN, ON_BY_DEFAULT
from tamis.storage.object_store.storage_options import NAMES, is_storage_option


class Use(StrEnum):
    """Where options are given; the values are what messages and the documentation say."""

    READ = "spark.read"
    FEED = "spark.read with readChangeFeed"
    CHANGES = "spark.read.changes and CHANGES FROM"
    READ_STREAM = "spark.readStream"
    WRITE_PATH = 'df.write.format("tamis").save(path)'
    WRITE_TABLE = "a write into a table of a catalog"
    CREATE_TABLE = "the creation of a table in a catalog"
    WRITE_STREAM = "df.writeStream"


READS = frozenset({Use.READ, Use.FEED, Use.READ_STREAM})


@dataclass(frozen=True, slots=True)
class SourceOption:
    """An option. ``read`` parses its text, and raises ``ValueError``; ``values`` describes valid ones."""

    name: str
    uses: frozenset[Use]
    read: Callable[[str], Any]
    values: str
    effect: str
    elsewhere: str = ""
    """What to do where the option is not valid, if there is something better than to leave it out."""
    aliases: tuple[str, ...] = ()


def _flag(text: str) -> bool:
    if text.lower() not in {"true", "false"}:
        raise ValueError
    return text.lower() == "true"


def _count(text: str) -> int:
    if not (count := _number(text)):
        raise ValueError
    return count


def _start(text: str) -> int | str:
    return "latest" if text.lower() == "latest" else _number(text)


def _number(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) <= _DIGITS):
        raise ValueError
    return int(text)


_DIGITS = 19


def _bytes(text: str) -> int:
    if not (size := size_of(text)):
        raise ValueError
    return size


_VERSION, _INSTANT, _SWITCH = "a version: 0, 1, 2, …", "an instant such as 2026-01-31T12:00:00", "true or false"
_BOUNDED = frozenset({Use.FEED, Use.CHANGES})
_STARTED = frozenset({Use.FEED, Use.READ_STREAM, Use.CHANGES})
_CHANGES = frozenset({Use.CHANGES})
_STREAMED = frozenset({Use.READ_STREAM})
_OVERWRITTEN = frozenset({Use.WRITE_PATH})
_EVOLVE = "Use INSERT WITH SCHEMA EVOLUTION, write by path, or table.append(df, merge_schema=True)."
_FILTERED = "Name the rows to replace: df.writeTo(table).overwrite(condition), or INSERT … REPLACE WHERE."
_PROCEDURE = (
    "Use table_changes(…), CALL catalog.system.changes(…), or read the table by path; by name it needs Spark 4.3."
)

OPTIONS = (
    SourceOption(
        "versionAsOf",
        frozenset({Use.READ}),
        str,
        _VERSION,
        "Reads this version. The short name is for paths.",
        "A stream begins at startingVersion.",
        ("version",),
    ),
    SourceOption(
        "timestampAsOf",
        frozenset({Use.READ}),
        str,
        _INSTANT,
        "Reads the version at this time, in the session's time zone. The short name is for paths.",
        "A stream begins at startingTimestamp.",
        ("timestamp",),
    ),
    SourceOption(
        "readChangeFeed",
        frozenset({Use.FEED}),
        _flag,
        _SWITCH,
        "Reads the changes of rows instead of the rows. For a table of a catalog, from Spark 4.3 on.",
        _PROCEDURE,
        ("readChangeData",),
    ),
    SourceOption(
        "startingVersion",
        _STARTED,
        _start,
        f"{_VERSION}; latest for a stream",
        "Begins with what this version changed.",
    ),
    SourceOption("startingTimestamp", _STARTED, str, _INSTANT, "Begins with the first version at or after this time."),
    SourceOption("endingVersion", _BOUNDED, _number, _VERSION, "Ends with what this version changed."),
    SourceOption("endingTimestamp", _BOUNDED, str, _INSTANT, "Ends with the last version at or before this time."),
    SourceOption(
        "keyColumns",
        _BOUNDED,
        str,
        "columns that identify a row, separated by commas",
        "Tells an updated row as update_preimage and update_postimage.",
    ),
    SourceOption(
        "computeUpdates",
        _CHANGES,
        _flag,
        _SWITCH,
        "Asks for the images of updates; needs keyColumns, or a primary key.",
    ),
    SourceOption(
        "deduplicationMode",
        _CHANGES,
        str,
        "none, dropCarryovers or netChanges",
        "netChanges compares the first and the last version; rows that were only copied are in no feed.",
    ),
    SourceOption("startingBoundInclusive", _CHANGES, _flag, _SWITCH, "Whether the first version belongs to the range."),
    SourceOption("endingBoundInclusive", _CHANGES, _flag, _SWITCH, "Whether the last version belongs to the range."),
    SourceOption(
        "maxFilesPerTrigger", _STREAMED, _count, "a whole number above 0", "The number of parts of a micro-batch."
    ),
    SourceOption(
        "maxBytesPerTrigger",
        _STREAMED,
        _bytes,
        "a number of bytes, or a size such as 64MB",
        "The size of the parts of a micro-batch.",
    ),
    SourceOption(
        "ignoreDeletes", _STREAMED, _flag, _SWITCH, "Whether commits that only remove rows are left out of the stream."
    ),
    SourceOption(
        "skipChangeCommits",
        _STREAMED,
        _flag,
        _SWITCH,
        "Whether commits that change, remove or restore rows are left out of the stream, with the rows that they add.",
    ),
    SourceOption(
        "mergeSchema",
        frozenset({Use.WRITE_PATH, Use.CREATE_TABLE}),
        _flag,
        _SWITCH,
        "Whether columns that the data brings are added, and wider types widen columns.",
        _EVOLVE,
    ),
    SourceOption(
        "overwriteSchema",
        frozenset({Use.WRITE_PATH, Use.CREATE_TABLE}),
        _flag,
        _SWITCH,
        'Whether mode("overwrite") also replaces the columns, in one commit.',
        'Use mode("overwrite") with saveAsTable or save, or CREATE OR REPLACE TABLE … AS SELECT.',
    ),
    SourceOption(
        "replaceWhere",
        _OVERWRITTEN,
        str,
        "a filter in Spark SQL",
        'The rows that mode("overwrite") replaces; new rows must match it.',
        _FILTERED,
    ),
    SourceOption(
        "tamis.format",
        frozenset({Use.WRITE_PATH, Use.CREATE_TABLE}),
        str,
        "parquet, orc or vortex",
        "The format of the files of a table that the write creates.",
        "The format is chosen when the table is made.",
        ("format",),
    ),
)

SPARK = (
    "path",
    "checkpointLocation",
    "queryName",
    "asyncProgressTrackingEnabled",
    "asyncProgressTrackingCheckpointIntervalMs",
    "_asyncProgressTrackingOverrideSinkSupportCheck",
)
"""Options that Spark itself reads and passes on, besides those whose names begin with two underscores."""
_SPARK = {name.lower() for name in (*SPARK, "paths")}
_KNOWN = {name.lower(): (name, option) for option in OPTIONS for name in (option.name, *option.aliases)}


POINTS = frozenset({"versionasof", "timestampasof"})
"""The options that choose a version, as ``read_options`` names them. In a catalog, Spark applies them."""


def read_options(given: Mapping[str, str], uses: Collection[Use], *, by_path: bool) -> dict[str, Any]:
    """Return the values of the options in the table, by the first of their names in lower case.

    ``uses`` are the places for which ``given`` may be meant. Raises ``InvalidInput`` (``UNKNOWN_OPTION``,
    ``BAD_OPTION``) for every option that has no effect in any of them. A switch that is off has none anywhere.
    """
    found: dict[str, Any] = {}
    for key, text in given.items():
        name = key.lower()
        if name in _KNOWN:
            shown, option = _KNOWN[name]
            value = _value(option, shown, text)
            if option.uses & set(uses):
                if found.setdefault(option.name.lower(), value) != value:
                    raise _bad(
                        shown,
                        f"{' and '.join((option.name, *option.aliases))} are one option, and have different values.",
                        "Give one of them.",
                    )
            elif value is not False:
                raise _misplaced(option, shown, uses)
        elif name in _SPARK or name.startswith(("__", PREFIX)):
            continue
        elif is_storage_option(name):
            if not by_path:
                raise _bad(
                    key,
                    f"The storage option {key} has no effect on a table of a catalog.",
                    "Give storage options to tamis.attach.",
                )
        elif name in FOREIGN:
            if text.lower() != "false" or name in ON_BY_DEFAULT:
                foreign = FOREIGN[name]
                raise _bad(foreign.name, f"The option {foreign.name} is not supported.", foreign.remedy)
        else:
            raise _unknown(key, uses)
    return found


def unapplied_point(given: Mapping[str, str]) -> InvalidInput:
    """Return the error for a version or time among ``given`` that Spark has not applied to the table."""
    name = next(key for key in given if key.lower() in _KNOWN and _KNOWN[key.lower()][1].name.lower() in POINTS)
    return _bad(
        name,
        f"The option {name} does not choose the version here.",
        "Use VERSION AS OF or TIMESTAMP AS OF in SQL, or spark.read.option('versionAsOf', …).table(…).",
    )


def refuse_settings(given: Mapping[str, str], what: str, remedy: str = "Set it in the session's conf.") -> None:
    """Raise ``InvalidInput`` (``BAD_OPTION``) for a ``tamis.`` option, which ``what`` does not take."""
    for key in given:
        name = key.lower()
        if name.startswith(PREFIX) and name not in _KNOWN and not name.startswith(MARK_PREFIX):
            raise _bad(key, f"{what} does not take {key}.", remedy)


def _value(option: SourceOption, key: str, text: str) -> Any:
    try:
        return option.read(text.strip())
    except ValueError:
        raise _bad(key, f"Option {key} cannot be {text!r}.", f"Give {option.values}.") from None


def _misplaced(option: SourceOption, key: str, uses: Collection[Use]) -> InvalidInput:
    right = " and ".join(sorted(option.uses))
    where = " or ".join(sorted(uses)) or "a statement"
    return _bad(key, f"The option {key} belongs to {right}, not to {where}.", option.elsewhere or "Leave it out.")


def _unknown(key: str, uses: Collection[Use]) -> InvalidInput:
    here = [option.name for option in OPTIONS if option.uses & set(uses)]
    spelled = {name.lower(): name for name in (*SPARK, *NAMES, *here)}
    near = get_close_matches(key.lower(), spelled, n=1)
    advice = f"Did you mean {spelled[near[0]]}?" if near else f"Options are: {', '.join(here) or 'those of tamis.'}."
    return InvalidInput(f"There is no option {key!r}.", code="UNKNOWN_OPTION", name=key, remedy=advice)


def _bad(name: str, what: str, remedy: str) -> InvalidInput:
    return InvalidInput(what, code="BAD_OPTION", name=name, remedy=remedy)
