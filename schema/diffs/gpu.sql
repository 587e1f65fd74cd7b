-- Time on the GPU
-- Kernels, copies by direction, and sets, by the change in their total time on the GPU. Concurrent work counts in
-- full. Needs records of the GPU's work in both traces.

-- name: side
SELECT coalesce(kernel, copy_kind, kind) AS work, count(*) AS runs, sum(duration_ns) AS gpu_ns
  FROM gpu_work
 GROUP BY 1;

-- name: compare
WITH both AS (
    SELECT work, a.runs AS runs_a, ifnull(b.runs, 0) AS runs_b, a.gpu_ns AS ns_a, ifnull(b.gpu_ns, 0) AS ns_b
      FROM a LEFT JOIN b USING (work)
     UNION ALL
    SELECT work, 0, runs, 0, gpu_ns FROM b WHERE work NOT IN (SELECT work FROM a)
)
SELECT work,
       runs_a,
       runs_b,
       round(ns_a / 1e6, 3)                               AS gpu_ms_a,
       round(ns_b / 1e6, 3)                               AS gpu_ms_b,
       round((ns_b - ns_a) / 1e6, 3)                      AS change_ms,
       round(100.0 * (ns_b - ns_a) / nullif(ns_a, 0), 1)  AS "change_%",
       round(ns_a / 1e3 / nullif(runs_a, 0), 3)           AS mean_us_a,
       round(ns_b / 1e3 / nullif(runs_b, 0), 3)           AS mean_us_b,
       round(100.0 * (1.0 * ns_b / nullif(runs_b, 0)) / nullif(1.0 * ns_a / nullif(runs_a, 0), 0) - 100, 1) AS "mean_change_%"
  FROM both
 WHERE EXISTS (SELECT 1 FROM a) AND EXISTS (SELECT 1 FROM b)
 ORDER BY abs(ns_b - ns_a) DESC, work
 LIMIT 40;
