"""A simulated world: one clock and one source of chance, a store that misbehaves, and actors of whom one moves at a time.

Every call of the store is a place where another actor may go on, where the call may fail, be lost or come late, and where the actor may die. Which it is
depends on the seed alone, so a seed is a story that can be told again.
"""

from __future__ import annotations

import importlib
import itertools
import json
import pkgutil
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import cached_property
from random import Random  # noqa: TID251  # seeded: it asks the machine nothing
from typing import Any, TypeVar
from unittest import mock

import tamis
from tamis.errors import StoreUnavailable
from tamis.storage import object_store
from tamis.storage.object_store import Store, open_store
from tamis.storage.object_store.store import Entry
from tamis.world import SeededWorld, use, world
from tests.simulation.model import Intent, Model
from tests.storage.faults import LATER, LOSE, REFUSE, TAKEN, TAKEN_DONE
from tests.storage.making import forget

T = TypeVar("T")
_STORIES = itertools.count()
FAULTS = (REFUSE, LOSE, LATER, TAKEN, TAKEN_DONE)


class Killed(BaseException):
    """The process of an actor dies: nothing catches it, and nothing that runs on the way out reaches the store."""


@dataclass
class Mishaps:
    """How often things go wrong, per call of the store."""

    fault: float = 0.02
    death: float = 0.004
    late: int = 20
    """Calls after which a delayed write is done, at most."""


@dataclass
class Actor:
    """One who does one operation after another. ``intent`` is what the operation at hand means."""

    name: str
    act: Callable[[Simulation, Actor], None]
    turn: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))
    intent: Intent | None = None
    dying: bool = False
    over: bool = False
    failure: BaseException | None = None
    operations: int = 0


class Simulation:
    """One seed's story."""

    def __init__(self, seed: int, steps: int, mishaps: Mishaps) -> None:
        self.seed, self.steps, self.mishaps = seed, steps, mishaps
        self.dice = Random(seed)
        self.model = Model()
        self.inner = open_store(f"memory://simulation-{next(_STORIES)}")
        self.actors: list[Actor] = []
        self.calls = 0
        self.trace: list[str] = []
        self.made: dict[str, int] = {}
        """When each object was first written, by the simulated clock."""
        self.began: dict[str, int] = {}
        """When each actor began what it is at, by the simulated clock."""
        self._late: list[tuple[int, Callable[[], object]]] = []
        self._main = threading.Semaphore(0)
        self._numbers = 0
        self.calm = True

    @property
    def store(self) -> FickleStore:
        return FickleStore(self)

    def number(self) -> int:
        self._numbers += 1
        return self._numbers

    def run(self) -> None:
        """Lets the actors act until the steps are used up, then lets each finish what it is at."""
        self.calm = False
        threads = [threading.Thread(target=self._live, args=(actor,), daemon=True) for actor in self.actors]
        for thread in threads:
            thread.start()
        while waiting := [actor for actor in self.actors if not actor.over]:
            actor = self.dice.choice(waiting)
            actor.turn.release()
            self._main.acquire()
            if actor.failure is not None:
                raise actor.failure
        self.calm = True
        for _, write in self._late:
            write()
        self._late.clear()

    def _live(self, actor: Actor) -> None:
        _here.actor = actor
        actor.turn.acquire()
        try:
            while self.calls < self.steps:
                actor.dying = False
                try:
                    actor.act(self, actor)
                except Killed:
                    if self.dice.random() < 0.3:
                        forget()
                actor.operations += 1
                self.pause()
        except BaseException as error:  # a defect: the story ends here
            actor.failure = error
        actor.over = True
        self._main.release()

    def pause(self) -> None:
        """Another actor's turn, perhaps."""
        actor = getattr(_here, "actor", None)
        if actor is not None and not self.calm:
            self._main.release()
            actor.turn.acquire()

    def call(self, action: str, path: str) -> str | None:
        """What happens at this call of the store: nothing, a fault, or death."""
        actor = getattr(_here, "actor", None)
        if actor is None or self.calm:
            return None
        if actor.dying:
            raise Killed
        self.pause()
        self.calls += 1
        world().sleep(self.dice.random() * 0.02)
        for due, write in [late for late in self._late if late[0] <= self.calls]:
            self._late.remove((due, write))
            write()
        chance = self.dice.random()
        fault = None
        if chance < self.mishaps.death:
            actor.dying = True
        elif chance < self.mishaps.death + self.mishaps.fault:
            fault = self.dice.choice(FAULTS)
        self.trace.append(f"{self.calls} {actor.name} {action} {path}: {'dies' if actor.dying else fault or 'fine'}")
        if actor.dying and self.dice.random() < 0.5:
            raise Killed  # before it is done; else after
        return fault

    def later(self, write: Callable[[], object]) -> None:
        self._late.append((self.calls + self.dice.randint(1, self.mishaps.late), write))


