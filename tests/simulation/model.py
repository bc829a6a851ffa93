"""What a table should hold, in plain Python: rows are tuples, an intent is a function from rows to rows, a version is what the log's intents make of nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from tamis.storage.commit_log.commit_record import Commit


class Row(NamedTuple):
    id: int
    key: int
    batch: int
    value: int


Rows = Counter[Row]


@dataclass(frozen=True)
class Intent:
    """What an operation of an actor means to do, wherever in the order it lands; ``history`` are the versions before it."""

    name: str
    apply: Callable[[Rows, list[Rows]], Rows]
    number: int = -1


def unchanged(name: str) -> Intent:
    return Intent(name, lambda rows, history: rows)


def adds(number: int, batch: list[Row]) -> Intent:
    return Intent("append", lambda rows, history: rows + Counter(batch), number)


def replaces(number: int, matches: Callable[[Row], bool], batch: list[Row]) -> Intent:
    """Rows that match give way to ``batch``."""
    return Intent(
        "replace",
        lambda rows, history: Counter({r: n for r, n in rows.items() if not matches(r)}) + Counter(batch),
        number,
    )


def updates(number: int, matches: Callable[[Row], bool], change: Callable[[Row], Row]) -> Intent:
    def apply(rows: Rows, history: list[Rows]) -> Rows:
        out: Rows = Counter()
        for row, count in rows.items():
            out[change(row) if matches(row) else row] += count
        return out

    return Intent("update", apply, number)


def restores(version: int) -> Intent:
    return Intent("restore", lambda rows, history: history[version])


@dataclass
class Model:
    """``intents`` by operation id, as actors put their commits; ``versions`` as far as the log has been read."""

    intents: dict[str, Intent] = field(default_factory=dict)
    versions: list[Rows] = field(default_factory=list)
    landed: Counter[int] = field(default_factory=Counter)
    """How often each numbered intent has landed."""
    done: dict[int, bool | None] = field(default_factory=dict)
    """The outcome that the actor of an operation saw: it landed, it did not, or unknown (None)."""

    def extend(self, commits: list[Commit]) -> None:
        """Takes the next commits of the log."""
        for commit in commits:
            assert commit.version == len(self.versions)
            intent = self.intents.get(commit.operation_id) if commit.data_change else unchanged("upkeep")
            assert intent is not None or commit.operation.name in {"create", "vacuum"}, (
                f"nobody made version {commit.version} ({commit.operation.name})"
            )
            before = self.versions[-1] if self.versions else Counter()
            self.versions.append(before if intent is None else intent.apply(before, self.versions))
            if intent is not None and intent.number >= 0:
                self.landed[intent.number] += 1

    def check(self) -> None:
        """Nothing lost, nothing doubled."""
        for number, outcome in self.done.items():
            landed = self.landed[number]
            assert landed <= 1, (
                f"operation {number} ({[i.name for i in self.intents.values() if i.number == number]}) landed {landed} times"
            )
            assert outcome is None or landed == outcome, (
                f"operation {number}: its actor saw {outcome}, it landed {landed} times"
            )
