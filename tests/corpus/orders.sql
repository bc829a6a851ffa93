-- keys
39 | id = 105040
39 | id IN (105040, 117002, 139999)
38 | id BETWEEN 120000 AND 121500
39 | id > 139000
39 | id < 100500
38 | id >= 100000 + 38 * 1000
39 | id - 100000 < 900
38 | (id - 100000) / 1000 > 38.5
39 | id * 2 < 202000
39 | cast(id AS STRING) = '105040'
39 | cast(id AS STRING) LIKE '1050%'
39 | id = 105040.0
39 | id <=> 105040
 0 | mod(id, 10) = 3
39 | id % 2 = 0 AND id > 139500
39 | code = 'ORD-00105040'
39 | code >= 'ORD-00139'
30 | code LIKE 'ORD-0010%'
39 | code LIKE 'ORD-001050__'
 0 | code LIKE '%40'
 0 | substring(code, 1, 7) = 'ORD-001'
30 | substr(code, 1, 8) = 'ORD-0010'
39 | substring(code, 5) >= '00139'
 0 | right(code, 8) >= '00139000'
 0 | cast(substring(code, 5, 8) AS INT) > 139000
39 | replace(code, 'ORD-', '') > '00139'
30 | upper(code) LIKE 'ORD-0010%'
39 | code IN ('ORD-00105040', 'ORD-00117002')
39 | code BETWEEN 'ORD-00110' AND 'ORD-00111'
30 | startswith(code, 'ORD-0013')
38 | concat(code, '-x') >= 'ORD-00139'
39 | trim(code) = 'ORD-00105040'
-- dates
39 | placed = '2025-06-15'
39 | placed = DATE '2025-06-15'
36 | placed >= '2025-12-01'
36 | placed BETWEEN '2025-03-01' AND '2025-03-31'
36 | placed > current_date() - INTERVAL 30 DAYS
38 | placed >= date_sub(current_date(), 14)
36 | placed < add_months(current_date(), -11)
39 | placed >= date_add(DATE '2025-12-31', -5)
36 | year(placed) = 2025 AND month(placed) = 3
40 | year(placed) = 2024
32 | month(placed) IN (6, 7)
29 | quarter(placed) = 4
39 | month(placed) = 12 AND day(placed) > 24
36 | trunc(placed, 'MM') = DATE '2025-05-01'
 0 | trunc(placed, 'YEAR') = DATE '2025-01-01'
40 | trunc(placed, 'Q') = DATE '2025-10-01'
29 | date_trunc('QUARTER', placed) = TIMESTAMP '2025-07-01 00:00:00'
36 | last_day(placed) = DATE '2025-02-28'
39 | next_day(placed, 'MON') <= DATE '2025-01-06'
39 | date_add(placed, 30) > DATE '2026-01-25'
39 | placed + INTERVAL 1 MONTH > DATE '2026-01-28'
39 | placed - INTERVAL '1' YEAR >= DATE '2024-12-25'
39 | datediff(DATE '2026-01-01', placed) < 10
37 | datediff(current_date(), placed) BETWEEN 100 AND 110
39 | unix_date(placed) > 20450
36 | year = 2025 AND month = 3
36 | year * 100 + month = 202511
33 | make_date(year, month, 1) >= DATE '2025-11-01'
36 | month = 3 AND year = 2025 AND id > 105000
36 | concat(year, '-', lpad(month, 2, '0')) = '2025-11'
39 | placed_text = '2025-06-15'
39 | placed_text >= '2025-12-24'
36 | placed_text LIKE '2025-03%'
39 | to_date(placed_text) = DATE '2025-06-15'
36 | to_date(placed_text, 'yyyy-MM-dd') >= DATE '2025-12-01'
38 | CAST(placed_text AS DATE) BETWEEN DATE '2025-03-01' AND DATE '2025-03-05'
38 | try_cast(placed_text AS DATE) > DATE '2025-12-20'
35 | substring(placed_text, 1, 7) = '2025-04'
40 | left(placed_text, 4) = '2024'
36 | year(CAST(placed_text AS DATE)) = 2025 AND month(CAST(placed_text AS DATE)) = 1
 0 | shipped IS NULL
 4 | shipped IS NOT NULL
38 | shipped >= '2025-11-20'
39 | shipped > TIMESTAMP '2025-11-25 00:00:00'
 0 | coalesce(shipped, TIMESTAMP '2026-01-01 00:00:00') > TIMESTAMP '2025-12-01 00:00:00'
39 | shipped - INTERVAL 5 DAYS >= TIMESTAMP '2025-11-20 00:00:00'
 4 | to_date(shipped) = placed
39 | datediff(shipped, placed) > 3 AND id < 101000
-- states and amounts
37 | status = 'open'
37 | status IN ('open', 'paid')
37 | status = 'shipped'
 0 | status <> 'delivered'
34 | status NOT IN ('delivered', 'returned')
37 | lower(status) = 'open'
 0 | initcap(status) = 'Open'
37 | status = 'open' OR status = 'paid'
37 | status LIKE 'op%'
37 | status > 'p' AND status < 'q'
39 | total > 10000
39 | total > 20000.50
39 | total BETWEEN 20000 AND 20200
39 | total * 1.19 > 20000
39 | total / quantity > 15000
39 | round(total) > 20000
39 | cast(total AS INT) > 20000
39 | total - coalesce(discount, 0) > 20000
30 | discount IS NOT NULL
30 | discount > 0.2
30 | coalesce(discount, 0) > 0
30 | nvl(discount, 0.0) >= 0.1
30 | 1 - coalesce(discount, 0) < 1
30 | priority = 9
30 | priority >= 5
30 | priority IN (5, 9)
30 | cast(priority AS STRING) = '9'
39 | weight > 50
39 | weight > 50.5 AND quantity > 5
39 | weight BETWEEN 90 AND 100
40 | quantity > 10
39 | quantity * weight > 300
11 | customer = 77
37 | customer = 77 AND placed >= '2025-12-01'
26 | note IS NOT NULL
26 | note = 'gift'
27 | note LIKE '%ragile'
26 | length(note) > 4
26 | nullif(note, 'gift') IS NOT NULL
-- nested
40 | address.zip = '10042'
39 | address.zip LIKE '10%'
39 | address.zip BETWEEN '20000' AND '22000'
 0 | cast(address.zip AS INT) > 78000
40 | address.city = 'Rome'
38 | address.city = 'Berlin' AND address.zip < '04000'
38 | upper(address.city) = 'BERLIN' AND id < 102000
 0 | size(lines) = 3
39 | lines[0].sku LIKE 'sku-12%'
39 | exists(lines, l -> l.sku = 'sku-12-3')
39 | array_contains(transform(lines, l -> l.sku), 'sku-12-3')
-- branches
39 | CASE WHEN total > 20000 THEN 'big' WHEN total > 100 THEN 'mid' ELSE 'small' END = 'big'
 0 | CASE WHEN shipped IS NULL THEN 'open' ELSE 'done' END = 'open'
37 | if(status = 'open', 1, 0) = 1
36 | (status = 'open' AND total > 50) OR id < 100100
39 | NOT (id > 101000 OR status = 'open')
38 | id > 138000 AND (note = 'gift' OR total > 100)
