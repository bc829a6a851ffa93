"""The page ``which-filters-skip.md``: every function of the catalogue with what it claims, and an example that is decided when the page is made.

An entry without an example of its own gets one that fits its signature, so that adding a function to the catalogue adds it to the page; where none fits, the page
is not made: ``EXAMPLES`` has to say one.
"""

from __future__ import annotations

import datetime as dt
import json
import tempfile
from collections.abc import Iterator
from itertools import product
from typing import Any

import pyarrow as pa
import spark_functions

import tamis
from tamis.core import expr
from tamis.core.expr import Call, Expr, Mode, Opaque
from tamis.core.expr.json_codec.variant_encoding import encode_variant
from tamis.core.expr.registry import Claim, Function, Partial
from tamis.core.expr.to_sql import literal
from tamis.core.types import VARIANT
from tamis.core.types.arrow import to_arrow_type
from tamis.errors import TamisError

MONTHS = 12
START = dt.datetime(2024, 1, 1, tzinfo=dt.UTC)
KINDS = {
    "ts": pa.timestamp("us", "UTC"), "at": pa.timestamp("us"), "i": pa.int32(), "u": pa.string(), "span": pa.duration("us"),
    "st": pa.struct([("k", pa.int32())]), "attrs": pa.map_(pa.string(), pa.int64()), "v": to_arrow_type(VARIANT),
}  # fmt: skip
"""Columns whose type does not follow from their values."""
NOW = dt.datetime(2024, 12, 31, tzinfo=dt.UTC)

HEAD = """# Which of my filters skip?

Each line below shows a filter over one example table, and how many of the table's twelve parts are read for it. The program made these decisions when this page was
generated (`docs/generate.py`). For your own table, run `tamis explain TABLE --where "…"`.

The table holds the year 2024, one part for each month. These columns rise with time: `ts` (timestamp), `day` (date), `at` (timestamp without zone), `i` (0 to 1199), `l`, `x` (double), `m` (decimal), `s` and `code`
(texts), `span` (interval since New Year), `stamp` (the time as text), `body` (JSON text), `v` (VARIANT), `tags` and `items` (arrays) and `attrs` (map). `user` does not: every part has all its values.
`u` is NULL in every other month, `late` is true from July on, `st.k` is the number of the month less one, `level` is INFO in one month and WARN in the next.

A part is skipped if it is *proved* that the filter is true for none of its rows and fails for none of them ([how](how-skipping-works.md)). So three things decide: whether
a function's result follows from the bounds of its arguments (*claims*), whether it can fail (under ANSI; `try_…` gives NULL instead), and whether the bounds of its columns are narrow. Cluster the table by the column that most filters use.

If a part has at most 32 distinct values of a column (a level, a country, a status), or its integers or days lie that close together, the filter is evaluated for each value.
Then *every* function below is exact, even `LIKE '%x'`, and it can fail only if one of these values makes it fail.

| claim | meaning |
| --- | --- |
| rises, falls | the result rises or falls with this argument: each bound of the argument gives a bound of the result |
| one or the other | monotone, but the direction depends on the other arguments: all combinations of bounds are evaluated |
| single values | exact if the part holds a single value of the argument; otherwise nothing is known |
| rule | the function has a rule of its own: comparisons, logic, branches, prefixes |
"""

TITLES = {
    "comparisons": "Comparisons",
    "boolean_logic": "AND, OR, NOT",
    "conditional": "Branches and NULL",
    "arithmetic": "Arithmetic",
    "whole_numbers": "Signs and whole numbers",
    "bits": "Bits",
    "curves": "Roots, angles, hyperbolic functions",
    "encodings": "Codes of characters",
    "interval_products": "Multiples of intervals",
    "casts": "Casts",
    "days": "Dates",
    "date_fields": "Parts of dates and times",
    "truncate": "Truncation",
    "instants": "Times and intervals",
    "epoch": "Epochs",
    "timestamp_parts": "Timestamps made, months between",
    "calendar": "More of dates and times",
    "date_patterns": "Times as text, text as times",
    "rounding": "Rounding",
    "regular_expressions": "Regular expressions",
    "digests": "Digests",
    "powers": "Powers and logarithms",
    "text_kernels": "More of text",
    "collections": "Arrays and maps",
    "nested_fields": "Fields in arrays",
    "json_text": "JSON in text",
    "variant_values": "VARIANT",
    "text_order": "Text",
}

