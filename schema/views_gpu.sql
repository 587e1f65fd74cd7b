-- The views of GPUs: the work that each GPU did, and the values that it reported of itself. They have the form of those
-- in views.sql.

CREATE VIEW gpu_work AS
-- Work that GPUs have done: kernels, copies, sets and whole graphs, with their times on the GPU. The column call_id is
-- the call that caused the work, e.g. in `launches`, `copies` or `graph_launches`. It is NULL if the call is unknown or
-- has expired. The numbers of devices, contexts, streams, graphs and nodes are CUPTI's. A process counts only the devices
-- that CUDA_VISIBLE_DEVICES lists.
SELECT gpu_task.process_id,
       correlation.call_id,
       CASE WHEN gpu_task.kind IN ('kernel', 'set', 'graph') THEN gpu_task.kind ELSE 'copy' END AS kind,
       name.demangled                 AS kernel,       -- NULL if the name is unknown
       gpu_task.device,
       gpu_task.context,
       gpu_task.stream,
       gpu_run.start_ns               AS gpu_start_ns,
       gpu_run.start_ns + gpu_run.duration_ns AS gpu_end_ns,
       gpu_run.duration_ns,
       gpu_run.queued_ns,                              -- from the driver's queue to the start; NULL if unknown
       nullif(gpu_task.graph, 0)      AS graph,        -- the executable graph, NULL for none
       nullif(gpu_task.node, 0)       AS node,         -- its node, NULL for none
       gpu_run.bytes,                                  -- of copies and sets
       CASE WHEN gpu_task.kind NOT IN ('kernel', 'set', 'graph') THEN gpu_task.kind END AS copy_kind, -- HtoD, DtoH, DtoD, …
       name.mangled
  FROM gpu_run
 CROSS JOIN gpu_task ON gpu_task.gpu_task_id = gpu_run.gpu_task_id
  LEFT JOIN kernel ON kernel.process_id = gpu_task.process_id AND kernel.number = gpu_task.kernel
  LEFT JOIN name   ON name.name_id = kernel.name_id
  LEFT JOIN correlation ON correlation.process_id = gpu_task.process_id
                       AND correlation.correlation = gpu_run.correlation
                       AND correlation.call_id >= ifnull((SELECT value FROM meta WHERE key = 'expired_before_ns'), 0);

-- Gets the name of work: its kernel, or its kind if it has none.
-- macro: work_name(run)
(SELECT ifnull(name.demangled, gpu_task.kind)
          FROM gpu_run
         CROSS JOIN gpu_task ON gpu_task.gpu_task_id = gpu_run.gpu_task_id
          LEFT JOIN kernel ON kernel.process_id = gpu_task.process_id AND kernel.number = gpu_task.kernel
          LEFT JOIN name   ON name.name_id = kernel.name_id
         WHERE gpu_run.run_id = :run)

