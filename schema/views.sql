-- The views are the interface of a trace. Any SQLite client can read them while the daemon writes. Times are
-- CLOCK_MONOTONIC nanoseconds. Add meta.realtime_offset_ns to convert a time to nanoseconds since 1970. CROSS JOIN
-- keeps SQLite from reading the table of calls first, in case SQLite assumes that this table has few rows. Each
-- explanation is inside its statement, because SQLite keeps the text from CREATE on, and `.schema` shows only that
-- text.

-- In a trace of several files, a view has the rows of all files, unless a line before the view states otherwise
-- (schema/embed.py).

-- Finds the name that the program had given to the stream by the time of the call. Role 1 is stream.
-- macro: stream_name(process_id, stream, call_id)
(SELECT object_name.name
          FROM object_name
         WHERE object_name.process_id = :process_id AND object_name.role = 1 AND handle = :stream AND named_ns <= :call_id
         ORDER BY named_ns DESC
         LIMIT 1)

-- files: newest process_id of process
CREATE VIEW processes AS
-- The processes of the trace, one row for each program image. A forked child and the program after an exec have
-- separate rows.
SELECT process_id,
       pid,
       uid,
       (SELECT value FROM meta WHERE key = 'host') AS host,
       exe,
       cmdline,
       started_ns,            -- just before the first traced call; `losses` shows whether there were earlier ones
       ended_ns,              -- NULL while it runs
       state,                 -- running, exited, killed, detached, left (running when its daemon ended: see `losses`)
       unknown_frees,         -- calls that freed memory which is not in `allocations`: it was allocated before the process was
                              -- attached to, or by a call that was not recorded
       gpu_recording,         -- of GPU work (run --gpu, set --gpu): recorded, or why not; NULL if it was not requested
       run_id                 -- the run to which it belongs; see `runs`
  FROM process;

-- files: all
CREATE VIEW runs AS
-- The runs that a trace contains. A run begins with a daemon, or when a command such as `cudatrace run` begins to use a
-- daemon that no other command uses. Commands whose times overlap are one run. A process that was running when a run
-- began belongs to an earlier run. A run without a traced process is not listed. Processes without a call, such as a
-- probe, count only if the run has no others.
WITH calling AS (
    SELECT process_id FROM totals
     UNION
    SELECT process_id FROM open_calls
),
member AS (
    SELECT *, max(is_calling) OVER (PARTITION BY run_id) AS others_are_calling
      FROM (SELECT run_id, cmdline, started_ns, ended_ns, process_id IN (SELECT process_id FROM calling) AS is_calling FROM processes)
),
counted AS (
    SELECT * FROM member WHERE is_calling = others_are_calling
),
first AS (
    SELECT run_id, cmdline, min(started_ns) AS started_ns -- and the command line of that process
      FROM counted
     GROUP BY run_id
)
SELECT run_id,                -- from 1, in the order of their beginnings
       first.started_ns,      -- of its first process with a call
       iif(count(*) = count(ended_ns), max(ended_ns), NULL) AS ended_ns, -- of its last process; NULL while one runs
       count(*)                       AS processes,
       first.cmdline                  AS command       -- of its first process
  FROM counted
  JOIN first USING (run_id)
 GROUP BY run_id;

-- files: newest first_ns of unrecorded_process
CREATE VIEW unrecorded AS
-- Processes that called the driver while the daemon was running, but could not create a segment, or whose segment the
-- daemon refused, or that `cudatrace probe` could not record. Their calls are in no other view, unless the process was
-- recorded later. A file that is named like a segment, but is not one, counts as a refused process, if it belongs to the
-- user in its name. At most 64 processes of each user other than the daemon's are listed, in addition to those that a
-- probe reports. The log names the others.
SELECT pid,
       uid,                   -- pid and uid are from the kernel, the rest is from the process. If refused, the pid is from the
                              -- file's name, and the uid is its owner
       cmdline,
       cause,                 -- memory (shared memory was refused), folder (the session's folder cannot be used), user (the session
                              -- is for another user's processes), clock (the process may not read a clock), refused (by the
                              -- daemon), probe (the probe could not record it), events (the hook recorded its calls, but the
                              -- probe could not record events)
       error,                 -- the system's error, or the daemon's reason
       calls,                 -- calls up to last_ns, or more if the process was killed; NULL if refused, or for a probe
       first_ns,              -- the time of its first call that was not recorded
       last_ns                -- when it ended, or last counted its calls
  FROM unrecorded_process;

