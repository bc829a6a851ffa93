"""Histories of tables: what was done to one, step by step. Printed with ``repr``, a history is the Python that makes it again."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

Columns = dict[str, str]
"""Name → kind, in order."""


@dataclass(frozen=True)
class Create:
    """``generated``: the SQL expressions of the generated columns among ``columns``."""

    columns: Columns
    format: str = "parquet"
    cluster_by: tuple[str, ...] = ()
    properties: dict[str, str] = field(default_factory=dict)
    generated: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Adopt(Create):
    """A table of another format, adopted by reference.

    ``source``: ``folder`` (of Parquet files), ``hive``, ``delta`` or ``iceberg``; ``values`` in ``files`` files, in folders of ``partition``. Its own format has
    deleted the rows whose ``k`` is in ``deleted``. ``options`` say how its files and deletes are written.
    """

    source: str = "folder"
    values: dict[str, list[Any]] = field(default_factory=dict)
    files: int = 1
    row_group: int = 16
    partition: str | None = None
    deleted: tuple[int, ...] = ()
    options: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Append:
    """``how``: ``embedded`` or ``sql``. ``loose``: where not 0, statistics are wider than the rows, drawn from this seed."""

    values: dict[str, list[Any]]
    how: str = "embedded"
    loose: int = 0


@dataclass(frozen=True)
class Delete:
    predicate: str
    how: str = "embedded"


@dataclass(frozen=True)
class Update:
    sets: dict[str, str]
    predicate: str
    how: str = "embedded"


@dataclass(frozen=True)
class Overwrite:
    """The rows of ``predicate`` give way to ``values``."""

    values: dict[str, list[Any]]
    predicate: str
    how: str = "embedded"


@dataclass(frozen=True)
class Clause:
    """Of a MERGE. ``when``: ``matched``, ``not_matched`` or ``by_source``; no ``sets`` deletes."""

    when: str
    condition: str | None
    sets: dict[str, str] | None


@dataclass(frozen=True)
class Merge:
    """``unsteady``: Catalyst takes the source for one that may differ between runs."""

    values: dict[str, list[Any]]
    on: str
    clauses: tuple[Clause, ...]
    how: str = "sql"
    unsteady: bool = False


@dataclass(frozen=True)
class Rename:
    name: str
    to: str


@dataclass(frozen=True)
class Drop:
    name: str


@dataclass(frozen=True)
class Add:
    name: str
    kind: str
    default: str | None = None


@dataclass(frozen=True)
class Widen:
    name: str
    kind: str


@dataclass(frozen=True)
class Restore:
    """To the state after step number ``step``."""

    step: int


@dataclass(frozen=True)
class Compact:
    how: str = "embedded"


@dataclass(frozen=True)
class Index:
    name: str
    columns: tuple[str, ...]
    build: str = "with_write"
    repair: bool = False
    """What is missing is built at once."""


@dataclass(frozen=True)
class Repair:
    """Indexes are built where they are missing."""


@dataclass(frozen=True)
class DamageIndex:
    """Index files are cut short (``how`` = ``cut``), removed (``gone``), or a byte of each is changed (``bit``)."""

    how: str


@dataclass(frozen=True)
class ForgetSegments:
    """Indexes forget half of the segments that they cover."""


@dataclass(frozen=True)
class Properties:
    values: dict[str, str]


@dataclass(frozen=True)
class Format:
    """The format of files that are written from now on."""

    format: str


Step = Create | Adopt | Append | Delete | Update | Overwrite | Merge | Rename | Drop | Add | Widen | Restore | Compact | Index | Repair | DamageIndex | ForgetSegments | Properties | Format  # fmt: skip
History = tuple[Step, ...]


def features_of(history: History) -> set[str]:
    """What is unusual about a table; the coverage counts questions about each."""
    found = {"several formats"} if any(isinstance(step, Format) for step in history) else set[str]()
    found |= {"loose statistics"} if any(isinstance(step, Append) and step.loose for step in history) else set()
    found |= {"generated columns"} if any(isinstance(step, Create) and step.generated for step in history) else set()
    found |= {"damaged index"} if any(isinstance(step, DamageIndex) for step in history) else set()
    found |= {f"adopted {step.source}" for step in history if isinstance(step, Adopt)}
    found |= {"deleted by a source" for step in history if isinstance(step, Adopt) and step.deleted}
    return found | ({"intervals"} if "interval" in columns_of(history)[-1].values() else set())


def columns_after(columns: Columns, step: Step, known: list[Columns]) -> Columns:
    """The table's columns after ``step``; ``known`` are those after each earlier step."""
    match step:
        case Create(made):
            return dict(made)
        case Rename(name, to):
            return {to if n == name else n: kind for n, kind in columns.items()}
        case Drop(name):
            return {n: kind for n, kind in columns.items() if n != name}
        case Add(name, kind) | Widen(name, kind):
            return {**columns, name: kind}
    return columns


def columns_of(history: History) -> list[Columns]:
    """The columns after each step."""
    known: list[Columns] = []
    for step in history:
        known.append(columns_after(known[-1] if known else {}, step, known))
    return known


def samples_of(history: History, most: int = 60) -> dict[str, list[Any]]:
    """Some values of each column that has been appended to under its last kind, first and last ones among them."""
    found: dict[str, list[Any]] = {}
    columns = columns_of(history)
    for step, kinds in zip(history, columns, strict=True):
        if isinstance(step, Append | Adopt):
            for name, values in step.values.items():
                there = [v for v in values if v is not None]
                if there and kinds[name] == columns[-1].get(name):
                    found.setdefault(name, []).extend(there[:: max(len(there) // most, 1)] + there[-1:])
    return found


def rows_of(history: History, most: int = 40) -> list[dict[str, Any]]:
    """Some rows as they were appended, with the columns that still are of the same kind."""
    found: list[dict[str, Any]] = []
    columns = columns_of(history)
    for step, kinds in zip(history, columns, strict=True):
        if isinstance(step, Append | Adopt):
            fit = [name for name in step.values if kinds[name] == columns[-1].get(name)]
            count = len(step.values["k"])
            found += [{name: step.values[name][at] for name in fit} for at in range(0, count, max(count // most, 1))]
    return found
