"""How the texts of a CSV file are quoted, found from the whole file.

RFC 4180, and Python, pandas and Excel with it, double a quote within quotes; Spark writes a backslash before it. Either
kind is read by the other's rule without an error, with other texts. Line ends within quotes are part of a value in
both, but Spark takes them for ends of rows unless ``multiLine`` is set.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from typing import Any

import pyarrow as pa

from tamis.errors import InvalidInput

CODECS = {"gz": "gzip", "bz2": "bz2", "zst": "zstd"}
"""Compression of files by their endings, as far as it can be undone here. Hadoop knows more."""
_PIECE = 1 << 24
_LONGEST = 1 << 26
"""Bytes of a value beyond which quotes are taken for unbalanced."""


@dataclass(frozen=True, slots=True)
class Quoting:
    """``escape``: what stands before a quote within quotes; ``multiline``: whether values have line ends."""

    escape: str
    multiline: bool

    @property
    def reader_options(self) -> dict[str, str]:
        return {"escape": self.escape, "multiLine": str(self.multiline).lower()}


@dataclass(frozen=True, slots=True)
class Layout:
    """What options of Spark's reader say about a file. ``plain_lines``: every line is of rows and ends as usual."""

    separator: str = ","
    encoding: str = "utf-8"
    plain_lines: bool = True


PLAIN = Quoting('"', multiline=False)
_DOUBLED, _BACKSLASH = ([Quoting(escape, multiline) for multiline in (False, True)] for escape in ('"', "\\"))


def file_compression(path: str) -> str:
    """Return the ending that says how a file is compressed, in lower case; Hadoop ignores the case of it."""
    return path.rpartition(".")[2].lower()


def file_quoting(path: str, layout: Layout) -> Quoting:
    """Return how a file's texts are quoted.

    A file that only Hadoop can unpack is taken for RFC 4180 with line ends in values. Raises ``InvalidInput``
    (``BAD_DATA``) if quotes do not balance, if both kinds fit with different texts, or if lines are not plain.
    """
    separator = layout.separator.replace(r"\t", "\t")
    try:
        decoder = codecs.lookup(layout.encoding)
        quoted, escaped = _quotes(path, decoder.name)
        if not quoted:
            return PLAIN
        if not layout.plain_lines:
            raise _unclear(path, "are not looked through where lines are comments or end in another way")
        for strict in (True, False):
            found: list[Quoting] = []
            for kinds in (_DOUBLED, _BACKSLASH)[: 1 + escaped]:
                fitting = (k for k in kinds if _fits(path, decoder.name, _grammar(k, separator, strict=strict)))
                found.extend(islice(fitting, 1))
            if len(found) > 1:
                raise _unclear(path, "can be read in two ways: a backslash before a quote is a character or escapes it")
            if found:
                return found[0]
    except (OSError, LookupError, pa.ArrowException):  # Spark says what is wrong with it, if anything
        return Quoting('"', multiline=True)
    raise _unclear(path, "do not balance: a value begins with a quote, and no quote ends it before a separator")


def _quotes(path: str, encoding: str) -> tuple[bool, bool]:
    """Return whether a file has quotes, and whether one of them comes after a backslash."""
    quoted = escaped = False
    last = ""
    for piece in _pieces(path, encoding):
        quoted = quoted or '"' in piece
        escaped = escaped or '\\"' in piece or (last == "\\" and piece.startswith('"'))
        last = piece[-1:] or last
    return quoted, escaped


@lru_cache(maxsize=16)
def _grammar(kind: Quoting, separator: str, *, strict: bool) -> re.Pattern[str]:
    """Return a pattern of whole values with what ends them. ``strict``: values without quotes have none inside."""
    line_ends, any_character = ("", ".") if kind.multiline else (r"\r\n", r"[^\r\n]")
    inside = f'[^"{line_ends}]++|""' if kind.escape == '"' else rf'[^"\\{line_ends}]++|\\{any_character}'
    ends = re.escape(separator) if len(separator) == 1 else ""
    other = "" if ends else f"(?!{re.escape(separator)})"
    bare = f'(?:{other}[^"{ends}\r\n])++' if strict else f'{other}[^"{ends}\r\n](?:{other}[^{ends}\r\n])*+'
    return re.compile(f'(?:(?:"(?:{inside})*+"|{bare})?+(?:{re.escape(separator)}|[\r\n]))*+', re.DOTALL)


def _fits(path: str, encoding: str, grammar: re.Pattern[str]) -> bool:
    rest = ""
    for piece in _pieces(path, encoding):
        rest += piece
        found = grammar.match(rest)
        assert found is not None, "a repetition matches nothing at least"
        rest = rest[found.end() :]
        if len(rest) > _LONGEST:
            return False
    return not rest or grammar.fullmatch(rest + "\n") is not None


def _pieces(path: str, encoding: str) -> Iterator[str]:
    """Read a file's texts; bytes that are none become replacement characters, which are no quotes."""
    known = "utf-8-sig" if encoding == "utf-8" else encoding  # a byte order mark is no character of the first value
    decoder: Any = codecs.getincrementaldecoder(known)("replace")
    with pa.input_stream(path, compression=CODECS.get(file_compression(path))) as file:
        while data := file.read(_PIECE):
            yield decoder.decode(data)
    yield decoder.decode(b"", final=True)


def _unclear(path: str, reason: str) -> InvalidInput:
    return InvalidInput(
        f"The quotes of {path} {reason}.",
        code="BAD_DATA",
        name=path,
        remedy="Correct the file, or say how it is quoted by --read-option escape=… (and quote=…, multiLine=…).",
    )
