"""Statements that Spark's parser lacks, planned as CALL.

OPTIMIZE, VACUUM, RESTORE, DESCRIBE HISTORY and DESCRIBE DETAIL are those of Delta Lake; REINDEX, REFRESH INDEX
and SHOW INDEXES are about secondary indexes.

Invariant: only statements about a table of a Tamis catalog are taken. Every other text is left to Spark,
including its errors. A statement about a Tamis table that cannot be parsed is rejected with its grammar.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from tamis.core.types.identifiers import BACKQUOTED, backquote_path, remove_backquotes
from tamis.engine.scan.query_instants import instant_micros
from tamis.errors import InvalidInput, TamisError
from tamis.spark.jvm_bridge.adapter import Bridge
from tamis.spark.jvm_bridge.spark_errors import unsupported_statement
from tamis.spark.sql.catalog_lookup import tamis_catalog
from tamis.spark.sql.newer_statements import NEWER, newer_statements, refuse_statement
from tamis.storage.commit_log import load

_TOKEN = re.compile(
    rf"\s+|--[^\n]*|/\*.*?\*/|({BACKQUOTED}|'(?:\\.|''|[^'\\])*'|\"(?:\\.|[^\"\\])*\"|[\w]+|.)", re.DOTALL
)
_BEGIN = {"DESC": "DESCRIBE"}

GRAMMAR = {
    "OPTIMIZE": "OPTIMIZE table [FULL] [WHERE condition] [ZORDER BY (column, …)]",
    "VACUUM": "VACUUM table [FULL] [RETAIN number HOURS] [DRY RUN]",
    "RESTORE": "RESTORE [TABLE] table [TO] VERSION AS OF number, or TIMESTAMP AS OF 'time'",
    "DESCRIBE HISTORY": "DESCRIBE HISTORY table [LIMIT number]",
    "DESCRIBE DETAIL": "DESCRIBE DETAIL table",
    "REINDEX": "REINDEX [TABLE] table, or REINDEX INDEX name ON [TABLE] table",
    "REFRESH INDEX": "REFRESH INDEX name ON [TABLE] table",
    "SHOW INDEXES": "SHOW INDEXES FROM | IN | ON [TABLE] table",
}
_CONSTRAINT_WORDS = {"CONSTRAINT", "CHECK", "PRIMARY", "UNIQUE", "FOREIGN"}
_TWO_WORDS = {"DESCRIBE", "REFRESH", "SHOW"}


class Words:
    """The words of a statement, read from left to right, with their positions in the text."""

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
        """The word ``ahead`` places on, in upper case, or "" after the last one."""
        at = self._at + ahead
        return self._words[at][0].upper() if at < len(self._words) else ""

    def take(self) -> str:
        if self.done:
            return ""
        self._at += 1
        return self._words[self._at - 1][0]

    def skip(self, *words: str) -> bool:
        """Whether these words come next. If so, skip them."""
        if any(self.peek(at) != word for at, word in enumerate(words)):
            return False
        self._at += len(words)
        return True

    def until(self, *words: str) -> str:
        """Take the text up to these words outside of parentheses, or to the end."""
        start, depth = self._at, 0
        while not self.done and (depth or any(self.peek(at) != word for at, word in enumerate(words))):
            depth += {"(": 1, ")": -1}.get(self.take(), 0)
        return self._text[self._words[start][1] : self._words[self._at - 1][2]] if self._at > start else ""

    def rest(self) -> str:
        return "" if self.done else self._text[self._words[self._at][1] :]


class Statements:
    """Java ``BiFunction`` that translates a statement to the arguments of a CALL; None if it is not ours."""

    def __init__(self, bridge: Bridge) -> None:
        self._bridge = bridge

    def apply(self, _: str, text: str) -> list[Value] | None:
        """Return catalog, procedure, and name and value of each argument, or None.

        Java builds the plan from these values, so no text is parsed again.
        """
        words = Words(text)
        if f"{words.peek()} {words.peek(1)}" in NEWER:
            self._refuse_newer(words)
            return None
        verb = _BEGIN.get(words.peek(), words.peek())
        words.take()
        if verb in _TWO_WORDS:
            verb = f"{verb} {words.take().upper()}"
        if verb == "RESTORE" and words.peek(1) not in {".", "TO", "VERSION", "TIMESTAMP"}:
            words.skip("TABLE")
        index = _index(verb, words)
        if index is None:
            return None
        names = _names(words)
        found = self._ours(names, there=verb.startswith("DESCRIBE")) if names else None
        if found is None:
            return None
        catalog, inside = found
        procedure, arguments = _READ[verb](catalog, inside, words)
        if not words.done:
            raise _unread(verb, words.rest())
        named: dict[str, Value] = {"table": backquote_path(inside), **index, **arguments}
        return [catalog.name(), procedure, *(word for pair in named.items() for word in pair)]

    def _refuse_newer(self, words: Words) -> None:
        """Raise ``InvalidInput`` for a statement about a Tamis table that this Spark lacks; leave others to Spark."""
        begin = f"{words.take().upper()} {words.take().upper()}"
        if begin == "CREATE TABLE":
            words.skip("IF", "NOT", "EXISTS")
            names, found = _names(words), words.peek() == "LIKE"
        elif begin == "ALTER TABLE":
            names = _names(words)
            found = words.peek() in {"ADD", "DROP"} and words.peek(1) in _CONSTRAINT_WORDS
        else:
            found = words.skip("SCHEMA", "EVOLUTION") and (words.skip("INTO") or words.skip("OVERWRITE"))
            if words.peek(1) not in {"", "."}:
                words.skip("TABLE")
            names = _names(words)
        if found and names and self._catalog(names) is not None:
            raise refuse_statement(begin, str(self._bridge.active_session().version))

    def _ours(self, names: tuple[str, ...], *, there: bool) -> tuple[Any, tuple[str, ...]] | None:
        """The catalog and the table name within it, or None.

        ``there``: only for an existing table, because the statement may mean something else to Spark.
        """
        if len(names) == 2 and names[0].lower() == "tamis" and "/" in names[1]:
            raise unsupported_statement(
                "This statement by a path",
                f"Open it: tamis.open({names[1]!r}) has compact, vacuum, restore, history and detail.",
            )
        found = self._catalog(names)
        if found is None:
            return None
        catalog, inside = found
        if not there:
            catalog.open(inside)  # raises if missing: otherwise the procedure might resolve the name to another table
        return (catalog, inside) if not there or _is_table(catalog, inside) else None

    def _catalog(self, names: tuple[str, ...]) -> tuple[Any, tuple[str, ...]] | None:
        return tamis_catalog(self._bridge, names)


def _is_table(catalog: Any, names: tuple[str, ...]) -> bool:
    try:
        return bool(catalog.warehouse.is_table(names))
    except TamisError:
        return False


def _names(words: Words) -> tuple[str, ...]:
    """Take a dotted name; empty if none comes next."""
    parts: list[str] = []
    while re.fullmatch(r"`.+`|\w+", words.peek(), re.DOTALL):
        part = words.take()
        parts.append(remove_backquotes(part))
        if not words.skip("."):
            return tuple(parts)
    return ()


def _index(verb: str, words: Words) -> dict[str, Value] | None:
    """Take what stands before the table in a statement about indexes; None if it is not ours."""
    given: dict[str, Value] = {}
    if verb == "REFRESH INDEX" or (verb == "REINDEX" and words.peek(2) == "ON" and words.skip("INDEX")):
        name = _names(words)
        if len(name) != 1 or not words.skip("ON"):
            return None
        given["index"] = name[0]
    elif verb == "SHOW INDEXES":
        if not any(words.skip(word) for word in ("FROM", "IN", "ON")):
            return None
    elif verb != "REINDEX":
        return given
    if words.peek(1) not in {"", "."}:
        words.skip("TABLE")
    return given


Namespace = tuple[str, ...]
Value = str | int | float | bool
CallPlan = tuple[str, dict[str, Value]]


def _optimize(catalog: Any, _: Namespace, words: Words) -> CallPlan:
    given: dict[str, Value] = {}
    words.skip("FULL")
    if words.skip("WHERE"):
        given["filter"] = condition(words.until("ZORDER", "BY"), catalog.bridge.active_session().conf)
    if words.skip("ZORDER", "BY"):
        listed = words.until(";")
        given |= {"cluster_by": listed.removeprefix("(").removesuffix(")"), "curve": "zorder"}
    return "compact", given


def _vacuum(_: Any, __: Namespace, words: Words) -> CallPlan:
    if words.peek() in {"LITE", "USING"}:
        raise unsupported_statement(
            f"VACUUM … {words.peek()}", "Leave it out: the log says what is needed, a listing what is there."
        )
    words.skip("FULL")
    given, dry = dict[str, Value](), words.skip("DRY", "RUN")
    if words.skip("RETAIN"):
        hours = words.until("HOURS")
        if not re.fullmatch(r"[0-9]{1,9}(\s*\.\s*[0-9]{1,9})?", hours) or not words.skip("HOURS"):
            raise _unread("VACUUM", f"RETAIN {hours}")
        given["retention_hours"] = float("".join(hours.split()))
    dry = words.skip("DRY", "RUN") or dry
    return "vacuum", given | {"dry_run": dry}


def _restore(catalog: Any, inside: Namespace, words: Words) -> CallPlan:
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
    return "restore", {"version": load(store, timestamp_micros=instant_micros(given[1:-1], zone)).version}


def _history(_: Any, __: Namespace, words: Words) -> CallPlan:
    if not words.skip("LIMIT"):
        return "history", {}
    number = words.take()
    return "history", {"limit": _number("DESCRIBE HISTORY", f"LIMIT {number}", number)}


def _number(verb: str, where: str, text: str) -> int:
    """Parse an integer of ASCII digits, as Spark's grammar does.

    Raises ``InvalidInput`` for anything else, and for a number that does not fit a long.
    """
    if not re.fullmatch("[0-9]{1,19}", text) or int(text) >= 2**63:
        raise _unread(verb, where)
    return int(text)


_READ: dict[str, Callable[[Any, Namespace, Words], CallPlan]] = {
    "OPTIMIZE": _optimize,
    "VACUUM": _vacuum,
    "RESTORE": _restore,
    "DESCRIBE HISTORY": _history,
    "DESCRIBE DETAIL": lambda _, __, ___: ("detail", {}),
    "REINDEX": lambda _, __, ___: ("repair_index", {}),
    "REFRESH INDEX": lambda _, __, ___: ("repair_index", {}),
    "SHOW INDEXES": lambda _, __, ___: ("list_indexes", {}),
}


def condition(text: str, conf: Any) -> str:
    """The condition with backslashes escaped if ``spark.sql.parser.escapedStringLiterals`` is set."""
    if str(conf.get("spark.sql.parser.escapedStringLiterals", "false")).lower() != "true":
        return text
    return _TOKEN.sub(
        lambda found: literal(found[0][1:-1]) if found[0][0] in "'\"" and len(found[0]) > 1 else found[0], text
    )


def literal(text: str) -> str:
    """A Spark SQL string literal for ``text``."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def _unread(verb: str, rest: str) -> InvalidInput:
    return InvalidInput(
        f"{verb} cannot be read from {rest.strip() or 'its end'!r} on.",
        code="PARSE_ERROR",
        name=verb,
        remedy=f"Write {GRAMMAR[verb]}.",
    )


def extend_parser(bridge: Bridge, spark: Any) -> None:
    """Install our statements in the parser of this session and of sessions made from it.

    If a later Spark or Java does not allow it, CALL remains.
    """
    from py4j.protocol import Py4JError

    try:
        asked = bridge.make_once(
            "statements", "asked", lambda: bridge.implement(("java.util.function.BiFunction",), Statements(bridge))
        )
        newer = bridge.list(newer_statements(bridge))
        bridge.helper("Statements").extend_parser(spark._jsparkSession, asked, newer)
    except Py4JError:
        return
