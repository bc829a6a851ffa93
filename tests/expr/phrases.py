"""Expressions in Spark SQL over the columns of ``tests.pruning.trees``: one or more for every function of the catalogue."""

from __future__ import annotations

PHRASES = """
rint(double0)
nanvl(double0, 1.5D)
nanvl(float0, float1)
nanvl(float0, double1)
nanvl(integer0, 1)
hex(string0)
hex(binary0)
hex(integer0)
hex(bigint0)
ascii(string0)
ascii(integer0)
translate(string0, 'ab', 'BA')
translate(string0, 'abaé', 'xy')
substring_index(string0, 'b', 1)
substring_index(string0, 'ab', 1)
interval0 * 2
-3 * interval0
interval0 * integer0
interval0 / 3
interval0 / 2L
convert_timezone('Europe/Berlin', 'America/St_Johns', timestamp_ntz0)
convert_timezone('Pacific/Apia', 'UTC', timestamp_ntz0)
convert_timezone('Australia/Lord_Howe', timestamp_ntz0)
(integer0, string0) IN ((1, 'a'), (12, 'b'), (-1, ''))
(integer0, string0) NOT IN ((1, 'a'), (12, 'b'), (-1, ''))
(integer0, integer1) = (integer1, integer0)
(integer0, double0) = (integer1, double1)
(double0, string0) < (double1, string1)
(double0, string0) <= (1.5D, 'ab')
struct(string0, date0) > struct('a', DATE'2024-01-31')
struct(integer0) >= struct(1)
(integer0, string0) <=> (12, 'a')
(integer0, string0) <> (12, 'a')
st = (1L, 'a')
st <> (1L, 'a')
st < (1L, 'a')
st >= named_struct('x', -7L, 'y', 'ab')
st IN ((1L, 'a'), (-7L, 'ab'))
NOT st IN ((1L, 'a'), (-7L, 'ab'))
named_struct('a', integer0, 'b', string0).a
struct(integer0 AS q, string0).q
array(integer0, integer1)[1]
get(array(integer0, integer1), 0)
element_at(array(string0, string1), -1)
try_element_at(array(double0, double1), 1)
array_contains(array(integer0, integer1), 12)
array_contains(array(double0, double1), double('NaN'))
array_contains(array(1, 12, NULL), integer0)
arrays_overlap(array(integer0, integer1), array(1, 12))
arrays_overlap(array(string0, 'a'), array(string1))
array_position(array(integer0, integer1), 12)
array_max(array(double0, double1))
array_min(array(double0, double1, 1.5D))
exists(array(integer0, integer1), e -> e > 5)
forall(array(integer0, integer1), e -> try_add(e, 1) > 5)
size(array(integer0, integer1))
integer0 & integer1
integer0 & 12
bigint0 | integer0
tinyint0 | 5Y
tinyint0 ^ smallint1
bigint0 ^ -8
~ tinyint0
~ bigint0
integer0 << 3
shiftleft(tinyint0, 40)
bigint0 << integer0
integer0 >> 2
bigint0 >> tinyint0
integer0 >>> 3
bigint0 >>> 60
bit_count(bigint0)
bit_count(tinyint0)
bit_get(integer0, 3)
getbit(tinyint0, 7)
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
abs(integer0)
abs(smallint0)
ceil(float0)
bigint0 % -3
double0 % 2
pmod(bigint0, 3)
pmod(integer0, -3)
pmod(integer0, -2147483648)
pmod(integer0, -2100000000)
pmod(bigint0, -9223372036854775808L)
bigint0 % -9223372036854775808L
bigint0 div -9223372036854775808L
sqrt(double0)
sqrt(integer0)
cast(double0 AS TIMESTAMP)
cast(float0 AS TIMESTAMP)
try_cast(double0 AS TIMESTAMP)
cast(bigint0 AS STRING)
cast(tinyint0 AS STRING)
cast(smallint0 AS STRING)
trunc(date0, 'q')
trunc(date0, 'day')
trunc(timestamp0, 'y')
next_day(date0, 'MON')
next_day(timestamp0, 'sunday')
next_day(date0, 'We')
date_format(timestamp0, 'HH')
date_format(timestamp0, 'HH:mm')
date_format(date0, 'MM-dd')
date_format(timestamp_ntz0, 'dd')
date_format(timestamp0, 'mm:ss.SSS')
from_unixtime(double0 / 1000)
split_part(string0, 'b', 1)
split_part(string0, 'b', 2)
split_part(string0, '-0', 2)
split(string0, '-')[0]
try_element_at(split(string0, '[b]'), 2)
split(string0, 'b')[1]
string0 RLIKE '^a'
string0 RLIKE '[a-c]b'
replace(string0, 'ab', 'z')
concat(string0, '-', string1)
trim(TRAILING 'b' FROM string0)
trim(BOTH 'az' FROM string0)
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
date0 + (date1 - DATE'2024-01-01')
date0 - (INTERVAL 1 DAY + INTERVAL 1 DAY)
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
unix_timestamp(timestamp_ntz0)
to_date(timestamp_ntz0, 'yyyy')
try_to_timestamp(timestamp_ntz0, 'yyyy-MM-dd')
unix_timestamp(timestamp_ntz0, 'yyyy')
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
round(double0, 1)
round(double0)
round(double0, -2)
round(double0, 12)
round(float0, 1)
round(decimal0, 1)
round(number0, 3)
round(decimal0, -2)
round(decimal0, -5)
round(integer0, -2)
round(bigint0, -5)
round(tinyint0, -1)
round(integer0, 2)
bround(double0, 1)
bround(double0)
bround(decimal0, 1)
bround(integer0, -1)
floor(double0, 1)
floor(decimal0, 1)
floor(decimal0, -2)
floor(integer0, -1)
ceil(double0, 2)
ceil(decimal0, 1)
ceil(number0, -3)
sign(double0)
sign(integer0)
signum(decimal0)
date_format(timestamp0, 'yyyy-MM-dd')
date_format(timestamp0, 'yyyyMMddHHmmss')
date_format(date0, 'yyyy-MM')
date_format(timestamp_ntz0, 'yyyy/MM/dd HH:mm:ss.SSSSSS')
date_format(timestamp0, 'dd.MM.yyyy')
date_format(timestamp0, 'EEE, d MMM yy h a')
date_format(timestamp0, 'MMMM D DDD q H m s')
date_format(date0, "yyyy-MM-dd'T'HH")
date_format(string0, 'yyyy')
from_unixtime(integer0)
from_unixtime(bigint0, 'yyyy-MM-dd')
from_unixtime(integer0, 'HH:mm')
to_date(string0, 'yyyy-MM-dd')
to_timestamp(string0, 'yyyy-MM-dd HH:mm:ss')
try_to_timestamp(string0, 'yyyy-MM-dd')
try_to_date(string0)
try_to_date(string0, 'yyyyMMdd')
to_date(timestamp0, 'yyyy')
unix_timestamp(string0, 'yyyy-MM-dd')
unix_timestamp(string0)
unix_timestamp(date0, 'yyyy')
make_date(integer0, 2, 28)
make_date(2024, smallint0, 15)
make_date(2024, 2, tinyint0)
make_date(year(date0), month(date0), 1)
timestampdiff(DAY, timestamp0, timestamp1)
timestampdiff(MONTH, timestamp0, timestamp1)
timestampdiff(MONTH, TIMESTAMP'2024-03-31 12:00:00', timestamp0)
timestampdiff(MONTH, timestamp0, TIMESTAMP'2024-03-31 12:00:00')
timestampdiff(YEAR, date0, timestamp1)
timestampdiff(QUARTER, date0, DATE'2024-02-29')
timestampdiff(HOUR, timestamp0, timestamp1)
timestampdiff(WEEK, timestamp_ntz0, date1)
timestampdiff(MICROSECOND, timestamp_ntz0, TIMESTAMP'2024-03-31 12:00:00')
timestampdiff(DAY, TIMESTAMP'2024-03-31 12:00:00', timestamp0)
datediff(MONTH, date0, date1)
timestampadd(DAY, 3, timestamp0)
timestampadd(MONTH, -1, timestamp0)
timestampadd(HOUR, 30, date0)
timestampadd(HOUR, 30, timestamp0)
timestampadd(SECOND, 90, timestamp_ntz0)
timestampadd(SECOND, integer0, timestamp0)
timestampadd(HOUR, smallint0, timestamp0)
timestampadd(MINUTE, tinyint0, timestamp_ntz0)
timestampadd(DAY, smallint0, timestamp0)
timestampadd(WEEK, tinyint0, timestamp_ntz0)
timestampadd(MILLISECOND, integer0, date0)
timestampadd(MICROSECOND, bigint0 % 1000000, timestamp0)
dateadd(DAY, smallint0, date0)
dateadd(QUARTER, 1, timestamp_ntz0)
dateadd(date0, 5)
from_utc_timestamp(timestamp0, 'Europe/Berlin')
to_utc_timestamp(timestamp0, 'America/St_Johns')
from_utc_timestamp(date0, '+05:30')
make_dt_interval()
make_dt_interval(1, -2, 3, 4.5)
make_dt_interval(smallint0, integer0)
make_dt_interval(smallint0, -23, tinyint0, 59.999999)
make_dt_interval(tinyint0, 1, integer0, smallint0)
timestamp0 + make_dt_interval(0, 0, 0, integer0)
timestamp0 - make_dt_interval(smallint0)
timestamp_ntz0 + make_dt_interval(0, tinyint0, 0, -7)
date0 + make_ym_interval(1, 2)
date0 + make_ym_interval(0, tinyint0)
timestamp0 - make_ym_interval(0, tinyint0)
timestamp_ntz0 + INTERVAL '1-2' YEAR TO MONTH
date0 + (INTERVAL 1 MONTH + INTERVAL 1 YEAR)
timestamp0 + (INTERVAL 1 DAY + INTERVAL 2 HOURS)
interval0 + interval1
interval0 - INTERVAL 1 DAY
extract(SECOND FROM timestamp0)
extract(SECONDS FROM timestamp_ntz0)
extract(DOW_ISO FROM date0)
extract(DOW FROM timestamp0)
extract(WEEK FROM date0)
extract(YEAROFWEEK FROM date0)
date_part('minute', timestamp0)
extract(DAY FROM interval0)
extract(HOUR FROM interval0)
extract(MINUTE FROM interval0)
extract(SECOND FROM interval0)
cast(double0 AS STRING)
cast(float0 AS STRING)
cast(string0 AS VARCHAR(2))
cast(string0 AS CHAR(9))
cast(integer0 AS VARCHAR(2))
trim(BOTH 'ab' FROM string0)
trim(LEADING 'a' FROM string0)
trim('ab', string0)
ltrim('a', string0)
rtrim('b', string0)
btrim(string0, 'a ')
right(string0, 2)
right(string0, 0)
overlay(string0 PLACING 'x' FROM 2)
overlay(string0 PLACING 'xyz' FROM 2 FOR 1)
replace(string0, 'a', 'bb')
replace(string0, '', 'x')
reverse(string0)
repeat(string0, 2)
instr(string0, 'b')
position('b' IN string0)
locate('b', string0)
lpad(string0, 4, '*')
rpad(string0, 2)
rpad(string0, 0)
bit_length(string0)
octet_length(binary0)
length(binary0)
string0 ILIKE 'A%'
string0 NOT ILIKE '%B'
substring(string0, 3, 2)
ifnull(integer0, 7)
zeroifnull(integer0)
nullifzero(integer0)
sqrt(abs(integer0))
power(2, 10)
pow(3, 4) + integer0
make_timestamp(2024, 2, 7, 0, 0, 0)
make_timestamp(2024, 3, tinyint0, 2, 30, 0)
make_timestamp(2024, 11, 3, 1, smallint0, 59.5)
make_timestamp(1969, 12, 31, 23, 59, 60)
make_timestamp(2024, 1, 2, 3, 4, 5.1234567)
make_timestamp_ntz(2024, 2, 7, 0, 0, 0)
make_timestamp_ntz(2024, 3, 10, 2, tinyint0, 5.1234567)
make_timestamp_ntz(1969, 12, smallint0, 23, 59, 60)
try_make_timestamp(2024, tinyint0, 2, 3, 4, 5)
try_make_timestamp_ltz(2024, 3, 10, 2, smallint0, 59.5)
try_make_timestamp_ntz(2024, 2, tinyint0, 24, 0, 0)
months_between(date0, date1)
months_between(timestamp0, timestamp1)
months_between(DATE'2024-02-29', date0)
months_between(date0, '2024-03-31')
string0 RLIKE '^[a-c]+$'
string0 RLIKE 'a.b|\\\\d{2}'
regexp_extract(string0, '([a-z]+)(\\\\d*)$', 2)
regexp_extract(string0, '(a)|(b)', 2)
regexp_extract(string0, '^(.)', 1)
regexp_extract(string0, '[^a-z]$', 0)
regexp_replace(string0, '[ab]+', '-')
md5(string0)
sha1(binary0)
sha2(string0, 256)
sha2(string0, 0)
crc32(string0)
""".strip().splitlines()
