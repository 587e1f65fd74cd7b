-- Queries for `cudatrace top`. For each table, the "side" query is run at two times, and its rows are put into tables
-- a and b of an in-memory database. Another query then compares a and b. Table a is empty at first. :now_ns is the
-- current time, :process_id is the selected process, and :text is the search text, or NULL for any text. If there is
-- no earlier reading for a process, its numbers count from its start.

-- name: processes_side
WITH total_of AS (
    SELECT process_id,
           CAST(total(calls) AS INTEGER)                                                                            AS calls,
           CAST(total(total_ns) FILTER (WHERE layer = 'driver') AS INTEGER)                            AS driver_ns,
           CAST(total(calls) FILTER (WHERE layer = 'driver' AND category IN ('launch', 'graph')) AS INTEGER) AS launches,
           CAST(total(bytes) FILTER (WHERE layer = 'driver' AND category = 'copy') AS INTEGER)           AS copied,
           CAST(total(failed) AS INTEGER)                                                                           AS failed,
           CAST(total(lost) AS INTEGER)                                                                             AS lost
      FROM totals
     GROUP BY process_id
),
held_by AS (
    SELECT process_id, CAST(total(bytes) AS INTEGER) AS held
      FROM allocations
     WHERE freed_ns IS NULL AND kind IN ('device', 'managed', 'pool', 'array', 'physical')
     GROUP BY process_id
),
open_call AS (
    SELECT process_id, open_calls.name, layer, start_ns,
           row_number() OVER (PARTITION BY process_id ORDER BY start_ns, depth) AS place
      FROM open_calls
      JOIN (SELECT DISTINCT name, layer FROM functions) AS function USING (name)
     WHERE layer IN ('driver', 'runtime')
),
open_in AS (
    SELECT process_id, sum(start_ns) FILTER (WHERE layer = 'driver') AS begun_ns, count(*) FILTER (WHERE layer = 'driver') AS calls
      FROM open_call
     GROUP BY process_id
)
SELECT processes.process_id, pid, state, cmdline, started_ns,
       min(:now_ns, ifnull(ended_ns, :now_ns))                     AS at_ns,
       ifnull(total_of.calls, 0)                                   AS calls,
       ifnull(driver_ns, 0) + ifnull(open_in.calls * min(:now_ns, ifnull(ended_ns, :now_ns)) - begun_ns, 0) AS driver_ns,
       ifnull(launches, 0)                                         AS launches,
       ifnull(copied, 0)                                           AS copied,
       iif(state = 'running', ifnull(held, 0), 0)                  AS held,
       ifnull(failed, 0)                                           AS failed,
       ifnull(lost, 0)                                             AS lost,
       iif(state NOT IN ('exited', 'detached', 'left'), open_call.name, NULL)                AS open_call,
       iif(state NOT IN ('exited', 'detached', 'left'), min(:now_ns, ifnull(ended_ns, :now_ns)) - open_call.start_ns, NULL) AS open_ns
  FROM processes
  LEFT JOIN total_of ON total_of.process_id = processes.process_id
  LEFT JOIN held_by  ON held_by.process_id = processes.process_id
  LEFT JOIN open_in  ON open_in.process_id = processes.process_id
  LEFT JOIN open_call ON open_call.process_id = processes.process_id AND open_call.place = 1;

-- name: processes
WITH moment AS (
    SELECT b.*, b.at_ns - ifnull(a.at_ns, b.started_ns) AS ns,
           b.calls - ifnull(a.calls, 0)         AS new_calls,
           b.driver_ns - ifnull(a.driver_ns, 0) AS new_driver_ns,
           b.launches - ifnull(a.launches, 0)   AS new_launches,
           b.copied - ifnull(a.copied, 0)       AS new_copied,
           pending.work, pending.since_ns
      FROM b
      LEFT JOIN a ON a.process_id = b.process_id
      LEFT JOIN pending ON pending.process_id = b.process_id AND pending.since_ns <= b.at_ns - 2000000000
)
SELECT pid,
       CAST(round(ifnull(new_calls * 1e9 / nullif(ns, 0), 0)) AS INTEGER)    AS "calls/s",
       round(max(ifnull(new_driver_ns * 100.0 / nullif(ns, 0), 0), 0), 1)    AS "driver_%",
       CAST(round(ifnull(new_launches * 1e9 / nullif(ns, 0), 0)) AS INTEGER) AS "launches/s",
       round(ifnull(new_copied * 1e3 / nullif(ns, 0), 0), 1)                 AS "copied_MB/s",
       round(held / 1e6, 1)                                                  AS held_MB,
       lost,
       round(open_ns / 1e9, 1)                                               AS open_s,
       open_call,
       round((at_ns - since_ns) / 1e9, 1)                                    AS gpu_s,
       work                                                                  AS gpu_work,
       cmdline                                                               AS command,
       state,
       failed,
       calls,
       process_id
  FROM moment
 WHERE (:all OR state = 'running')
   AND (:text IS NULL OR pid = CAST(:text AS INTEGER) OR instr(lower(cmdline), lower(:text)) > 0)
 UNION ALL
