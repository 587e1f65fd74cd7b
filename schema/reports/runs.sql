-- Runs
-- The runs that the trace contains, by their beginnings. A run begins with a daemon, or when a command such as `cudatrace run`
-- begins to use a daemon that no other command uses. Commands whose times overlap are one run. The options --run and --last
-- select a run. The command is that of the run's first process. Processes without a call are left out, unless the run has no
-- others.
WITH asked AS (
    SELECT ifnull(:from_ns, 0) AS from_ns, ifnull(:to_ns, 9223372036854775807) AS to_ns
),
known AS ( -- the last known time, for running processes
    SELECT max(until_ns) AS now_ns
      FROM (SELECT * FROM (SELECT call_id AS until_ns FROM calls ORDER BY call_id DESC LIMIT 1)
             UNION ALL SELECT value FROM meta WHERE key = 'earlier_files_until_ns'
             UNION ALL SELECT :now_ns)
),
chosen AS (
    SELECT process_id, calls, iif(layer = 'driver', total_ns, 0) AS driver_ns, iif(layer = 'driver', failed, 0) AS failed
      FROM totals
     WHERE :from_ns IS NULL AND :to_ns IS NULL
     UNION ALL
    SELECT process_id, calls, iif(layer = 'driver', total_ns, 0), iif(layer = 'driver', failed, 0)
      FROM call_sums(:from_ns, :to_ns, :pid, :now_ns)
     WHERE :from_ns IS NOT NULL OR :to_ns IS NOT NULL
),
summed AS (
    SELECT run_id, sum(calls) AS calls, sum(driver_ns) AS driver_ns, sum(failed) AS failed
      FROM chosen
      JOIN processes USING (process_id)
     GROUP BY run_id
)
SELECT run_id                                             AS run,
       strftime('%Y-%m-%d %H:%M:%S', (started_ns + (SELECT value FROM meta WHERE key = 'realtime_offset_ns')) / 1e9,
                'unixepoch', 'localtime')                 AS began, -- NULL for a trace without the time of day
       round((ifnull(ended_ns, max(now_ns, started_ns)) - started_ns) / 1e9, 3) AS seconds,
       processes,
       ifnull(calls, 0)                                   AS calls,
       round(ifnull(driver_ns, 0) / 1e6, 3)               AS ms_in_driver,
       ifnull(failed, 0)                                  AS failed,
       command
  FROM runs
 CROSS JOIN known
 CROSS JOIN asked
  LEFT JOIN summed USING (run_id)
 WHERE started_ns <= to_ns AND (ended_ns IS NULL OR ended_ns >= from_ns)
   AND (:pid IS NULL OR run_id IN (SELECT run_id FROM processes WHERE pid = :pid))
 ORDER BY run_id;
