-- Driver calls that were off the processor
-- By function, from traces of `cudatrace probe --kernel`. A blocked thread slept: it waited for a lock, an event, a
-- timer or a device. A preempted thread could run, but another thread had its processor. During the rest of these
-- calls' time, their threads ran. A call's times include the times of the calls inside it.
WITH RECURSIVE since AS ( -- a call that returned in the window may have begun before it
    SELECT min(:from_ns - 100000000,
               ifnull((SELECT min(start_ns)
                         FROM long_calls
                        WHERE call_id BETWEEN :from_ns AND ifnull(:to_ns, 9223372036854775807)), :from_ns)) AS from_ns
),
event AS MATERIALIZED ( -- reads the calls only if the trace has events
    SELECT process_id, tid, depth, call_id, start_ns, name, duration_ns
      FROM (SELECT 1 FROM functions WHERE layer = 'kernel' AND name IN ('blocked', 'preempted') LIMIT 1)
     CROSS JOIN calls
     WHERE layer = 'kernel' AND name IN ('blocked', 'preempted')
       AND call_id BETWEEN ifnull((SELECT from_ns FROM since), 0) AND ifnull(:to_ns, 9223372036854775807)
       AND (:pid IS NULL OR pid = :pid)
),
level(process_id, tid, depth) AS ( -- the depths of calls that may enclose events
    SELECT process_id, tid, max(depth) - 1 FROM event GROUP BY process_id, tid
     UNION ALL
    SELECT process_id, tid, depth - 1 FROM level WHERE depth > 0
),
-- A thread's calls at one depth do not overlap. Therefore, only the first of these calls that returns after an event
-- can enclose that event. If no such call returns before the thread's next event, the same call is the first that
-- returns after either event.
moment AS MATERIALIZED (
    SELECT event.*, level.depth AS level,
           lead(call_id, 1, 9223372036854775807) OVER (PARTITION BY event.process_id, event.tid, level.depth ORDER BY call_id) AS next_id
      FROM event
      JOIN level ON level.process_id = event.process_id AND level.tid = event.tid AND level.depth < event.depth
),
long AS MATERIALIZED (
    SELECT calls.process_id, calls.tid, calls.depth, calls.call_id, calls.start_ns
      FROM (SELECT 1 FROM event LIMIT 1)
     CROSS JOIN long_calls
     CROSS JOIN (SELECT process_id, tid, depth, layer, call_id, start_ns FROM calls WHERE call_id >= ifnull(:from_ns, 0)) AS calls
             ON calls.call_id = long_calls.call_id
     WHERE layer = 'driver'
),
found AS (
    SELECT moment.*,
           min(ifnull((SELECT calls.call_id
                         FROM calls
                        WHERE calls.call_id BETWEEN moment.call_id AND min(moment.next_id, moment.call_id + 100000000)
                          AND calls.process_id = moment.process_id AND calls.tid = moment.tid AND calls.depth = moment.level
                          AND calls.layer = 'driver'
                        ORDER BY calls.call_id
                        LIMIT 1), 9223372036854775807),
               ifnull((SELECT min(long.call_id)
                         FROM long
                        WHERE long.process_id = moment.process_id AND long.tid = moment.tid AND long.depth = moment.level
                          AND long.call_id BETWEEN moment.call_id AND moment.next_id), 9223372036854775807)) AS found_id
      FROM moment
),
placed AS MATERIALIZED (
    SELECT start_ns, name, duration_ns,
           min(found_id) OVER (PARTITION BY process_id, tid, level ORDER BY call_id DESC ROWS UNBOUNDED PRECEDING) AS around_id
      FROM found
),
summed AS (
    SELECT calls.name, calls.duration_ns AS ns,
           total(placed.duration_ns) FILTER (WHERE placed.name = 'blocked')   AS blocked_ns,
           total(placed.duration_ns) FILTER (WHERE placed.name = 'preempted') AS preempted_ns,
           max(placed.duration_ns)   FILTER (WHERE placed.name = 'blocked')   AS longest_ns
      FROM placed
     CROSS JOIN (SELECT call_id, name, start_ns, duration_ns FROM calls WHERE call_id >= ifnull(:from_ns, 0)) AS calls
             ON calls.call_id = around_id
     WHERE calls.call_id BETWEEN ifnull(:from_ns, 0) AND ifnull(:to_ns, 9223372036854775807)
       AND calls.start_ns <= placed.start_ns
     GROUP BY around_id
)
SELECT name                                               AS function,
       count(*)                                           AS calls,
       round(sum(ns) / 1e6, 3)                            AS total_ms,
       round(sum(blocked_ns) / 1e6, 3)                    AS blocked_ms,
       round(sum(preempted_ns) / 1e6, 3)                  AS preempted_ms,
       round(sum(ns - blocked_ns - preempted_ns) / 1e6, 3) AS running_ms,
       round(max(longest_ns) / 1e6, 3)                    AS longest_sleep_ms
  FROM summed
 GROUP BY name
 ORDER BY sum(blocked_ns) DESC, sum(preempted_ns) DESC
 LIMIT 40;
