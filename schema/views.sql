-- The views: the interface of a trace. Read them with any SQLite client, while the daemon writes.
-- Times are CLOCK_MONOTONIC nanoseconds; meta.realtime_offset_ns added to one gives nanoseconds since 1970.
-- Each explanation stands inside its statement, since SQLite keeps what begins with CREATE and `.schema`
-- shows no more.

CREATE VIEW processes AS
-- The processes of the trace, one row for each program image: a fork's child and what comes after an exec
-- have their own.
SELECT process_id,
       pid,
       uid,
       (SELECT value FROM meta WHERE key = 'host') AS host,
       exe,
       cmdline,
       started_ns,            -- just before the first traced call
       ended_ns,              -- NULL while it runs
       state                  -- running, exited, killed
  FROM process;

CREATE VIEW threads AS
-- The threads that made a traced call; a tid that the kernel reused is a new row.
SELECT thread_id, process_id, tid, name
  FROM thread;

CREATE VIEW functions AS
-- The functions that were called.
SELECT function_id,
       layer,                 -- driver, runtime, ioctl, nvtx
       name,
       category               -- memory, copy, set, launch, sync, module, …
  FROM function;

CREATE VIEW calls AS
-- Every call, in order of return when sorted by call_id, which is its return time: a time window is a range
-- of call_id, e.g. WHERE call_id BETWEEN :from_ns AND :to_ns, and needs no index. Sums of all calls are in
-- `totals` and cost nothing. Times are CLOCK_MONOTONIC nanoseconds; add meta.realtime_offset_ns for those
-- since 1970.
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
       status.name                    AS status_name,  -- CUDA_SUCCESS, …; NULL for a code not known
       call.bytes                     AS bytes         -- of calls that move, set or allocate memory
  FROM call
  JOIN site     ON site.site_id = call.site_id
  JOIN thread   ON thread.thread_id = site.thread_id
  JOIN process  ON process.process_id = thread.process_id
  JOIN function ON function.function_id = site.function_id
  LEFT JOIN status ON status.layer = function.layer AND status.status = site.status;

CREATE VIEW launches AS
-- Kernel launches, failed ones too (calls.status by the same call_id). captured = 1: recorded into a graph,
-- nothing was run. The duration is the call's on the CPU, not the kernel's on the GPU.
SELECT launch.call_id,
       shape.process_id,
       name.demangled                 AS kernel,       -- NULL when the name is unknown
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

CREATE VIEW graph_launches AS
-- Launches of whole graphs: each replays kernel_nodes kernels. captured = 1: recorded into another graph,
-- nothing was run.
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

CREATE VIEW copies AS
-- Copies. For async ones the duration is that of handing the copy over, and gb_per_s says nothing about the
-- bus. captured = 1: recorded into a graph, nothing was moved.
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

CREATE VIEW memsets AS
-- Memory sets.
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

CREATE VIEW allocations AS
-- Memory that was got. freed_ns is NULL while it is held, and for good when the process ended with it.
SELECT call_id,
       process_id,
       kind,                  -- device, managed, host, registered, pool (stream-ordered), ipc; of the virtual
                              -- memory functions: physical and array (address is the handle), reserved, mapped
       address,
       bytes,
       call_id AS allocated_ns,
       freed_ns
  FROM allocation;

CREATE VIEW objects AS
-- What calls were about: one row for each stream, event, context, … that a call took or gave. captured = 1: the
-- call was recorded into a graph, nothing was run.
SELECT call_subject.call_id, subject.process_id, role.name AS role, subject.handle_1 AS handle, subject.captured
  FROM call_subject
  JOIN subject ON subject.subject_id = call_subject.subject_id
  JOIN role    ON role.role = subject.role_1
 WHERE subject.role_1 <> 0
UNION ALL
SELECT call_subject.call_id, subject.process_id, role.name, subject.handle_2, subject.captured
  FROM call_subject
  JOIN subject ON subject.subject_id = call_subject.subject_id
  JOIN role    ON role.role = subject.role_2
 WHERE subject.role_2 <> 0
UNION ALL
SELECT call_subject.call_id, subject.process_id, role.name, subject.handle_3, subject.captured
  FROM call_subject
  JOIN subject ON subject.subject_id = call_subject.subject_id
  JOIN role    ON role.role = subject.role_3
 WHERE subject.role_3 <> 0;

CREATE VIEW waits AS
-- Driver calls in which the host waits for the GPU, with the stream or event waited for (NULL: all of the context).
SELECT call.end_ns                    AS call_id,
       thread.process_id              AS process_id,
       thread.tid                     AS tid,
       function.name                  AS name,
       subject.handle_1               AS handle,
       call.end_ns - call.duration_ns AS start_ns,
       call.duration_ns               AS duration_ns
  FROM call
  JOIN site     ON site.site_id = call.site_id
  JOIN thread   ON thread.thread_id = site.thread_id
  JOIN function ON function.function_id = site.function_id
  LEFT JOIN call_subject ON call_subject.call_id = call.end_ns
  LEFT JOIN subject      ON subject.subject_id = call_subject.subject_id
 WHERE function.category = 'sync' AND function.layer = 'driver';

CREATE VIEW context_switches AS
-- Which context a thread worked in from when on.
SELECT call_subject.call_id,
       thread.process_id,
       thread.tid,
       function.name,
       subject.handle_1       AS context,
       call.end_ns            AS end_ns
  FROM call_subject
  JOIN subject  ON subject.subject_id = call_subject.subject_id
  JOIN call     ON call.end_ns = call_subject.call_id
  JOIN site     ON site.site_id = call.site_id
  JOIN thread   ON thread.thread_id = site.thread_id
  JOIN function ON function.function_id = site.function_id
 WHERE function.category = 'context' AND site.status = 0 AND subject.role_1 = (SELECT role FROM role WHERE name = 'context');

CREATE VIEW open_calls AS
-- Calls entered and not yet returned; kept for a process that died inside. As of the last second, or the last
-- `cudatrace flush`.
SELECT thread.process_id,
       thread.tid,
       function.name,
       open_call.start_ns,
       open_call.depth
  FROM open_call
  JOIN thread   ON thread.thread_id = open_call.thread_id
  JOIN function ON function.function_id = open_call.function_id;

CREATE VIEW totals AS
-- Sums by process and function: calls = stored + lost + skipped, exactly. The time and the bytes (of calls that
-- succeeded) are those of all three; min_ns and max_ns those of the stored.
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

CREATE VIEW losses AS
-- Calls that happened and are not in `calls`, by thread and cause: full (the ring had no room), signal (made
-- by a signal handler while its thread was writing a record), memory (shared memory was refused).
SELECT segment.process_id,
       loss.tid,
       loss.cause,
       sum(loss.calls)    AS calls,
       min(loss.first_ns) AS first_ns,
       max(loss.last_ns)  AS last_ns
  FROM loss
  JOIN segment ON segment.segment_id = loss.segment_id
 GROUP BY segment.process_id, loss.tid, loss.cause;