EXAMPLES = {
    "eq": "i = 550", "ne": "i <> 550", "lt": "ts < '2024-02-01'", "le": "day <= '2024-01-31'", "gt": "ts > current_timestamp() - INTERVAL 30 DAYS", "ge": "code >= 'ORD-11'",
    "null_safe_eq": "u <=> NULL", "is_null": "u IS NULL", "is_nan": "isnan(x)", "in": "i IN (5, 550, 1150)",
    "and": "i > 300 AND i < 400", "or": "i < 100 OR i >= 1100", "not": "NOT (i < 1100)",
    "coalesce": "coalesce(u, 'none') = 'none'", "case": "CASE WHEN i < 600 THEN 'low' ELSE 'high' END = 'low'", "greatest": "greatest(i, 1000) > 1100", "least": "least(i, 100) < 50",
    "add": "i + 1 > 1100", "subtract": "l - i < 100", "multiply": "i * 2 > 2200", "divide": "i / 2 > 560", "div": "i div 100 = 5", "remainder": "i % 2 = 0", "negate": "-i > -50", "abs": "abs(i) < 50",
    "cast": "CAST(ts AS DATE) = '2024-03-05'", "date_add": "date_add(day, 30) > '2025-01-15'", "date_sub": "date_sub(day, 7) < '2024-01-01'", "add_months": "add_months(day, 1) > '2025-01-15'",
    "last_day": "last_day(day) = '2024-02-29'", "datediff": "datediff('2025-01-01', day) < 20", "subtract_dates": "DATE'2025-01-01' - day < INTERVAL 20 DAYS",
    "year": "year(ts) = 2023", "month": "month(day) = 2", "quarter": "quarter(day) = 4", "hour": "hour(ts) = 3", "date_trunc": "date_trunc('MONTH', ts) = '2024-03-01'", "trunc": "trunc(day, 'MONTH') = '2024-03-01'",
    "timestamp_add": "ts + INTERVAL 30 DAYS > '2025-01-15'", "timestamp_add_months": "ts + INTERVAL 1 MONTH > '2025-01-15'", "subtract_timestamps": "TIMESTAMP'2025-01-01 00:00:00' - ts < INTERVAL 20 DAYS",
    "timestamp_seconds": "timestamp_seconds(l) < '1970-01-01 00:10:00'", "starts_with": "startswith(s, 'c')", "like": "s LIKE 'c%'", "substring": "substring(s, 1, 1) = 'd'", "concat": "concat('id-', code) < 'id-ORD-01'",
    "date_format": "date_format(ts, 'yyyy-MM') = '2024-03'",
    "from_unixtime": "from_unixtime(l) < '1970-01-01 00:10:00'",
    "get_json_object": "get_json_object(body, '$.seq') = '550'",
    "from_json": "from_json(body, 'seq INT').seq > 1100",
    "round": "round(x) = 5",
    "bround": "bround(x) = 5",
    "sign": "sign(i - 600) < 0",
    "from_utc_timestamp": "from_utc_timestamp(ts, 'Asia/Tokyo') > '2024-12-20'",
    "to_utc_timestamp": "to_utc_timestamp(at, 'Asia/Tokyo') > '2024-12-20'",
    "make_date": "make_date(2024, st.k + 1, 1) = '2024-03-01'",
    "timestampdiff": "timestampdiff(DAY, ts, TIMESTAMP'2025-01-01 00:00:00') < 20",
    "array_contains": "array_contains(tags, 't3')",
    "element_at": "element_at(tags, 1) = 't3'",
    "array_size": "size(tags) > 1",
    "exists": "exists(tags, t -> t = 't3')",
    "forall": "forall(tags, t -> t = 't3')",
    "is_not_null": "isnotnull(u)", "next_day": "next_day(day, 'MON') > '2024-12-15'", "yearofweek": "extract(YEAROFWEEK FROM day) = 2023", "second_with_fraction": "extract(SECOND FROM ts) = 3.5",
    "timestamp_millis": "timestamp_millis(l) < '1970-01-01 00:00:00.6'", "timestamp_micros": "timestamp_micros(l) < '1970-01-01 00:00:00.0006'",
    "make_timestamp": "make_timestamp(2024, st.k + 1, 1, 0, 0, 0) = '2024-03-01'", "make_timestamp_ntz": "make_timestamp_ntz(2024, st.k + 1, 1, 0, 0, 0) = '2024-03-01'", "timestamp_of_text": "try_to_timestamp(stamp, 'yyyy-MM-dd HH:mm:ss') > '2024-12-15'",
    "months_of": "day + make_ym_interval(0, st.k) > '2025-11-15'", "months_add": "make_ym_interval(0, i) + INTERVAL '1' YEAR > INTERVAL '1111' MONTH", "months_subtract": "make_ym_interval(0, i) - INTERVAL '1' YEAR > INTERVAL '1100' MONTH",
    "interval_days": "extract(DAY FROM span) = 3", "interval_hours": "extract(HOUR FROM span) = 3", "interval_minutes": "extract(MINUTE FROM span) = 30", "interval_seconds": "extract(SECOND FROM span) > 30",
    "interval_add": "span + INTERVAL '1' DAY > INTERVAL '320' DAY", "interval_subtract": "span - INTERVAL '1' DAY > INTERVAL '320' DAY", "interval_negate": "-span > INTERVAL '-20' DAY",
    "array_field": "array_contains(items.sku, 1150)", "element": "tags[0] = 't3'", "map_value": "attrs['k'] = 550",
    "variant_get": "v:seq::int = 550", "is_variant_null": "is_variant_null(v:late)", "parse_json": "parse_json(body):seq::int = 550",
    "raised": "power(x, 2) > 130", "exp": "exp(x) > 100000", "ln": "ln(x) > 2.4", "log10": "log10(x) > 1.05", "log2": "log2(x) > 3.5",
    "matches": "level RLIKE '^[IJ].*O$'", "regexp_extract": "regexp_extract(level, '^(WARN|INFO)', 1) = 'INFO'", "regexp_replace": "regexp_replace(level, 'N$', '') = 'WAR'", "sha2": "sha2(level, 256) = sha2('INFO', 256)",
    "md5": "md5(level) = md5('INFO')", "sha1": "sha1(level) = sha1('INFO')", "crc32": "crc32(level) = crc32('INFO')",
    "round_floor": "floor(m, 1) = 100", "round_ceil": "ceil(m, 1) = 100",
    "reverse": "reverse(level) = 'OFNI'", "repeat": "repeat(level, 2) = 'INFOINFO'", "instr": "instr(level, 'F') > 0", "lpad": "lpad(level, 5, '-') = '-INFO'", "rpad": "rpad(level, 5, '-') = 'INFO-'",
    "pmod": "pmod(i, 5000) > 1150", "months_between": "months_between('2025-01-01', day) < 1",
    "replace": "replace(s, 'b', 'z') = 'z050'", "split": "split(code, '-')[1] = '0550'", "split_part": "split_part(s, '0', 1) = 'b'",
    "acos": "acos(x / 12) < 0.3", "asin": "asin(x / 12) > 1.2", "atan": "atan(x) > 1.48", "atanh": "atanh(x / 12) > 2", "cbrt": "cbrt(i) > 10.4", "cosh": "cosh(x) > 60000", "degrees": "degrees(x) > 660",
    "expm1": "expm1(x) > 100000", "log1p": "log1p(i) > 7.01", "radians": "radians(i) > 20", "sinh": "sinh(x) > 60000", "tanh": "tanh(x) < 0.5", "rint": "rint(x) = 5",
    "hex": "hex(s) >= '6C'", "ascii": "ascii(s) = 98", "translate": "translate(s, 'abc', 'xyz') = 'z000'", "convert_timezone": "convert_timezone('Asia/Tokyo', 'UTC', at) > '2024-12-20'",
    "interval_multiply": "span * 2 > INTERVAL '680' DAY", "interval_divide": "span / 2 > INTERVAL '170' DAY",
    "bits_and": "i & 1024 = 1024", "bits_or": "i | 1023 > 1023", "bits_xor": "i ^ 1024 > 2040", "bits_not": "~i > -50", "bit_count": "bit_count(i) > 10", "bit_get": "bit_get(i, 10) = 1",
    "shift_left": "i << 1 > 2200", "shift_right": "i >> 4 = 3", "shift_right_unsigned": "i >>> 4 = 3",
    "upper": "upper(s) = 'C000'", "length": "length(u) > 3", "contains": "contains(s, '9')", "ends_with": "endswith(s, '9')",
}  # fmt: skip

