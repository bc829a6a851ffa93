-- times
47 | at >= current_timestamp() - INTERVAL 1 HOUR
47 | at > current_timestamp() - INTERVAL 15 MINUTES
42 | at > now() - INTERVAL '6' HOURS
47 | at BETWEEN current_timestamp() - INTERVAL 3 HOURS AND current_timestamp() - INTERVAL 2 HOURS
22 | at >= '2026-03-29'
47 | at >= '2026-03-29T12:00:00Z' AND at < '2026-03-29T13:00:00Z'
44 | at < TIMESTAMP '2026-03-28 05:30:00'
47 | date_trunc('HOUR', at) = TIMESTAMP '2026-03-28 10:00:00'
47 | date_trunc('MINUTE', at) = TIMESTAMP '2026-03-28 10:15:00'
26 | to_date(at) = '2026-03-28'
47 | hour(at) = 5 AND to_date(at) = '2026-03-29'
46 | hour(at) = 5
30 | hour(at) BETWEEN 9 AND 17
47 | minute(at) = 0 AND at < '2026-03-28 03:00'
36 | epoch >= 1774792800
46 | epoch BETWEEN 1774700000 AND 1774703600
47 | epoch > unix_timestamp() - 3600
46 | epoch > unix_timestamp(current_timestamp()) - 7200
35 | epoch / 3600 >= 492997
42 | timestamp_seconds(epoch) >= TIMESTAMP '2026-03-29 20:00:00'
42 | from_unixtime(epoch) >= '2026-03-29 20:00:00'
47 | from_unixtime(epoch, 'yyyy-MM-dd HH') = '2026-03-29 20'
 0 | to_date(from_unixtime(epoch)) = DATE '2026-03-29'
46 | cast(epoch AS TIMESTAMP) < TIMESTAMP '2026-03-28 04:00:00'
40 | millis > 1774810000000
40 | millis / 1000 > 1774810000
47 | timestamp_millis(millis) BETWEEN TIMESTAMP '2026-03-28 12:00:00' AND TIMESTAMP '2026-03-28 12:30:00'
47 | from_unixtime(millis / 1000) LIKE '2026-03-28 12%'
45 | cast(millis / 1000 AS TIMESTAMP) > TIMESTAMP '2026-03-29 23:00:00'
42 | stamp >= '2026-03-29T20'
38 | stamp LIKE '2026-03-28T1%'
47 | substring(stamp, 1, 13) = '2026-03-28T14'
46 | left(stamp, 10) = '2026-03-30'
 0 | to_timestamp(stamp) >= TIMESTAMP '2026-03-29 20:00:00'
 0 | cast(stamp AS TIMESTAMP) >= TIMESTAMP '2026-03-29 20:00:00'
 0 | try_cast(stamp AS TIMESTAMP) < TIMESTAMP '2026-03-28 04:00:00'
 0 | to_timestamp(stamp, "yyyy-MM-dd'T'HH:mm:ss'Z'") > TIMESTAMP '2026-03-29 22:00:00'
 0 | to_date(stamp) = DATE '2026-03-30'
24 | date_text = '2026-03-29'
24 | date_text IN ('2026-03-28', '2026-03-30')
46 | date_text > '2026-03-29'
46 | date_text = date_format(current_timestamp(), 'yyyy-MM-dd')
24 | cast(date_text AS DATE) = DATE '2026-03-29'
46 | to_date(date_text) >= current_date()
47 | date_text = '2026-03-29' AND hour = 7
45 | date_text = '2026-03-28' AND hour BETWEEN 2 AND 4
44 | (date_text = '2026-03-28' AND hour >= 22) OR (date_text = '2026-03-29' AND hour < 2)
42 | concat(date_text, ' ', lpad(hour, 2, '0')) >= '2026-03-29 20'
46 | hour = 7
44 | hour IN (3, 4)
-- zone: Europe/Berlin
46 | at >= '2026-03-29 01:30' AND at < '2026-03-29 03:30'
47 | date_trunc('HOUR', at) = TIMESTAMP '2026-03-29 03:00:00'
25 | to_date(at) = '2026-03-29'
48 | hour(at) = 2 AND to_date(at) = '2026-03-29'
42 | at + INTERVAL 1 DAY > TIMESTAMP '2026-03-30 22:00:00'
44 | at - INTERVAL 24 HOURS > TIMESTAMP '2026-03-29 00:00:00'
47 | from_unixtime(epoch) LIKE '2026-03-29 03%'
45 | date_format(at, 'HH') = '03'
44 | CAST(at AS STRING) >= '2026-03-30'
-- zone: UTC
-- levels, codes, measures
47 | level = 'FATAL'
39 | level IN ('ERROR', 'FATAL')
44 | level = 'ERROR' AND at >= '2026-03-29'
 0 | level <> 'DEBUG'
