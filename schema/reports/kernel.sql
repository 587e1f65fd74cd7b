-- What happened inside the longest driver calls
-- Shows how long each call's thread was blocked, preempted and running, and its page faults, from traces of
-- `cudatrace probe --kernel`. These columns are empty if the trace has no such events for the process. The `hooks`
-- column shows how many hooks ran inside the call, and for how long, from traces of `cudatrace probe --hooks`. A
-- hook's time includes the hooks inside it.
WITH known AS MATERIALIZED (
    SELECT DISTINCT process_id, layer
      FROM totals
     WHERE layer = 'hook' OR (layer = 'kernel' AND name IN ('blocked', 'preempted', 'page_fault'))
),
longest AS MATERIALIZED ( -- reads the calls only if the trace has events or hooks
    SELECT process_id, pid, tid, name, call_id, start_ns, duration_ns
      FROM (SELECT 1 FROM known LIMIT 1)
     CROSS JOIN calls
     WHERE layer = 'driver' AND process_id IN (SELECT process_id FROM known)
       AND call_id BETWEEN ifnull(:from_ns, 0) AND ifnull(:to_ns, 9223372036854775807)
       AND (:pid IS NULL OR pid = :pid)
     ORDER BY duration_ns DESC
     LIMIT 20
),
inside AS MATERIALIZED (
    SELECT longest.call_id, layer, calls.name, count(*) AS calls, sum(calls.duration_ns) AS ns
      FROM (SELECT min(start_ns) AS from_ns FROM longest) AS first
     CROSS JOIN calls
     CROSS JOIN longest ON longest.process_id = calls.process_id AND longest.tid = calls.tid
                       AND longest.start_ns <= calls.start_ns AND longest.call_id >= calls.call_id
     WHERE layer IN ('kernel', 'hook') AND calls.call_id BETWEEN first.from_ns AND ifnull(:to_ns, 9223372036854775807)
     GROUP BY longest.call_id, layer, calls.name
),
hook AS (
    SELECT call_id, group_concat(printf('%s: %d in %.3f ms', name, calls, ns / 1e6), ', ') AS hooks
      FROM (SELECT * FROM inside WHERE layer = 'hook' ORDER BY ns DESC, calls DESC, name)
     GROUP BY call_id
),
event AS (
    SELECT longest.call_id,
           total(calls) FILTER (WHERE inside.name = 'blocked')    AS blocked,
           total(ns)    FILTER (WHERE inside.name = 'blocked')    AS blocked_ns,
           total(calls) FILTER (WHERE inside.name = 'preempted')  AS preempted,
           total(ns)    FILTER (WHERE inside.name = 'preempted')  AS preempted_ns,
           total(calls) FILTER (WHERE inside.name = 'page_fault') AS page_faults
      FROM longest
      LEFT JOIN inside ON inside.call_id = longest.call_id AND layer = 'kernel'
     WHERE process_id IN (SELECT process_id FROM known WHERE layer = 'kernel')
     GROUP BY longest.call_id
)
SELECT pid,
       tid,
       name                                               AS function,
       round((start_ns - (SELECT min(started_ns) FROM processes)) / 1e9, 6) AS at_s,
       round(duration_ns / 1e6, 3)                        AS ms,
       CAST(blocked AS INTEGER)                           AS blocked,
       round(blocked_ns / 1e6, 3)                         AS blocked_ms,
       CAST(preempted AS INTEGER)                         AS preempted,
       round(preempted_ns / 1e6, 3)                       AS preempted_ms,
       round((duration_ns - blocked_ns - preempted_ns) / 1e6, 3) AS running_ms,
       CAST(page_faults AS INTEGER)                       AS page_faults,
       ifnull(hooks, '')                                  AS hooks,
       longest.call_id
  FROM longest
  LEFT JOIN event ON event.call_id = longest.call_id
  LEFT JOIN hook ON hook.call_id = longest.call_id
 ORDER BY duration_ns DESC;
