"""Logical types: Spark's types under Spark's names, as immutable values.

The JSON form is Spark's own (``"long"``, ``"decimal(10,2)"``, ``{"type": "struct", …}``) with a column id on
everything that can be dropped, renamed or have statistics: struct fields, array elements, map keys and
values. This module imports nothing heavy.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from tamis.errors import InvalidInput

NO_ID = -1
"""The id of a field that has none yet; ``Schema.assign_ids`` gives it one."""


@dataclass(frozen=True, slots=True)
class DataType:
    """Base of all types.

    ``str(type)`` is the type's Spark SQL text in lower case, e.g. ``array<decimal(10,2)>``.
    """

    def to_json(self) -> Any:
        return str(self)

    @property
    def children(self) -> tuple[Field, ...]:
        """The fields one level below: struct fields, or the element, or key and value."""
        return ()


@dataclass(frozen=True, slots=True)
class Atomic(DataType):
    """A type without parameters; ``name`` is Spark's JSON name."""

    name: str

    def __str__(self) -> str:
        return _SQL_NAMES.get(self.name, self.name)

    def to_json(self) -> Any:
        return self.name


_SQL_NAMES = {"byte": "tinyint", "short": "smallint", "integer": "int", "long": "bigint"}

BOOLEAN = Atomic("boolean")
BYTE = Atomic("byte")
SHORT = Atomic("short")
INTEGER = Atomic("integer")
LONG = Atomic("long")
FLOAT = Atomic("float")
DOUBLE = Atomic("double")
BINARY = Atomic("binary")
DATE = Atomic("date")
TIMESTAMP = Atomic("timestamp")
TIMESTAMP_NTZ = Atomic("timestamp_ntz")
VARIANT = Atomic("variant")
NULL = Atomic("void")

YEAR_MONTH = Atomic("interval year to month")
"""Intervals of years and months, in months.

Used only inside expressions: PySpark has no Arrow type for them, so no column has this type.
"""

INTEGRAL = (BYTE, SHORT, INTEGER, LONG)
"""The integer types, narrowest first."""

_ATOMIC = {
    t.name: t for t in (*INTEGRAL, BOOLEAN, FLOAT, DOUBLE, BINARY, DATE, TIMESTAMP, TIMESTAMP_NTZ, VARIANT, NULL)
}

BINARY_COLLATION = "UTF8_BINARY"


@dataclass(frozen=True, slots=True)
class Decimal(DataType):
    precision: int
    scale: int

    @property
    def possible(self) -> bool:
        """Whether Spark has this type: 1 to 38 digits, 0 or more of them after the point.

        Arrow has others.
        """
        return 1 <= self.precision <= 38 and 0 <= self.scale <= self.precision

    def __str__(self) -> str:
        return f"decimal({self.precision},{self.scale})"


@dataclass(frozen=True, slots=True)
class String(DataType):
    """A string type; ``kind`` is ``string``, ``char`` or ``varchar``.

    The latter two have a ``length`` in characters.
    """

    kind: str = "string"
    length: int | None = None
    collation: str = BINARY_COLLATION

    def __str__(self) -> str:
        base = self.kind if self.length is None else f"{self.kind}({self.length})"
        return base if self.collation == BINARY_COLLATION else f"{base} collate {self.collation}"


STRING = String()


@dataclass(frozen=True, slots=True)
class Time(DataType):
    """Time of day without a zone; ``precision`` is the number of fractional digits (0 to 6)."""

    precision: int = 6

    def __str__(self) -> str:
        return f"time({self.precision})"


@dataclass(frozen=True, slots=True)
class DayTimeInterval(DataType):
    """Microseconds between two instants; ``start`` and ``end`` are Spark's field names."""

    start: str = "day"
    end: str = "second"

    def __str__(self) -> str:
        return f"interval {self.start}" + (f" to {self.end}" if self.start != self.end else "")


@dataclass(frozen=True, slots=True)
class Generation:
    """How a generated column is computed: SQL over other columns, with the time zone and mode that it is read in."""

    expression: str
    zone: str = "UTC"
    ansi: bool = True

    def __str__(self) -> str:
        return f"GENERATED ALWAYS AS ({self.expression}) in {self.zone}" + ("" if self.ansi else ", not ANSI")

    def to_json(self) -> dict[str, Any]:
        return {"expression": self.expression, "zone": self.zone, "ansi": self.ansi}

    @staticmethod
    def from_json(value: dict[str, Any]) -> Generation:
        return Generation(value["expression"], value["zone"], value["ansi"])


@dataclass(frozen=True, slots=True)
class Identity:
    """How an identity column is numbered: from ``start`` by ``step``; ``always``: rows may not give numbers."""

    start: int = 1
    step: int = 1
    always: bool = True

    def __str__(self) -> str:
        when = "ALWAYS" if self.always else "BY DEFAULT"
        return f"GENERATED {when} AS IDENTITY (START WITH {self.start} INCREMENT BY {self.step})"

    def to_json(self) -> dict[str, Any]:
        return {"start": self.start, "step": self.step, "always": self.always}

    @staticmethod
    def from_json(value: dict[str, Any]) -> Identity:
        return Identity(value["start"], value["step"], value["always"])


