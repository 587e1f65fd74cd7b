-- GPUs
-- Shows what each GPU reported of itself while processes were traced: how long it ran kernels, its memory and its power.
-- The column limited_% is the share of samples with limited clocks. The values include the work of processes that were not
-- traced. With --pid, they are of the GPUs that the process used, while it ran. An instance of a divided GPU has the numbers
-- of the GPU, the GPU instance and the compute instance, as in 0/1/0.
WITH reasons AS (
    SELECT gpu_id, group_concat(clock_limits, '; ') AS clock_limits
      FROM (SELECT DISTINCT gpu_id, clock_limits
              FROM gpu_samples
             WHERE clock_limits <> ''
               AND time_ns BETWEEN ifnull(:from_ns, 0) AND ifnull(:to_ns, 9223372036854775807)
             ORDER BY clock_limits)
     GROUP BY gpu_id
)
SELECT label                                         AS gpu,
       name,
       count(*)                                      AS samples,
       round(avg(busy_percent), 1)                   AS "busy_%",
       round(max(memory_used_bytes) / 1e9, 2)        AS peak_gb,
       round(memory_bytes / 1e9, 2)                  AS of_gb,
       round(avg(power_mw) / 1e3, 1)                 AS mean_w,
       max(temperature_c)                            AS max_c,
       round(100.0 * avg(gpu_samples.clock_limits <> ''), 1)     AS "limited_%",
       ifnull(reasons.clock_limits, '')              AS limited_by
  FROM gpu_samples
  JOIN gpus USING (gpu_id)
  LEFT JOIN reasons USING (gpu_id)
 WHERE time_ns BETWEEN ifnull(:from_ns, 0) AND ifnull(:to_ns, 9223372036854775807)
   AND (:pid IS NULL
        OR (gpu_id IN (SELECT gpu_id FROM gpu_processes WHERE pid = :pid AND process_id IS NOT NULL)
            AND EXISTS (SELECT 1 FROM processes
                         WHERE pid = :pid AND time_ns BETWEEN started_ns AND ifnull(ended_ns, time_ns))))
 GROUP BY gpu_id
 ORDER BY gpus.gpu, gpu_id;
