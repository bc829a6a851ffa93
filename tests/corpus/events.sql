-- temporal
10 | ts > current_timestamp() - INTERVAL 30 DAYS
33 | ts >= current_timestamp() - INTERVAL 7 DAYS
39 | ts >= now() - INTERVAL '24' HOUR
 9 | ts > current_timestamp() - INTERVAL 1 MONTH
37 | ts >= date_sub(current_date(), 3)
39 | day = current_date() - 1
31 | day >= date_trunc('MONTH', current_timestamp())
39 | to_date(ts) = date_sub(current_date(), 7)
38 | ts BETWEEN '2026-01-10' AND '2026-01-12'
39 | ts >= '2026-01-31' AND ts < '2026-02-01'
39 | ts >= TIMESTAMP '2026-02-03 06:00:00' AND ts < TIMESTAMP '2026-02-03 12:00:00'
39 | ts < '2026-01-01 06:00'
38 | ts >= to_timestamp('2026-02-08 00:00:00')
39 | date_trunc('DAY', ts) = '2026-01-15'
33 | date_trunc('WEEK', ts) = TIMESTAMP '2026-01-12 00:00:00'
31 | date_trunc('month', ts) = DATE '2026-02-01'
39 | date_trunc('hour', ts) = TIMESTAMP '2026-01-20 13:00:00'
39 | to_date(ts) = '2026-01-15'
38 | date(ts) IN ('2026-01-03', '2026-01-05')
37 | CAST(ts AS DATE) BETWEEN DATE '2026-01-20' AND DATE '2026-01-22'
30 | CAST(ts AS STRING) LIKE '2026-01-2%'
31 | year(ts) = 2026 AND month(ts) = 2
39 | month(ts) = 1 AND day(ts) = 15
31 | month(day) = 2
40 | year(ts) = 2025
31 | year(day) * 100 + month(day) = 202602
31 | extract(MONTH FROM ts) = 2
39 | dayofmonth(day) = 31
33 | weekofyear(day) = 3
40 | quarter(day) = 2
36 | dayofyear(day) > 36
 9 | last_day(day) = DATE '2026-01-31'
35 | add_months(day, 1) >= DATE '2026-03-05'
35 | datediff(DATE '2026-02-10', day) <= 5
38 | datediff(current_date(), day) < 3
32 | months_between(DATE '2026-03-01', day) < 1
39 | ts + INTERVAL 1 HOUR > TIMESTAMP '2026-02-09 20:00:00'
39 | ts - INTERVAL 90 MINUTES < TIMESTAMP '2026-01-01 03:00:00'
37 | timestampdiff(DAY, ts, TIMESTAMP '2026-02-10 00:00:00') <= 2
39 | unix_timestamp(ts) >= 1770595200
39 | unix_millis(ts) < 1767312000000
39 | date_format(ts, 'yyyy-MM-dd') = '2026-01-15'
31 | date_format(ts, 'yyyyMM') = '202602'
38 | from_utc_timestamp(ts, 'Asia/Tokyo') >= '2026-02-09'
39 | to_timestamp('2026-01-10') <= ts AND ts <= to_timestamp('2026-01-11')
37 | ts >= make_timestamp(2026, 2, 7, 0, 0, 0)
37 | day >= make_date(2026, 2, 7)
35 | day > DATE '2026-02-05' OR ts < '2026-01-02'
38 | NOT (ts >= '2026-01-03')
38 | ts IS NOT NULL AND ts > '2026-02-08'
-- zone: America/New_York
39 | ts >= '2026-02-09'
38 | to_date(ts) = '2026-01-15'
38 | date_trunc('DAY', ts) = '2026-01-20'
39 | hour(ts) = 3 AND day = DATE '2026-01-05'
-- zone: UTC
-- ids and numbers
39 | seq = 15006
38 | seq IN (15006, 15009, 33000)
39 | seq BETWEEN 20000 AND 20100
39 | seq >= 38000 AND seq < 39000
39 | seq / 1000 >= 39
39 | seq div 1000 = 12
39 | floor(seq / 1000) = 12
38 | seq % 1000 < 200 AND seq > 38000
39 | seq + 5 > 39150
39 | -seq > -100
39 | abs(seq - 20000) < 500
39 | seq = '15006'
38 | CAST(seq AS STRING) = '15006'
39 | CAST(seq AS DOUBLE) > 39000.5
39 | bigint(seq) > 39000
 0 | user = 4711
