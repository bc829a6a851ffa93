"""Dates and times of writers that used the Julian calendar before 15 October 1582, as Spark 2 and Hive did.

Dates are rebased: the day that such a writer meant is the one of the same year, month and day. Times before 1900 also
depend on the writer's time zone, which had other offsets then; they are refused by name.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tamis.errors import InvalidInput
from tamis.storage.files.column_conversion import over_values, plain_list

CUTOVER = -141_427
"""15 October 1582 as days since 1970: from here on, both calendars agree."""
SAME_TIMES = -2_208_988_800_000_000
"""1900-01-01 as microseconds since 1970: from here on, instants agree in every time zone."""
_JULIAN_DAY = 2_440_588
"""The Julian day number of 1970-01-01."""


@dataclass(frozen=True, slots=True)
class LegacyCalendar:
    """Which values of a file may be of the old calendar."""

    dates: bool = False
    """Also times that are stored as 64-bit numbers."""
    int96: bool = False

    def __bool__(self) -> bool:
        return self.dates or self.int96


def legacy_calendar(notes: Mapping[bytes, bytes] | None) -> LegacyCalendar:
    """Return what a footer's notes say, by the rules of Spark's reader; Hive says it by ``writer.date.proleptic``."""
    notes = notes or {}
    version = notes.get(b"org.apache.spark.version")
    if version is None:
        hive = notes.get(b"writer.date.proleptic", b"true").lower() == b"false"
        return LegacyCalendar(hive, hive)
    said = version.decode("utf-8", "replace")
    return LegacyCalendar(
        said < "3.0.0" or b"org.apache.spark.legacyDateTime" in notes,
        said < "3.1.0" or b"org.apache.spark.legacyINT96" in notes,
    )


def rebase_dates(array: pa.Array, calendar: LegacyCalendar, path: str) -> pa.Array:
    """Return a column with the dates that its writer meant.

    Raises ``InvalidInput`` (``LEGACY_CALENDAR``) for a time before 1900.
    """
    kind = array.type
    if pa.types.is_date(kind):
        return _dates(array) if calendar.dates else array
    if pa.types.is_timestamp(kind):
        _check_times(array, path)
        return array
    if pa.types.is_struct(kind):
        children = [rebase_dates(array.field(at), calendar, path) for at in range(kind.num_fields)]
        fields = [f.with_type(child.type) for f, child in zip(kind, children, strict=True)]
        return pa.StructArray.from_arrays(children, fields=fields, mask=array.is_null() if array.null_count else None)
    if pa.types.is_map(kind):
        keys, items = rebase_dates(array.keys, calendar, path), rebase_dates(array.items, calendar, path)
        fields = [kind.key_field.with_type(keys.type), kind.item_field.with_type(items.type)]
        return over_values(array, pa.map_(*fields), pa.StructArray.from_arrays([keys, items], fields=fields))
    if pa.types.is_nested(kind):
        array = plain_list(array)
        values = rebase_dates(array.values, calendar, path)
        return over_values(array, pa.list_(array.type.value_field.with_type(values.type)), values)
    return array


def _dates(array: pa.Array) -> pa.Array:
    days = pc.fill_null(array.cast(pa.int32()), 0).to_numpy(zero_copy_only=False).astype(np.int64)
    if not len(days) or days.min() >= CUTOVER:
        return array
    fixed = np.where(days < CUTOVER, gregorian_days(days), days).astype(np.int32)
    mask = array.is_null().to_numpy(zero_copy_only=False) if array.null_count else None
    return pa.array(fixed, pa.int32(), mask=mask).view(pa.date32())


def gregorian_days(days: np.ndarray[Any, np.dtype[np.int64]]) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Return days since 1970 of the proleptic calendar for days of the Julian one, by year, month and day."""
    # from a Julian day number to the Julian calendar's year, month, day (Richards' algorithm)
    f = days + _JULIAN_DAY + 1401
    e = 4 * f + 3
    h = 5 * ((e % 1461) // 4) + 2
    day, month = (h % 153) // 5 + 1, (h // 153 + 2) % 12 + 1
    year = e // 1461 - 4716 + (14 - month) // 12
    # from the proleptic Gregorian calendar to a day number; 29 February may not exist there: it is 1 March, as in Spark
    y = year - (month <= 2)
    era = y // 400
    year_of_era = y - era * 400
    day_of_year = (153 * (month + np.where(month > 2, -3, 9)) + 2) // 5 + day - 1
    day_of_era = year_of_era * 365 + year_of_era // 4 - year_of_era // 100 + day_of_year
    found: np.ndarray[Any, np.dtype[np.int64]] = era * 146_097 + day_of_era - 719_468
    return found


def _check_times(array: pa.Array, path: str) -> None:
    first = pc.min(array.cast(pa.timestamp("us"), safe=False)).cast(pa.int64()).as_py()
    if first is not None and first < SAME_TIMES:
        raise InvalidInput(
            f"{path} holds times before 1900 of an old calendar, which depend on its writer's time zone.",
            code="LEGACY_CALENDAR",
            name=path,
            remedy="Rewrite the file with Spark 3 or newer, and adopt the source again.",
        )