47 | lower(level) = 'fatal'
47 | level LIKE 'F%'
36 | level IN ('ERROR') OR status >= 500
44 | status >= 500
44 | status = 503
44 | status BETWEEN 500 AND 599
44 | status / 100 >= 5
44 | floor(status / 100) = 5
44 | status div 100 = 5
44 | cast(status AS STRING) LIKE '5%'
44 | left(cast(status AS STRING), 1) = '5'
44 | status NOT IN (200, 301, 404)
48 | status = 500 AND level = 'ERROR'
44 | CASE WHEN status >= 500 THEN 'bad' WHEN status >= 400 THEN 'hm' ELSE 'ok' END = 'bad'
44 | if(status >= 500, 1, 0) = 1
47 | bytes > 1073741824
47 | bytes / 1024 / 1024 > 1000
47 | bytes / pow(1024, 3) > 1
47 | round(bytes / 1048576) > 1024
47 | took > 5
47 | took > 5.0 AND level = 'INFO'
47 | took * 1000 > 5000
47 | cast(took * 1000 AS INT) > 15000
47 | ceil(took) = 20
47 | log10(bytes + 1) > 9
47 | sqrt(took) > 4
 3 | host = 'web-07'
46 | host = 'web-07' AND at < '2026-03-28 04:00'
48 | host = 'web-99'
48 | host IN ('db-01', 'db-02')
48 | host LIKE 'db-%'
44 | host LIKE 'web-0%' AND status = 503
46 | host RLIKE 'web-0[1-3]' AND at > '2026-03-30'
24 | path LIKE '/v2/%'
24 | path LIKE '/v2/api/1%'
 0 | path LIKE '%/v2/%'
24 | startswith(path, '/v2')
 0 | instr(path, 'v2') > 0
24 | split(path, '/')[1] = 'v2'
24 | substring(path, 1, 3) = '/v2'
38 | contains(path, 'v2') AND at < '2026-03-28 12:00'
 0 | path = '/api/42'
24 | path ILIKE '/V2/%'
 0 | agent IS NULL
 0 | agent = 'curl/8.1'
42 | agent LIKE 'curl%' AND at > '2026-03-29 20:00'
48 | coalesce(agent, '') = 'wget'
47 | deploy = '2026.03.29-0030'
46 | deploy LIKE '2026.03.30%'
22 | deploy >= '2026.03.29'
26 | split_part(deploy, '-', 1) = '2026.03.28'
47 | cast(right(deploy, 4) AS INT) = 31
47 | regexp_extract(deploy, '-(\\d+)$', 1) = '0031'
-- json
47 | cast(get_json_object(request, '$.ms') AS INT) > 47000
48 | get_json_object(request, '$.method') = 'DELETE'
47 | get_json_object(request, '$.trace.span') >= 's47'
47 | get_json_object(request, '$.trace.span') LIKE 's12%'
48 | get_json_object(request, '$.trace.parent') IS NOT NULL
47 | from_json(request, 'ms INT').ms BETWEEN 12000 AND 12100
47 | from_json(request, 'trace STRUCT<span: STRING>').trace.span = 's12345'
-- mixed
47 | at > '2026-03-29 20:00' AND (level = 'ERROR' OR status >= 500)
48 | at > '2026-03-29' AND at < '2026-03-28'
46 | level = 'ERROR' AND took > 1.9 AND at BETWEEN '2026-03-28 06:00' AND '2026-03-28 20:00'
48 | epoch > 1774792800 AND date_text = '2026-03-28'
46 | status >= 500 AND hour NOT BETWEEN 20 AND 23
