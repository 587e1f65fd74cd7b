-- NVTX ranges by time on the GPU
-- Sums up the GPU work launched inside each pushed range, by message without trailing numbers. Work counts for every
-- range around its launch. The share is a share of all work with a known call. In a window, a range that ends in it counts
-- as a whole, and so does the work since the first of these ranges began. Needs records of the GPU's work.
WITH chosen AS MATERIALIZED (
    SELECT *
      FROM range_gpu
     WHERE call_id BETWEEN ifnull(:from_ns, 0) AND ifnull(:to_ns, 9223372036854775807)
       AND (:pid IS NULL OR process_id IN (SELECT process_id FROM processes WHERE pid = :pid))
)
SELECT ifnull(domain, '')                                  AS domain,
       -- "step 1", "step 2", … count as one
       CASE WHEN rtrim(message, '0123456789') <> message
             AND substr(rtrim(message, '0123456789'), -1) IN (' ', '_', '-', ':', '=', '/', '#', '.')
            THEN rtrim(message, '0123456789') || 'N'
            ELSE ifnull(message, '') END                   AS range,
       count(*)                                            AS times,
       round(sum(duration_ns) / 1e6, 3)                    AS host_ms,
       round(sum(gpu_ns) / 1e6, 3)                         AS gpu_ms,
       round(100.0 * sum(gpu_ns) / (SELECT nullif(total(duration_ns), 0)
                                      FROM gpu_work
                                     WHERE call_id BETWEEN min(ifnull(:from_ns, 0), (SELECT min(start_ns) FROM chosen)) AND ifnull(:to_ns, 9223372036854775807)
                                       AND (:pid IS NULL OR process_id IN (SELECT process_id FROM processes WHERE pid = :pid))), 1) AS "%",
       round(sum(gpu_ns) / 1e3 / count(*), 3)              AS gpu_us_each,
       sum(kernels)                                        AS kernels,
       sum(copies)                                         AS copies
  FROM chosen
 GROUP BY domain, range
 ORDER BY sum(gpu_ns) DESC, sum(duration_ns) DESC
 LIMIT 30;
