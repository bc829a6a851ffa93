"""How the texts of a CSV file are quoted, found from the whole file.

RFC 4180, and Python, pandas and Excel with it, double a quote within quotes; Spark writes a backslash before it. Either
kind is read by the other's rule without an error, with other texts. Line ends within quotes are part of a value in
both, but Spark takes them for ends of rows unless ``multiLine`` is set, and then the first line end of a file, in a
value or not, for that of all rows.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

import pyarrow as pa

from tamis.errors import InvalidInput

CODECS = {"gz": "gzip", "bz2": "bz2", "zst": "zstd"}
"""Compression of files by their endings, as far as it can be undone here. Hadoop knows more."""
HADOOPS_OWN = {"lz4", "snappy", "deflate"}
"""Endings of files that only Hadoop unpacks."""
_PIECE = 1 << 24
_LONGEST = 1 << 28
"""Bytes of a value beyond which quotes are taken for unbalanced."""


@dataclass(frozen=True, slots=True)
class Quoting:
    """``escape``: what stands before a quote within quotes; ``line_end``: of the rows, if values have line ends."""

    escape: str
    line_end: str | None = None

    @property
    def reader_options(self) -> dict[str, str]:
        if self.line_end is None:
            return {"escape": self.escape}
        return {"escape": self.escape, "multiLine": "true", "lineSep": self.line_end}


@dataclass(frozen=True, slots=True)
class Layout:
    """What options of Spark's reader say about a file.

    ``plain_lines``: every line is of rows and ends as usual. ``skips_blanks``: blanks before a quote do not count.
    """

    separator: str = ","
    encoding: str = "utf-8"
    plain_lines: bool = True
    skips_blanks: bool = False


PLAIN = Quoting('"')
_LINE_ENDS = (None, "\n", "\r\n", "\r")
_EITHER = ""
"""In place of an escape: no quote within quotes at all, so that both kinds read the same."""


def file_compression(path: str) -> str:
    """Return the ending that says how a file is compressed, in lower case; Hadoop ignores the case of it."""
    return path.rpartition(".")[2].lower()


def file_quoting(path: str, layout: Layout) -> Quoting:
    """Return how a file's texts are quoted; for a file that cannot be read here, as RFC 4180 has it.

    Raises ``InvalidInput`` (``BAD_DATA``) if quotes do not balance, if both kinds fit with different texts, or if lines
    are not plain.
    """
    try:
        codecs.lookup(layout.encoding)
        quoted, escaped = _quotes(path, layout.encoding)
        if not quoted:
            return PLAIN
        if not layout.plain_lines:
            raise unclear_quotes(path, "are not looked through where lines are comments or end in another way")
        return _fitting_kind(path, layout, escaped)
    except (OSError, LookupError, pa.ArrowException):  # Spark says what is wrong with it, if anything
        return PLAIN


def _fitting_kind(path: str, layout: Layout, escaped: bool) -> Quoting:
    for strict in (True, False):
        found = [kind for escape in ('"', "\\")[: 1 + escaped] if (kind := _first_fit(path, layout, escape, strict))]
        if len(found) > 1 and not _first_fit(path, layout, _EITHER, strict):
            raise unclear_quotes(
                path, "can be read in two ways: a backslash before a quote is a character or escapes it"
            )
        if found:
            return found[0]
    raise unclear_quotes(
        path,
        "do not balance, or its lines end in several ways: a value begins with a quote, and no quote ends it before a "
        "separator or a line end",
    )


def _first_fit(path: str, layout: Layout, escape: str, strict: bool) -> Quoting | None:
    kinds = (Quoting(escape, line_end) for line_end in _LINE_ENDS)
    return next((kind for kind in kinds if _fits(path, kind, layout, strict)), None)


def _quotes(path: str, encoding: str) -> tuple[bool, bool]:
    """Return whether a file has quotes, and whether one of them comes after a backslash."""
    quoted = escaped = False
    last = b""
    for piece in _pieces(path, encoding):
        quoted = quoted or b'"' in piece
        escaped = escaped or b'\\"' in piece or (last == b"\\" and piece.startswith(b'"'))
        last = piece[-1:] or last
    return quoted, escaped


@lru_cache(maxsize=32)
def _grammar(kind: Quoting, layout: Layout, strict: bool) -> re.Pattern[bytes]:
    """Return a pattern of whole values with what ends them. ``strict``: values without quotes have none inside."""
    separator = layout.separator.replace(r"\t", "\t")
    inner = "" if kind.line_end else r"\r\n"  # what values in quotes do not hold
    inside = {
        '"': rf'[^"{inner}]++|""',
        "\\": rf'[^"\\{inner}]++|\\' + (r"[^\r\n]" if inner else "."),
        _EITHER: rf'[^"\\{inner}]++|\\(?!")',
    }[kind.escape]
    blank = " *+" if separator.startswith("\t") else r"[ \t]*+"
    quoted = f'{blank if layout.skips_blanks else ""}"(?:{inside})*+"{blank}'
    ends = re.escape(separator) if len(separator.encode()) == 1 else ""
    other = "" if ends else f"(?!{re.escape(separator)})"
    bare = f'(?:{other}[^"{ends}\r\n])++' if strict else f'{other}[^"{ends}\r\n](?:{other}[^{ends}\r\n])*+'
    line_end = kind.line_end or "[\r\n]"
    return re.compile(f"(?:(?:{quoted}|{bare})?+(?:{re.escape(separator)}|{line_end}))*+".encode(), re.DOTALL)


def _fits(path: str, kind: Quoting, layout: Layout, strict: bool) -> bool:
    grammar, rest = _grammar(kind, layout, strict), b""
    for piece in _pieces(path, layout.encoding):
        rest += piece
        found = grammar.match(rest, 0, len(rest) - 1)  # the last byte may be half of a line end
        assert found is not None, "a repetition matches nothing at least"
        rest = rest[found.end() :]
        if len(rest) > _LONGEST:
            return False
    return not rest or any(grammar.fullmatch(rest + end) for end in (b"", (kind.line_end or "\n").encode()))


def _pieces(path: str, encoding: str) -> Iterator[bytes]:
    """Read a file's texts in UTF-8 without a mark; bytes that are no texts become characters that are no quotes."""
    name = codecs.lookup(encoding).name
    decoder = None if name == "utf-8" else codecs.getincrementaldecoder(name)("replace")
    first = True
    with pa.input_stream(path, compression=CODECS.get(file_compression(path))) as file:
        while data := file.read(_PIECE):
            piece = decoder.decode(data).encode("utf-8", "replace") if decoder else data
            yield piece.removeprefix(codecs.BOM_UTF8) if first else piece
            first = False
    if decoder:
        yield decoder.decode(b"", final=True).encode("utf-8", "replace")


def unclear_quotes(path: str, reason: str) -> InvalidInput:
    return InvalidInput(
        f"The quotes of {path} {reason}.",
        code="BAD_DATA",
        name=path,
        remedy="Correct the file, or say how it is quoted by --read-option escape=… (and quote=…, multiLine=…).",
    )
