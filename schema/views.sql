-- The views: the interface of a trace. Read them with any SQLite client, while the daemon writes.
-- Times are CLOCK_MONOTONIC nanoseconds; meta.realtime_offset_ns added to one gives nanoseconds since 1970.

-- The processes of the trace.
CREATE VIEW processes AS
SELECT process_id,
       pid,
       uid,
       (SELECT value FROM meta WHERE key = 'host') AS host,
       exe,
       cmdline,
       started_ns,
       ended_ns,              -- NULL while it runs
       state                  -- running, exited, killed
  FROM process;

-- Their threads.
CREATE VIEW threads AS
SELECT thread_id, process_id, tid, name
  FROM thread;

-- The functions that were called.
CREATE VIEW functions AS
SELECT function_id,
       layer,                 -- driver, runtime, ioctl, nvtx
       name,
       category               -- memory, copy, set, launch, sync, module, …
  FROM function;

-- Every call, in order of return when sorted by call_id. A time window is a range of call_id, e.g.
--   WHERE call_id BETWEEN :from_ns AND :to_ns
CREATE VIEW calls AS
SELECT call.end_ns                    AS call_id,
       thread.process_id              AS process_id,
       process.pid                    AS pid,
       thread.tid                     AS tid,
       function.layer                 AS layer,
       function.name                  AS name,
       function.category              AS category,
       site.depth                     AS depth,        -- 0: not inside another traced call
       call.end_ns - call.duration_ns AS start_ns,
       call.end_ns                    AS end_ns,
       call.duration_ns               AS duration_ns,
       site.status                    AS status,       -- 0 is success
       status.name                    AS status_name,
       call.bytes                     AS bytes         -- of calls that move, set or allocate memory
  FROM call
  JOIN site     ON site.site_id = call.site_id
  JOIN thread   ON thread.thread_id = site.thread_id
  JOIN process  ON process.process_id = thread.process_id
  JOIN function ON function.function_id = site.function_id
  LEFT JOIN status ON status.layer = function.layer AND status.status = site.status;

-- Kernel launches, failed ones too. captured = 1: recorded into a graph, nothing was run. The duration is
-- the call's on the CPU, not the kernel's on the GPU.
CREATE VIEW launches AS
SELECT launch.call_id,
       shape.process_id,
       name.demangled                 AS kernel,
       name.mangled                   AS mangled,
       shape.grid_x, shape.grid_y, shape.grid_z,
       shape.block_x, shape.block_y, shape.block_z,
       shape.shared_bytes,
       shape.stream,
       call.end_ns - call.duration_ns AS start_ns,
       call.duration_ns               AS duration_ns,
       shape.captured                 AS captured
  FROM launch
  JOIN shape ON shape.shape_id = launch.shape_id
  JOIN call  ON call.end_ns = launch.call_id
  LEFT JOIN kernel ON kernel.process_id = shape.process_id AND kernel.number = shape.kernel
  LEFT JOIN name   ON name.name_id = kernel.name_id;

-- Launches of whole graphs: each replays kernel_nodes kernels.
CREATE VIEW graph_launches AS
SELECT graph_launch.call_id,
       graph_launch.process_id,
       graph_launch.graph_exec,
       graph_launch.kernel_nodes,
       graph_launch.stream,
       call.end_ns - call.duration_ns AS start_ns,
       call.duration_ns               AS duration_ns,
       graph_launch.captured          AS captured
  FROM graph_launch
  JOIN call ON call.end_ns = graph_launch.call_id;

-- Copies. For async ones the duration is that of handing the copy over, and gb_per_s says nothing about the bus.
CREATE VIEW copies AS
SELECT transfer.call_id,
       route.process_id,
       route.kind,            -- HtoD, DtoH, DtoD, HtoH, PtoP, unknown
       call.bytes                     AS bytes,
       route.async,
       route.stream,
       call.end_ns - call.duration_ns AS start_ns,
       call.duration_ns               AS duration_ns,
       CASE WHEN call.duration_ns > 0 THEN round(1.0 * call.bytes / call.duration_ns, 3) END AS gb_per_s,
       transfer.source,
       transfer.destination,
       route.captured
  FROM transfer
  JOIN route ON route.route_id = transfer.route_id
  JOIN call  ON call.end_ns = transfer.call_id
 WHERE route.kind <> 'set';

