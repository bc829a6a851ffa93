"""Any story of a table, against a model in plain Python. Rollups have a fan-out of two here, and are files early, so that a short story has many kinds of them."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from tamis.errors import Conflict
from tamis.storage.commit_log import Operation, Proposal, Snapshot, commit, history, load, rollups
from tamis.storage.commit_log.commit_objects import HINT
from tamis.storage.commit_log.newest_commit import write_hint
from tamis.storage.object_store import Store
from tests.storage.making import forget, manifest, memory, new_table


@dataclass(frozen=True)
class Version:
    """What a table is: segments of (part id, lower bound of ts), and the head's comment."""

    segments: tuple[tuple[tuple[str, int], ...], ...] = ()
    comment: str | None = None

    def without(self, gone: set[str]) -> Version:
        kept = (tuple(part for part in segment if part[0] not in gone) for segment in self.segments)
        return replace(self, segments=tuple(segment for segment in kept if segment))

    @property
    def ids(self) -> list[str]:
        return [name for segment in self.segments for name, _ in segment]


class TableMachine(RuleBasedStateMachine):
    store: Store
    table: Snapshot

    @initialize()
    def begin(self) -> None:
        self.patch = pytest.MonkeyPatch()
        self.patch.setattr(rollups, "FAN_OUT", 2)
        self.patch.setattr(rollups, "INLINE_BYTES", 1_200)
        forget()
        self.store = memory()
        self.table = new_table(self.store)
        self.model = [Version()]
        self.made = 0

    def teardown(self) -> None:
        if hasattr(self, "patch"):
            self.patch.undo()

    @property
    def now(self) -> Version:
        return self.model[-1]

    def parts(self, count: int) -> tuple[tuple[str, int], ...]:
        self.made += count
        return tuple((f"p{n}", 10 * n) for n in range(self.made - count, self.made))

    def commit(self, after: Version, base: Snapshot | None = None, **values: object) -> None:
        proposal = Proposal(Operation("test"), (base or self.table).version, **values)  # type: ignore[arg-type]
        self.table = commit(self.store, proposal)
        self.model.append(after)

    @rule(count=st.sampled_from([1, 2, 3, 1_200]))
    def append(self, count: int) -> None:
        new = self.parts(count)
        self.commit(replace(self.now, segments=(*self.now.segments, new)), add=[of(new)], blind_append=True)

    @rule(data=st.data())
    def append_from_an_old_version(self, data: st.DataObject) -> None:
        base = load(self.store, data.draw(st.integers(0, self.table.version)))
        new = self.parts(1)
        self.commit(replace(self.now, segments=(*self.now.segments, new)), base, add=[of(new)], blind_append=True)

    @rule(count=st.integers(0, 2))
    def replace_all(self, count: int) -> None:
        new = self.parts(count)
        self.commit(replace(self.now, segments=(new,) if new else ()), add=[of(new)], replace_all=True)

    @precondition(lambda self: self.now.segments)
    @rule(data=st.data(), count=st.integers(0, 2))
    def rewrite_parts(self, data: st.DataObject, count: int) -> None:
        ids = self.now.ids
        gone = data.draw(st.lists(st.sampled_from(ids), min_size=1, max_size=6, unique=True))
        new = self.parts(count)
        after = self.now.without(set(gone))
        self.commit(
            replace(after, segments=(*after.segments, new) if new else after.segments), add=[of(new)], remove_parts=gone
        )

    @precondition(lambda self: self.now.segments)
    @rule(data=st.data())
    def remove_a_segment(self, data: st.DataObject) -> None:
        at = data.draw(st.integers(0, len(self.now.segments) - 1))
        gone = self.table.segments["segment_id"][at].as_py()
        self.commit(self.now.without({name for name, _ in self.now.segments[at]}), remove_segments=[gone])

    @rule(comment=st.text(max_size=3))
    def change_head(self, comment: str) -> None:
        self.commit(replace(self.now, comment=comment), head=replace(self.table.head, comment=comment))

    @precondition(lambda self: self.now.segments)
    @rule()
    def two_remove_the_same(self) -> None:
        base, gone = self.table, self.now.ids[0]
        self.commit(self.now.without({gone}), remove_parts=[gone])
        try:
            commit(self.store, Proposal(Operation("test"), base.version, remove_parts=[gone]))
        except Conflict:
            return
        raise AssertionError("a part was removed twice")

    @rule(data=st.data())
    def open_an_old_version(self, data: st.DataObject) -> None:
        version = data.draw(st.integers(0, self.table.version))
        agree(load(self.store, version), self.model[version])

    @rule()
    def a_new_process(self) -> None:
        forget()
        self.table = load(self.store)

    @rule()
    def lose_the_hint(self) -> None:
        self.store.delete(HINT)

    @rule(version=st.integers(0, 60))
    def a_hint_that_lies(self, version: int) -> None:
        write_hint(self.store, version)

    @rule(data=st.data())
    def damage_rollups(self, data: st.DataObject) -> None:
        paths = [entry.path for entry in self.store.list("_tamis/rollup")]
        for path in data.draw(st.lists(st.sampled_from(paths), unique=True)) if paths else ():
            if data.draw(st.booleans()):
                self.store.delete(path)
            else:
                whole = self.store.get(path)
                self.store.put(path, whole[: len(whole) // 2])
        forget()

    @invariant()
    def the_newest_is_as_the_model_says(self) -> None:
        if hasattr(self, "table"):
            assert self.table.version == len(self.model) - 1
            agree(self.table, self.now)

    @invariant()
    def nothing_is_missing_from_the_log(self) -> None:
        if hasattr(self, "table"):
            assert history(self.store, 2)["version"][0].as_py() == len(self.model) - 1


def of(parts: tuple[tuple[str, int], ...]) -> object:
    table = manifest(len(parts), ids=[name for name, _ in parts])
    if not parts:
        return table
    return manifest(len(parts), low=parts[0][1], ids=[name for name, _ in parts])


def agree(snapshot: Snapshot, expected: Version) -> None:
    assert snapshot.head.comment == expected.comment
    assert snapshot.segments["parts"].to_pylist() == [len(segment) for segment in expected.segments]
    assert snapshot.segments["rows"].to_pylist() == [100 * len(segment) for segment in expected.segments]
    parts = snapshot.parts(ids={1})
    assert parts["part_id"].to_pylist() == expected.ids
    lows = parts["1|long|lo"].to_pylist() if expected.ids else []  # of nothing, nothing is known
    assert lows == [low for segment in expected.segments for _, low in segment]
    assert parts["segment"].to_pylist() == [at for at, segment in enumerate(expected.segments) for _ in segment]
    evidence = snapshot.segment_evidence({1})
    lows = evidence["1|long|lo"].to_pylist() if expected.ids else []
    assert all(bound <= segment[0][1] for bound, segment in zip(lows, expected.segments, strict=True))
    if len(expected.segments) > 1:
        mask = np.zeros(len(expected.segments), dtype=np.bool_)
        mask[-1] = True
        assert snapshot.parts(mask)["part_id"].to_pylist() == [name for name, _ in expected.segments[-1]]


TestTable = TableMachine.TestCase
TestTable.settings = settings(stateful_step_count=25)
