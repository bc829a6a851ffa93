"""Progress on stderr: a bar on a terminal, otherwise a line now and then."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Protocol

from tamis.cli.output import output_console, print_note
from tamis.core.types.printable import printable
from tamis.world import world

EVERY = 5.0
"""Seconds between two lines without a terminal."""


class Advance(Protocol):
    def __call__(self, amount: int, message: str = "") -> None: ...


@contextmanager
def progress_bar(title: str, total: int) -> Iterator[Advance]:
    """Show how much of ``total`` is done; call the yielded function with each further amount."""
    if output_console(stderr=True).is_terminal:
        with _bar(title, total) as advance:
            yield advance
        return
    done, last = 0, world().monotonic()

    def line(amount: int, message: str = "") -> None:
        nonlocal done, last
        done += amount
        if done >= total or world().monotonic() - last >= EVERY:
            last = world().monotonic()
            print_note(f"{title}: {100 * done // max(total, 1)}% {message}".rstrip())

    print_note(f"{title} …")
    yield line


@contextmanager
def over_table(title: str, held: Any, times: int = 1) -> Iterator[Advance]:
    """Show the progress of a verb that reads the table's bytes, once or several ``times``."""
    with progress_bar(title, times * int(held.detail()["size_in_bytes"][0].as_py() or 0)) as advance:
        yield advance


@contextmanager
def _bar(title: str, total: int) -> Iterator[Advance]:
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TaskProgressColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.fields[message]}", markup=False),
    )
    with Progress(*columns, console=output_console(stderr=True)) as bar:
        task = bar.add_task(printable(title), total=total, message="")

        def advance(amount: int, message: str = "") -> None:
            bar.update(task, advance=amount, message=printable(message))

        yield advance
