"""Partition columns of a Hive-partitioned folder: folders ``k=v``, with the types that Spark infers for the values."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from decimal import Decimal as PyDecimal
from typing import Any
from urllib.parse import unquote

import pyarrow as pa

from tamis.core.types import (
    BOOLEAN,
    DATE,
    DOUBLE,
    INTEGER,
    INTEGRAL,
    LONG,
    NULL,
    STRING,
    TIMESTAMP,
    DataType,
    Decimal,
    Field,
)
from tamis.core.types.arrow import to_arrow_type
from tamis.core.types.defaults import initial_json
from tamis.errors import InvalidInput

NULL_NAME = "__HIVE_DEFAULT_PARTITION__"
"""The folder's value of NULL."""

_DOUBLE = re.compile(r"[+-]?(NaN|Infinity|(\d+(?:\.\d*)?|\.\d+)([eE][+-]?\d+)?[fFdD]?)", re.ASCII)
_WHOLE = re.compile(r"[+-]?\d+")
_DECIMAL = re.compile(r"[+-]?(\d+(?:\.\d*)?|\.\d+)([eE][+-]?\d{1,9})?")
_TIMESTAMP = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(\.\d{1,6})?")


@dataclass(frozen=True, slots=True)
class Partitions:
    """The partition columns of files, in the order of the folders; ``values`` has one row of texts per file."""

    names: tuple[str, ...]
    values: list[tuple[str | None, ...]]


def partitions_of(paths: Sequence[str]) -> Partitions:
    """Split the paths into partition values; None is NULL.

    Raises ``InvalidInput``: ``PARTITIONS_DIFFER`` if the files lie below folders of different columns,
    ``PLAIN_FOLDER`` for a folder ``k=v`` below or above one that is none.
    """
    names: tuple[str, ...] | None = None
    first = ""
    values: list[tuple[str | None, ...]] = []
    for path in paths:
        folders = path.split("/")[:-1]
        pairs = [folder.partition("=") for folder in folders if "=" in folder]
        if pairs and len(pairs) < len(folders):
            raise InvalidInput(
                f"{path} lies below folders of the form k=v and others.",
                code="PLAIN_FOLDER",
                name=path,
                remedy="Give the folder that holds the partition folders alone, or move the files.",
            )
        mine = tuple(unquote(name) for name, _, _ in pairs)
        if names is None:
            names, first = mine, path
        elif mine != names:
            raise InvalidInput(
                f"{first} has the partition columns {_listed(names)}, {path} has {_listed(mine)}.",
                code="PARTITIONS_DIFFER",
                name=path,
                remedy="Give folders of one layout at a time.",
            )
        values.append(tuple(None if value == NULL_NAME else unquote(value) for _, _, value in pairs))
    return Partitions(names or (), values)


def check_depth(paths: Sequence[str]) -> None:
    """Raise ``InvalidInput`` (``PLAIN_FOLDER``) if plain folders lie beside files: Spark leaves out what they hold."""
    below = next((path for path in paths if "/" in path and "=" not in path.rpartition("/")[0]), None)
    if below is not None and any("/" not in path for path in paths):
        raise InvalidInput(
            f"{below} lies in a folder beside other files, where Spark does not read it.",
            code="PLAIN_FOLDER",
            name=below,
            remedy="Give a folder whose files are all in it or all in folders, or hide the folder by a name with _.",
        )


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names) or "(none)"


def partition_fields(partitions: Partitions, given: Mapping[str, DataType]) -> list[Field]:
    """Return the partition columns, without ids, with the types of ``given`` or those that Spark infers.

    Raises ``InvalidInput`` (``COLUMN_NOT_FOUND``) for a given column that is none.
    """
    unknown = sorted(set(given) - set(partitions.names))
    if unknown:
        raise InvalidInput(
            f"There is no partition column {unknown[0]!r}.",
            code="COLUMN_NOT_FOUND",
            name=unknown[0],
            remedy=f"Partition columns are: {_listed(partitions.names)}.",
        )
    fields = []
    for at, name in enumerate(partitions.names):
        texts = {row[at] for row in partitions.values}
        fields.append(Field(name, given.get(name) or _inferred([t for t in texts if t is not None])))
    return fields


def _inferred(texts: Sequence[str]) -> DataType:
    """Return the type of these values by the rules of Spark's partition discovery; text if they have no other."""
    found: DataType = NULL
    for text in texts:
        found = _wider(found, _inferred_one(text))
        if found == STRING:
            return STRING
    return STRING if found == NULL else found


