"""Builds calls of functions: arguments coerced, overloads and rewritings resolved, unknown functions opaque."""

from __future__ import annotations

from tamis.core.expr.registry import Signature, entry_of, overloads, rewriting, special_cast
from tamis.core.expr.to_sql import attempted
from tamis.core.expr.tree import Call, Cause, Expr, Literal, Mode, Opaque
from tamis.core.types import BINARY_COLLATION, NULL, DataType, String


def call(name: str, *args: Expr, mode: Mode = Mode.ANSI, zone: str | None = None, type: DataType | None = None) -> Expr:  # noqa: A002
    """A call of the function with this canonical name, its arguments coerced as Spark's analyser would.

    ``type`` is the target of a ``cast``. What the catalogue or the signature does not fit is ``Opaque`` of type
    ``type``, or of the type that the context asks for: it is never an error here.
    """
    rewrite = rewriting(name)
    if rewrite is not None:
        built = rewrite(args, mode, zone)
        return built if built is not None else opaque(name, args, type)
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
        built = next((e for build in overloads(name) if (e := build(args, mode, zone)) is not None), None)
        return built if built is not None else opaque(name, args, type)
    return Call(
        signature.type,
        name,
        signature.args,
        mode if entry.moded(signature.args, signature.type) else Mode.ANSI,
        (zone or "UTC") if entry.zoned(signature.args, signature.type) else None,
    )


def opaque(name: str, args: tuple[Expr, ...], data_type: DataType | None = None) -> Opaque:
    """A function with arguments that it is not known for.

    Without a better idea its type is boolean where it is used as a predicate, else whatever it is compared with.
    """
    return Opaque(data_type or NULL, attempted(name, args, data_type), args, cause=Cause.ARGUMENTS)


def _collated(arg: Expr) -> bool:
    return isinstance(arg.type, String) and arg.type.collation != BINARY_COLLATION
