-- What bounds the run
-- The largest share of the processes' time: waiting for the GPU, launching, copying, managing memory, loading, or none of
-- CUDA at all. Time in the driver is that of each process's busiest thread, so that threads that wait side by side do not
-- count twice.
WITH known AS (
    SELECT max(until_ns) AS now_ns
      FROM (SELECT max(call_id) AS until_ns FROM calls
             UNION ALL SELECT value FROM meta WHERE key = 'earlier_files_until_ns')
),
run AS MATERIALIZED (
    SELECT process_id,
           min(ifnull(ended_ns, max(now_ns, started_ns)), ifnull(:to_ns, 9223372036854775807))
               - max(started_ns, ifnull(:from_ns, 0)) AS ns
      FROM processes
     CROSS JOIN known
     WHERE (:pid IS NULL OR pid = :pid)
),
spent AS ( -- in the driver, by what for
    SELECT process_id, category, calls, total_ns
      FROM totals
     WHERE :from_ns IS NULL AND :to_ns IS NULL AND layer = 'driver'
     UNION ALL
    SELECT process_id, category, 1, duration_ns
      FROM calls
     WHERE (:from_ns IS NOT NULL OR :to_ns IS NOT NULL)
       AND call_id BETWEEN ifnull(:from_ns, 0) AND ifnull(:to_ns, 9223372036854775807)
       AND layer = 'driver'
),
back AS ( -- a synchronous copy to the host waits for what was launched before it
    SELECT process_id, sum(duration_ns) AS ns
      FROM copies
     WHERE async = 0 AND captured = 0 AND kind = 'DtoH'
       AND call_id BETWEEN ifnull(:from_ns, 0) AND ifnull(:to_ns, 9223372036854775807)
     GROUP BY process_id
),
by_process AS MATERIALIZED (
    SELECT process_id, max(run.ns, 1) AS ns,
           ifnull(sum(total_ns), 0)                                                           AS driver_ns,
           ifnull(sum(total_ns) FILTER (WHERE category = 'sync'), 0) + ifnull(back.ns, 0)     AS wait_ns,
           ifnull(sum(total_ns) FILTER (WHERE category = 'launch'), 0)
             + ifnull(sum(total_ns) FILTER (WHERE category = 'graph'), 0)                     AS launch_ns,
           ifnull(sum(total_ns) FILTER (WHERE category IN ('copy', 'set')), 0) - ifnull(back.ns, 0) AS copy_ns,
           ifnull(sum(total_ns) FILTER (WHERE category = 'memory'), 0)                        AS memory_ns,
           ifnull(sum(total_ns) FILTER (WHERE category IN ('init', 'module', 'context', 'device')), 0) AS load_ns,
           ifnull(sum(calls) FILTER (WHERE category = 'launch'), 0)                           AS launches
      FROM run
      LEFT JOIN spent USING (process_id)
      LEFT JOIN back USING (process_id)
     GROUP BY process_id
),
busiest AS (
    SELECT process_id, 1.0 * max(driver_ns) / nullif(sum(driver_ns), 0) AS share
      FROM threads
     GROUP BY process_id
),
total AS (
    SELECT count(*) AS processes, total(ns) AS ns, total(min(ns, driver_ns * share)) AS driver_ns,
           total(wait_ns * share) AS wait_ns, total(launch_ns * share) AS launch_ns,
           1.0 * sum(launch_ns) / nullif(sum(launches), 0) AS launch_mean_ns, total(copy_ns * share) AS copy_ns,
           total(memory_ns * share) AS memory_ns, total(load_ns * share) AS load_ns, sum(launches) AS launches
      FROM by_process
      JOIN busiest USING (process_id)
),
share AS (
    SELECT 'outside' AS what, ns - driver_ns AS ns FROM total
     UNION ALL SELECT 'wait', wait_ns FROM total
     UNION ALL SELECT 'launch', launch_ns FROM total
     UNION ALL SELECT 'copy', copy_ns FROM total
     UNION ALL SELECT 'memory', memory_ns FROM total
     UNION ALL SELECT 'load', load_ns FROM total
),
advice(what, bound_by, claim, hint) AS (
    VALUES ('wait', 'gpu', 'The GPU bounds this run: the host waits for it',
            'Faster kernels, or more of them at once, would shorten it; waits says where the host waits, kernels what for.'),
           ('launch', 'launch', 'Launching bounds this run: the host hands over work',
            'Fewer and larger kernels, or graphs, would shorten it; kernels says which are launched most.'),
           ('copy', 'copy', 'Copies and sets of memory bound this run: the host is in them',
            'Larger, asynchronous copies from pinned memory would shorten it; copies has directions and sizes.'),
           ('memory', 'memory', 'Managing memory bounds this run: the host allocates and frees',
            'Keeping memory instead of freeing it would shorten it, and a free may wait for the GPU; functions says which calls, memory who.'),
           ('load', 'load', 'Starting up and loading code bound this run: the host is in them',
            'modules says what is loaded and when; a process that lives longer pays it once.'),
           ('outside', 'host', 'The host bounds this run: it is outside of the driver',
            'The GPU has nothing to do meanwhile unless other processes use it; gaps says when, and what came before.')
),
largest AS (
    SELECT what, max(ns) AS ns FROM share -- what is that of the maximum
),
next AS ( -- in the driver, where the run is mostly outside of it
    SELECT what, max(ns) AS ns FROM share WHERE what <> 'outside' AND (SELECT what FROM largest) = 'outside'
)
SELECT advice.bound_by,
       advice.claim
       || printf(' %.1f %% of the time. %s of %.3f s in all: %.1f %% in the driver (waiting %.1f, launching %.1f, copying %.1f, memory %.1f, starting and loading %.1f), %.1f %% outside of it; %s',
                 100.0 * largest.ns / total.ns,
                 iif(processes = 1, 'One process', processes || ' processes'), total.ns / 1e9,
                 100.0 * driver_ns / total.ns, 100.0 * wait_ns / total.ns, 100.0 * launch_ns / total.ns,
                 100.0 * copy_ns / total.ns, 100.0 * memory_ns / total.ns, 100.0 * load_ns / total.ns,
                 100.0 - 100.0 * driver_ns / total.ns,
                 iif(launches = 0, 'no launches. ',
                     printf('%d launches, %.1f us each. ', launches, launch_mean_ns / 1e3)))
       || advice.hint
       || iif(next.ns > 0.1 * total.ns,
              printf(' In the driver %.1f %% of the time goes into %s. ', 100.0 * next.ns / total.ns,
                     CASE next.what WHEN 'wait' THEN 'waiting' WHEN 'launch' THEN 'launches' WHEN 'copy' THEN 'copies'
                                    WHEN 'memory' THEN 'getting memory and giving it back' ELSE 'starting and loading' END)
              || next_advice.hint, '') AS paragraph
  FROM total
 CROSS JOIN largest
  JOIN advice USING (what)
 CROSS JOIN next
  LEFT JOIN advice AS next_advice ON next_advice.what = next.what
 WHERE total.ns > 0;
