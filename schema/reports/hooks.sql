-- Hooks
-- Calls recorded by `cudatrace probe --hooks`, by hook. Tracepoint calls have no duration. The median is exact for a
-- window, and off by at most a thirty-second for the whole run. Skipped calls exceeded the hook's limit, or were
-- dropped in a nearly full ring.
WITH chosen AS (
    SELECT name, calls, total_ns, max_ns, failed, skipped, lost
      FROM totals
      JOIN processes USING (process_id)
     WHERE :from_ns IS NULL AND :to_ns IS NULL
       AND layer = 'hook'
       AND (:pid IS NULL OR pid = :pid)
     UNION ALL
    SELECT name, 1, duration_ns, duration_ns, status NOT IN (0, 600), 0, 0
      FROM (SELECT 1 FROM functions WHERE layer = 'hook' LIMIT 1)
     CROSS JOIN calls
     WHERE (:from_ns IS NOT NULL OR :to_ns IS NOT NULL)
       AND layer = 'hook'
       AND call_id BETWEEN ifnull(:from_ns, 0) AND ifnull(:to_ns, 9223372036854775807)
       AND (:pid IS NULL OR pid = :pid)
),
summed AS (
    SELECT name, sum(calls) AS calls, sum(total_ns) AS total_ns, max(max_ns) AS max_ns, sum(failed) AS failed,
           sum(skipped) AS skipped, sum(lost) AS lost
      FROM chosen
     GROUP BY name
),
spread AS (
    SELECT name, (from_ns + below_ns) / 2 AS ns, sum(calls) AS calls
      FROM durations
      JOIN processes USING (process_id)
     WHERE :from_ns IS NULL AND :to_ns IS NULL
       AND layer = 'hook'
       AND (:pid IS NULL OR pid = :pid)
     GROUP BY name, from_ns
     UNION ALL
    SELECT name, duration_ns, count(*)
      FROM (SELECT 1 FROM functions WHERE layer = 'hook' LIMIT 1)
     CROSS JOIN calls
     WHERE (:from_ns IS NOT NULL OR :to_ns IS NOT NULL)
       AND layer = 'hook'
       AND call_id BETWEEN ifnull(:from_ns, 0) AND ifnull(:to_ns, 9223372036854775807)
       AND (:pid IS NULL OR pid = :pid)
     GROUP BY name, duration_ns
),
ranked AS (
    SELECT name, ns,
           sum(calls) OVER (PARTITION BY name ORDER BY ns) AS up_to,
           sum(calls) OVER (PARTITION BY name)             AS stored
      FROM spread
),
median AS (
    SELECT name, min(ns) AS ns FROM ranked WHERE up_to >= 0.5 * stored GROUP BY name
)
SELECT name                                               AS hook,
       calls,
       failed,
       round(total_ns / 1e6, 3)                           AS total_ms,
       round(1.0 * total_ns / calls / 1e3, 3)             AS mean_us,
       round(min(median.ns, max_ns) / 1e3, 3)             AS median_us,
       round(max_ns / 1e3, 3)                             AS max_us,
       skipped,
       lost
  FROM summed
  LEFT JOIN median USING (name)
 ORDER BY total_ns DESC, calls DESC
 LIMIT 40;
