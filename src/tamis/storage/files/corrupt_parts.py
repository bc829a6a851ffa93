"""The error for a part that differs from what was committed, the same for every format."""

from __future__ import annotations

import pyarrow as pa

from tamis.errors import CorruptData
from tamis.storage.files.protocol import PartRef

DAMAGED_CONTENT = (
    ValueError,
    LookupError,
    TypeError,
    AttributeError,
    ArithmeticError,
    RecursionError,
    pa.ArrowException,
)
"""What decoders of metadata raise for damaged bytes."""


def corrupt_part(ref: PartRef, problem: str, code: str = "PART_CORRUPT") -> CorruptData:
    if ref.source is not None:
        return CorruptData(
            f"The source's file {ref.path} (part {ref.part_id}) {problem}.",
            code=code,
            name=ref.path,
            remedy="Put the file back as it was when it was adopted, or adopt the source again.",
        )
    return CorruptData(
        f"Part {ref.part_id} ({ref.path}) {problem}.",
        code=code,
        name=ref.path,
        remedy="Restore the file from a backup, or the table to a version without it.",
    )


def missing_part(ref: PartRef) -> CorruptData:
    """The error for a part whose file is gone, by damage or by a vacuum while its version was read."""
    if ref.source is not None:
        return corrupt_part(ref, "is missing", "PART_MISSING")
    return CorruptData(
        f"Part {ref.part_id} ({ref.path}) is missing.",
        code="PART_MISSING",
        name=ref.path,
        remedy=(
            "Read the newest version: a vacuum may have removed the one that was read. "
            "Restore the file from a backup, or the table to a version without it, if that fails, too."
        ),
    )
