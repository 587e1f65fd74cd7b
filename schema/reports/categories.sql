-- Calls and time by category. :pid picks one process, NULL takes all. Without what the driver asks of the kernel: the
-- time of its calls holds that of their ioctls.
WITH chosen AS (
    SELECT totals.*
      FROM totals
      JOIN processes ON processes.process_id = totals.process_id
     WHERE (:pid IS NULL OR processes.pid = :pid)
       AND totals.layer <> 'ioctl'
)
SELECT category,
       sum(calls)                                                    AS calls,
       printf('%.3f', sum(total_ns) / 1e6)                           AS total_ms,
       printf('%.1f', 100.0 * sum(total_ns) / (SELECT sum(total_ns) FROM chosen)) AS "%",
       printf('%.3f', 1.0 * sum(total_ns) / sum(calls) / 1e3)        AS mean_us,
       sum(bytes)                                                    AS bytes
  FROM chosen
 GROUP BY category
 ORDER BY sum(total_ns) DESC;
