"""Audits: check what was proved about a sample of parts by reading them without skipping.

Invariant: read with and without skipping, a part gives the same number of rows, or its filter raises both
times. An audited part is read without skipping, so the result is correct whatever was proved; a difference
means that a proof was wrong, and is reported.

This detects every kind of wrong proof: a skipped part (by segment, statistics or index) with a row that
matches or on which the filter raises; excluded blocks of a part (by its own statistics or an index); and a
part whose rows were all said to match.
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

from tamis.engine.part_reader import ReadCounters, ReadSpec, evaluates_all, is_left_to_spark, read_part
from tamis.errors import CorruptData, InvalidInput, NotFound, StoreUnavailable, TamisError
from tamis.storage.files import PartRef
from tamis.world import world

SWITCH = "TAMIS_AUDIT"
"""Environment variable: ``raise`` makes a violation an error (for tests), else it is logged.
"""

_LOG = logging.getLogger("tamis")
_CLAIM_FIELDS: dict[str, Any] = {"all_match": False, "candidates": None}
"""The fields of a part reference that make claims about its rows, with the values that claim nothing."""


class Proof(Enum):
    """The claim about a part that its audit checks."""

    NONE = "was skipped"
    ALL = "was said to match wholly"
    BLOCKS = "was read in part"


OnViolation = Callable[[str, str], None]
"""Callback that receives a part id and a description of the wrong proof."""


def audit_sample(
    ids: list[str], sizes: np.ndarray[Any, np.dtype[np.int64]], percent: float, budget: int
) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Return a mask of the parts to audit, within ``budget`` bytes.

    Chosen by a hash of the ids, so that every run of a query checks the same parts.
    """
    if not percent:
        return np.zeros(len(ids), dtype=np.bool_)
    chosen = np.array([zlib.crc32(i.encode()) % 10_000 < percent * 100 for i in ids], dtype=np.bool_) & (
        sizes <= budget
    )
    return chosen & (np.cumsum(np.where(chosen, sizes, 0)) <= budget)


def read_audited(
    ref: PartRef, proof: Proof, spec: ReadSpec, counters: ReadCounters, on_violation: OnViolation
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of ``ref`` read without skipping; call ``on_violation`` if ``proof`` does not hold.

    A claim is not checked if the reader leaves a conjunct to Spark, since rows that it yields need not match, or if
    only Spark can test one of the rows. Raises the filter's errors. If a skipped part cannot be read or tested at
    all, the query continues: it did not need that part.
    """
    clues = _without_claims(ref)
    rows, cost, checkable = 0, ReadCounters(), evaluates_all(spec)
    try:
        try:
            for batch in read_part(replace(ref, **clues), replace(spec, block_statistics=False), cost):
                rows += len(batch)
                yield batch
        finally:
            counters.merge(cost if proof is not Proof.NONE else cost.without_blocks())
    except InvalidInput as error:
        if proof is Proof.NONE and is_left_to_spark(str(error)):
            if not rows:
                _log_unchecked(ref, error)
                return
            if checkable and spec.errors == "raise":
                on_violation(ref.part_id, f"it {proof.value}, but rows match")
        if checkable:
            _compare(ref, proof, spec, counters, str(error), on_violation)
        raise
    except (CorruptData, NotFound, StoreUnavailable) as error:
        if proof is not Proof.NONE:
            raise
        _log_unchecked(ref, error)
        return
    except GeneratorExit:  # the consumer stopped: the rows so far may already disprove the claim
        if rows and proof is Proof.NONE and checkable:
            with suppress(TamisError):  # a closing consumer gets no errors; ``on_violation`` has recorded it
                if spec.errors == "keep":
                    _compare(ref, proof, spec, counters, rows, on_violation)
                else:
                    on_violation(ref.part_id, f"it {proof.value}, but rows match")
        raise
    if checkable:
        _compare(ref, proof, spec, counters, rows, on_violation)


def _compare(
    ref: PartRef, proof: Proof, spec: ReadSpec, counters: ReadCounters, without: int | str, on_violation: OnViolation
) -> None:
    """Compare with the claim.

    ``without``: the number of rows read without skipping, or the filter's error.
    """
    claimed = 0 if proof is Proof.NONE else _count_or_error(replace(ref, all_match=proof is Proof.ALL), spec, counters)
    if claimed == without or (isinstance(claimed, str) and isinstance(without, str)):
        return
    if _is_unknown(ref, without, claimed):
        return
    if spec.errors == "keep":  # rows that only Spark can test, such as those with newer letters, disprove nothing
        without, certain = count_certain_matches(ref, spec, counters), replace(spec, errors="raise")
        marked = replace(ref, all_match=proof is Proof.ALL)
        claimed = 0 if proof is Proof.NONE else _count_or_error(marked, certain, counters)
        if (claimed == without and not isinstance(without, str)) or _is_unknown(ref, without, claimed):
            return
    shown = [f"its filter fails: {x}" if isinstance(x, str) else f"{x} rows match" for x in (without, claimed)]
    on_violation(
        ref.part_id,
        f"it {proof.value}, but {shown[0]}" + ("" if proof is Proof.NONE else f", with skipping {shown[1]}"),
    )


def _is_unknown(ref: PartRef, *found: int | str) -> bool:
    """Whether one of the numbers of rows is not known, because only Spark can test a row. Logs that."""
    unknown = next((one for one in found if isinstance(one, str) and is_left_to_spark(one)), None)
    if unknown is not None:
        _log_unchecked(ref, unknown)
    return unknown is not None


def _log_unchecked(ref: PartRef, error: TamisError | str) -> None:
    _LOG.warning("AUDIT: part %s could not be checked: %s", ref.part_id, error)


def _without_claims(ref: PartRef) -> dict[str, Any]:
    return {f.name: _CLAIM_FIELDS[f.name] for f in fields(ref) if f.name in _CLAIM_FIELDS}


def count_certain_matches(ref: PartRef, spec: ReadSpec, counters: ReadCounters) -> int | str:
    """Return the number of rows of ``ref`` that match for certain, read without skipping, or the filter's error."""
    certain = replace(spec, errors="raise", block_statistics=False)
    return _count_or_error(replace(ref, **_without_claims(ref)), certain, counters)


def _count_or_error(ref: PartRef, spec: ReadSpec, counters: ReadCounters) -> int | str:
    """Return the number of rows read with skipping, or the filter's error. Counts the cost, not the rows."""
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


def audit_is_strict() -> bool:
    """Whether a violation is an error."""
    return world().environment().get(SWITCH, "").strip().lower() == "raise"


def audit_violation(table: str, filter_text: str | None, part: str, problem: str) -> TamisError:
    """Build the error that is raised or logged for a violation."""
    return CorruptData(
        f"AUDIT: what was proved of part {part} of {table} under the filter {filter_text!r} is wrong: {problem}.",
        code="AUDIT_FAILED",
        name=part,
        remedy="Set tamis.stats.filter=off (and tamis.index.use=off) and report this.",
    )


def log_violation(error: TamisError) -> None:
    """Log a violation."""
    _LOG.error("%s", error)