-- Memory sets.
CREATE VIEW memsets AS
SELECT transfer.call_id,
       route.process_id,
       call.bytes                     AS bytes,
       route.async,
       route.stream,
       call.end_ns - call.duration_ns AS start_ns,
       call.duration_ns               AS duration_ns,
       transfer.destination           AS address,
       route.captured
  FROM transfer
  JOIN route ON route.route_id = transfer.route_id
  JOIN call  ON call.end_ns = transfer.call_id
 WHERE route.kind = 'set';

-- Memory that was got. freed_ns is NULL while it is held, and for good when the process died with it.
CREATE VIEW allocations AS
SELECT call_id,
       process_id,
       kind,                  -- device, managed, host, registered, pool
       address,
       bytes,
       call_id AS allocated_ns,
       freed_ns
  FROM allocation;

-- Calls in which the host waits for the GPU, with the stream or event waited for (NULL: all of the context).
CREATE VIEW waits AS
SELECT call.end_ns                    AS call_id,
       thread.process_id              AS process_id,
       thread.tid                     AS tid,
       function.name                  AS name,
       subject.handle                 AS handle,
       call.end_ns - call.duration_ns AS start_ns,
       call.duration_ns               AS duration_ns
  FROM call
  JOIN site     ON site.site_id = call.site_id
  JOIN thread   ON thread.thread_id = site.thread_id
  JOIN function ON function.function_id = site.function_id
  LEFT JOIN subject ON subject.call_id = call.end_ns
 WHERE function.category = 'sync';

-- Which context a thread worked in from when on.
CREATE VIEW context_switches AS
SELECT subject.call_id,
       thread.process_id,
       thread.tid,
       function.name,
       subject.handle         AS context,
       call.end_ns            AS end_ns
  FROM subject
  JOIN call     ON call.end_ns = subject.call_id
  JOIN site     ON site.site_id = call.site_id
  JOIN thread   ON thread.thread_id = site.thread_id
  JOIN function ON function.function_id = site.function_id
 WHERE function.category = 'context' AND site.status = 0;

-- Calls entered and not yet returned; kept for a process that died inside. As of the last second, or the last
-- `cudatrace flush`.
CREATE VIEW open_calls AS
SELECT thread.process_id,
       thread.tid,
       function.name,
       open_call.start_ns,
       open_call.depth
  FROM open_call
  JOIN thread   ON thread.thread_id = open_call.thread_id
  JOIN function ON function.function_id = open_call.function_id;

-- Sums by process and function: calls = stored + lost + skipped, exactly. The time and the bytes are those of all
-- three; min_ns and max_ns those of the stored.
CREATE VIEW totals AS
WITH kept_back AS (
    SELECT segment.process_id,
           unsent.function_id,
           sum(lost)                      AS lost,
           sum(skipped)                   AS skipped,
           sum(lost_ns + skipped_ns)      AS unsent_ns,
           sum(lost_bytes + skipped_bytes) AS unsent_bytes
      FROM unsent
      JOIN segment ON segment.segment_id = unsent.segment_id
     GROUP BY segment.process_id, unsent.function_id
),
seen AS (
    SELECT process_id, function_id FROM total
    UNION
    SELECT process_id, function_id FROM kept_back
)
SELECT seen.process_id,
       function.layer,
       function.name,
       ifnull(total.calls, 0) + ifnull(lost, 0) + ifnull(skipped, 0) AS calls,
       ifnull(total.calls, 0)                         AS stored,
       ifnull(lost, 0)                                AS lost,
       ifnull(skipped, 0)                             AS skipped,
       ifnull(total_ns, 0) + ifnull(unsent_ns, 0)     AS total_ns,
       min_ns,
       max_ns,
       ifnull(bytes, 0) + ifnull(unsent_bytes, 0)     AS bytes,
       function.category
  FROM seen
  JOIN function       ON function.function_id = seen.function_id
  LEFT JOIN total     ON total.process_id = seen.process_id AND total.function_id = seen.function_id
  LEFT JOIN kept_back ON kept_back.process_id = seen.process_id AND kept_back.function_id = seen.function_id;

-- Calls that happened and are not in `calls`, by thread and cause: full (the ring had no room), signal (made
-- by a signal handler while its thread was writing a record), memory (shared memory was refused).
CREATE VIEW losses AS
SELECT segment.process_id,
       loss.tid,
       loss.cause,
       sum(loss.calls)    AS calls,
       min(loss.first_ns) AS first_ns,
       max(loss.last_ns)  AS last_ns
  FROM loss
  JOIN segment ON segment.segment_id = loss.segment_id
 GROUP BY segment.process_id, loss.tid, loss.cause;
