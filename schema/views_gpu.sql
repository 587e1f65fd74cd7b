-- The views of GPUs: the work that each GPU did, and the values that it reported of itself. These views have the same
-- form as the views in views.sql.

-- files: its own
CREATE VIEW gpu_work AS
-- Work that GPUs have done: kernels, copies, sets and whole graphs, with their times on the GPU. A graph that is
-- recorded as a whole has a row of the kind graph for each launch, and its nodes have no rows. The column `call_id` is
-- the call that caused the work, e.g. in `launches`, `copies` or `graph_launches`. It is NULL if the call is unknown or
-- has expired. The column `device` is the GPU's number in the trace, as in `gpus`. A GPU therefore has the same number
-- in all processes, whatever CUDA_VISIBLE_DEVICES lists. If the GPU is unknown, the number is 1000 * process_id +
-- CUDA's number. The numbers of contexts, streams, graphs and nodes are CUPTI's.
SELECT gpu_task.process_id,
       correlation.call_id,
       CASE WHEN gpu_task.kind IN ('kernel', 'set', 'graph') THEN gpu_task.kind ELSE 'copy' END AS kind,
       name.demangled                 AS kernel,       -- NULL if the name is unknown
       ifnull(gpu_device.number, 1000 * gpu_task.process_id + gpu_task.device) AS device,
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
       name.mangled,
       nullif(gpu_run.correlation >> 32, 0) AS recording, -- the process counts its recordings from 1; NULL if unknown
       gpu_run.correlation                             -- the number of the recording << 32 | CUPTI's number; NULL if unknown
  FROM gpu_run
 CROSS JOIN gpu_task ON gpu_task.gpu_task_id = gpu_run.gpu_task_id
  LEFT JOIN kernel ON kernel.process_id = gpu_task.process_id AND kernel.number = gpu_task.kernel
  LEFT JOIN name   ON name.name_id = kernel.name_id
  LEFT JOIN gpu_device ON gpu_device.process_id = gpu_task.process_id AND gpu_device.device = gpu_task.device
  LEFT JOIN correlation ON correlation.process_id = gpu_task.process_id
                       AND correlation.correlation = gpu_run.correlation
                       AND correlation.call_id >= ifnull((SELECT value FROM meta WHERE key = 'expired_before_ns'), 0);

