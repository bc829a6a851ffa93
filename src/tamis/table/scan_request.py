"""Construction of scans from user arguments: resolve names, parse the filter, check numbers."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tamis.core.expr import Expr, conjuncts_of, parse_predicate, parse_value, short_sql, to_sql
from tamis.core.types import BOOLEAN, Schema
from tamis.engine.operations.rows.store_assignment import assignable_column
from tamis.engine.scan import Options, Scan
from tamis.engine.scan.column_selection import names_of, select_columns
from tamis.engine.scan.query_instants import instant_micros, instant_range
from tamis.engine.scan.reader_fence import check_fence, retype_null_tests
from tamis.engine.scan.scan import LastExecution
from tamis.engine.scan.scan_order import parse_order
from tamis.errors import InvalidInput
from tamis.storage.commit_log import Snapshot
from tamis.storage.commit_log.version_points import check_single_point, checked_version
from tamis.storage.object_store import Store
from tamis.table.expression_filters import is_foreign, translated_filter
from tamis.table.key_filters import parse_keys

RowFilter = Any
"""A filter as users give it: Spark SQL text, or a pyarrow or Polars expression. Inside, also an ``Expr``."""


@dataclass(frozen=True, slots=True)
class ScanArguments:
    """The arguments of ``Table.scan`` as the user gave them."""

    row_filter: RowFilter | None
    selected_fields: Sequence[str] | str
    now: Any = None
    limit: int | None = None
    order_by: Any = None
    keys: Mapping[str, Any] | None = None
    pinned: bool = False
    """Whether the version was asked for."""


def make_scan(
    store: Store,
    snapshot: Snapshot,
    schema: Schema | None,
    given: ScanArguments,
    options: Options,
    opened: tuple[int, int, float],
) -> Scan:
    """Build the scan of ``snapshot`` under ``schema`` (None: no columns and no rows).

    ``opened`` is the cost of opening (bytes, requests, seconds), for the report.
    """
    full = schema if schema is not None else Schema(())
    filters, text = parse_filter(given.row_filter, full, options)
    if among := parse_keys(given.keys, full):
        filters = (*filters, *among)
        text = " AND ".join([f"({text})" if text else "TRUE", *map(short_sql, among)]).removeprefix("TRUE AND ")
    filters = retype_null_tests(filters, snapshot.schema or full)
    names = names_of(given.selected_fields, "selected_fields")
    selected = full if not full.fields and names == ("*",) else select_columns(full, names)
    order = () if given.order_by is None else parse_order(given.order_by, full)
    if order and given.limit is None:
        raise InvalidInput(
            "order_by needs a limit.",
            code="BAD_ORDER",
            name="order_by",
            remedy="Give limit=…, or sort the rows that come: to_arrow().sort_by(…).",
        )
    return Scan(
        table=snapshot.head.name or store.url,
        store=store,
        snapshot=snapshot,
        reader=full,
        conjuncts=filters,
        row_filter=text,
        selected=selected,
        columns=selected.names if names == ("*",) else names,
        options=options,
        limit=checked_limit(given.limit),
        order=order,
        pinned=given.pinned,
        now=None if given.now is None else instant_range(given.now, options.timezone),
        _last=LastExecution(opened=opened),
    )


def parse_filter(
    row_filter: RowFilter | None, schema: Schema | None, options: Options
) -> tuple[tuple[Expr, ...], str | None]:
    """Return a filter's conjuncts and text.

    Raises ``InvalidInput`` (``PARSE_ERROR``, ``BAD_FILTER``, ``UNTRANSLATABLE_FILTER``), ``NotFound``
    (``COLUMN_NOT_FOUND``).
    """
    if row_filter is None:
        return (), None
    row_filter = plain_filter(row_filter, schema)
    if isinstance(row_filter, Expr):
        if row_filter.type != BOOLEAN:
            raise _bad_filter(f"The filter is {row_filter.type}, not boolean")
        return conjuncts_of(row_filter), to_sql(row_filter)
    if not isinstance(row_filter, str):
        raise _bad_filter(f"{row_filter!r:.100} is not a filter")
    return conjuncts_of(
        parse_predicate(row_filter, schema or Schema(()), zone=options.timezone, ansi=options.ansi)
    ), row_filter


def plain_filter(row_filter: RowFilter | None, schema: Schema | None) -> str | Expr | None:
    """Return a filter as SQL text or ``Expr``. Raises the same errors as ``parse_filter``."""
    if is_foreign(row_filter):
        return translated_filter(row_filter, schema or Schema(()))
    plain: str | Expr | None = row_filter
    return plain


def parse_texts(values: Any) -> dict[str, str]:
    """Return new values as SQL text per column.

    Raises ``InvalidInput`` (``BAD_VALUES``) for an empty mapping, or anything but a mapping of columns.
    """
    if not isinstance(values, Mapping) or not values or not all(isinstance(name, str) for name in values):
        raise InvalidInput(
            f"{values!r:.100} gives no columns values.",
            code="BAD_VALUES",
            name="values",
            remedy='Give SQL by column: {"price": "price * 2"}.',
        )
    check_once(values)
    return {name: _text(name, value) for name, value in values.items()}


def check_once(names: Iterable[str]) -> None:
    """Raise ``InvalidInput`` (``DUPLICATE_COLUMN``) for a name given twice, ignoring case."""
    seen = set[str]()
    for name in names:
        if name.lower() in seen:
            raise InvalidInput(
                f"Duplicate column {name!r}.", code="DUPLICATE_COLUMN", name=name, remedy="Give every column once."
            )
        seen.add(name.lower())


def sql_text(name: str, value: Any) -> str | None:
    """Return a value as SQL text; None stays None.

    Raises ``InvalidInput`` (``BAD_VALUES``) for other types.
    """
    return None if value is None else _text(name, value)


def _text(name: str, value: Any) -> str:
    if isinstance(value, str):
        return value
    if value is None or isinstance(value, bool | int | float):
        return (
            "NULL"
            if value is None
            else str(value).lower()
            if isinstance(value, bool)
            else f"CAST('{value}' AS DOUBLE)"
            if isinstance(value, float)
            else str(value)
        )
    raise InvalidInput(
        f"{value!r:.100} is not SQL text.",
        code="BAD_VALUES",
        name=name,
        remedy="Give SQL text, such as \"DATE '2026-01-01'\".",
    )


def parse_values(texts: Mapping[str, str], schema: Schema | None, options: Options) -> dict[str, Expr]:
    """Parse the expressions by column. Raises the same errors as ``parse_filter``."""
    known = schema or Schema(())
    return {
        name: parse_value(text, known, zone=options.timezone, ansi=options.ansi, what=f"a value for {name!r}")
        for name, text in texts.items()
    }


def resolve_values(
    snapshot: Snapshot, schema: Schema | None, texts: Mapping[str, str], options: Options
) -> dict[str, Expr]:
    """Resolve the expressions under the reader's ``schema``, keyed by the columns' names in ``snapshot``.

    Raises the same errors as ``parse_filter``, and ``SchemaFenced``.
    """
    held, current = schema or Schema(()), snapshot.schema or Schema(())
    values = parse_values(texts, held, options)
    targets = [assignable_column(held, name) for name in values]
    check_once(f.name for f in targets)  # backquotes spell a name in two ways
    check_fence(snapshot, held, replace(held, fields=tuple(targets)), [*values.values()])
    return {current.by_id[f.id].name: value for f, value in zip(targets, values.values(), strict=True)}


def checked_limit(limit: Any) -> int | None:
    """Return ``limit``; raise ``InvalidInput`` (``BAD_LIMIT``) unless it is None or a whole number >= 0."""
    if limit is None or (isinstance(limit, int) and not isinstance(limit, bool) and limit >= 0):
        return limit
    raise InvalidInput(
        f"{limit!r} is not a limit.", code="BAD_LIMIT", name="limit", remedy="Give a whole number, 0 or more."
    )


def checked_flag(name: str, value: Any) -> bool:
    """Return ``value``; raise ``InvalidInput`` (``BAD_OPTION``) unless it is True or False.

    Truthiness is not used because the meaning of None or 0 would be ambiguous.
    """
    if not isinstance(value, bool):
        raise InvalidInput(f"{name} cannot be {value!r}.", code="BAD_OPTION", name=name, remedy="Give True or False.")
    return value


def _bad_filter(what: str) -> InvalidInput:
    return InvalidInput(
        f"{what}.", code="BAD_FILTER", name="row_filter", remedy="Give Spark SQL text such as \"ts > '2026-01-01'\"."
    )


def load_arguments(version: Any, timestamp: Any) -> dict[str, int]:
    """Return the ``commit_log.load`` arguments for a version or a time.

    Raises ``InvalidInput`` if both are given, or one is invalid.
    """
    check_single_point(version, timestamp)
    if version is not None:
        return {"version": checked_version(version)}
    return {} if timestamp is None else {"timestamp_micros": instant_micros(timestamp)}


def checked_path(path: Any) -> str:
    """Return ``path`` as text. Raises ``InvalidInput`` (``BAD_PATH``) for anything else."""
    if not isinstance(path, str | os.PathLike) or not str(path).strip():
        raise InvalidInput(
            f"{path!r} is not a path.",
            code="BAD_PATH",
            name=repr(path),
            remedy="Give a directory or a URL such as s3://bucket/table.",
        )
    return os.fspath(path)
