"""For every function of the catalogue a filter that skips some of a few parts: ``name | filter``. And those parts."""

from __future__ import annotations

import datetime as dt
import json
from decimal import Decimal
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa

from tamis.core import types as t
from tamis.core.expr.json_codec.variant_encoding import encode_variant
from tamis.core.stats import Collector, TableEvidence
from tamis.core.stats.json_paths.path_evidence import PathTable
from tamis.core.types import Array, DayTimeInterval, Field, Map, Schema, Struct
from tamis.core.types.arrow import to_arrow_schema, to_arrow_type

PARTS, ROWS = 8, 3
SCHEMA = Schema(
    (
        Field("c", t.INTEGER, True, 1),
        Field("i", t.INTEGER, True, 2),
        Field("l", t.LONG, True, 3),
        Field("x", t.DOUBLE, True, 4),
        Field("d", t.Decimal(10, 2), True, 5),
        Field("s", t.STRING, True, 6),
        Field("n", t.STRING, True, 7),
        Field("b", t.BOOLEAN, True, 8),
        Field("dt", t.DATE, True, 9),
        Field("ts", t.TIMESTAMP, True, 10),
        Field("tn", t.TIMESTAMP_NTZ, True, 11),
        Field("iv", DayTimeInterval(), True, 12),
        Field("y", t.BINARY, True, 13),
        Field("st", Struct((Field("a", t.INTEGER, True, 15), Field("b", t.STRING, True, 16))), True, 14),
        Field("a", Array(Field("element", t.INTEGER, True, 18)), True, 17),
        Field("m", Map(Field("key", t.STRING, False, 20), Field("value", t.INTEGER, True, 21)), True, 19),
        Field("es", Array(Field("element", Struct((Field("p", t.INTEGER, True, 24),)), True, 23)), True, 22),
        Field("js", t.STRING, True, 25),
        Field("v", t.VARIANT, True, 26),
        Field("stamp", t.STRING, True, 27),
        Field("opt", t.INTEGER, True, 28),
        Field("n2", t.STRING, True, 29),
    )
)
DDL = (
    "c INT, i INT, l BIGINT, x DOUBLE, d DECIMAL(10,2), s STRING, n STRING, b BOOLEAN, dt DATE, ts TIMESTAMP, tn TIMESTAMP_NTZ, iv INTERVAL DAY TO SECOND, y BINARY, "
    "st STRUCT<a: INT, b: STRING>, a ARRAY<INT>, m MAP<STRING, INT>, es ARRAY<STRUCT<p: INT>>, js STRING, v VARIANT, stamp STRING, opt INT, n2 STRING"
)