-- files: newest thread_id of thread
CREATE VIEW threads AS
-- The threads that made a traced call. If a tid is reused, the new thread has a separate row.
SELECT thread_id,
       process_id,
       tid,
       name,                  -- set by the program with nvtxNameOsThread, otherwise comm
       calls,                 -- stored calls, including expired ones
       driver_ns,             -- time in driver calls
       comm                   -- the kernel's name for the thread at its first traced call
  FROM thread;

-- files: its own
CREATE VIEW functions AS
-- The functions that were called.
SELECT function_id,
       layer,                 -- driver, runtime, ioctl, nvtx, kernel, hook
       name,
       category               -- memory, copy, set, launch, sync, module, …
  FROM function;

-- files: by call_id
CREATE VIEW calls AS
-- All calls. call_id is the return time, so sort by call_id to list calls in the order in which they returned. A time
-- window is a range of call_id, e.g. WHERE call_id BETWEEN :from_ns AND :to_ns, and needs no index. To select calls by
-- start time, see `long_calls`. For sums over all calls, use `totals`, which does not read the calls. Times are
-- CLOCK_MONOTONIC nanoseconds. Add meta.realtime_offset_ns to convert a time to nanoseconds since 1970.
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
       status.name                    AS status_name,  -- CUDA_SUCCESS, …; NULL for an unknown code
       call.bytes                     AS bytes,        -- of calls that move, set or allocate memory
       CASE function.layer WHEN 'nvtx' THEN (SELECT text.text
                                               FROM range
                                               JOIN text ON text.text_id = range.message_id
                                              WHERE range.call_id = call.end_ns)
                           END        AS message       -- of ranges and marks; looked up only if selected
  FROM call
 CROSS JOIN site ON site.site_id = call.site_id
 CROSS JOIN thread ON thread.thread_id = site.thread_id
 CROSS JOIN process ON process.process_id = thread.process_id
 CROSS JOIN function ON function.function_id = site.function_id
  LEFT JOIN status ON status.layer = function.layer AND status.status = site.status;

-- files: by call_id
CREATE VIEW long_calls AS
-- Calls longer than a tenth of a second. With this view, all calls that began in a window can be found without reading
-- other calls: WHERE start_ns BETWEEN :from_ns AND :to_ns AND (call_id BETWEEN :from_ns AND :to_ns + 100000000 OR
-- call_id IN (SELECT call_id FROM long_calls WHERE start_ns BETWEEN :from_ns AND :to_ns)). This works for every view
-- that has call_id and start_ns.
SELECT call_id, start_ns, call_id - start_ns AS duration_ns
  FROM long_call;

-- files: by call_id
CREATE VIEW launches AS
-- Kernel launches, including failed ones (see calls.status with the same call_id). If captured = 1, the launch was
-- recorded into a graph, and nothing was run. The duration is the time of the call on the CPU, and not the time of the
-- kernel on the GPU.
SELECT launch.call_id,
       launch.process_id,
       name.demangled                 AS kernel,       -- NULL if the name is unknown
       name.mangled                   AS mangled,
       shape.grid_x, shape.grid_y, shape.grid_z,
       shape.block_x, shape.block_y, shape.block_z,
       shape.shared_bytes,
       shape.stream,
       call.end_ns - call.duration_ns AS start_ns,
       call.duration_ns               AS duration_ns,
       shape.captured                 AS captured,
       stream_name(shape.process_id, shape.stream, launch.call_id) AS stream_name
  FROM launch
 CROSS JOIN shape ON shape.shape_id = launch.shape_id
 CROSS JOIN call ON call.end_ns = launch.call_id
  LEFT JOIN kernel ON kernel.process_id = shape.process_id AND kernel.number = shape.kernel
  LEFT JOIN name   ON name.name_id = kernel.name_id;

