"""Object stores and local disks behind one small interface: requests, ranges, caches, checked files."""

from tamis.storage.object_store.store import Entry, Io, Store, open_store

__all__ = [
    "Entry",
    "Io",
    "Store",
    "open_store",
]