TABLE = """
cast | cast(x AS INT) > 12
null_safe_eq | (c, s) IN ((1, 'k1-0x'), (3, 'k3-0x'))
null_safe_eq | (c, l) IN ((1, 0L), (1, 1L), (1, 2L), (1, 3L), (1, 4L), (1, 5L), (1, 6L), (1, 7L), (1, 8L), (1, 9L), (2, 10L), (2, 20000L))
null_safe_eq | NOT (dt, b) IN ((DATE'2024-01-31', true)) AND c < 5
null_safe_eq | struct(c, x) = struct(7, double('NaN'))
null_safe_eq | st = struct(30, 'k3')
lt | (c, s) < (2, 'a')
lt | (c, d) > (5, CAST(50.5 AS DECIMAL(10,2)))
gt | named_struct('p', i, 'q', c).p > 55
gt | element_at(array(i, c), 1) > 55
gt | array_max(array(i, c)) > 55
in | array_contains(array(c, i), 61) AND c > 2
in | array_contains(array(40, 41, 60), i)
array_contains | arrays_overlap(a, array(71, 72))
eq | arrays_overlap(array(i, 500), array(71, 72))
gt | array_position(array(c, i), 71) > 0
gt | exists(array(c, i), e -> e > 65)
rint | rint(x) > 15
case | nanvl(x, 0) > 14.5 AND c <> 7
acos | acos(c / 10.0D) < 1
asin | asin(c / 10.0D) > 0.5
atan | atan(c) > 1.3
atanh | atanh(c / 10.0D) > 0.5
cbrt | cbrt(i) > 4
cosh | cosh(c) > 100
degrees | degrees(c) > 300
expm1 | expm1(c) > 100
log1p | log1p(i) > 4
radians | radians(i) > 1
sinh | sinh(c) > 100
tanh | tanh(c) < 0.5
hex | hex(s) > hex('k5')
ascii | ascii(n) = 51
translate | translate(s, 'k', 'x') > 'x5'
split_part | substring_index(s, '-', 1) = 'k5'
interval_multiply | iv * 2 > INTERVAL '10' DAY
interval_divide | iv / 2 > INTERVAL '3' DAY
convert_timezone | convert_timezone('Asia/Tokyo', 'UTC', tn) > TIMESTAMP_NTZ'2024-06-01 00:00:00'
bits_and | i & 64 = 64
bits_or | i | 64 < 80
bits_xor | i ^ 64 > 100
bits_not | ~ i < -60
bit_count | bit_count(c) = 2
bit_get | bit_get(i, 6) = 1
shift_left | i << 2 > 200
shift_right | i >> 3 > 7
shift_right_unsigned | i >>> 3 > 7
add | i + 1 > 45
subtract | i - 1 > 45
multiply | i * 2 > 90
divide | i / 2 > 22
div | i div 2 > 22
remainder | c % 4 = 3
pmod | pmod(c, 4) = 3
make_date | make_date(c + 2000, 1, 1) > DATE'2005-01-01'
timestampdiff | timestampdiff(DAY, TIMESTAMP'2024-01-01 00:00:00', ts) > 100
from_utc_timestamp | from_utc_timestamp(ts, 'Asia/Tokyo') > TIMESTAMP'2024-05-01 00:00:00'
to_utc_timestamp | to_utc_timestamp(ts, 'Asia/Tokyo') > TIMESTAMP'2024-05-01 00:00:00'
make_ym_interval | dt + make_ym_interval(0, c) > DATE'2024-09-01'
months_add | make_ym_interval(1, c) + INTERVAL '1' MONTH > INTERVAL '18' MONTH
months_subtract | make_ym_interval(1, c) - INTERVAL '1' MONTH > INTERVAL '15' MONTH
months_of | dt + make_ym_interval(0, c) > DATE'2024-09-01'
eq | i = 41
ne | c <> 3
lt | i < 15
le | i <= 15
gt | i > 45
ge | i >= 45
null_safe_eq | opt <=> 3
is_null | opt IS NULL
is_not_null | isnotnull(opt)
is_nan | isnan(x)
in | i IN (40, 41, 60)
in | i IN (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13)
array_field | array_contains(es.p, 5)
array_size | array_size(a) > 5
element | a[0] > 50
element_at | element_at(a, 1) > 50
map_value | m['k'] > 5
array_contains | array_contains(a, 60)
exists | exists(a, e -> e > 65)
forall | forall(a, e -> e > 65)
coalesce | coalesce(opt, 100) < 2
case | CASE WHEN b THEN i ELSE -i END > 55
greatest | greatest(i, c) > 55
least | least(i, c) > 5
date_add | date_add(dt, 5) > DATE'2024-05-01'
date_sub | date_sub(dt, 5) > DATE'2024-05-01'
add_months | add_months(dt, 1) > DATE'2024-06-01'
last_day | last_day(dt) > DATE'2024-06-01'
next_day | next_day(dt, 'MON') > DATE'2024-06-01'
datediff | datediff(dt, DATE'2024-01-01') > 150
subtract_dates | dt - DATE'2024-01-01' > INTERVAL '150' DAY
starts_with | startswith(s, 'k5')
ends_with | endswith(n, '5')
contains | contains(n, '3')
like | s LIKE 'k5%x'
length | length(n2) > 3
upper | upper(s) = 'K5-1X'
lower | lower(s) = 'k5-1x'
trim | trim(s) = 'k5-1x'
ltrim | ltrim(s) = 'k5-1x'
rtrim | rtrim(s) = 'k5-1x'
substring | substring(s, 1, 2) = 'k5'
concat | concat('a', s) > 'ak5'
replace | replace(n, '3', 'x') = 'x'
reverse | reverse(n) = '3'
repeat | repeat(n, 2) = '33'
instr | instr(n, '3') > 0
lpad | lpad(n, 2, '0') = '03'
rpad | rpad(n, 2, '0') = '30'
bit_length | bit_length(n2) > 24
octet_length | octet_length(n2) > 3
split | split(s, '-')[0] = 'k5'
split_part | split_part(s, '-', 1) = 'k5'
md5 | md5(n) = md5('3')
sha1 | sha1(n) = sha1('3')
crc32 | crc32(n) = crc32('3')
sha2 | sha2(n, 256) = sha2('3', 256)
get_json_object | get_json_object(js, '$.t') > 'd4'
get_json_object | cast(get_json_object(js, '$.a') AS INT) > 50
from_json | from_json(js, 'a INT').a > 50
unix_seconds | unix_seconds(ts) > 1714521600
unix_millis | unix_millis(ts) > 1714521600000
unix_micros | unix_micros(ts) > 1714521600000000
unix_timestamp | unix_timestamp(ts) > 1714521600
timestamp_seconds | timestamp_seconds(l) > TIMESTAMP'1970-01-01 10:00:00'
timestamp_millis | timestamp_millis(l) > TIMESTAMP'1970-01-01 00:00:30'
timestamp_micros | timestamp_micros(l) > TIMESTAMP'1970-01-01 00:00:00.03'
unix_date | unix_date(dt) > 19850
date_from_unix_date | date_from_unix_date(i) > DATE'1970-02-10'
year | year(dt) = 2025
yearofweek | extract(YEAROFWEEK FROM dt) = 2025
quarter | quarter(dt) = 3
month | month(dt) = 3
day | day(dt) = 31 AND dt < DATE'2024-03-01'
dayofyear | dayofyear(dt) > 200
weekofyear | weekofyear(dt) > 30
dayofweek | dayofweek(dt) = 2
weekday | weekday(dt) = 0
hour | hour(ts) = 14
minute | minute(ts) = 35
second | second(ts) = 36
second_with_fraction | extract(SECOND FROM ts) > 30
interval_days | extract(DAY FROM iv) = 1
interval_hours | extract(HOUR FROM iv) = 3
interval_minutes | extract(MINUTE FROM iv) = 35
interval_seconds | extract(SECOND FROM iv) > 30
timestamp_add | ts + INTERVAL '1' DAY > TIMESTAMP'2024-05-01 00:00:00'
timestamp_add_months | ts + INTERVAL '1' MONTH > TIMESTAMP'2024-05-01 00:00:00'
subtract_timestamps | ts - TIMESTAMP'2024-01-01 00:00:00' > INTERVAL '100' DAY
interval_add | iv + INTERVAL '1' HOUR > INTERVAL '100' HOUR
interval_subtract | iv - INTERVAL '1' HOUR > INTERVAL '100' HOUR
interval_negate | - iv < INTERVAL '-100' HOUR
and | (i > 20 AND i < 30) IS TRUE
or | i > 65 OR c = 1
not | NOT b
date_format | date_format(ts, 'yyyy-MM') = '2024-03'
from_unixtime | from_unixtime(l, 'yyyy-MM-dd HH') = '1970-01-01 11'
timestamp_of_text | to_timestamp(stamp, 'yyyy-MM-dd HH:mm:ss') = TIMESTAMP'2024-03-03 10:00:00' AND c = 2
raised | power(2, c) > 20
exp | exp(c) > 1000
ln | ln(c + 1) > 2
log10 | log10(c + 1) > 0.8
log2 | log2(c + 1) > 2.5
matches | n RLIKE '3|4+'
regexp_extract | regexp_extract(n, '([0-9])', 1) = '3'
regexp_replace | regexp_replace(n, '[12]', 'x') = '3'
round | round(x) > 15
bround | bround(x) > 15
round_floor | floor(d, 1) > 40
round_ceil | ceil(d, 1) > 40
sign | sign(i - 35) = 1
sqrt | sqrt(c) > 2
negate | - i < -55
abs | abs(i) > 55
floor | floor(x) > 15
ceil | ceil(x) > 15
make_timestamp | make_timestamp(2000 + c, 1, 1, 0, 0, 0) > TIMESTAMP'2005-06-01 00:00:00'
make_timestamp_ntz | make_timestamp_ntz(2000 + c, 1, 1, 0, 0, 0) > TIMESTAMP_NTZ'2005-06-01 00:00:00'
months_between | months_between(dt, DATE'2024-01-31') > 5
date_trunc | date_trunc('MONTH', ts) = TIMESTAMP'2024-03-01 00:00:00'
trunc | trunc(dt, 'MM') = DATE'2024-05-01'
variant_get | variant_get(v, '$.a', 'int') > 50
variant_get | try_variant_get(v, '$.t', 'string') > 'd4'
is_variant_null | is_variant_null(variant_get(v, '$.z', 'variant'))
parse_json | try_variant_get(parse_json(js), '$.a', 'int') > 50
"""
CASES = [tuple(line.split(" | ", 1)) for line in TABLE.strip().splitlines()]

