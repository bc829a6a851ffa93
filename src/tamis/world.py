"""The only module that reads the clock, the environment and randomness.

Tests and simulations replace the world (see ``use``). All other code uses this module; a lint rule bans the
usual sources (``time.time``, ``datetime.now``, ``uuid``, ``random``, ``os.environ``) elsewhere.
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager


class World:
    """The real clock, randomness and environment."""

    def now_micros(self) -> int:
        """Return microseconds since the Unix epoch, UTC."""
        return time.time_ns() // 1_000

    def monotonic(self) -> float:
        """Return seconds on a clock that never goes back; only differences are meaningful."""
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)

    def random_bytes(self, count: int) -> bytes:
        return os.urandom(count)

    def uniform(self, low: float, high: float) -> float:
        return random.uniform(low, high)

    def environment(self) -> Mapping[str, str]:
        return os.environ


class SeededWorld(World):
    """A replayable world: the same seed gives the same ids, waits and times.

    Sleeping only advances its clock.
    """

    def __init__(self, seed: int, start_micros: int = 1_700_000_000_000_000) -> None:
        self._random = random.Random(seed)
        self._micros = start_micros

    def now_micros(self) -> int:
        self._micros += 1
        return self._micros

    def monotonic(self) -> float:
        return self._micros / 1e6

    def sleep(self, seconds: float) -> None:
        self._micros += int(seconds * 1e6)

    def random_bytes(self, count: int) -> bytes:
        return self._random.randbytes(count)

    def uniform(self, low: float, high: float) -> float:
        return self._random.uniform(low, high)


_world: World = World()


def world() -> World:
    """Return the current world."""
    return _world


@contextmanager
def use(replacement: World) -> Iterator[World]:
    """Replace the world for the duration of a test or simulation."""
    global _world
    before, _world = _world, replacement
    try:
        yield replacement
    finally:
        _world = before


def new_id() -> str:
    """Return a unique identifier: 32 hexadecimal digits that rise with time (like UUID version 7)."""
    millis = _world.now_micros() // 1_000
    return f"{millis & (2**48 - 1):012x}{_world.random_bytes(10).hex()}"


def made_micros(identifier: str) -> int:
    """Return when an identifier was created, in microseconds since the epoch, rounded down to a millisecond.

    For a foreign identifier, return 2**63, so that it never counts as old.
    """
    try:
        return int(identifier[:12], 16) * 1_000 if len(identifier) == 32 else 2**63
    except ValueError:
        return 2**63
