"""Collects the paths of JSON text: a block is parsed by one call and walked path by path.

Invariant: statistics of a path hold for every way in which Spark reads these documents (GET_JSON_OBJECT,
FROM_JSON, PARSE_JSON). Documents that these read differently (duplicate keys, single quotes, text after the
end, unpaired surrogates, numbers beyond double) are STRANGE: one of them in a part makes all its paths
unknown.
"""

from __future__ import annotations

import contextlib
import json
from itertools import chain
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from tamis.core.expr.json_codec.jackson_reader import STRICT, Malformed, plain_document
from tamis.core.expr.json_codec.json_path import ELEMENT, Steps, stored
from tamis.core.stats.json_paths.path_rows import (
    FALSE,
    HI_EXACT,
    INCOMPLETE,
    INVALID,
    LIST,
    LO_EXACT,
    LONG,
    MAP,
    REAL,
    ROOT,
    STRANGE,
    STRING,
    TRUE,
    Paths,
    PathStatistics,
    combined,
)
from tamis.sizes import SIZES
from tamis.world import new_id

MOST_PATHS = SIZES.document_paths
DEEPEST = 12
SAMPLE = SIZES.document_sample
AT_ONCE = SIZES.document_batch
"""Documents parsed together, few enough to stay in the processor's cache (measured)."""
_LONG_DOCUMENT = 1000
"""Bytes from which a document may exceed one of Jackson's limits."""
DECODER = json.JSONDecoder(parse_constant=STRICT.parse_constant)
"""Does not detect duplicate keys, which are found by counting (see ``_Walk``)."""
_INT64 = range(-(2**63), 2**63)


class Strange(ValueError):
    """A document without usable paths."""