DAY = dt.date(2024, 1, 31)
INSTANT = dt.datetime(2024, 1, 15, 10, tzinfo=dt.UTC)


def row(part: int, at: int) -> dict[str, Any]:
    """One row of a part: what rises, rises from part to part."""
    i = 10 * part + at
    instant = INSTANT + dt.timedelta(days=24 * part, hours=part, minutes=7 * part, seconds=5 * part + at)
    document = json.dumps({"a": i, "t": f"d{part}", "z": None if part == 6 else at})
    return {
        "c": part,
        "i": i,
        "l": 1000 * i,
        "x": float("nan") if part == 7 and at else i / 4,
        "d": Decimal(i),
        "s": f"k{part}-{at}x",
        "n": str(part),
        "b": part % 2 == 0,
        "dt": DAY + dt.timedelta(days=48 * part + at),
        "ts": instant,
        "tn": instant.replace(tzinfo=None),
        "iv": dt.timedelta(days=part, hours=3 * part, minutes=7 * part, seconds=5 * part + at),
        "y": f"k{part}".encode(),
        "st": {"a": i, "b": f"k{part}"},
        "a": [i, i + 1, *range(part)],
        "m": [("k", part)],
        "es": [{"p": part}],
        "js": document,
        "v": dict(zip(("value", "metadata"), encode_variant(document), strict=True)),
        "stamp": f"2024-03-0{part + 1} 10:00:00",
        "opt": None if part == 1 else part,
        "n2": "z" * (part + 1),
    }


