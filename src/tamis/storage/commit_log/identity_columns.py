"""Identity columns: which are possible, and numbers that are reserved by a commit before they are used.

Invariant: no number is reserved twice, whatever happens to the write that asked. A commit moves the table's high-water
mark past a range, so concurrent writers have disjoint ranges, and their appends do not conflict. What a write reserves
and does not use is lost: numbers have gaps. The mark never goes back, not by a restore either.
"""

from __future__ import annotations

from dataclasses import replace

from tamis.core.expr.generated_columns import added_column
from tamis.core.types import LONG, Schema
from tamis.errors import Conflict, InvalidInput
from tamis.storage.commit_log.model import Head, Operation
from tamis.storage.commit_log.proposal import Proposal
from tamis.storage.commit_log.retry_policy import HEAD_CHANGES
from tamis.storage.commit_log.transaction import commit
from tamis.storage.commit_log.version_loading import load
from tamis.storage.object_store.store import Store
from tamis.world import new_id

IDENTITY = "identity-columns"
"""The required writer feature; a writer without it would leave the column empty."""
LEAST, GREATEST = -(2**63), 2**63 - 1


def check_identity(before: Schema | None, after: Schema) -> None:
    """Raise ``InvalidInput`` (``IDENTITY_COLUMN``) unless the identity columns of ``after`` are possible."""
    old = set() if before is None else {f.id for f in before.fields}
    continued = any(f.id in old for f in after.fields)
    found = [f for f in after.fields if f.identity is not None]
    for field in found:
        assert field.identity is not None
        if field.type != LONG:
            raise _bad(field.name, f"it is {field.type}", "Make it BIGINT.")
        if field.write_default is not None or field.generated is not None:
            raise _bad(field.name, "it has a default or an expression, too", "Leave one of them out.")
        numbers = field.identity.start, field.identity.step
        if field.identity.step == 0 or not all(LEAST <= number <= GREATEST for number in numbers):
            raise _bad(field.name, "its numbers are not possible", "Give another START WITH and INCREMENT BY.")
        if field.id not in old and continued:
            raise added_column(field)
    if len(found) > 1:
        raise _bad(found[1].name, f"{found[0].name!r} is one already", "Use one identity column.")
    for _, nested in after.walk():
        if nested.identity is not None and all(nested is not f for f in found):
            raise _bad(nested.name, "it is inside another column", "Number a whole column.")


def reserve_numbers(store: Store, table_id: str, column: int, count: int, least: int | None = None) -> tuple[int, int]:
    """Reserve ``count`` numbers of an identity column by a commit; return the first, and how many there are.

    If the column has fewer numbers left, these are reserved, but at least ``least`` (default ``count``). Raises
    ``InvalidInput`` (``IDENTITY_OVERFLOW``) if fewer than ``least`` are left, ``Conflict`` if the column is gone.
    """
    needed = count if least is None else least

    def attempt(_: int) -> tuple[int, int]:
        base = load(store)
        field = None if base.head.schema is None else base.head.schema.by_id.get(column)
        if base.head.table_id != table_id or field is None or field.identity is None:
            raise Conflict(
                "The table was replaced, or its identity column was dropped.",
                code="CONFLICT_REPLACED",
                name=store.url,
                remedy="Open the table again, and write to it as it is now.",
            )
        first = base.head.numbered.get(column, field.identity.start)
        step = field.identity.step
        room = (GREATEST - first) // step if step > 0 else (first - LEAST) // -step
        left = max(0, room + 1)
        if left < needed:
            raise InvalidInput(
                f"The numbers of column {field.name!r} are used up: this write needs {needed:,}, "
                f"and {left:,} are left.",
                code="IDENTITY_OVERFLOW",
                name=field.name,
                remedy="Create a table whose numbers start elsewhere, and INSERT the rows.",
            )
        given = min(count, left)
        head: Head = replace(base.head, numbered={**base.head.numbered, column: first + step * given})
        parameters = {"column": field.name, "numbers": given, "first": first}
        proposal = Proposal(
            operation=Operation("identity", parameters=parameters),
            read_version=base.version,
            read_operation_id=base.commit.operation_id,
            head=head,
            operation_id=new_id(),
            table_id=table_id,
        )
        commit(store, proposal)
        return first, given

    return HEAD_CHANGES.run(attempt)


def _bad(name: str, why: str, remedy: str) -> InvalidInput:
    return InvalidInput(
        f"Column {name!r} cannot be an identity column: {why}.", code="IDENTITY_COLUMN", name=name, remedy=remedy
    )
