"""Chooses the statistics to keep longest: those named by a table property or used by recent filters.

Recent filters are those of this process.
"""

from __future__ import annotations

import re
import threading
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress

from tamis.core.expr.json_codec.json_path import (
    ELEMENT,
    PLACED,
    POSITIONS,
    Steps,
    placed_steps,
    steps_of,
    stored_path,
    text_of,
)
from tamis.core.stats.json_paths.path_collector import collects_paths
from tamis.core.stats.json_paths.text_paths import DEEPEST, LONGEST_KEY
from tamis.core.types import Array, Field, Map, Schema
from tamis.core.types.identifiers import BACKQUOTED, dotted_path, split_path
from tamis.errors import TamisError

Place = tuple[int, str]
"""A column id, and the path in its documents ($ for the column itself)."""

_COLUMN = re.compile(rf"(?:{BACKQUOTED}|[^:])*")
"""The columns of a name, up to the colon before a path in documents."""

MOST_PLACES = 64
MOST_TABLES = 256
_RECENT: OrderedDict[str, OrderedDict[Place, None]] = OrderedDict()
_recent_lock = threading.RLock()


def record_used_places(url: str, places: Iterable[tuple[int, Steps]]) -> None:
    """Record that a filter on the table at ``url`` used these places; bounded and per process."""
    used = [(identifier, stored_path(steps)) for identifier, steps in places]
    with _recent_lock:
        mine = _RECENT.setdefault(url, OrderedDict())
        _RECENT.move_to_end(url)
        for place in used:
            mine[place] = None
            mine.move_to_end(place)
            if len(mine) > MOST_PLACES:
                mine.popitem(last=False)
        if len(_RECENT) > MOST_TABLES:
            _RECENT.popitem(last=False)


def recent_places(url: str) -> tuple[Place, ...]:
    """Return the places used by recent filters on the table, in this process."""
    with _recent_lock:
        return tuple(_RECENT.get(url, ()))


def unfit_name(names: Sequence[str], schemas: Sequence[Schema]) -> tuple[str, str | None] | None:
    """Return the first name that cannot be kept under any of the schemas, and why; None if there is none.

    The reason is None if no schema has such a column. Whether documents have a path is not checked, because that is
    unknown before they are written.
    """
    for name in names:
        found = [_steps_named(name, schema) for schema in schemas]
        places = [place for place in found if place is not None]
        if not places:
            return name, None
        reasons = [_not_collected(*place) for place in places]
        if None not in reasons:
            return name, reasons[-1]
    return None


def resolve_names(names: Sequence[str], schema: Schema) -> tuple[Place, ...]:
    """Resolve names given by users: ``user``, ``address.city``, ``body.user.id`` or ``body:user.id``.

    The last two are paths in documents. A column with fields, elements, keys or values stands for all of them, too.
    Names that match nothing are ignored: they may match a later schema.
    """
    found = (_steps_named(name, schema) for name in names)
    return tuple(dict.fromkeys(one for place in found if place is not None for one in _places(*place)))


def _places(path: Sequence[Field], steps: Steps) -> Iterator[Place]:
    column = path[-1]
    yield column.id, stored_path(steps)
    if not steps:
        for child in column.type.children:
            yield from _places((*path, child), ())


def _not_collected(path: Sequence[Field], steps: Steps) -> str | None:
    """Return why a path below a column has no statistics of its own, or None."""
    if not steps:
        return None
    if not collects_paths(path[-1].type) or any(isinstance(above.type, Array | Map) for above in path[:-1]):
        return "only documents outside of arrays and maps have paths; name the column, which keeps what is below it"
    if len(steps) > DEEPEST:
        return f"paths of more than {DEEPEST} steps have no statistics; name one of its first {DEEPEST}"
    if any(isinstance(step, str) and len(step) > LONGEST_KEY for step in steps):
        return f"keys of more than {LONGEST_KEY} characters have no statistics; name the path above"
    if ELEMENT in placed_steps(steps):
        return (
            f"a path has statistics of at most {PLACED} positions, from [0] to [{POSITIONS - 1}]; "
            "name the list, which keeps those of all its elements"
        )
    return None


def resolve_paths(names: Sequence[str], schema: Schema) -> tuple[Place, ...]:
    """Resolve names of paths as ``resolve_names`` does, with list positions in each path, as ``text_of`` writes it."""
    found = (_steps_named(name, schema) for name in names)
    said = ((place[0][-1].id, text_of(place[1])) for place in found if place is not None)
    return tuple((column, path) for column, path in said if path is not None)


def renamed_place(name: str, before: Schema, after: Schema) -> str | None:
    """Return the name under ``after`` of the place that ``name`` has under ``before``.

    None if its column was dropped. A name that matches nothing under ``before`` is returned as it is.
    """
    found = _column_and_rest(name, before)
    if found is None:
        return name
    path, rest, inner = found
    ids = tuple(field.id for field in path)
    if after.paths.get(ids[-1]) != ids:
        return None
    names = [after.by_id[i].name for i in ids]
    if names == [field.name for field in path]:
        return name
    return dotted_path([*names, *rest], marks=".,:`") + (f":{inner}" if inner else "")


def _column_and_rest(name: str, schema: Schema) -> tuple[Sequence[Field], tuple[str, ...], str] | None:
    """Return the fields down to the column that ``name`` begins with, the parts after it, and what follows a colon."""
    column = _COLUMN.match(name)
    assert column is not None  # it matches any text
    parts, inner = split_path(column[0]), name[column.end() + 1 :]
    for path, rest in [*((parts[:n], parts[n:]) for n in range(len(parts), 0, -1)), ((column[0],), ())]:
        with suppress(TamisError):
            return schema.find(path), rest, inner
    return None


def _steps_named(name: str, schema: Schema) -> tuple[Sequence[Field], Steps] | None:
    """Return the column that ``name`` begins with, and the path below it."""
    known = _column_and_rest(name, schema)
    if known is None:
        return None
    found, rest, inner = known
    below = ".".join([*rest, *([inner] if inner else [])])
    if below and not (collects_paths(found[-1].type) or isinstance(found[-1].type, Array | Map)):
        return None
    steps = steps_of(f"$.{below}" if below and not below.startswith("[") else f"${below}")
    return None if steps is None else (found, steps)
