"""Merge clauses as text, as SQL writes them after WHEN: ``MATCHED AND source.gone THEN DELETE``."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

import typer

from tamis.core.types.identifiers import BACKQUOTED, remove_backquotes

_CLAUSE = re.compile(
    r"""\s*(?:WHEN\s+)?(?P<kind>NOT\s+MATCHED\s+BY\s+SOURCE|NOT\s+MATCHED(?:\s+BY\s+TARGET)?|MATCHED)
    (?:\s+AND\s+(?P<condition>.+?))?
    \s+THEN\s+(?:(?P<delete>DELETE)|UPDATE\s+SET\s+(?:\*|(?P<values>[^*].*))|INSERT\s*(?:\*|\((?P<columns>[^()]*)\)\s*VALUES\s*\((?P<row>.*)\)))\s*""",
    re.IGNORECASE | re.DOTALL | re.VERBOSE,
)
_QUOTED = re.compile(rf"'(?:[^'\\]|\\.|'')*'|\"(?:[^\"\\]|\\.)*\"|{BACKQUOTED}", re.DOTALL)


def add_merge_clauses(merge: Any, texts: Sequence[str]) -> Any:
    """Add a clause to ``merge`` for each text. Exits with a usage error naming an invalid one."""
    for text in texts:
        merge = _with(merge, text)
    return merge


def _with(merge: Any, text: str) -> Any:
    bare = _QUOTED.sub(lambda m: "x" * len(m[0]), text)
    found = _CLAUSE.fullmatch(bare)
    if found is None:
        raise typer.BadParameter(
            f"{text!r} is no clause such as MATCHED THEN UPDATE SET *, or NOT MATCHED THEN INSERT *.",
            param_hint="--when",
        )

    def said(group: str) -> str | None:
        start, end = found.span(group)
        return None if start < 0 else text[start:end].strip()

    words = found["kind"].upper().split()
    kind = "by_source" if words[-1] == "SOURCE" else "not_matched" if words[0] == "NOT" else "matched"
    action = "delete" if found["delete"] else "insert" if found["columns"] is not None or _inserts(bare) else "update"
    method = _METHODS.get((kind, action))
    if method is None:
        raise typer.BadParameter(
            f"{text!r}: what is {found['kind'].lower()} cannot be met by {action.upper()}.", param_hint="--when"
        )
    values = _values(text, said("values"), said("columns"), said("row"))
    given = {} if action == "delete" else {"values": values}
    return getattr(merge, method)(condition=said("condition"), **given)


_METHODS = {
    ("matched", "update"): "when_matched_update",
    ("matched", "delete"): "when_matched_delete",
    ("not_matched", "insert"): "when_not_matched_insert",
    ("by_source", "update"): "when_not_matched_by_source_update",
    ("by_source", "delete"): "when_not_matched_by_source_delete",
}


def _inserts(bare: str) -> bool:
    return re.search(r"\sTHEN\s+INSERT\s*\*\s*$", bare, re.IGNORECASE) is not None


def _values(text: str, assigned: str | None, columns: str | None, row: str | None) -> dict[str, str] | None:
    """Return SQL by column; None for all columns of the source."""
    if assigned is not None:
        pairs = [part.partition("=") for part in _split(assigned)]
    elif columns is not None and row is not None:
        named, given = list(_split(columns)), list(_split(row))
        if len(named) != len(given):
            raise typer.BadParameter(f"{text!r} has {len(named)} columns and {len(given)} values.", param_hint="--when")
        pairs = [(name, "=", value) for name, value in zip(named, given, strict=True)]
    else:
        return None
    if not all(name.strip() and value.strip() for name, _, value in pairs):
        raise typer.BadParameter(
            f"{text!r} has a value without a column, or a column without one.", param_hint="--when"
        )
    return {_name(name.strip()): value.strip() for name, _, value in pairs}


def _name(text: str) -> str:
    return remove_backquotes(text.removeprefix("target."))


def _split(text: str) -> Iterator[str]:
    """Split ``text`` at commas outside quotes and parentheses."""
    bare = _QUOTED.sub(lambda m: "x" * len(m[0]), text)
    depth = start = 0
    for at, character in enumerate(bare):
        depth += (character in "([") - (character in ")]")
        if character == "," and not depth:
            yield text[start:at]
            start = at + 1
    yield text[start:]
