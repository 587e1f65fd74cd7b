-- Functions
-- The functions whose time changed most. A function that is missing from either trace has no calls there.

-- name: side
SELECT layer, name, sum(calls) AS calls, sum(total_ns) AS total_ns, sum(failed) AS failed
  FROM totals
 WHERE layer <> 'nvtx'
 GROUP BY layer, name;

-- name: compare
WITH both AS (
    SELECT layer, name, a.calls AS calls_a, b.calls AS calls_b, a.total_ns AS ns_a, b.total_ns AS ns_b
      FROM a LEFT JOIN b USING (layer, name)
     UNION ALL
    SELECT layer, name, 0, calls, 0, total_ns FROM b WHERE (layer, name) NOT IN (SELECT layer, name FROM a)
)
SELECT name                                               AS function,
       ifnull(calls_a, 0)                                 AS calls_a,
       ifnull(calls_b, 0)                                 AS calls_b,
       round(ifnull(ns_a, 0) / 1e6, 3)                    AS ms_a,
       round(ifnull(ns_b, 0) / 1e6, 3)                    AS ms_b,
       round((ifnull(ns_b, 0) - ifnull(ns_a, 0)) / 1e6, 3) AS change_ms,
       round(ns_a / 1e3 / nullif(calls_a, 0), 3)          AS mean_us_a,
       round(ns_b / 1e3 / nullif(calls_b, 0), 3)          AS mean_us_b,
       round(100.0 * (1.0 * ns_b / nullif(calls_b, 0)) / nullif(1.0 * ns_a / nullif(calls_a, 0), 0) - 100, 1) AS "mean_change_%",
       layer
  FROM both
 ORDER BY abs(ifnull(ns_b, 0) - ifnull(ns_a, 0)) DESC
 LIMIT 40;
