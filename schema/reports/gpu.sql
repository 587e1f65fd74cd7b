-- Devices
-- Shows how long each device was busy, from the first work to the last, or in the window, without the time between
-- recordings. Each time counts once, even if several kernels or copies ran at that time. During overlap_ms, both kernels
-- and copies ran. During graph_ms, graphs ran that were recorded as a whole. Needs records of GPU work.
WITH work AS (
    SELECT device, kind,
           max(gpu_start_ns, ifnull(:from_ns, 0))                 AS start_ns,
           min(gpu_end_ns, ifnull(:to_ns, 9223372036854775807))   AS end_ns
      FROM gpu_work
     WHERE gpu_end_ns >= ifnull(:from_ns, 0) AND gpu_start_ns <= ifnull(:to_ns, 9223372036854775807)
       AND (:pid IS NULL OR process_id IN (SELECT process_id FROM processes WHERE pid = :pid))
),
part AS ( -- the work that each column is about
    SELECT device, 'any' AS part, start_ns, end_ns FROM work
     UNION ALL
    SELECT device, 'both', start_ns, end_ns FROM work WHERE kind IN ('kernel', 'copy')
     UNION ALL
    SELECT device, kind, start_ns, end_ns FROM work WHERE kind IN ('kernel', 'copy', 'graph')
),
covered AS (
    SELECT device, part, start_ns, end_ns,
           max(end_ns) OVER (PARTITION BY device, part ORDER BY start_ns, end_ns
                             ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS until_ns
      FROM part
),
busy AS (
    SELECT device, part, sum(max(end_ns - max(start_ns, ifnull(until_ns, start_ns)), 0)) AS ns FROM covered GROUP BY device, part
),
by_device AS (
    SELECT device,
           total(ns) FILTER (WHERE part = 'any')    AS busy_ns,
           total(ns) FILTER (WHERE part = 'kernel') AS kernel_ns,
           total(ns) FILTER (WHERE part = 'copy')   AS copy_ns,
           total(ns) FILTER (WHERE part = 'both')   AS both_ns,
           total(ns) FILTER (WHERE part = 'graph')  AS graph_ns
      FROM busy
     GROUP BY device
),
counted AS (
    SELECT device,
           count(*) FILTER (WHERE kind = 'kernel')  AS kernels,
           count(*) FILTER (WHERE kind = 'copy')    AS copies,
           count(*) FILTER (WHERE kind = 'set')     AS sets,
           count(*) FILTER (WHERE kind = 'graph')   AS graphs
      FROM work
     GROUP BY device
),
unrecorded AS (
    SELECT device, sum(max(min(from_ns, ifnull(:to_ns, from_ns)) - max(begun_ns, ifnull(:from_ns, 0)), 0)) AS ns
      FROM (SELECT *, iif(:pid IS NULL, unrecorded_from_ns, previous_to_ns) AS begun_ns FROM gpu_recordings)
     WHERE begun_ns IS NOT NULL AND (:pid IS NULL OR process_id IN (SELECT process_id FROM processes WHERE pid = :pid))
     GROUP BY device
),
run AS (
    SELECT min(started_ns) AS begin_ns, max(ifnull(ended_ns, :now_ns)) AS end_ns FROM processes WHERE (:pid IS NULL OR pid = :pid)
),
window AS ( -- begins and ends with the processes, but contains all work
    SELECT iif(:to_ns IS NULL, max(end_ns), max(max(end_ns), min(:to_ns, ifnull((SELECT end_ns FROM run), 0))))
           - iif(:from_ns IS NULL, min(start_ns), min(min(start_ns), max(:from_ns, (SELECT begin_ns FROM run)))) AS ns
      FROM work
)
SELECT device,
       round(100.0 * busy_ns / nullif((SELECT ns FROM window) - ifnull(unrecorded.ns, 0), 0), 1) AS "busy_%",
       round(busy_ns / 1e6, 3)                              AS busy_ms,
       round(kernel_ns / 1e6, 3)                            AS kernel_ms,
       round(copy_ns / 1e6, 3)                              AS copy_ms,
       round((kernel_ns + copy_ns - both_ns) / 1e6, 3)      AS overlap_ms,
       round(graph_ns / 1e6, 3)                             AS graph_ms,
       kernels,
       copies,
       sets,
       graphs
  FROM by_device
  JOIN counted USING (device)
  LEFT JOIN unrecorded USING (device)
 ORDER BY device
 LIMIT 30;
