-- Functions by total time. :pid picks one process, NULL takes all.
WITH chosen AS (
    SELECT totals.*
      FROM totals
      JOIN processes ON processes.process_id = totals.process_id
     WHERE (:pid IS NULL OR processes.pid = :pid)
)
SELECT name                                                          AS function,
       category,
       sum(calls)                                                    AS calls,
       round(sum(total_ns) / 1e6, 3)                                 AS total_ms,
       round(100.0 * sum(total_ns) / (SELECT sum(total_ns) FROM chosen), 1) AS "%",
       round(1.0 * sum(total_ns) / sum(calls) / 1e3, 3)              AS mean_us,
       round(min(min_ns) / 1e3, 3)                                   AS min_us,
       round(max(max_ns) / 1e3, 3)                                   AS max_us,
       sum(bytes)                                                    AS bytes,
       sum(lost)                                                     AS lost
  FROM chosen
 GROUP BY layer, name
 ORDER BY sum(total_ns) DESC
 LIMIT 40;
