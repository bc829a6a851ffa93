"""Constraints of a table as its head holds them: CHECK, and keys that are kept as information.

Invariant: while a CHECK is enforced, the head requires the writer feature ``check-constraints``. Keys and a CHECK
that is NOT ENFORCED require nothing of any writer.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from tamis.core.types.identifiers import backquote, dotted_path
from tamis.core.types.schema import Schema

CHECK, PRIMARY_KEY, UNIQUE, FOREIGN_KEY = "check", "primary_key", "unique", "foreign_key"
KINDS = {CHECK: "CHECK", PRIMARY_KEY: "PRIMARY KEY", UNIQUE: "UNIQUE", FOREIGN_KEY: "FOREIGN KEY"}
"""The kinds of constraints, and how SQL calls them."""


@dataclass(frozen=True, slots=True)
class Constraint:
    """A constraint of a table.

    ``expression`` is the predicate of a CHECK: Spark SQL over the current names, under ANSI rules, of the same
    value in every session time zone.
    """

    constraint_id: str
    """Made when it is defined. It stays when columns are renamed; a constraint defined anew has another."""
    name: str
    kind: str
    """A key of ``KINDS``."""
    columns: tuple[tuple[int, ...], ...] = ()
    """The id paths of the columns: those that the expression names, or those of the key, in order."""
    expression: str = ""
    enforced: bool = False
    rely: bool = False
    """Whether a query optimizer may rely on a key that is not enforced. Tamis relies on none."""
    references: str = ""
    """The table that a foreign key refers to, as its definition names it."""
    referenced_columns: tuple[str, ...] = ()

    def definition(self, schema: Schema) -> str:
        """Return the constraint as SQL, without its name: ``CHECK (price >= 0) ENFORCED``."""
        state = ("ENFORCED" if self.enforced else "NOT ENFORCED") + (" RELY" if self.rely else "")
        if self.kind == CHECK:
            return f"CHECK ({self.expression}) {state}"
        inside = ", ".join(column_names(self, schema))
        refers = f" REFERENCES {self.references} ({', '.join(self.referenced_columns)})" if self.references else ""
        return f"{KINDS[self.kind]} ({inside}){refers} {state}"

    def ddl(self, schema: Schema) -> str:
        return f"CONSTRAINT {backquote(self.name)} {self.definition(schema)}"


def column_names(constraint: Constraint, schema: Schema) -> list[str]:
    """Return the current names of the constraint's columns, dotted for fields of structs."""
    known = schema.by_id
    return [dotted_path(known[i].name for i in ids) for ids in constraint.columns]


def enforced_constraints(constraints: Iterable[Constraint]) -> tuple[Constraint, ...]:
    """Return those that every write tests."""
    return tuple(one for one in constraints if one.kind == CHECK and one.enforced)


def constraint_to_json(constraint: Constraint) -> dict[str, Any]:
    value: dict[str, Any] = {
        "constraint_id": constraint.constraint_id,
        "name": constraint.name,
        "kind": constraint.kind,
        "columns": [list(ids) for ids in constraint.columns],
        "enforced": constraint.enforced,
    }
    if constraint.kind == CHECK:
        value["expression"] = constraint.expression
    if constraint.rely:
        value["rely"] = True
    if constraint.references:
        value |= {"references": constraint.references, "referenced_columns": list(constraint.referenced_columns)}
    return value


def constraint_from_json(value: dict[str, Any]) -> Constraint:
    return Constraint(
        value["constraint_id"],
        value["name"],
        value["kind"],
        tuple(tuple(ids) for ids in value["columns"]),
        value.get("expression", ""),
        value["enforced"],
        value.get("rely", False),
        value.get("references", ""),
        tuple(value.get("referenced_columns", ())),
    )


def with_live_columns(constraints: Sequence[Constraint], schema: Schema | None) -> tuple[Constraint, ...]:
    """Return the constraints whose columns all exist: an older writer may have dropped a column of a key."""
    known = schema.paths if schema is not None else {}
    return tuple(one for one in constraints if all(known.get(ids[-1]) == ids for ids in one.columns))
