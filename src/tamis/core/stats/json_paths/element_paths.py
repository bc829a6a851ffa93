"""The paths of a list's elements: of each of its first positions, and of all elements together.

Invariant: the row ``[*]`` admits the elements of all positions, so that it is true of a position without a row.
No positions are distinguished below ``[*]``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

from tamis.core.expr.json_codec.json_path import ELEMENT, Steps, stored_path
from tamis.core.stats.json_paths.path_rows import Paths, combine_paths, list_of_position

Values = TypeVar("Values")


def paths_of_elements(
    steps: Steps, groups: Iterable[tuple[int, Values]], walk: Callable[[Values, Steps], Paths]
) -> Paths:
    """Return the paths below the list at ``steps``, whose elements ``groups`` has by position.

    The group of all other elements comes last, as ``ELEMENT``. ``walk`` returns the paths of one group.
    """
    placed, together = Paths(), Paths()
    anywhere = stored_path((*steps, ELEMENT))
    for position, values in groups:
        found = walk(values, (*steps, position))
        if position != ELEMENT:
            placed |= found
            found = _moved(found, stored_path((*steps, position)), anywhere)
        together = combine_paths(together, found) if together else found
    return placed | together


def _moved(paths: Paths, at: str, to: str) -> Paths:
    """Return the paths at and below ``at`` as paths at and below ``to``, without positions further below."""
    above = at[: -len("[0]")]
    return {to + path[len(at) :]: found for path, found in paths.items() if list_of_position(path) == above}
