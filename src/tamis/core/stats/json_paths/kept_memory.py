"""Keeps the memory of freed arrays in the process, for the arrays of the next documents."""

from __future__ import annotations

from functools import cache

import numpy as np

_LARGEST = 2**24


@cache
def keep_freed_memory() -> None:
    """Have the C library keep freed arrays of up to 16 MiB.

    glibc gives arrays from 128 KiB on back to the system, until a larger one has been freed: from then on it keeps what
    is not larger than that. The pages of new arrays cost half of the time of the statistics of documents.
    """
    np.empty(_LARGEST, np.uint8)
