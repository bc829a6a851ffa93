"""Collects the paths of JSON text: a block is parsed by one call and walked path by path.

Invariant: statistics of a path hold for every way in which Spark reads these documents (GET_JSON_OBJECT,
FROM_JSON, PARSE_JSON). Documents that these read differently (single quotes, text after the end, unpaired
surrogates, numbers beyond double) are STRANGE: one of them in a part makes all its paths unknown. Of duplicate
keys the functions choose different ones, or fail: such a key has no row, the object above it is INCOMPLETE, and
the root is INVALID, because PARSE_JSON gives nothing.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cached_property, partial
from itertools import chain
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from tamis.core.expr.json_codec.iso_times import NO_TIMES, looks_like_time, times_of_texts
from tamis.core.expr.json_codec.jackson_reader import LONGEST_NAME, STRICT, Malformed, has_long_name, plain_document
from tamis.core.expr.json_codec.json_path import ELEMENT, Steps, stored_path
from tamis.core.stats.json_paths.element_paths import paths_of_elements
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
    TRIMMED,
    TRUE,
    Paths,
    PathStatistics,
    combine_paths,
)
from tamis.core.stats.json_paths.path_selection import MOST_PATHS, PathSelection
from tamis.sizes import SIZES
from tamis.world import new_id

DEEPEST = 12
_DEEPEST_SKIPPED = 64
AT_ONCE = SIZES.document_batch
"""Documents parsed together, few enough to stay in the processor's cache (measured)."""
FEW = 256
"""Documents up to which a block is judged by Python's functions on texts, which take longer than Arrow's on many."""
_LONG_DOCUMENT = 1000
"""Bytes from which a document may exceed one of Jackson's limits."""
LONGEST_KEY = 1000
"""Characters of the longest key that is walked."""
DECODER = json.JSONDecoder(parse_constant=STRICT.parse_constant)
"""Does not detect duplicate keys, which are found by counting (see ``_Walk``)."""
_INT64 = range(-(2**63), 2**63)
_LONG_NUMBER = re.compile(r"[0-9][0-9.]{16}")
_ESCAPED_COLON = re.compile(r"\\u003a", re.IGNORECASE)
_HUGE = re.compile(r"\d{309}")
"""Matches whole numbers beyond double."""
_MAYBE_STRANGE = r"\\u[dD][89a-fA-F]|[0-9]{309}|[0-9][eE][+]?[0-9]{3}"
"""Matches what half a character, or a number beyond double, may be written as."""


class _Twice(dict[str, Any]):
    """An object without its duplicate keys, which are in ``keys_twice``."""

    keys_twice: frozenset[str]


