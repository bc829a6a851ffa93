"""Finding the newest version: right whatever the hint says, flat however long the log is, and never blind to a hole."""

from __future__ import annotations

import pytest

from tamis.errors import CorruptData, NotFound
from tamis.storage.commit_log import Snapshot, load
from tamis.storage.commit_log.commit_objects import HINT, commit_path
from tamis.storage.commit_log.newest_commit import find_latest, write_hint
from tamis.storage.object_store import Store
from tests.storage.making import append, copy, forget, memory, new_table, part_ids

LENGTH = 40


@pytest.fixture(scope="module")
def table() -> Store:
    store = memory()
    grow(store, new_table(store), LENGTH)
    return store


@pytest.fixture
def store(table: Store) -> Store:
    return copy(table)


def grow(store: Store, snapshot: Snapshot, version: int) -> Snapshot:
    while snapshot.version < version:
        snapshot = append(store, snapshot)
    return snapshot


def latest(store: Store) -> int:
    forget()
    commit = find_latest(store)
    assert commit is not None
    return commit.version


@pytest.mark.push_cases(16)
@pytest.mark.parametrize("hinted", [*range(LENGTH + 1), LENGTH + 1, LENGTH + 2, LENGTH + 3, 1000, 10**18])
def test_any_version_in_the_hint(store: Store, hinted: int) -> None:
    write_hint(store, hinted)
    assert latest(store) == LENGTH
    snapshot = append(store, load(store))
    assert (snapshot.version, latest(store)) == (LENGTH + 1, LENGTH + 1)


@pytest.mark.parametrize(
    "garbage",
    [b"", b"17", b"{}", b"\xff" * 100, b'{"crc32":"00000000","latest":{"version":3}}', b'{"version":3}'],
)
def test_garbage_in_the_hint(store: Store, garbage: bytes) -> None:
    store.put(HINT, garbage)
    assert latest(store) == LENGTH


@pytest.mark.parametrize("version", [-1, 10**19, 1.5, "3", None, [3]])
def test_a_well_formed_lie_in_the_hint(store: Store, version: object) -> None:
    write_hint(store, version)  # type: ignore[arg-type]
    assert latest(store) == LENGTH


def test_no_hint(store: Store) -> None:
    store.delete(HINT)
    assert latest(store) == LENGTH


@pytest.mark.slow
def test_finding_costs_the_same_at_any_length(store: Store) -> None:
    def cost() -> int:
        forget()
        view = store.with_new_counters()
        find_latest(view)
        return view.io.requests

    before = cost()
    grow(store, load(store), 3 * LENGTH)
    assert cost() == before == 5  # the hint, the commit, the one before it, and the two looked for beyond it


def test_an_empty_place_has_no_version() -> None:
    assert find_latest(memory()) is None


@pytest.mark.parametrize("hint", [None, *range(LENGTH - 7, LENGTH + 2)])
@pytest.mark.parametrize("lost", [LENGTH - 5, LENGTH - 2, LENGTH - 1])
def test_a_hole_is_never_taken_for_the_end(store: Store, lost: int, hint: int | None) -> None:
    """A lost commit is reported by name, or, where it lies before all that is looked at, at the latest when the state is loaded."""
    if hint is None:
        store.delete(HINT)
    else:
        write_hint(store, hint)
    store.delete(commit_path(lost))
    forget()
    with pytest.raises(CorruptData) as caught:
        load(store).parts()
    assert (caught.value.code, caught.value.name) == ("MISSING_COMMIT", store.name(commit_path(lost)))


def test_nothing_is_written_into_a_hole(store: Store) -> None:
    snapshot = load(store)
    store.delete(commit_path(LENGTH - 1))
    for hint in range(LENGTH - 8, LENGTH - 1):
        write_hint(store, hint)
        forget()
        with pytest.raises(CorruptData):
            append(store, snapshot)
    with pytest.raises(NotFound):
        store.get(commit_path(LENGTH - 1))


@pytest.mark.parametrize("damage", ["empty", "half", "byte"])
@pytest.mark.parametrize("version", [0, LENGTH // 2, LENGTH - 1, LENGTH])
@pytest.mark.parametrize("hint", [LENGTH - 3, LENGTH - 1, LENGTH])
def test_a_damaged_commit_is_named_and_never_absent(store: Store, damage: str, version: int, hint: int) -> None:
    write_hint(store, hint)
    path = commit_path(version)
    data = store.get(path)
    store.put(path, {"empty": b"", "half": data[: len(data) // 2], "byte": data[:50] + b"#" + data[51:]}[damage])
    for e in store.list("_tamis/rollup"):
        store.delete(e.path)
    forget()
    with pytest.raises(CorruptData) as caught:
        load(store).parts()
    assert (caught.value.code, caught.value.name) == ("BAD_CHECKSUM", store.name(path))
    if version == LENGTH:
        with pytest.raises(CorruptData):
            append(store, load(store, LENGTH - 1))


def test_a_commit_seen_late_is_no_hole(store: Store) -> None:
    """Two commits land while somebody looks: the first answer is older than the second."""

    class Racing(Store):
        late = 1

        def get(self, path: str) -> bytes:
            if path == commit_path(LENGTH - 1) and self.late:
                self.late -= 1
                raise NotFound("not yet")
            return super().get(path)

    racing = Racing(store.location, {})
    write_hint(store, LENGTH - 2)
    forget()
    assert load(racing).version == LENGTH


def test_foreign_names_in_the_log_are_not_commits(store: Store) -> None:
    for name in (
        "x.json",
        "00000000000000000099.json.tmp",
        "99.json",
        "deep/00000000000000000099.json",
        "٠٠٠٠٠٠٠٠٠٠٠٠٠٠٠٠٠٠٩٩.json",
    ):
        store.put(f"_tamis/log/{name}", b"")
    store.delete(HINT)
    assert latest(store) == LENGTH


def test_a_table_dropped_and_made_anew_is_not_remembered(store: Store) -> None:
    old = set(part_ids(load(store)))
    for e in store.list():
        if "rollup" not in e.path:  # what a careless drop leaves behind
            store.delete(e.path)
    snapshot = grow(store, new_table(store), LENGTH + 3)
    assert not old & set(part_ids(load(store)))
    assert len(part_ids(load(store, LENGTH))) == LENGTH
    assert snapshot.segments.num_rows == LENGTH + 3
