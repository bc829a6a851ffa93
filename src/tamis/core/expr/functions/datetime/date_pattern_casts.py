"""Functions that read a date or a time from text by a pattern: ``to_date``, ``to_timestamp`` and ``unix_timestamp``.

Each is rewritten into ``timestamp_of_text`` (``date_patterns``) and a cast.
"""

from __future__ import annotations

from collections.abc import Callable

from tamis.core.expr.calls import make_call
from tamis.core.expr.coerce import is_instant, is_text
from tamis.core.expr.registry import declare_overload, declare_sugar
from tamis.core.expr.tree import Call, Expr, Literal, Mode
from tamis.core.types import DATE, STRING, TIMESTAMP


def _by_pattern(args: tuple[Expr, ...], mode: Mode, zone_name: str | None) -> Expr:
    """Convert text to a timestamp by a constant pattern; failures are NULL, except in ANSI mode."""
    return make_call("timestamp_of_text", *args, mode=mode, zone=zone_name, type=TIMESTAMP)


def _converts(target: object, forced: Mode | None) -> Callable[[tuple[Expr, ...], Mode, str | None], Expr | None]:
    def rewrite(args: tuple[Expr, ...], mode: Mode, zone_name: str | None) -> Expr | None:
        mode = forced or mode
        if not args or not (is_instant(args[0].type) or is_text(args[0].type)):
            return None
        value = args[0]
        if len(args) == 2:
            value = _by_pattern(args, mode, zone_name)
        elif len(args) > 2:
            return None
        return make_call("cast", value, mode=mode, zone=zone_name, type=DATE if target == DATE else TIMESTAMP)

    return rewrite


declare_sugar("to_date")(_converts(DATE, None))
declare_sugar("to_timestamp")(_converts(TIMESTAMP, None))
declare_sugar("try_to_date")(_converts(DATE, Mode.TRY))
declare_sugar("try_to_timestamp")(_converts(TIMESTAMP, Mode.TRY))


@declare_overload("unix_timestamp")
def _seconds_of_text(args: tuple[Expr, ...], mode: Mode, zone_name: str | None) -> Expr | None:
    """Rewrite ``unix_timestamp(text[, pattern])``."""
    if len(args) == 2 and is_instant(args[0].type):
        return make_call("unix_timestamp", args[0], mode=mode, zone=zone_name)
    if len(args) not in (1, 2) or not is_text(args[0].type):
        return None
    pattern = args[1] if len(args) == 2 else Literal(STRING, "yyyy-MM-dd HH:mm:ss")
    made = _by_pattern((args[0], pattern), mode, zone_name)
    return make_call("unix_timestamp", made, mode=mode, zone=zone_name) if isinstance(made, Call) else None
