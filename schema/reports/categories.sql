-- Calls and time by category, in each layer: a runtime call's time holds that of the driver calls inside it, and
-- that theirs of the ioctls. :pid picks one process, NULL takes all.
WITH chosen AS (
    SELECT totals.*
      FROM totals
      JOIN processes ON processes.process_id = totals.process_id
     WHERE (:pid IS NULL OR processes.pid = :pid)
)
SELECT layer,
       category,
       sum(calls)                                                    AS calls,
       printf('%.3f', sum(total_ns) / 1e6)                           AS total_ms,
       printf('%.1f', 100.0 * sum(total_ns) / sum(sum(total_ns)) OVER (PARTITION BY layer)) AS "%",
       printf('%.3f', 1.0 * sum(total_ns) / sum(calls) / 1e3)        AS mean_us,
       sum(bytes)                                                    AS bytes
  FROM chosen
 GROUP BY layer, category
 ORDER BY layer, sum(total_ns) DESC;
