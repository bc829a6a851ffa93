"""The schema of an Iceberg table as ours, with its field ids, and the names that files without ids have."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import time
from typing import Any

from tamis.bridges.sources.iceberg_metadata import metadata_damaged
from tamis.core.types import (
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INTEGER,
    LONG,
    NULL,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    VARIANT,
    Array,
    DataType,
    Decimal,
    Field,
    Map,
    Schema,
    Struct,
    Time,
)
from tamis.errors import InvalidInput

_TYPES = {
    "boolean": BOOLEAN,
    "int": INTEGER,
    "long": LONG,
    "float": FLOAT,
    "double": DOUBLE,
    "date": DATE,
    "time": Time(6),
    "timestamp": TIMESTAMP_NTZ,
    "timestamptz": TIMESTAMP,
    "string": STRING,
    "binary": BINARY,
    "unknown": NULL,
    "variant": VARIANT,
}
FIRST_PARTITION_ID = 1_000
_DECIMAL = re.compile(r"decimal\(\s*(\d+)\s*,\s*(\d+)\s*\)")
_REMEDIES = {
    "uuid": "Cast it to a string there",
    "fixed": "Change it to binary there",
    "timestamp_ns": "Change it to timestamp there: Spark has microseconds",
    "timestamptz_ns": "Change it to timestamptz there: Spark has microseconds",
}


def iceberg_schema(value: Mapping[str, Any], name: str) -> Schema:
    """Return a schema of the metadata ``name``.

    Raises ``InvalidInput`` (``UNSUPPORTED_TYPE``) naming the column whose type does not fit.
    """
    try:
        return Schema(tuple(_field(f, f["name"]) for f in value["fields"]))
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
        if isinstance(error, InvalidInput):
            raise
        raise metadata_damaged(name, f"schema: {error!r}") from error


def _field(value: Mapping[str, Any], path: str) -> Field:
    data_type = _type(value["type"], path)
    default = value.get("initial-default")
    if not isinstance(value["name"], str):
        raise TypeError(f"{value['name']!r} is not a name")
    return Field(
        value["name"],
        data_type,
        not value["required"],
        int(value["id"]),
        value.get("doc") or None,
        None if default is None else _default(default, data_type),
    )


def _type(value: Any, path: str) -> DataType:
    if isinstance(value, dict):
        match value["type"]:
            case "struct":
                return Struct(tuple(_field(f, f"{path}.{f['name']}") for f in value["fields"]))
            case "list":
                return Array(_inner("element", value, path))
            case "map":
                key = Field("key", _type(value["key"], f"{path}.key"), False, int(value["key-id"]))
                return Map(key, _inner("value", value, path))
    if isinstance(value, str):
        if found := _TYPES.get(value):
            return found
        if match := _DECIMAL.fullmatch(value):
            return Decimal(int(match[1]), int(match[2]))
    kind = str(value["type"] if isinstance(value, dict) else value)
    remedy = _REMEDIES.get(re.split(r"[\[(]", kind)[0], "Drop the column there")
    raise InvalidInput(
        f"Column {path!r} of the Iceberg table is {kind}, which Spark's types do not have.",
        code="UNSUPPORTED_TYPE",
        name=path,
        remedy=f"{remedy}, or copy the rows with Spark.",
    )


def _inner(name: str, value: Mapping[str, Any], path: str) -> Field:
    data_type = _type(value[name], f"{path}.{name}")
    return Field(name, data_type, not value[f"{name}-required"], int(value[f"{name}-id"]))


def _default(value: Any, data_type: DataType) -> Any:
    """Return an initial default in our JSON form: binaries in base64, maps as pairs, structs by name."""
    if value is None:
        return None
    match data_type:
        case Struct(fields):
            # the format keeps the defaults of a struct's fields at the fields themselves
            given = {f.name: _default(value.get(str(f.id)), f.type) for f in fields}
            return {f.name: f.initial_default if given[f.name] is None else given[f.name] for f in fields}
        case Array(element):
            return [_default(v, element.type) for v in value]
        case Map(key, item):
            pairs = zip(value["keys"], value["values"], strict=True)
            return [[_default(k, key.type), _default(v, item.type)] for k, v in pairs]
        case Time():
            at = time.fromisoformat(value)
            return ((at.hour * 60 + at.minute) * 60 + at.second) * 1_000_000 + at.microsecond
    return base64.b64encode(bytes.fromhex(value)).decode() if data_type == BINARY else value


def mapped_names(properties: Mapping[str, str], name: str) -> dict[int, tuple[str, ...]]:
    """Return the names that files without field ids may have for columns, by the table's name mapping.

    Columns that the schema dropped are among them; without a mapping, there are none.
    """
    text = properties.get("schema.name-mapping.default")
    if not text:
        return {}
    try:
        return dict(_mapped(json.loads(text)))
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise metadata_damaged(name, f"schema.name-mapping.default: {error}") from error


def _mapped(fields: Sequence[Mapping[str, Any]]) -> Iterator[tuple[int, tuple[str, ...]]]:
    for f in fields:
        if f.get("field-id") is not None:
            yield int(f["field-id"]), tuple(f["names"])
        yield from _mapped(f.get("fields") or ())


def identity_columns(fields: Sequence[Mapping[str, Any]], schema: Schema) -> list[tuple[int, Field]]:
    """Return the columns that a partition spec has as they are: the id of the partition field, and the column.

    Where format 1 leaves the ids out, they count from 1000.
    """
    return [
        (int(f.get("field-id", FIRST_PARTITION_ID + at)), schema.by_id[f["source-id"]])
        for at, f in enumerate(fields)
        if f["transform"] == "identity"
        and "source-id" in f
        and f["source-id"] in schema.paths
        and len(schema.paths[f["source-id"]]) == 1
    ]