WRITTEN = {
    "array_field": ("array.field",), "element": ("array[0]",), "map_value": ("map['k']",), "variant_get": ("variant_get", "try_variant_get", "v:path::type"),
    "matches": ("RLIKE", "regexp_like"), "raised": ("power", "pow"), "timestamp_of_text": ("to_timestamp", "to_date", "unix_timestamp with a pattern"),
    "round_floor": ("floor(m, scale)",), "round_ceil": ("ceil(m, scale)",), "yearofweek": ("extract(YEAROFWEEK …)",), "second_with_fraction": ("extract(SECOND …)",),
    "interval_days": ("extract(DAY FROM interval)",), "interval_hours": ("extract(HOUR FROM interval)",), "interval_minutes": ("extract(MINUTE FROM interval)",), "interval_seconds": ("extract(SECOND FROM interval)",),
    "interval_add": ("interval + interval",), "interval_subtract": ("interval - interval",), "interval_negate": ("- interval",), "interval_multiply": ("interval * n",), "interval_divide": ("interval / n",),
    "months_of": ("date + months",), "months_add": ("months + months",), "months_subtract": ("months - months",),
    "timestamp_add": ("timestamp + interval",), "timestamp_add_months": ("timestamp + months",), "subtract_timestamps": ("timestamp - timestamp",), "subtract_dates": ("date - date",),
}  # fmt: skip
"""How one writes what has no name of its own in SQL."""

