"""Chooses the statistics to keep longest: those named by a table property or used by recent filters.

Recent filters are those of this process.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Sequence

from tamis.core.expr.json_codec.json_path import Steps, steps_of, stored, text_of
from tamis.core.stats.json_paths.path_collector import collects
from tamis.core.types import Array, Map, Schema
from tamis.core.types.identifiers import split_path
from tamis.errors import TamisError

Place = tuple[int, str]
"""A column id, and the path in its documents ($ for the column itself)."""

MOST_PLACES = 64
MOST_TABLES = 256
_RECENT: OrderedDict[str, OrderedDict[Place, None]] = OrderedDict()


def used(url: str, places: Iterable[tuple[int, Steps]]) -> None:
    """Record that a filter on the table at ``url`` used these places; bounded and per process."""
    mine = _RECENT.setdefault(url, OrderedDict())
    _RECENT.move_to_end(url)
    for identifier, steps in places:
        place = (identifier, stored(steps))
        mine[place] = None
        mine.move_to_end(place)
        if len(mine) > MOST_PLACES:
            mine.popitem(last=False)
    if len(_RECENT) > MOST_TABLES:
        _RECENT.popitem(last=False)


def recent(url: str) -> tuple[Place, ...]:
    """Return the places used by recent filters on the table, in this process."""
    return tuple(_RECENT.get(url, ()))


def unfit(names: Sequence[str], schemas: Sequence[Schema]) -> str | None:
    """Return the first name that matches nothing in any of the schemas, or None.

    Paths inside documents are not checked, because they are unknown before documents are written.
    """
    return next((name for name in names if not any(_steps_named(name, schema) for schema in schemas)), None)


def named(names: Sequence[str], schema: Schema) -> tuple[Place, ...]:
    """Resolve names given by users: ``user``, ``address.city``, ``body.user.id`` or ``body:user.id``.

    The last two are paths in documents. Names that match nothing are ignored: they may match a later schema.
    """
    return tuple(place for name in names if (place := _named(name, schema)) is not None)


def paths_named(names: Sequence[str], schema: Schema) -> tuple[Place, ...]:
    """Resolve names as ``named`` does, with list positions in each path, as ``text_of`` writes it."""
    found = (_steps_named(name, schema) for name in names)
    said = ((place[0], text_of(place[1])) for place in found if place is not None)
    return tuple((column, path) for column, path in said if path is not None)


def _named(name: str, schema: Schema) -> Place | None:
    found = _steps_named(name, schema)
    return None if found is None else (found[0], stored(found[1]))


def _steps_named(name: str, schema: Schema) -> tuple[int, Steps] | None:
    column, _, inner = name.partition(":")
    parts = split_path(column)
    for path, rest in [*((parts[:n], parts[n:]) for n in range(len(parts), 0, -1)), ((column,), ())]:
        try:
            found = schema.find(path)[-1]
        except TamisError:
            continue
        below = ".".join([*rest, *([inner] if inner else [])])
        if below and not (collects(found.type) or isinstance(found.type, Array | Map)):
            return None
        steps = steps_of(f"$.{below}" if below and not below.startswith("[") else f"${below}")
        return None if steps is None else (found.id, steps)
    return None
