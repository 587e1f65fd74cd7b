-- Kernels
-- First the kernels with a different number of launches, then the kernels whose launch calls changed most in host
-- time.

-- name: side
SELECT ifnull(kernel, '(unknown)') AS kernel, sum(launches) AS launches, sum(total_ns) AS total_ns
  FROM launch_shapes
 WHERE captured = 0
 GROUP BY mangled;

-- name: compare
WITH both AS (
    SELECT kernel, a.launches AS launches_a, ifnull(b.launches, 0) AS launches_b, a.total_ns AS ns_a, b.total_ns AS ns_b
      FROM a LEFT JOIN b USING (kernel)
     UNION ALL
    SELECT kernel, 0, launches, 0, total_ns FROM b WHERE kernel NOT IN (SELECT kernel FROM a)
)
SELECT kernel,
       launches_a,
       launches_b,
       launches_b - launches_a                            AS change,
       round(ns_a / 1e3 / nullif(launches_a, 0), 3)       AS mean_us_a,
       round(ns_b / 1e3 / nullif(launches_b, 0), 3)       AS mean_us_b
  FROM both
 ORDER BY abs(launches_b - launches_a) DESC, abs(ifnull(ns_b, 0) - ns_a) DESC
 LIMIT 30;