FORMS = [
    "ts >= '2024-06-29' AND ts < '2024-07-02'", "ts BETWEEN '2024-03-01' AND '2024-03-05'", "to_date(ts) = '2024-03-05'", "ts::date >= '2024-12-01'", "day = current_date() - 3",
    "year(ts) = 2024 AND month(ts) = 2", "i BETWEEN 100 AND 250", "i NOT IN (5, 6)", "i > 500 AND i < 300", "nullif(i, 0) > 1150", "st.k = 4", "late", "NOT late", "m > 100.5", "l = '5000'", "x > 11 AND NOT isnan(x)",
    "left(s, 1) IN ('a', 'b')", "if(late, i, 0) = 0", "i < 100 AND hash(user) = 3", "get_json_object(body, '$.seq')::bigint = 550", "user = 7 AND ts > '2024-12-15'",
]  # fmt: skip

NOT = {
    "user = 7": "The value lies between the bounds of every part, because the rows are not ordered by `user`, and a part has too many values to list them. Cluster by the column, or index it.",
    "hash(i) = 3": "A hash scatters its argument, so a range of arguments gives no bounds for the results.",
    "my_function(i) = 3": "An unknown function may return any value or NULL, or fail. Conjuncts before it still skip.",
    "rand() < 0.5": "The value does not depend on the row.",
    "s LIKE '%9'": "Bounds order texts by how they begin, and say nothing about how they end.",
    "contains(s, '99')": "As for `LIKE '%9'`.",
    "s RLIKE '9$'": "In general, the texts that a regular expression matches are not a range. Write a prefix with LIKE.",
    "length(s) = 4": "There are short and long texts between any two bounds.",
    "md5(s) = 'x'": "As for hashes.",
    "hour(ts) = 3": "Every day has all hours. The filter skips a part that spans less than a day.",
    "i % 10 = 3": "Every range of ten integers has all remainders. The filter may skip a part that spans fewer.",
    "1 / (user - 50) > 5": "The expression may fail (`user` may be 50), and an error is part of the answer. Use `try_divide`, which does not fail, or put a condition before it that excludes such rows.",
    "cast(substring(code, 5, 4) AS INT) > 9000": "Between two texts that are numbers there are texts that are not, so the cast may fail. If a part has few texts, each of them is evaluated; otherwise store a column of the type.",
    "try_cast(substring(code, 5, 4) AS INT) > 9000": "The order of texts is not the order of the numbers that they represent.",
    "substring(code, -2) = '40'": "Bounds order texts by how they begin.",
    "x = 'NaN' OR user = 7": "The filter may be true if one side of the OR may be true.",
}
"""Filters that read everything, and why nothing better is possible; those that skip now are left out of the page."""


