"""Generated and identity columns as table properties, because Spark prints neither: ``tamis.generated.day``.

DESCRIBE EXTENDED and SHOW CREATE TABLE show them with their time zone, and CREATE TABLE takes them back.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, TypeVar

from tamis.core.types import Generation, Identity, Schema
from tamis.errors import InvalidInput

T = TypeVar("T")

GENERATED, IDENTITY = "tamis.generated.", "tamis.identity."
COMPUTED = (GENERATED, IDENTITY)
"""The prefixes of these properties."""


def generated_properties(schema: Schema) -> dict[str, str]:
    """Return a property for each generated or identity column, as JSON."""
    generated = {GENERATED + f.name: json.dumps(f.generated.to_json()) for f in schema if f.generated is not None}
    return generated | {IDENTITY + f.name: json.dumps(f.identity.to_json()) for f in schema if f.identity is not None}


def apply_generated_properties(schema: Schema, properties: Mapping[str, str]) -> Schema:
    """Return ``schema`` with the generated and identity columns that ``properties`` define.

    Raises ``NotFound`` for an unknown column, ``InvalidInput`` (``BAD_PROPERTY``) for another form.
    """
    fields = {f.name: f for f in schema}
    for key, text in properties.items():
        if key.startswith(GENERATED):
            found = schema.find(key.removeprefix(GENERATED))[0]
            fields[found.name] = replace(found, generated=_read(Generation.from_json, key, text))
        elif key.startswith(IDENTITY):
            found = schema.find(key.removeprefix(IDENTITY))[0]
            fields[found.name] = replace(found, identity=_read(Identity.from_json, key, text))
    return replace(schema, fields=tuple(fields.values()))


def _read(form: Callable[[dict[str, Any]], T], key: str, text: str) -> T:
    try:
        return form(json.loads(text))
    except (ValueError, TypeError, KeyError) as error:
        raise InvalidInput(
            f"The property {key!r} cannot be {text!r}.",
            code="BAD_PROPERTY",
            name=key,
            remedy="Write GENERATED ALWAYS AS (…) beside the column, or what SHOW CREATE TABLE prints.",
        ) from error
