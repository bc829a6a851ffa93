"""Filters that must skip, and exactly how many pieces: soundness alone is easy for who never skips. This list may only grow."""

from __future__ import annotations

import pytest

from tamis.core import expr
from tamis.core.pruning import decide
from tests.pruning.evidence_of import RowsEvidence
from tests.pruning.monthly_pieces import HOUR, PIECES, SCHEMA, START

CASES = [
    line.rsplit("|", 2)
    for line in """
ts >= TIMESTAMP'2024-06-29 00:00:00'|6|6
ts < TIMESTAMP'2024-01-15 00:00:00'|11|0
date_trunc('MONTH', ts) = TIMESTAMP'2024-03-01 00:00:00'|10|1
date_trunc('day', ts) + INTERVAL 1 DAY > TIMESTAMP'2024-12-20 00:00:00'|11|0
ts + INTERVAL 30 DAYS > TIMESTAMP'2024-12-01 00:00:00'|10|1
ts - INTERVAL 30 DAYS > TIMESTAMP'2024-12-01 00:00:00'|12|0
ts + INTERVAL 1 MONTH > TIMESTAMP'2024-12-30 00:00:00'|11|0
ts > current_timestamp() - INTERVAL 40 DAYS|10|1
cast(ts AS DATE) = DATE'2024-02-03'|11|0
to_date(ts) >= '2024-12-01'|11|0
year(ts) = 2023|12|0
year(ts) = 2024|0|12
month(d) = 1|10|1
quarter(d) = 4|9|2
d BETWEEN DATE'2024-03-01' AND DATE'2024-03-05'|11|0
d = '2024-01-02'|11|0
d + INTERVAL 1 MONTH > DATE'2024-12-30'|11|0
date_add(d, 30) > DATE'2024-12-30'|11|0
datediff(d, DATE'2024-01-01') > 330|11|0
last_day(d) = DATE'2024-02-29'|11|0
unix_timestamp(ts) < 1704067200|12|0
i = 550|11|0
i = 571|11|0
i <> 550|0|11
i IN (5, 750, 1150)|9|0
i NOT IN (5, 750, 1150)|0|9
i IN (80, 99, 280, 1190)|12|0
i + 1 > 1101|11|0
i * -2 <= -2200|11|1
2 * i BETWEEN 600 AND 700|11|0
- i > -50|11|0
abs(i) < 50|11|0
cast(i AS BIGINT) = 1100|11|0
i = 550.0|11|0
i > 20.5|0|11
i / 2 > 560|11|0
l div 1000 = 5|11|1
l = '5000'|11|0
x > 10.5|10|1
x IN (0.5, 11.5)|10|0
isnan(x)|12|0
x = double('NaN')|12|0
double('NaN') > x|0|12
x > float('NaN')|12|0
x IN (double('NaN'), 10.719D)|11|0
x BETWEEN 10.5 AND double('NaN')|10|1
NOT isnan(x)|0|12
floor(x) = 3|11|1
x > 5 AND x < 4|12|0
i = 550 AND l < 5000|12|0
s LIKE 'c%'|11|1
s LIKE 'c2%'|11|0
s NOT LIKE 'c%'|1|11
startswith(s, 'l')|11|1
s >= 'l'|11|1
s IN ('a000', 'zz')|11|0
substring(s, 1, 1) = 'd'|11|1
left(s, 1) IN ('a', 'b')|10|2
concat('p-', s) < 'p-b'|11|1
m = 50|11|1
m > 100.5|11|1
cast(m AS INT) >= 100|10|2
b|6|6
NOT b|6|6
b IS TRUE|6|6
b = false|6|6
u IS NULL|6|6
u IS NOT NULL|6|6
u = 'set'|6|6
u <=> NULL|6|6
coalesce(u, 'none') = 'none'|6|6
upper(u) = 'NONE'|12|0
length(u) = 3|6|6
st.k = 4|11|1
st.k > i|12|0
l >= i|0|11
CASE WHEN i < 600 THEN 'low' ELSE 'high' END = 'low'|6|6
if(b, i, l) > 1000|5|5
greatest(i, 500) = 500|6|5
least(l, 100) < 100|11|0
nullif(i, 550) > 1150|11|0
(i < 100 OR i > 1100) AND b|11|0
NOT (i < 100 OR i >= 1100)|2|10
i < 100 OR hash(s) = 3|0|1
i < 100 AND hash(s) = 3|11|0
i & 1024 = 1024|10|1
i & 3 = 7|12|0
i | 1024 < 1024|12|0
i ^ 1024 > 2000|8|0
~i > -50|11|0
i << 1 > 2200|11|0
i >> 4 = 3|11|0
i >>> 4 = 3|11|0
bit_get(i, 10) = 1|10|1
bit_count(i) > 10|11|0
(i, s) IN ((571, 'a000'), (550, 'g000'))|12|0
(i, l) IN ((500, 5000L), (550, 5500L))|11|0
(i, s) < (50, 'z')|11|0
(i, s) > (1100, 'a')|11|0
struct(i, l) = struct(500, 5000L)|11|0
named_struct('a', i, 'b', l).b > 11500|11|0
st = struct(4L)|11|0
array(i, l)[0] > 1100|11|0
element_at(array(i, 5), 1) > 1100|11|0
array_contains(array(l, 5L), 11710)|11|0
array_contains(array(5, 750, 1150), i)|9|0
arrays_overlap(array(i), array(5, 750, 1150))|9|0
array_max(array(i, 500)) > 1100|11|0
array_min(array(l, 100)) < 100|11|0
array_position(array(i, 7), 1150) = 1|11|0
exists(array(i, i), e -> e > 1100)|11|0
rint(x) = 3|10|0
nanvl(x, 0) > 10.5|10|1
hex(s) >= '6C'|11|1
ascii(s) = 98|11|1
translate(s, 'abc', 'xyz') = 'z000'|11|0
substring_index(s, '-', 1) >= 'l'|11|1
atan(x) > 1.48|11|1
cbrt(i) > 10.4|11|0
cosh(x) > 30000|11|0
log1p(i) > 7.01|11|0
round(x) = 3|10|0
round(x, 1) > 10.5|10|1
round(i, -2) = 600|10|0
bround(x) <= 1|10|1
floor(x, 1) = 3.1|11|0
sign(i) = -1|12|0
date_format(ts, 'yyyy-MM') = '2024-03'|10|1
date_format(ts, 'yyyy-MM-dd') >= '2024-12-01'|11|0
date_format(d, 'yyyyMMdd') < '20240120'|11|0
date_format(ts, 'MM-yyyy') = '03-2024'|0|0
from_unixtime(unix_timestamp(ts), 'yyyy-MM') = '2024-03'|10|1
to_date(s, 'yyyy-MM-dd') > DATE'2024-01-01'|0|0
try_to_date(s) > DATE'2024-01-01'|0|0
make_date(year(d), 1, 1) = DATE'2025-01-01'|12|0
timestampdiff(DAY, TIMESTAMP'2024-01-01 00:00:00', ts) >= 330|11|1
timestampdiff(MONTH, ts, TIMESTAMP'2024-12-31 00:00:00') = 0|11|0
datediff(DAY, DATE'2024-01-01', d) < 20|11|0
timestampadd(DAY, 30, ts) > TIMESTAMP'2024-12-01 00:00:00'|10|1
timestampadd(SECOND, i * 60, ts) > TIMESTAMP'2024-12-01 00:00:00'|11|0
timestampadd(DAY, i % 30, ts) > TIMESTAMP'2024-12-30 00:00:00'|11|0
ts + make_dt_interval(0, i, 0, 90) > TIMESTAMP'2025-01-15 00:00:00'|11|0
ts + i * INTERVAL '1' HOUR > TIMESTAMP'2025-01-15 00:00:00'|11|0
from_utc_timestamp(ts, 'Europe/Berlin') < TIMESTAMP'2024-01-15 00:00:00'|11|0
to_utc_timestamp(ts, 'Europe/Berlin') >= TIMESTAMP'2024-12-01 00:00:00'|11|0
ts >= TIMESTAMP'2024-12-31 00:00:00' - INTERVAL 1 MONTH|11|0
d + make_ym_interval(0, 1) > DATE'2024-12-30'|11|0
extract(DOW_ISO FROM d) = 8|12|0
extract(SECOND FROM ts) >= 60|12|0
substring(s, 2, 1) = '9'|12|0
substring('b' || s, 2, 1) = 'd'|11|1
cast(l AS TINYINT) = 5|0|0
try_cast(l AS TINYINT) = 5|0|0
lower(s) LIKE 'c%'|11|1
lower(s) = 'A000'|12|0
upper(s) >= 'L'|11|1
s ILIKE 'C%'|11|1
trim(s) = 'c000'|11|0
rtrim(s) >= 'l'|11|1
replace(s, 'x', '') < 'b'|11|0
concat(s, '-x') >= 'l'|10|1
split_part(s, '-', 1) >= 'l'|11|1
split(s, '-')[0] >= 'l'|11|1
split(concat('a-', s), '-')[1] >= 'l'|11|1
s RLIKE '^[ab]'|10|2
cast(i AS STRING) = '550'|10|0
cast(i AS STRING) LIKE '11%'|9|1
cast(d AS STRING) LIKE '2024-03%'|10|1
cast(ts AS STRING) >= '2024-12-01'|11|0
date_format(d, 'MM-dd') >= '12-01'|11|0
abs(i - 550) > 500|9|1
i % 10 = 10|12|0
i % 7 = 3 AND i < 100|11|0
pmod(i, 7) < 0|12|0
ceil(x) = 3|10|0
sqrt(i) < 5|11|0
next_day(d, 'MON') > DATE'2024-12-20'|11|0
trunc(d, 'q') = DATE'2024-01-01'|12|0
cast(l / 2.0D AS TIMESTAMP) < TIMESTAMP'1970-01-01 00:05:00'|11|0
ts > timestamp_seconds(unix_timestamp() - 86400)|11|0
from_unixtime(l / 10) LIKE '1970-01-01 00:00%'|11|0
""".strip().splitlines()
]


@pytest.mark.parametrize(("text", "none", "every"), CASES, ids=[c[0] for c in CASES])
def test_must_skip(text: str, none: str, every: str) -> None:
    now = (START + 359 * 24 * HOUR,) * 2
    conjuncts = expr.conjuncts_of(expr.parse_predicate(text, SCHEMA))
    decision = decide(conjuncts, RowsEvidence(SCHEMA, PIECES), now=now, strict=True)
    assert (int(decision.none.sum()), int(decision.all.sum())) == (int(none), int(every)), decision.why


@pytest.mark.parametrize("count", ["'a'", "true", "1.5", "1.5D", "3L", "l", "x", "NULL"])
def test_intervals_of_other_than_integers_are_left_to_spark(count: str) -> None:
    """Spark casts or refuses them; a text must not be repeated as often as a day has microseconds."""
    predicate = expr.parse_predicate(f"ts + make_dt_interval({count}) > TIMESTAMP'2024-12-01 00:00:00'", SCHEMA)
    assert not expr.is_supported(predicate)
    assert not decide((predicate,), RowsEvidence(SCHEMA, PIECES), now=None, strict=True).none.any()
