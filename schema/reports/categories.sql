-- Time by category
-- By layer. The time of a runtime call includes the driver calls inside it, whose time includes the ioctls.
WITH chosen AS (
    SELECT layer, category, calls, total_ns, bytes, failed
      FROM totals
      JOIN processes USING (process_id)
     WHERE :from_ns IS NULL AND :to_ns IS NULL
       AND (:pid IS NULL OR pid = :pid)
     UNION ALL
    SELECT layer, category, calls, total_ns, bytes, failed
      FROM call_sums(:from_ns, :to_ns, :pid, :now_ns)
     WHERE :from_ns IS NOT NULL OR :to_ns IS NOT NULL
)
SELECT layer,
       category,
       sum(calls)                                         AS calls,
       round(sum(total_ns) / 1e6, 3)                      AS total_ms,
       round(100.0 * sum(total_ns) / sum(sum(total_ns)) OVER (PARTITION BY layer), 1) AS "%",
       round(1.0 * sum(total_ns) / sum(calls) / 1e3, 3)   AS mean_us,
       sum(failed)                                        AS failed,
       ifnull(sum(bytes), 0)                              AS bytes
  FROM chosen
 GROUP BY layer, category
 ORDER BY layer, sum(total_ns) DESC;
