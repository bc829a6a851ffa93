"""How the texts of a CSV file are quoted, found from the whole file.

RFC 4180, and Python, pandas and Excel with it, double a quote within quotes; Spark writes a backslash before it, and
before each backslash within quotes. Either kind is read by the other's rule without an error, with other texts. Line
ends within quotes are part of a value in both, but Spark takes them for ends of rows unless ``multiLine`` is set, and
then the first line end of a file, in a value or not, for that of all rows.
"""

from __future__ import annotations

import codecs
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

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
"""In place of an escape: within quotes are no quotes and no two backslashes, so that both kinds read the same."""
_IN_PAIRS = "\\\\"
"""In place of an escape: within quotes are no quotes, and all backslashes come in pairs."""
_SPARK_JOB = re.compile(r"part-[0-9]+-([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})")
"""Names of files that Spark writes; those of one job, all by the same options, have the same UUID."""


def file_compression(path: str) -> str:
    """Return the ending that says how a file is compressed, in lower case; Hadoop ignores the case of it."""
    return path.rpartition(".")[2].lower()


def quoting_of_files(paths: Iterable[str], layout: Layout) -> dict[str, Quoting]:
    """Return how the texts of each file are quoted; of one that cannot be read here, as RFC 4180 has it.

    A file that both kinds fit with different texts is read as another file that the same job of Spark wrote.
    Raises ``InvalidInput`` (``BAD_DATA``) if there is none that tells, if quotes do not balance, or if lines are not
    plain.
    """
    fits = {path: _fitting_kinds(path, layout) for path in paths}
    found = {path: kinds[0] for path, kinds in fits.items() if len(kinds) == 1}
    of_job: dict[str, list[str]] = defaultdict(list)
    for path in found:
        of_job[_spark_job(path)].append(path)
    escapes: dict[str, str | None] = {"": None}
    for path, kinds in fits.items():
        if path not in found:
            job = _spark_job(path)
            if job not in escapes:
                told = (found[other].escape for other in of_job[job] if _tells(other, layout, found[other]))
                escapes[job] = next(told, None)
            if escapes[job] is None:
                raise unclear_quotes(
                    path,
                    "can be read in two ways: it is unclear whether a backslash is an ordinary character or escapes "
                    "the quote or backslash after it",
                )
            found[path] = next(kind for kind in kinds if kind.escape == escapes[job])
    return found


def _spark_job(path: str) -> str:
    """Return the UUID of the job that wrote a file, or an empty text."""
    job = _SPARK_JOB.match(Path(path).name)
    return job[1] if job else ""


def _fitting_kinds(path: str, layout: Layout) -> list[Quoting]:
    """Return the kinds that fit a file, the most likely ones only: two if they read different texts."""
    try:
        codecs.lookup(layout.encoding)
        signs = _signs(path, layout.encoding)
        if '"' not in signs:
            return [PLAIN]
        if not layout.plain_lines:
            raise unclear_quotes(path, "are not looked through where lines are comments or end in another way")
        return _fits_of_signs(path, layout, signs)
    except (OSError, LookupError, pa.ArrowException):  # Spark says what is wrong with it, if anything
        return [PLAIN]


def _fits_of_signs(path: str, layout: Layout, signs: set[str]) -> list[Quoting]:
    escapes = ('"', "\\") if {r"\"", r"\\"} & signs else ('"',)
    for strict in (True, False):
        found = [kind for escape in escapes if (kind := _first_fit(path, layout, escape, strict))]
        if len(found) > 1 and _first_fit(path, layout, _EITHER, strict):
            return found[:1]
        if len(found) > 1 and r"\"" not in signs and not _first_fit(path, layout, _IN_PAIRS, strict):
            return found[:1]  # who escapes backslashes escapes all: a lone one is a character, and so are two
        if found:
            return found
    raise unclear_quotes(
        path,
        "do not balance, or its lines end in several ways: a value begins with a quote, and no quote ends it before a "
        "separator or a line end",
    )


def _tells(path: str, layout: Layout, kind: Quoting) -> bool:
    """Whether a file that ``kind`` fits would have other texts if it was read as the other kind."""
    try:
        return kind.escape != '"' or not any(_first_fit(path, layout, _EITHER, strict) for strict in (True, False))
    except (OSError, LookupError, pa.ArrowException):
        return False


def _first_fit(path: str, layout: Layout, escape: str, strict: bool) -> Quoting | None:
    kinds = (Quoting(escape, line_end) for line_end in _LINE_ENDS)
    return next((kind for kind in kinds if _fits(path, kind, layout, strict)), None)


def _signs(path: str, encoding: str) -> set[str]:
    """Return which of these a file has: a quote, a quote after a backslash, two backslashes."""
    found, last = set[str](), b""
    for piece in _pieces(path, encoding):
        text = last + piece
        found.update(sign for sign in ('"', r"\"", r"\\") if sign not in found and sign.encode() in text)
        last = text[-1:]
    return found


@lru_cache(maxsize=32)
def _grammar(kind: Quoting, layout: Layout, strict: bool) -> re.Pattern[bytes]:
    """Return a pattern of whole values with what ends them. ``strict``: values without quotes have none inside."""
    separator = layout.separator.replace(r"\t", "\t")
    inner = "" if kind.line_end else r"\r\n"  # what values in quotes do not hold
    inside = {
        '"': rf'[^"{inner}]++|""',
        "\\": rf'[^"\\{inner}]++|\\' + (r"[^\r\n]" if inner else "."),
        _EITHER: rf'[^"\\{inner}]++|\\(?!["\\])',
        _IN_PAIRS: rf'[^"\\{inner}]++|\\\\',
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
        remedy="Correct the file, or say how it is quoted by --read-option 'escape=\\' (as Spark writes) or "
        "'escape=\"' (RFC 4180), with quote=… and multiLine=… if need be.",
    )
