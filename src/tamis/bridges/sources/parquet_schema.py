"""The columns of foreign Parquet files as a table's: one schema of many files, or a refusal by name.

Types are those that Spark reads: INT96 is an instant, an ENUM is a text, and whole numbers without a sign are the next
wider ones. Files may lack columns, and have narrower types of them, as far as every value of the one is a value of the
other.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from tamis.bridges.sources.declared_texts import has_collation, merged_texts
from tamis.bridges.sources.source_footers import SourceFooter
from tamis.bridges.sources.spark_row_schema import ROW_SCHEMA, row_schema_of
from tamis.core.schema.widening import type_widens
from tamis.core.types import (
    BINARY,
    NULL,
    STRING,
    TIMESTAMP,
    Array,
    DataType,
    DayTimeInterval,
    Decimal,
    Field,
    Map,
    Schema,
    String,
    Struct,
)
from tamis.core.types.arrow import from_arrow_type
from tamis.errors import InvalidInput, TamisError

_DECIMAL_BYTES = 16
"""Bytes of the longest binaries that are read as decimals."""


class _Leaf(NamedTuple):
    """What Parquet says of a leaf: how it is stored, and what it is annotated as."""

    physical: str
    annotation: str
    length: int
    """Bytes of each value of a fixed length, else 0."""


@dataclass(frozen=True)
class _Reading:
    """How the leaves of one file, in order, are read."""

    path: str
    leaves: Iterator[_Leaf]
    binary_as_string: bool
    schema: pq.ParquetSchema

    def is_variant(self, kind: pa.StructType) -> bool:
        """Return whether a struct is a VARIANT, perhaps in pieces; one like it beside a VARIANT counts as one."""
        names = {f.name for f in kind}
        return "metadata" in names and not names.isdisjoint(("value", "typed_value")) and self._has_variants

    @cached_property
    def _has_variants(self) -> bool:
        """Whether a column is annotated so, which PyArrow shows in the text of the schema alone."""
        return "(Variant(" in str(self.schema)


def fields_of(footer: SourceFooter, *, binary_as_string: bool = False) -> tuple[Field, ...]:
    """Return the columns of a file, without ids. Raises ``InvalidInput`` (``UNSUPPORTED_TYPE``) naming one."""
    reading = _Reading(footer.path, iter(_leaves(footer)), binary_as_string, footer.metadata.schema)
    return _fields(list(footer.schema), reading, ())


def _leaves(footer: SourceFooter) -> tuple[_Leaf, ...]:
    columns = map(footer.metadata.schema.column, range(len(footer.metadata.schema)))
    return tuple(_Leaf(one.physical_type, one.logical_type.type, one.length) for one in columns)


def _fields(found: Sequence[pa.Field], reading: _Reading, above: tuple[str, ...]) -> tuple[Field, ...]:
    fields = tuple(Field(f.name, _type(f.type, reading, (*above, f.name))) for f in found)
    seen: dict[str, str] = {}
    for f in fields:
        other = seen.setdefault(f.name.lower(), f.name)
        if other is not f.name:
            raise InvalidInput(
                f"The file {reading.path} has two columns of the name {'.'.join((*above, f.name))!r}, ignoring case.",
                code="AMBIGUOUS_COLUMN",
                name=f.name,
                remedy="Rename one of them in the source.",
            )
    return fields


def _type(kind: pa.DataType, reading: _Reading, path: tuple[str, ...]) -> DataType:
    if pa.types.is_struct(kind):
        if reading.is_variant(kind):
            raise _stored_otherwise(path, reading.path, "VARIANT")
        return Struct(_fields(list(kind), reading, path))
    if pa.types.is_map(kind):
        key = Field("key", _type(kind.key_type, reading, (*path, "key")), nullable=False)
        return Map(key, Field("value", _type(kind.item_type, reading, (*path, "value"))))
    if pa.types.is_nested(kind):
        return Array(Field("element", _type(kind.value_type, reading, (*path, "element"))))
    leaf = next(reading.leaves)
    if leaf.physical == "INT96":
        return TIMESTAMP
    if (pa.types.is_timestamp(kind) or pa.types.is_time(kind)) and kind.unit == "ns":
        raise _unsupported(path, reading.path, "nanoseconds", "Write it in microseconds.")
    try:
        found = from_arrow_type(kind)
    except TamisError as error:
        raise _unsupported(path, reading.path, str(kind), error.remedy) from error
    if isinstance(found, DayTimeInterval):  # a note of Arrow's, which Spark does not read
        raise _stored_otherwise(path, reading.path, "durations")
    if isinstance(found, Decimal) and not found.possible:
        raise _unsupported(path, reading.path, str(found), "Write it with 38 digits at most.")
    if isinstance(found, Decimal) and leaf.length > _DECIMAL_BYTES:
        raise _unsupported(path, reading.path, f"decimals of {leaf.length} bytes", "Write it in 16 bytes at most.")
    return STRING if found == BINARY and (reading.binary_as_string or leaf.annotation == "ENUM") else found


def _unsupported(path: tuple[str, ...], file: str, what: str, remedy: str) -> InvalidInput:
    name = ".".join(path)
    return InvalidInput(
        f"Column {name!r} of the file {file} holds {what}, which a table cannot.",
        code="UNSUPPORTED_TYPE",
        name=name,
        remedy=remedy,
    )


def _stored_otherwise(path: tuple[str, ...], file: str, what: str) -> InvalidInput:
    name = ".".join(path)
    return InvalidInput(
        f"Column {name!r} of the file {file} holds {what}, which Parquet stores as another type: it is not adopted.",
        code="UNSUPPORTED_TYPE",
        name=name,
        remedy="Read the files with Spark, and insert the rows into a table.",
    )


def merged_schema(footers: Sequence[SourceFooter], *, binary_as_string: bool = False) -> Schema:
    """Return one schema, without ids, that holds the columns of all files in the order in which they first occur.

    Texts are those that Spark declares; where CHAR and VARCHAR differ, or a file declares none, they are STRING. Raises
    ``InvalidInput``: ``SCHEMAS_DIFFER`` naming a column and two files whose types do not go together, and
    ``UNSUPPORTED_TYPE`` for a column that holds what its Parquet type does not say.
    """
    kinds: dict[Any, SourceFooter] = {}
    for footer in footers:
        key = footer.schema.remove_metadata(), _leaves(footer), _note(footer), _says_nothing(footer)
        kinds.setdefault(key, footer)
    fields: tuple[Field, ...] = ()
    first = ""
    for footer in sorted(kinds.values(), key=_says_nothing):  # last, since texts of other files are theirs
        more = fields_of(footer, binary_as_string=binary_as_string)
        declared = {f.name: f.type for f in fields} if _says_nothing(footer) else _declared_types(footer)
        more = tuple(replace(f, type=merged_texts(f.type, declared.get(f.name, f.type))) for f in more)
        fields = _merged(fields, more, (first, footer.path), ()) if first else more
        first = first or footer.path
    return Schema(fields)


def _note(footer: SourceFooter) -> bytes | None:
    found: bytes | None = (footer.metadata.metadata or {}).get(ROW_SCHEMA)
    return found


def _says_nothing(footer: SourceFooter) -> bool:
    """Return whether a file has neither a text nor a note of Spark's about its texts."""
    return not footer.metadata.num_rows and _note(footer) is None


