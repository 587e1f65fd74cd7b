-- Queries that the `cudatrace export` formats need in addition to the calls.

-- A process's track is its pid. If another process in the trace has the same pid, the track is a number that cannot
-- be a pid.
-- name: processes
SELECT process_id, pid,
       iif(count(*) OVER (PARTITION BY pid) = 1, pid, 1000000000 + process_id) AS track,
       cmdline || ' (' || pid || ', ' || state || ')' AS name
  FROM processes
 WHERE ?1 = 0 OR pid = ?1
 ORDER BY started_ns;

-- name: threads
WITH process AS (
    SELECT process_id, pid, iif(count(*) OVER (PARTITION BY pid) = 1, pid, 1000000000 + process_id) AS track
      FROM processes
)
SELECT process_id, tid, name, track, max(thread_id) -- so name and track are the newest thread's
  FROM threads
  JOIN process USING (process_id)
 WHERE ?1 = 0 OR pid = ?1
 GROUP BY process_id, tid;

-- The device memory that each process holds, at the start of the window and after each change.
-- name: memory
WITH piece AS (
    SELECT process_id, allocated_ns, freed_ns, bytes
      FROM allocations
     WHERE kind IN ('device', 'managed', 'pool', 'array', 'physical')
       AND (?1 = 0 OR process_id IN (SELECT process_id FROM processes WHERE pid = ?1))
       AND bytes IS NOT NULL -- unknown for memory that others share
),
change AS (
    SELECT process_id, allocated_ns AS at_ns, bytes FROM piece
     UNION ALL
    SELECT process_id, freed_ns, -bytes FROM piece WHERE freed_ns IS NOT NULL
     UNION ALL -- memory still held at the process's end
    SELECT process_id, ended_ns, -bytes
      FROM piece
      JOIN processes USING (process_id)
     WHERE freed_ns IS NULL AND ended_ns IS NOT NULL
),
held AS (
    SELECT process_id, at_ns, CAST(total(bytes) OVER (PARTITION BY process_id ORDER BY at_ns) AS INTEGER) AS bytes FROM change
)
SELECT process_id, at_ns, bytes FROM held WHERE at_ns BETWEEN ?2 AND ?3
 UNION ALL
SELECT process_id, ?2, bytes
  FROM (SELECT process_id, bytes, max(at_ns) FROM held WHERE at_ns < ?2 GROUP BY process_id) -- bytes of the row with the maximum
 WHERE bytes <> 0
 ORDER BY process_id, at_ns;

-- The samples of each GPU, or of each GPU that the process used. Each column from the fourth on is a counter of the GPU.
-- The page of `html` shows the first five counters.
-- name: gpu_counters
SELECT gpu_id,
       'GPU ' || label || ': ' || ifnull(name, uuid) AS name,
       time_ns,
       busy_percent                                AS "busy (%)",
       memory_used_bytes                           AS "memory used (bytes)",
       CAST(round(power_mw / 1e3) AS INTEGER)      AS "power (W)",
       CAST(round(sm_busy_percent) AS INTEGER)     AS "SMs busy (%)",
       CAST(round(dram_percent) AS INTEGER)        AS "memory traffic (%)",
       CAST(round(tensor_percent) AS INTEGER)      AS "tensor cores (%)",
       CAST(round(sm_occupancy_percent) AS INTEGER) AS "SM occupancy (%)"
  FROM gpu_samples
  JOIN gpus USING (gpu_id)
 WHERE time_ns BETWEEN ?2 AND ?3
   AND (?1 = 0 OR gpu_id IN (SELECT gpu_id FROM gpu_processes WHERE pid = ?1))
 ORDER BY gpu, gpu_id, time_ns;

-- The work of GPUs that ended in the window, by stream and in the order of its beginning.
-- name: gpu_work
SELECT process_id, device, context, stream, gpu_start_ns, gpu_end_ns, gpu_work.kind, ifnull(kernel, '(unknown)') AS kernel,
       mangled, copy_kind, bytes, graph, node, call_id
  FROM gpu_work
 WHERE gpu_end_ns BETWEEN ?2 AND ?3
   AND (?1 = 0 OR process_id IN (SELECT process_id FROM processes WHERE pid = ?1))
 ORDER BY process_id, device, context, stream, gpu_start_ns, gpu_end_ns;

-- The calls that caused GPU work within the window. A call may appear several times.
-- name: gpu_causes
SELECT call_id
  FROM gpu_work
 WHERE call_id IS NOT NULL
   AND gpu_end_ns BETWEEN ?2 AND ?3
   AND (?1 = 0 OR process_id IN (SELECT process_id FROM processes WHERE pid = ?1));

-- name: gpus
SELECT device, name, pci_address, memory_bytes, uuid FROM gpus WHERE whole_id IS NULL ORDER BY device;

