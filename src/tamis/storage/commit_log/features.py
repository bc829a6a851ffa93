"""Named features that a table can require of its readers or writers.

A table's head lists the features that its readers and its writers must know; an unknown name is refused with
an error that names it. The plain format requires none. To add a feature to the format, add its name here with
the code that implements it.
"""

from __future__ import annotations

from collections.abc import Iterable

from tamis.errors import InvalidInput

DELETION_VECTORS = "deletion-vectors"
"""Rows of a part are deleted while its file stays: a reader without this feature would still see them."""

CHECK_CONSTRAINTS = "check-constraints"
"""New rows are tested by the CHECK constraints of the head: a writer without this feature would not test them."""

EXTERNAL_PARTS = "external-parts"
"""Parts lie outside of the table, in the files of a source: a reader without this feature would look for its own."""

EXPORTED = "exported"
"""The table is a plain table of another format now. No writer knows it: what others write is not in the log."""

FOLLOWING = "follows-source"
"""The table's rows are those of a source: a writer without this feature would commit others beside them."""

READER_FEATURES: frozenset[str] = frozenset({DELETION_VECTORS, EXTERNAL_PARTS})
"""Features that this version can read."""

WRITER_FEATURES: frozenset[str] = frozenset(
    {"generated-columns", "identity-columns", "indexes", CHECK_CONSTRAINTS, FOLLOWING}
)
"""Features that this version can write; a writer must know the reader features too."""


def check_reader(features: Iterable[str], table: str) -> None:
    """Raise ``InvalidInput`` (``UNSUPPORTED_FEATURE``) if this version cannot read ``table``."""
    _refuse(set(features) - READER_FEATURES, table, "read")


def check_writer(reader: Iterable[str], writer: Iterable[str], table: str) -> None:
    """Raise ``InvalidInput`` if this version cannot write ``table`` (``UNSUPPORTED_FEATURE``, ``TABLE_ENDED``)."""
    check_not_ended(writer, table)
    check_reader(reader, table)
    _refuse(set(writer) - WRITER_FEATURES - READER_FEATURES, table, "write")


def check_not_ended(writer: Iterable[str], table: str) -> None:
    """Raise ``InvalidInput`` (``TABLE_ENDED``) if ``table`` has ended with an export."""
    if EXPORTED in writer:
        raise InvalidInput(
            f"The table {table} has ended with an export: it is a plain Delta or Iceberg table now.",
            code="TABLE_ENDED",
            name=table,
            remedy="Use a library of that format. Earlier versions can be opened by their numbers.",
        )


def _refuse(unknown: set[str], table: str, verb: str) -> None:
    if unknown:
        names = ", ".join(sorted(unknown))
        raise InvalidInput(
            f"To {verb} the table {table}, this version would have to know: {names}.",
            code="UNSUPPORTED_FEATURE",
            name=names,
            remedy="Upgrade tamis.",
        )
