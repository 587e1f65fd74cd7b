-- Activity of SMs
-- Shows what the SMs of each GPU did while processes were traced, as means of its samples. sm_% is the share of the SMs
-- that had work, and occupancy_% the share of the possible warps. The other columns show how much of the time the units of
-- the SMs worked. dram_% is the traffic of the GPU's memory, as a share of the possible traffic. Only Hopper and newer GPUs have these values, which include the work of processes that were not
-- traced. With --pid, they are of the GPUs that the process used, while it ran.
SELECT label                                  AS gpu,
       name,
       round(avg(sm_busy_percent), 1)         AS "sm_%",
       round(avg(sm_occupancy_percent), 1)    AS "occupancy_%",
       round(avg(tensor_percent), 1)          AS "tensor_%",
       round(avg(fp64_percent), 1)            AS "fp64_%",
       round(avg(fp32_percent), 1)            AS "fp32_%",
       round(avg(fp16_percent), 1)            AS "fp16_%",
       round(avg(integer_percent), 1)         AS "integer_%",
       round(avg(dram_percent), 1)            AS "dram_%"
  FROM gpu_samples
  JOIN gpus USING (gpu_id)
 WHERE sm_busy_percent IS NOT NULL
   AND time_ns BETWEEN ifnull(:from_ns, 0) AND ifnull(:to_ns, 9223372036854775807)
   AND (:pid IS NULL
        OR (gpu_id IN (SELECT gpu_id FROM gpu_processes WHERE pid = :pid AND process_id IS NOT NULL)
            AND EXISTS (SELECT 1 FROM processes
                         WHERE pid = :pid AND time_ns BETWEEN started_ns AND ifnull(ended_ns, time_ns))))
 GROUP BY gpu_id
 ORDER BY gpus.gpu, gpu_id;
