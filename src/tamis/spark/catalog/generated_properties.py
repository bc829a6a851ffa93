"""Generated columns as table properties, because Spark prints no expressions: ``tamis.generated.day``.

DESCRIBE EXTENDED and SHOW CREATE TABLE show them with their time zone, and CREATE TABLE takes them back.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace

from tamis.core.types import Generation, Schema
from tamis.errors import InvalidInput

PREFIX = "tamis.generated."


def generated_properties(schema: Schema) -> dict[str, str]:
    """Return a property for each generated column, as JSON."""
    return {PREFIX + f.name: json.dumps(f.generated.to_json()) for f in schema if f.generated is not None}


def with_generated(schema: Schema, properties: Mapping[str, str]) -> Schema:
    """Return ``schema`` with the generated columns that ``properties`` define.

    Raises ``NotFound`` for an unknown column, ``InvalidInput`` (``BAD_PROPERTY``) for another form.
    """
    fields = {f.name: f for f in schema}
    for key, text in properties.items():
        if key.startswith(PREFIX):
            found = schema.find(key.removeprefix(PREFIX))[0]
            fields[found.name] = replace(found, generated=_read(key, text))
    return replace(schema, fields=tuple(fields.values()))


def _read(key: str, text: str) -> Generation:
    try:
        return Generation.from_json(json.loads(text))
    except (ValueError, TypeError, KeyError) as error:
        raise InvalidInput(
            f"The property {key!r} cannot be {text!r}.",
            code="BAD_PROPERTY",
            name=key,
            remedy="Write GENERATED ALWAYS AS (…) beside the column, or what SHOW CREATE TABLE prints.",
        ) from error
