-- Functions by total time
-- "%" is the function's share of its layer's time. The time of a runtime call includes the driver calls inside it. The
-- percentiles are off by at most a thirty-second.
WITH chosen AS (
    SELECT layer, name, category, calls, total_ns, min_ns, max_ns, failed, bytes, lost
      FROM totals
      JOIN processes USING (process_id)
     WHERE :from_ns IS NULL AND :to_ns IS NULL
       AND (:pid IS NULL OR pid = :pid)
     UNION ALL
    SELECT layer, name, category, calls, total_ns, min_ns, max_ns, failed, bytes, 0
      FROM call_sums(:from_ns, :to_ns, :pid, :now_ns)
     WHERE :from_ns IS NOT NULL OR :to_ns IS NOT NULL
),
summed AS (
    SELECT layer, name, category, sum(calls) AS calls, sum(total_ns) AS total_ns, min(min_ns) AS min_ns, max(max_ns) AS max_ns,
           sum(failed) AS failed, ifnull(sum(bytes), 0) AS bytes, sum(lost) AS lost
      FROM chosen
     GROUP BY layer, name
),
spread AS (
    SELECT layer, name, (from_ns + below_ns) / 2 AS ns, sum(calls) AS calls
      FROM durations
      JOIN processes USING (process_id)
     WHERE :from_ns IS NULL AND :to_ns IS NULL
       AND (:pid IS NULL OR pid = :pid)
     GROUP BY layer, name, from_ns
     UNION ALL
    SELECT layer, name, (from_ns + below_ns) / 2, sum(calls)
      FROM call_durations(:from_ns, :to_ns, :pid, :now_ns)
     WHERE :from_ns IS NOT NULL OR :to_ns IS NOT NULL
     GROUP BY layer, name, from_ns
),
ranked AS (
    SELECT layer, name, ns,
           sum(calls) OVER (PARTITION BY layer, name ORDER BY ns) AS up_to,
           sum(calls) OVER (PARTITION BY layer, name)             AS stored
      FROM spread
),
percentile AS (
    SELECT layer, name,
           min(ns) FILTER (WHERE up_to >= 0.50 * stored) AS p50_ns,
           min(ns) FILTER (WHERE up_to >= 0.95 * stored) AS p95_ns,
           min(ns) FILTER (WHERE up_to >= 0.99 * stored) AS p99_ns
      FROM ranked
     GROUP BY layer, name
)
SELECT name                                               AS function,
       layer,
       calls,
       round(total_ns / 1e6, 3)                           AS total_ms,
       round(100.0 * total_ns / sum(total_ns) OVER (PARTITION BY layer), 1) AS "%",
       round(1.0 * total_ns / calls / 1e3, 3)             AS mean_us,
       round(max(min_ns, min(p50_ns, max_ns)) / 1e3, 3)   AS p50_us,
       round(max(min_ns, min(p95_ns, max_ns)) / 1e3, 3)   AS p95_us,
       round(max(min_ns, min(p99_ns, max_ns)) / 1e3, 3)   AS p99_us,
       round(max_ns / 1e3, 3)                             AS max_us,
       failed,
       bytes,
       lost,
       category
  FROM summed
  LEFT JOIN percentile USING (layer, name)
 ORDER BY total_ns DESC
 LIMIT 40;
