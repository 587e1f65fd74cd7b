-- Functions by total time; % is of their layer: a runtime call's time holds that of the driver calls inside it. :pid picks one process, NULL takes all.
WITH chosen AS (
    SELECT totals.*
      FROM totals
      JOIN processes ON processes.process_id = totals.process_id
     WHERE (:pid IS NULL OR processes.pid = :pid)
)
SELECT name                                                          AS function,
       layer,
       category,
       sum(calls)                                                    AS calls,
       printf('%.3f', sum(total_ns) / 1e6)                           AS total_ms,
       printf('%.1f', 100.0 * sum(total_ns) / sum(sum(total_ns)) OVER (PARTITION BY layer)) AS "%",
       printf('%.3f', 1.0 * sum(total_ns) / sum(calls) / 1e3)        AS mean_us,
       printf('%.3f', min(min_ns) / 1e3)                             AS min_us,
       printf('%.3f', max(max_ns) / 1e3)                             AS max_us,
       sum(bytes)                                                    AS bytes,
       sum(lost)                                                     AS lost
  FROM chosen
 GROUP BY layer, name
 ORDER BY sum(total_ns) DESC
 LIMIT 40;
