"""The forms in which Python and the Java sources in ``jvm_bridge/java`` exchange data.

A Py4J call costs more than most of its content, so lists, trees and tasks cross in one text or byte array each.
``tests/spark/test_wire_format.py`` checks both sides against this page.

1. *List*: each item after a NUL, so that the empty text is the empty list (``list_text``, ``list_items``). Java:
   ``Tools.strings``, ``joined``, ``entries`` (key, value, key …) and ``identifier`` (namespace, then name);
   ``Handler.text`` is the same of an identifier that Java passes to a method. ``ScanBuilders.settings``: name, value …
   ``ScanBuilders.Collecting.message``: trees of the filters (form 6), columns (Spark's JSON), number of options, name
   and value of each, settings. Columns that a method returns: their names (``Handler.columns``).
   ``Pushed.orders``: column, direction, null ordering of each order. ``Pushed.aggregation``: number of groups, their
   columns, then function and column ("" for ``count(*)``) of each measure.
2. *Words*: separated by NUL (``words_text``). ``ScanAnswers.estimate``: bytes, rows, and six for each column
   (``scan_estimates``). ``TamisBytes.made``: kind, name, description and value of each metric;
   ``ScanAnswers.install``: the first three. ``Partitions.filters``: filters in prefix order (``parquet_filter``).
   ``JoinPlanning`` asks whether keys are selective with column, the other scan's key and its column, or with the
   column alone; ``RuntimeFiltering`` for a scan that reads by keys with the number of keys, a space and the column.
3. *Packed tasks*, big-endian as Java's ``DataInputStream`` reads them (``JAVA_INT``, ``JAVA_LONGS``).
   ``Partitions.python``: number of tasks; length and bytes of each. ``Partitions.files``: number of tasks; for each the
   number of files; for each file length and bytes of its URL, file size, start and length of the range.
4. *Packed keys*, little-endian as NumPy reads them, in Base64. ``JoinKeys.numbers``: length of the header; the header
   as words (number of other predicates; column, type and count of each predicate); the values as longs.
5. *Lines*: ``Executions.drain`` gives one per scan, of ``EXECUTION_FIELDS`` separated by spaces.
6. *Trees*: JSON, described in ``TreeText.java``, read by ``catalyst``.
7. *Packed texts*: each after its length in UTF-16 units and a colon, so that one may hold any other form
   (``packed_texts``). ``Handler.unpacked``. ``ScanAnswers``: method and answer of each. ``Partitions.apply``: files
   (form 3, in Base64), words with URL and signature of each, schema, hints, and whether page indexes may be trusted.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping

NUL = "\0"
JAVA_INT = struct.Struct(">i")
JAVA_LONGS = struct.Struct(">qqq")
MARK_PREFIX = "tamis.internal."
"""How the names of options begin that our rules give a plan."""
PUSHED_MARK = f"{MARK_PREFIX}under"
"""The option of a relation by which ``Pushed`` tells what is above it."""
STEADY_MARK = f"{MARK_PREFIX}steady"
"""The option of a relation by which ``Pushed`` tells that what is above it depends on the partitions of rows."""
UNREADABLE = "?"
"""What ``ScanBuilders`` sends for filters that Java cannot write as text."""
EXECUTION_FIELDS = ("execution", "key", "rows", "in_plan", "nanos", "millis", "keyed", "begun", "error")
FILTER_WORDS = frozenset({"and", "or", "is_null", "is_not_null", "in", "eq", "lt", "le", "gt", "ge", "starts_with"})
CONSTANT_WORDS = frozenset({"string", "decimal", "long", "integer", "short", "byte", "date", "timestamp"})
"""Operators and types of constants in ``Partitions.filters``."""
NUMBER_WORDS = frozenset({"byte", "short", "integer", "long", "date", "timestamp", "timestamp_ntz"})
"""Types of keys that ``JoinKeys.numbers`` packs."""


def list_text(texts: Iterable[str]) -> str:
    """Return a list in form 1; no item may contain NUL."""
    return "".join(NUL + text for text in texts)


def list_items(text: str | None) -> list[str]:
    """Return the items of a list in form 1; None is empty."""
    return text[1:].split(NUL) if text else []


def words_text(texts: Iterable[str]) -> str:
    """Return words in form 2."""
    return NUL.join(texts)


def packed_texts(texts: Iterable[str]) -> str:
    """Return texts in form 7."""
    return "".join(f"{_units(text)}:{text}" for text in texts)


def packed_pairs(named: Mapping[str, str]) -> str:
    """Return names and values in form 7."""
    return packed_texts(text for pair in named.items() for text in pair)


def _units(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2
