"""What a Python worker of Spark does before each task of Tamis, so that nothing delays the task."""

from __future__ import annotations

import ctypes
import gc
import socket
from contextlib import suppress
from functools import lru_cache
from pathlib import Path

_OPEN_FILES = Path("/proc/self/fd")


def prepare_worker() -> None:
    """Prepare the process for its next task. Call it before the task's input is read. Raises nothing."""
    _freeze_imports()
    with suppress(OSError):  # files cannot be listed: the task takes longer
        acknowledge_at_once()


@lru_cache(maxsize=1)  # gc.get_freeze_count would tell, but takes 10 ms to count
def _freeze_imports() -> None:
    """Spark's worker collects garbage after each task, which takes 30 ms if it visits what is imported."""
    gc.freeze()


def acknowledge_at_once() -> None:
    """Have Linux acknowledge at once what the TCP sockets of this process receive next. Elsewhere, do nothing.

    Spark sends the input of a task in several small pieces, and Nagle's algorithm holds each back until the one
    before is acknowledged, which Linux delays by 40 ms. The setting lasts until Linux takes the connection for an
    interactive one, so it is set again for each task.
    """
    if not (hasattr(socket, "TCP_QUICKACK") and _OPEN_FILES.is_dir()):
        return
    # Not through socket.socket: with a default timeout, it makes Spark's own file non-blocking.
    set_option = ctypes.CDLL(None).setsockopt
    on = ctypes.c_int(1)
    for opened in _OPEN_FILES.iterdir():  # of any other file, setsockopt returns an error
        set_option(int(opened.name), socket.IPPROTO_TCP, socket.TCP_QUICKACK, ctypes.byref(on), ctypes.sizeof(on))