CREATE VIEW launch_shapes AS
-- Sums of launches by process, kernel, grid, block, shared memory and stream. Durations are the times of the calls on
-- the CPU. Several rows may have the same combination.
SELECT shape.process_id,
       name.demangled                 AS kernel,       -- NULL if the name is unknown
       name.mangled                   AS mangled,
       shape.grid_x, shape.grid_y, shape.grid_z,
       shape.block_x, shape.block_y, shape.block_z,
       shape.shared_bytes,
       shape.stream,
       shape.captured,        -- 1: recorded into a graph, nothing was run
       summed.launches,
       summed.total_ns,
       summed.max_ns
  FROM (SELECT launch.shape_id, count(*) AS launches, sum(call.duration_ns) AS total_ns, max(call.duration_ns) AS max_ns
          FROM launch
          JOIN call ON call.end_ns = launch.call_id
         GROUP BY launch.shape_id) AS summed
  JOIN shape ON shape.shape_id = summed.shape_id
  LEFT JOIN kernel ON kernel.process_id = shape.process_id AND kernel.number = shape.kernel
  LEFT JOIN name   ON name.name_id = kernel.name_id;

-- files: by call_id
CREATE VIEW graphs AS
-- Graphs that were made executable (cuGraphInstantiate), with the number of nodes of each kind. Nodes of child graphs
-- are included. Nodes in the bodies of conditional nodes are not included, because how often they run is known only on
-- the GPU. A count is NULL if the hook did not see all of the graph's construction.
SELECT graph.call_id, graph.process_id, graph.graph_exec, graph.graph,
       kernels, copies, sets, host_calls, graphs, empties, event_waits, event_records, semaphore_signals,
       semaphore_waits, allocations, frees, memory_operations, conditionals,
       call.end_ns - call.duration_ns AS start_ns,
       call.duration_ns               AS duration_ns
  FROM graph
 CROSS JOIN call ON call.end_ns = graph.call_id;

-- files: by call_id
CREATE VIEW graph_launches AS
-- Launches of whole graphs. Each launch replays kernel_nodes kernels. This number is NULL if the graph has conditional
-- nodes, or if the hook did not see the graph's construction. If captured = 1, the launch was recorded into another
-- graph, and nothing was run.
SELECT graph_launch.call_id,
       graph_launch.process_id,
       graph_launch.graph_exec,
       graph_launch.kernel_nodes,
       graph_launch.stream,
       call.end_ns - call.duration_ns AS start_ns,
       call.duration_ns               AS duration_ns,
       graph_launch.captured          AS captured,
       stream_name(graph_launch.process_id, graph_launch.stream, graph_launch.call_id) AS stream_name
  FROM graph_launch
 CROSS JOIN call ON call.end_ns = graph_launch.call_id;

-- files: by call_id
CREATE VIEW copies AS
-- Copies. The duration of an async copy is the time that it took to submit the copy, and its gb_per_s does not measure
-- the bus. If captured = 1, the copy was recorded into a graph, and nothing was moved.
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
       route.captured,
       stream_name(route.process_id, route.stream, transfer.call_id) AS stream_name
  FROM transfer
 CROSS JOIN route ON route.route_id = transfer.route_id
 CROSS JOIN call ON call.end_ns = transfer.call_id
 WHERE route.kind <> 'set';

-- files: all
CREATE VIEW copy_waits AS
-- How long each copy moved bytes, and how long it waited for earlier work. Only copies to the host wait: a synchronous
-- copy, or an asynchronous one that takes longer than its size requires. The bytes are assumed to move as fast as in the
-- process's fastest synchronous copy of at least 64 KiB in that direction, or half as fast as in the other direction, or
-- at 4 GB/s if there is no such copy. If all copies in a direction wait equally long, the wait is not recognised.
WITH rate AS (
    SELECT process_id,
           max(ifnull(max(1.0 * bytes / duration_ns) FILTER (WHERE kind = 'DtoH'), 0),
               ifnull(max(1.0 * bytes / duration_ns) FILTER (WHERE kind = 'HtoD'), 0) / 2) AS bytes_per_ns
      FROM copies
     WHERE captured = 0 AND async = 0 AND kind IN ('DtoH', 'HtoD') AND bytes >= 65536 AND duration_ns > 0
     GROUP BY process_id
),
timed AS (
    SELECT call_id, process_id, kind, async, bytes, start_ns, duration_ns,
           CASE WHEN kind = 'DtoH' AND process_id IN (SELECT process_id FROM totals WHERE layer = 'driver' AND category = 'launch')
                THEN max(0, duration_ns - 20000 - CAST(ifnull(bytes, 0) / iif(async, 4.0, ifnull(bytes_per_ns, 4.0)) AS INTEGER))
                ELSE 0 END AS waited_ns
      FROM copies
      LEFT JOIN rate USING (process_id)
     WHERE captured = 0
)
SELECT call_id, process_id, kind, async, bytes, start_ns, duration_ns,
       duration_ns - waited_ns AS moved_ns,
       waited_ns
  FROM timed;

