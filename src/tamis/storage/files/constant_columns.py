"""Columns of an external part that have one value in all rows, such as the partition values of its folder."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache

import pyarrow as pa

from tamis.core.stats.statistics_columns import (
    BOUNDS,
    COUNTS,
    HI_EXACT,
    LO_EXACT,
    bound_name,
    count_name,
    has_bounds,
)
from tamis.core.types import DOUBLE, FLOAT, Field, Schema
from tamis.core.types.arrow import to_arrow_type
from tamis.core.types.defaults import initial_scalar
from tamis.errors import CorruptData


def constant_columns(text: str | None, schema: Schema) -> Mapping[int, pa.Scalar]:
    """Return the values in ``text`` (JSON: column id → value, as for ``Field.initial_default``) by column id.

    Raises ``CorruptData`` for a value that is not of its column's type.
    """
    return _decoded(text, schema.fields) if text else {}


@lru_cache(maxsize=4096)
def _decoded(text: str, fields: tuple[Field, ...]) -> Mapping[int, pa.Scalar]:
    known = {f.id: f for f in fields}
    try:
        constants = {int(column): value for column, value in json.loads(text).items()}
    except (ValueError, AttributeError, TypeError) as error:
        raise CorruptData(
            f"The constants of a part are not JSON by column id: {text[:80]!r}.",
            code="BAD_CONSTANTS",
            name=text[:80],
            remedy="Restore the table's log from a backup.",
        ) from error
    found: dict[int, pa.Scalar] = {}
    for column, value in constants.items():
        if column in known:
            field = known[column]
            null = pa.scalar(None, to_arrow_type(field.type))
            found[column] = null if value is None else initial_scalar(replace(field, initial_default=value))
    return found


def constant_statistics(
    constants: Mapping[int, pa.Scalar], schema: Schema, rows: Sequence[int], ids: frozenset[int] | None = None
) -> dict[str, pa.Array]:
    """Return statistics columns of constants: one row for each number of rows."""
    columns: dict[str, pa.Array] = {}
    for column, value in constants.items():
        if ids is None or column in ids:
            columns |= _of_one(column, value, schema, rows)
    return columns


def _of_one(column: int, value: pa.Scalar, schema: Schema, rows: Sequence[int]) -> dict[str, pa.Array]:
    data_type, count = schema.by_id[column].type, len(rows)
    nulls = [0] * count if value.is_valid else list(rows)
    found = {count_name(column, "nulls"): pa.array(nulls, COUNTS["nulls"])}
    if not has_bounds(data_type):
        return found
    number = value.as_py() if data_type in (FLOAT, DOUBLE) else None
    if data_type in (FLOAT, DOUBLE):
        is_nan = number is not None and math.isnan(number)
        found[count_name(column, "nans")] = pa.array(list(rows) if is_nan else [0] * count, COUNTS["nans"])
        if is_nan or number == 0:  # a zero may be of either sign: unknown costs nothing here
            return found
    for kind in BOUNDS:
        found[bound_name(column, data_type, kind)] = pa.repeat(value, count)
    exact = LO_EXACT | HI_EXACT if value.is_valid else 0
    found[count_name(column, "exact")] = pa.array([exact] * count, COUNTS["exact"])
    return found
