"""Statements that need a newer Spark than the one at hand: refused by name, with what does the same.

The Spark at hand would not parse them or, for MERGE WITH SCHEMA EVOLUTION, would leave new columns out without a word.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from tamis.errors import InvalidInput
from tamis.spark.jvm_bridge.adapter import Bridge

_CATALOG = "org.apache.spark.sql.connector.catalog."
_EVOLUTION = "Add the columns first: ALTER TABLE … ADD COLUMN, or tamis.open(path).alter().add_column(…)."


class NewerStatement(NamedTuple):
    """A statement, from which Spark on there is one, whether the Spark at hand has it, and what does the same."""

    statement: str
    since: str
    is_there: Callable[[Bridge], bool]
    remedy: str


def _has_like(bridge: Bridge) -> bool:
    return bridge.has_method(_CATALOG + "TableCatalog", "createTableLike", 3)


def _has_evolution(bridge: Bridge) -> bool:
    return bridge.has_class(_CATALOG + "SupportsSchemaEvolution")


def _has_constraints(bridge: Bridge) -> bool:
    return bridge.has_class(_CATALOG + "constraints.Constraint")


NEWER = {
    "ALTER TABLE": NewerStatement(
        "ALTER TABLE … ADD or DROP CONSTRAINT",
        "4.1",
        _has_constraints,
        "Write CALL lake.system.add_constraint(table => 'db.t', name => 'c', check => 'a > 0'), or drop_constraint; "
        "or tamis.open(path).alter().add_check('c', 'a > 0').commit().",
    ),
    "CREATE TABLE": NewerStatement(
        "CREATE TABLE … LIKE",
        "4.2",
        _has_like,
        "Write CREATE TABLE … AS SELECT * FROM the table LIMIT 0, or tamis.create(path, tamis.open(other).schema).",
    ),
    "INSERT WITH": NewerStatement(
        "INSERT WITH SCHEMA EVOLUTION",
        "4.2",
        _has_evolution,
        "Use tamis.open(path).append(df, merge_schema=True). " + _EVOLUTION,
    ),
    "MERGE WITH": NewerStatement("MERGE WITH SCHEMA EVOLUTION", "4.2", _has_evolution, _EVOLUTION),
}
"""By the first two words of the statement."""


def newer_statements(bridge: Bridge) -> list[str]:
    """The first two words of the statements that this Spark lacks."""
    return [words for words, newer in NEWER.items() if not newer.is_there(bridge)]


def refuse_statement(words: str, version: str) -> InvalidInput:
    """The error for the statement with these first two words on the Spark ``version``."""
    newer = NEWER[words]
    return InvalidInput(
        f"{newer.statement} needs Spark {newer.since} or newer; this is {version}.",
        code="UNSUPPORTED_STATEMENT",
        name=newer.statement,
        remedy=newer.remedy,
    )
