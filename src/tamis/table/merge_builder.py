"""``table.merge(data, on=…)``: a merge built clause by clause and run by ``execute()``."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from tamis.core.types import (
    BINARY_COLLATION,
    DATE,
    DOUBLE,
    FLOAT,
    INTEGRAL,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    DataType,
    Decimal,
    Schema,
    String,
)
from tamis.core.types.identifiers import backquote
from tamis.engine.operations import MergeClause, Progress, Result
from tamis.engine.operations.rows.merge_plan import BY_SOURCE, MATCHED, NOT_MATCHED
from tamis.errors import InvalidInput
from tamis.table.scan_request import check_once, parse_texts

Values = Mapping[str, Any]
_CONVERTED = frozenset({*INTEGRAL, FLOAT, DOUBLE, DATE, TIMESTAMP, TIMESTAMP_NTZ})
"""Types of columns that convert other types when they are stored, and may round; decimals do as well."""


@dataclass(frozen=True, slots=True)
class Merge:
    """A merge that has not run. Immutable: each method returns a new one.

    Expressions are Spark SQL text over ``target.x`` and ``source.x``. Among the clauses of a kind, the first
    whose condition is true applies to a row; only the last one may omit its condition. A clause without
    values takes all columns from the source. Raises ``InvalidInput`` (``BAD_MERGE``) for an unreachable
    clause.
    """

    on: str
    run: Callable[[Merge, Progress | None], Result]
    clauses: tuple[MergeClause, ...] = ()

    def when_matched_update(self, values: Values | None = None, *, condition: str | None = None) -> Merge:
        """Update the target rows that match a source row."""
        return self._with(MATCHED, "update", condition, values)

    def when_matched_delete(self, *, condition: str | None = None) -> Merge:
        """Delete the target rows that match a source row."""
        return self._with(MATCHED, "delete", condition, None)

    def when_not_matched_insert(self, values: Values | None = None, *, condition: str | None = None) -> Merge:
        """Insert the source rows without a target row; unnamed columns get NULL or their default."""
        return self._with(NOT_MATCHED, "insert", condition, values)

    def when_not_matched_by_source_update(self, values: Values, *, condition: str | None = None) -> Merge:
        """Update the target rows that match no source row."""
        if not values:
            raise InvalidInput(
                "No value is given.", code="BAD_MERGE", name="values", remedy='Give some, such as {"active": "false"}.'
            )
        return self._with(BY_SOURCE, "update", condition, values)

    def when_not_matched_by_source_delete(self, *, condition: str | None = None) -> Merge:
        """Delete the target rows that match no source row."""
        return self._with(BY_SOURCE, "delete", condition, None)

    def execute(self, *, progress: Progress | None = None) -> Result:
        """Run the merge in one commit.

        Raises ``InvalidInput`` (``MERGE_CARDINALITY_VIOLATION``) if several source rows match one target row,
        and ``Conflict``.
        """
        _check_condition(self.on, "on")
        if not self.clauses:
            raise InvalidInput(
                "The merge has no clause.",
                code="BAD_MERGE",
                name="merge",
                remedy="Add one, such as when_matched_update().",
            )
        return self.run(self, progress)

    def _with(self, kind: str, action: str, condition: str | None, values: Values | None) -> Merge:
        _check_condition(condition, "condition")
        if any(c.kind == kind and c.condition is None for c in self.clauses):
            raise InvalidInput(
                f"WHEN {kind.upper()} THEN {action.upper()} takes no row: "
                f"the clause before it takes every row that is {kind}.",
                code="BAD_MERGE",
                name=f"when {kind} then {action}",
                remedy="Give the clause before it a condition, or put this one first.",
            )
        return replace(
            self,
            clauses=(
                *self.clauses,
                MergeClause(kind, action, condition, None if values is None else parse_texts(values)),
            ),
        )


def _check_condition(given: Any, name: str) -> None:
    if given is not None and not isinstance(given, str):
        raise InvalidInput(
            f"{given!r:.100} is not a condition.",
            code="BAD_FILTER",
            name=name,
            remedy='Give Spark SQL text such as "target.id = source.id"; upsert(data, on=["id"]) takes names of keys.',
        )


def upsert_clauses(columns: list[str]) -> tuple[MergeClause, ...]:
    """Return clauses that update matches and insert the rest, in the given columns.

    Raises ``InvalidInput`` (``DUPLICATE_COLUMN``).
    """
    check_once(columns)
    values = {name: f"source.{backquote(name)}" for name in columns}
    return MergeClause(MATCHED, "update", None, values), MergeClause(NOT_MATCHED, "insert", None, values)


def stored_keys(on: Any, target: Schema | None) -> dict[str, str]:
    """Return the source's keys by name, as SQL of the values that the target would store.

    CHAR columns hold padded values, VARCHAR columns cut blanks beyond their length, and columns of texts, numbers
    and times convert what they are given: the number 1 is '1' in a STRING column, and not '01'. Keys that become
    one when they are stored are one key. Raises ``InvalidInput`` (``BAD_COLUMN``) for no keys.
    """
    names = [on] if isinstance(on, str) else list(on) if isinstance(on, Iterable) else []
    if not names or not all(isinstance(n, str) for n in names):
        raise InvalidInput(
            f"{on!r} names no key column.", code="BAD_COLUMN", name="on", remedy='Give names, such as on=["id"].'
        )
    types = {f.name.lower(): f.type for f in target or ()}
    return {name: _stored(f"source.{backquote(name)}", types.get(name.lower())) for name in names}


def _stored(key: str, column: DataType | None) -> str:
    if isinstance(column, String) and column.collation == BINARY_COLLATION:
        key = f"CAST({key} AS STRING)"
    if isinstance(column, String) and column.kind == "char":
        return f"rpad({key}, {column.length}, ' ')"
    if isinstance(column, String) and column.length is not None:
        most = column.length
        return f"if(rtrim(substring({key}, {most + 1})) = '', substring({key}, 1, {most}), {key})"
    return f"CAST({key} AS {column})" if isinstance(column, Decimal) or column in _CONVERTED else key


def upsert_condition(keys: Mapping[str, str]) -> str:
    """Return the equality of the target's keys with these of the source as SQL."""
    return " AND ".join(f"target.{backquote(name)} = {key}" for name, key in keys.items())
