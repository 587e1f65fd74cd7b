-- What bounds the run
-- The verdict covers the time from the first launch to the last, with the copies and sets before and after, and any
-- waits after the last launch. It names the largest share of this time: waiting for the GPU, launching, copying,
-- setting or managing memory, loading, or time outside of the driver. Below the verdict are the parts of the whole run.
-- Parts that round to 0.0 % are omitted. Processes that neither launch nor copy are left out if others do. Before the
-- first launch, a program imports, loads and prepares. A copy to the host waits for earlier launches (copy_waits). A
-- launch counts as waiting for room in the queue if it takes more than 15 us and more than six times as long as the
-- fastest hundred. The exceptions are the first launch of a kernel, which may load code, and a few slow launches among
-- many. If a process has several threads in the driver, it is unknown how much their times overlap. For such a process,
-- the report uses the mean of two figures: the busiest thread's time, and the sum over all threads. If the trace has
-- records of the GPU's work, the verdict and the parts are derived from these instead: how long each GPU ran kernels,
-- only copied, or was idle, and what the host did at that time.

-- name: rows
WITH RECURSIVE asked AS MATERIALIZED (
    SELECT ifnull(:from_ns, 0) AS from_ns, ifnull(:to_ns, 9223372036854775807) AS to_ns,
           :from_ns IS NOT NULL OR :to_ns IS NOT NULL AS is_window,
           (SELECT max(until_ns)
              FROM (SELECT * FROM (SELECT call_id AS until_ns FROM calls ORDER BY call_id DESC LIMIT 1)
                     UNION ALL SELECT value FROM meta WHERE key = 'earlier_files_until_ns'
                     UNION ALL SELECT :now_ns)) AS now_ns
),
run AS MATERIALIZED ( -- each process, or its part within the window
    SELECT process_id, max(started_ns, asked.from_ns) AS from_ns,
           min(ifnull(ended_ns, max(now_ns, started_ns)), asked.to_ns) AS to_ns
      FROM processes
     CROSS JOIN asked
     WHERE (:pid IS NULL OR pid = :pid)
       AND started_ns <= asked.to_ns AND (ended_ns IS NULL OR ended_ns >= asked.from_ns)
),
-- Launches grouped by kernel or graph, because the first launch of a kernel or graph differs from later launches. For a
-- window, the first launch in the window is used.
launched AS MATERIALIZED (
    SELECT process_id, min(first_id) AS first_id, sum(launches) AS launches,
           min(begun_ns) FILTER (WHERE captured = 0) AS from_ns, max(last_id) FILTER (WHERE captured = 0) AS to_ns
      FROM launch_sums(:from_ns, :to_ns, :pid, :now_ns)
     GROUP BY process_id, graph_exec, mangled
),
around AS MATERIALIZED (
    SELECT process_id, is_before, is_after FROM launch_around(:from_ns, :to_ns, :pid, :now_ns)
),
launching AS MATERIALIZED ( -- earlier: other launches that expired or were before the window; the first launch is then unknown
    SELECT process_id, sum(expired) + ifnull(is_before, 0) AS earlier, ifnull(is_after, 0) AS later
      FROM totals
      LEFT JOIN around USING (process_id)
     WHERE layer = 'driver' AND category = 'launch'
     GROUP BY process_id
),
inside AS MATERIALIZED ( -- the outermost driver calls that have not returned
    SELECT process_id, start_ns, name, category, min(depth)
      FROM open_calls
      JOIN (SELECT DISTINCT name, category FROM functions WHERE layer = 'driver') USING (name)
     GROUP BY process_id, tid
),
unreturned AS ( -- of these, the one that has taken longest
    SELECT name, max(run.to_ns - max(inside.start_ns, run.from_ns)) AS ns
      FROM inside
      JOIN run USING (process_id)
     WHERE inside.start_ns <= run.to_ns
),
worked AS ( -- for a process without a launch: copies and sets
    SELECT process_id, min(from_ns) AS from_ns, iif(later, 9223372036854775807, max(to_ns)) AS to_ns, sum(launches) AS launches
      FROM launched
      LEFT JOIN launching USING (process_id)
     GROUP BY process_id
     UNION ALL
    SELECT process_id, min(start_ns), max(call_id), 0
      FROM (SELECT count(*) FROM run WHERE process_id NOT IN (SELECT process_id FROM launching) HAVING count(*) > 0)
     CROSS JOIN (SELECT process_id, start_ns, call_id FROM copies
                  UNION ALL SELECT process_id, start_ns, call_id FROM memsets)
     WHERE process_id NOT IN (SELECT process_id FROM launching)
     GROUP BY process_id
     UNION ALL -- launches before the window, and others after it, or a call that has not returned since
    SELECT process_id, run.from_ns, run.to_ns, 0
      FROM run
      JOIN launching USING (process_id)
     WHERE earlier > 0 AND process_id NOT IN (SELECT process_id FROM launched)
       AND (later OR process_id IN (SELECT process_id FROM inside WHERE start_ns <= run.to_ns))
),
part AS MATERIALIZED ( -- the part of each run from the first launch to the last, if it has one
    SELECT process_id, run.from_ns AS run_from_ns, run.to_ns AS run_to_ns, launches,
           iif(earlier > 0, run.from_ns, max(run.from_ns, worked.from_ns)) AS from_ns, min(run.to_ns, worked.to_ns) AS to_ns
      FROM run
      JOIN worked USING (process_id)
      LEFT JOIN launching USING (process_id)
     WHERE (worked.from_ns <= run.to_ns OR earlier > 0) AND worked.to_ns >= run.from_ns
),
-- The time in a part of the run is the total time minus the time of the calls before and after that part. Therefore,
-- only calls outside the part are read. For a window, the totals are those of its calls (call_sums). The
-- periods before the parts of all processes are merged, and so are the periods after the parts, so that each call is
-- read at most once per side.
begun AS (
    SELECT side, from_ns, to_ns,
           from_ns > ifnull(max(to_ns) OVER (PARTITION BY side ORDER BY from_ns
                                             ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), -1) AS is_new
      FROM (SELECT side, iif(side = 'before', run_from_ns, to_ns) AS from_ns, iif(side = 'before', from_ns, run_to_ns) AS to_ns
              FROM part
             CROSS JOIN (SELECT 'before' AS side UNION ALL SELECT 'behind'))
     WHERE from_ns < to_ns
),
island AS MATERIALIZED (
    SELECT side, min(from_ns) AS from_ns, max(to_ns) AS to_ns
      FROM (SELECT side, from_ns, to_ns, sum(is_new) OVER (PARTITION BY side ORDER BY from_ns ROWS UNBOUNDED PRECEDING) AS number
              FROM begun)
     GROUP BY side, number
     UNION ALL
    SELECT 'window', from_ns, to_ns FROM asked WHERE is_window
),
-- Reads at most about half a million rows. If there are more, two thousand slices with half a million rows in total
-- represent all of them. All long calls are read.
sample AS MATERIALIZED (
    SELECT side, thin, iif(thin > 1, max(1, ns / 2000), 9223372036854775807) AS step_ns
      FROM (SELECT side, sum(to_ns - from_ns) AS ns,
                   iif(side = 'window', 1,
                       max(1, 1.0 * (SELECT sum(stored - expired) FROM totals) * sum(to_ns - from_ns) / 5e5
                              / (SELECT max(now_ns) - min(started_ns) FROM asked CROSS JOIN processes))) AS thin
              FROM island
             GROUP BY side)
),
slice(side, from_ns, to_ns) AS (
    SELECT side, from_ns, to_ns FROM island
     UNION ALL
    SELECT side, from_ns + step_ns, to_ns FROM slice JOIN sample USING (side) WHERE to_ns - from_ns > step_ns
),
placed AS ( -- time in the driver by category: before the first launch, from the first to the last, and after the last
    SELECT process_id, category, is_open,
           CASE WHEN end_ns <= part.from_ns THEN 'before' WHEN start_ns >= part.to_ns THEN 'behind' ELSE 'between' END AS place,
           total(weight * (min(end_ns, run_to_ns) - max(start_ns, run_from_ns))) AS ns
      FROM (SELECT calls.process_id, category, start_ns, call_id AS end_ns, 0 AS is_open, thin AS weight, slice.side
              FROM sample
             CROSS JOIN slice ON slice.side = sample.side
             CROSS JOIN calls ON calls.call_id BETWEEN slice.from_ns AND min(slice.to_ns, slice.from_ns + CAST(step_ns / thin AS INTEGER))
             WHERE sample.side <> 'window' AND layer = 'driver' AND (thin <= 1 OR duration_ns <= 100000000)
             UNION ALL -- long calls in addition to a sample, and calls that return after the window, which are in no sum
            SELECT calls.process_id, category, calls.start_ns, calls.call_id, side = 'window', 1, side
              FROM sample
             CROSS JOIN asked
             CROSS JOIN long_calls
             CROSS JOIN calls ON calls.call_id = long_calls.call_id
             WHERE layer = 'driver'
               AND iif(side = 'window', long_calls.call_id > asked.to_ns AND long_calls.start_ns < asked.to_ns,
                       thin > 1 AND long_calls.call_id BETWEEN asked.from_ns AND asked.to_ns)
             UNION ALL -- calls that have not returned
            SELECT process_id, iif(category = 'launch' OR name LIKE 'cuMemcpyDtoH%', 'sync', category), start_ns, 9223372036854775807, 1, 1, 'window'
              FROM inside)
      JOIN part USING (process_id)
     WHERE start_ns <= run_to_ns AND end_ns >= run_from_ns
       AND CASE side WHEN 'before' THEN end_ns <= part.from_ns WHEN 'behind' THEN end_ns > part.from_ns AND start_ns >= part.to_ns
                     ELSE 1 END
     GROUP BY process_id, category, is_open, place
),
waiting AS MATERIALIZED ( -- copies to the host
    SELECT process_id, call_id, start_ns, kind, async, moved_ns, waited_ns
      FROM copy_waits
     WHERE call_id BETWEEN (SELECT min(from_ns) FROM part) AND (SELECT max(run_to_ns) FROM part)
       AND (waited_ns > 0 OR (kind = 'DtoH' AND async = 0))
),
spent AS (
    SELECT process_id, category, iif(place = 'before', ns, 0) AS before_ns, iif(place = 'behind', ns, 0) AS behind_ns,
           CASE WHEN is_open THEN iif(place = 'between', ns, 0) ELSE iif(place = 'between', 0, -ns) END AS ns
      FROM placed
     UNION ALL
    SELECT process_id, category, 0, 0, total_ns
      FROM totals
     WHERE layer = 'driver' AND :from_ns IS NULL AND :to_ns IS NULL
     UNION ALL
    SELECT process_id, category, 0, 0, inside_ns
      FROM call_sums(:from_ns, :to_ns, :pid, :now_ns)
     WHERE layer = 'driver' AND (:from_ns IS NOT NULL OR :to_ns IS NOT NULL)
     UNION ALL
    SELECT process_id, 'back', 0, iif(start_ns >= part.to_ns, waited_ns, 0), iif(start_ns >= part.to_ns, 0, waited_ns)
      FROM waiting
      JOIN part USING (process_id)
     WHERE waited_ns > 0 AND call_id BETWEEN part.from_ns AND run_to_ns
     UNION ALL -- what copies to the host waited may be unknown
    SELECT process_id, 'doubt', 0, 0, moved_ns
      FROM waiting
      JOIN part USING (process_id)
     WHERE kind = 'DtoH' AND async = 0 AND launches > 0 AND call_id BETWEEN part.from_ns AND run_to_ns
),
summed AS MATERIALIZED ( -- a sample may subtract more than there is
    SELECT process_id,
           max(0, total(ns) FILTER (WHERE category NOT IN ('back', 'doubt')))                   AS driver_ns,
           total(ns) FILTER (WHERE category = 'doubt')                                          AS doubt_ns,
           total(before_ns) FILTER (WHERE category NOT IN ('copy', 'set'))                      AS before_driver_ns,
           total(before_ns) FILTER (WHERE category IN ('copy', 'set'))                          AS early_ns,
           total(behind_ns) FILTER (WHERE category IN ('sync', 'copy', 'set'))                  AS late_ns,
           max(0, total(ns + behind_ns) FILTER (WHERE category IN ('sync', 'back')))            AS wait_ns,
           max(0, total(ns) FILTER (WHERE category = 'launch'))                                 AS launch_ns,
           max(0, total(ns) FILTER (WHERE category = 'graph'))                                  AS graph_ns,
           max(0, total(iif(category = 'back', -1, 1) * (before_ns + ns + behind_ns))
                  FILTER (WHERE category IN ('copy', 'back')))                                  AS copy_ns,
           max(0, total(before_ns + ns + behind_ns) FILTER (WHERE category = 'set'))            AS set_ns,
           max(0, total(ns) FILTER (WHERE category = 'memory'))                                 AS memory_ns,
           max(0, total(ns) FILTER (WHERE category IN ('init', 'module', 'context', 'device'))) AS load_ns
      FROM spent
     GROUP BY process_id
),
-- How long a launch takes if there is room in the queue, determined from the fastest hundred launches of each function.
-- Once a thousand launches have filled a queue, most of the later launches may have to wait.
usual AS MATERIALIZED (
    SELECT process_id, name, stored, max(15000, 6 * min(ns)) AS limit_ns
      FROM (SELECT process_id, name, (from_ns + below_ns) / 2 AS ns,
                   sum(calls) OVER (PARTITION BY process_id, name ORDER BY from_ns) AS up_to,
                   sum(calls) OVER (PARTITION BY process_id, name)                  AS stored
              FROM durations
             WHERE layer = 'driver' AND category = 'launch' AND name NOT LIKE 'cuLaunchHostFunc%')
     WHERE up_to >= min(100, (stored + 1) / 2)
     GROUP BY process_id, name
),
-- Launch durations, taken from the sums of the whole run or of the window. `is_first` marks the first launch of a kernel
-- or a graph. `is_kept` marks launches that count for the whole run.
took AS (
    SELECT process_id, name, (from_ns + below_ns) / 2 AS ns, calls, :from_ns IS NULL AND :to_ns IS NULL AS is_asked, 0 AS is_first,
           1 AS is_kept
      FROM durations
     WHERE layer = 'driver' AND category = 'launch'
     UNION ALL
    SELECT process_id, name, (from_ns + below_ns) / 2, calls, 1, 0, 0
      FROM call_durations(:from_ns, :to_ns, :pid, :now_ns)
     WHERE (:from_ns IS NOT NULL OR :to_ns IS NOT NULL) AND layer = 'driver' AND category = 'launch'
     UNION ALL
    SELECT calls.process_id, name, duration_ns, 1,
           first_id BETWEEN ifnull(:from_ns, 0) AND ifnull(:to_ns, 9223372036854775807), 1, 1
      FROM launched
     CROSS JOIN (SELECT * FROM calls WHERE call_id >= ifnull(:from_ns, 0)) AS calls ON calls.call_id = first_id
),
-- The shares of launch time that were spent waiting for room in the queue, and in slow first launches. When the queue
-- is full, every launch must wait. If only a few launches among many are slow, the cause is different.
room AS MATERIALIZED (
    SELECT process_id, total(max(0, slow_ns - first_ns) * waits) / nullif(total(all_ns), 0) AS room,
           total(min(slow_ns, first_ns)) / nullif(total(all_ns), 0) AS first
      FROM (SELECT process_id,
                   total(ns * calls) FILTER (WHERE is_asked AND NOT is_first)                  AS all_ns,
                   total(ns * calls) FILTER (WHERE is_asked AND NOT is_first AND ns > limit_ns) AS slow_ns,
                   total(ns) FILTER (WHERE is_asked AND is_first AND ns > limit_ns)             AS first_ns,
                   total(iif(is_first, -1, calls)) FILTER (WHERE is_kept AND ns > limit_ns) >= max(16, stored / 50) AS waits
              FROM took
              JOIN usual USING (process_id, name)
             GROUP BY process_id, name)
     GROUP BY process_id
),
busiest AS (
    SELECT process_id, 1.0 * max(driver_ns) / nullif(sum(driver_ns), 0) AS share
      FROM threads
     GROUP BY process_id
),
by_process AS (
    SELECT part.from_ns - run_from_ns           AS before_ns,
           part.to_ns - part.from_ns            AS between_ns,
           run_to_ns - part.to_ns               AS behind_ns,
           launches,
           ifnull(0.5 * (share + min(1, (part.to_ns - part.from_ns) / nullif(driver_ns, 0))), 1) AS share,
           ifnull(launch_ns * room, 0)          AS room_ns,
           ifnull(launch_ns * first, 0)         AS first_ns,
           summed.*
      FROM part
      JOIN summed USING (process_id)
      LEFT JOIN room USING (process_id)
      LEFT JOIN busiest USING (process_id)
),
total AS (
    SELECT count(*) AS working, total(max(0, before_ns - early_ns * share)) AS before_ns,
           total(min(max(0, before_ns - early_ns * share), before_driver_ns)) AS before_driver_ns,
           total(max(0, behind_ns - late_ns * share)) AS behind_ns,
           total(between_ns + (early_ns + late_ns) * share) AS ns, total((early_ns + late_ns) * share) AS around_ns,
           total(min(between_ns + (early_ns + late_ns) * share, (driver_ns + early_ns + late_ns) * share)) AS driver_ns,
           total(wait_ns * share) AS wait_ns, total(room_ns * share) AS room_ns,
           total(max(0, launch_ns + graph_ns - room_ns - first_ns) * share) AS launch_ns,
           total(copy_ns * share) AS copy_ns, total(doubt_ns * share) AS doubt_ns, total(set_ns * share) AS set_ns, total(memory_ns * share) AS memory_ns,
           total((load_ns + first_ns) * share) AS load_ns
      FROM by_process
),
fitted AS ( -- sums of a sample may exceed the time in the driver, which bounds them
    SELECT working, before_ns, before_driver_ns, behind_ns, ns, around_ns, driver_ns, wait_ns * fit AS wait_ns, room_ns * fit AS room_ns,
           launch_ns * fit AS launch_ns, copy_ns * fit AS copy_ns, doubt_ns, set_ns * fit AS set_ns, memory_ns * fit AS memory_ns, load_ns * fit AS load_ns
      FROM (SELECT *, ifnull(min(1, driver_ns / nullif(wait_ns + room_ns + launch_ns + copy_ns + set_ns + memory_ns + load_ns, 0)), 1) AS fit
              FROM total)
),
weighed AS (
    SELECT *, max(wait_ns + room_ns, launch_ns, copy_ns, set_ns, memory_ns, load_ns, other_ns) AS most_inside_ns
      FROM (SELECT *, max(0, ns - driver_ns) AS outside_ns,
                   max(0, driver_ns - wait_ns - room_ns - launch_ns - copy_ns - set_ns - memory_ns - load_ns) AS other_ns
              FROM fitted)
),
judged AS MATERIALIZED (
    SELECT *, max(outside_ns, most_inside_ns) AS most_ns,
           CASE WHEN working = 0 OR ns <= 0 THEN 'nothing' WHEN ns < 1e6 THEN 'short' WHEN outside_ns >= most_inside_ns THEN 'outside'
                ELSE CASE most_inside_ns WHEN wait_ns + room_ns THEN iif(room_ns > wait_ns, 'room', 'wait') WHEN launch_ns THEN 'launch'
                                         WHEN copy_ns THEN 'copy' WHEN set_ns THEN 'set' WHEN memory_ns THEN 'memory' WHEN load_ns THEN 'load'
                                         ELSE 'other' END END AS most
      FROM weighed
),
whole AS MATERIALIZED (
    SELECT total(to_ns - from_ns) AS ns,
           iif((SELECT count(*) FROM launching WHERE process_id IN (SELECT process_id FROM run)) > 0, 'launch', 'copy') AS work
      FROM run
     WHERE process_id IN (SELECT process_id FROM part) OR (SELECT most FROM judged) = 'nothing'
),
-- The time spent in the driver by processes without launches, in the whole run or in the window.
idle AS MATERIALIZED (
    SELECT total(ns) FILTER (WHERE category IN ('init', 'module', 'context', 'device')) AS load_ns, total(ns) AS driver_ns
      FROM (SELECT process_id, category, total_ns AS ns FROM totals WHERE :from_ns IS NULL AND :to_ns IS NULL AND layer = 'driver'
             UNION ALL
            SELECT process_id, category, total_ns
              FROM call_sums(:from_ns, :to_ns, :pid, :now_ns)
             WHERE (:from_ns IS NOT NULL OR :to_ns IS NOT NULL) AND layer = 'driver')
     WHERE process_id IN (SELECT process_id FROM run) AND (SELECT most FROM judged) = 'nothing'
),
-- The parts of the run in chronological order. The asterisk in a name is replaced with "launch" or "copy".
parts(place, kind, name) AS (
    VALUES (1, 'start_driver', 'before the first *, in the driver'), (1, 'start_other', 'before the first *, elsewhere'),
           (2, 'wait', 'waiting for the GPU'), (2, 'room', 'waiting for room in the queue of launches'),
           (2, 'launch', 'launching'), (2, 'copy', 'copying'), (2, 'set', 'setting memory'), (2, 'memory', 'managing memory'),
           (2, 'load', 'loading and initialising'), (2, 'other', 'other driver calls'), (2, 'outside', 'outside of the driver'),
           (3, 'end', 'after the last *')
),
timed AS (
    SELECT place, kind, replace(name, '*', work) AS part, whole.ns AS whole_ns,
           CASE kind
                WHEN 'start_driver' THEN before_driver_ns
                WHEN 'start_other'  THEN before_ns - before_driver_ns
                WHEN 'wait'         THEN wait_ns
                WHEN 'room'         THEN room_ns
                WHEN 'launch'       THEN launch_ns
                WHEN 'copy'         THEN copy_ns
                WHEN 'set'          THEN set_ns
                WHEN 'memory'       THEN memory_ns
                WHEN 'load'         THEN judged.load_ns + idle.load_ns
                WHEN 'other'        THEN other_ns + idle.driver_ns - idle.load_ns
                WHEN 'outside'      THEN iif(most = 'nothing', max(0, whole.ns - idle.driver_ns), outside_ns)
                ELSE behind_ns END AS ns
      FROM judged
     CROSS JOIN idle
     CROSS JOIN whole
     CROSS JOIN parts
),
advice(most, bound_by, claim, hint) AS (
    VALUES ('room', 'gpu', 'The GPU is the bottleneck: the host waits for it', -- it is busy while the queue is full
            'Faster kernels, or more of them at once, would shorten the run: see kernels.'),
           ('wait', 'gpu', 'Waiting for the GPU is the bottleneck: it takes',
            'Faster kernels, or more work before each wait, would shorten the run: see waits, and run --gpu for the time of kernels.'),
           ('launch', 'launch', 'Launching is the bottleneck: it takes',
            'Fewer and larger kernels, or graphs, would shorten the run: see kernels.'),
           ('copy', 'copy', 'Copying is the bottleneck: it takes',
            'Larger, asynchronous copies from pinned memory would shorten the run: see copies.'),
           ('set', 'set', 'Setting memory is the bottleneck: it takes',
            'Fewer and larger sets, or kernels that set their own memory, would shorten the run: see functions.'),
           ('memory', 'memory', 'Managing memory is the bottleneck: it takes',
            'Keeping memory instead of freeing it would shorten the run: see memory and functions.'),
           ('load', 'load', 'Loading is the bottleneck: it takes',
            'A process that lives longer pays for this only once: see modules.'),
           ('other', 'driver', 'Other driver calls are the bottleneck: they take',
            'Fewer of these calls would shorten the run: see functions.'),
           ('outside', 'host', 'The host is the bottleneck: it is outside of the driver',
            'The GPU may be busy meanwhile: see gpu (recorded by run --gpu) or gaps.'),
           ('short', 'start', '', ''),
           ('nothing', 'start', '', '')
),
verdict AS (
    SELECT bound_by,
           CASE judged.most
                WHEN 'nothing'
                THEN CASE WHEN left_out > 0 AND NOT is_window
                          THEN printf('No launch was recorded, so there is no bottleneck to name: %d launches were left out by --layers, --calls, --sample or `cudatrace set`.',
                                      left_out)
                          ELSE printf('Nothing was launched%s, so there is no bottleneck to name.', iif(is_window, ' in this window', '')) END
                WHEN 'short' THEN printf('The %s is too short to name a bottleneck: the last %s ends %.3f ms after the first begins.',
                                         iif(is_window, 'window', 'run'), work, judged.ns / 1e6)
                ELSE printf('%s %.1f %% of the %.3f s from the first %s to the last%s%s.', claim, 100.0 * most_ns / judged.ns,
                            judged.ns / 1e9, work, iif(working > 1, printf(' in %d processes', working), ''),
                            iif(around_ns > 0.01 * judged.ns, ', with the copies and waits before and after', ''))
                     || ' ' || iif(unreturned.ns > judged.ns / 2,
                                   printf('%s() has not returned for %.3f s: see pending (recorded by run --gpu), and the view open_calls.',
                                          unreturned.name, unreturned.ns / 1e9),
                                   hint)
                     || CASE WHEN before_ns > whole.ns / 2 THEN printf(' Most of the run comes before the first %s.', work)
                             WHEN behind_ns > whole.ns / 2 THEN printf(' Most of the run comes after the last %s.', work)
                             WHEN judged.most = 'copy' AND doubt_ns > copy_ns / 2
                             THEN ' Copies to the host may also wait for kernels: run --gpu shows this.'
                             ELSE '' END
           END AS paragraph
      FROM judged
     CROSS JOIN whole
     CROSS JOIN asked
     CROSS JOIN unreturned
     CROSS JOIN (SELECT CAST(total(skipped) AS INTEGER) AS left_out
                   FROM totals
                  WHERE layer = 'driver' AND category = 'launch' AND process_id IN (SELECT process_id FROM run))
      JOIN advice ON advice.most = judged.most
)
SELECT iif(number = 1, bound_by, NULL) AS bound_by, kind, iif(number = 1, paragraph, NULL) AS paragraph,
       part, round(ns / 1e9, iif(whole_ns < 1e8, 4, 3)) AS seconds, share AS "%_of_run"
  FROM (SELECT kind, part, ns, whole_ns, round(100.0 * ns / whole_ns, 1) AS share, row_number() OVER (ORDER BY place, ns DESC) AS number
          FROM timed
         WHERE round(100.0 * ns / whole_ns, 1) > 0)
 CROSS JOIN verdict
 ORDER BY number;