def page() -> str:
    with tempfile.TemporaryDirectory() as home:
        table = _table(f"{home}/t")
        lines = [HEAD, "## Filters as people write them", "", "| filter | parts read |", "| --- | --- |"]
        lines += [f"| `{text}` | {_read(table, text)} |" for text in FORMS]
        families: dict[str, list[str]] = {}
        for function in expr.all_entries():
            families.setdefault(_family(function), []).append(_line(table, function))
        for family in [*TITLES, *(f for f in families if f not in TITLES)]:
            lines += ["", f"## {TITLES.get(family, family.replace('_', ' ').capitalize())}", ""]
            lines += [
                "| function | example | parts read | claims | condition |",
                "| --- | --- | --- | --- | --- |",
                *families.get(family, []),
            ]
        lines += ["", "## What does not skip, and why nothing better is possible", ""]
        lines += ["| filter | `explain` says | why |", "| --- | --- | --- |"]
        lines += [
            f"| `{_cell(text)}` | {_cell(_why(table, text))} | {why} |"
            for text, why in NOT.items()
            if _read(table, text) == MONTHS
        ]
        lines += ["", *_spark_functions(table)]
    return "\n".join(lines) + "\n"


def _spark_functions(table: tamis.Table) -> list[str]:
    """Return the part about every function of Spark: the names that stand for others, and those without a rule."""
    return [
        "## Every function of Spark SQL",
        "",
        "`SHOW FUNCTIONS` of Spark 4.3 lists 591 names. Each has a line in one of the tables above, or stands here. These are read as other functions:",
        "",
        "| function | example | parts read |",
        "| --- | --- | --- |",
        *(
            f"| `{name}` | `{_cell(text)}` | {_read(table, text)} |"
            for name, text in sorted(spark_functions.OTHER_NAMES.items())
        ),
        "",
        "These have no rule. A conjunct that holds one may be anything, so it skips nothing by itself; other conjuncts do. What Spark plans as a constant, or as another function, skips through Spark:",
        "",
        "| functions | why |",
        "| --- | --- |",
        *(
            f"| {', '.join(f'`{_cell(name)}`' for name in sorted(names.split()))} | {reason} |"
            for reason, names in spark_functions.REASONS.items()
        ),
    ]


def _table(path: str) -> tamis.Table:
    """The table that the page is about."""
    table: Any = None
    for month in range(MONTHS):
        first = dt.datetime(2024, month + 1, 1, tzinfo=dt.UTC)
        rows = []
        for n in range(100):  # more values than a part keeps one by one
            ts = first + dt.timedelta(hours=6.5 * n)
            i = month * 100 + n
            rows.append(
                {"ts": ts, "day": ts.date(), "at": ts.replace(tzinfo=None), "i": i, "l": 10 * i, "x": i / 100, "s": f"{chr(97 + month)}{n:03d}", "code": f"ORD-{i:04d}",
                 "user": n * 37 % 100, "u": None if month % 2 else "set", "late": month >= 6, "st": {"k": month}, "body": _body(i), "tags": [f"t{month}"], "items": [{"sku": i}],
                 "attrs": [("k", i)], "v": dict(zip(("value", "metadata"), encode_variant(_body(i)), strict=True)), "level": ["INFO", "WARN"][month % 2], "span": ts - START, "stamp": ts.strftime("%Y-%m-%d %H:%M:%S")}
            )  # fmt: skip
        schema = pa.schema([(name, KINDS.get(name) or pa.infer_type([r[name] for r in rows])) for name in rows[0]])
        data = pa.Table.from_pylist(rows, schema=schema)
        data = data.append_column("m", pa.array([r["i"] / 10 for r in rows]).cast(pa.decimal128(10, 2)))
        table = table or tamis.create(path, data.schema, cluster_by=["ts"])
        table.append(data)
    return table  # type: ignore[no-any-return]


