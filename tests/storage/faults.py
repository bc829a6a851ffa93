"""A store that fails, delays and lies, by plan: the same plan gives the same faults at the same calls."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, TypeVar

from tamis.errors import StoreUnavailable
from tamis.storage.object_store import Store
from tamis.world import SeededWorld

T = TypeVar("T")

REFUSE = "refuse"
"""Does nothing, and raises."""
LOSE = "lose the answer"
"""Does it, and raises."""
LATER = "do it later"
"""Raises, and does it some calls after: a request that was on its way. Of writes; reads are refused."""
TAKEN = "say that it is taken"
"""Does nothing, and says that the object was there already. Of writes if absent; others are refused."""
TAKEN_DONE = "do it and say that it is taken"
"""Does it, and says that the object was there already: a retry below us met our own first attempt."""

FAULTS = (REFUSE, LOSE, LATER, TAKEN, TAKEN_DONE)


@dataclass
class Plan:
    """What goes wrong at which call, counted from 0 over all stores of the plan; and what happened so far."""

    faults: Callable[[int], str | None]
    delay: int = 3
    """Calls after which a delayed write is done."""
    calls: int = 0
    log: list[str] = field(default_factory=list)
    waiting: list[tuple[int, Callable[[], object]]] = field(default_factory=list)

    @staticmethod
    def at(index: int, fault: str) -> Plan:
        """One fault."""
        return Plan(lambda call: fault if call == index else None)

    @staticmethod
    def down_from(index: int, fault: str, grace: int) -> Plan:
        """One fault, and after ``grace`` calls more nothing works; what was delayed by then is done when all is over."""
        return Plan(lambda call: REFUSE if call > index + grace else fault if call == index else None, delay=1_000)

    @staticmethod
    def none() -> Plan:
        """No fault: counts the calls."""
        return Plan(lambda _: None)

    @staticmethod
    def seeded(seed: int, share: float) -> Plan:
        """Each call has a fault with this probability."""
        dice = SeededWorld(seed).uniform
        return Plan(lambda _: FAULTS[int(dice(0, len(FAULTS)))] if dice(0, 1) < share else None, delay=int(dice(1, 6)))

    def next(self) -> str | None:
        """The fault of the next call; before it, the delayed writes that are due are done."""
        index = self.calls
        self.calls += 1
        for due, write in [w for w in self.waiting if w[0] <= index]:
            self.waiting.remove((due, write))
            write()
        return self.faults(index)

    def settle(self) -> None:
        """Does all that is on its way."""
        for _, write in self.waiting:
            write()
        self.waiting.clear()


class FaultyStore(Store):
    """``inner``'s objects through a plan of faults."""

    def __init__(self, inner: Store, plan: Plan) -> None:
        super().__init__(inner.location, inner.options)
        self.plan = plan

    def _run(self, action: str, path: str, call: Callable[[Any, str], T], *, create: bool = False) -> T:
        fault = self.plan.next()
        self.plan.log.append(f"{self.plan.calls - 1} {action} {path}: {fault or 'fine'}")
        if fault is None:
            return super()._run(action, path, call, create=create)
        if fault in {LOSE, TAKEN_DONE}:
            super()._run(action, path, call, create=create)
        elif fault == LATER and action == "write":
            self.plan.waiting.append(
                (self.plan.calls + self.plan.delay, lambda: self._late(action, path, call, create))
            )
        if fault in {TAKEN, TAKEN_DONE} and call.__name__ == "attempt":
            return False  # type: ignore[return-value]
        raise StoreUnavailable(f"planned: {fault} {path}")

    def _late(self, action: str, path: str, call: Callable[[Any, str], T], create: bool) -> None:
        super()._run(action, path, call, create=create)


def single_faults(fine: Plan) -> Iterator[tuple[int, str]]:
    """Every fault at every call of a run that went without any; a read can only be refused."""
    for index, entry in enumerate(fine.log):
        writes = entry.split()[1] == "write"
        yield from ((index, fault) for fault in (FAULTS if writes else (REFUSE,)))
