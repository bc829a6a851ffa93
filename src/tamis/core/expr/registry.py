"""The registry of functions: each SQL function is declared once.

An entry says what the function is called (in Spark SQL and in Catalyst), which arguments it takes and what it
returns, how its values are computed (the concrete kernel), and what may be concluded from bounds (its claims). The
parser, both interpreters, the documentation and the property tests are all driven from here. What is not here is
``Opaque``: it may be anything, NULL or an error.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum

from tamis.core.expr.arrow_values import Datum, Evaluated, Mask
from tamis.core.expr.tree import Call, Expr, Mode
from tamis.core.types import INTEGER, LONG, STRING, DataType


class Claim(Enum):
    """How the result changes when one argument rises and the others stay the same.

    A claim covers only arguments for which the function has a result.
    """

    FIXED = "fixed"
    """Nothing is claimed: bounds follow only where the argument is one value."""
    UP = "up"
    """Never falls."""
    DOWN = "down"
    """Never rises."""
    EITHER = "either"
    """Monotone, in a direction that depends on the other arguments: the extremes lie on the corners."""


class Partial(Enum):
    """Where a function may have no result for arguments that are not NULL.

    That is an error, NULL in TRY mode, or another value in LEGACY mode.
    """

    NEVER = "never"
    OUTSIDE = "outside"
    """Never between two arguments for which it has a result: success at the corners implies success inside."""
    ANYWHERE = "anywhere"
    """Even between two arguments for which it has a result."""


class NaN(Enum):
    """What a NaN argument leads to."""

    ANYTHING = "anything"
    SAME = "same"
    """NaN, and nothing but NaN leads to NaN while all bounds are finite (∞ − ∞)."""
    KEPT = "kept"
    """NaN, and nothing but NaN leads to NaN."""


Bounds = Sequence[tuple[Datum, Datum]]
"""Lower and upper bound of each argument, NULL where unknown."""


@dataclass(frozen=True, slots=True)
class Signature:
    """The coerced arguments and the result type."""

    args: tuple[Expr, ...]
    type: DataType


Resolve = Callable[[tuple[Expr, ...], Mode, str | None], Signature | None]
Kernel = Callable[[Call, list[Datum]], Evaluated]
Combine = Callable[[Call, list[Evaluated]], Evaluated]


@dataclass(frozen=True)
class Function:
    """One function. ``name`` is canonical: what ``Call.function`` holds."""

    name: str
    resolve: Resolve
    kernel: Kernel | None = None
    """Computes rows from argument values.

    It must return NULL for NULL arguments unless the entry says ``keeps_nulls``.
    """
    combine: Combine | None = None
    """Replaces ``kernel`` where the failures of arguments matter.

    AND, CASE and COALESCE do not evaluate every argument.
    """
    sql: tuple[str, ...] = ()
    catalyst: tuple[str, ...] = ()
    claims: Callable[[Call], tuple[Claim, ...]] | None = None
    partial: Callable[[Call], Partial] = lambda _: Partial.NEVER
    raises: Callable[[Call], bool] = lambda _: False
    """Whether it may be an error in every mode, TRY included, that the function has no result."""
    guard: Callable[[Call, Bounds], Mask] | None = None
    """Pieces for which the claims hold; elsewhere only ``limits`` do."""
    reliable: Callable[[Call, Bounds], Mask] | None = None
    """Pieces for which every release of Java and Unicode agrees with the kernel.

    Elsewhere not even single values are computed.
    """
    limits: Callable[[Call], tuple[object, object] | None] | None = None
    """Bounds that hold for every result (month: 1 to 12), as plain values; either may be None."""
    nan: Callable[[Call], NaN] = lambda _: NaN.ANYTHING
    rule: str | None = None
    """Name of the abstract rule, unless it is that of monotone functions."""
    moded: Callable[[tuple[Expr, ...], DataType], bool] = lambda _args, _type: False
    """Whether the mode matters for these arguments; otherwise calls are normalized to ANSI."""
    lenient: bool = False
    """Whether LEGACY mode returns NULL where ANSI raises, as TRY does."""
    zoned: Callable[[tuple[Expr, ...], DataType], bool] = lambda _args, _type: False
    """Whether the session's time zone matters."""
    local: bool = False
    """Whether the zone is used only to convert between instants and local times."""
    backwards: bool = False
    """Whether arguments are evaluated from last to first, as Spark evaluates the divisor first.

    A NULL hides failures of the arguments evaluated after it.
    """
    keeps_nulls: bool = False
    """Whether a NULL argument may give a result other than NULL (IS NULL, <=>)."""
    approximate: bool = False
    """Whether Spark's last digits may differ: bounds are widened, and rows cannot be evaluated here."""
    collated: bool = False
    """Whether the function is independent of collation (IS NULL)."""
    note: str = ""
    """One line for the documentation page."""


