"""Builds function calls: coerces arguments, resolves overloads and rewritings, makes unknown functions opaque."""

from __future__ import annotations

from tamis.core.expr.registry import Signature, entry_of, overloads_of, rewriting_of, simplified_call, special_cast
from tamis.core.expr.to_sql import call_text
from tamis.core.expr.tree import Call, Cause, Constructed, Expr, Literal, Mode, Opaque
from tamis.core.types import BINARY_COLLATION, NULL, DataType, String


def make_call(
    name: str,
    *args: Expr,
    mode: Mode = Mode.ANSI,
    zone: str | None = None,
    type: DataType | None = None,  # noqa: A002
) -> Expr:
    """Return a call of the function with this canonical name, with arguments coerced as Spark's analyzer does.

    ``type`` is the target of a ``cast``. Unknown functions and arguments that do not fit become ``Opaque`` of type
    ``type``, or of the type that the context requires; they are never an error here.
    """
    rewrite = rewriting_of(name)
    if rewrite is not None:
        built = rewrite(args, mode, zone)
        return built if built is not None else opaque(name, args, type)
    if any(isinstance(a, Constructed) for a in args):
        return simplified_call(name, args, mode, zone) or opaque(name, args, type)
    entry = entry_of(name)
    if entry is None or (not entry.collated and any(_collated(a) for a in args)):
        return opaque(name, args, type)
    if name == "cast":
        assert type is not None
        if isinstance(args[0], Literal) and args[0].value is None:
            return Literal(type, None)
        cast = special_cast(args[0].type)
        if cast is not None:
            return cast(args[0], type, mode, zone) or opaque(name, args, type)
        signature = Signature(args, type) if entry.resolve((*args, Opaque(type, "")), mode, zone) else None
    else:
        signature = entry.resolve(args, mode, zone)
    if entry.lenient and mode is Mode.LEGACY:
        mode = Mode.TRY
    if signature is None:
        built = next((e for build in overloads_of(name) if (e := build(args, mode, zone)) is not None), None)
        return built if built is not None else opaque(name, args, type)
    return Call(
        signature.type,
        name,
        signature.args,
        mode if entry.moded(signature.args, signature.type) else Mode.ANSI,
        (zone or "UTC") if entry.zoned(signature.args, signature.type) else None,
    )


def opaque(name: str, args: tuple[Expr, ...], data_type: DataType | None = None) -> Opaque:
    """Return an opaque call of a function whose result for these arguments is not defined here.

    Without ``data_type`` the context sets its type: boolean for a predicate, else the type it is compared with.
    """
    return Opaque(data_type or NULL, call_text(name, args, data_type), args, cause=Cause.ARGUMENTS)


def _collated(arg: Expr) -> bool:
    return isinstance(arg.type, String) and arg.type.collation != BINARY_COLLATION
