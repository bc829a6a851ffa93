"""Fast paths of JSON text: documents that differ from one of them in their scalars only are read together, by whole-array operations on their bytes.

Law: what is said here of a document is what ``path_text`` would say of it. A document is taken only where its bytes are proved to be those of the template, each scalar replaced by another
scalar: then its keys, their number and their order are the template's, which ``path_text`` has judged. All else is handed back: a backslash, a control character, numbers of an exponent or of many digits.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from tamis.expr.documents.paths import ELEMENT, Steps, stored
from tamis.stats.path_numbers import Flags, Ints, numbers, words
from tamis.stats.path_rows import LIST, MAP, Paths, PathStatistics
from tamis.stats.path_strings import texts

_PAD = 24
"""Bytes before and behind the texts, so that a word may be read at every place."""
_LONGEST = 10 * 2**20
_TOKEN = re.compile(rb'"[^"]*"(?P<key> *:)?|[^][{},:" ]+')


@dataclass(frozen=True)
class _Segment:
    """Bytes that all documents share. They lie ``back`` bytes before quote number ``quote``; without a quote, at the end of the document."""

    data: bytes
    quote: int | None
    back: int


class Block:
    """The bytes of texts without NULLs, their quotes, and which of them may be read here at all."""

    def __init__(self, texts: pa.Array) -> None:
        offsets = np.frombuffer(texts.buffers()[1], "<i4" if texts.type == pa.string() else "<i8")[texts.offset : texts.offset + len(texts) + 1].astype(np.int64)  # fmt: skip
        self.data = np.zeros(int(offsets[-1] - offsets[0]) + 2 * _PAD, np.uint8)
        if len(self.data) > 2 * _PAD:
            self.data[_PAD:-_PAD] = np.frombuffer(texts.buffers()[2], np.uint8)[offsets[0] : offsets[-1]]
        bounds = offsets - offsets[0] + _PAD
        self.start, self.end = bounds[:-1], bounds[1:]
        self.quotes = np.flatnonzero(self.data == ord('"'))
        self.first = np.searchsorted(self.quotes, bounds)
        self.count = np.diff(self.first)
        self.usable = (self.end - self.start < _LONGEST) & (self.count > 0)
        inner = self.data[_PAD:-_PAD]
        slashes = inner == ord("\\")
        if len(inner) and (inner.min() < ord(" ") or slashes.any()):
            odd = np.flatnonzero((inner < ord(" ")) | slashes) + _PAD
            self.usable[np.searchsorted(bounds, odd, side="right") - 1] = False

    def quotes_of(self, rows: Ints, count: int) -> Ints:
        """The places of the quotes of ``rows``, of which each has ``count``: an array for each quote."""
        if len(rows) * count == len(self.quotes):
            return np.ascontiguousarray(self.quotes.reshape(-1, count).T)
        found: Ints = self.quotes[self.first[rows] + np.arange(count)[:, None]]
        return found


class Template:
    """One document, taken apart into segments and scalars. ``usable`` where each scalar's place follows from the quotes."""

    def __init__(self, data: bytes, document: Any) -> None:
        self._nodes = list(_nodes(document, ()))
        self.steps = [steps for steps, value in self._nodes if not isinstance(value, dict | list)]
        tokens = [m for m in _TOKEN.finditer(data) if m["key"] is None]
        self.examples = [m[0] for m in tokens]
        self.texts = [example[:1] == b'"' for example in self.examples]
        inside = [(m.start() + text, m.end() - text) for m, text in zip(tokens, self.texts, strict=True)]
        starts, ends = [0, *(end for _, end in inside)], [*(start for start, _ in inside), len(data)]
        self.segments = [_segment(data, start, end) for start, end in zip(starts, ends, strict=True)]
        self.quotes = data.count(b'"')
        self.usable = len(tokens) == len(self.steps) > 0 and all(s.quote is not None for s in self.segments[:-1])

    def read(self, block: Block, rows: Ints) -> tuple[Paths, Flags]:
        """Which of ``rows`` are like this one, and their paths."""
        begins, ends, like = self._scalars(block, rows, block.quotes_of(rows, self.quotes))
        if not like.any():
            return {}, like
        if not like.all():
            begins, ends = [b[like] for b in begins], [e[like] for e in ends]
        plain = {i: numbers(block.data, begins[i], ends[i], self.examples[i]) for i, text in enumerate(self.texts) if not text}
        valid: Flags = np.logical_and.reduce([found.valid for found in plain.values()]) if plain else np.ones(len(begins[0]), np.bool_)
        if not valid.all():
            like[like] = valid
            if not valid.any():
                return {}, like
            begins, ends = [b[valid] for b in begins], [e[valid] for e in ends]
            plain = {i: found.take(valid) for i, found in plain.items()}
        paths: Paths = {}
        for steps, value in self._nodes:
            if isinstance(value, dict | list):
                _add(paths, steps, PathStatistics(MAP if isinstance(value, dict) else LIST, len(begins[0]), 0))
                if value == []:
                    _add(paths, (*steps, ELEMENT), PathStatistics())
        for i, steps in enumerate(self.steps):
            _add(paths, steps, plain[i].statistics() if i in plain else texts(block.data, begins[i], ends[i]))
        return paths, like

    def _scalars(self, block: Block, rows: Ints, places: Ints) -> tuple[list[Ints], list[Ints], Flags]:
        like, other = np.ones(len(rows), np.bool_), np.zeros(len(rows), np.uint64)
        begins, ends = [], []
        before = block.start[rows]
        for i, segment in enumerate(self.segments):
            size = len(segment.data)
            at = block.end[rows] - size if segment.quote is None else places[segment.quote] - segment.back
            like &= at == before if i == 0 else at >= before if self.texts[i - 1] else at > before
            for part in range(0, size, 8):
                piece = segment.data[part : part + 8]
                found = words(block.data, np.minimum(at + part, len(block.data) - 8) if part >= _PAD - 8 else at + part if part else at)
                found ^= np.uint64(int.from_bytes(piece, "little"))
                found <<= np.uint64(64 - 8 * len(piece))
                other |= found
            if i:
                ends.append(at)
            before = at + size
            begins.append(before)
        like &= before == block.end[rows]
        like &= other == 0
        return begins[:-1], ends, like


def _segment(data: bytes, start: int, end: int) -> _Segment:
    quote = data.find(b'"', start, end)
    return _Segment(data[start:end], None if quote < 0 else data.count(b'"', 0, quote), quote - start)


def _nodes(value: Any, steps: Steps) -> Iterator[tuple[Steps, Any]]:
    """All values of a document in the order of its text."""
    yield steps, value
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _nodes(inner, (*steps, key))
    elif isinstance(value, list):
        for inner in value:
            yield from _nodes(inner, (*steps, ELEMENT))


def _add(paths: Paths, steps: Steps, found: PathStatistics) -> None:
    paths.setdefault(stored(steps), PathStatistics()).add(found)
