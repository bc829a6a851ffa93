"""What a Python worker of Spark does before each task of Tamis, so that nothing delays the task."""

from __future__ import annotations

import gc
import socket
from functools import lru_cache
from pathlib import Path

_OPEN_FILES = Path("/proc/self/fd")


def prepare_worker() -> None:
    """Prepare the process for its next task. Call it before the task's input is read."""
    _freeze_imports()
    acknowledge_at_once()


@lru_cache(maxsize=1)  # gc.get_freeze_count would tell, but takes 10 ms to count
def _freeze_imports() -> None:
    """Spark's worker collects garbage after each task, which takes 30 ms if it visits what is imported."""
    gc.freeze()


def acknowledge_at_once() -> None:
    """Acknowledge what this process receives by TCP without delay, until it sends something itself.

    Spark sends the input of a task in several small pieces, and Nagle's algorithm holds each back until the one
    before is acknowledged, which Linux delays by 40 ms. Does nothing on other systems, nor to Unix sockets.
    """
    if hasattr(socket, "TCP_QUICKACK") and _OPEN_FILES.is_dir():
        for opened in _OPEN_FILES.iterdir():
            _acknowledge_at_once(int(opened.name))


def _acknowledge_at_once(number: int) -> None:
    """Do so for the file of this number, unless it is no TCP socket, or was closed meanwhile."""
    try:
        found = socket.socket(fileno=number)
    except OSError:
        return
    try:
        if found.family in {socket.AF_INET, socket.AF_INET6} and found.type == socket.SOCK_STREAM:
            found.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 1)
    except OSError:
        return
    finally:
        found.detach()  # it stays open: it belongs to Spark
