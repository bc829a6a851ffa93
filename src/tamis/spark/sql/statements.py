"""Statements that users of Delta Lake type, planned as the CALL that does the same: OPTIMIZE, VACUUM, RESTORE, DESCRIBE HISTORY, DESCRIBE DETAIL.

Law: only what names a table of a catalog of ours is taken; every other text is Spark's own affair, its errors included. A statement that is ours and cannot be read is
refused with its grammar.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from tamis.engine.scan.instants import micros
from tamis.errors import InvalidInput, TamisError
from tamis.spark.jvm_bridge.adapter import Bridge
from tamis.spark.jvm_bridge.spark_errors import unsupported
from tamis.spark.sql.procedure import quoted_name
from tamis.storage.commit_log import load

_TOKEN = re.compile(r"\s+|--[^\n]*|/\*.*?\*/|(`(?:[^`]|``)*`|'(?:\\.|''|[^'\\])*'|\"(?:\\.|[^\"\\])*\"|[\w]+|.)", re.DOTALL)
_BEGIN = {"DESC": "DESCRIBE"}

GRAMMAR = {
    "OPTIMIZE": "OPTIMIZE table [FULL] [WHERE condition] [ZORDER BY (column, …)]",
    "VACUUM": "VACUUM table [FULL] [RETAIN number HOURS] [DRY RUN]",
    "RESTORE": "RESTORE [TABLE] table [TO] VERSION AS OF number, or TIMESTAMP AS OF 'time'",
    "DESCRIBE HISTORY": "DESCRIBE HISTORY table [LIMIT number]",
    "DESCRIBE DETAIL": "DESCRIBE DETAIL table",
}


class Words:
    """The words of a statement, read from left to right; each knows where it stands in the text."""

    def __init__(self, text: str) -> None:
        self._text = text
        found = [(m[1], m.start(1), m.end(1)) for m in _TOKEN.finditer(text) if m[1] is not None]
        while found and found[-1][0] == ";":
            found.pop()
        self._words = found
        self._at = 0

    @property
    def done(self) -> bool:
        return self._at >= len(self._words)

    def peek(self, ahead: int = 0) -> str:
        """A word in capitals, or nothing behind the last one."""
        at = self._at + ahead
        return self._words[at][0].upper() if at < len(self._words) else ""

    def take(self) -> str:
        if self.done:
            return ""
        self._at += 1
        return self._words[self._at - 1][0]

    def skip(self, *words: str) -> bool:
        """Whether these words come next; then they are taken."""
        if any(self.peek(at) != word for at, word in enumerate(words)):
            return False
        self._at += len(words)
        return True

    def until(self, *words: str) -> str:
        """The text up to where these words stand outside of parentheses, or to the end."""
        start, depth = self._at, 0
        while not self.done and (depth or any(self.peek(at) != word for at, word in enumerate(words))):
            depth += {"(": 1, ")": -1}.get(self.take(), 0)
        return self._text[self._words[start][1] : self._words[self._at - 1][2]] if self._at > start else ""

    def rest(self) -> str:
        return "" if self.done else self._text[self._words[self._at][1] :]


class Statements:
    """Answers Java for a text that begins as one of ours: what to CALL, or None where the table is not ours; a Java ``BiFunction``."""

    def __init__(self, bridge: Bridge) -> None:
        self._bridge = bridge

    def apply(self, _: str, text: str) -> list[Value] | None:
        """Returns catalog, procedure, then name and value of each argument: Java makes a plan of these values, and no text is read again."""
        words = Words(text)
        verb = _BEGIN.get(words.peek(), words.peek())
        words.take()
        if verb == "DESCRIBE":
            verb = f"{verb} {words.take().upper()}"
        if verb == "RESTORE" and words.peek(1) not in {".", "TO", "VERSION", "TIMESTAMP"}:
            words.skip("TABLE")
        names = _names(words)
        found = self._ours(names, there=verb.startswith("DESCRIBE")) if names else None
        if found is None:
            return None
        catalog, inside = found
        procedure, arguments = _READ[verb](catalog, inside, words)
        if not words.done:
            raise _unread(verb, words.rest())
        named: dict[str, Value] = {"table": quoted_name(inside), **arguments}
        return [catalog.name(), procedure, *(word for pair in named.items() for word in pair)]

    def _ours(self, names: tuple[str, ...], *, there: bool) -> tuple[Any, tuple[str, ...]] | None:
        """The catalog and the name within it. ``there``: only of a table that is, since Spark itself may mean something by the words before it."""
        session = self._bridge.active_session()
        if len(names) == 2 and names[0].lower() == "tamis" and "/" in names[1]:
            raise unsupported(
                "This statement by a path", f"Open it: tamis.open({names[1]!r}) has compact, vacuum, restore, history and detail."
            )
        catalog = self._bridge.registered_catalog(names[0]) if len(names) > 1 else None
        if catalog is None:
            manager = session._jsparkSession.sessionState().catalogManager()
            catalog = self._bridge.registered_catalog(str(manager.currentCatalog().name()))
            inside = names if len(names) > 1 else (*self._bridge.texts(manager.currentNamespace()), *names)
        else:
            inside = names[1:]
        if catalog is None or catalog.application != session.sparkContext.applicationId:
            return None
        if not there:
            catalog.open(inside)  # raises: a procedure may take another table, which the words name without their catalog
        return (catalog, inside) if not there or _is_table(catalog, inside) else None


def _is_table(catalog: Any, names: tuple[str, ...]) -> bool:
    try:
        return bool(catalog.warehouse.is_table(names))
    except TamisError:
        return False


def _names(words: Words) -> tuple[str, ...]:
    """A name of several parts; nothing where none stands."""
    parts: list[str] = []
    while re.fullmatch(r"`.+`|\w+", words.peek(), re.DOTALL):
        part = words.take()
        parts.append(part[1:-1].replace("``", "`") if part.startswith("`") else part)
        if not words.skip("."):
            return tuple(parts)
    return ()


Inside = tuple[str, ...]
Value = str | int | float | bool
Said = tuple[str, dict[str, Value]]


def _optimize(catalog: Any, _: Inside, words: Words) -> Said:
    given: dict[str, Value] = {}
    words.skip("FULL")
    if words.skip("WHERE"):
        given["filter"] = condition(words.until("ZORDER", "BY"), catalog.bridge.active_session().conf)
    if words.skip("ZORDER", "BY"):
        listed = words.rest().strip().rstrip(";").strip()
        words.until(";")
        given |= {"cluster_by": listed.removeprefix("(").removesuffix(")"), "curve": "zorder"}
    return "compact", given


def _vacuum(_: Any, __: Inside, words: Words) -> Said:
    if words.peek() in {"LITE", "USING"}:
        raise unsupported(f"VACUUM … {words.peek()}", "Leave it out: the log says what is needed, a listing what is there.")
    words.skip("FULL")
    given, dry = dict[str, Value](), words.skip("DRY", "RUN")
    if words.skip("RETAIN"):
        hours = words.until("HOURS")
        if not re.fullmatch(r"[0-9]{1,9}(\s*\.\s*[0-9]{1,9})?", hours) or not words.skip("HOURS"):
            raise _unread("VACUUM", f"RETAIN {hours}")
        given["retention_hours"] = float("".join(hours.split()))
    dry = words.skip("DRY", "RUN") or dry
    return "vacuum", given | {"dry_run": dry}


def _restore(catalog: Any, inside: Inside, words: Words) -> Said:
    words.skip("TO")
    if words.skip("VERSION", "AS", "OF"):
        version = words.take().strip("'\"")
        return "restore", {"version": _number("RESTORE", f"VERSION AS OF {version}", version)}
    if not words.skip("TIMESTAMP", "AS", "OF"):
        raise _unread("RESTORE", words.rest())
    words.skip("TIMESTAMP")
    given = words.take()
    if given[:1] not in {"'", '"'}:
        raise _unread("RESTORE", f"TIMESTAMP AS OF {given}{words.rest()}")
    zone = catalog.bridge.active_session().conf.get("spark.sql.session.timeZone")
    store, _ = catalog.open(inside)
    return "restore", {"version": load(store, timestamp_micros=micros(given[1:-1], zone)).version}


def _history(_: Any, __: Inside, words: Words) -> Said:
    if not words.skip("LIMIT"):
        return "history", {}
    number = words.take()
    return "history", {"limit": _number("DESCRIBE HISTORY", f"LIMIT {number}", number)}


def _number(verb: str, where: str, text: str) -> int:
    """A whole number as Spark's grammar has it: ASCII digits. Raises ``InvalidInput`` for anything else, and for what a long cannot hold."""
    if not re.fullmatch("[0-9]{1,19}", text) or int(text) >= 2**63:
        raise _unread(verb, where)
    return int(text)