CREATE VIEW gpu_idle AS
-- The gaps between the work of each device. In a gap, the device does no work of any traced process. A gap ends when the
-- next work begins. The column process_id is the process of that work, and call_id is the call that caused it.
WITH run AS (
    SELECT gpu_run.run_id, gpu_task.device, gpu_task.process_id, gpu_run.correlation, gpu_run.start_ns,
           gpu_run.start_ns + gpu_run.duration_ns AS end_ns,
           max(gpu_run.start_ns + gpu_run.duration_ns)
               OVER (PARTITION BY gpu_task.device ORDER BY gpu_run.start_ns, gpu_run.run_id
                     ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS busy_until_ns
      FROM gpu_run
     CROSS JOIN gpu_task ON gpu_task.gpu_task_id = gpu_run.gpu_task_id
),
numbered AS MATERIALIZED ( -- adds the number of gaps so far
    SELECT run.*,
           count(*) FILTER (WHERE start_ns > busy_until_ns)
               OVER (PARTITION BY device ORDER BY start_ns, run_id ROWS UNBOUNDED PRECEDING) AS gaps
      FROM run
),
ended AS MATERIALIZED (
    SELECT device, gaps, run_id, max(end_ns) AS end_ns FROM numbered GROUP BY device, gaps -- run_id of the row with the maximum
),
gap AS (
    SELECT begun.device, ended.end_ns AS from_ns, begun.start_ns AS to_ns, ended.run_id AS ended_id, begun.run_id AS begun_id,
           begun.process_id, correlation.call_id
      FROM numbered AS begun
      JOIN ended ON ended.device = begun.device AND ended.gaps = begun.gaps - 1
      LEFT JOIN correlation ON correlation.process_id = begun.process_id
                           AND correlation.correlation = begun.correlation
                           AND correlation.call_id >= ifnull((SELECT value FROM meta WHERE key = 'expired_before_ns'), 0)
     WHERE begun.start_ns > begun.busy_until_ns
)
SELECT gap.device,
       gap.from_ns,
       gap.to_ns,
       gap.to_ns - gap.from_ns        AS duration_ns,
       work_name(gap.ended_id)        AS ended,        -- the work that ended last before the gap: its kernel or kind
       work_name(gap.begun_id)        AS begun,        -- the first work after the gap
       gap.process_id,
       gap.call_id,
       (SELECT name
          FROM (SELECT function.name, site.depth, call.end_ns,
                       min(call.end_ns, gap.to_ns) - max(call.end_ns - call.duration_ns, gap.from_ns) AS inside_ns
                  FROM call
                 CROSS JOIN site ON site.site_id = call.site_id
                 CROSS JOIN thread ON thread.thread_id = site.thread_id
                 CROSS JOIN function ON function.function_id = site.function_id
                 WHERE call.end_ns > gap.from_ns
                   AND call.end_ns <= max(gap.to_ns, ifnull(gap.call_id, 0))
                   AND call.end_ns - call.duration_ns < gap.to_ns
                   AND thread.process_id = gap.process_id
                   AND function.layer IN ('driver', 'runtime'))
         ORDER BY inside_ns DESC, depth, end_ns
         LIMIT 1)                     AS host_call     -- the function that took most of the gap in that process; NULL if the
                                                       -- process was not in a call. Considers the calls that returned before
                                                       -- the gap ended, or before the call that caused the work returned.
  FROM gap;

CREATE VIEW streams AS
-- The work and the busy time of each stream, with CUPTI's numbers. While a stream has several pieces of work at the same
-- time, such as a graph, the time counts once. Several rows may have the same stream in a trace of several files.
SELECT process_id, device, context, stream,
       count(*) FILTER (WHERE kind = 'kernel') AS kernels,
       count(*) FILTER (WHERE kind NOT IN ('kernel', 'set', 'graph')) AS copies,
       count(*) FILTER (WHERE kind = 'set')    AS sets,
       count(*) FILTER (WHERE kind = 'graph')  AS graphs,
       CAST(total(max(end_ns - max(start_ns, ifnull(busy_until_ns, start_ns)), 0)) AS INTEGER) AS busy_ns,
       min(start_ns)                           AS first_ns,
       max(end_ns)                             AS last_ns
  FROM (SELECT process_id, device, context, stream, kind, start_ns, start_ns + duration_ns AS end_ns,
               max(start_ns + duration_ns) OVER (PARTITION BY process_id, device, context, stream ORDER BY start_ns, run_id
                                                 ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS busy_until_ns
          FROM gpu_run
         CROSS JOIN gpu_task ON gpu_task.gpu_task_id = gpu_run.gpu_task_id)
 GROUP BY process_id, device, context, stream;

-- Names the reasons why the clocks are lower than the load requires. Other bits, such as the bit of an idle GPU, are no
-- limits. Source: the constants nvmlClocksEventReason and nvmlClocksThrottleReason in nvml.h of CUDA 13.3.
-- macro: clock_limits(reasons)
substr(CASE WHEN :reasons &   4 THEN ', power cap' ELSE '' END ||
              CASE WHEN :reasons &   8 THEN ', hardware slowdown' ELSE '' END ||
              CASE WHEN :reasons &  32 THEN ', thermal slowdown' ELSE '' END ||
              CASE WHEN :reasons &  64 THEN ', hardware thermal slowdown' ELSE '' END ||
              CASE WHEN :reasons & 128 THEN ', power brake' ELSE '' END, 3)

-- files: newest gpu_id of gpu
CREATE VIEW gpus AS
-- The GPUs of the machine that were sampled while processes were traced (`cudatraced --gpu-samples`).
SELECT gpu_id,
       place                          AS gpu,          -- index in NVML and nvidia-smi, in the order of the PCI addresses
       uuid,
       pci_address,           -- domain:bus:device.function, in hexadecimal
       name,
       memory_bytes,
       driver,                -- version of the driver
       is_mig                 -- 1: divided into instances (MIG); NULL: the GPU cannot be divided
  FROM gpu;

CREATE VIEW gpu_samples AS
-- The values that each GPU reported of itself, once a second while processes were traced. The values are of the whole
-- GPU, and include the work of processes that were not traced. A value that the GPU did not report is NULL.
SELECT time_ns,
       gpu_id,
       busy_percent,          -- share of the time in which a kernel ran, over at most a second before the sample
       memory_busy_percent,   -- share of the time in which memory was read or written
       memory_used_bytes,     -- including memory that the driver reserves
       power_mw,
       temperature_c,
       sm_mhz,
       memory_mhz,
       CASE WHEN clock_reasons IS NOT NULL THEN clock_limits(clock_reasons) END
                                      AS clock_limits, -- why the clocks were low: power cap, …; empty: no limit
       clock_reasons,         -- bits, as in NVML's nvmlClocksEventReasons
       pcie_sent_kb_per_s,    -- by the GPU, over 20 ms; NULL if samples are taken more than once a second
       pcie_received_kb_per_s,
       nvlink_sent_kb_per_s,  -- over all links, since the previous sample
       nvlink_received_kb_per_s,
       ecc_corrected,         -- memory errors since the driver was loaded
       ecc_uncorrected
  FROM gpu_sample;

CREATE VIEW gpu_processes AS
-- The processes that used a GPU at the time of each sample. process_id is NULL if the process was not traced.
SELECT gpu_process.time_ns,
       gpu_process.gpu_id,
       gpu_process.pid,
       (SELECT max(process.process_id)
          FROM process
         WHERE process.pid = gpu_process.pid AND process.started_ns <= gpu_process.time_ns
           AND (process.ended_ns IS NULL OR process.ended_ns >= gpu_process.time_ns)) AS process_id,
       gpu_process.memory_bytes,                       -- NULL if unknown
       gpu_process.busy_percent,                       -- share of the time in which its kernels ran; NULL: none, or unknown
       gpu_process.memory_busy_percent
  FROM gpu_process;
