-- Two traces
-- The sums for each trace. The `change` column is the change from a to b.

-- name: side
WITH known AS (
    SELECT max(until_ns) AS now_ns
      FROM (SELECT * FROM (SELECT call_id AS until_ns FROM calls ORDER BY call_id DESC LIMIT 1)
             UNION ALL SELECT value FROM meta WHERE key = 'earlier_files_until_ns')
),
process AS ( -- without processes that made no call, such as a probe
    SELECT count(*) AS processes, ifnull(sum(max(ifnull(ended_ns, max(now_ns, started_ns)) - started_ns, 0)), 0) AS ns
      FROM processes
     CROSS JOIN known
     WHERE process_id IN (SELECT process_id FROM totals UNION SELECT process_id FROM open_calls)
),
total AS (
    SELECT sum(calls) AS calls, sum(total_ns) FILTER (WHERE layer = 'driver') AS driver_ns,
           sum(total_ns) FILTER (WHERE layer = 'driver' AND category = 'sync') AS wait_ns,
           sum(calls) FILTER (WHERE layer = 'driver' AND category = 'launch') AS launches,
           sum(bytes) FILTER (WHERE layer = 'driver' AND category = 'copy') AS copied,
           sum(failed) FILTER (WHERE layer = 'driver') AS failed, sum(lost) AS lost
      FROM totals
)
SELECT 1 AS place, 'processes' AS what, processes AS value FROM process
 UNION ALL SELECT 2, 'seconds of processes', ns / 1e9 FROM process
 UNION ALL SELECT 3, 'calls', calls FROM total
 UNION ALL SELECT 4, 'ms in the driver', driver_ns / 1e6 FROM total
 UNION ALL SELECT 5, 'ms waiting', wait_ns / 1e6 FROM total
 UNION ALL SELECT 6, 'launches', launches FROM total
 UNION ALL SELECT 7, 'MB copied', copied / 1e6 FROM total
 UNION ALL SELECT 8, 'failed calls', failed FROM total
 UNION ALL SELECT 9, 'lost calls', lost FROM total;

-- name: compare
WITH both AS (
    SELECT place, a.what, ifnull(a.value, 0) AS a, ifnull(b.value, 0) AS b FROM a JOIN b USING (place)
)
SELECT what,
       iif(typeof(a) = 'integer', a, round(a, 3))         AS a,
       iif(typeof(b) = 'integer', b, round(b, 3))         AS b,
       iif(typeof(b - a) = 'integer', b - a, round(b - a, 3)) AS change,
       round(100.0 * (b - a) / nullif(a, 0), 1)           AS "change_%"
  FROM both
 ORDER BY place;