_here = threading.local()


class FickleStore(Store):
    """The simulation's store, as an actor reaches it."""

    def __init__(self, simulation: Simulation) -> None:
        super().__init__(simulation.inner.location, simulation.inner.options)
        self._connection = simulation.inner._connection
        self.simulation = simulation

    def put_if_absent(self, path: str, data: bytes) -> bool:
        actor = getattr(_here, "actor", None)
        if actor is not None and path.startswith("_tamis/log/"):
            self.simulation.model.intents[json.loads(data)["commit"]["operation_id"]] = actor.intent
        return super().put_if_absent(path, data)

    def list(self, prefix: str = "", after: str | None = None) -> list[Entry]:
        made = self.simulation.made
        return [Entry(e.path, e.size, made.get(e.path, 0)) for e in super().list(prefix, after)]

    def _run(self, action: str, path: str, call: Callable[[Any, str], T], *, create: bool = False) -> T:
        simulation = self.simulation
        fault = simulation.call(action, path)

        def do() -> T:
            if action == "write":
                simulation.made.setdefault(path, world().now_micros())
            return super(FickleStore, self)._run(action, path, call, create=create)

        actor = getattr(_here, "actor", None)
        if fault is None:
            done = do()
            if actor is not None and actor.dying and not simulation.calm:
                raise Killed
            return done
        if fault in {LOSE, TAKEN_DONE}:
            do()
        elif fault == LATER and action in {"write", "delete"}:
            simulation.later(do)
        if fault in {TAKEN, TAKEN_DONE} and call.__name__ == "attempt":
            return False  # type: ignore[return-value]
        raise StoreUnavailable(f"planned: {fault} {path}")

    def __getstate__(self) -> dict[str, Any]:
        raise TypeError("a simulated store stays in its process")


def _shared_locks() -> Iterator[Any]:
    """Python 3.11's cached properties, each of which has one lock for all objects: an actor who pauses would keep the others from ever moving.

    Of all modules, also those that are only imported when they are needed.
    """
    for found in pkgutil.walk_packages(tamis.__path__, "tamis."):
        if found.name.split(".")[1] not in {"spark", "cli"}:
            importlib.import_module(found.name)
    for name, module in list(sys.modules.items()):
        if name.startswith("tamis."):
            for kind in [k for k in vars(module).values() if isinstance(k, type) and k.__module__ == name]:
                yield from (v for v in vars(kind).values() if isinstance(v, cached_property) and hasattr(v, "lock"))


@contextmanager
def simulated(seed: int, steps: int, mishaps: Mishaps | None = None) -> Iterator[Simulation]:
    """A simulation in force: its world, its store behind every ``open_store``, one thread at a time."""
    with ExitStack() as stack:
        stack.enter_context(use(SeededWorld(seed)))
        forget()
        made = Simulation(seed, steps, mishaps or Mishaps())

        def opened(place: Any, options: Any = None) -> Store:
            return made.store if str(place) == made.inner.url else open_store(place, options)

        for name, module in list(sys.modules.items()):
            if name.startswith("tamis.") and getattr(module, "open_store", None) is object_store.open_store:
                stack.enter_context(mock.patch.object(module, "open_store", opened))
        for found in _shared_locks():
            stack.enter_context(mock.patch.object(found, "lock", nullcontext()))
        stack.enter_context(mock.patch("tamis.engine.scan.scan_execution.reader_threads", return_value=1))
        stack.enter_context(mock.patch("tamis.storage.object_store.parallel_requests.WORTH_IT_LOCALLY", 10**9))
        stack.enter_context(mock.patch("tamis.storage.commit_log.rollups.FAN_OUT", 4))
        yield made
