"""The process-wide cache of immutable objects: commits, footers, columns of manifests and rollups.

Invariant: a key names content that never changes. Keys therefore include the table's id as well as its path,
because a table can be dropped and created again at the same path. Stored bytes can still be damaged, so
opening a table explicitly first evicts the entries of its path and then finds the damage.
"""

from __future__ import annotations

from typing import Any

from tamis.storage.object_store.lru_cache import LruCache

CACHE = LruCache[Any](64 * 2**20, largest_share=0.25)
"""The cache of this process."""
