"""The metadata columns of rows that Spark may ask for: their place for row changes, and ``_metadata`` for users.

``_metadata`` has the names of Spark's own file sources. ``row_index`` counts the rows of a file, deleted ones too.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any
from urllib.parse import quote

import pyarrow as pa

from tamis.engine.part_reader.read_spec import ReadSpec
from tamis.storage.commit_log.external_sources import source_named
from tamis.storage.files import PartRef
from tamis.storage.object_store.location import locate_store

PART, POSITION = "_tamis_part", "_tamis_position"
"""Metadata columns: a row's part id, and its ordinal in the part."""
METADATA = "_metadata"
FIELDS = {"file_path": "string", "file_name": "string", "file_size": "long", "row_index": "long"}
"""The fields of ``_metadata``, with Spark's types."""
_RESERVED = re.compile(r"[\x00-\x20\x7f\"#%<>?\[\\\]^`{|}]")
"""What Java writes as %XX in the path of a URI. Letters of all scripts stay as they are."""
_ARROW = {"string": pa.string(), "long": pa.int64()}


def metadata_struct(fields: Sequence[str] = tuple(FIELDS)) -> dict[str, Any]:
    """Return the type of ``_metadata`` with these fields, as Spark writes it in JSON."""
    inner = [{"name": name, "type": FIELDS[name], "nullable": False, "metadata": {}} for name in fields]
    return {"type": "struct", "fields": inner}


def file_url(spec: ReadSpec, ref: PartRef) -> str:
    """Return the URL of a part's file, as Spark's own file sources write it; an adopted file stays in its source."""
    place = spec.url if ref.source is None else source_named(spec.sources, ref.source, ref.path).root
    root = locate_store(place).url
    url = f"{root if '://' in root else f'file:{root}'}/{ref.path}"
    return _RESERVED.sub(lambda found: quote(found[0], safe=""), url)


def metadata_array(fields: Sequence[str], ref: PartRef, url: str, ordinals: pa.Array) -> pa.StructArray:
    """Return ``_metadata`` of rows of one part. ``url`` is the part's."""
    values: dict[str, Any] = {"file_path": url, "file_name": url.rpartition("/")[2], "file_size": ref.bytes}
    columns = [
        ordinals if name == "row_index" else pa.repeat(pa.scalar(values[name], _ARROW[FIELDS[name]]), len(ordinals))
        for name in fields
    ]
    return pa.StructArray.from_arrays(columns, fields=metadata_type(fields))


def metadata_type(fields: Sequence[str]) -> list[pa.Field]:
    return [pa.field(name, _ARROW[FIELDS[name]], nullable=False) for name in fields]
