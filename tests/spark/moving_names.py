"""A table whose fields are renamed, dropped, added, moved and widened at random, with a model that knows them by identity.

Each leaf is an integer that says which field and row it is of, so a reader that takes one field for another is found. Rows that
come after a field was widened have values beyond an INT.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from random import Random  # noqa: TID251  # seeded by the caller
from typing import Any

from pyspark.errors import PySparkException
from tests.spark.conftest import Lake

NAMES = "abcdef"
WRAPPED = {"struct": "STRUCT<{}>", "list": "ARRAY<STRUCT<{}>>", "map": "MAP<STRING, STRUCT<{}>>"}
INSIDE = {"struct": "", "list": "element.", "map": "value."}
"""The step from a column to the fields of its struct, in ALTER TABLE."""
BEYOND_INT = 2**40


@dataclass
class Node:
    """A field: an integer (``kind`` is ``INT`` or ``BIGINT``), or a struct, list of structs or map of structs with ``fields``."""

    number: int
    name: str
    kind: str = "INT"
    fields: list[Node] = field(default_factory=list)

    @property
    def ddl(self) -> str:
        inner = ", ".join(f"{f.name}: {f.ddl}" for f in self.fields)
        return WRAPPED[self.kind].format(inner) if self.fields else self.kind

    def value(self, row: int, written: Mapping[int, str]) -> Any:
        """Its value in ``row``, which was ``written`` with these fields, as JSON."""
        if self.number not in written:
            return None
        if not self.fields:
            return leaf_value(self.number, row, written)
        inner = {f.name: f.value(row, written) for f in self.fields}
        return inner if self.kind == "struct" else [inner] if self.kind == "list" else {"x": inner}


def leaf_value(number: int, row: int, written: Mapping[int, str]) -> int | None:
    """The value of field ``number`` in ``row``, which was ``written`` with these fields."""
    if number not in written:
        return None
    return number * 100 + row + (BEYOND_INT if written[number] == "BIGINT" else 0)


@dataclass(frozen=True)
class Path:
    """An expression of a leaf: ``text`` in SQL, ``numbers`` of the fields on the way, and whether it is an array."""

    text: str
    numbers: tuple[int, ...]
    array: bool = False


def paths(fields: list[Node], before: tuple[int, ...] = (), prefix: str = "") -> Iterator[Path]:
    """All expressions of leaves within ``fields``."""
    for f in fields:
        at, numbers = prefix + f.name, (*before, f.number)
        if not f.fields:
            yield Path(at, numbers)
        elif f.kind == "list":
            for p in paths(f.fields, numbers):
                yield Path(f"{at}[0].{p.text}", p.numbers, p.array)
                if len(p.numbers) == len(numbers) + 1:
                    yield Path(f"{at}.{p.text}", p.numbers, array=True)
                    yield Path(f"transform({at}, q -> q.{p.text})", p.numbers, array=True)
        else:
            yield from paths(f.fields, numbers, at + ("." if f.kind == "struct" else "['x']."))


class MovingTable:
    """The table ``lake.db.t`` and its model."""

    def __init__(self, lake: Lake, rng: Random) -> None:
        self.lake, self.rng, self._made = lake, rng, 0
        self.rows: list[dict[int, str]] = []
        """The fields that each row was written with: their kinds by their numbers."""
        self.fields = [self._node(name, kind) for name, kind in zip(NAMES, ("INT", "INT", *WRAPPED), strict=False)]
        self.fields[2].fields.append(self._node("c", "struct"))
        lake.sql(f"CREATE TABLE lake.db.t ({', '.join(f'{f.name} {f.ddl}' for f in self.fields)}) USING tamis")
        self.insert()

    def _node(self, name: str, kind: str = "INT") -> Node:
        self._made += 1
        made = Node(self._made, name, kind)
        made.fields = [self._node(inner) for inner in "ab"] if kind in WRAPPED else []
        return made

    def insert(self) -> None:
        """Append a row with a value in every field."""
        written, row = self.kinds(self.fields), len(self.rows)
        self.rows.append(written)
        columns = {f.name: f.value(row, written) for f in self.fields}
        ddl = ", ".join(f"`{f.name}` {f.ddl}" for f in self.fields)
        spark = self.lake.spark
        made = spark.createDataFrame([(json.dumps(columns),)], "j STRING").selectExpr(f"from_json(j, '{ddl}') AS r")
        made.select("r.*").writeTo(f"{self.lake.name}.db.t").append()

    def live(self) -> set[int]:
        """The numbers of all fields that there are."""
        return set(self.kinds(self.fields))

    def changed_types(self, fields: list[Node]) -> bool:
        """Whether a field of ``fields``, as they were once, has another type now."""
        now = self.kinds(self.fields)
        return any(now.get(number, kind) != kind for number, kind in self.kinds(fields).items())

    @staticmethod
    def kinds(fields: list[Node]) -> dict[int, str]:
        """The kinds of ``fields`` and of all within them, by their numbers."""

        def walk(fields: list[Node]) -> Iterator[tuple[int, str]]:
            for f in fields:
                yield f.number, f.kind
                yield from walk(f.fields)

        return dict(walk(fields))

    def change(self) -> None:
        """Rename, drop, add, move or widen one field; half of the renames swap two."""
        siblings, prefix = self._place()
        one = self.rng.choice(siblings)
        kind = self.rng.choice(["rename", "swap", "swap", "drop", "add", "move", "widen"])
        free = [name for name in NAMES if name not in {f.name for f in siblings}]
        match kind:
            case "rename" if free:
                self._rename(prefix, one, self.rng.choice(free))
            case "swap" if len(siblings) > 1:
                other = self.rng.choice([f for f in siblings if f is not one])
                names = one.name, other.name
                self._rename(prefix, one, "spare")
                self._rename(prefix, other, names[0])
                self._rename(prefix, one, names[1])
            case "drop" if len(siblings) > 2 and self._alter(f"DROP COLUMN {prefix}{one.name}"):
                siblings.remove(one)
            case "add" if free:
                made = Node(self._made + 1, self.rng.choice(free))
                if self._alter(f"ADD COLUMN {prefix}{made.name} INT"):
                    self._made += 1
                    siblings.append(made)
            case "widen" if one.kind == "INT" and self._alter(f"ALTER COLUMN {prefix}{one.name} TYPE BIGINT"):
                one.kind = "BIGINT"
            case "move" if self._alter(f"ALTER COLUMN {prefix}{one.name} FIRST"):
                siblings.remove(one)
                siblings.insert(0, one)

    def _place(self) -> tuple[list[Node], str]:
        """Some siblings, and what precedes their names in ALTER TABLE."""
        siblings, prefix = self.fields, ""
        while inner := [f for f in siblings if f.fields]:
            if self.rng.random() < 0.3:
                break
            chosen = self.rng.choice(inner)
            siblings, prefix = chosen.fields, f"{prefix}{chosen.name}.{INSIDE[chosen.kind]}"
        return siblings, prefix

    def _rename(self, prefix: str, f: Node, to: str) -> None:
        assert self._alter(f"RENAME COLUMN {prefix}{f.name} TO {to}")
        f.name = to

    def _alter(self, change: str) -> bool:
        """Whether the table took the change: the name of a dropped field cannot come back by ADD COLUMN."""
        try:
            self.lake.sql(f"ALTER TABLE lake.db.t {change}")
        except PySparkException as error:
            if error.getCondition() != "MIGRATION_READD_DELETED":
                raise
            return False
        return True

    def hold(self) -> Held:
        """A DataFrame of the table as it is now."""
        return Held(self.lake.sql("SELECT * FROM lake.db.t"), deepcopy(self.fields), self)


@dataclass
class Held:
    frame: Any
    fields: list[Node]
    table: MovingTable

    def expected(self, path: Path) -> list[Any] | None:
        """The values of ``path`` by row, None where the DataFrame is to be fenced.

        It is where a field on the way has been dropped, or where any of its fields has another type.
        """
        fenced = not set(path.numbers) <= self.table.live() or self.table.changed_types(self.fields)
        return None if fenced else self.values(path)

    def values(self, path: Path) -> list[Any]:
        """The values of ``path`` by row."""
        return [
            None if path.numbers[0] not in written else self._wrapped(path, row, written)
            for row, written in enumerate(self.table.rows)
        ]

    @staticmethod
    def _wrapped(path: Path, row: int, written: Mapping[int, str]) -> Any:
        value = leaf_value(path.numbers[-1], row, written)
        return [value] if path.array else value
