-- Threads
-- Shows which threads make the calls. ms_in_driver is a thread's time in driver calls. A thread without recent calls
-- may be missing if --keep is used.
WITH chosen AS (
    SELECT process_id, tid, calls, driver_ns
      FROM threads
     WHERE :from_ns IS NULL AND :to_ns IS NULL
     UNION ALL
    SELECT process_id, tid, sum(calls), sum(total_ns) FILTER (WHERE layer = 'driver')
      FROM call_sums(:from_ns, :to_ns, :pid, :now_ns)
     WHERE :from_ns IS NOT NULL OR :to_ns IS NOT NULL
     GROUP BY process_id, tid
),
named AS (
    SELECT process_id, tid, name
      FROM (SELECT process_id, tid, name, row_number() OVER (PARTITION BY process_id, tid ORDER BY thread_id DESC) AS age
              FROM threads)
     WHERE age = 1
)
SELECT pid,
       tid,
       named.name                                         AS thread,
       sum(calls)                                         AS calls,
       round(sum(driver_ns) / 1e6, 3)                     AS ms_in_driver,
       round(100.0 * sum(driver_ns) / nullif(sum(sum(driver_ns)) OVER (PARTITION BY process_id), 0), 1) AS "%_of_process",
       cmdline                                            AS command
  FROM chosen
  JOIN processes USING (process_id)
  LEFT JOIN named USING (process_id, tid)
 WHERE (:pid IS NULL OR pid = :pid)
 GROUP BY process_id, tid
HAVING sum(calls) > 0
 ORDER BY sum(driver_ns) DESC
 LIMIT 40;
