"""The process's memory of immutable objects: bounded, and the least recently used goes first."""

from __future__ import annotations

from tamis.storage.commit_log import load
from tamis.storage.object_store.lru_cache import LruCache
from tamis.storage.object_store.object_cache import CACHE
from tests.storage.making import append, forget, memory, new_table


def test_it_never_holds_more_than_its_limit() -> None:
    cache: LruCache[str] = LruCache(100, 0.25)
    for key in range(50):
        cache.put(key, str(key), 20)
        assert cache.bytes <= 100
    assert [key for key in range(50) if cache.get(key)] == [45, 46, 47, 48, 49]


def test_what_was_used_stays() -> None:
    cache: LruCache[str] = LruCache(60, 0.25)
    for key in "abc":
        cache.put(key, key, 15)
    cache.get("a")
    for key in "de":
        cache.put(key, key, 15)
    assert [key for key in "abcde" if cache.get(key)] == ["a", "c", "d", "e"]


def test_what_is_put_again_counts_once() -> None:
    cache: LruCache[int] = LruCache(100, 0.25)
    cache.put("a", 1, 20)
    cache.put("a", 2, 10)
    assert (cache.get("a"), cache.bytes) == (2, 10)


def test_a_value_too_large_replaces_nothing_but_its_own_key() -> None:
    cache: LruCache[int] = LruCache(100)
    cache.put("a", 1, 60)
    cache.put("b", 1, 101)
    assert (cache.get("a"), cache.get("b"), cache.bytes) == (1, None, 60)
    cache.put("a", 2, 101)
    assert (cache.get("a"), cache.bytes) == (None, 0)


def test_a_value_beyond_the_limit_may_be_kept_alone() -> None:
    cache: LruCache[int] = LruCache(100, largest_share=4.0)
    cache.put("a", 1, 60)
    cache.put("b", 2, 300)
    assert (cache.get("a"), cache.get("b"), cache.bytes) == (None, 2, 300)
    cache.put("c", 3, 401)
    assert (cache.get("b"), cache.get("c")) == (2, None)
    cache.put("d", 4, 50)
    assert (cache.get("b"), cache.get("d"), cache.bytes) == (None, 4, 50)


def test_nothing_large_pushes_all_else_out() -> None:
    cache: LruCache[int] = LruCache(100, 0.25)
    cache.put("small", 1, 10)
    cache.put("large", 1, 26)
    assert (cache.get("large"), cache.get("small")) == (None, 1)


def test_a_second_reading_asks_only_what_can_have_changed() -> None:
    store = memory()
    snapshot = new_table(store)
    for _ in range(40):
        snapshot = append(store, snapshot)
    forget()
    costs = []
    for _ in range(2):
        opened = load(store)
        opened.parts(ids={1})
        costs.append(opened.io.requests)
    assert costs[0] > costs[1] == 4  # the hint, the newest commit, and the two looked for beyond it
    assert 0 < CACHE.bytes <= CACHE.limit
