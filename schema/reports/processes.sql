-- Processes
-- Shows how long each process ran, its calls, its time in driver calls, its failures and its losses. The `inside`
-- column lists the calls that the process is in, or was killed in. `open_at_exit` lists the calls that were still
-- open when the process exited by itself. The times of all threads are added up.
WITH chosen AS (
    SELECT process_id, calls, iif(layer = 'driver', total_ns, 0) AS driver_ns, iif(layer = 'driver', failed, 0) AS failed, lost
      FROM totals
     WHERE :from_ns IS NULL AND :to_ns IS NULL
     UNION ALL
    SELECT process_id, calls, iif(layer = 'driver', total_ns, 0), iif(layer = 'driver', failed, 0), 0
      FROM call_sums(:from_ns, :to_ns, :pid, :now_ns)
     WHERE :from_ns IS NOT NULL OR :to_ns IS NOT NULL
),
summed AS (
    SELECT process_id, sum(calls) AS calls, sum(driver_ns) AS driver_ns, sum(failed) AS failed, sum(lost) AS lost
      FROM chosen
     GROUP BY process_id
),
open_in AS (
    SELECT process_id, group_concat(iif(times = 1, name, name || ' (' || times || ')'), ', ') AS names
      FROM (SELECT process_id, name, count(*) AS times, min(start_ns) FROM open_calls GROUP BY process_id, name ORDER BY min(start_ns))
     GROUP BY process_id
),
known AS ( -- the last known time, for running processes
    SELECT max(until_ns) AS now_ns
      FROM (SELECT * FROM (SELECT call_id AS until_ns FROM calls ORDER BY call_id DESC LIMIT 1)
             UNION ALL SELECT value FROM meta WHERE key = 'earlier_files_until_ns'
             UNION ALL SELECT :now_ns)
)
SELECT pid,
       state,
       round((ifnull(ended_ns, max(now_ns, started_ns)) - started_ns) / 1e9, 3) AS seconds,
       ifnull(calls, 0)                              AS calls,
       round(ifnull(driver_ns, 0) / 1e6, 3)          AS ms_in_driver,
       ifnull(failed, 0)                             AS failed,
       ifnull(lost, 0)                               AS lost,
       iif(state IN ('exited', 'detached'), '', ifnull(names, '')) AS inside,       -- calls not returned yet
       cmdline                                       AS command,
       iif(state IN ('exited', 'detached'), ifnull(names, ''), '') AS open_at_exit  -- ranges, and calls of other threads
  FROM processes
 CROSS JOIN known
  LEFT JOIN summed USING (process_id)
  LEFT JOIN open_in USING (process_id)
 WHERE (:pid IS NULL OR pid = :pid)
   AND (:from_ns IS NULL OR ended_ns IS NULL OR ended_ns >= :from_ns)
   AND (:to_ns IS NULL OR started_ns <= :to_ns)
 ORDER BY driver_ns DESC, process_id;
