"""From what a user asks of a scan to the scan: names resolved, filter parsed, numbers checked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tamis.errors import InvalidInput
from tamis.expr import Expr, conjuncts, parse, to_sql
from tamis.scan import Options, Scan
from tamis.scan.instant import bounds
from tamis.scan.scan import Last
from tamis.scan.selection import names_of, select
from tamis.state import Snapshot, Store
from tamis.types import BOOLEAN, Schema


def make_scan(
    store: Store,
    snapshot: Snapshot,
    schema: Schema | None,
    row_filter: str | Expr | None,
    selected_fields: Sequence[str] | str,
    *,
    options: Options,
    now: Any = None,
    limit: int | None = None,
    opened: tuple[int, int, float] = (0, 0, 0.0),
) -> Scan:
    """The scan of ``snapshot`` under ``schema`` (None: a table without one has no rows and no columns). ``opened``: what opening cost, for the report."""
    full = schema if schema is not None else Schema(())
    filters, text = parse_filter(row_filter, full, options)
    names = names_of(selected_fields, "selected_fields")
    selected = full if not full.fields and names == ("*",) else select(full, names)
    return Scan(
        table=snapshot.head.name or store.url,
        store=store,
        snapshot=snapshot,
        schema=full,
        conjuncts=filters,
        filter=text,
        selected=selected,
        columns=selected.names if names == ("*",) else names,
        options=options,
        limit=checked_limit(limit),
        now=None if now is None else bounds(now, options.timezone),
        _last=Last(opened=opened),
    )


def parse_filter(row_filter: str | Expr | None, schema: Schema | None, options: Options) -> tuple[tuple[Expr, ...], str | None]:
    """The conjuncts of a filter and its text. Raises ``InvalidInput`` (``PARSE_ERROR``, ``BAD_FILTER``), ``NotFound`` (``COLUMN_NOT_FOUND``)."""
    if row_filter is None:
        return (), None
    if isinstance(row_filter, Expr):
        if row_filter.type != BOOLEAN:
            raise _bad_filter(f"The filter is {row_filter.type}, not boolean")
        return conjuncts(row_filter), to_sql(row_filter)
    if not isinstance(row_filter, str):
        raise _bad_filter(f"{row_filter!r:.100} is not a filter")
    return conjuncts(parse(row_filter, schema or Schema(()), zone=options.timezone, ansi=options.ansi)), row_filter


def checked_limit(limit: Any) -> int | None:
    """``limit`` itself. Raises ``InvalidInput`` (``BAD_LIMIT``) for what is no whole number from 0 on."""
    if limit is None or (isinstance(limit, int) and not isinstance(limit, bool) and limit >= 0):
        return limit
    raise InvalidInput(f"{limit!r} is not a limit.", code="BAD_LIMIT", name="limit", remedy="Give a whole number, 0 or more.")


def _bad_filter(what: str) -> InvalidInput:
    return InvalidInput(f"{what}.", code="BAD_FILTER", name="row_filter", remedy="Give Spark SQL text such as \"ts > '2026-01-01'\".")