TOTAL: dict[str, DataType] = {
    "hash": INTEGER,
    "xxhash64": LONG,
    "soundex": STRING,
    "levenshtein": INTEGER,
    "typeof": STRING,
    "initcap": STRING,
    "base64": STRING,
}
"""SQL functions about which only one more thing than the type is known: they never raise.

So they hide no error of other conjuncts.
"""
TOTAL_CLASSES = frozenset(
    [
        "Murmur3Hash", "XxHash64", "Md5", "Sha1", "Sha2", "Crc32", "SoundEx", "Levenshtein", "BitwiseAnd", "BitwiseOr",
        "BitwiseXor", "BitwiseNot", "BitwiseCount", "Ascii", "InitCap", "Hex",
    ]
)  # fmt: skip
"""The same as Catalyst's classes."""
_BY_NAME: dict[str, Function] = {}
_BY_SQL: dict[str, str] = {}
_BY_CATALYST: dict[str, str] = {}
_OVERLOADS: dict[str, list[Callable[[tuple[Expr, ...], Mode, str | None], Expr | None]]] = {}
_SUGAR: dict[str, Callable[[tuple[Expr, ...], Mode, str | None], Expr | None]] = {}
_SIMPLIFIERS: dict[str, Callable[[tuple[Expr, ...], Mode, str | None], Expr | None]] = {}
_CASTS_FROM: dict[DataType, Callable[[Expr, DataType, Mode, str | None], Expr | None]] = {}


def declare_function(function: Function) -> Function:
    """Register a function. Raises ``AssertionError`` for a name that is taken."""
    for table, keys in ((_BY_NAME, (function.name,)), (_BY_SQL, function.sql), (_BY_CATALYST, function.catalyst)):
        for key in keys:
            if key in table:
                raise AssertionError(f"{key} is declared twice")
    _BY_NAME[function.name] = function
    _BY_SQL.update(dict.fromkeys(function.sql, function.name))
    _BY_CATALYST.update(dict.fromkeys(function.catalyst, function.name))
    return function


def declare_sugar(
    *names: str, catalyst: tuple[str, ...] = ()
) -> Callable[[Callable[[tuple[Expr, ...], Mode, str | None], Expr | None]], None]:
    """Register a name that is rewritten into other functions (``nvl``, ``BETWEEN``, ``ts + interval``)."""

    def enter(build: Callable[[tuple[Expr, ...], Mode, str | None], Expr | None]) -> None:
        for name in names:
            _SUGAR[name] = build
        _BY_CATALYST.update(dict.fromkeys(catalyst, names[0]))

    return enter


def declare_overload(name: str) -> Callable[[Callable[[tuple[Expr, ...], Mode, str | None], Expr | None]], None]:
    """Register a meaning of a declared name for arguments that do not fit its signature.

    An example is ``+`` of a date and an interval.
    """

    def enter(build: Callable[[tuple[Expr, ...], Mode, str | None], Expr | None]) -> None:
        _OVERLOADS.setdefault(name, []).append(build)

    return enter


def declare_simplifier(name: str) -> Callable[[Callable[[tuple[Expr, ...], Mode, str | None], Expr | None]], None]:
    """Register what a declared name means for structs and arrays that the filter makes (``Constructed``)."""

    def enter(build: Callable[[tuple[Expr, ...], Mode, str | None], Expr | None]) -> None:
        _SIMPLIFIERS[name] = build

    return enter


def cast_from(source: DataType) -> Callable[[Callable[[Expr, DataType, Mode, str | None], Expr | None]], None]:
    """Register how values of ``source`` are cast, if not by a call of ``cast``."""

    def enter(build: Callable[[Expr, DataType, Mode, str | None], Expr | None]) -> None:
        _CASTS_FROM[source] = build

    return enter


def entry_of(name: str) -> Function | None:
    """Return the entry of a canonical name, or None."""
    return _BY_NAME.get(name)


def rewriting_of(name: str) -> Callable[[tuple[Expr, ...], Mode, str | None], Expr | None] | None:
    """Return the function that rewrites a name into others, or None."""
    return _SUGAR.get(name)


def overloads_of(name: str) -> Sequence[Callable[[tuple[Expr, ...], Mode, str | None], Expr | None]]:
    """Return the overloads of a name, tried in order when its own signature does not fit."""
    return _OVERLOADS.get(name, ())


def simplified_call(name: str, args: tuple[Expr, ...], mode: Mode, zone: str | None) -> Expr | None:
    """Return a call without ``Constructed`` arguments that equals this one with them; None if there is none."""
    build = _SIMPLIFIERS.get(name)
    return build(args, mode, zone) if build is not None else None


def special_cast(source: DataType) -> Callable[[Expr, DataType, Mode, str | None], Expr | None] | None:
    """Return the function that casts values of ``source``, or None if ``cast`` does."""
    return _CASTS_FROM.get(source)


def function_entry(name: str) -> Function:
    """Return the entry of a canonical name. Raises ``KeyError``, because only ``make_call`` builds trees."""
    return _BY_NAME[name]


def can_raise(call: Call) -> bool:
    """Return whether a call can raise an error by itself, for some arguments."""
    entry = function_entry(call.function)
    return entry.partial(call) is not Partial.NEVER and (call.mode is not Mode.TRY or entry.raises(call))


def all_entries() -> tuple[Function, ...]:
    """Return all entries in the order of declaration."""
    return tuple(_BY_NAME.values())


def sql_name(name: str) -> str | None:
    """The canonical (or sugar) name of a function as written in Spark SQL, or None if there is none."""
    folded = name.lower()
    if folded in _BY_SQL:
        return _BY_SQL[folded]
    return folded if folded in _SUGAR else None


def catalyst_name(class_name: str) -> str | None:
    """The canonical (or sugar) name of a Catalyst expression class (without its package), or None if there is none."""
    return _BY_CATALYST.get(class_name)
