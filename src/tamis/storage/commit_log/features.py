"""What a table may ask of whoever reads or writes it, by name.

A table's head lists the features that its readers and its writers must know; a name that is not below is refused, by
name. The plain format asks for none. Adding a feature to the format is adding its name here, with the code that knows it.
"""

from __future__ import annotations

from collections.abc import Iterable

from tamis.errors import InvalidInput

DELETION_VECTORS = "deletion-vectors"
"""Rows of a part are deleted while its file stays: a reader that ignored it would see them."""

READER_FEATURES: frozenset[str] = frozenset({DELETION_VECTORS})
"""Features that this version can read."""

WRITER_FEATURES: frozenset[str] = frozenset({"indexes"})
"""Features that this version can write; a writer must know the reader features too."""


def check_reader(features: Iterable[str], table: str) -> None:
    """Raises ``InvalidInput`` (``UNSUPPORTED_FEATURE``) where reading ``table`` needs what this version does not know."""
    _refuse(set(features) - READER_FEATURES, table, "read")


def check_writer(reader: Iterable[str], writer: Iterable[str], table: str) -> None:
    """Raises ``InvalidInput`` (``UNSUPPORTED_FEATURE``) where writing ``table`` needs what this version does not know."""
    check_reader(reader, table)
    _refuse(set(writer) - WRITER_FEATURES - READER_FEATURES, table, "write")


def _refuse(unknown: set[str], table: str, verb: str) -> None:
    if unknown:
        names = ", ".join(sorted(unknown))
        raise InvalidInput(
            f"To {verb} the table {table}, this version would have to know: {names}.",
            code="UNSUPPORTED_FEATURE",
            name=names,
            remedy="Upgrade tamis.",
        )