-- The utilisation that the GPUs reported, from the first launch to the last, if the trace has no records of their work.
-- name: note
WITH used AS (
    SELECT min(start_ns) AS from_ns, max(call_id) AS to_ns
      FROM (SELECT start_ns, call_id, process_id, captured FROM launches UNION ALL SELECT start_ns, call_id, process_id, captured FROM graph_launches)
     WHERE captured = 0 AND call_id BETWEEN ifnull(:from_ns, 0) AND ifnull(:to_ns, 9223372036854775807)
       AND (:pid IS NULL OR process_id IN (SELECT process_id FROM processes WHERE pid = :pid))
       AND EXISTS (SELECT 1 FROM gpu_samples) AND NOT EXISTS (SELECT 1 FROM gpu_work)
),
measured AS (
    SELECT gpu, avg(busy_percent) AS busy_percent
      FROM gpu_samples
      JOIN gpus USING (gpu_id)
     CROSS JOIN used
     WHERE time_ns BETWEEN from_ns AND to_ns
       AND gpu_id IN (SELECT gpu_id FROM gpu_processes WHERE process_id IS NOT NULL AND (:pid IS NULL OR pid = :pid))
     GROUP BY gpu_id
     ORDER BY gpu
)
SELECT 'Kernels ran ' || group_concat(printf('%.1f %% (GPU %d)', busy_percent, gpu), ', ')
       || ' of the time from the first launch to the last, as the GPUs reported.' AS paragraph
  FROM measured
 WHERE busy_percent IS NOT NULL
