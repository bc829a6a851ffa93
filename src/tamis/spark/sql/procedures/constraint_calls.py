"""Procedures about constraints: what ALTER TABLE … ADD and DROP CONSTRAINT do, also on a Spark without these."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from tamis.core.types.identifiers import split_list
from tamis.errors import InvalidInput
from tamis.spark.sql.procedure import TABLE, Parameter, Procedure, named_table

_WAYS = ("check", "primary_key", "unique")


def _constraints(catalog: Any, arguments: dict[str, Any]) -> pa.Table:
    found: pa.Table = named_table(catalog, arguments).constraints()
    return found


def _add(catalog: Any, arguments: dict[str, Any]) -> pa.Table:
    given = [way for way in _WAYS if arguments[way] is not None]
    if len(given) != 1:
        raise InvalidInput(
            "A constraint is a check, a primary_key or a unique.",
            code="BAD_CONSTRAINT",
            name=arguments["name"],
            remedy="Give one of them, such as check => 'price >= 0'.",
        )
    change, text = named_table(catalog, arguments).alter(), arguments[given[0]]
    if given[0] == "check":
        change.add_check(arguments["name"], text)
    else:
        add = change.add_primary_key if given[0] == "primary_key" else change.add_unique
        add(arguments["name"], split_list(text))
    return _done(change.commit())


def _drop(catalog: Any, arguments: dict[str, Any]) -> pa.Table:
    change = named_table(catalog, arguments).alter()
    return _done(change.drop_constraint(arguments["name"], missing_ok=arguments["if_exists"]).commit())


def _done(done: Any) -> pa.Table:
    return pa.table({"version": pa.array([done.version], pa.int64()), "changes": pa.array([list(done.changes)])})


_COLUMNS = "Its columns, separated by commas: information that nothing enforces"
PROCEDURES = (
    Procedure("constraints", "The constraints of a table, a row each", (TABLE,), _constraints),
    Procedure(
        "add_constraint",
        "Adds a constraint after testing the rows that are there",
        (
            TABLE,
            Parameter("name"),
            Parameter("check", default="NULL", comment="A predicate that no row may make false"),
            Parameter("primary_key", default="NULL", comment=_COLUMNS),
            Parameter("unique", default="NULL", comment=_COLUMNS),
        ),
        _add,
    ),
    Procedure(
        "drop_constraint",
        "Drops a constraint",
        (TABLE, Parameter("name"), Parameter("if_exists", "boolean", "false", "Do nothing if there is none")),
        _drop,
    ),
)
