"""Local times near the ends of 64 bits, where a zone's offset may lead beyond: Java does not wrap there, NumPy does.

The calendar repeats after whole cycles of 400 years, and so do a zone's offsets this far from the epoch. So far times
are computed some cycles nearer to it, where nothing wraps, and the cycles are added again at the end.
"""

from __future__ import annotations

import numpy as np

from tamis.core.expr.arrow_values import Mask, Numbers
from tamis.core.expr.time_zones import CALENDAR_CYCLE, DAY, Zone

_FAR = 2.0**62
_AWAY = 100 * CALENDAR_CYCLE


def cycles_away(times: Numbers) -> Numbers:
    """Return the whole cycles, in microseconds, by which far times come near enough when they are subtracted.

    ``times`` are floats where they may be beyond 64 bits.
    """
    if not _any_far(times):
        return np.zeros((), np.int64)
    return np.where(times > _FAR, _AWAY, np.where(times < -_FAR, -_AWAY, 0))


def near_local(z: Zone, instants: Numbers) -> tuple[Numbers, Numbers]:
    """Return local times, far ones some cycles nearer to the epoch, and these cycles in days; neither wraps."""
    away = cycles_away(instants)
    return z.local(instants - away if away.ndim else instants), away // DAY


def local_days(z: Zone, instants: Numbers) -> Numbers:
    """Return the local days since the epoch."""
    local, away = near_local(z, instants)
    return local // DAY + away if np.ndim(away) else local // DAY


def local_parts(z: Zone, instants: Numbers) -> tuple[Numbers, Numbers]:
    """Return the local days since the epoch and the microseconds since local midnight."""
    local, away = near_local(z, instants)
    days = local // DAY
    return days + away, local - days * DAY


def has_wrapped(found: Numbers, expected: Numbers) -> Mask:
    """Return where a result in 64 bits has wrapped. ``expected`` may differ by years from what is right."""
    if not _any_far(expected):
        return np.zeros((), bool)
    return np.asarray(np.abs(found.astype(np.float64) - expected) > _FAR)


def _any_far(times: Numbers) -> bool:
    return bool(np.size(times) and (np.min(times) < -_FAR or np.max(times) > _FAR))
