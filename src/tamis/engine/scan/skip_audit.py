"""Audit: what was proved about a sample of parts, checked by reading them as if nothing were known.

Law: read with skipping and read without, a part gives as many rows, or its filter fails both ways. An audited part is read without, so the
answer is right whatever was proved; where the two differ, a proof was wrong, and that is said loudly.

Every kind of wrong proof shows: a skipped part with a row that matches or on which the filter fails (whoever skipped it, segment, statistics or index: in
all of them the claim is that nothing comes), blocks of a part that its own statistics or an index excluded, a part of which every row was said to match.
"""

from __future__ import annotations

import logging
import zlib
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import fields, replace
from enum import Enum
from typing import Any

import numpy as np
import pyarrow as pa

from tamis.engine.part_reader import ReadCounters, ReadSpec, read_part
from tamis.errors import CorruptData, InvalidInput, NotFound, StoreUnavailable, TamisError
from tamis.storage.files import PartRef
from tamis.world import world

SWITCH = "TAMIS_AUDIT"
"""Environment variable: ``raise`` makes a violation an error (for tests); else it is logged, reported, and the rows are right."""

_LOG = logging.getLogger("tamis")
_CLUES: dict[str, Any] = {"all_match": False, "candidates": None}
"""What a reference to a part may say about its rows, and how it says nothing."""


class Proof(Enum):
    """What is claimed of a part, and so what its audit checks."""

    NONE = "was skipped"
    ALL = "was said to match wholly"
    BLOCKS = "was read in part"


Found = Callable[[str, str], None]
"""Told the id of a part and what is wrong with what was proved about it."""


def sample(ids: list[str], sizes: np.ndarray[Any, np.dtype[np.int64]], percent: float, budget: int) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Which of these parts to audit: chosen by a hash of their ids, so that every run of a query checks the same ones; ``budget`` bytes together."""
    if not percent:
        return np.zeros(len(ids), dtype=np.bool_)
    chosen = np.array([zlib.crc32(i.encode()) % 10_000 < percent * 100 for i in ids], dtype=np.bool_) & (sizes <= budget)
    return chosen & (np.cumsum(np.where(chosen, sizes, 0)) <= budget)


def read_audited(ref: PartRef, proof: Proof, spec: ReadSpec, counters: ReadCounters, found: Found) -> Iterator[pa.RecordBatch]:
    """The rows of ``ref``, read as if nothing were known of it; ``found`` is told where ``proof`` does not hold.

    Raises what the filter raises. A part that was skipped and cannot be read at all costs the query nothing: it did not need it.
    """
    clues = {f.name: _CLUES[f.name] for f in fields(ref) if f.name in _CLUES}
    rows, cost = 0, ReadCounters()
    try:
        try:
            for batch in read_part(replace(ref, **clues), replace(spec, block_statistics=False), cost):
                rows += len(batch)
                yield batch
        finally:
            counters.merge(cost if proof is not Proof.NONE else cost.without_blocks())
    except InvalidInput as error:
        _compare(ref, proof, spec, counters, str(error), found)
        raise
    except (CorruptData, NotFound, StoreUnavailable) as error:
        if proof is not Proof.NONE:
            raise
        _LOG.warning("AUDIT: part %s could not be checked: %s", ref.part_id, error)
        return
    except GeneratorExit:  # nobody wants more: what came already may have been too much
        if rows and proof is Proof.NONE:
            with suppress(TamisError):  # whoever drops these rows has no ear for an error: it is kept where it was found
                found(ref.part_id, f"it {proof.value}, but rows match")
        raise
    _compare(ref, proof, spec, counters, rows, found)


def _compare(ref: PartRef, proof: Proof, spec: ReadSpec, counters: ReadCounters, without: int | str, found: Found) -> None:
    """``without``: the rows that came, or how the filter failed."""
    claimed = 0 if proof is Proof.NONE else _claimed(replace(ref, all_match=proof is Proof.ALL), spec, counters)
    if claimed == without or (isinstance(claimed, str) and isinstance(without, str)):
        return
    shown = [f"its filter fails: {x}" if isinstance(x, str) else f"{x} rows match" for x in (without, claimed)]
    found(ref.part_id, f"it {proof.value}, but {shown[0]}" + ("" if proof is Proof.NONE else f", with skipping {shown[1]}"))


def _claimed(ref: PartRef, spec: ReadSpec, counters: ReadCounters) -> int | str:
    """How many rows reading with skipping gives, or how the filter fails then. Its cost is counted, its rows are not."""
    cost, rows = ReadCounters(), 0
    try:
        for batch in read_part(ref, replace(spec, schema=replace(spec.schema, fields=())), cost):
            rows += len(batch)
    except InvalidInput as error:
        return str(error)
    finally:
        counters.bytes_leader += cost.bytes_leader
        counters.bytes_follower += cost.bytes_follower
        counters.requests += cost.requests
    return rows


def strict() -> bool:
    """Whether a violation is an error."""
    return world().environment().get(SWITCH, "").strip().lower() == "raise"


def violation(table: str, filter_text: str | None, part: str, problem: str) -> TamisError:
    """The error that a violation is, or the text that is logged."""
    return CorruptData(
        f"AUDIT: what was proved of part {part} of {table} under the filter {filter_text!r} is wrong: {problem}.",
        code="AUDIT_FAILED",
        name=part,
        remedy="Set tamis.stats.filter=off (and tamis.index.use=off) and report this.",
    )


def tell(error: TamisError) -> None:
    """Says a violation to whoever watches the log."""
    _LOG.error("%s", error)