@dataclass(frozen=True, slots=True)
class Field:
    """A column, a struct field, or the element, key or value of an array or map.

    ``id`` is its identity and is never reused; ``name`` is only its current name. ``initial_default`` is the
    value (as JSON of its type) in parts older than the column; ``write_default`` is the SQL text used by
    later writes; ``generated`` computes the values of a generated column, ``identity`` numbers those of an
    identity column. The hash leaves out ``initial_default``, which is a list or a mapping for nested types.
    """

    name: str
    type: DataType
    nullable: bool = True
    id: int = NO_ID
    comment: str | None = None
    initial_default: Any = field(default=None, hash=False)
    write_default: str | None = None
    generated: Generation | None = None
    identity: Identity | None = None

    @property
    def computed(self) -> bool:
        """Whether writers give the column its values, so that rows may leave it out."""
        return self.computed_as is not None

    @property
    def computed_as(self) -> str | None:
        """How writers give the column its values, in words of SQL; None if they do not."""
        how = self.generated or self.identity
        return None if how is None else str(how)

    def __str__(self) -> str:
        return f"{self.name}: {self.type}" + ("" if self.nullable else " not null")

    def to_json(self) -> dict[str, Any]:
        out: dict[str, Any] = {"id": self.id, "name": self.name, "type": self.type.to_json(), "nullable": self.nullable}
        for key in ("comment", "initial_default", "write_default"):
            if getattr(self, key) is not None:
                out[key] = getattr(self, key)
        if self.generated is not None:
            out["generated"] = self.generated.to_json()
        if self.identity is not None:
            out["identity"] = self.identity.to_json()
        return out


@dataclass(frozen=True, slots=True)
class Struct(DataType):
    fields: tuple[Field, ...] = field(default=())

    def __str__(self) -> str:
        return "struct<" + ",".join(f"{f.name}:{f.type}" for f in self.fields) + ">"

    @property
    def children(self) -> tuple[Field, ...]:
        return self.fields

    def to_json(self) -> Any:
        return {"type": "struct", "fields": [f.to_json() for f in self.fields]}


@dataclass(frozen=True, slots=True)
class Array(DataType):
    """An array; ``element`` is a field of that name, whose ``nullable`` is Spark's containsNull."""

    element: Field

    def __str__(self) -> str:
        return f"array<{self.element.type}>"

    @property
    def children(self) -> tuple[Field, ...]:
        return (self.element,)

    def to_json(self) -> Any:
        return {"type": "array", "element": self.element.to_json()}


@dataclass(frozen=True, slots=True)
class Map(DataType):
    """A map; ``key`` (never null) and ``value`` are fields of those names.

    ``value.nullable`` is Spark's valueContainsNull.
    """

    key: Field
    value: Field

    def __str__(self) -> str:
        return f"map<{self.key.type},{self.value.type}>"

    @property
    def children(self) -> tuple[Field, ...]:
        return (self.key, self.value)

    def to_json(self) -> Any:
        return {"type": "map", "key": self.key.to_json(), "value": self.value.to_json()}


def with_children(data_type: DataType, children: tuple[Field, ...]) -> DataType:
    """Return the type with other inner fields (as many, in the same order for arrays and maps)."""
    match data_type:
        case Struct():
            return Struct(children)
        case Array():
            return Array(children[0])
        case Map():
            return Map(children[0], children[1])
        case _:
            return data_type


def field_from_json(value: dict[str, Any]) -> Field:
    """Decode the output of ``Field.to_json``; unknown keys are ignored so that later writers can add some."""
    return Field(
        name=value["name"],
        type=type_from_json(value["type"]),
        nullable=value["nullable"],
        id=value["id"],
        comment=value.get("comment"),
        initial_default=value.get("initial_default"),
        write_default=value.get("write_default"),
        generated=Generation.from_json(value["generated"]) if value.get("generated") else None,
        identity=Identity.from_json(value["identity"]) if value.get("identity") else None,
    )


_PATTERNS = {
    "decimal": re.compile(r"decimal\((\d+),\s*(-?\d+)\)"),
    "string": re.compile(r"(string|char|varchar)(?:\((\d+)\))?(?: collate (\w+))?"),
    "time": re.compile(r"time(?:\((\d)\))?"),
    "interval": re.compile(r"interval (day|hour|minute|second)(?: to (hour|minute|second))?"),
}


def type_from_json(value: Any) -> DataType:
    """Decode the output of ``DataType.to_json``. Raises ``InvalidInput`` for an unknown type."""
    if isinstance(value, dict):
        match value.get("type"):
            case "struct":
                return Struct(tuple(field_from_json(f) for f in value["fields"]))
            case "array":
                return Array(field_from_json(value["element"]))
            case "map":
                return Map(field_from_json(value["key"]), field_from_json(value["value"]))
    elif isinstance(value, str):
        if value in _ATOMIC:
            return _ATOMIC[value]
        if m := _PATTERNS["decimal"].fullmatch(value):
            return Decimal(int(m[1]), int(m[2]))
        if m := _PATTERNS["string"].fullmatch(value):
            return String(m[1], int(m[2]) if m[2] else None, m[3] or BINARY_COLLATION)
        if m := _PATTERNS["time"].fullmatch(value):
            return Time(int(m[1]) if m[1] else 6)
        if m := _PATTERNS["interval"].fullmatch(value):
            return DayTimeInterval(m[1], m[2] or m[1])
    raise InvalidInput(
        f"Type {value!r} is not supported.",
        code="UNSUPPORTED_TYPE",
        name=str(value),
        remedy="Cast the column to a supported type.",
    )