-- The GPU of each device of a process. Rows of GPU work contain the GPU's number instead of the process's own device
-- number.
-- name: gpu_devices
SELECT DISTINCT process_id, device, device, uuid
  FROM gpu_devices
 WHERE ?1 = 0 OR process_id IN (SELECT process_id FROM processes WHERE pid = ?1)
 ORDER BY process_id, device;

-- Calls that have not returned.
-- name: open_calls
SELECT process_id, tid, name, start_ns, depth, pid,
       ifnull((SELECT layer FROM functions WHERE functions.name = open_calls.name LIMIT 1), '') AS layer,
       state IN ('exited', 'detached') AS at_exit
  FROM open_calls
  JOIN processes USING (process_id)
 WHERE start_ns <= ?3
 ORDER BY start_ns, depth;

-- Calls that have not returned, with the columns that the timeline draws.
-- name: timeline_open_calls
SELECT open_calls.process_id, open_calls.tid,
       (SELECT category FROM functions WHERE functions.name = open_calls.name LIMIT 1) AS category,
       open_calls.start_ns, processes.ended_ns,
       (SELECT layer FROM functions WHERE functions.name = open_calls.name LIMIT 1) AS layer
  FROM open_calls
  JOIN processes USING (process_id)
 WHERE ?1 = 0 OR pid = ?1;

-- A negative number that identifies a process's stream, just as a tid identifies a thread. The bits below suffice,
-- because CUPTI's IDs are small.
-- macro: stream_row(device, context, stream)
(-1 - (((:device & 0xff) << 55) | ((:context & 0xffffff) << 31) | (:stream & 0x7fffffff)))

-- Threads, grouped by process, each followed by the streams of the process.
-- name: timeline_rows
WITH thread AS (
    SELECT process_id, tid, name,
           row_number() OVER (PARTITION BY process_id, tid ORDER BY thread_id DESC) AS age,
           max(driver_ns) OVER (PARTITION BY process_id, tid)                       AS most_ns
      FROM threads
),
line AS (
    SELECT process_id, tid, name, 0 AS is_stream, most_ns, 0 AS device, 0 AS context, 0 AS stream FROM thread WHERE age = 1
     UNION ALL
    SELECT process_id, stream_row(device, context, stream), 'GPU ' || device || ', stream ' || stream, 1, 0, device, context, stream
      FROM (SELECT DISTINCT process_id, device, context, stream FROM gpu_work)
)
SELECT process_id, pid, cmdline, tid, line.name
  FROM line
  JOIN processes USING (process_id)
 ORDER BY started_ns, process_id, is_stream, most_ns DESC, device, context, stream, tid;

-- The work of GPUs that overlaps a window, with the columns that the timeline draws.
-- name: timeline_work
SELECT process_id, stream_row(device, context, stream), kind, gpu_start_ns, gpu_end_ns
  FROM gpu_work
 WHERE gpu_start_ns < ?3 AND gpu_end_ns >= ?2
   AND (?1 = 0 OR process_id IN (SELECT process_id FROM processes WHERE pid = ?1));

-- Threads alone, for traces of versions without the view gpu_work.
-- name: timeline_threads
WITH thread AS (
    SELECT process_id, tid, name,
           row_number() OVER (PARTITION BY process_id, tid ORDER BY thread_id DESC) AS age,
           max(driver_ns) OVER (PARTITION BY process_id, tid)                       AS most_ns
      FROM threads
)
SELECT process_id, pid, cmdline, tid, name
  FROM thread
  JOIN processes USING (process_id)
 WHERE age = 1
 ORDER BY started_ns, process_id, most_ns DESC, tid;

-- Failed and lost calls. A loss is only known to have happened at some point between two times. `lost` counts the calls
-- that were certainly lost within the window, and `lost_at_most` also counts calls that may have been lost within it.
-- name: sums
WITH window AS (
    SELECT ?2 > 0 OR ?3 < 9223372036854775807 AS is_part
),
chosen AS (
    SELECT failed, lost, lost AS lost_at_most, layer
      FROM totals
      JOIN processes USING (process_id)
     WHERE NOT (SELECT is_part FROM window) AND (?1 = 0 OR pid = ?1)
     UNION ALL
    SELECT status NOT IN (0, 600), 0, 0, layer
      FROM calls
     WHERE (SELECT is_part FROM window) AND call_id BETWEEN ?2 AND ?3 AND (?1 = 0 OR pid = ?1)
     UNION ALL
    SELECT 0, iif(first_ns >= ?2 AND last_ns <= ?3, calls, 0), calls, NULL
      FROM losses
      JOIN processes USING (process_id)
     WHERE (SELECT is_part FROM window) AND last_ns >= ?2 AND first_ns <= ?3 AND (?1 = 0 OR pid = ?1) AND cause <> 'cupti'
)
SELECT CAST(total(failed) FILTER (WHERE layer IN ('driver', 'runtime')) AS INTEGER) AS failed,
       CAST(total(lost) AS INTEGER)         AS lost,
       CAST(total(lost_at_most) AS INTEGER) AS lost_at_most,
       (SELECT max(host) FROM processes)    AS host
  FROM chosen;