-- files: all
CREATE VIEW gpu_recordings AS
-- The recordings of GPU work, with a row for each device. A process may have several recordings (`set --gpu`). The
-- trace contains the work of a recording, but not the times when the recording began and ended. Shares of the recorded
-- time therefore exclude the time between the last work of one recording and the first work of the next, even if the
-- recordings belong to two processes. The time from unrecorded_from_ns to from_ns is unrecorded on the device, and the
-- time from previous_to_ns to from_ns is unrecorded in the process.
SELECT process_id,
       device,
       recording,             -- the process counts its recordings from 1; NULL if unknown
       from_ns,               -- start of its first work
       to_ns,                 -- end of its last work
       previous_to_ns,        -- of the process's previous recording with work on the device; NULL for none
       iif(until_ns < from_ns AND (is_first OR previous_to_ns IS NOT NULL), until_ns, NULL) AS unrecorded_from_ns -- to_ns of all
                                                       -- earlier recordings; NULL if one ends later, or if there is none
  FROM (SELECT *,
               max(to_ns) OVER (PARTITION BY device ORDER BY from_ns, to_ns ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS until_ns,
               row_number() OVER (PARTITION BY device, process_id ORDER BY from_ns, to_ns) = 1 AS is_first,
               iif(recording IS NULL, NULL, lag(to_ns) OVER (PARTITION BY device, process_id, recording IS NULL ORDER BY recording)) AS previous_to_ns
          FROM (SELECT process_id, device, recording, min(gpu_start_ns) AS from_ns, max(gpu_end_ns) AS to_ns
                  FROM gpu_work
                 GROUP BY process_id, device, recording));

-- files: all
CREATE VIEW gpu_idle_calls AS
-- The gaps of `gpu_idle`, divided by the state of the host. The host is the thread that launched the work after the
-- gap. A gap has a row for each state and function. If driver calls are nested, only the outermost call counts. A gap
-- before the first work of a later recording has a single row, because the GPU may have done work between the
-- recordings (`gpu_recordings`).
WITH timed AS MATERIALIZED (
    SELECT device, process_id, call_id, coalesce(kernel, copy_kind, kind) AS name, gpu_start_ns, gpu_end_ns,
           max(gpu_end_ns) OVER (PARTITION BY device ORDER BY gpu_start_ns, gpu_end_ns
                                 ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS busy_until_ns
      FROM gpu_work
),
ended AS MATERIALIZED (
    SELECT device, gpu_end_ns, min(name) AS name FROM timed GROUP BY device, gpu_end_ns
),
gap AS MATERIALIZED (
    SELECT begun.device, begun.busy_until_ns AS from_ns, begun.gpu_start_ns AS to_ns, ended.name AS ended, begun.name AS begun,
           begun.process_id, begun.call_id, (SELECT tid FROM calls WHERE calls.call_id = begun.call_id) AS tid,
           min(max(begun.call_id, begun.busy_until_ns), begun.gpu_start_ns) AS launched_ns, -- within the gap
           (begun.device, begun.gpu_start_ns) IN (SELECT device, from_ns FROM gpu_recordings WHERE unrecorded_from_ns IS NOT NULL) AS is_later
      FROM timed AS begun
     CROSS JOIN ended ON ended.device = begun.device AND ended.gpu_end_ns = begun.busy_until_ns
     WHERE begun.gpu_start_ns > begun.busy_until_ns
),
open AS ( -- a call that returned later may enclose it
    SELECT gap.*, calls.category, calls.name, max(calls.start_ns, gap.from_ns) AS open_ns,
           min(calls.end_ns, gap.to_ns,
               ifnull(min(calls.start_ns) OVER (PARTITION BY gap.device, gap.from_ns ORDER BY calls.call_id DESC
                                                ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), gap.to_ns)) AS closed_ns
      FROM gap
     CROSS JOIN calls ON calls.call_id > gap.from_ns AND calls.call_id <= gap.call_id
     WHERE calls.tid = gap.tid AND calls.process_id = gap.process_id AND calls.layer = 'driver' AND NOT is_later
),
part AS MATERIALIZED (
    SELECT device, from_ns, to_ns, ended, begun, process_id, call_id, tid, category, name, sum(closed_ns - open_ns) AS ns
      FROM open
     WHERE closed_ns > open_ns
     GROUP BY device, from_ns, name
),
inside AS MATERIALIZED (
    SELECT device, from_ns, sum(ns) AS ns FROM part GROUP BY device, from_ns
)
SELECT device,
       from_ns,               -- of the gap
       to_ns,
       category                       AS host_state,   -- category of the driver call; outside: of the driver; queued: after
                                                       -- the call that launched the next work; unknown: as is that call; unrecorded:
                                                       -- the gap is between two recordings
       name                           AS host_call,    -- the driver call; NULL if the state is outside, queued, unknown or unrecorded
       ns                             AS idle_ns,      -- the part of the gap
       ended,                 -- the work that ended last before the gap: its kernel or kind
       begun,                 -- the first work after the gap
       process_id,
       tid,                   -- the host's thread
       call_id
  FROM part
 UNION ALL
SELECT gap.device, gap.from_ns, to_ns, 'outside', NULL, launched_ns - gap.from_ns - ifnull(ns, 0), ended, begun, process_id, tid, call_id
  FROM gap
  LEFT JOIN inside ON inside.device = gap.device AND inside.from_ns = gap.from_ns
 WHERE launched_ns - gap.from_ns > ifnull(ns, 0) AND NOT is_later
 UNION ALL
SELECT device, from_ns, to_ns, iif(call_id IS NULL, 'unknown', 'queued'), NULL, to_ns - ifnull(launched_ns, from_ns), ended, begun,
       process_id, tid, call_id
  FROM gap
 WHERE to_ns > ifnull(launched_ns, from_ns) AND NOT is_later
 UNION ALL
SELECT device, from_ns, to_ns, 'unrecorded', NULL, to_ns - from_ns, ended, begun, process_id, tid, call_id
  FROM gap
 WHERE is_later;

-- files: all
CREATE VIEW gpu_idle AS
-- The gaps between the work of each device. In a gap, the device does no work of any traced process. A gap ends when
-- the next work begins. The column `process_id` is the process that this work belongs to, and `call_id` is the call
-- that launched the work. The view `gpu_idle_calls` divides each gap by the state of the host.
SELECT device,
       from_ns,
       to_ns,
       to_ns - from_ns                AS duration_ns,
       ended,                 -- the work that ended last before the gap: its kernel or kind
       begun,                 -- the first work after the gap
       process_id,
       call_id,
       host_call,             -- the driver call that took most of the gap in the thread that launched the next work; NULL if
                              -- the thread was not in a call for longer, or if the work was queued already
       host_state,            -- of that thread for most of the gap, as in `gpu_idle_calls`
       tid
  FROM (SELECT *, max(idle_ns) FROM gpu_idle_calls GROUP BY device, from_ns);

-- files: all
CREATE VIEW streams AS
-- The work and the busy time of each stream, with CUPTI's numbers. If several pieces of work run in a stream at once,
-- as in a graph, their common time is counted only once.
SELECT process_id, device, context, stream,
       count(*) FILTER (WHERE kind = 'kernel') AS kernels,
       count(*) FILTER (WHERE kind = 'copy')   AS copies,
       count(*) FILTER (WHERE kind = 'set')    AS sets,
       count(*) FILTER (WHERE kind = 'graph')  AS graphs,
       CAST(total(max(gpu_end_ns - max(gpu_start_ns, ifnull(busy_until_ns, gpu_start_ns)), 0)) AS INTEGER) AS busy_ns,
       min(gpu_start_ns)                       AS first_ns,
       max(gpu_end_ns)                         AS last_ns
  FROM (SELECT process_id, device, context, stream, kind, gpu_start_ns, gpu_end_ns,
               max(gpu_end_ns) OVER (PARTITION BY process_id, device, context, stream ORDER BY gpu_start_ns, gpu_end_ns
                                     ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS busy_until_ns
          FROM gpu_work)
 GROUP BY process_id, device, context, stream;

-- Gets the stream that a call refers to. The result is NULL for the default stream, which calls refer to as 0 or 1
-- (CU_STREAM_LEGACY).
-- macro: stream_of(call)
(SELECT nullif(nullif(coalesce((SELECT shape.stream FROM launch JOIN shape ON shape.shape_id = launch.shape_id WHERE launch.call_id = :call),
                                (SELECT route.stream FROM transfer JOIN route ON route.route_id = transfer.route_id WHERE transfer.call_id = :call),
                                (SELECT graph_launch.stream FROM graph_launch WHERE graph_launch.call_id = :call)), 1), 0))

-- files: newest process_id of process
CREATE VIEW gpu_stream_ends AS
-- The newest work that CUPTI has returned, for each stream of a process. The numbers of contexts and streams are CUPTI's.
WITH returned AS MATERIALIZED (
  SELECT gpu_returned.process_id, gpu_returned.context, gpu_returned.stream, gpu_returned.correlation, ended_ns, correlation.call_id
    FROM gpu_returned
    LEFT JOIN correlation ON correlation.process_id = gpu_returned.process_id
                         AND correlation.correlation = gpu_returned.correlation
), known AS MATERIALIZED ( -- other calls in the streams, if the call of the newest work was not recorded
  SELECT gpu_task.process_id, gpu_task.context, gpu_task.stream, max(correlation.call_id) AS call_id
    FROM (SELECT gpu_task_id, correlation
            FROM gpu_run
           WHERE EXISTS (SELECT 1 FROM returned WHERE call_id IS NULL)
           ORDER BY run_id DESC
           LIMIT 100000) AS run
   CROSS JOIN gpu_task ON gpu_task.gpu_task_id = run.gpu_task_id
   CROSS JOIN correlation ON correlation.process_id = gpu_task.process_id AND correlation.correlation = run.correlation
   GROUP BY gpu_task.process_id, gpu_task.context, gpu_task.stream
)
SELECT returned.process_id,
       returned.context,
       returned.stream,
       returned.correlation,  -- of the call: the number of the recording << 32 | CUPTI's number
       returned.ended_ns,     -- the latest end of returned work
       ifnull(returned.call_id, known.call_id) AS call_id -- the call, or another call in the stream if it was not recorded
  FROM returned
  LEFT JOIN known ON known.process_id = returned.process_id AND known.context = returned.context AND known.stream = returned.stream;

CREATE VIEW gpu_unreturned AS
-- Calls whose GPU work CUPTI had not returned by the end of a file of the trace. Some of this work may have been
-- returned during a later file (`gpu_pending`).
WITH newest AS (
  SELECT process_id,
         (SELECT max(correlation) FROM correlation WHERE correlation.process_id = process.process_id) AS noted,
         (SELECT max(correlation) FROM gpu_returned WHERE gpu_returned.process_id = process.process_id) AS returned
    FROM process
), stream_end AS MATERIALIZED ( -- contexts have different default streams with the same name
  SELECT process_id, max(correlation) AS correlation, min(correlation) AS all_before,
         stream_of(gpu_stream_ends.call_id) AS stream
    FROM gpu_stream_ends
   WHERE call_id IN (SELECT end_ns FROM call) -- the stream of a call in an earlier file is unknown
   GROUP BY process_id, stream
), run AS MATERIALIZED ( -- recent work of processes with such streams
  SELECT gpu_task.process_id, latest.correlation
    FROM (SELECT gpu_task_id, correlation
            FROM gpu_run
           WHERE EXISTS (SELECT 1 FROM stream_end WHERE all_before < correlation)
           ORDER BY run_id DESC
           LIMIT 100000) AS latest
   CROSS JOIN gpu_task ON gpu_task.gpu_task_id = latest.gpu_task_id
   WHERE latest.correlation IS NOT NULL
     AND gpu_task.process_id IN (SELECT process_id FROM stream_end WHERE all_before < correlation)
), noted AS ( -- not materialized, so that a query for one process reads only its rows
  SELECT correlation.process_id, correlation.correlation, correlation.call_id, stream_of(correlation.call_id) AS stream
    FROM newest
   CROSS JOIN correlation ON correlation.process_id = newest.process_id
                         AND correlation.correlation > max(newest.noted & -4294967296, ifnull(newest.returned, 0) - 10000)
), pending AS (
  SELECT noted.*
    FROM noted
    LEFT JOIN stream_end ON stream_end.process_id = noted.process_id AND stream_end.stream IS noted.stream
   WHERE noted.correlation > ifnull(stream_end.all_before, 0)
     AND (noted.correlation > ifnull(stream_end.correlation, 0)
          OR (noted.process_id, noted.correlation) NOT IN (SELECT process_id, correlation FROM run))
)
SELECT pending.process_id,
       pending.call_id,
       thread.tid,
       function.name,
       name.demangled                 AS kernel,       -- of launches; NULL if the name is unknown
       pending.stream,                                 -- as the call names it; NULL for the default stream
       call.end_ns - call.duration_ns AS start_ns,     -- of the call
       pending.correlation                             -- the number of the recording << 32 | CUPTI's number
  FROM pending
 CROSS JOIN call ON call.end_ns = pending.call_id
 CROSS JOIN site ON site.site_id = call.site_id
 CROSS JOIN thread ON thread.thread_id = site.thread_id
 CROSS JOIN function ON function.function_id = site.function_id
  LEFT JOIN launch   ON launch.call_id = call.end_ns
  LEFT JOIN shape    ON shape.shape_id = launch.shape_id
  LEFT JOIN kernel   ON kernel.process_id = shape.process_id AND kernel.number = shape.kernel
  LEFT JOIN name     ON name.name_id = kernel.name_id
  LEFT JOIN transfer ON transfer.call_id = call.end_ns
  LEFT JOIN route    ON route.route_id = transfer.route_id
  LEFT JOIN graph_launch ON graph_launch.call_id = call.end_ns
 WHERE site.status = 0
   AND coalesce(shape.captured, route.captured, graph_launch.captured, 0) = 0
   AND (transfer.call_id IS NULL OR call.bytes > 0);

-- files: all
CREATE VIEW gpu_pending AS
-- Calls whose GPU work CUPTI has not returned, from each process's last recording of GPU work. In a running process,
-- such work is waiting or running, or has ended within the last second. If the process has ended, the work is lost, and
-- `losses` counts it. A call is in this view if it succeeded, was not captured into a graph, and is later than the last
-- returned work in its stream. Calls older than the newest returned work of the process are found only if they are
-- among the last 10,000 calls before it. A graph counts as returned once its first work has been returned. If a process
-- has several contexts, on one or more devices, their default streams count as one stream. Calls in the default stream
-- of a context may be missing if no work of that context has been returned. If CUPTI has dropped the record of a
-- stream's last work, or of any work in such a default stream, the call is also in this view. In a trace of several
-- files, a call in such a default stream may stay in this view even after its work was returned. The row with place = 1
-- is the oldest call in its stream. In a process that hangs, the work of this call has not ended, or is waiting for
-- other streams.
WITH stream_end AS MATERIALIZED (
  SELECT process_id, min(correlation) AS all_before, max(ended_ns) AS ended_ns, max(correlation) & -4294967296 AS begun,
         nullif(nullif(coalesce((SELECT launches.stream FROM launches WHERE launches.call_id = gpu_stream_ends.call_id),
                                (SELECT copies.stream FROM copies WHERE copies.call_id = gpu_stream_ends.call_id),
                                (SELECT memsets.stream FROM memsets WHERE memsets.call_id = gpu_stream_ends.call_id),
                                (SELECT graph_launches.stream FROM graph_launches WHERE graph_launches.call_id = gpu_stream_ends.call_id)),
                       1), 0) AS stream
    FROM gpu_stream_ends
   WHERE call_id IS NOT NULL
   GROUP BY 1, 5
)
SELECT gpu_unreturned.process_id,
       gpu_unreturned.call_id,
       tid,
       name,
       kernel,                -- of launches; NULL if the name is unknown
       gpu_unreturned.stream, -- as the call names it; NULL for the default stream
       start_ns,              -- of the call
       row_number() OVER (PARTITION BY gpu_unreturned.process_id, gpu_unreturned.stream ORDER BY correlation) AS place,
       max(start_ns, ifnull(stream_end.ended_ns, 0)) AS since_ns -- when the call began, or when the last returned work in
                                                       -- the stream ended, if that was later
  FROM gpu_unreturned
  LEFT JOIN stream_end ON stream_end.process_id = gpu_unreturned.process_id AND stream_end.stream IS gpu_unreturned.stream
 WHERE correlation > ifnull(stream_end.all_before, 0)
   AND correlation >= ifnull((SELECT max(begun) FROM stream_end AS any_end WHERE any_end.process_id = gpu_unreturned.process_id), 0);

-- files: all
CREATE VIEW launch_queue AS
-- The queue of each stream at each launch. The column `depth` is the number of pieces of work in the stream that had
-- been launched but had not started, including the piece just launched. A piece that starts before its call returns
-- counts as launched at its start. Work with an unknown call is not included.
SELECT process_id, device, context, stream, call_id,
       at_ns                          AS launched_ns,
       gpu_start_ns,
       gpu_start_ns - at_ns           AS latency_ns,   -- from the call's return to the start; 0 if it started earlier
       depth
  FROM (SELECT *, sum(step) OVER (PARTITION BY process_id, device, context, stream ORDER BY at_ns, step DESC
                                  ROWS UNBOUNDED PRECEDING) AS depth
          FROM (SELECT process_id, device, context, stream, call_id, gpu_start_ns, min(call_id, gpu_start_ns) AS at_ns, 1 AS step
                  FROM gpu_work
                 WHERE call_id IS NOT NULL
                 UNION ALL
                SELECT process_id, device, context, stream, NULL, NULL, gpu_start_ns, -1 FROM gpu_work WHERE call_id IS NOT NULL))
 WHERE step = 1;

-- files: all
CREATE VIEW range_gpu AS
-- The pushed NVTX ranges, with the work of GPUs that their threads launched inside them. Work counts for every range
-- around its launch, so do not add up ranges that enclose each other. Concurrent work counts in full.
WITH pushed AS MATERIALIZED (
    SELECT call_id, process_id, tid, domain, message, depth, start_ns, end_ns
      FROM ranges
     WHERE kind = 'push' AND EXISTS (SELECT 1 FROM gpu_work)
),
event AS ( -- work at the return of its call, which is inside the range
    SELECT process_id, (SELECT tid FROM calls WHERE calls.call_id = gpu_work.call_id) AS tid, call_id AS at_ns, NULL AS range_id, 0 AS sign,
           duration_ns AS gpu_ns, kind = 'kernel' AS kernels, kind = 'copy' AS copies, kind = 'set' AS sets, kind = 'graph' AS graphs
      FROM gpu_work
     WHERE call_id IS NOT NULL AND EXISTS (SELECT 1 FROM pushed)
     UNION ALL
    SELECT process_id, tid, start_ns, call_id, -1, 0, 0, 0, 0, 0 FROM pushed
     UNION ALL
    SELECT process_id, tid, end_ns, call_id, 1, 0, 0, 0, 0, 0 FROM pushed
),
summed AS (
    SELECT range_id, sign, sum(gpu_ns) OVER so_far AS gpu_ns, sum(kernels) OVER so_far AS kernels, sum(copies) OVER so_far AS copies,
           sum(sets) OVER so_far AS sets, sum(graphs) OVER so_far AS graphs
      FROM event
    WINDOW so_far AS (PARTITION BY process_id, tid ORDER BY at_ns, sign <> 0 ROWS UNBOUNDED PRECEDING)
),
inside AS MATERIALIZED (
    SELECT range_id, sum(sign * gpu_ns) AS gpu_ns, sum(sign * kernels) AS kernels, sum(sign * copies) AS copies, sum(sign * sets) AS sets,
           sum(sign * graphs) AS graphs
      FROM summed
     WHERE range_id IS NOT NULL
     GROUP BY range_id
)
SELECT pushed.call_id,
       process_id,
       tid,
       domain,                -- NULL for the default domain
       message,
       depth,                 -- number of calls and ranges around it
       start_ns,              -- of the range, on the host
       end_ns,
       end_ns - start_ns              AS duration_ns,
       gpu_ns,                -- sum of the durations of its work
       kernels,
       copies,
       sets,
       graphs
  FROM pushed
  JOIN inside ON inside.range_id = pushed.call_id;

-- files: all
CREATE VIEW gpu_busy AS
-- The periods in which a process kept a device busy, without a gap. Time in which several pieces of a process's work ran
-- counts only once.
WITH counted AS (
    SELECT device, process_id, at_ns, step,
           sum(step) OVER (PARTITION BY device, process_id ORDER BY at_ns, step DESC ROWS UNBOUNDED PRECEDING) AS pieces
      FROM (SELECT device, process_id, gpu_start_ns AS at_ns, 1 AS step FROM gpu_work
             UNION ALL SELECT device, process_id, gpu_end_ns, -1 FROM gpu_work)
),
edge AS MATERIALIZED ( -- the begin and the end of each period
    SELECT device, process_id, at_ns, step,
           iif(step = 1, at_ns, lag(at_ns) OVER (PARTITION BY device, process_id ORDER BY at_ns, step DESC)) AS from_ns
      FROM counted
     WHERE pieces = iif(step = 1, 1, 0)
),
alone AS MATERIALIZED ( -- while there is one process, the sums are its own values
    SELECT device, process_id, from_ns, sum(ns) AS ns
      FROM (SELECT device, lead(at_ns) OVER so_far - at_ns AS ns, sum(step) OVER so_far AS processes,
                   sum(step * process_id) OVER so_far AS process_id, sum(step * from_ns) OVER so_far AS from_ns
              FROM edge
            WINDOW so_far AS (PARTITION BY device ORDER BY at_ns, step, process_id ROWS UNBOUNDED PRECEDING))
     WHERE processes = 1
     GROUP BY device, process_id, from_ns
)
SELECT edge.device,
       edge.process_id,
       edge.from_ns,
       edge.at_ns                     AS to_ns,
       edge.at_ns - edge.from_ns      AS duration_ns,
       ifnull(alone.ns, 0)            AS alone_ns      -- the part in which no other traced process kept the device busy
  FROM edge
  LEFT JOIN alone ON alone.device = edge.device AND alone.process_id = edge.process_id AND alone.from_ns = edge.from_ns
 WHERE edge.step = -1;

-- Names the reasons why the clocks are lower than the load requires. Other bits, such as the bit for an idle GPU, are
-- not limits. Source: the constants nvmlClocksEventReason and nvmlClocksThrottleReason in nvml.h of CUDA 13.3.
-- macro: clock_limits(reasons)
substr(CASE WHEN :reasons &   4 THEN ', power cap' ELSE '' END ||
              CASE WHEN :reasons &   8 THEN ', hardware slowdown' ELSE '' END ||
              CASE WHEN :reasons &  32 THEN ', thermal slowdown' ELSE '' END ||
              CASE WHEN :reasons &  64 THEN ', hardware thermal slowdown' ELSE '' END ||
              CASE WHEN :reasons & 128 THEN ', power brake' ELSE '' END, 3)

-- files: newest gpu_id of gpu
CREATE VIEW gpus AS
-- The GPUs of the machine that were sampled while processes were traced (`cudatraced --gpu-samples`), and those that
-- did recorded work. For a GPU that was not sampled, only the UUID, the PCI address and the device are known. An
-- instance of a divided GPU (MIG) has a row of its own, which contains the index of the whole GPU.
SELECT gpu_id,
       place                          AS gpu,          -- index in NVML and nvidia-smi, in the order of the PCI addresses
       uuid,
       pci_address,           -- domain:bus:device.function, in hexadecimal
       name,
       memory_bytes,
       driver,                -- version of the driver
       is_mig,                -- 1: divided into instances (MIG); NULL: the GPU cannot be divided
       whole_id,              -- gpu_id of the whole GPU; NULL: the row is not an instance
       gpu_instance,          -- NVML's number of the GPU instance, as in nvidia-smi
       compute_instance,      -- and of the compute instance inside it
       iif(gpu_instance IS NULL, place, place || '/' || gpu_instance || '/' || compute_instance) AS label, -- e.g. 0, or 0/1/0
       number                         AS device        -- as in `gpu_work`. Equals gpu if the GPU was sampled before it did
                                                       -- work; NULL for an instance
  FROM gpu;

-- files: newest process_id of process
CREATE VIEW gpu_devices AS
-- The GPU of each device of a process, from the device's first recorded work on. A process counts its devices from 0,
-- in the order of CUDA_VISIBLE_DEVICES.
SELECT gpu_device.process_id,
       gpu_device.device              AS cuda_device,  -- as CUDA counts the devices of the process
       gpu_device.number              AS device,       -- as in `gpu_work`
       gpu.gpu_id,
       gpu_device.uuid,                                -- of the GPU, or MIG-… of the instance of a divided GPU
       gpu.pci_address
  FROM gpu_device
  JOIN gpu ON gpu.number = gpu_device.number;

CREATE VIEW gpu_samples AS
-- The values that each GPU reported of itself, once a second while processes were traced. The values include the work of
-- processes that were not traced. A value that the GPU did not report is NULL. Instances of divided GPUs (MIG) have rows
-- of their own, with only their used memory, and the activity of the SMs of their GPU instance.
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
       pcie_sent_kb_per_s,    -- by the GPU, since the previous sample; before Hopper: over 20 ms, and only if samples are
                              -- taken at most once a second
       pcie_received_kb_per_s,
       nvlink_sent_kb_per_s,  -- over all links, since the previous sample
       nvlink_received_kb_per_s,
       ecc_corrected,         -- memory errors since the driver was loaded
       ecc_uncorrected,
       sm_busy_ppm / 1e4              AS sm_busy_percent, -- share of the SMs that had work, as a mean since the previous
                                                          -- sample. This and the next columns are NULL before Hopper
       sm_occupancy_ppm / 1e4         AS sm_occupancy_percent, -- active warps, of as many as the SMs can hold
       tensor_ppm / 1e4               AS tensor_percent,  -- share of the time in which tensor cores worked
       fp64_ppm / 1e4                 AS fp64_percent,    -- the same of other units of the SMs, by the type of the numbers
       fp32_ppm / 1e4                 AS fp32_percent,
       fp16_ppm / 1e4                 AS fp16_percent,
       integer_ppm / 1e4              AS integer_percent,
       dram_ppm / 1e4                 AS dram_percent     -- traffic of the GPU's memory, of the possible traffic
  FROM gpu_sample;

CREATE VIEW gpu_processes AS
-- The processes that used a GPU at the time of each sample. process_id is NULL if the process was not traced. If the GPU is
-- divided (MIG), gpu_id is the instance.
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

-- files: all
CREATE VIEW process_gpus AS
-- Which GPUs each process used, from the samples: a row for each process and GPU, or instance of a divided GPU (MIG).
SELECT gpu_processes.process_id,               -- NULL if the process was not traced
       gpu_processes.pid,
       gpu_processes.gpu_id,
       gpus.label                     AS gpu,          -- index in nvidia-smi, e.g. 0; of an instance, e.g. 0/1/0
       gpus.uuid,
       gpus.pci_address,
       gpus.name,
       min(gpu_processes.time_ns)     AS first_ns,     -- the first and the last sample with the process
       max(gpu_processes.time_ns)     AS last_ns,
       max(gpu_processes.memory_bytes) AS peak_bytes
  FROM gpu_processes
  JOIN gpus ON gpus.gpu_id = gpu_processes.gpu_id
 GROUP BY gpu_processes.process_id, gpu_processes.pid, gpu_processes.gpu_id;