HAVING count(*) > 0;

-- The same table, but derived from records of GPU work (decision 0124). If there are such records, these rows replace
-- the rows from host calls.
-- name: measured
-- The period is from the first kernel to the last, or from the first work if there is no kernel. Copies and sets before
-- and after are added, without the time between them: a program may copy its weights long before it launches. A window
-- is one period.
WITH by_device AS MATERIALIZED (
    SELECT device, from_ns, to_ns, first_ns, last_ns, early_ns, late_ns, busy_ns, computing_ns AS kernel_ns
      FROM gpu_busy_sums(:from_ns, :to_ns, :pid)
),
unrecorded AS (
    SELECT device, sum(max(min(from_ns, ifnull(:to_ns, last_ns)) - max(begun_ns, ifnull(:from_ns, first_ns)), 0)) AS ns
      FROM (SELECT *, iif(:pid IS NULL, unrecorded_from_ns, previous_to_ns) AS begun_ns FROM gpu_recording_times(:from_ns, :to_ns, :pid))
     CROSS JOIN (SELECT first_ns, last_ns FROM by_device LIMIT 1)
     WHERE begun_ns IS NOT NULL AND (:pid IS NULL OR process_id IN (SELECT process_id FROM processes WHERE pid = :pid))
     GROUP BY device
),
run AS MATERIALIZED ( -- until now, if a process runs and a daemon writes the trace
    SELECT max(min(started_ns), ifnull(:from_ns, 0)) AS begin_ns,
           min(max(ifnull(ended_ns, :now_ns)), ifnull(:to_ns, 9223372036854775807)) AS end_ns
      FROM processes
     WHERE (:pid IS NULL OR pid = :pid)
),
unreturned AS ( -- the driver call that has not returned for the longest time
    SELECT name, max(end_ns - max(start_ns, begin_ns)) AS ns, end_ns - begin_ns AS run_ns
      FROM open_calls
     CROSS JOIN run
     WHERE name IN (SELECT name FROM functions WHERE layer = 'driver') AND start_ns <= end_ns
       AND (:pid IS NULL OR process_id IN (SELECT process_id FROM processes WHERE pid = :pid))
),
spanned AS ( -- a window begins and ends with the processes, but contains all work
    SELECT device, early_ns, late_ns, busy_ns, kernel_ns,
           iif(:from_ns IS NULL, first_ns, min(begin_ns, min(from_ns) OVER ())) AS first_ns,
           iif(:to_ns IS NULL, last_ns, max(ifnull(end_ns, 0), max(to_ns) OVER ())) AS last_ns,
           ifnull(unrecorded.ns, 0) AS unrecorded_ns
      FROM by_device
     CROSS JOIN run
      LEFT JOIN unrecorded USING (device)
     ORDER BY device
),
busy AS MATERIALIZED (
    SELECT count(*) AS devices, first_ns, last_ns, last_ns - first_ns AS span_ns, total(unrecorded_ns) AS unrecorded_ns,
           total(early_ns) AS early_ns, total(late_ns) AS late_ns,
           total(busy_ns) AS busy_ns, total(kernel_ns) AS kernel_ns,
           group_concat(printf('%.1f %% (%d)', 100.0 * busy_ns / (last_ns - first_ns - unrecorded_ns + early_ns + late_ns), device), ', ') AS shares
      FROM spanned
    HAVING count(*) > 0
),
idle AS MATERIALIZED (
    SELECT total(idle_ns) FILTER (WHERE host_state = 'sync')                AS wait_ns,
           total(idle_ns) FILTER (WHERE host_state IN ('launch', 'graph'))  AS launch_ns,
           total(idle_ns) FILTER (WHERE host_state = 'queued')              AS queued_ns,
           total(idle_ns) FILTER (WHERE host_state = 'outside')             AS outside_ns,
           total(idle_ns) FILTER (WHERE host_state = 'copy')                AS copying_ns,
           total(idle_ns) FILTER (WHERE host_state = 'memory')              AS memory_ns,
           total(idle_ns) FILTER (WHERE host_state IN ('init', 'module', 'context', 'device')) AS load_ns,
           total(idle_ns) FILTER (WHERE host_state NOT IN ('unknown', 'unrecorded')) AS known_ns,
           total(idle_ns) FILTER (WHERE host_state = 'unknown')             AS unknown_ns,
           EXISTS (SELECT 1
                     FROM totals
                    WHERE skipped > 0 AND category IN ('launch', 'graph', 'copy', 'set')
                      AND (:pid IS NULL OR process_id IN (SELECT process_id FROM processes WHERE pid = :pid))) AS is_sampled
      FROM (SELECT host_state, period_ns AS idle_ns FROM gpu_idle_sums(:from_ns, :to_ns, :pid))
),
named(place, kind, part, bound_by, claim, mostly, hint) AS (
    VALUES (1, 'start_other', 'before the first work', '', '', '', ''),
           (2, 'kernel', 'kernels', 'gpu', 'The work of the GPU is the bottleneck', '',
            'Faster kernels, or more of them at once, would shorten the run: see work.'),
           (2, 'copy', 'copies and sets without a kernel', 'copy', 'Copying is the bottleneck', ', mostly with copies or sets and no kernel',
            'Copies that overlap kernels, or copies from pinned memory, would shorten the run: see work and copies.'),
           (2, 'wait', 'idle, the host in a wait', 'sync', 'Synchronisation is the bottleneck', ', mostly while the host is in a call that waits',
            'Fewer waits, or more launches before each wait, would shorten the run: see idle and waits.'),
           (2, 'launch', 'idle, the host launching', 'launch', 'Launching is the bottleneck', ', mostly while the host launches',
            'Fewer and larger kernels, or graphs, would shorten the run: see idle and kernels.'),
           (2, 'queued', 'idle, the next work launched', 'queue', 'The time from launch to start is the bottleneck',
            ', mostly while the next work is launched but has not started',
            'Larger kernels, graphs, or fewer waits between streams would shorten the run: see idle.'),
           (2, 'outside', 'idle, the host outside of the driver', 'host', 'The host is the bottleneck',
            ', mostly while the host is outside of the driver', 'More work for each launch, or a faster program, would shorten the run: see idle.'),
           (2, 'copying', 'idle, the host in a copy', 'copy', 'Copying is the bottleneck', ', mostly while the host is in a copy',
            'Larger, asynchronous copies from pinned memory would shorten the run: see idle and copies.'),
           (2, 'memory', 'idle, the host managing memory', 'memory', 'Managing memory is the bottleneck', ', mostly while the host manages memory',
            'Keeping memory instead of freeing it would shorten the run: see idle and memory.'),
           (2, 'load', 'idle, the host loading', 'load', 'Loading is the bottleneck', ', mostly while the host loads code or initialises',
            'A process that lives longer pays for this only once: see idle and modules.'),
           (2, 'other', 'idle, the host in other driver calls', 'driver', 'Other driver calls are the bottleneck',
            ', mostly while the host is in calls that neither launch nor wait', 'Fewer of these calls would shorten the run: see idle.'),
           (2, 'rest', 'idle otherwise', 'unknown', 'The bottleneck is unknown',
            ', mostly before a first work, after a last, or next to other processes', 'See gpu and idle.'),
           (3, 'unrecorded', 'between recordings', '', '', '', ''),
           (4, 'end', 'after the last work', '', '', '', '')
),
recorded AS MATERIALIZED (
    SELECT *, devices * span_ns - unrecorded_ns + early_ns + late_ns AS recorded_ns FROM busy
),
part AS ( -- a GPU that is busy for half of the time is judged by its work, and an idle one by the host
    SELECT named.*, recorded.*, idle.unknown_ns, idle.is_sampled, busy_ns >= 0.5 * recorded_ns AS is_busy,
           place = 2 AND kind IN ('kernel', 'copy') = (busy_ns >= 0.5 * recorded_ns) AS judges,
           CASE kind
                WHEN 'start_other' THEN max(devices * (first_ns - begin_ns) - early_ns, 0)
                WHEN 'kernel'      THEN kernel_ns
                WHEN 'copy'        THEN busy_ns - kernel_ns
                WHEN 'wait'        THEN wait_ns
                WHEN 'launch'      THEN launch_ns
                WHEN 'queued'      THEN queued_ns
                WHEN 'outside'     THEN outside_ns
                WHEN 'copying'     THEN copying_ns
                WHEN 'memory'      THEN memory_ns
                WHEN 'load'        THEN load_ns
                WHEN 'other'       THEN known_ns - wait_ns - launch_ns - queued_ns - outside_ns - copying_ns - memory_ns - load_ns
                WHEN 'rest'        THEN max(recorded_ns - busy_ns - known_ns, 0)
                WHEN 'unrecorded'  THEN recorded.unrecorded_ns
                ELSE max(devices * (ifnull(end_ns, last_ns) - last_ns) - late_ns, 0) END AS part_ns
      FROM recorded
     CROSS JOIN run
     CROSS JOIN idle
     CROSS JOIN named
),
ranked AS (
    SELECT *, total(part_ns) OVER () AS whole_ns, judges AND row_number() OVER (PARTITION BY judges ORDER BY part_ns DESC) = 1 AS is_verdict
      FROM part
),
verdict AS (
    SELECT *, max(iif(is_verdict, iif(span_ns < 1e6, 'start', bound_by), NULL)) OVER () AS bound,
           max(CASE WHEN is_verdict AND span_ns < 1e6
                    THEN printf('The %s is too short to name a bottleneck: the last work ends %.3f ms after the first begins.',
                                iif(:from_ns IS NULL AND :to_ns IS NULL, 'run', 'window'), span_ns / 1e6)
                    WHEN is_verdict
                    THEN printf('%s: the %s %s %.1f %% of the %.3f s %s%s%s. %s', claim,
                                iif(devices = 1, 'GPU is', printf('%d GPUs are', devices)), iif(is_busy, 'busy', 'idle'),
                                100.0 * iif(is_busy, busy_ns, recorded_ns - busy_ns) / recorded_ns, recorded_ns / devices / 1e9,
                                CASE WHEN :from_ns IS NOT NULL OR :to_ns IS NOT NULL THEN 'of the window'
                                     WHEN early_ns + late_ns > 0.01 * recorded_ns THEN 'from the first kernel to the last, with the copies before and after'
                                     ELSE 'from the first work to the last' END,
                                iif(unrecorded_ns > 0, ', without the time between recordings', ''), mostly,
                                iif(unreturned.ns > unreturned.run_ns / 2,
                                    printf('%s() has not returned for %.3f s: see pending, and the view open_calls.', unreturned.name, unreturned.ns / 1e9),
                                    hint))
                         || iif(devices > 1, printf(' Busy by device: %s.', shares), '')
                         || iif(is_sampled AND unknown_ns > 0,
                                printf(' For %.1f %% of the idle time, the call that launched the next work was not recorded (--sample, --calls).',
                                       100.0 * unknown_ns / (recorded_ns - busy_ns)), '') END) OVER () AS paragraph
      FROM ranked
     CROSS JOIN unreturned
)
SELECT iif(number = 1, bound, NULL) AS bound_by, kind, iif(number = 1, paragraph, NULL) AS paragraph,
       part, round(part_ns / 1e9, iif(whole_ns < 1e8, 4, 3)) AS seconds, round(100.0 * part_ns / whole_ns, 1) AS "%_of_run"
  FROM (SELECT *, row_number() OVER (ORDER BY place, part_ns DESC) AS number
          FROM verdict
         WHERE round(100.0 * part_ns / whole_ns, 1) > 0)
 ORDER BY number;
