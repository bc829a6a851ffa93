"""Verification of the files of sources: which are gone, and which are not as they were when they became parts."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow.compute as pc

from tamis.engine.scan import PartRefs
from tamis.storage.commit_log import Snapshot
from tamis.storage.files.file_check import Problem
from tamis.storage.files.file_source import change_of
from tamis.storage.files.parquet.foreign_part import source_store
from tamis.storage.object_store import Store


def external_problems(store: Store, snapshot: Snapshot) -> Iterator[Problem]:
    """Yield the files of sources that a listing shows to be gone or changed; nothing of them is read."""
    if not snapshot.head.sources:
        return
    parts = snapshot.parts(None)
    for source in snapshot.head.sources:
        mine = parts.filter(pc.equal(parts["source"], source.source_id))
        if not len(mine):
            continue
        listed = {entry.path: entry for entry in source_store(store, source).list()}
        for ref in PartRefs(mine, np.zeros(len(mine), dtype=np.bool_)):
            entry = listed.get(ref.path)
            if entry is None:
                yield "SOURCE_GONE", ref.path, f"The file is no longer in the source {source.root}."
                continue
            changed = change_of(entry, ref)
            if changed is not None:
                yield "SOURCE_CHANGED", ref.path, f"The file of the source {source.root} {changed}."