-- files: by call_id
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
       route.captured,
       stream_name(route.process_id, route.stream, transfer.call_id) AS stream_name
  FROM transfer
 CROSS JOIN route ON route.route_id = transfer.route_id
 CROSS JOIN call ON call.end_ns = transfer.call_id
 WHERE route.kind = 'set';

-- files: newest call_id of allocation
CREATE VIEW allocations AS
-- Allocated memory. freed_ns is NULL while the memory is held, and stays NULL if the process ended without freeing it.
SELECT call_id,
       process_id,
       kind,                  -- device, managed, host, registered, pool (stream-ordered), ipc, external, array
                              -- (address is the handle); of the virtual memory functions: physical (address is
                              -- the handle), reserved, mapped
       address,
       bytes,                 -- NULL if unknown: for other processes' memory (ipc, and imported physical), until the program
                              -- queries it with cuMemGetAddressRange
       call_id AS allocated_ns,
       freed_ns,              -- for shared memory, when its last holder in this process freed it
       pool                   -- its source: the memory pool, for mapped the physical memory, for
                              -- external the imported memory; NULL for none, and for the device's own pool
  FROM allocation;

-- In place of the string ID of a `kernel`, an object is the kernel's name.
-- macro: object(role, handle)
iif(:role = (SELECT role FROM role WHERE name = 'kernel'),
           (SELECT demangled
              FROM kernel
              JOIN name ON name.name_id = kernel.name_id
             WHERE kernel.process_id = subject.process_id AND kernel.number = :handle),
           :handle)

CREATE VIEW objects AS
-- The objects that calls refer to, with one row for each stream, event, context, … that a call took or returned. The
-- column `place` contains the position of the object among the call's objects, from 1 to 3. If captured = 1, the call
-- was recorded into a graph, and nothing was run. A call that looked up a kernel has a row with the role `kernel`.
-- The requests of the ioctl layer have the number that ioctl() received (`request`), and the command (`command`) or
-- the class (`class`) in the request's struct.
SELECT call_subject.call_id,
       subject.process_id,
       role.name         AS role,
       object(subject.role_1, subject.handle_1)
                         AS handle,       -- a number; of a kernel, its name
       subject.captured,
       1                 AS place
  FROM call_subject
  JOIN subject ON subject.subject_id = call_subject.subject_id
  JOIN role    ON role.role = subject.role_1
 WHERE subject.role_1 <> 0
UNION ALL
SELECT call_subject.call_id, subject.process_id, role.name, object(subject.role_2, subject.handle_2), subject.captured, 2
  FROM call_subject
  JOIN subject ON subject.subject_id = call_subject.subject_id
  JOIN role    ON role.role = subject.role_2
 WHERE subject.role_2 <> 0
UNION ALL
SELECT call_subject.call_id, subject.process_id, role.name, object(subject.role_3, subject.handle_3), subject.captured, 3
  FROM call_subject
  JOIN subject ON subject.subject_id = call_subject.subject_id
  JOIN role    ON role.role = subject.role_3
 WHERE subject.role_3 <> 0;

-- files: newest process_id of process
CREATE VIEW object_names AS
-- Names that programs give to their threads, streams, events, contexts and devices (nvtxNameOsThread,
-- nvtxNameCuStream, nvtxNameCudaStream, nvtxDomainResourceCreate and others). A name is valid from the call on, until
-- the object is given another name or is destroyed, because its handle may then be reused.
SELECT process_id, role, handle, name, named_ns, until_ns
  FROM (SELECT process_id, role.name AS role, handle, object_name.name AS name, named_ns,
               lead(named_ns) OVER (PARTITION BY process_id, object_name.role, handle ORDER BY named_ns) AS until_ns
          FROM object_name
          JOIN role ON role.role = object_name.role)
 WHERE name IS NOT NULL;

