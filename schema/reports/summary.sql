-- The trace on one screen
-- The verdict of the section bottleneck, the processes, their calls, launches, copies and failures, what is missing from the trace,
-- and the commands that show more. The times in driver calls are added up over all threads.

-- The report binds :verdict and :bound_by, the results of bottleneck, :files, the names of the trace's files, and :options,
-- the options that select the trace. In a query of your own, they may be NULL.

-- name: rows
WITH calling AS (
    SELECT process_id FROM totals
     UNION
    SELECT process_id FROM open_calls
),
run AS MATERIALIZED (
    SELECT process_id, started_ns, ended_ns, state, cmdline, process_id IN (SELECT process_id FROM calling) AS is_calling
      FROM processes
     WHERE (:pid IS NULL OR pid = :pid)
       AND (:from_ns IS NULL OR ended_ns IS NULL OR ended_ns >= :from_ns)
       AND (:to_ns IS NULL OR started_ns <= :to_ns)
),
counted AS MATERIALIZED ( -- without processes that made no call, such as a probe, unless there are no others
    SELECT * FROM run WHERE is_calling = (SELECT max(is_calling) FROM run)
),
chosen AS (
    SELECT process_id, layer, name, category, calls, total_ns, bytes
      FROM totals
     WHERE :from_ns IS NULL AND :to_ns IS NULL
     UNION ALL
    SELECT process_id, layer, name, category, calls, total_ns, bytes
      FROM call_sums(:from_ns, :to_ns, :pid, :now_ns)
     WHERE :from_ns IS NOT NULL OR :to_ns IS NOT NULL
),
summed AS MATERIALIZED (
    SELECT process_id, layer, sum(calls) AS calls, sum(total_ns) AS total_ns,
           total(calls)    FILTER (WHERE name GLOB 'cuLaunch*' AND name NOT GLOB '*HostFunc*') AS launches,
           total(calls)    FILTER (WHERE name GLOB 'cuGraphLaunch*')                           AS graphs,
           total(total_ns) FILTER (WHERE category = 'launch')                                  AS launch_ns,
           total(bytes)    FILTER (WHERE category = 'memory' AND layer = 'driver')             AS requested
      FROM chosen
     WHERE process_id IN (SELECT process_id FROM run)
     GROUP BY process_id, layer
),
command AS MATERIALIZED (
    SELECT cmdline, count(*) AS processes, total(calls) AS calls, row_number() OVER (ORDER BY total(calls) DESC, cmdline) AS place
      FROM counted
      LEFT JOIN (SELECT process_id, sum(calls) AS calls FROM summed GROUP BY process_id) USING (process_id)
     GROUP BY cmdline
),
layer AS (
    SELECT layer, sum(calls) AS calls FROM summed GROUP BY layer ORDER BY sum(calls) DESC
),
known AS ( -- the last known time, for running processes
    SELECT max(until_ns) AS now_ns
      FROM (SELECT * FROM (SELECT call_id AS until_ns FROM calls ORDER BY call_id DESC LIMIT 1)
             UNION ALL SELECT value FROM meta WHERE key = 'earlier_files_until_ns'
             UNION ALL SELECT :now_ns)
),
span AS MATERIALIZED (
    SELECT max(min(started_ns), ifnull(:from_ns, 0)) AS begin_ns,
           min(max(ifnull(ended_ns, max(now_ns, started_ns))), ifnull(:to_ns, 9223372036854775807)) AS end_ns,
           count(*) AS processes, sum(state = 'running') AS running, sum(state = 'killed') AS killed
      FROM counted
     CROSS JOIN known
    HAVING count(*) > 0
),
copied AS MATERIALIZED (
    SELECT kind, count(*) AS copies, total(bytes) AS bytes
      FROM copies
     WHERE captured = 0
       AND call_id BETWEEN ifnull(:from_ns, 0) AND ifnull(:to_ns, 9223372036854775807)
       AND process_id IN (SELECT process_id FROM run)
     GROUP BY kind
     ORDER BY total(bytes) DESC
),
allocated AS MATERIALIZED (
    SELECT kind, count(*) AS allocations, total(bytes) AS bytes
      FROM allocations
     WHERE allocated_ns BETWEEN ifnull(:from_ns, 0) AND ifnull(:to_ns, 9223372036854775807)
       AND process_id IN (SELECT process_id FROM run)
     GROUP BY kind
     ORDER BY total(bytes) DESC
),
failing AS (
    SELECT process_id, layer, name, ifnull(status_name, 'status ' || status) AS status, calls
      FROM failures
     WHERE :from_ns IS NULL AND :to_ns IS NULL
     UNION ALL
    SELECT process_id, layer, name, ifnull(status_name, 'status ' || status), 1
      FROM calls
     WHERE (:from_ns IS NOT NULL OR :to_ns IS NOT NULL)
       AND call_id BETWEEN ifnull(:from_ns, 0) AND ifnull(:to_ns, 9223372036854775807)
       AND status NOT IN (0, 600)
),
failed AS MATERIALIZED (
    SELECT layer, name, status, sum(calls) AS calls, sum(sum(calls)) OVER (PARTITION BY layer) AS of_layer
      FROM failing
     WHERE process_id IN (SELECT process_id FROM run)
     GROUP BY layer, name, status
     ORDER BY sum(calls) DESC, layer
),
missing AS MATERIALIZED ( -- calls skipped under pressure are in `left_out`
    SELECT total(calls) FILTER (WHERE cause NOT IN ('pressure', 'cupti')) AS lost, count(*) FILTER (WHERE calls IS NULL) AS unknown,
           total(calls) FILTER (WHERE cause = 'cupti') AS work, group_concat(DISTINCT cause) AS causes,
           (SELECT total(skipped) FROM totals WHERE :from_ns IS NULL AND :to_ns IS NULL AND process_id IN (SELECT process_id FROM run)) AS left_out
      FROM losses
     WHERE ifnull(last_ns, 9223372036854775807) >= ifnull(:from_ns, 0)
       AND first_ns <= ifnull(:to_ns, 9223372036854775807)
       AND process_id IN (SELECT process_id FROM run)
),
-- The sections that explain each verdict, if it was derived from calls, and if it was derived from records of GPU work.
explained(bound_by, by_calls, by_work) AS (
    VALUES ('gpu', 'kernels waits', 'work kernels'), ('sync', 'waits', 'idle waits'), ('copy', 'copies', 'copies work'),
           ('launch', 'kernels launches', 'idle kernels'), ('queue', 'launches', 'idle queue'), ('set', 'functions', 'work functions'),
           ('memory', 'memory functions', 'idle memory'), ('load', 'modules phases', 'idle modules'),
           ('driver', 'functions', 'idle functions'), ('host', 'gaps', 'idle gaps'), ('start', 'phases functions', 'phases work'),
           ('unknown', 'functions', 'gpu idle')
),
line(place, about, found) AS (
    SELECT 1, 'trace', :files
     UNION ALL
    SELECT 2, 'processes', printf('%,d%s%s', processes, iif(running > 0, printf(', %,d still running', running), ''),
                                  iif(killed > 0, printf(', %,d killed', killed), ''))
      FROM span
     UNION ALL
    SELECT 2 + place / 10.0, 'command', printf('%,d call%s%s: %s', calls, iif(calls = 1, '', 's'),
                                               iif(processes > 1, printf(' in %,d processes', processes), ''),
                                               iif(ifnull(cmdline, '') = '', 'command unknown', cmdline))
      FROM command
     WHERE place <= 3
     UNION ALL
    SELECT 3, 'time', printf('%.3f s%s', (end_ns - begin_ns) / 1e9,
                             ' from ' || strftime('%Y-%m-%d %H:%M:%S', (begin_ns + (SELECT value FROM meta WHERE key = 'realtime_offset_ns')) / 1e9,
                                                  'unixepoch', 'localtime'))
      FROM span
     UNION ALL
    SELECT 4, 'calls', printf('%,d (%s), %.3f ms in driver calls', sum(calls), group_concat(printf('%s %,d', layer, calls), ', '),
                              (SELECT total(total_ns) FROM summed WHERE layer = 'driver') / 1e6)
      FROM layer
    HAVING count(*) > 0
     UNION ALL
    SELECT 4.1, 'requests', printf('%,d to the kernel driver, %.3f ms', sum(calls), sum(total_ns) / 1e6)
      FROM summed
     WHERE layer = 'ioctl'
    HAVING count(*) > 0
     UNION ALL
    SELECT 4.2, 'launches', iif(total(launches) + total(graphs) = 0, 'none', printf('%,d kernel%s%s, %.3f ms', total(launches), iif(total(launches) = 1, '', 's'),
                                   iif(total(graphs) > 0, printf(' and %,d graph%s', total(graphs), iif(total(graphs) = 1, '', 's')), ''),
                                   total(launch_ns) / 1e6))
      FROM summed
     WHERE layer = 'driver'
     UNION ALL
    SELECT 4.3, 'memory', ifnull(group_concat(printf('%s %.3f MB in %,d', kind, bytes / 1e6, allocations), ', '),
                                 (SELECT iif(total(requested) > 0, printf('%.3f MB requested', total(requested) / 1e6), 'none') FROM summed))
      FROM allocated
     UNION ALL
    SELECT 5, 'copies', ifnull(group_concat(printf('%s %.3f MB in %,d', kind, bytes / 1e6, copies), ', '), 'none')
      FROM copied
     UNION ALL
    SELECT 6, 'failures', ifnull((SELECT group_concat(printf('%,d %s', of_layer, layer), ' and ') || ' calls failed, most often '
                                    FROM (SELECT DISTINCT layer, of_layer FROM failed ORDER BY of_layer DESC, layer))
                                 || (SELECT printf('%s: %s (%,d)', name, status, calls) FROM failed LIMIT 1), 'none')
     UNION ALL
    SELECT 7, 'losses', ifnull(nullif(ltrim(iif(lost > 0, printf(', %,d calls lost', lost), '')
                                            || iif(left_out > 0, printf(', %,d calls left out', left_out), '')
                                            || iif(work > 0, printf(', %,d pieces of GPU work lost', work), '')
                                            || iif(unknown > 0, ', calls in times without a recording', '')
                                            || iif(causes IS NOT NULL, printf(' (%s)', causes), ''), ', '), ''), 'none')
      FROM missing
     UNION ALL
    SELECT 8, 'next', printf('cudatrace report%s %s', ifnull(:options, ''),
                             ifnull(iif(:verdict GLOB '*: the GPU is *' OR :verdict GLOB '*GPUs are*', by_work, by_calls), 'functions'))
      FROM (SELECT 1)
      LEFT JOIN explained ON explained.bound_by = :bound_by
     UNION ALL
    SELECT 9, 'next', printf('cudatrace report%s errors', ifnull(:options, '')) WHERE EXISTS (SELECT 1 FROM failed)
     UNION ALL
    SELECT 10, 'next', printf('cudatrace report%s losses', ifnull(:options, '')) FROM missing WHERE causes IS NOT NULL
     UNION ALL
    SELECT 11, 'next', printf('cudatrace report%s processes', ifnull(:options, '')) FROM span WHERE killed > 0
)
SELECT iif(place = 1, :verdict, NULL) AS paragraph, about, found
  FROM line
 WHERE EXISTS (SELECT 1 FROM span)
 ORDER BY place;

-- Errors and processes that are in views of their own, which an older trace may lack.
-- name: note
SELECT paragraph
  FROM (SELECT printf('%d GPU error%s (Xids), the last with code %d: see xids.', count(*), iif(count(*) = 1, '', 's'), code) AS paragraph,
               max(call_id) AS last_id -- and the code of that row
          FROM xids
         WHERE call_id BETWEEN ifnull(:from_ns, 0) AND ifnull(:to_ns, 9223372036854775807)
           AND (:pid IS NULL OR pid = :pid OR pid IS NULL)
        HAVING count(*) > 0)
 UNION ALL
SELECT printf('%d process%s could not be recorded (%s): see the view unrecorded.', count(*), iif(count(*) = 1, '', 'es'), group_concat(DISTINCT cause))
  FROM unrecorded
 WHERE (:pid IS NULL OR pid = :pid)
   AND last_ns >= ifnull(:from_ns, 0) AND first_ns <= ifnull(:to_ns, 9223372036854775807)
HAVING count(*) > 0
 UNION ALL
SELECT printf('The trace has %d runs: see runs. The options --last and --run N select one of them.', count(*))
  FROM runs
HAVING count(*) > 1;
