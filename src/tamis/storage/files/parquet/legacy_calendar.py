"""Dates and times of writers that used the Julian calendar before 15 October 1582, as Spark 2 and Hive did.

Dates are rebased: the day that such a writer meant is the one of the same year, month and day. Instants before 1900
also depend on the writer's time zone, which had other offsets then; they are refused by name. A TIMESTAMP_NTZ is as it
is stored: Spark never rebased one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tamis.core.types import TIMESTAMP, Array, Field, Map, Struct
from tamis.errors import InvalidInput
from tamis.storage.files.column_conversion import Names, plain_list, replace_values

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
    """Also instants that are stored as 64-bit numbers."""
    int96: bool = False
    """Instants that are stored as INT96."""

    def __bool__(self) -> bool:
        return self.dates or self.int96


def file_calendar(kind: str, notes: Mapping[bytes, bytes] | None) -> LegacyCalendar:
    """Return which values of a file in a source of this kind may be of the old calendar.

    In Iceberg none is, whatever the notes say: its readers and its statistics count days as the file stores them.
    """
    return LegacyCalendar() if kind == "iceberg" else _noted_calendar(notes)


def _noted_calendar(notes: Mapping[bytes, bytes] | None) -> LegacyCalendar:
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


@dataclass(frozen=True, slots=True)
class Rebasing:
    """How the values of a file become those that its writer meant, by the rules of Spark's reader."""

    calendar: LegacyCalendar
    int96: frozenset[int]
    """The columns, at any depth, that the file stores as INT96."""
    names: Names
    """How the file's fields are found."""

    def rebase(self, array: pa.Array, target: Field, path: str) -> pa.Array:
        """Return a column with the dates that its writer meant; what ``target`` lacks stays as it is.

        Raises ``InvalidInput`` (``LEGACY_CALENDAR``), which names ``path``, for an instant before 1900.
        """
        kind = array.type
        match target.type:
            case Struct(fields) if pa.types.is_struct(kind):
                return self._struct(array, fields, path)
            case Array(element) if pa.types.is_nested(kind):
                array = plain_list(array)
                return _list_of(array, self.rebase(array.values, element, path))
            case Map(key, value) if pa.types.is_map(kind):
                return _map_of(array, self.rebase(array.keys, key, path), self.rebase(array.items, value, path))
        if pa.types.is_date(kind):
            return _dates(array) if self.calendar.dates else array
        old = self.calendar.int96 if target.id in self.int96 else self.calendar.dates
        if old and pa.types.is_timestamp(kind) and target.type == TIMESTAMP:
            _check_times(array, path)
        return array

    def _struct(self, array: pa.StructArray, fields: tuple[Field, ...], path: str) -> pa.StructArray:
        kind = array.type
        children = [array.field(at) for at in range(kind.num_fields)]
        for target, at in zip(fields, self.names.positions(kind, fields), strict=True):
            if at is not None:
                children[at] = self.rebase(children[at], target, path)
        return _struct_of(array, children)


def rebase_batch(batch: pa.RecordBatch, calendar: LegacyCalendar, stored: Sequence[str], path: str) -> pa.RecordBatch:
    """Return the columns of a file with the dates that its writer meant, where no table says what they are.

    ``stored`` has the physical types of the file's leaves, in order; an INT96 is an instant. Raises as
    ``Rebasing.rebase``.
    """
    leaves = iter(stored)
    columns = [
        _rebased(array, calendar, leaves, f"Column {f.name!r} of {path}")
        for f, array in zip(batch.schema, batch.columns, strict=True)
    ]
    fields = [f.with_type(array.type) for f, array in zip(batch.schema, columns, strict=True)]
    return pa.RecordBatch.from_arrays(columns, schema=pa.schema(fields))


def _rebased(array: pa.Array, calendar: LegacyCalendar, leaves: Iterator[str], path: str) -> pa.Array:
    kind = array.type
    if pa.types.is_struct(kind):
        children = [array.field(at) for at in range(kind.num_fields)]
        return _struct_of(array, [_rebased(child, calendar, leaves, path) for child in children])
    if pa.types.is_map(kind):
        keys = _rebased(array.keys, calendar, leaves, path)
        return _map_of(array, keys, _rebased(array.items, calendar, leaves, path))
    if pa.types.is_nested(kind):
        array = plain_list(array)
        return _list_of(array, _rebased(array.values, calendar, leaves, path))
    is_int96 = next(leaves) == "INT96"
    if pa.types.is_date(kind):
        return _dates(array) if calendar.dates else array
    if pa.types.is_timestamp(kind) and (calendar.int96 if is_int96 else calendar.dates and kind.tz is not None):
        _check_times(array, path)
    return array


def _struct_of(array: pa.StructArray, children: list[pa.Array]) -> pa.StructArray:
    """Return the struct with other values of its fields."""
    found = [f.with_type(child.type) for f, child in zip(array.type, children, strict=True)]
    return pa.StructArray.from_arrays(children, fields=found, mask=array.is_null() if array.null_count else None)


def _list_of(array: pa.ListArray, values: pa.Array) -> pa.ListArray:
    return replace_values(array, pa.list_(array.type.value_field.with_type(values.type)), values)


def _map_of(array: pa.MapArray, keys: pa.Array, items: pa.Array) -> pa.MapArray:
    entries = [array.type.key_field.with_type(keys.type), array.type.item_field.with_type(items.type)]
    return replace_values(array, pa.map_(*entries), pa.StructArray.from_arrays([keys, items], fields=entries))


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
            remedy="Rewrite the file with Spark, both spark.sql.parquet.datetimeRebaseModeInWrite and "
            "spark.sql.parquet.int96RebaseModeInWrite being CORRECTED. If it is adopted, adopt the source again.",
        )
