"""Hooks into the requests that this process makes of any store."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tamis.storage.object_store import Store

BeforeRequest = Callable[[int, str, str], None]
"""Takes the number of a request, from zero, its action and its path. What it raises, the request raises."""


@contextmanager
def hooked_requests(monkeypatch: pytest.MonkeyPatch, before: BeforeRequest) -> Iterator[list[int]]:
    """Call ``before`` ahead of each request. Yields a list with one number, that of the requests so far."""
    plain, count = Store._run, [0]

    def run(self: Store, action: str, path: str, call: Any, *, create: bool = False) -> Any:
        number = count[0]
        count[0] += 1
        before(number, action, path)
        return plain(self, action, path, call, create=create)

    with monkeypatch.context() as patched:
        patched.setattr(Store, "_run", run)
        yield count


def failing_from(at: int, error: Callable[[str], BaseException]) -> BeforeRequest:
    """Raise ``error`` of the path in request ``at`` and all after it."""

    def before(number: int, _: str, path: str) -> None:
        if number >= at:
            raise error(path)

    return before


def failing_from_write(at: int, error: Callable[[str], BaseException]) -> BeforeRequest:
    """Raise ``error`` of the path in the write or delete number ``at``, from zero, and all requests after it."""
    writes = [0]

    def before(_: int, action: str, path: str) -> None:
        writes[0] += action in {"write", "delete"}
        if writes[0] > at:
            raise error(path)

    return before


def failing_between(start: int, end: int, error: Callable[[str], BaseException]) -> BeforeRequest:
    """Raise ``error`` of the path in the requests from ``start`` to before ``end``."""

    def before(number: int, _: str, path: str) -> None:
        if start <= number < end:
            raise error(path)

    return before