class _TwiceDecoder(json.JSONDecoder):
    """Detects duplicate keys, which takes several times as long."""

    def __init__(self) -> None:
        super().__init__(object_pairs_hook=self._object, parse_constant=STRICT.parse_constant)
        self.met = False
        """Whether some object had a key twice, at any depth."""

    def _object(self, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        once = dict(pairs)
        if len(once) == len(pairs):
            return once
        self.met = True
        counts = Counter(key for key, _ in pairs)
        out = _Twice((key, value) for key, value in pairs if counts[key] == 1)
        out.keys_twice = frozenset(key for key, count in counts.items() if count > 1)
        return out


class UnusablePaths(ValueError):
    """A document without usable paths."""


def paths_of(texts: pa.Array, selection: PathSelection | None = None) -> Paths:
    """Return the paths of documents that ``selection`` takes.

    One strange document makes the root STRANGE, and no other path is given.
    """
    selection = selection or PathSelection()
    found: Paths = {}
    for start in range(0, len(texts) or 1, AT_ONCE):
        now = _paths_of(texts.slice(start, AT_ONCE), selection)
        if now[ROOT].kinds & STRANGE:
            return now
        found = selection.fold_objects(combine_paths(found, now) if found else now)
    return found


def _paths_of(texts: pa.Array, selection: PathSelection) -> Paths:
    try:
        few = _few_documents(texts.drop_null()) if len(texts) <= FEW else None
        if few is None:
            documents, invalid, colons = _documents(texts.drop_null(), DECODER)
            walk = _Walk(partial(_long_numbers, texts), selection)
        else:
            invalid, (documents, colons, long_numbers) = 0, few
            walk = _Walk(long_numbers, selection)
        found = walk.of(documents, invalid)
        if walk.colons != colons:
            found = _with_keys_twice(texts, selection)
    except (UnusablePaths, Malformed, RecursionError, ValueError, ArithmeticError):
        # ArithmeticError: integers beyond double
        return no_paths()
    return found


def _with_keys_twice(texts: pa.Array, selection: PathSelection) -> Paths:
    """Return the paths of documents some of which may have a key twice. Raises as ``_documents`` does."""
    if pc.any(pc.match_substring_regex(texts, _MAYBE_STRANGE)).as_py():
        raise UnusablePaths  # values that the walk does not see cannot be judged
    brackets = pc.add(pc.count_substring(texts, "["), pc.count_substring(texts, "{"))
    if pc.max(brackets).as_py() > _DEEPEST_SKIPPED:
        raise UnusablePaths
    decoder = _TwiceDecoder()
    documents, invalid, _ = _documents(texts.drop_null(), decoder)
    return _Walk(partial(_long_numbers, texts), selection).of(documents, invalid + decoder.met)


def no_paths() -> Paths:
    return {ROOT: PathStatistics(STRANGE | INCOMPLETE, 0, None)}


def _documents(texts: pa.Array, decoder: json.JSONDecoder) -> tuple[list[Any], int, int]:
    """Return the parsed documents, the number of invalid texts, and the colons after keys and in strings.

    Colons that are escaped cannot be counted: -1.

    Raises ``UnusablePaths``, ``Malformed`` or ``ValueError``.
    """
    if not len(texts):
        return [], 0, 0
    texts.validate(full=True)
    if pc.max(pc.binary_length(texts)).as_py() > _LONG_DOCUMENT and _beyond(texts):
        raise UnusablePaths
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
    escaped = pc.any(pc.match_substring(texts, "\\u003a", ignore_case=True)).as_py()
    colons = pc.sum(pc.count_substring(texts, ":")).as_py() or 0
    colons += sum(document.count(":") for document in rest if isinstance(document, str))  # the walk counts these too
    return [*parsed_documents(texts.to_pylist(), decoder), *rest], invalid, -1 if escaped else colons


def _few_documents(texts: pa.Array) -> tuple[list[Any], int, Callable[[], bool]] | None:
    """Return the documents of texts that are all short objects or lists, the colons in them, and ``_long_numbers``.

    None if some text is anything else.

    Of few texts, Python's functions are done before Arrow's have begun.
    """
    if not len(texts):
        return None
    texts.validate(full=True)
    data = texts.to_pylist()
    joined = "\n".join(data)
    if max(map(len, data)) * (1 if joined.isascii() else 4) > _LONG_DOCUMENT:
        return None
    if "\\" in joined and _ESCAPED_COLON.search(joined):
        return None
    try:
        documents = parsed_documents(data)
    except (Malformed, ValueError, RecursionError):  # which of them are invalid is judged one by one
        return None
    if not set(map(type, documents)) <= {dict, list}:
        return None
    return documents, joined.count(":"), lambda: _LONG_NUMBER.search(joined) is not None


def parsed_documents(texts: list[str], decoder: json.JSONDecoder = DECODER) -> list[Any]:
    """Parse all texts by one call.

    They are separated by a word that occurs in none of them, so that no text can close what another opened.
    """
    if not texts:
        return []
    word = new_id()
    found = decoder.decode("[" + f',"{word}",'.join(texts) + "]")
    if len(found) != 2 * len(texts) - 1 or found[1::2].count(word) != len(texts) - 1:
        raise UnusablePaths
    return found[::2]  # type: ignore[no-any-return]


def _beyond(texts: pa.Array) -> bool:
    """Return whether a document may exceed one of Jackson's limits on numbers, keys or depth."""
    long = texts.filter(pc.greater(pc.binary_length(texts), _LONG_DOCUMENT))
    deep = pc.add(pc.count_substring(long, "["), pc.count_substring(long, "{"))
    numbers = pc.match_substring_regex(long, "[0-9.eE+-]{1000}")
    longest = pc.max(pc.binary_length(long)).as_py()
    if pc.max(deep).as_py() >= 1000 or pc.any(numbers).as_py() or longest > 10 * 2**20:
        return True
    named = long.filter(pc.greater(pc.binary_length(long), LONGEST_NAME)) if longest > LONGEST_NAME else ()
    return any(has_long_name(text.as_py()) for text in named)


def _long_numbers(texts: pa.Array) -> bool:
    """Return whether some number may have more than 15 digits.

    The shortest text of its double may then be another number.
    """
    return bool(pc.any(pc.match_substring_regex(texts, _LONG_NUMBER.pattern)).as_py())


class _Walk:
    """Walks parsed documents path by path.

    ``colons`` counts those found in strings or after keys; fewer than in the text mean a duplicate key.
    ``long_numbers`` is asked where a number with a point occurs, since it searches all texts.
    """

    def __init__(self, long_numbers: Callable[[], bool], selection: PathSelection) -> None:
        self._long_numbers = long_numbers
        self._selection = selection
        self._found: Paths = {}
        self._gone: frozenset[str] = frozenset()
        """Keys that an object among the values at hand has twice; they get no row."""
        self.colons = 0

    @cached_property
    def _exact(self) -> int:
        """The flags of bounds of numbers with a point."""
        return 0 if self._long_numbers() else LO_EXACT | HI_EXACT

    def of(self, documents: list[Any], invalid: int) -> Paths:
        self._walk(documents, ())
        if invalid:
            self._found[ROOT].kinds |= INVALID
        return self._found

    def _walk(self, values: list[Any], steps: Steps) -> None:
        here = self._found[stored_path(steps)] = PathStatistics()
        kinds = set(map(type, values))
        gone: frozenset[str] = frozenset()
        if _Twice in kinds:
            values, gone = _without_keys_twice(values)
            kinds = kinds - {_Twice} | {dict}
            here.kinds |= INCOMPLETE
        for kind in kinds:
            mine = values if len(kinds) == 1 else [v for v in values if type(v) is kind]
            if kind is type(None):
                here.nulls = len(mine)
            else:
                here.present += len(mine)
                self._gone = gone
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
            raise UnusablePaths
        here.add(found)

    def _strings(self, here: PathStatistics, values: list[str], steps: Steps) -> None:  # noqa: ARG002
        low, high = min(values), max(values)
        joined = "".join(values)
        self.colons += joined.count(":")
        joined.encode()  # unpaired surrogates raise ``UnicodeEncodeError``, a ``ValueError``
        here.kinds |= STRING
        here.string = (low, high)
        here.times = times_of_texts(pa.array(values)) if looks_like_time(low) and looks_like_time(high) else NO_TIMES

    def _lists(self, here: PathStatistics, values: list[list[Any]], steps: Steps) -> None:
        here.kinds |= LIST
        if len(steps) >= DEEPEST:
            self._skip(here, values)
        else:
            groups = _by_position(values, self._selection.positions_below(self._found, here, steps))
            self._found |= paths_of_elements(steps, groups, self._apart)

    def _apart(self, values: list[Any], steps: Steps) -> Paths:
        """Return the paths at and below ``steps``, without adding them to the others."""
        others, self._found = self._found, {}
        self._walk(values, steps)
        found, self._found = self._found, others
        return found

    def _maps(self, here: PathStatistics, values: list[dict[str, Any]], steps: Steps) -> None:
        here.kinds |= MAP
        if len(steps) >= DEEPEST:
            self._skip(here, values)
            return
        keys: set[str] = set().union(*values)
        "".join(keys).encode()  # as for strings
        taken = self._taken(keys, values, steps) - self._gone
        if not keys <= taken:
            self._skip(here, [{key: inner for key, inner in v.items() if key not in taken} for v in values])
        for key in sorted(taken):
            below = [v[key] for v in values if key in v]
            self.colons += (1 + key.count(":")) * len(below)
            self._walk(below, (*steps, key))

    def _taken(self, keys: set[str], values: list[dict[str, Any]], steps: Steps) -> set[str]:
        """Return the keys to walk."""
        path = stored_path(steps)
        counts = Counter(chain.from_iterable(values)) if len(keys) > MOST_PATHS else dict.fromkeys(keys, 1)
        taken = self._selection.keys_below(path, counts, len(values))
        return {key for key in (keys if taken is None else taken) if len(key) <= LONGEST_KEY}

    def _skip(self, here: PathStatistics, values: list[Any]) -> None:
        """Leave values out of the statistics, but check them like all others, so that no strange document is missed."""
        here.kinds |= INCOMPLETE | TRIMMED
        text = json.dumps(values, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        text.encode()  # as for strings
        self.colons += text.count(":")
        if _HUGE.search(text) or _deeper_than(_DEEPEST_SKIPPED, values):
            raise UnusablePaths


def _without_keys_twice(values: list[Any]) -> tuple[list[Any], frozenset[str]]:
    """Return the values without the keys that some object among them has twice, and these keys."""
    twice = frozenset[str]().union(*(v.keys_twice for v in values if isinstance(v, _Twice)))
    once = [
        {key: inner for key, inner in value.items() if key not in twice} if isinstance(value, dict) else value
        for value in values
    ]
    return once, twice


def _by_position(lists: list[list[Any]], placed: int) -> Iterator[tuple[int, list[Any]]]:
    """Yield the elements of the first ``placed`` positions that occur, and then all others."""
    for position in range(placed):
        elements = [values[position] for values in lists if len(values) > position]
        if not elements:
            break
        yield position, elements
    rest = [values[placed:] for values in lists if len(values) > placed] if placed else lists
    yield ELEMENT, list(chain.from_iterable(rest))


def _deeper_than(levels: int, values: list[Any]) -> bool:
    """Return whether objects and lists are nested deeper than this, beyond which readers differ."""
    for _ in range(levels):
        values = [
            inner
            for value in values
            if isinstance(value, dict | list)
            for inner in (value.values() if isinstance(value, dict) else value)
        ]
        if not values:
            return False
    return True


_SAY: dict[type, Any] = {
    bool: _Walk._booleans,
    int: _Walk._integers,
    float: _Walk._reals,
    str: _Walk._strings,
    list: _Walk._lists,
    dict: _Walk._maps,
}