SELECT pid, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, command, 'not traced', NULL, NULL, NULL
  FROM untraced
 WHERE :untraced
   AND (:text IS NULL OR pid = CAST(:text AS INTEGER) OR instr(lower(command), lower(:text)) > 0)

-- Processes on this machine that have loaded the driver, with their pids outside of containers. Processes recorded by
-- a probe are not included.
-- name: untraced_table
CREATE TABLE untraced (pid INTEGER PRIMARY KEY, command TEXT);

-- name: untraced_insert
INSERT INTO untraced SELECT ?1, ?2 WHERE NOT EXISTS (SELECT 1 FROM b WHERE pid = ?1 AND state = 'running');

-- name: untraced
SELECT pid, command
  FROM untraced
 WHERE :text IS NULL OR pid = CAST(:text AS INTEGER) OR instr(lower(command), lower(:text)) > 0
 ORDER BY pid

-- Finds running processes with records of GPU work, if none of their work has ended for two seconds. CUPTI returns work
-- up to a second after its end. As long as the `noted` and `returned` columns do not change, the result of the
-- `pending` query for the process does not change either.
-- name: idle_recordings
SELECT process_id, noted, returned
  FROM (SELECT process_id,
               (SELECT max(correlation) FROM correlation WHERE correlation.process_id = process.process_id)        AS noted,
               (SELECT max(correlation) FROM gpu_returned WHERE gpu_returned.process_id = process.process_id)      AS returned,
               ifnull((SELECT max(ended_ns) FROM gpu_returned WHERE gpu_returned.process_id = process.process_id), 0) AS ended_ns
          FROM main.process
         WHERE state = 'running')
 WHERE noted IS NOT NULL AND ended_ns <= ?1 - 2000000000

-- Finds the process's oldest work that CUPTI has not returned. Either the GPU is executing this work, or the work is
-- waiting for other work.
-- name: pending
SELECT ifnull(kernel, name), since_ns FROM gpu_pending WHERE process_id = ?1 AND place = 1 ORDER BY start_ns LIMIT 1

-- name: pending_table
CREATE TABLE pending (process_id INTEGER PRIMARY KEY, noted INTEGER, returned INTEGER, seen_ns INTEGER, work TEXT, since_ns INTEGER);

-- name: pending_keep
UPDATE pending SET seen_ns = ?4 WHERE process_id = ?1 AND noted = ?2 AND returned IS ?3

-- name: pending_insert
INSERT OR REPLACE INTO pending VALUES (?1, ?2, ?3, ?4, ?5, ?6)

-- name: pending_forget
DELETE FROM pending WHERE seen_ns < ?1

-- The latest sample of each GPU. A sample that is older than a minute, the longest interval between samples, is no
-- longer current.
-- name: gpus
SELECT gpu,
       name,
       busy_percent                         AS "busy_%",
       round(memory_used_bytes / 1e9, 1)    AS used_GB,
       round(memory_bytes / 1e9, 1)         AS of_GB,
       CAST(round(power_mw / 1e3) AS INTEGER) AS power_W,
       temperature_c                        AS "temperature_C",
       clock_limits                         AS limited_by
  FROM (SELECT gpu_id, max(time_ns) AS time_ns FROM gpu_samples WHERE time_ns > :now_ns - 61000000000 GROUP BY gpu_id)
  JOIN gpu_samples USING (gpu_id, time_ns)
  JOIN gpus USING (gpu_id)
 WHERE whole_id IS NULL
 ORDER BY gpu

-- The number of GPU errors, and the last error. Returns no row if there are no errors.
-- name: xids
SELECT errors, last.*
  FROM (SELECT count(*) AS errors FROM xids)
  JOIN (SELECT code, meaning, device, time AS last_time, pid, name AS process, message
          FROM xids
         ORDER BY call_id DESC
         LIMIT 1) AS last

