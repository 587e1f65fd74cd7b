-- Functions by total time. :pid picks one process, NULL takes all. Ioctls are made inside the driver's calls: their
-- share is one of the time in these.
WITH chosen AS (
    SELECT totals.*
      FROM totals
      JOIN processes ON processes.process_id = totals.process_id
     WHERE (:pid IS NULL OR processes.pid = :pid)
)
SELECT name                                                          AS function,
       category,
       sum(calls)                                                    AS calls,
       printf('%.3f', sum(total_ns) / 1e6)                           AS total_ms,
       printf('%.1f', 100.0 * sum(total_ns) / (SELECT sum(total_ns) FROM chosen WHERE layer <> 'ioctl')) AS "%",
       printf('%.3f', 1.0 * sum(total_ns) / sum(calls) / 1e3)        AS mean_us,
       printf('%.3f', min(min_ns) / 1e3)                             AS min_us,
       printf('%.3f', max(max_ns) / 1e3)                             AS max_us,
       sum(bytes)                                                    AS bytes,
       sum(lost)                                                     AS lost
  FROM chosen
 GROUP BY layer, name
 ORDER BY sum(total_ns) DESC
 LIMIT 40;