@cache
def evidence() -> TableEvidence:
    """The statistics of the parts, as they are written."""
    arrow, parts, paths = to_arrow_schema(SCHEMA), [], []
    variant = to_arrow_type(t.VARIANT)
    for part in range(PARTS):
        rows = [row(part, at) for at in range(ROWS)]
        columns = [pa.array([r[f.name] for r in rows], variant if f.name == "v" else f.type) for f in arrow]
        collector = Collector(SCHEMA)
        collector.update(pa.RecordBatch.from_arrays(columns, names=[f.name for f in arrow]))
        place = {
            "segment": pa.array([0], pa.int32()),
            "part": pa.array([part], pa.int32()),
            "rows": pa.array([ROWS], pa.int64()),
        }
        found = collector.finish()
        parts.append(pa.table(place | dict(zip(found.column_names, found.columns, strict=True))))
        documents = collector.paths()
        assert documents is not None
        count = len(documents)
        paths.append(
            documents.append_column("segment", pa.array(np.zeros(count), pa.int32())).append_column(
                "part", pa.array(np.full(count, part), pa.int32())
            )
        )
    table = pa.concat_tables(parts).combine_chunks()
    return TableEvidence(table, SCHEMA, PathTable.of_parts(pa.concat_tables(paths).combine_chunks(), table))