-- files: by call_id
CREATE VIEW waits AS
-- Driver calls that make the host wait for the GPU, with the handle of the stream or event (NULL: the whole context).
SELECT call.end_ns                    AS call_id,
       thread.process_id              AS process_id,
       thread.tid                     AS tid,
       function.name                  AS name,
       subject.handle_1               AS handle,
       call.end_ns - call.duration_ns AS start_ns,
       call.duration_ns               AS duration_ns,
       CASE WHEN EXISTS (SELECT 1 FROM function WHERE layer = 'kernel' AND name IN ('blocked', 'preempted', 'page_fault'))
            THEN (SELECT CAST(total(inner_call.duration_ns) AS INTEGER)
                    FROM call AS inner_call
                   CROSS JOIN site AS inner_site ON inner_site.site_id = inner_call.site_id
                   CROSS JOIN function AS event ON event.function_id = inner_site.function_id
                   WHERE inner_call.end_ns BETWEEN call.end_ns - call.duration_ns AND call.end_ns
                     AND inner_call.end_ns - inner_call.duration_ns >= call.end_ns - call.duration_ns
                     AND inner_site.thread_id = site.thread_id
                     AND event.layer = 'kernel' AND event.name = 'blocked')
             END                      AS blocked_ns    -- the thread slept, also in nested calls; the rest is polling, or
                                                       -- it was preempted. NULL without `cudatrace probe --kernel`
  FROM call
 CROSS JOIN site ON site.site_id = call.site_id
 CROSS JOIN thread ON thread.thread_id = site.thread_id
 CROSS JOIN function ON function.function_id = site.function_id
  LEFT JOIN call_subject ON call_subject.call_id = call.end_ns
  LEFT JOIN subject      ON subject.subject_id = call_subject.subject_id
 WHERE function.category = 'sync' AND function.layer = 'driver';

-- files: by call_id
CREATE VIEW context_switches AS
-- Calls that create a context, make a context current, or destroy a context. These calls show each thread's context
-- over time.
SELECT call_subject.call_id,
       thread.process_id,
       thread.tid,
       function.name,
       subject.handle_1       AS context,
       call.end_ns            AS end_ns
  FROM call_subject
  JOIN subject  ON subject.subject_id = call_subject.subject_id
 CROSS JOIN call ON call.end_ns = call_subject.call_id
 CROSS JOIN site ON site.site_id = call.site_id
  JOIN thread   ON thread.thread_id = site.thread_id
  JOIN function ON function.function_id = site.function_id
 WHERE (function.name GLOB 'cuCtxCreate*' OR function.name GLOB 'cuCtxDestroy*' OR function.name GLOB 'cuCtxPushCurrent*'
        OR function.name GLOB 'cuCtxPopCurrent*'
        OR function.name IN ('cuCtxAttach', 'cuCtxDetach', 'cuCtxSetCurrent', 'cuDevicePrimaryCtxRetain'))
   AND site.status = 0 AND subject.role_1 = (SELECT role FROM role WHERE name = 'context');

