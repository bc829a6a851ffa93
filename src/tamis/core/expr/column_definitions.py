"""Parses column definitions in Spark SQL (``ts TIMESTAMP NOT NULL, tags ARRAY<STRING>``) into a schema.

``day DATE GENERATED ALWAYS AS (CAST(ts AS DATE))`` is a generated column, in the time zone UTC and ANSI mode;
``id BIGINT GENERATED ALWAYS AS IDENTITY`` an identity column.
"""

from __future__ import annotations

import re

import pyarrow as pa

from tamis.core.expr import syntax
from tamis.core.expr.sql_types import column_field
from tamis.core.types import Schema
from tamis.core.types.arrow import to_arrow_schema
from tamis.errors import InvalidInput

_FORM = (
    "a type may be followed by NOT NULL, and then by GENERATED ALWAYS AS (expression) or "
    "GENERATED { ALWAYS | BY DEFAULT } AS IDENTITY (START WITH 1 INCREMENT BY 1)"
)


def parse_columns(text: str) -> pa.Schema:
    """Parse ``text`` into a schema.

    Raises ``InvalidInput`` (``BAD_SCHEMA``, ``BAD_TYPE``) naming what is invalid.
    """
    try:
        fields = syntax.parse_column_list(text)
    except syntax.SyntaxProblem as problem:
        raise _bad(text, f"{problem.message_for(text)}; {_FORM}") from None
    for field in fields:
        if field.comment is not None:
            raise _bad(
                field.name,
                "Only NOT NULL and GENERATED … AS … may follow a type; the rest is for CREATE TABLE in SQL",
            )
    return to_arrow_schema(Schema(tuple(column_field(field, text) for field in fields)), generated=True)


_CONSTRAINT = re.compile(r"\b(CHECK|PRIMARY|UNIQUE|FOREIGN|REFERENCES)\b", re.IGNORECASE)


def _bad(name: str, why: str) -> InvalidInput:
    then = (
        ' Add constraints to the table: table.alter().add_check("c", "user > 0").' if _CONSTRAINT.search(name) else ""
    )
    return InvalidInput(
        f"{name!r} is not a schema. {why}.",
        code="BAD_SCHEMA",
        name=name,
        remedy=f'Write columns as "ts TIMESTAMP, user BIGINT NOT NULL".{then}',
    )