_READ: dict[str, Callable[[Any, Inside, Words], Said]] = {
    "OPTIMIZE": _optimize,
    "VACUUM": _vacuum,
    "RESTORE": _restore,
    "DESCRIBE HISTORY": _history,
    "DESCRIBE DETAIL": lambda _, __, ___: ("detail", {}),
}


def condition(text: str, conf: Any) -> str:
    """Returns the condition as a session without ``spark.sql.parser.escapedStringLiterals`` writes it: there a backslash escapes."""
    if str(conf.get("spark.sql.parser.escapedStringLiterals", "false")).lower() != "true":
        return text
    return _TOKEN.sub(lambda found: literal(found[0][1:-1]) if found[0][0] in "'\"" and len(found[0]) > 1 else found[0], text)


def literal(text: str) -> str:
    """A string of Spark SQL."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def _unread(verb: str, rest: str) -> InvalidInput:
    return InvalidInput(
        f"{verb} cannot be read from {rest.strip() or 'its end'!r} on.", code="PARSE_ERROR", name=verb, remedy=f"Write {GRAMMAR[verb]}."
    )


def teach(bridge: Bridge, spark: Any) -> None:
    """Sees to it that this session, and those that are made of it, read the statements of ours. Where a later Spark or Java does not let it, CALL remains."""
    from py4j.protocol import Py4JError

    try:
        asked = bridge.once("statements", "asked", lambda: bridge.implement(("java.util.function.BiFunction",), Statements(bridge)))
        bridge.helper("Statements").teach(spark._jsparkSession, asked)
    except Py4JError:
        return
