-- Graphs
-- Counts how often each process launched graphs, and how many kernels the graphs replayed. CUPTI and Nsight count
-- these kernels as launches, but the `kernels` section does not. The `unknown` column counts launches with an unknown
-- number of kernels, for example of graphs with conditional nodes. Their kernels are missing from the sum.
SELECT pid,
       count(*)                                           AS launches,
       count(DISTINCT graph_exec)                         AS graphs,
       sum(kernel_nodes)                                  AS kernels,
       count(*) FILTER (WHERE kernel_nodes IS NULL)       AS unknown,
       round(sum(duration_ns) / 1e6, 3)                   AS total_ms,
       round(avg(duration_ns) / 1e3, 3)                   AS mean_us,
       round(max(duration_ns) / 1e3, 3)                   AS max_us,
       cmdline                                            AS command
  FROM graph_launches
  JOIN processes USING (process_id)
 WHERE captured = 0
   AND call_id BETWEEN ifnull(:from_ns, 0) AND ifnull(:to_ns, 9223372036854775807)
   AND (:pid IS NULL OR pid = :pid)
 GROUP BY process_id
 ORDER BY sum(kernel_nodes) DESC
 LIMIT 30;
