"""The paths of tables and namespaces: ``db.t`` lies at ``<warehouse>/db/t``.

A name always maps to the same path, which is never outside the warehouse.
"""

from __future__ import annotations

from collections.abc import Sequence

from tamis.errors import InvalidInput

METADATA_TABLES = (
    *("history", "snapshots", "segments", "parts", "columns", "schemas", "indexes", "constraints"),
    "sources",
)


def relative_path(names: Sequence[str]) -> str:
    """The path under the warehouse. Spaces, quotes, dots and letters of any script are kept.

    Raises ``InvalidInput`` (``BAD_NAME``) for a name that would leave the warehouse, or that some store
    cannot hold.
    """
    for name in names:
        why = _fault(name)
        if why:
            raise InvalidInput(
                f"{name!r} cannot name a table or namespace: {why}.",
                code="BAD_NAME",
                name=name,
                remedy="Choose another name.",
            )
    return "/".join(names)


def can_exist(names: Sequence[str]) -> bool:
    """Whether there can be a table or namespace of that name.

    Spark asks the current catalog for the table ``parquet./data/file`` before it reads the file of that path.
    """
    return not any(map(_fault, names))


def _fault(name: str) -> str | None:
    if not name.strip() or name != name.strip():
        return "it is empty, or begins or ends with a space"
    if set(name) & set("/\\") or not name.isprintable():
        return "it has a slash or a character that cannot be seen"
    if name.startswith((".", "_tamis")):
        return "it begins with a dot or with _tamis"
    if len(name.encode()) > 200:
        return "it is longer than 200 bytes"
    return None
