"""Which pairs of concurrent changes are one too many. The table of ``docs/format.md``, "Conflicts", row by row."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from tamis.core.expr import conjuncts_of, parse_predicate
from tamis.core.types import LONG, STRING, Field, Schema
from tamis.errors import Conflict, SchemaMismatch
from tamis.storage.commit_log import Operation, Proposal, ReadSet, Snapshot, commit, load
from tamis.storage.commit_log.deletion_vectors import serialize_vector
from tamis.storage.object_store import Store
from tests.storage.making import SCHEMA, append, manifest, memory, new_table, part_ids

Change = Callable[[Snapshot], Proposal]


def propose(name: str, **values: object) -> Change:
    return lambda base: Proposal(Operation(name), base.version, **values)  # type: ignore[arg-type]


def segment(at: int) -> Callable[[Snapshot], str]:
    return lambda base: str(base.segments["segment_id"][at])


def removing(at: int, *parts: str) -> Change:
    return lambda base: Proposal(
        Operation("delete"), base.version, remove_segments=[segment(at)(base)] if at >= 0 else (), remove_parts=parts
    )


def deleting(part: str, *rows: int, **values: object) -> Change:
    return propose("delete", delete_rows={part: serialize_vector(np.array(rows))}, **values)


def exactly(text: str, part: str, *rows: int, **values: object) -> Change:
    """A DELETE or UPDATE: all that its filter matched goes."""
    return deleting(part, *rows, reads=ReadSet(text), exact=True, **values)


def reading(text: str | None, **values: object) -> Change:
    return propose("update", reads=ReadSet(text), **values)


def new_head(base: Snapshot) -> Proposal:
    return Proposal(Operation("properties"), base.version, head=replace(base.head, comment="new"))


def APPEND(base: Snapshot) -> Proposal:
    return Proposal(Operation("append"), base.version, add=[manifest(1, low=500)], blind_append=True)


def OVERWRITE(base: Snapshot) -> Proposal:
    return Proposal(Operation("overwrite"), base.version, add=[manifest(1, low=900)], replace_all=True)


TRUNCATE = propose("truncate", replace_all=True)

# (mine, theirs that landed first, the conflict's code or None). The table has segments a (a0 a1, ts 0–19), b (b0 b1, ts 100–119).
PAIRS: dict[str, tuple[Change, Change, str | None]] = {
    "append, append": (APPEND, APPEND, None),
    "append, overwrite": (APPEND, OVERWRITE, None),
    "append, removal": (APPEND, removing(0), None),
    "append, head": (APPEND, new_head, None),
    "append that read, append": (propose("append", add=[manifest(1)], reads=ReadSet(None)), APPEND, "CONFLICT_READ"),
    "blind append that says what it read, append": (propose("append", add=[manifest(1)], reads=ReadSet(None), blind_append=True), APPEND, None),
    "overwrite, append": (OVERWRITE, APPEND, None),
    "overwrite, overwrite": (OVERWRITE, OVERWRITE, None),
    "overwrite, removal": (OVERWRITE, removing(0), None),
    "overwrite, head": (OVERWRITE, new_head, None),
    "overwrite that read, append": (propose("overwrite", replace_all=True, reads=ReadSet("ts = 505")), APPEND, "CONFLICT_READ"),
    "overwrite that read, append elsewhere": (propose("overwrite", replace_all=True, reads=ReadSet("ts = 5")), APPEND, None),
    "removal, append": (removing(0), APPEND, None),
    "removal, overwrite": (removing(0), OVERWRITE, "CONFLICT_REMOVED"),
    "part removal, truncate": (removing(-1, "a0"), TRUNCATE, "CONFLICT_REMOVED"),
    "segment, same segment": (removing(0), removing(0), "CONFLICT_REMOVED"),
    "segment, other segment": (removing(0), removing(1), None),
    "segment, a part of it": (removing(0), removing(-1, "a0"), "CONFLICT_REMOVED"),
    "part, its segment": (removing(-1, "a0"), removing(0), "CONFLICT_REMOVED"),
    "part, same part": (removing(-1, "a0"), removing(-1, "a0"), "CONFLICT_REMOVED"),
    "part, other part": (removing(-1, "a0"), removing(-1, "a1"), None),
    "all parts, one of them": (removing(-1, "a0", "a1"), removing(-1, "a1"), "CONFLICT_REMOVED"),
    "one part, all of them": (removing(-1, "a0"), removing(-1, "a0", "a1"), "CONFLICT_REMOVED"),
    "part, part of another segment": (removing(-1, "a0"), removing(-1, "b1"), None),
    "read, append that may match": (reading("ts BETWEEN 500 AND 501"), APPEND, "CONFLICT_READ"),
    "read, append that cannot match": (reading("ts < 500"), APPEND, None),
    "read of everything, append": (reading(None), APPEND, "CONFLICT_READ"),
    "read by an unknown function, append": (reading("my_udf(ts)"), APPEND, "CONFLICT_READ"),
    "read by what does not parse, append": (reading("ts <"), APPEND, "CONFLICT_READ"),
    "read of an unknown column, append": (reading("nope = 1"), APPEND, "CONFLICT_READ"),
    "read that can fail, append": (reading("1 / (ts - 505) > 0 AND ts < 0"), APPEND, "CONFLICT_READ"),
    "read, compaction": (reading(None), propose("compact", add=[manifest(1, low=500)], data_change=False), None),
    "read, removal of what it read": (reading("ts < 5"), removing(0), "CONFLICT_READ"),
    "read, removal of a part of what it read": (reading("ts < 5"), removing(-1, "a1"), "CONFLICT_READ"),
    "read, removal elsewhere": (reading("ts < 5"), removing(1), None),
    "read, overwrite": (reading("ts < 5"), OVERWRITE, "CONFLICT_READ"),
    "read, head": (reading("ts < 5"), new_head, None),
    "rows, other rows of the part": (exactly("ts < 5", "a0", 1, 2), exactly("ts > 6", "a0", 7), None),
    "rows, the same row": (exactly("ts < 5", "a0", 1, 2), exactly("ts > 1", "a0", 2, 7), "CONFLICT_ROWS"),
    "rows without a filter, other rows": (deleting("a0", 1), deleting("a0", 2), None),
    "rows without a filter, the same row": (deleting("a0", 1), deleting("a0", 1), "CONFLICT_ROWS"),
    "rows, rows of another part": (exactly("ts < 5", "a0", 1), deleting("a1", 1), None),
    "rows, their part": (deleting("a0", 1), removing(-1, "a0"), "CONFLICT_REMOVED"),
    "rows, their segment": (deleting("a0", 1), removing(0), "CONFLICT_REMOVED"),
    "rows, another part": (exactly("ts < 5", "a0", 1), removing(-1, "a1"), None),
    "rows, another part, unless more was read than goes": (deleting("a0", 1, reads=ReadSet("ts < 5")), removing(-1, "a1"), "CONFLICT_READ"),
    "rows, rows of another part, unless more was read than goes": (deleting("a0", 1, reads=ReadSet("ts < 5")), deleting("a1", 1), "CONFLICT_READ"),
    "rows, rows elsewhere, though more was read than goes": (deleting("a0", 1, reads=ReadSet("ts < 5")), deleting("b1", 1), None),
    "part, rows of it": (removing(-1, "a0"), deleting("a0", 1), "CONFLICT_REMOVED"),
    "part, rows of another": (removing(-1, "a0"), deleting("a1", 1), None),
    "segment, rows of it": (removing(0), deleting("a0", 1), "CONFLICT_REMOVED"),
    "rows, compaction of their part": (deleting("a0", 1), propose("compact", remove_parts=["a0"], data_change=False), "CONFLICT_REMOVED"),
    "compaction, rows of its part": (propose("compact", remove_parts=["a0"], data_change=False), deleting("a0", 1), "CONFLICT_REMOVED"),
    "compaction, rows elsewhere": (propose("compact", remove_parts=["a0"], data_change=False), deleting("b0", 1), None),
    "rows, append that may match": (exactly("ts > 5", "a0", 7), APPEND, "CONFLICT_READ"),
    "rows, append that cannot match": (exactly("ts < 5", "a0", 1), APPEND, None),
    "append, rows": (APPEND, deleting("a0", 1), None),
    "rows, truncate": (deleting("a0", 1), TRUNCATE, "CONFLICT_REMOVED"),
    "truncate, rows": (TRUNCATE, deleting("a0", 1), None),
    "rows, head": (deleting("a0", 1), new_head, None),
    "head, the first deletion of a row": (new_head, deleting("a0", 1), "CONFLICT_HEAD_CHANGED"),
    "read, rows of what it read": (reading("ts < 5"), deleting("a1", 1), "CONFLICT_READ"),
    "read, rows elsewhere": (reading("ts < 5"), deleting("b1", 1), None),
    "head, append": (new_head, APPEND, None),
    "head, head": (new_head, new_head, "CONFLICT_HEAD_CHANGED"),
    "head, overwrite": (new_head, OVERWRITE, None),
}  # fmt: skip


@pytest.fixture
def store() -> Store:
    store = memory()
    snapshot = append(store, new_table(store), manifest(2, low=0, ids=["a0", "a1"]))
    append(store, snapshot, manifest(2, low=100, ids=["b0", "b1"]))
    return store


@pytest.mark.parametrize(("mine", "theirs", "code"), PAIRS.values(), ids=PAIRS)
@pytest.mark.parametrize("between", [0, 2], ids=["next", "later"])
@pytest.mark.push_cases(15)
def test_pairs(store: Store, mine: Change, theirs: Change, code: str | None, between: int) -> None:
    base = load(store)
    commit(store, theirs(base))
    for _ in range(between):  # something harmless for everybody, with other commits around it
        commit(store, Proposal(Operation("noop"), load(store).version))
    before = load(store)
    if code is None:
        after = commit(store, mine(base))
        assert after.version == before.version + 1
        assert len(set(part_ids(after))) == len(part_ids(after))
        assert 0 not in after.segments["parts"].to_pylist()
        return
    with pytest.raises(Conflict) as caught:
        commit(store, mine(base))
    assert (caught.value.code, caught.value.name) == (code, "3")
    assert load(store).version == before.version
    assert "Reload the table" in caught.value.remedy


def test_ones_own_commit_is_no_conflict(store: Store) -> None:
    base = load(store)
    mine = replace(removing(0)(base), reads=ReadSet(None), add=[manifest(1, low=3)], operation_id="mine")
    assert commit(store, mine).version == commit(store, mine).version == 3


def test_what_is_rebased_means_the_same(store: Store) -> None:
    base = load(store)
    commit(store, removing(1)(base))
    after = commit(store, removing(-1, "a0")(base))
    assert part_ids(after) == ["a1"]


def test_a_filter_is_meant_in_its_own_zone_and_rules(store: Store) -> None:
    schema = Schema((Field("ts", LONG, True, 1), Field("name", STRING, True, 2)), 0)
    assert load(store).schema == schema
    base = load(store)
    APPEND(base)
    commit(store, APPEND(base))
    odd = replace(
        reading("CAST(name AS INT) = 1 AND ts < 0")(base), reads=ReadSet("CAST(name AS INT) = 1 AND ts < 0", ansi=True)
    )
    with pytest.raises(Conflict):  # under ANSI the cast may fail on the new rows before ts is looked at
        commit(store, odd)
    assert odd.reads is not None
    assert commit(store, replace(odd, reads=replace(odd.reads, ansi=False))).version == 4


def test_a_bound_filter_is_judged_rather_than_its_text(store: Store) -> None:
    base = load(store)
    commit(store, APPEND(base))
    bound = conjuncts_of(parse_predicate("ts = 505", SCHEMA))
    with pytest.raises(Conflict):
        commit(store, replace(reading("ts = 5")(base), conjuncts=bound))
    elsewhere = conjuncts_of(parse_predicate("ts = 5", SCHEMA))
    assert commit(store, replace(reading("my_udf(ts)")(base), conjuncts=elsewhere)).version == 4


WIDER = Schema((Field("ts", LONG, True, 1), Field("name", STRING, True, 2), Field("more", LONG, True, 3)), 1)
NARROW = Schema((Field("ts", LONG, True, 1),), 1)


def evolve(store: Store, schema: Schema) -> None:
    now = load(store)
    commit(
        store,
        Proposal(
            Operation("schema"), now.version, head=replace(now.head, schemas=(SCHEMA, schema), highest_column_id=9)
        ),
    )


def test_rows_of_an_older_schema_that_still_fit(store: Store) -> None:
    base = load(store)
    evolve(store, WIDER)
    after = commit(store, APPEND(base))
    assert after.parts()["schema_id"].to_pylist()[-1] == 0
    assert after.commit.schema_id == 1


OTHERS = [
    (Schema((Field("ts", LONG, True, 3),), 1), "none of their columns is left"),
    (Schema((Field("ts", LONG, True, 1), Field("more", LONG, False, 3)), 1), "'more' is new and not nullable"),
    (Schema((Field("ts", STRING, True, 1),), 1), "'ts' was bigint and is string"),
]


@pytest.mark.parametrize(("schema", "why"), OTHERS)
def test_rows_of_an_older_schema_that_do_not_fit(store: Store, schema: Schema, why: str) -> None:
    base = load(store)
    evolve(store, schema)
    with pytest.raises(SchemaMismatch) as caught:
        commit(store, APPEND(base))
    assert (caught.value.code, caught.value.current_id, caught.value.schema) == ("SCHEMA_CHANGED", 1, schema)
    assert why in caught.value.message
    assert load(store).version == 3


def test_rows_of_which_a_column_is_gone_are_still_added(store: Store) -> None:
    base = load(store)
    evolve(store, NARROW)
    assert commit(store, APPEND(base)).parts()["schema_id"].to_pylist()[-1] == 0


def test_whether_rows_still_fit_is_for_the_caller_to_say(store: Store) -> None:
    base = load(store)
    evolve(store, NARROW)
    asked = []

    def allow(old: Schema, new: Schema) -> str | None:
        asked.append((old.schema_id, new.schema_id))
        return None

    assert commit(store, APPEND(base), still_valid=allow).version == 4
    assert asked == [(0, 1)]
    evolve(store, replace(WIDER, schema_id=2))
    with pytest.raises(SchemaMismatch, match="because I say so"):
        commit(store, APPEND(base), still_valid=lambda *_: "because I say so")
