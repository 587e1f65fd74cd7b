-- Processes by time on the GPU
-- Shows how long each process kept each device busy, and how long it did so alone or together with other traced processes.
-- The share is of the time from the device's first work to its last, without the time between recordings. Needs records of the GPU's work.
WITH busy AS (
    SELECT device, process_id, sum(to_ns - from_ns) AS ns, CAST(sum(alone_ns) AS INTEGER) AS alone_ns, count(*) AS periods,
           min(from_ns) AS from_ns, max(to_ns) AS to_ns
      FROM (SELECT device, process_id, max(from_ns, ifnull(:from_ns, from_ns)) AS from_ns, min(to_ns, ifnull(:to_ns, to_ns)) AS to_ns,
                   alone_ns * (1.0 * (min(to_ns, ifnull(:to_ns, to_ns)) - max(from_ns, ifnull(:from_ns, from_ns))) / nullif(duration_ns, 0))
                     AS alone_ns -- of a period that crosses the window's edge, in proportion
              FROM gpu_busy
             WHERE to_ns >= ifnull(:from_ns, 0) AND from_ns <= ifnull(:to_ns, 9223372036854775807))
     GROUP BY device, process_id
),
spanned AS (
    SELECT *, min(from_ns) OVER (PARTITION BY device) AS first_ns, max(to_ns) OVER (PARTITION BY device) AS last_ns FROM busy
),
unrecorded AS (
    SELECT device, sum(from_ns - unrecorded_from_ns) AS ns
      FROM gpu_recordings
     WHERE unrecorded_from_ns >= (SELECT min(busy.from_ns) FROM busy WHERE busy.device = gpu_recordings.device)
       AND from_ns <= (SELECT max(busy.to_ns) FROM busy WHERE busy.device = gpu_recordings.device)
     GROUP BY device
)
SELECT device,
       pid,
       round(100.0 * busy.ns / nullif(last_ns - first_ns - ifnull(unrecorded.ns, 0), 0), 1) AS "busy_%",
       round(busy.ns / 1e6, 3)                                AS busy_ms,
       round(alone_ns / 1e6, 3)                            AS alone_ms,
       round((busy.ns - alone_ns) / 1e6, 3)                AS together_ms,
       periods,
       cmdline                                             AS command
  FROM spanned AS busy
  JOIN processes USING (process_id)
  LEFT JOIN unrecorded USING (device)
 WHERE (:pid IS NULL OR pid = :pid)
 ORDER BY device, busy.ns DESC
 LIMIT 30;