def _inferred_one(text: str) -> DataType:
    if _WHOLE.fullmatch(text):
        number = int(text)
        if -(2**31) <= number < 2**31:
            return INTEGER
        if -(2**63) <= number < 2**63:
            return LONG
    if _DECIMAL.fullmatch(text) and 0 < (digits := _whole_digits(PyDecimal(text))) <= 38:
        return Decimal(digits, 0)
    if _DOUBLE.fullmatch(text.strip()):
        return DOUBLE
    if _TIMESTAMP.fullmatch(text) and _moment(text) is not None:
        return TIMESTAMP
    try:
        date.fromisoformat(text)
    except ValueError:
        return STRING
    return DATE if re.fullmatch(r"\d{4}-\d\d-\d\d", text) else STRING


def _whole_digits(number: PyDecimal) -> int:
    """Return the precision of a number without places behind its point, as written (``0e5`` has 6); else 0."""
    _, digits, exponent = number.as_tuple()
    assert isinstance(exponent, int)
    return len(digits) + exponent if exponent >= 0 else 0


def _moment(text: str) -> datetime | None:
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        return None


def _wider(one: DataType, two: DataType) -> DataType:
    if one in (NULL, two):
        return two
    kinds = {one, two}
    if kinds == {INTEGER, LONG}:
        return LONG
    if kinds == {INTEGER, DOUBLE}:
        return DOUBLE
    if kinds == {DATE, TIMESTAMP}:
        return TIMESTAMP
    if isinstance(one, Decimal) or isinstance(two, Decimal):
        digits = [_digits(kind) for kind in (one, two)]
        if None not in digits:
            return Decimal(max(d for d in digits if d is not None), 0)
    return STRING


def _digits(kind: DataType) -> int | None:
    """Return the digits of whole numbers of a type; None of another type."""
    if isinstance(kind, Decimal):
        return kind.precision
    return {"int": 10, "bigint": 20}.get(str(kind))


def partition_constants(partitions: Partitions, fields: Sequence[Field]) -> list[dict[int, Any]]:
    """Return, for each file, the values of its partition columns in JSON, by column id; ``fields`` have ids.

    Raises ``InvalidInput`` (``BAD_PARTITION``) for a value that is not of its column's type.
    """
    known = [
        {text: _json(text, field) for text in {row[at] for row in partitions.values}} for at, field in enumerate(fields)
    ]
    return [{field.id: known[at][row[at]] for at, field in enumerate(fields)} for row in partitions.values]


def _json(text: str | None, field: Field) -> Any:
    if text is None:
        return None
    try:
        return initial_json(_scalar(text, field.type))
    except (pa.ArrowException, ValueError, ArithmeticError) as error:
        raise InvalidInput(
            f"The folder {field.name}={text} does not name a {field.type}.",
            code="BAD_PARTITION",
            name=field.name,
            remedy="Give the type of the column: partition_types.",
        ) from error


def _scalar(text: str, data_type: DataType) -> pa.Scalar:
    arrow = to_arrow_type(data_type)
    if data_type == DOUBLE:
        return pa.scalar(float(text.strip().rstrip("fFdD") if not text.strip().endswith("Infinity") else text), arrow)
    if isinstance(data_type, Decimal):
        return pa.scalar(PyDecimal(text.rstrip(".")), arrow)
    if data_type == BOOLEAN:
        if text.lower() not in {"true", "false"}:
            raise ValueError(text)
        return pa.scalar(text.lower() == "true")
    if data_type == TIMESTAMP:
        return pa.scalar(text).cast(pa.timestamp("us")).cast(arrow)
    if data_type in INTEGRAL and _WHOLE.fullmatch(text):  # Arrow takes neither plus signs nor other scripts' digits
        text = str(int(text))
    return pa.scalar(text).cast(arrow)


def with_partitions(columns: Sequence[Field], partitions: Sequence[Field]) -> tuple[Field, ...]:
    """Return the columns of a folder: those of its files, then the partition columns.

    A partition column that the files hold too stays at its place there, with the values of the folders, as in Spark.
    """
    folders = {f.name.lower(): f for f in partitions}
    kept = [replace(folders.pop(f.name.lower()), name=f.name) if f.name.lower() in folders else f for f in columns]
    return (*kept, *(f for f in partitions if f.name.lower() in folders))
