"""Digests of bytes and texts: exact for single values, unbounded for ranges."""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Callable

import pyarrow as pa

from tamis.core.expr.arrow_values import Datum, Evaluated, full_length
from tamis.core.expr.functions.text.text_kernels import constant_count
from tamis.core.expr.functions.text.text_order import as_text
from tamis.core.expr.registry import Function, Signature, declare_function
from tamis.core.expr.tree import Call, Expr, Mode
from tamis.core.types import BINARY, LONG, STRING
from tamis.core.types.arrow import to_arrow_type

_SHA2 = {0: hashlib.sha256, 224: hashlib.sha224, 256: hashlib.sha256, 384: hashlib.sha384, 512: hashlib.sha512}


def _bytes(arg: Expr, mode: Mode, zone: str | None) -> Expr | None:
    return arg if arg.type == BINARY else as_text(arg, mode, zone)


def _one(args: tuple[Expr, ...], mode: Mode, zone: str | None) -> Signature | None:
    data = _bytes(args[0], mode, zone) if len(args) == 1 else None
    return Signature((data,), STRING) if data is not None else None


def _checked(args: tuple[Expr, ...], mode: Mode, zone: str | None) -> Signature | None:
    found = _one(args, mode, zone)
    return found and Signature(found.args, LONG)


def _sized(args: tuple[Expr, ...], mode: Mode, zone: str | None) -> Signature | None:
    data = _bytes(args[0], mode, zone) if len(args) == 2 else None
    return Signature((data, args[1]), STRING) if data is not None and constant_count(args[1]) in _SHA2 else None


def _digest(call_: Call, args: list[Datum]) -> Evaluated:
    size = constant_count(call_.args[1]) if call_.function == "sha2" else None
    kernels: dict[str, Callable[[bytes], object]] = {
        "md5": lambda v: hashlib.md5(v, usedforsecurity=False).hexdigest(),
        "sha1": lambda v: hashlib.sha1(v, usedforsecurity=False).hexdigest(),
        "crc32": zlib.crc32,
        "sha2": lambda v: _SHA2[size or 0](v).hexdigest(),
    }
    change = kernels[call_.function]
    encoded = full_length(args[0], 1).cast(pa.binary()).dictionary_encode()
    made = pa.array([change(v) for v in encoded.dictionary.to_pylist()], to_arrow_type(call_.type))
    return Evaluated(made.take(encoded.indices))


for _name, _sql, _catalyst in (("md5", ("md5",), ("Md5",)), ("sha1", ("sha1", "sha"), ("Sha1",))):
    declare_function(Function(_name, _one, _digest, sql=_sql, catalyst=_catalyst, note="single values only"))
declare_function(
    Function(
        "crc32",
        _checked,
        _digest,
        sql=("crc32",),
        catalyst=("Crc32",),
        limits=lambda _: (0, 2**32 - 1),
        note="single values only",
    )
)
declare_function(Function("sha2", _sized, _digest, sql=("sha2",), catalyst=("Sha2",), note="single values only"))
