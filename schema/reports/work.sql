-- Work by time on the GPU
-- Shows kernels, directions of copies, sets and whole graphs by their total time on the GPU. Concurrent work counts in full.
-- The column queued_us is the mean time from the driver's queue to the start. Needs records of the GPU's work.
SELECT coalesce(kernel, copy_kind, 'graph ' || graph, kind)                  AS work,
       sum(runs)                                                             AS runs,
       round(sum(duration_ns) / 1e6, 3)                                      AS gpu_ms,
       round(100.0 * sum(duration_ns) / sum(sum(duration_ns)) OVER (), 1)    AS "%",
       round(1.0 * sum(duration_ns) / sum(runs) / 1e3, 3)                    AS mean_us,
       round(max(longest_ns) / 1e3, 3)                                       AS max_us,
       round(1.0 * sum(queued_ns) / nullif(sum(queued_runs), 0) / 1e3, 3)    AS queued_us,
       CASE WHEN sum(duration_ns) > 0 THEN round(1.0 * sum(bytes) / sum(duration_ns), 3) END AS gb_per_s
  FROM gpu_work_sums(:from_ns, :to_ns, :pid)
 GROUP BY kind, mangled, copy_kind, graph
 ORDER BY sum(duration_ns) DESC
 LIMIT 30;
