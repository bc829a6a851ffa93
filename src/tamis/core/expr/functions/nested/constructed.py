"""Structs and arrays that a filter makes: ``(a, b) IN ((1, 2))``, ``named_struct('x', a).x``, ``array(a, b)[0]``.

They have no statistics, so they are taken apart into their items before anything is decided. Spark computes all
items, even those that the outcome does not depend on. Therefore nothing is taken apart if an item can fail.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce

from tamis.core.expr.calls import make_call
from tamis.core.expr.coerce import cast_to_common, has_order, is_text
from tamis.core.expr.registry import declare_simplifier, declare_sugar
from tamis.core.expr.tree import Column, Constructed, Expr, Literal, Mode
from tamis.core.expr.unsupported_rows import can_fail
from tamis.core.types import BOOLEAN, INTEGER, INTEGRAL, LONG, NULL, Array, DataType, Field, Struct

_MOST_COMPARISONS = 256
"""Largest number of comparisons into which one predicate is taken apart."""


def struct_of(names: tuple[str, ...], items: tuple[Expr, ...], text: str) -> Constructed:
    """Return a struct made of ``items``."""
    fields = tuple(Field(name, item.type) for name, item in zip(names, items, strict=True))
    return Constructed(Struct(fields), text, items, total=True)


@declare_sugar("named_struct")
def _named_struct(args: tuple[Expr, ...], mode: Mode, zone: str | None) -> Expr | None:  # noqa: ARG001
    names, items = args[::2], args[1::2]
    texts = tuple(n.value for n in names if isinstance(n, Literal) and isinstance(n.value, str))
    if not items or len(texts) != len(items) or any(item.type == NULL for item in items):
        return None
    return struct_of(texts, items, "named_struct(…)")


@declare_sugar("array")
def _array(args: tuple[Expr, ...], mode: Mode, zone: str | None) -> Expr | None:
    found = cast_to_common(args, mode, zone) if args else None
    if found is None or not has_order(found[1]):
        return None
    return Constructed(Array(Field("element", found[1])), "array(…)", found[0], total=True)


def item_of(parent: Constructed, name: str) -> Expr | None:
    """Return the field ``name`` (case-insensitive) of a struct; None if there is not one, or an item can fail."""
    if not isinstance(parent.type, Struct) or _unsure(parent):
        return None
    found = [item for f, item in zip(parent.type.fields, parent.args, strict=True) if f.name.lower() == name.lower()]
    return found[0] if len(found) == 1 else None


def _unsure(*sides: Expr) -> bool:
    return any(can_fail(side) for side in sides)


def _items(side: Expr) -> tuple[Expr, ...] | None:
    """Return the fields of a struct: of one that is made, or of a column."""
    if isinstance(side, Constructed) and isinstance(side.type, Struct):
        return side.args
    if isinstance(side, Column) and isinstance(side.type, Struct):
        return tuple(Column(f.type, (*side.ids, f.id), f"{side.name}.{f.name}") for f in side.type.fields)
    return None


def _pairs(a: Expr, b: Expr) -> list[tuple[Expr, Expr]] | None:
    """Return the fields of two structs side by side; None if they do not compare here."""
    first, second = _items(a), _items(b)
    if first is None or second is None or len(first) != len(second) or _unsure(*first, *second):
        return None
    pairs = list(zip(first, second, strict=True))
    return pairs if pairs and all(_alike(x.type, y.type) for x, y in pairs) else None


def _alike(a: DataType, b: DataType) -> bool:
    return has_order(a) and (a == b or (is_text(a) and is_text(b)))


def _all(tests: list[Expr]) -> Expr:
    return tests[0] if len(tests) == 1 else make_call("and", *tests, type=BOOLEAN)


def _any(tests: list[Expr]) -> Expr:
    return tests[0] if len(tests) == 1 else make_call("or", *tests, type=BOOLEAN)


def _same(pairs: list[tuple[Expr, Expr]]) -> Expr:
    """Test structs for equality: inside structs, NULL equals NULL."""
    return _all([make_call("null_safe_eq", x, y, type=BOOLEAN) for x, y in pairs])


def _before(pairs: list[tuple[Expr, Expr]]) -> Expr:
    """Compare field by field; inside structs, NULL sorts before all values."""

    def field(x: Expr, y: Expr) -> Expr:
        missing = _all([make_call("is_null", x), make_call("is_not_null", y)])
        return make_call("coalesce", make_call("lt", x, y, type=BOOLEAN), missing)

    last = field(*pairs[-1])
    return reduce(lambda rest, pair: _any([field(*pair), _all([_same([pair]), rest])]), reversed(pairs[:-1]), last)


def _negated(test: Expr) -> Expr:
    return make_call("not", test, type=BOOLEAN)


def _turned(pairs: list[tuple[Expr, Expr]]) -> list[tuple[Expr, Expr]]:
    return [(y, x) for x, y in pairs]


_TESTS: dict[str, Callable[[list[tuple[Expr, Expr]]], Expr]] = {
    "eq": _same,
    "ne": lambda pairs: _negated(_same(pairs)),
    "lt": _before,
    "gt": lambda pairs: _before(_turned(pairs)),
    "le": lambda pairs: _negated(_before(_turned(pairs))),
    "ge": lambda pairs: _negated(_before(pairs)),
}


def _compared(name: str, a: Expr, b: Expr) -> Expr | None:
    """Compare two structs; NULL where a column of structs is."""
    pairs = _pairs(a, b)
    if pairs is None:
        return None
    test = _TESTS[name](pairs)
    whole = [make_call("is_null", side) for side in (a, b) if isinstance(side, Column)]
    return make_call("case", _any(whole), Literal(BOOLEAN, None), test) if whole else test


def _comparison(name: str) -> None:
    @declare_simplifier(name)
    def build(args: tuple[Expr, ...], mode: Mode, zone: str | None) -> Expr | None:  # noqa: ARG001
        return _compared(name, *args) if len(args) == 2 else None


for _name in _TESTS:
    _comparison(_name)


@declare_simplifier("null_safe_eq")
def _null_safe(args: tuple[Expr, ...], mode: Mode, zone: str | None) -> Expr | None:  # noqa: ARG001
    made = len(args) == 2 and all(isinstance(a, Constructed) for a in args)
    return _compared("eq", *args) if made else None


@declare_simplifier("in")
def _in(args: tuple[Expr, ...], mode: Mode, zone: str | None) -> Expr | None:  # noqa: ARG001
    value, *options = args
    width = len(_items(value) or ())
    if not 0 < width * len(options) <= _MOST_COMPARISONS:
        return None
    tests = [_compared("eq", value, option) for option in options]
    found = [test for test in tests if test is not None]
    return _any(found) if len(found) == len(options) else None


def each_item(name: str, source: Constructed, tests: list[Expr]) -> Expr | None:
    """Build EXISTS or FORALL over an array that the filter makes, from the test of each item.

    FORALL needs tests that cannot fail: conjuncts after one that is NULL are not evaluated, but Spark evaluates
    the tests after one that is NULL.
    """
    if _elements(source) is None or not tests or (name == "forall" and _unsure(*tests)):
        return None
    return _any(tests) if name == "exists" else _all(tests)


def _never_null(name: str, outcome: bool) -> None:
    @declare_simplifier(name)
    def build(args: tuple[Expr, ...], mode: Mode, zone: str | None) -> Expr | None:  # noqa: ARG001
        return None if _unsure(*args) else Literal(BOOLEAN, outcome)


_never_null("is_null", False)
_never_null("is_not_null", True)


def _elements(side: Expr) -> tuple[Expr, ...] | None:
    """Return the items of an array that is made, if none can fail."""
    made = isinstance(side, Constructed) and isinstance(side.type, Array) and not _unsure(side)
    return side.args if made and isinstance(side, Constructed) else None


def _at(name: str) -> None:
    @declare_simplifier(name)
    def build(args: tuple[Expr, ...], mode: Mode, zone: str | None) -> Expr | None:  # noqa: ARG001
        items, index = _elements(args[0]), args[-1]
        if items is None or not isinstance(index, Literal) or index.type not in INTEGRAL or index.value is None:
            return None
        at = index.value
        if name == "element_at":
            at = at - 1 if at > 0 else len(items) + at if at < 0 else -1
        return items[at] if 0 <= at < len(items) else None


_at("element")
_at("element_at")


@declare_simplifier("array_size")
def _size(args: tuple[Expr, ...], mode: Mode, zone: str | None) -> Expr | None:  # noqa: ARG001
    items = _elements(args[0])
    return Literal(INTEGER, len(items)) if items is not None else None


def _comparable(a: DataType, b: DataType) -> bool:
    """Whether values compare without a cast that Spark and ``IN`` may choose differently."""
    return _alike(a, b) or (a in INTEGRAL and b in INTEGRAL)


@declare_simplifier("array_contains")
def _contains(args: tuple[Expr, ...], mode: Mode, zone: str | None) -> Expr | None:
    """Build ``value IN (items)``, which has the same NULLs."""
    items = _elements(args[0])
    if items is None or len(args) != 2 or not _comparable(items[0].type, args[1].type):
        return None
    return make_call("in", args[1], *items, mode=mode, zone=zone, type=BOOLEAN)


@declare_sugar("arrays_overlap", catalyst=("ArraysOverlap",))
def _overlap(args: tuple[Expr, ...], mode: Mode, zone: str | None) -> Expr | None:
    """Build an OR over the items of the arrays that are made; one of them may be a column, beside constants."""
    if len(args) != 2:
        return None
    made = [_elements(a) for a in args]
    column = next((a for a in args if isinstance(a, Column) and isinstance(a.type, Array)), None)
    items = next((found for found in made if found is not None), None)
    if items is None:
        return None
    if column is not None:
        known = all(isinstance(item, Literal) and item.value is not None for item in items)
        alike = isinstance(column.type, Array) and column.type.element.type == items[0].type
        tests = [make_call("array_contains", column, item, mode=mode, zone=zone) for item in items[:_MOST_COMPARISONS]]
        return _any(tests) if known and alike and len(tests) == len(items) else None
    first, second = made
    if first is None or second is None or len(first) * len(second) > _MOST_COMPARISONS:
        return None
    return (
        _any([make_call("eq", x, y) for x in first for y in second]) if _alike(first[0].type, second[0].type) else None
    )


@declare_sugar("array_position", catalyst=("ArrayPosition",))
def _position(args: tuple[Expr, ...], mode: Mode, zone: str | None) -> Expr | None:
    """Build a CASE over the items: the number of the first that equals a constant, else 0."""
    if len(args) != 2:
        return None
    items, value = _elements(args[0]), args[1]
    if items is None or not isinstance(value, Literal) or value.value is None or not _alike(items[0].type, value.type):
        return None
    found: list[Expr] = []
    for number, item in enumerate(items, 1):
        found += [make_call("eq", item, value, mode=mode, zone=zone), Literal(LONG, number)]
    return make_call("case", *found, Literal(LONG, 0))


def _extreme(name: str, chooses: str, catalyst: str) -> None:
    @declare_sugar(name, catalyst=(catalyst,))
    def build(args: tuple[Expr, ...], mode: Mode, zone: str | None) -> Expr | None:
        items = _elements(args[0]) if len(args) == 1 else None
        if items is None:
            return None
        return items[0] if len(items) == 1 else make_call(chooses, *items, mode=mode, zone=zone)


_extreme("array_max", "greatest", "ArrayMax")
_extreme("array_min", "least", "ArrayMin")