-- name: functions_side
SELECT name, layer, category, CAST(total(calls) AS INTEGER) AS calls, CAST(total(total_ns) AS INTEGER) AS total_ns, max(max_ns) AS max_ns, CAST(total(failed) AS INTEGER) AS failed,
       CAST(total(lost) AS INTEGER) AS lost, min(:now_ns, ifnull(ended_ns, :now_ns)) AS at_ns, started_ns
  FROM totals
  JOIN processes USING (process_id)
 WHERE process_id = :process_id AND layer <> 'nvtx'
 GROUP BY name, layer, category;

-- name: functions
WITH moment AS (
    SELECT b.*, b.at_ns - coalesce(a.at_ns, (SELECT max(at_ns) FROM a), b.started_ns) AS ns,
           b.calls - ifnull(a.calls, 0)       AS new_calls,
           b.total_ns - ifnull(a.total_ns, 0) AS new_ns
      FROM b LEFT JOIN a ON a.name = b.name AND a.layer = b.layer
)
SELECT name                                                               AS function,
       CAST(round(ifnull(new_calls * 1e9 / nullif(ns, 0), 0)) AS INTEGER) AS "calls/s",
       round(ifnull(new_ns * 100.0 / nullif(ns, 0), 0), 1)                AS "time_%",
       round(new_ns / 1e3 / nullif(new_calls, 0), 1)                      AS mean_us,
       round(max_ns / 1e3, 1)                                             AS max_us,
       calls,
       failed,
       lost,
       layer,
       category
  FROM moment
 WHERE :text IS NULL OR instr(lower(name), lower(:text)) > 0

-- name: threads_side
WITH open_call AS (
    SELECT tid, open_calls.name, layer, start_ns, row_number() OVER (PARTITION BY tid ORDER BY start_ns, depth) AS place
      FROM open_calls
      JOIN (SELECT DISTINCT name, layer FROM functions) AS function USING (name)
     WHERE process_id = :process_id AND layer IN ('driver', 'runtime')
),
open_in AS (
    SELECT tid, sum(start_ns) FILTER (WHERE layer = 'driver') AS begun_ns, count(*) FILTER (WHERE layer = 'driver') AS calls
      FROM open_call
     GROUP BY tid
),
moment AS (
    SELECT started_ns, state, min(:now_ns, ifnull(ended_ns, :now_ns)) AS at_ns FROM processes WHERE process_id = :process_id
)
SELECT threads.tid, threads.name, max(threads.thread_id) AS thread_id, -- so the name is the newest thread's
       CAST(total(threads.calls) AS INTEGER) AS calls,
       CAST(total(driver_ns) AS INTEGER) + ifnull(open_in.calls * at_ns - begun_ns, 0) AS driver_ns,
       at_ns, started_ns,
       iif(state NOT IN ('exited', 'detached', 'left'), open_call.name, NULL) AS open_call, iif(state NOT IN ('exited', 'detached', 'left'), at_ns - open_call.start_ns, NULL) AS open_ns
  FROM threads
  JOIN moment
  LEFT JOIN open_in ON open_in.tid = threads.tid
  LEFT JOIN open_call ON open_call.tid = threads.tid AND open_call.place = 1
 WHERE process_id = :process_id
 GROUP BY threads.tid;

-- name: threads
WITH moment AS (
    SELECT b.*, b.at_ns - coalesce(a.at_ns, (SELECT max(at_ns) FROM a), b.started_ns) AS ns,
           b.calls - ifnull(a.calls, 0)         AS new_calls,
           b.driver_ns - ifnull(a.driver_ns, 0) AS new_ns
      FROM b LEFT JOIN a ON a.tid = b.tid
)
SELECT tid,
       name,
       CAST(round(ifnull(new_calls * 1e9 / nullif(ns, 0), 0)) AS INTEGER) AS "calls/s",
       round(max(ifnull(new_ns * 100.0 / nullif(ns, 0), 0), 0), 1)        AS "driver_%",
       calls,
       round(open_ns / 1e9, 1)                                            AS open_s,
       open_call
  FROM moment
 WHERE :text IS NULL OR instr(lower(name), lower(:text)) > 0 OR tid = CAST(:text AS INTEGER)

-- If there are several files, the newest file has the trace's latest call and all processes that are still running.
-- name: last_moment
SELECT max(ifnull((SELECT max(end_ns) FROM main.call), 0),
           ifnull((SELECT value FROM main.meta WHERE key = 'earlier_files_until_ns'), 0),
           ifnull((SELECT max(ended_ns) FROM processes), 0));