CREATE VIEW event_waits AS
-- Calls that make one stream wait for another. Work submitted to the waiting stream after the call waits for all work
-- that was in the other stream when the event was last recorded. The column `recorded_id` is the call that recorded the
-- event. If this process had not recorded the event before, `recorded_id` and `recorded_stream` are NULL; the wait then
-- has no effect, or waits for another process. The column `waiting_stream` is NULL if a whole context waits, and
-- `recorded_stream` is NULL if a whole context was recorded. If captured = 1, the wait and the record are edges of a
-- graph.
WITH mark AS (
    SELECT call.end_ns AS call_id,
           subject.process_id,
           CASE WHEN subject.role_1 = event.role THEN subject.handle_1 ELSE subject.handle_2 END AS event,
           CASE WHEN subject.role_1 = stream.role THEN subject.handle_1
                WHEN subject.role_2 = stream.role THEN subject.handle_2 END                      AS stream,
           subject.captured,
           CASE WHEN function.name GLOB '*WaitEvent*' THEN 'wait'
                WHEN function.name GLOB '*Record*' THEN 'record'
                ELSE 'create' END AS what
      FROM (SELECT role FROM role WHERE name = 'event') AS event
     CROSS JOIN (SELECT role FROM role WHERE name = 'stream') AS stream
     CROSS JOIN call_subject
      JOIN subject  ON subject.subject_id = call_subject.subject_id
                   AND (subject.role_1 = event.role OR subject.role_2 = event.role)
      JOIN call     ON call.end_ns = call_subject.call_id
      JOIN site     ON site.site_id = call.site_id AND site.status = 0
      JOIN function ON function.function_id = site.function_id
     WHERE function.name GLOB 'cuStreamWaitEvent*' OR function.name GLOB 'cuEventRecord*'
        OR function.name IN ('cuCtxWaitEvent', 'cuGreenCtxWaitEvent', 'cuCtxRecordEvent', 'cuGreenCtxRecordEvent',
                             'cuEventCreate', 'cuIpcOpenEventHandle')
),
-- An event that is created between a record and a wait is a different event with the same handle.
ordered AS (
    SELECT mark.*,
           max(CASE WHEN what <> 'wait' THEN call_id END) OVER before AS last_id,
           max(CASE WHEN what = 'record' THEN call_id END) OVER before AS last_record_id
      FROM mark
    WINDOW before AS (PARTITION BY process_id, event ORDER BY call_id)
),
wait AS (
    SELECT *, CASE WHEN last_id = last_record_id THEN last_record_id END AS recorded_id FROM ordered WHERE what = 'wait'
)
SELECT wait.call_id,
       wait.process_id,
       wait.stream                     AS waiting_stream,
       wait.event,
       CASE WHEN recorded.role_2 = (SELECT role FROM role WHERE name = 'stream') THEN recorded.handle_2 END
                                       AS recorded_stream,
       wait.recorded_id,
       wait.captured
  FROM wait
  LEFT JOIN call_subject AS record ON record.call_id = wait.recorded_id
  LEFT JOIN subject AS recorded    ON recorded.subject_id = record.subject_id;

-- files: by call_id
CREATE VIEW host_callbacks AS
-- Functions that the program submitted to a stream, for a thread of the driver to run. The duration is the time that
-- it took to submit the function. If captured = 1, the function was recorded into a graph.
SELECT call_subject.call_id,
       subject.process_id,
       function.name,
       subject.handle_1               AS stream,
       subject.handle_2               AS host_function,
       call.end_ns - call.duration_ns AS start_ns,
       call.duration_ns               AS duration_ns,
       subject.captured
  FROM call_subject
  JOIN subject  ON subject.subject_id = call_subject.subject_id
 CROSS JOIN call ON call.end_ns = call_subject.call_id
 CROSS JOIN site ON site.site_id = call.site_id AND site.status = 0
  JOIN function ON function.function_id = site.function_id
 WHERE subject.role_1 = (SELECT role FROM role WHERE name = 'stream')
   AND subject.role_2 = (SELECT role FROM role WHERE name = 'host_function');

-- files: by call_id
CREATE VIEW module_loads AS
-- Loaded code, with its size and the time that loading took.
SELECT call_subject.call_id,
       subject.process_id,
       role.name                      AS what,         -- module, library
       subject.handle_1               AS handle,
       call.bytes                     AS bytes,        -- of the image or file; NULL for an image of an unknown kind
       call.end_ns - call.duration_ns AS start_ns,
       call.duration_ns               AS duration_ns
  FROM call_subject
  JOIN subject  ON subject.subject_id = call_subject.subject_id
  JOIN role     ON role.role = subject.role_1 AND role.name IN ('module', 'library')
 CROSS JOIN call ON call.end_ns = call_subject.call_id
 CROSS JOIN site ON site.site_id = call.site_id AND site.status = 0
  JOIN function ON function.function_id = site.function_id
 WHERE function.name GLOB 'cuModuleLoad*' OR function.name GLOB 'cuLibraryLoad*';

