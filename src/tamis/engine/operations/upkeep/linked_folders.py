"""Refuses to remove files through symbolic links within a table's folder on a local disk."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from tamis.errors import InvalidInput
from tamis.storage.object_store import Store


def check_links(store: Store, folders: Iterable[str]) -> None:
    """Raise ``InvalidInput`` (``LINKED_FOLDER``) if a link leads from one of ``folders`` to another place.

    What lies there may be another table's, whose log would have to say what is needed. The table's folder itself may be
    reached by a link.
    """
    if store.location.scheme != "file":
        return
    root = Path(store.location.path).resolve()
    for folder in folders:
        place = (root / folder).resolve()
        if place != root / folder:
            raise InvalidInput(
                f"The folder {folder} of the table {store.url} is a link to {place}.",
                code="LINKED_FOLDER",
                name=folder,
                remedy="Put the folder in the place of the link. For another disk, link the table's folder as a whole.",
            )
