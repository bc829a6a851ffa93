"""Partition values of a Delta table as constants of its files, and as their statistics."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from tamis.bridges.sources.delta_schema import Place
from tamis.core.stats.statistics_columns import bound_name, count_name, has_bounds
from tamis.core.types import BINARY, TIMESTAMP, String
from tamis.core.types.arrow import to_arrow_type
from tamis.core.types.defaults import initial_json
from tamis.errors import CorruptData, InvalidInput


def partition_constants(
    values: pa.Array, places: Sequence[Place], rows: pa.Array, zone: str | None
) -> dict[str, pa.Array]:
    """Return ``constants``, and the statistics columns of partition columns.

    ``values`` are the JSON objects of the log. ``zone`` is the time zone of timestamps that are written without one.
    Raises ``CorruptData`` (``DELTA_LOG_DAMAGED``) for a value that is not of its column's type, ``InvalidInput``
    (``PARTITION_TYPE``, ``PARTITION_ZONE``).
    """
    if not places:
        return {"constants": pa.nulls(len(values), pa.string())}
    distinct = values.dictionary_encode()
    objects = [json.loads(text) for text in distinct.dictionary.to_pylist()]
    out: dict[str, pa.Array] = {}
    pieces = []
    for place in places:
        texts = pa.array([_text_of(o or {}, place.physical[0]) or None for o in objects], pa.string())
        typed = _typed(texts, place, zone)
        encoded = [json.dumps(f"{place.field.id}") + ":" + json.dumps(initial_json(v)) for v in typed]
        pieces.append(pa.array(encoded, pa.string()))
        out |= _known(typed.take(distinct.indices), place, rows)
    whole = pc.binary_join_element_wise(*pieces, ",")
    texts = pc.binary_join_element_wise(pa.scalar("{"), whole, pa.scalar("}"), "")
    return {"constants": texts.take(distinct.indices), **out}


def _text_of(values: Mapping[str, str | None], name: str) -> str | None:
    """Return the value of a partition column, whose name a writer may have given in another case.

    One that is not there is NULL: some writers leave NULLs out, as Delta's own readers allow.
    """
    if name in values:
        return values[name]
    found = [value for other, value in values.items() if other.lower() == name.lower()]
    return found[0] if len(found) == 1 else None


def _known(values: pa.Array, place: Place, rows: pa.Array) -> dict[str, pa.Array]:
    """Return what a constant says about all rows of its file."""
    identifier, data_type = place.field.id, place.field.type
    zero = pa.scalar(0, pa.int64())
    out = {count_name(identifier, "nulls"): pc.if_else(values.is_null(), rows, zero)}
    if has_bounds(data_type):
        bound = values
        if pa.types.is_floating(values.type):
            bound = pc.if_else(pc.fill_null(pc.is_nan(values), False), pa.scalar(None, values.type), values)
        out[bound_name(identifier, data_type, "lo")] = bound
        out[bound_name(identifier, data_type, "hi")] = bound
    return out


def _typed(texts: pa.Array, place: Place, zone: str | None) -> pa.Array:
    data_type = place.field.type
    if isinstance(data_type, String):
        return texts
    if data_type == BINARY or data_type.children:
        raise InvalidInput(
            f"The partition column {place.field.name!r} is {data_type}, which Delta's writers write differently.",
            code="PARTITION_TYPE",
            name=place.field.name,
            remedy="Copy the rows with Spark.",
        )
    try:
        return (
            _instants(texts, place.field.name, zone) if data_type == TIMESTAMP else texts.cast(to_arrow_type(data_type))
        )
    except pa.ArrowException as error:
        raise CorruptData(
            f"The partition column {place.field.name!r} has a value that is no {data_type}: {error}",
            code="DELTA_LOG_DAMAGED",
            name=place.field.name,
            remedy="Repair the Delta table's log.",
        ) from error


def _instants(texts: pa.Array, name: str, zone: str | None) -> pa.Array:
    """Return timestamps: those of a form with a zone as they are, others as local times in ``zone``."""
    kind = to_arrow_type(TIMESTAMP)
    zoned = pc.fill_null(pc.match_substring_regex(texts, r"(Z|[+-]\d\d:?\d\d)$"), True)
    local = pc.if_else(zoned, pa.scalar(None, pa.string()), texts)
    if local.null_count == len(local):
        return texts.cast(kind)
    if zone is None:
        raise InvalidInput(
            f"The partition column {name!r} has timestamps without a time zone, such as "
            f"{local.drop_null()[0].as_py()!r}. They are in that of the system that wrote them.",
            code="PARTITION_ZONE",
            name=name,
            remedy="Name it: zone='UTC', or the time zone of the Spark sessions that wrote the table.",
        )
    plain = local.cast(pa.timestamp("us"))
    there = pc.assume_timezone(plain, zone, ambiguous="earliest", nonexistent="latest").cast(kind)
    zoned_times = pc.if_else(zoned, texts, pa.scalar(None, pa.string())).cast(kind)
    return pc.coalesce(zoned_times, there)