-- files: by call_id
CREATE VIEW ranges AS
-- NVTX annotations of the application (torch.cuda.nvtx, nvtx3). The kind is push for a range that a thread pushed and
-- popped, start for a range that may have ended in another thread, and mark for a single point in time. The column
-- `tid` is the thread that ended the range. Ranges that are still open are in `open_calls`.
SELECT range.call_id,
       thread.process_id,
       thread.tid,
       CASE function.name WHEN 'nvtxRangePush'  THEN 'push'
                          WHEN 'nvtxRangeStart' THEN 'start'
                          ELSE 'mark' END         AS kind,
       domain.text                        AS domain,     -- NULL for the default domain
       message.text                       AS message,
       coalesce(category.text, range.category) AS category, -- its name, or its number if it has none
       range.color,                                      -- ARGB
       range.payload,
       site.depth,                                       -- number of calls and ranges around it
       call.end_ns - call.duration_ns     AS start_ns,
       call.end_ns,
       call.duration_ns,
       range.range_id                                    -- returned by nvtxRangeStart
  FROM range
 CROSS JOIN call ON call.end_ns = range.call_id
 CROSS JOIN site ON site.site_id = call.site_id
  JOIN thread   ON thread.thread_id = site.thread_id
  JOIN function ON function.function_id = site.function_id
  LEFT JOIN text AS message  ON message.text_id = range.message_id
  LEFT JOIN text AS domain   ON domain.text_id = range.domain_id
  LEFT JOIN text AS category ON category.text_id = range.category_id;

-- files: newest process_id of process
CREATE VIEW open_calls AS
-- Calls that have been entered but have not returned yet, as of the last second or the last `cudatrace flush`. If a
-- process died in a call, the call stays in this view. If at_exit = 1, the process exited by itself, or the hook has
-- left it, so it did not die in any of these calls. With at_exit = 1, the calls are ranges that were never ended, or
-- calls of other threads.
SELECT thread.process_id,
       thread.tid,
       function.name,
       open_call.start_ns,
       open_call.depth,
       process.state IN ('exited', 'detached') AS at_exit
  FROM open_call
  JOIN thread   ON thread.thread_id = open_call.thread_id
  JOIN process  ON process.process_id = thread.process_id
  JOIN function ON function.function_id = open_call.function_id;

