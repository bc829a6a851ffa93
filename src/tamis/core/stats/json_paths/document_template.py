"""Reads JSON documents that differ only in their scalars, by whole-array operations on their bytes.

Invariant: the statistics are those that ``text_paths`` would give. A document is accepted only if its bytes
are proved to be those of the template with each scalar replaced by another scalar. Its keys, their number and
their order are then those of the template, which ``text_paths`` has checked. Everything else is returned to
the caller: backslashes, control characters, and numbers with an exponent or many digits.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from tamis.core.expr.json_codec.json_path import ELEMENT, PLACED, Steps, placed_steps, stored_path
from tamis.core.stats.json_paths.json_numbers import (
    Data,
    Flags,
    Ints,
    lines_of_integers,
    lines_of_reals,
    parse_numbers,
    words_at,
)
from tamis.core.stats.json_paths.json_strings import lines_of_texts
from tamis.core.stats.json_paths.path_rows import LIST, MAP, Paths, PathStatistics

_PAD = 24
"""Padding bytes before and after the texts, so that a word can be read at every position."""
_LONGEST = 10 * 2**20
_TOKEN = re.compile(rb'"[^"]*"(?P<key> *:)?|[^][{},:" ]+')


@dataclass(frozen=True)
class _Segment:
    """Bytes that all documents share.

    They begin ``back`` bytes before quote number ``quote``; without a quote, they are at the end of the
    document.
    """

    data: bytes
    quote: int | None
    back: int


class Block:
    """The bytes of texts without NULLs, their quotes, and which of the texts can be read here."""

    def __init__(self, texts: pa.Array) -> None:
        dtype = "<i4" if texts.type == pa.string() else "<i8"
        stored = np.frombuffer(texts.buffers()[1], dtype)
        offsets = stored[texts.offset : texts.offset + len(texts) + 1].astype(np.int64)
        self.data = np.zeros(int(offsets[-1] - offsets[0]) + 2 * _PAD, np.uint8)
        if len(self.data) > 2 * _PAD:
            self.data[_PAD:-_PAD] = np.frombuffer(texts.buffers()[2], np.uint8)[offsets[0] : offsets[-1]]
        bounds = offsets - offsets[0] + _PAD
        self.start, self.end = bounds[:-1], bounds[1:]
        self.quotes = np.flatnonzero(self.data == ord('"'))
        self.first = _ordinals(self.quotes, bounds)
        self.count = np.diff(self.first)
        self.usable = (self.end - self.start < _LONGEST) & (self.count > 0)
        inner = self.data[_PAD:-_PAD]
        slashes = inner == ord("\\")
        if len(inner) and (inner.min() < ord(" ") or slashes.any()):
            odd = np.flatnonzero((inner < ord(" ")) | slashes) + _PAD
            self.usable[np.searchsorted(bounds, odd, side="right") - 1] = False


def _ordinals(quotes: Ints, bounds: Ints) -> Ints:
    """Return the index of each document's first quote, and the total number of quotes.

    If all documents have the same number of quotes, which is common, no search is needed.
    """
    documents = len(bounds) - 1
    each, rest = divmod(len(quotes), max(documents, 1))
    first = np.arange(documents + 1) * each
    if each and not rest and (quotes[first[:-1]] >= bounds[:-1]).all() and (quotes[first[1:] - 1] < bounds[1:]).all():
        return first
    return np.searchsorted(quotes, bounds)


class Template:
    """One document, split into segments and scalars.

    ``usable`` is true if each scalar's position follows from the quotes.
    """

    def __init__(self, data: bytes, document: Any) -> None:
        self._nodes = list(_nodes(document, ()))
        self._steps = [steps for steps, value in self._nodes if not isinstance(value, dict | list)]
        tokens = [m for m in _TOKEN.finditer(data) if m["key"] is None]
        self._examples = [m[0] for m in tokens]
        texts = [example[:1] == b'"' for example in self._examples]
        inside = [(m.start() + text, m.end() - text) for m, text in zip(tokens, texts, strict=True)]
        starts, ends = [0, *(end for _, end in inside)], [*(start for start, _ in inside), len(data)]
        segments = [_segment(data, start, end) for start, end in zip(starts, ends, strict=True)]
        self.quotes = data.count(b'"')
        self.usable = len(tokens) == len(self._steps) > 0 and all(s.quote is not None for s in segments[:-1])
        self._texts = np.flatnonzero(texts)
        self._reals = np.array([i for i, e in enumerate(self._examples) if not texts[i] and b"." in e], np.int64)
        self._integers = np.array(
            [i for i, e in enumerate(self._examples) if e[:1] in b"-0123456789" and b"." not in e], np.int64
        )
        self._least = np.where(texts, 0, 1)[:, None]
        self._lay_out(segments)

    def _lay_out(self, segments: Sequence[_Segment]) -> None:
        """Store the segments as columns: their positions, and the words they consist of."""
        last = segments[-1]
        self._open = last.quote is None
        """The last segment has no quote: it is at the end."""
        self._quote = np.array([s.quote or 0 for s in segments], np.int64)[:, None]
        self._back = np.array([s.back for s in segments], np.int64)[:, None]
        self._sizes = np.array([len(s.data) for s in segments], np.int64)[:, None]
        pieces = [
            (i, part, s.data[part : part + 8]) for i, s in enumerate(segments) for part in range(0, len(s.data), 8)
        ]
        self._owner = np.array([i for i, _, _ in pieces], np.int64)
        self._offset = np.array([part for _, part, _ in pieces], np.int64)[:, None]
        self._unused = np.array([64 - 8 * len(piece) for *_, piece in pieces], np.uint64)[:, None]
        self._words = np.array([int.from_bytes(piece, "little") for *_, piece in pieces], np.uint64)[:, None]

    def read(self, block: Block, rows: Ints) -> tuple[list[PathStatistics], Flags]:
        """Return the statistics of the scalars, in order, and which of ``rows`` match this template.

        ``rows`` must have as many quotes as the template. The statistics are empty if no row matches.
        """
        if not len(rows) or int(self._sizes.sum()) > len(block.data):
            return [], np.zeros(len(rows), np.bool_)
        begins, ends, like = self._scalars(block, rows)
        if not like.all():
            begins, ends = begins[:, like], ends[:, like]
        while begins.shape[1]:
            found, valid = self._values(block.data, begins, ends)
            if valid.all():
                return found, like
            like[like] = valid
            begins, ends = begins[:, valid], ends[:, valid]
        return [], like

    def paths(self, documents: int, scalars: Sequence[PathStatistics]) -> Paths:
        """Return the paths of this many documents with these scalars."""
        paths: Paths = {}
        for steps, value in self._nodes:
            if isinstance(value, dict | list):
                _add(paths, steps, PathStatistics(MAP if isinstance(value, dict) else LIST, documents, 0))
                if value == []:
                    _add(paths, (*steps, ELEMENT), PathStatistics())
        for steps, found in zip(self._steps, scalars, strict=True):
            _add(paths, steps, found)
        return paths

    def _scalars(self, block: Block, rows: Ints) -> tuple[Ints, Ints, Flags]:
        """Return where the scalars of ``rows`` begin and end, one line per scalar, and which rows match.

        A row matches if it has all the segments.
        """
        at = block.quotes[block.first[rows] + self._quote]
        at -= self._back
        if self._open:
            at[-1] = block.end[rows] - self._sizes[-1]
        begins, ends = at[:-1] + self._sizes[:-1], at[1:]
        pieces = at[self._owner]
        pieces += self._offset
        found = words_at(block.data, np.minimum(pieces, len(block.data) - 8, out=pieces))
        found ^= self._words
        found <<= self._unused
        like: Flags = (at[0] == block.start[rows]) & (at[-1] + self._sizes[-1] == block.end[rows])
        room = ends - begins
        if (room.min(axis=1, keepdims=True) < self._least).any():
            like &= (room >= self._least).all(axis=0)
        if found.max():
            like &= ~found.any(axis=0)
        return begins, ends, like

    def _values(self, data: Data, begins: Ints, ends: Ints) -> tuple[list[PathStatistics], Flags]:
        """Return the scalars' statistics, and which documents have only scalars that can be read here.

        The statistics are empty unless all documents qualify.
        """
        found: dict[int, PathStatistics] = {}
        for columns, read in (
            (self._texts, lines_of_texts),
            (self._integers, lines_of_integers),
            (self._reals, lines_of_reals),
        ):
            if len(columns):
                statistics = read(data, begins[columns], ends[columns])
                found |= {i: one for i, one in zip(columns.tolist(), statistics, strict=True) if one is not None}
        valid = np.ones(begins.shape[1], np.bool_)
        for i, example in enumerate(self._examples):
            if i not in found:
                several = parse_numbers(data, begins[i], ends[i], example)
                valid &= several.valid
                if valid.all():
                    found[i] = several.statistics()
        return [found[i] for i in range(len(self._examples))] if valid.all() else [], valid


def _segment(data: bytes, start: int, end: int) -> _Segment:
    quote = data.find(b'"', start, end)
    return _Segment(data[start:end], None if quote < 0 else data.count(b'"', 0, quote), quote - start)


def _nodes(value: Any, steps: Steps) -> Iterator[tuple[Steps, Any]]:
    """Yield all values of a document in the order of its text."""
    yield steps, value
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _nodes(inner, (*steps, key))
    elif isinstance(value, list):
        for position, inner in enumerate(value):
            yield from _nodes(inner, (*steps, position))


def _add(paths: Paths, steps: Steps, found: PathStatistics) -> None:
    """Add the statistics of a place to its paths: by position, and together with the other elements."""
    for path in {stored_path(placed_steps(steps, placed)) for placed in range(PLACED + 1)}:
        paths.setdefault(path, PathStatistics()).add(found)
