"""A scan with fewer columns and rows, for libraries that push both down."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tamis.core.expr import Expr, to_sql
from tamis.engine.scan import Scan
from tamis.engine.scan.scan import LastExecution


def narrow_scan(scan: Scan, names: Sequence[str], conjuncts: Sequence[Expr]) -> Scan:
    """Return ``scan`` for these columns of its own, in its order, and for the rows that match ``conjuncts``, too.

    Without names it reads one column, as rows need one. ``scan`` has no limit and no order.
    """
    assert scan.limit is None, "a filter would change which rows the limit takes"
    every = (*scan.conjuncts, *conjuncts)
    fields = [f for f in scan.selected.fields if f.name in set(names)] or list(scan.selected.fields[:1])
    return replace(
        scan,
        conjuncts=every,
        row_filter=" AND ".join(map(to_sql, every)) or None,
        selected=replace(scan.selected, fields=tuple(fields)),
        columns=tuple(f.name for f in fields),
        _last=LastExecution(),
    )
