"""Table properties that name columns and paths in documents, through changes of the schema."""

from __future__ import annotations

from collections.abc import Mapping

from tamis.core.stats.kept_statistics import renamed_place
from tamis.core.types import Schema
from tamis.core.types.identifiers import split_list

STATS_KEEP = "tamis.stats.keep"
WRITE_SHRED = "tamis.write.shred"
PLACE_PROPERTIES = frozenset({STATS_KEEP, WRITE_SHRED})


def renamed_properties(properties: Mapping[str, str], before: Schema, after: Schema) -> dict[str, str]:
    """Return the properties under the names of ``after``.

    A name follows its column. The name of a dropped column is removed, because a later column may have it; so is a
    property that names nothing any more. A name that is none of ``before`` stays.
    """
    if before.fields == after.fields:
        return dict(properties)
    found = {
        key: _renamed_list(value, before, after) if _names_places(key) else value for key, value in properties.items()
    }
    return {key: value for key, value in found.items() if value or not properties[key]}


def _names_places(key: str) -> bool:
    return key.lower() in PLACE_PROPERTIES


def _renamed_list(text: str, before: Schema, after: Schema) -> str:
    names = split_list(text)
    renamed = [renamed_place(name, before, after) for name in names]
    return text if renamed == names else ", ".join(name for name in renamed if name is not None)
