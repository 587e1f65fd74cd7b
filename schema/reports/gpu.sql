-- Devices
-- Shows how long each device was busy, from the first work to the last, or in the window, without the time between
-- recordings. Each time counts once, even if several kernels or copies ran at that time. During overlap_ms, both kernels
-- and copies ran. During graph_ms, graphs ran that were recorded as a whole. Needs records of GPU work.
WITH by_device AS MATERIALIZED (
    SELECT * FROM gpu_busy_sums(:from_ns, :to_ns, :pid)
),
unrecorded AS (
    SELECT device, sum(max(min(from_ns, ifnull(:to_ns, from_ns)) - max(begun_ns, ifnull(:from_ns, 0)), 0)) AS ns
      FROM (SELECT *, iif(:pid IS NULL, unrecorded_from_ns, previous_to_ns) AS begun_ns FROM gpu_recording_times(:from_ns, :to_ns, :pid))
     WHERE begun_ns IS NOT NULL AND (:pid IS NULL OR process_id IN (SELECT process_id FROM processes WHERE pid = :pid))
     GROUP BY device
),
run AS (
    SELECT min(started_ns) AS begin_ns, max(ifnull(ended_ns, :now_ns)) AS end_ns FROM processes WHERE (:pid IS NULL OR pid = :pid)
),
window AS ( -- begins and ends with the processes, but contains all work
    SELECT iif(:to_ns IS NULL, max(to_ns), max(max(to_ns), min(:to_ns, ifnull((SELECT end_ns FROM run), 0))))
           - iif(:from_ns IS NULL, min(from_ns), min(min(from_ns), max(:from_ns, (SELECT begin_ns FROM run)))) AS ns
      FROM by_device
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
  LEFT JOIN unrecorded USING (device)
 ORDER BY device
 LIMIT 30;
