"""Object stores and local disks behind one interface: requests, ranges, caches and checksummed files."""

from tamis.storage.object_store.store import Entry, Io, Store, open_store

__all__ = [
    "Entry",
    "Io",
    "Store",
    "open_store",
]
