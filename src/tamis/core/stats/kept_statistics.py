"""Which statistics are kept longest: those that a table's property names, and those that filters of this process asked for of late."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Sequence

from tamis.core.expr.json_codec.json_path import Steps, steps_of, stored, text_of
from tamis.core.stats.json_paths.path_collector import collects
from tamis.core.types import Array, Map, Schema
from tamis.core.types.schema import split
from tamis.errors import TamisError

Place = tuple[int, str]
"""A column id, and the path in its documents ($ for the column itself)."""

MOST_PLACES = 64
MOST_TABLES = 256
_RECENT: OrderedDict[str, OrderedDict[Place, None]] = OrderedDict()


def used(url: str, places: Iterable[tuple[int, Steps]]) -> None:
    """Remember that a filter over the table at ``url`` asked for these. A memory of this process only, and a small one."""
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
    """What filters over the table asked for of late, in this process."""
    return tuple(_RECENT.get(url, ()))


def unfit(names: Sequence[str], schemas: Sequence[Schema]) -> str | None:
    """The first name that means nothing under any of the schemas: a misspelt one. What lies in a document is not known before it is there."""
    return next((name for name in names if not any(_steps_named(name, schema) for schema in schemas)), None)


def named(names: Sequence[str], schema: Schema) -> tuple[Place, ...]:
    """The places that people name: ``user``, ``address.city``, ``body.user.id`` or ``body:user.id`` in a document. A name that fits nothing is passed over: it may fit a later schema."""
    return tuple(place for name in names if (place := _named(name, schema)) is not None)


def paths_named(names: Sequence[str], schema: Schema) -> tuple[Place, ...]:
    """As ``named``, each path with the positions that it says, as ``text_of`` writes it."""
    found = (_steps_named(name, schema) for name in names)
    said = ((place[0], text_of(place[1])) for place in found if place is not None)
    return tuple((column, path) for column, path in said if path is not None)


def _named(name: str, schema: Schema) -> Place | None:
    found = _steps_named(name, schema)
    return None if found is None else (found[0], stored(found[1]))


def _steps_named(name: str, schema: Schema) -> tuple[int, Steps] | None:
    column, _, inner = name.partition(":")
    parts = split(column)
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
