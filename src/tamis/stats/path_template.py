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
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from tamis.expr.documents.paths import ELEMENT, Steps, stored
from tamis.stats.path_numbers import numbers, words
from tamis.stats.path_rows import LIST, MAP, STRING, Paths, PathStatistics

_PAD = 24
"""Bytes before and behind the texts, so that a word may be read at every place."""
_LONGEST = 10 * 2**20
_TOKEN = re.compile(rb'"[^"]*"(?P<key> *:)?|[^][{},:" ]+')
Ints = npt.NDArray[np.int64]


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
        odd = np.flatnonzero((inner < ord(" ")) | (inner == ord("\\"))) + _PAD
        if len(odd):
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
        self.texts = [m[0][:1] == b'"' for m in tokens]
        inside = [(m.start() + text, m.end() - text) for m, text in zip(tokens, self.texts, strict=True)]
        starts, ends = [0, *(end for _, end in inside)], [*(start for start, _ in inside), len(data)]
        self.segments = [_segment(data, start, end) for start, end in zip(starts, ends, strict=True)]
        self.quotes = data.count(b'"')
        self.usable = len(tokens) == len(self.steps) > 0 and all(s.quote is not None for s in self.segments[:-1])

    def read(self, block: Block, rows: Ints) -> tuple[Paths, Ints]:
        """Which of ``rows`` are like this one, and their paths."""
        places = block.quotes_of(rows, self.quotes)
        begins, ends, like = self._scalars(block, rows, places)
        plain = [i for i, text in enumerate(self.texts) if not text]
        found = numbers(block.data, np.array([begins[i] for i in plain]), np.array([ends[i] for i in plain])) if plain else None
        if found is not None:
            like &= found.valid.all(axis=0)
        if not like.any():
            return {}, rows[:0]
        paths: Paths = {}
        count = int(like.sum())
        for steps, value in self._nodes:
            if isinstance(value, dict | list):
                _add(paths, steps, PathStatistics(MAP if isinstance(value, dict) else LIST, count, 0))
                if value == []:
                    _add(paths, (*steps, ELEMENT), PathStatistics())
        column = {slot: at for at, slot in enumerate(plain)}
        for i, steps in enumerate(self.steps):
            told = _texts(block.data, begins[i][like], ends[i][like]) if self.texts[i] else found.statistics(column[i], like)  # type: ignore[union-attr]
            _add(paths, steps, told)
        return paths, rows[like]

    def _scalars(self, block: Block, rows: Ints, places: Ints) -> tuple[list[Ints], list[Ints], npt.NDArray[np.bool_]]:
        like = np.ones(len(rows), np.bool_)
        begins, ends = [], []
        before = block.start[rows]
        for i, segment in enumerate(self.segments):
            size = len(segment.data)
            at = block.end[rows] - size if segment.quote is None else places[segment.quote] - segment.back
            like &= at == before if i == 0 else at >= before + (not self.texts[i - 1])
            for part in range(0, size, 8):
                piece = segment.data[part : part + 8]
                mask = np.uint64((1 << 8 * len(piece)) - 1)
                like &= words(block.data, at + part if part < _PAD - 8 else np.minimum(at + part, len(block.data) - 8)) & mask == np.uint64(
                    int.from_bytes(piece, "little")
                )
            if i:
                ends.append(at)
            before = at + size
            begins.append(before)
        like &= before == block.end[rows]
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


def _texts(data: npt.NDArray[np.uint8], begins: Ints, ends: Ints) -> PathStatistics:
    """Of texts at ascending places: every second stretch between the places is one."""
    offsets = np.empty(2 * len(begins), np.int32)
    offsets[::2], offsets[1::2] = begins, ends
    stretches = pa.Array.from_buffers(pa.binary(), len(offsets) - 1, [None, pa.py_buffer(offsets), pa.py_buffer(data)])
    both = pc.min_max(stretches.take(pa.array(np.arange(0, len(offsets) - 1, 2))))
    return PathStatistics(STRING, len(begins), 0, string=(both["min"].as_py().decode(), both["max"].as_py().decode()))