def _declared_types(footer: SourceFooter) -> Mapping[str, DataType]:
    """Return the types of columns that Spark declares. Raises ``InvalidInput`` (``UNSUPPORTED_TYPE``)."""
    row_schema = row_schema_of(_note(footer))
    for name, held in row_schema.hidden.items():
        raise _stored_otherwise((name,), footer.path, held)
    return row_schema.types


def _merged(
    one: tuple[Field, ...], two: tuple[Field, ...], files: tuple[str, str], above: tuple[str, ...]
) -> tuple[Field, ...]:
    known = {f.name: f for f in one}
    folded = {f.name.lower(): f.name for f in one}
    for f in two:
        path = (*above, f.name)
        if f.name in known:
            known[f.name] = replace(known[f.name], type=_common(known[f.name].type, f.type, files, path))
        elif f.name.lower() in folded:
            raise _differ(path, files, f"is named {folded[f.name.lower()]!r} there")
        else:
            known[f.name] = f
    return tuple(known.values())


def _common(one: DataType, two: DataType, files: tuple[str, str], path: tuple[str, ...]) -> DataType:
    if two in (one, NULL):
        return one
    if one == NULL:
        return two
    match one, two:
        case Struct(first), Struct(second):
            return Struct(_merged(first, second, files, path))
        case Array(first), Array(second):
            return Array(replace(first, type=_common(first.type, second.type, files, (*path, "element"))))
        case Map(key, value), Map(other_key, other):
            key = replace(key, type=_common(key.type, other_key.type, files, (*path, "key")))
            return Map(key, replace(value, type=_common(value.type, other.type, files, (*path, "value"))))
        case String(), String() if not (has_collation(one) or has_collation(two)):
            return STRING
    if type_widens(one, two):
        return two
    if type_widens(two, one):
        return one
    raise _differ(path, files, f"is {one} in the first and {two} in the second")


def _differ(path: tuple[str, ...], files: tuple[str, str], how: str) -> InvalidInput:
    name = ".".join(path)
    return InvalidInput(
        f"Column {name!r} of the files {files[0]} and {files[1]} {how}.",
        code="SCHEMAS_DIFFER",
        name=name,
        remedy="Adopt files of one schema at a time, or rewrite some of them.",
    )