def looks_like_objects(texts: pa.Array) -> bool:
    """Return whether a sample of the strings parses as objects, so that paths are collected."""
    present = texts.drop_null()
    if not len(present):
        return False
    step = max(1, len(present) // SAMPLE)
    sample = present.take(pa.array(range(0, len(present), step)[:SAMPLE]))
    objects = 0
    for data in sample.cast(pa.binary()).to_pylist():
        if data[:64].lstrip()[:1] == b"{":
            with contextlib.suppress(Malformed, UnicodeDecodeError):
                objects += isinstance(plain_document(data.decode()), dict)
    return 10 * objects >= 9 * len(sample)


def paths_of(texts: pa.Array) -> Paths:
    """Return the paths of documents.

    One strange document makes the root STRANGE, and no other path is given.
    """
    found: Paths = {}
    for start in range(0, len(texts) or 1, AT_ONCE):
        now = _paths_of(texts.slice(start, AT_ONCE))
        if now[ROOT].kinds & STRANGE:
            return now
        found = combined(found, now) if found else now
    return found


def _paths_of(texts: pa.Array) -> Paths:
    try:
        documents, invalid, colons = _documents(texts.drop_null())
        walk = _Walk(_long_numbers(texts))
        found = walk.of(documents, invalid)
        same = walk.colons == colons  # also false if there were too many paths to walk
    except (Strange, Malformed, RecursionError, ValueError, ArithmeticError):  # ArithmeticError: integers beyond double
        return nothing()
    return found if same else nothing()


def nothing() -> Paths:
    return {ROOT: PathStatistics(STRANGE | INCOMPLETE, 0, None)}


def _documents(texts: pa.Array) -> tuple[list[Any], int, int]:
    """Return the parsed documents, the number of invalid texts, and the colons after keys and in strings.

    Raises ``Strange``, ``Malformed`` or ``ValueError``.
    """
    if not len(texts):
        return [], 0, 0
    texts.validate(full=True)
    if pc.max(pc.binary_length(texts)).as_py() > _LONG_DOCUMENT and _beyond(texts):
        raise Strange
    opened = pc.match_substring_regex(texts, r"^[ \t\r\n]*[\[{]")
    invalid = 0
    rest: list[Any] = []
    if not pc.all(opened).as_py():
        for text in texts.filter(pc.invert(opened)).to_pylist():
            try:
                rest.append(plain_document(text))
            except Malformed:
                invalid += 1
        texts = texts.filter(opened)
    if pc.any(pc.match_substring(texts, "\\u003a", ignore_case=True)).as_py():
        raise Strange  # an escaped colon, which cannot be counted
    colons = pc.sum(pc.count_substring(texts, ":")).as_py() or 0
    colons += sum(document.count(":") for document in rest if isinstance(document, str))  # the walk counts these too
    return [*_parsed(texts.to_pylist()), *rest], invalid, colons


def _parsed(texts: list[str]) -> list[Any]:
    """Parse all texts by one call.

    They are separated by a word that occurs in none of them, so that no text can close what another opened.
    """
    if not texts:
        return []
    word = new_id()
    found = DECODER.decode("[" + f',"{word}",'.join(texts) + "]")
    if len(found) != 2 * len(texts) - 1 or any(item != word for item in found[1::2]):
        raise Strange
    return found[::2]  # type: ignore[no-any-return]


def _beyond(texts: pa.Array) -> bool:
    """Return whether a document may exceed one of Jackson's limits on numbers, keys or depth."""
    long = texts.filter(pc.greater(pc.binary_length(texts), _LONG_DOCUMENT))
    deep = pc.add(pc.count_substring(long, "["), pc.count_substring(long, "{"))
    numbers = pc.match_substring_regex(long, "[0-9.eE+-]{1000}")
    return bool(
        pc.max(deep).as_py() >= 1000 or pc.any(numbers).as_py() or pc.max(pc.binary_length(long)).as_py() > 10 * 2**20
    )


def _long_numbers(texts: pa.Array) -> bool:
    """Return whether some number may have more than 15 digits.

    The shortest text of its double may then be another number.
    """
    return bool(pc.any(pc.match_substring_regex(texts, "[0-9][0-9.]{16}")).as_py())


class _Walk:
    """Walks parsed documents path by path.

    ``colons`` counts those found in strings or after keys; fewer than in the text mean a duplicate key.
    """

    def __init__(self, long_numbers: bool) -> None:
        self._exact = 0 if long_numbers else LO_EXACT | HI_EXACT
        self._found: Paths = {}
        self.colons = 0

    def of(self, documents: list[Any], invalid: int) -> Paths:
        self._walk(documents, ())
        if invalid:
            self._found[ROOT].kinds |= INVALID
        return self._found

    def _walk(self, values: list[Any], steps: Steps) -> None:
        here = self._found[stored(steps)] = PathStatistics()
        kinds = set(map(type, values))
        for kind in kinds:
            mine = values if len(kinds) == 1 else [v for v in values if type(v) is kind]
            if kind is type(None):
                here.nulls = len(mine)
            else:
                here.present += len(mine)
                _SAY[kind](self, here, mine, steps)

    def _booleans(self, here: PathStatistics, values: list[bool], steps: Steps) -> None:  # noqa: ARG002
        here.kinds |= (TRUE if True in values else 0) | (FALSE if False in values else 0)

    def _integers(self, here: PathStatistics, values: list[int], steps: Steps) -> None:
        low, high = min(values), max(values)
        if low in _INT64 and high in _INT64:
            here.kinds |= LONG
            here.long = (low, high)
            return
        small = [v for v in values if v in _INT64]
        if small:
            self._integers(here, small, steps)
        self._add_real(here, [float(v) for v in values if v not in _INT64], exact=0)

    def _reals(self, here: PathStatistics, values: list[float], steps: Steps) -> None:  # noqa: ARG002
        self._add_real(here, values, self._exact)

    def _add_real(self, here: PathStatistics, values: list[float], exact: int) -> None:
        found = PathStatistics(REAL | exact, 0, 0, real=(min(values), max(values)))
        if max(values) == float("inf") or min(values) == float("-inf"):
            raise Strange
        here.add(found)

    def _strings(self, here: PathStatistics, values: list[str], steps: Steps) -> None:  # noqa: ARG002
        low, high = min(values), max(values)
        joined = "".join(values)
        self.colons += joined.count(":")
        joined.encode()  # unpaired surrogates raise ``UnicodeEncodeError``, a ``ValueError``
        here.kinds |= STRING
        here.string = (low, high)

    def _lists(self, here: PathStatistics, values: list[list[Any]], steps: Steps) -> None:
        here.kinds |= LIST
        if self._room(here, steps):
            items = list(chain.from_iterable(values))
            self._walk(items, (*steps, ELEMENT))

    def _maps(self, here: PathStatistics, values: list[dict[str, Any]], steps: Steps) -> None:
        here.kinds |= MAP
        keys = values[0].keys() if len(values) == 1 else set().union(*values)
        for key in keys:
            if not self._room(here, steps) or len(key) > _LONG_DOCUMENT:
                here.kinds |= INCOMPLETE
                return
            inner = [v[key] for v in values if key in v]
            self.colons += (1 + key.count(":")) * len(inner)
            self._walk(inner, (*steps, key))

    def _room(self, here: PathStatistics, steps: Steps) -> bool:
        if len(steps) < DEEPEST and len(self._found) < MOST_PATHS:
            return True
        here.kinds |= INCOMPLETE
        return False


_SAY: dict[type, Any] = {
    bool: _Walk._booleans,
    int: _Walk._integers,
    float: _Walk._reals,
    str: _Walk._strings,
    list: _Walk._lists,
    dict: _Walk._maps,
}
