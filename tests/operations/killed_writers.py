"""Writers that die: at a chosen write to a store, and for good."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tamis.storage.object_store import Store


class Killed(BaseException):
    """The process is gone: nothing catches it, and nothing that runs on the way out reaches the store."""


def dying(at: int, count: list[int]) -> Callable[..., Any]:
    """``Store._run`` that dies before its change number ``at``, which is after the one before, and is dead from then on; ``count`` tells how many there were."""
    plain = Store._run

    def run(self: Store, action: str, path: str, call: Any, *, create: bool = False) -> Any:
        if count[0] > at:
            raise Killed
        count[0] += action in {"write", "delete"}
        if count[0] > at:
            raise Killed
        return plain(self, action, path, call, create=create)

    return run
