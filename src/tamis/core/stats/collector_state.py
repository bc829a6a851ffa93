"""The state of a collector that stopped collecting."""

from __future__ import annotations

from enum import Enum


class GaveUp(Enum):
    """The complete state of a collector that gave up.

    A collector holds its findings or ``GAVE_UP``, never both, so that partial findings cannot be taken for a
    complete answer.
    """

    GAVE_UP = "gave up"


GAVE_UP = GaveUp.GAVE_UP
