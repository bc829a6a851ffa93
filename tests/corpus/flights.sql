-- keys
36 | carrier = 'EK'
32 | carrier IN ('EK', 'QF')
28 | carrier >= 'LH'
32 | carrier < 'B'
32 | carrier LIKE 'A%'
28 | carrier LIKE '_A'
36 | lower(carrier) = 'ek'
38 | carrier = 'LH' AND departure >= '2026-03-20'
36 | carrier = 'LH' AND number = 7500
36 | carrier || '-' || cast(number AS STRING) = 'EK-4100'
36 | concat(carrier, '-1') = 'EK-1'
32 | carrier BETWEEN 'D' AND 'F'
 8 | carrier <> 'AA' AND carrier <> 'AF'
32 | carrier NOT IN ('AA', 'AF', 'BA', 'DL', 'JL', 'KL', 'LH', 'UA')
40 | carrier = 'XX'
36 | number BETWEEN 4000 AND 4999
36 | number > 9000
36 | number div 1000 = 3
36 | number / 1000 < 1
32 | cast(number AS STRING) LIKE '40%'
36 | tail LIKE 'NEK%'
36 | tail >= 'NUA'
36 | tail = 'NQF123'
36 | substring(tail, 1, 3) = 'NQF'
36 | substring(tail, 2, 2) = 'QF'
28 | tail = concat('N', carrier, '001')
-- times
30 | departure >= '2026-03-25'
39 | departure < '2026-03-03' AND carrier = 'AA'
30 | departure BETWEEN '2026-03-10' AND '2026-03-12'
30 | to_date(departure) = '2026-03-10'
30 | date_trunc('DAY', departure) = TIMESTAMP '2026-03-10 00:00:00'
30 | date_trunc('WEEK', departure) = DATE '2026-03-02'
30 | weekofyear(departure) = 10
30 | day(departure) = 27
30 | day(departure) BETWEEN 1 AND 3
 0 | dayofweek(departure) = 1
 0 | hour(departure) = 3
30 | hour(departure) = 3 AND to_date(departure) = '2026-03-19'
40 | month(departure) = 4
33 | departure + INTERVAL 2 HOURS < TIMESTAMP '2026-03-01 06:00:00'
34 | arrival > '2026-04-01'
 0 | arrival - departure > INTERVAL '10' HOUR
34 | arrival - INTERVAL 1 DAY > TIMESTAMP '2026-03-31 00:00:00'
 0 | timestampdiff(HOUR, departure, arrival) > 12
 0 | unix_timestamp(arrival) - unix_timestamp(departure) > 40000
30 | (unix_timestamp(departure) - 1772323200) / 86400 > 30
36 | date_diff(arrival, departure) >= 1 AND carrier = 'AA'
30 | local >= TIMESTAMP_NTZ '2026-03-24 00:00:00'
30 | local < '2026-03-01 12:00:00'
30 | to_date(local) = DATE '2026-03-18'
30 | hour(local) BETWEEN 5 AND 8 AND local > '2026-03-28'
30 | date_format(departure, 'yyyy-MM-dd') = '2026-03-10'
 0 | date_format(departure, 'E') = 'Sun'
30 | departure > current_timestamp() - INTERVAL 5 DAYS
30 | departure > current_timestamp() - INTERVAL 72 HOURS
30 | datediff(current_date(), departure) <= 3
30 | departure::date = '2026-03-10'
30 | try_to_timestamp('2026-03-30') < departure
-- zone: America/New_York
31 | to_date(departure) = '2026-03-08'
31 | departure >= '2026-03-08 00:00' AND departure < '2026-03-09 00:00'
31 | date_trunc('DAY', departure) = TIMESTAMP '2026-03-08 00:00:00'
40 | date_trunc('HOUR', departure) = TIMESTAMP '2026-03-08 03:00:00'
40 | hour(departure) = 2 AND to_date(departure) = '2026-03-08'
30 | departure + INTERVAL 1 DAY >= TIMESTAMP '2026-03-31 12:00:00'
31 | day(departure) = 8
31 | CAST(departure AS STRING) LIKE '2026-03-08%'
30 | CAST(departure AS TIMESTAMP_NTZ) >= TIMESTAMP_NTZ '2026-03-30 00:00:00'
-- zone: Asia/Kolkata
31 | to_date(departure) = '2026-03-08'
30 | date_trunc('HOUR', departure) >= TIMESTAMP '2026-03-31 00:00:00'
-- zone: UTC
30 | from_utc_timestamp(departure, 'America/New_York') < TIMESTAMP '2026-03-02 00:00:00'
30 | to_utc_timestamp(local, 'America/New_York') > TIMESTAMP '2026-03-31 00:00:00'
-- measures
32 | distance > 9000
36 | distance > 9000 AND dest = 'DXB'
32 | distance BETWEEN 11000 AND 12000
32 | distance * 1.609 > 15000
32 | distance / 100 > 100
32 | pow(distance, 2) > 100000000
36 | dest = 'SYD'
36 | dest IN ('SYD', 'MEL')
36 | dest = 'DXB' AND origin = 'JFK'
40 | origin = 'SFO'
36 | dest LIKE 'S%'
40 | dest = 'LHR' AND carrier = 'EK'
38 | origin = 'JFK' AND carrier IN ('AA', 'UA') AND departure > '2026-03-25'
 0 | delay > 15
39 | delay > 60
 7 | delay IS NULL
37 | coalesce(delay, 0) > 50
37 | abs(delay) > 50
37 | delay BETWEEN 30 AND 40 AND carrier = 'QF'
30 | cancelled
30 | cancelled = true
 0 | NOT cancelled
30 | cancelled IS NOT FALSE
37 | cancelled AND carrier > 'L'
32 | fare > 1500
38 | fare < 50
35 | fare * 0.9 > 1800
32 | round(fare, 0) > 1900
40 | fare / distance > 1 AND distance > 9000
40 | seats > 400
34 | seats < 60 AND distance > 9000
32 | CASE WHEN distance > 9000 THEN 'long' ELSE 'short' END = 'long'
32 | CASE WHEN carrier IN ('EK', 'QF') THEN 1 ELSE 0 END = 1
30 | if(cancelled, 0, 1) = 0
32 | greatest(distance, 500) > 11500
40 | bit_length(carrier) = 24
 0 | md5(tail) LIKE 'ab%'
