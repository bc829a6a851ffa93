"""Checks that a path stored in metadata stays below the table's root.

The log is not trusted to name only the table's own objects: a path such as ``../other/data/x.parquet`` would
make one table's reader open another table's file.
"""

from __future__ import annotations

import re

from tamis.errors import CorruptData

OUTSIDE = r"(^|/)\.{0,2}(/|$)|[\x00-\x1f\x7f]"
"""Matches a path that is absolute, has an empty, ``.`` or ``..`` component, or contains a control character.

Arrow and Python read this regular expression alike, so it also tests whole columns of paths.
"""

_OUTSIDE = re.compile(OUTSIDE)


def is_inside(path: str) -> bool:
    """Return whether ``path`` names an object below the root that it is relative to."""
    return _OUTSIDE.search(path) is None


def check_inside(path: str, url: str) -> None:
    """Raise ``CorruptData`` (``PATH_OUTSIDE``) if a stored ``path`` leaves the store at ``url``."""
    if not is_inside(path):
        raise CorruptData(
            f"The path {path!r} does not name an object of the store at {url}.",
            code="PATH_OUTSIDE",
            name=path,
            remedy="Do not use this table before you know who wrote its log; restore the log from a backup.",
        )
