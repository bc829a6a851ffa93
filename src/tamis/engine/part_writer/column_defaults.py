"""Evaluation of column defaults: the SQL text of a DEFAULT, run by the filter language.

Invariant: the value is Spark's: the expression cast to the column's type by store assignment. It is evaluated
once for all rows of a write.
"""

from __future__ import annotations

import pyarrow as pa

from tamis.core.expr import Call, Expr, evaluate, is_supported, parse_predicate, parse_value, refusal_error
from tamis.core.types import STRING, DataType, Field, Schema, String
from tamis.core.types.arrow import to_arrow_type
from tamis.engine.part_writer.arrow_casts import fit_array
from tamis.errors import InvalidInput, NotFound
from tamis.world import world


def default_scalar(sql: str, data_type: DataType, name: str) -> pa.Scalar:
    """Evaluate ``sql`` now as a value of ``data_type``.

    Raises ``InvalidInput`` (``BAD_DEFAULT``) naming the column if it cannot be evaluated here.
    """
    if sql.strip().upper() == "NULL":
        return pa.scalar(None, to_arrow_type(data_type))
    target = _cast_type(data_type)
    try:
        parse_value(sql, Schema(()), what="a default")  # so that errors refer to the text as given
        # The operand of this predicate is the default's value.
        test = parse_predicate(f"CAST(({sql}) AS {target}) IS NULL", Schema(()))
    except (InvalidInput, NotFound) as error:
        raise _bad(sql, data_type, name, f": {error.message}") from error
    value = _operand(test)
    if value is None or not is_supported(value):
        raise _bad(sql, data_type, name, f": {refusal_error(value or test).message}")
    out = evaluate(value, {}, 1, now_micros=world().now_micros())
    if out.failed is not None and out.failed.any():
        raise _bad(sql, data_type, name, f": {out.error}")
    array = out.values.slice(0, 1).cast(to_arrow_type(target))
    try:
        return fit_array(array, Field(name, data_type), name)[0]
    except InvalidInput as error:
        raise _bad(sql, data_type, name, ": it is too long") from error


def _cast_type(data_type: DataType) -> DataType:
    return STRING if isinstance(data_type, String) else data_type  # CHAR and VARCHAR are fitted, not cast to


def default_cast(field: Field) -> str:
    """Return the SQL of a column's default, cast to the column's type."""
    return f"CAST(({field.write_default}) AS {_cast_type(field.type)})"


def write_default(field: Field) -> pa.Scalar:
    """Return the default for a column missing from the data; a null scalar if the column has none."""
    if field.write_default is None:
        return pa.scalar(None, to_arrow_type(field.type))
    return default_scalar(field.write_default, field.type, field.name)


def _operand(test: Expr) -> Expr | None:
    return test.args[0] if isinstance(test, Call) and test.function == "is_null" else None


def _bad(sql: str, data_type: DataType, name: str, why: str) -> InvalidInput:
    return InvalidInput(
        f"The default {sql!r} of column {name!r} is not a {data_type}{why.rstrip('.')}.",
        code="BAD_DEFAULT",
        name=name,
        remedy="Use a constant, give the column in the data, or go through Spark.",
    )