40 | user IN (1, 2, 3) AND day = DATE '2026-01-07'
39 | user % 10 = 3 AND ts > '2026-02-09'
 0 | hash(user) % 16 = 3
39 | amount > 100 AND day >= DATE '2026-02-08'
19 | amount IS NOT NULL
39 | amount IS NULL AND seq < 1000
19 | coalesce(amount, 0) > 0
 0 | nvl(amount, 0) = 0
16 | round(duration) = 45
 0 | duration > 65
 0 | duration >= 68 OR duration < 1
 0 | isnan(duration)
32 | duration > 60 AND NOT isnan(duration)
39 | ceil(duration) > 68
 0 | sqrt(duration) > 8.2
39 | greatest(seq, 39000) > 39000
39 | least(seq, 100) < 50
-- strings
39 | kind = 'refund'
19 | kind IN ('purchase', 'refund')
39 | kind LIKE 'ref%'
 0 | kind <> 'view'
39 | upper(kind) = 'REFUND'
15 | lower(country) = 'br'
15 | country = 'BR'
15 | country IN ('BR', 'AR')
15 | country NOT IN ('DE', 'FR', 'US', 'JP')
20 | app LIKE '3.%'
20 | app >= '3'
20 | startswith(app, '3')
20 | split(app, '\\.')[0] = '3'
20 | split_part(app, '.', 1) = '3'
20 | substring(app, 1, 1) = '3'
20 | left(app, 2) = '2.'
20 | app RLIKE '^3'
20 | CAST(substring(app, 1, 1) AS INT) >= 3
20 | concat('v', app) >= 'v3'
25 | referrer = 'ads'
25 | referrer IS NOT NULL
25 | referrer LIKE 'm%'
25 | coalesce(referrer, 'none') <> 'none'
25 | nullif(referrer, '') IS NOT NULL
25 | length(referrer) > 0
36 | ok = false
36 | NOT ok
36 | ok IS NOT TRUE
15 | CASE WHEN country = 'BR' THEN 'new' ELSE 'old' END = 'new'
39 | CASE kind WHEN 'refund' THEN 1 WHEN 'purchase' THEN 2 ELSE 0 END = 1
38 | if(day < DATE '2026-01-03', 'early', 'late') = 'early'
-- nested
39 | device.build = 155
37 | device.build BETWEEN 200 AND 220
35 | device.os = 'tv'
35 | device.os IN ('tv', 'watch')
39 | device.build > 390 AND device.os = 'ios'
30 | array_contains(tags, 't3')
38 | array_contains(tags, 'beta')
38 | size(tags) > 1
30 | tags[0] = 't2'
29 | element_at(tags, 1) = 't0'
20 | props['ab'] = 'b'
20 | element_at(props, 'ab') = 'b'
-- json
20 | get_json_object(body, '$.app') >= '3'
20 | get_json_object(body, '$.app') LIKE '3.%'
39 | CAST(get_json_object(body, '$.seq') AS BIGINT) = 15006
39 | CAST(get_json_object(body, '$.seq') AS BIGINT) BETWEEN 20000 AND 20100
39 | CAST(get_json_object(body, '$.score') AS DOUBLE) > 39
39 | get_json_object(body, '$.ref') = 'camp-30'
25 | get_json_object(body, '$.ref') IS NOT NULL
40 | get_json_object(body, '$.user.plan') = 'enterprise'
40 | get_json_object(body, '$.missing') IS NOT NULL
39 | from_json(body, 'seq BIGINT').seq > 39100
40 | from_json(body, 'user STRUCT<id: BIGINT>').user.id < 0
-- mixed
35 | ts > '2026-02-01' AND kind = 'purchase' AND amount > 500
38 | (day = DATE '2026-01-04' AND country = 'DE') OR (day = DATE '2026-01-08' AND country = 'FR')
40 | seq > 10000 AND seq < 5000
40 | day > DATE '2026-02-01' AND seq < 20000
38 | ts >= '2026-01-05' AND to_date(ts) <= '2026-01-06' AND kind IN ('view', 'click')
