"""Expressions in Spark SQL over the columns of ``tests.domain.trees``: one or more for every function of the catalogue."""

from __future__ import annotations

PHRASES = """
integer0 = integer1
double0 < double1
double0 <= float0
float0 = 1.5
double0 <=> double1
integer0 <=> NULL
string0 < string1
string0 = 'ab'
boolean0 > boolean1
binary0 >= binary1
decimal0 < decimal1
decimal0 = integer0
bigint0 < double0
integer0 < bigint0
date0 < timestamp0
timestamp0 < timestamp_ntz0
date0 = timestamp_ntz0
date0 > '2024-01-31'
timestamp0 > '2024-01-31 12:00:00'
integer0 = '12'
string0 = string1 OR integer0 > 1
interval0 < interval1
integer0 IN (1, 2, NULL)
integer0 NOT IN (1, 12, 100000)
double0 IN (0.0, double('NaN'), 1.5)
string0 IN ('a', 'é', '')
integer0 IN (integer1, 5, tinyint0)
timestamp0 IN ('2024-01-31 12:00:00', '1969-12-31')
date0 NOT IN (DATE'2024-01-31', '1969-12-31')
integer0 IN ('12', '1.0', '1')
decimal0 = '1.50'
coalesce(date0, '2024-01-31') = '2024-01-31'
date0 IN (DATE'2024-01-31', DATE'1969-12-31')
integer0 BETWEEN -1 AND integer1
boolean0 AND boolean1
boolean0 OR NOT boolean1
boolean0 IS TRUE
boolean0 IS NOT FALSE
string0 IS NULL
isnan(double0)
isnan(float0)
isnotnull(st.x)
st.x = 1
st.y LIKE 'a%'
string0 LIKE 'a%b'
string0 LIKE '_b%'
string0 LIKE 'ab!%%' ESCAPE '!'
string0 NOT LIKE 'a%'
string0 NOT LIKE 'ab!%%' ESCAPE '!'
startswith(string0, 'a')
startswith(string0, string1)
endswith(string0, 'b')
contains(string0, 'b')
cast(integer0 AS TINYINT)
cast(bigint0 AS INT)
cast(double0 AS INT)
cast(double0 AS BIGINT)
cast(float0 AS BIGINT)
cast(double0 AS FLOAT)
cast(bigint0 AS DOUBLE)
cast(bigint0 AS FLOAT)
cast(integer0 AS DECIMAL(6,2))
cast(bigint0 AS DECIMAL(38,10))
cast(decimal0 AS INT)
cast(decimal1 AS TINYINT)
cast(decimal0 AS DOUBLE)
cast(decimal0 AS DECIMAL(4,1))
cast(double0 AS DECIMAL(6,2))
cast(float0 AS DECIMAL(38,10))
cast(string0 AS INT)
cast(string0 AS BIGINT)
cast(string0 AS DOUBLE)
cast(string0 AS DECIMAL(6,2))
cast(string0 AS BOOLEAN)
cast(string0 AS DATE)
cast(string0 AS TIMESTAMP)
cast(string0 AS TIMESTAMP_NTZ)
try_cast(string0 AS INT)
try_cast(string0 AS DATE)
try_cast(bigint0 AS INT)
try_cast(double0 AS BIGINT)
cast(boolean0 AS INT)
cast(integer0 AS BOOLEAN)
cast(double0 AS BOOLEAN)
cast(date0 AS TIMESTAMP)
cast(date0 AS TIMESTAMP_NTZ)
cast(timestamp0 AS DATE)
cast(timestamp_ntz0 AS DATE)
cast(timestamp0 AS TIMESTAMP_NTZ)
cast(timestamp_ntz0 AS TIMESTAMP)
cast(timestamp0 AS BIGINT)
cast(timestamp0 AS DOUBLE)
cast(bigint0 AS TIMESTAMP)
cast(integer0 AS STRING)
cast(boolean0 AS STRING)
cast(decimal0 AS STRING)
cast(date0 AS STRING)
cast(timestamp_ntz0 AS STRING)
cast(timestamp0 AS STRING)
integer0 + integer1
bigint0 + 1
bigint0 - integer0
tinyint0 + tinyint1
smallint0 * smallint1
integer0 * 3
bigint0 * bigint1
double0 + double1
double0 * float0
double0 / double1
integer0 / integer1
integer0 div integer1
bigint0 div -1
integer0 % integer1
bigint0 % 7
double0 % double1
pmod(integer0, 7)
pmod(double0, double1)
decimal0 + decimal1
decimal0 - integer0
decimal0 * decimal1
decimal0 / decimal1
decimal0 % decimal1
decimal0 div decimal1
number0 * number1
number0 + number1
number0 - decimal0
number0 / number1
- integer0
- double0
- decimal0
abs(bigint0)
abs(double0)
abs(decimal0)
floor(double0)
ceil(double0)
floor(decimal0)
ceil(decimal1)
floor(integer0)
try_add(bigint0, 1)
try_divide(integer0, integer1)
try_multiply(bigint0, bigint1)
date_trunc('MONTH', timestamp0)
date_trunc('day', timestamp0)
date_trunc('hour', timestamp0)
date_trunc('minute', timestamp0)
date_trunc('week', timestamp0)
date_trunc('quarter', timestamp0)
date_trunc('year', date0)
date_trunc('second', timestamp0)
date_trunc('millisecond', timestamp_ntz0)
trunc(date0, 'month')
trunc(timestamp0, 'WEEK')
trunc(date0, 'yy')
trunc(date0, 'quarter')
year(timestamp0)
year(date0)
quarter(date0)
month(timestamp0)
day(date0)
dayofyear(date0)
weekofyear(date0)
dayofweek(date0)
weekday(date0)
hour(timestamp0)
minute(timestamp0)
second(timestamp0)
hour(timestamp_ntz0)
extract(YEAR FROM timestamp0)
extract(DOW FROM date0)
extract(WEEK FROM date0)
extract(YEAROFWEEK FROM date0)
date_part('month', timestamp_ntz0)
date_add(date0, 30)
date_sub(date0, tinyint0)
date0 + 1
date0 - 1
date0 + INTERVAL 1 DAY
date0 + INTERVAL 1 MONTH
date0 - INTERVAL 2 YEARS
date0 + INTERVAL 36 HOURS
add_months(date0, -1)
add_months(date0, tinyint0)
last_day(date0)
datediff(date0, date1)
date0 - date1
timestamp0 - timestamp1
timestamp_ntz0 - timestamp_ntz1
timestamp0 - date0
timestamp0 + INTERVAL 1 DAY
timestamp0 - INTERVAL 30 DAYS
timestamp0 + INTERVAL 36 HOURS
timestamp0 + interval0
timestamp0 - interval0
timestamp_ntz0 + interval0
timestamp0 + INTERVAL 1 MONTH
timestamp_ntz0 - INTERVAL 1 MONTH
- interval0
to_date(timestamp0)
to_date(string0)
to_timestamp(date0)
unix_timestamp(timestamp0)
unix_seconds(timestamp0)
unix_millis(timestamp0)
unix_micros(timestamp0)
unix_date(date0)
date_from_unix_date(integer0)
timestamp_seconds(integer0)
timestamp_millis(bigint0)
timestamp_micros(bigint0)
coalesce(integer0, integer1, 5)
nvl(string0, 'x')
coalesce(integer0, bigint0)
nullif(integer0, 1)
nvl2(integer0, string0, string1)
if(integer0 > 0, double0, integer1)
CASE WHEN integer0 > 0 THEN 'x' WHEN boolean0 THEN string0 END
CASE integer0 WHEN 1 THEN 2.5 ELSE decimal0 END
greatest(integer0, bigint0, 3)
least(double0, double1)
greatest(double0, double1)
least(string0, string1)
upper(string0)
lower(string0)
trim(string0)
ltrim(string0)
rtrim(string0)
length(string0)
substring(string0, 1, 2)
substring(string0, 2)
substring(string0, -2, 1)
substring(string0, -3, 2)
substring(string0, 0, 2)
left(string0, 2)
concat('a', string0)
concat(string0, 'z')
concat(string0, integer0)
string0 || string1
""".strip().splitlines()
