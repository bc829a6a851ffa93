"""Checks a point in a table's history as given by callers: a version or an instant."""

from __future__ import annotations

from typing import Any

from tamis.errors import InvalidInput


def checked_version(version: Any) -> int:
    """Return ``version``. Raises ``InvalidInput`` (``BAD_VERSION``) unless it is a non-negative integer."""
    if isinstance(version, bool) or not isinstance(version, int) or version < 0:
        raise InvalidInput(
            f"{version!r} is not a version.", code="BAD_VERSION", name=str(version), remedy="Versions are 0, 1, 2, …."
        )
    return version


_LONGEST = 19
"""Digits of the largest version."""


def parse_version(text: str) -> int:
    """Parse a version from text; raises as ``checked_version`` does."""
    said = text.strip()
    whole = said.isascii() and said.isdecimal() and len(said) <= _LONGEST
    return checked_version(int(said) if whole else text)


def check_single_point(version: Any, timestamp: Any) -> None:
    """Raise ``InvalidInput`` (``TWO_VERSIONS``) if both are given."""
    if version is not None and timestamp is not None:
        raise InvalidInput(
            "Both a version and a timestamp are given.",
            code="TWO_VERSIONS",
            name=f"{version}, {timestamp}",
            remedy="Give one of them.",
        )