def _body(i: int) -> str:
    """A document; its ``late`` is JSON's null in the first half of the year."""
    return json.dumps({"seq": i, "late": i if i >= 600 else None})


def _read(table: tamis.Table, text: str) -> int:
    """How many parts are read."""
    return int(table.explain(text, now=NOW).parts.kept)


def _why(table: tamis.Table, text: str) -> str:
    return "; ".join(e["reason"] for e in table.explain(text, now=NOW).not_skipped_because)


def _family(function: Function) -> str:
    return str((function.kernel or function.combine or function.resolve).__module__).rpartition(".")[2]


def _line(table: tamis.Table, function: Function) -> str:
    text, call = _example(table, function)
    names = ", ".join(
        f"`{name}`" for name in function.sql or WRITTEN.get(function.name, (function.name.replace("_", " "),))
    )
    partial = Partial.NEVER if call.mode is Mode.TRY else function.partial(call)
    fails = {Partial.NEVER: "", Partial.OUTSIDE: "can fail at its limits; ", Partial.ANYWHERE: "can fail; "}[partial]
    note = function.note or ("while the larger unit stays the same" if function.guard else "")
    return f"| {_cell(names)} | `{_cell(text)}` | {_read(table, text)} | {_claims(function, call)} | {(fails + note).rstrip('; ')} |"


def _claims(function: Function, call: Call) -> str:
    """What is claimed of the example's call, an argument after the other."""
    words = {Claim.UP: "rises", Claim.DOWN: "falls", Claim.EITHER: "one or the other", Claim.FIXED: "single values"}
    if function.claims is None:
        return "rule" if function.rule else "single values"
    claims = function.claims(call)
    moving = [words[c] for c, arg in zip(claims, call.args, strict=False) if not isinstance(arg, expr.Literal)]
    return ", ".join(dict.fromkeys(moving)) or "single values"


def _example(table: tamis.Table, function: Function) -> tuple[str, Call]:
    """A filter with a call of the function in it, and that call. Raises ``ValueError`` where there is none: what a page says of a function is shown."""
    schema = table.snapshot.head.schema
    assert schema is not None
    for text in [EXAMPLES[function.name]] if function.name in EXAMPLES else _guesses(table, function):
        try:
            tree = expr.parse_predicate(text, schema)
        except TamisError:
            continue
        if not any(isinstance(node, Opaque) for node in tree.walk()):
            for node in tree.walk():
                if isinstance(node, Call) and node.function == function.name:
                    return text, node
    raise ValueError(f"{function.name} has no example that holds it: add one to EXAMPLES")


ARGUMENTS = ["code", "ts", "day", "i", "x", "m", "2", "'a'", "DATE'2024-06-01'"]


def _guesses(table: tamis.Table, function: Function) -> Iterator[str]:
    """Calls over columns and constants until one fits as it stands; its result is compared with what a row of June gives."""
    row = table.scan("i = 500").to_arrow()
    schema = table.snapshot.head.schema
    assert schema is not None
    for args in (*product(ARGUMENTS, repeat=1), *product(ARGUMENTS, repeat=2)):
        made = f"{function.sql[0]}({', '.join(args)})" if function.sql else ""
        try:
            tree = expr.parse_predicate(f"{made} IS NULL", schema)
        except TamisError:
            continue
        call = next((n for n in tree.walk() if isinstance(n, Call) and n.function == function.name), None)
        if (
            call is None
            or not expr.column_paths(call)
            or any(isinstance(n, Opaque) or (isinstance(n, Call) and n.function == "cast") for n in tree.walk())
        ):
            continue
        value = _value(call, row, schema)
        if value is not None and "NULL" not in value:
            yield made if str(call.type) == "boolean" else f"{made} = {value}"


def _value(call: Expr, row: pa.Table, schema: Any) -> str | None:
    """What the call gives for the row, as SQL; None where it has no literal."""
    from tamis.core.expr.arrow_values import plain_value

    try:
        batch = {f.id: row.column(f.name).combine_chunks() for f in schema}
        out = expr.evaluate(call, batch, 1).values
        return literal(plain_value(out[0] if isinstance(out, pa.Array) else out), call.type)
    except (TamisError, TypeError, ValueError, KeyError, pa.ArrowException):
        return None


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