-- files: its own
CREATE VIEW totals AS
-- Sums by process and function, where calls = stored + lost + skipped, exactly. Skipped calls were excluded on
-- request, or dropped in favour of others in a nearly full ring (cause pressure in `losses`). The time and the bytes
-- (of successful calls) include stored, lost and skipped calls. min_ns, max_ns and failed cover only stored calls. A
-- result that is not a failure, such as CUDA_ERROR_NOT_READY (600), does not count as failed.
WITH kept_back AS (
    SELECT segment.process_id,
           unsent.function_id,
           CAST(total(lost) AS INTEGER)                       AS lost, -- sum() would fail if forged counts overflow
           CAST(total(skipped) AS INTEGER)                    AS skipped,
           CAST(total(lost_ns + skipped_ns) AS INTEGER)       AS unsent_ns,
           CAST(total(lost_bytes + skipped_bytes) AS INTEGER) AS unsent_bytes
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
       CAST(ifnull(total_ns, 0) + ifnull(unsent_ns, 0) AS INTEGER) AS total_ns,
       min_ns,
       max_ns,
       CAST(ifnull(bytes, 0) + ifnull(unsent_bytes, 0) AS INTEGER) AS bytes,
       function.category,
       ifnull(failed, 0)                              AS failed,
       ifnull(expired, 0)                             AS expired -- stored calls that are no longer in `calls` (--keep)
  FROM seen
  JOIN function       ON function.function_id = seen.function_id
  LEFT JOIN total     ON total.process_id = seen.process_id AND total.function_id = seen.function_id
  LEFT JOIN kept_back ON kept_back.process_id = seen.process_id AND kept_back.function_id = seen.function_id;

-- files: newest process_id of process
CREATE VIEW durations AS
-- The number of stored calls by process, function and duration. A row covers durations of at least from_ns and less
-- than below_ns. The midpoint of these bounds is off by at most a thirty-second. The counts are updated while calls are
-- written, so reading them costs nothing, and they are kept when calls expire. Exact durations are in `calls`.
SELECT duration.process_id,
       function.layer,
       function.name,
       function.category,
       CASE WHEN bucket < 32 THEN bucket ELSE bucket % 16 + 16 << bucket / 16 - 1 END     AS from_ns,
       CASE WHEN bucket < 32 THEN bucket + 1 ELSE bucket % 16 + 17 << bucket / 16 - 1 END AS below_ns,
       duration.calls
  FROM duration
  JOIN function ON function.function_id = duration.function_id;

-- files: newest process_id of process
CREATE VIEW failures AS
-- The number of stored calls that failed, by status, with the return times of the first and the last failed call. A
-- result that is not a failure, such as CUDA_ERROR_NOT_READY (600), is not included. The counts are updated while calls
-- are written, and are kept when calls expire.
SELECT failure.process_id,
       function.layer,
       function.name,
       function.category,
       failure.status,
       status.name                    AS status_name,  -- NULL for an unknown code
       failure.calls,
       failure.first_ns,
       failure.last_ns
  FROM failure
  JOIN function ON function.function_id = failure.function_id
  LEFT JOIN status ON status.layer = function.layer AND status.status = failure.status;

-- files: newest process_id of process
CREATE VIEW losses AS
-- Calls that happened but are not in `calls`, by thread and cause:
--   full (the ring had no room),
--   signal (made by a signal handler while its thread was writing a record),
--   memory (shared memory was refused),
--   pressure (the ring was nearly full, and its remaining room was kept for launches, copies, allocations and the
--     like; the call was none of these, was short and succeeded),
--   cgroup (the memory limit of the process's control group left no room for longer rings),
--   probe (the BPF ring of the process was full, because its probe ran too rarely; the thread is 0),
--   cupti (in one row, records of GPU work that CUPTI dropped because its buffers were full; in another row, calls whose
--     work CUPTI had not returned when the process ended (`gpu_pending`); the thread is 0),
--   code (calls of a probed process whose driver has code in other memory than its file, from first_ns on; the thread
--     is 0),
--   clock (the thread may not read a clock, after PR_SET_TSC or in seccomp's strict mode; the thread is 0),
--   absent (the process had no daemon from first_ns to last_ns, which is NULL until another daemon collects from it).
-- Calls with cause pressure count as skipped in `totals`, and all other calls count as lost. With cause cupti, the
-- column `calls` contains the number of dropped records, or of calls whose work was not returned. The row for such
-- calls covers only the last file of the process. Dropped records are subtracted from it, because their calls may be
-- among these calls. Records with cause cupti are not calls, and `totals` does not include them. A row with cause
-- absent has no thread. In rows with the causes absent and code, `calls` is NULL, because the number of calls is unknown. If the process had a
-- daemon before the gap, each of its threads may also miss its next call.
SELECT segment.process_id,
       loss.tid,
       loss.cause,
       iif(loss.cause = 'code', NULL, CAST(total(loss.calls) AS INTEGER)) AS calls,
       min(loss.first_ns) AS first_ns,
       iif(loss.cause = 'code', NULL, max(loss.last_ns)) AS last_ns
  FROM loss
  JOIN segment ON segment.segment_id = loss.segment_id
 GROUP BY segment.process_id, loss.tid, loss.cause
UNION ALL
SELECT *
  FROM (SELECT process_id, 0, 'cupti',
               count(*) - (SELECT CAST(total(loss.calls) AS INTEGER)
                             FROM loss
                             JOIN segment ON segment.segment_id = loss.segment_id
                            WHERE segment.process_id = gpu_pending.process_id AND loss.cause = 'cupti') AS calls,
               min(call_id), max(call_id)
          FROM gpu_pending
         WHERE process_id IN (SELECT process_id FROM process WHERE state <> 'running')
         GROUP BY process_id)
 WHERE calls > 0
UNION ALL
SELECT process_id, NULL, 'absent', NULL, absent_ns, begun_ns
  FROM segment
 WHERE absent_ns IS NOT NULL
UNION ALL
SELECT process_id, NULL, 'absent', NULL, left_ns, NULL
  FROM segment
 WHERE left_ns IS NOT NULL
   AND NOT EXISTS (SELECT 1 FROM segment AS later
                    WHERE later.process_id = segment.process_id AND later.segment_id > segment.segment_id);
